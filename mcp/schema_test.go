package mcp_test

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

const newest = "2026-07-28"

var revisions = []string{newest, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// types are the Go types of the object types of all schemas. Parameters and
// results of methods whose schema has no name are found through mcp.Methods.
var types = map[string]reflect.Type{
	"Annotated":                         reflect.TypeFor[annotated](),
	"Annotations":                       reflect.TypeFor[mcp.Annotations](),
	"AudioContent":                      reflect.TypeFor[mcp.AudioContent](),
	"BaseMetadata":                      reflect.TypeFor[mcp.PromptArgument](),
	"BlobResourceContents":              reflect.TypeFor[mcp.ResourceContents](),
	"BooleanSchema":                     reflect.TypeFor[mcp.PrimitiveSchema](),
	"CacheableResult":                   reflect.TypeFor[mcp.ListToolsResult](),
	"CallToolRequestParams":             reflect.TypeFor[mcp.CallToolParams](),
	"CallToolResult":                    reflect.TypeFor[mcp.CallToolResult](),
	"CancelledNotificationParams":       reflect.TypeFor[mcp.CancelledParams](),
	"ClientCapabilities":                reflect.TypeFor[mcp.ClientCapabilities](),
	"CompleteRequestParams":             reflect.TypeFor[mcp.CompleteParams](),
	"CompleteResult":                    reflect.TypeFor[mcp.CompleteResult](),
	"CreateMessageRequestParams":        reflect.TypeFor[mcp.CreateMessageParams](),
	"CreateMessageResult":               reflect.TypeFor[mcp.CreateMessageResult](),
	"DiscoverResult":                    reflect.TypeFor[mcp.DiscoverResult](),
	"ElicitRequestFormParams":           reflect.TypeFor[mcp.ElicitParams](),
	"ElicitRequestURLParams":            reflect.TypeFor[mcp.ElicitParams](),
	"ElicitResult":                      reflect.TypeFor[mcp.ElicitResult](),
	"EmbeddedResource":                  reflect.TypeFor[mcp.EmbeddedResource](),
	"EnumSchema":                        reflect.TypeFor[mcp.PrimitiveSchema](),
	"GetPromptRequestParams":            reflect.TypeFor[mcp.GetPromptParams](),
	"GetPromptResult":                   reflect.TypeFor[mcp.GetPromptResult](),
	"Icon":                              reflect.TypeFor[mcp.Icon](),
	"Icons":                             reflect.TypeFor[mcp.Tool](),
	"ImageContent":                      reflect.TypeFor[mcp.ImageContent](),
	"Implementation":                    reflect.TypeFor[mcp.Implementation](),
	"InitializeRequestParams":           reflect.TypeFor[mcp.InitializeParams](),
	"InitializeResult":                  reflect.TypeFor[mcp.InitializeResult](),
	"InputRequiredResult":               reflect.TypeFor[mcp.InputRequiredResult](),
	"InputResponseRequestParams":        reflect.TypeFor[mcp.GetPromptParams](),
	"LegacyTitledEnumSchema":            reflect.TypeFor[mcp.PrimitiveSchema](),
	"ListPromptsResult":                 reflect.TypeFor[mcp.ListPromptsResult](),
	"ListResourceTemplatesResult":       reflect.TypeFor[mcp.ListResourceTemplatesResult](),
	"ListResourcesResult":               reflect.TypeFor[mcp.ListResourcesResult](),
	"ListRootsResult":                   reflect.TypeFor[mcp.ListRootsResult](),
	"ListToolsResult":                   reflect.TypeFor[mcp.ListToolsResult](),
	"LoggingMessageNotificationParams":  reflect.TypeFor[mcp.LogParams](),
	"ModelHint":                         reflect.TypeFor[mcp.ModelHint](),
	"ModelPreferences":                  reflect.TypeFor[mcp.ModelPreferences](),
	"NotificationMetaObject":            reflect.TypeFor[mcp.NotificationMeta](),
	"NotificationParams":                reflect.TypeFor[mcp.NotificationParams](),
	"NumberSchema":                      reflect.TypeFor[mcp.PrimitiveSchema](),
	"PaginatedRequestParams":            reflect.TypeFor[mcp.ListParams](),
	"PaginatedResult":                   reflect.TypeFor[mcp.ListToolsResult](),
	"ProgressNotificationParams":        reflect.TypeFor[mcp.ProgressParams](),
	"Prompt":                            reflect.TypeFor[mcp.Prompt](),
	"PromptArgument":                    reflect.TypeFor[mcp.PromptArgument](),
	"PromptMessage":                     reflect.TypeFor[mcp.PromptMessage](),
	"PromptReference":                   reflect.TypeFor[mcp.CompletionRef](),
	"ReadResourceRequestParams":         reflect.TypeFor[mcp.ReadResourceParams](),
	"ReadResourceResult":                reflect.TypeFor[mcp.ReadResourceResult](),
	"RequestMetaObject":                 reflect.TypeFor[mcp.RequestMeta](),
	"RequestParams":                     reflect.TypeFor[mcp.EmptyParams](),
	"Resource":                          reflect.TypeFor[mcp.Resource](),
	"ResourceContents":                  reflect.TypeFor[mcp.ResourceContents](),
	"ResourceLink":                      reflect.TypeFor[mcp.ResourceLink](),
	"ResourceReference":                 reflect.TypeFor[mcp.CompletionRef](),
	"ResourceRequestParams":             reflect.TypeFor[mcp.ReadResourceParams](),
	"ResourceTemplate":                  reflect.TypeFor[mcp.ResourceTemplate](),
	"ResourceTemplateReference":         reflect.TypeFor[mcp.CompletionRef](),
	"ResourceUpdatedNotificationParams": reflect.TypeFor[mcp.ResourceUpdatedParams](),
	"Result":                            reflect.TypeFor[mcp.EmptyResult](),
	"ResultMetaObject":                  reflect.TypeFor[mcp.ResultMeta](),
	"Root":                              reflect.TypeFor[mcp.Root](),
	"SamplingMessage":                   reflect.TypeFor[mcp.SamplingMessage](),
	"ServerCapabilities":                reflect.TypeFor[mcp.ServerCapabilities](),
	"SetLevelRequestParams":             reflect.TypeFor[mcp.SetLevelParams](),
	"StringSchema":                      reflect.TypeFor[mcp.PrimitiveSchema](),
	"SubscribeRequestParams":            reflect.TypeFor[mcp.SubscribeParams](),
	"SubscriptionFilter":                reflect.TypeFor[mcp.SubscriptionFilter](),
	"SubscriptionsAcknowledgedNotificationParams": reflect.TypeFor[mcp.AcknowledgedParams](),
	"SubscriptionsListenRequestParams":            reflect.TypeFor[mcp.ListenParams](),
	"SubscriptionsListenResult":                   reflect.TypeFor[mcp.ListenResult](),
	"SubscriptionsListenResultMetaObject":         reflect.TypeFor[mcp.ResultMeta](),
	"TextContent":                                 reflect.TypeFor[mcp.TextContent](),
	"TextResourceContents":                        reflect.TypeFor[mcp.ResourceContents](),
	"TitledMultiSelectEnumSchema":                 reflect.TypeFor[mcp.PrimitiveSchema](),
	"TitledSingleSelectEnumSchema":                reflect.TypeFor[mcp.PrimitiveSchema](),
	"Tool":                                        reflect.TypeFor[mcp.Tool](),
	"ToolAnnotations":                             reflect.TypeFor[mcp.ToolAnnotations](),
	"ToolChoice":                                  reflect.TypeFor[mcp.ToolChoice](),
	"ToolResultContent":                           reflect.TypeFor[mcp.ToolResultContent](),
	"ToolUseContent":                              reflect.TypeFor[mcp.ToolUseContent](),
	"UnsubscribeRequestParams":                    reflect.TypeFor[mcp.UnsubscribeParams](),
	"UntitledMultiSelectEnumSchema":               reflect.TypeFor[mcp.PrimitiveSchema](),
	"UntitledSingleSelectEnumSchema":              reflect.TypeFor[mcp.PrimitiveSchema](),
}

// annotated stands for the mixin of the oldest revision.
type annotated struct {
	Annotations *mcp.Annotations `json:"annotations"`
}

// noType are object types without a Go type here, and why.
var noType = map[string]string{
	"Error":                                "package jsonrpc",
	"InternalError":                        "package jsonrpc; the code is a constant",
	"InvalidParamsError":                   "package jsonrpc; the code is a constant",
	"InvalidRequestError":                  "package jsonrpc; the code is a constant",
	"MethodNotFoundError":                  "package jsonrpc; the code is a constant",
	"ParseError":                           "package jsonrpc; the code is a constant",
	"HeaderMismatchError":                  "package jsonrpc; the code is a constant",
	"JSONObject":                           "RawValue",
	"MetaObject":                           "Meta, a map",
	"InputRequests":                        "a map, of InputRequest",
	"InputResponses":                       "a map",
	"Notification":                         "package jsonrpc",
	"Request":                              "package jsonrpc",
	"JSONRPCError":                         "package jsonrpc",
	"JSONRPCErrorResponse":                 "package jsonrpc",
	"JSONRPCNotification":                  "package jsonrpc",
	"JSONRPCRequest":                       "package jsonrpc",
	"JSONRPCResponse":                      "package jsonrpc",
	"JSONRPCResultResponse":                "package jsonrpc",
	"PaginatedRequest":                     "package jsonrpc; its params are ListParams",
	"CreateTaskResult":                     "core tasks were an experiment",
	"GetTaskPayloadResult":                 "core tasks were an experiment",
	"ListTasksResult":                      "core tasks were an experiment",
	"RelatedTaskMetadata":                  "core tasks were an experiment",
	"Task":                                 "core tasks were an experiment",
	"TaskMetadata":                         "core tasks were an experiment",
	"TaskAugmentedRequestParams":           "core tasks were an experiment",
	"ToolExecution":                        "core tasks were an experiment",
	"MissingRequiredClientCapabilityError": "MissingCapabilityData, see TestErrorData",
	"UnsupportedProtocolVersionError":      "UnsupportedVersionData, see TestErrorData",
	"URLElicitationRequiredError":          "URLElicitationRequiredData, see TestErrorData",
}

// oldOnly are members of older schemas that the Go types do not have, and why.
var oldOnly = map[string]string{
	"task":      "core tasks were an experiment",
	"tasks":     "core tasks were an experiment; kept in Extra",
	"execution": "core tasks were an experiment",
}

// goOnly are members of Go types that the newest schema does not have, and why.
// The key is type.member, or .member for all types.
var goOnly = map[string]string{
	"ElicitParams.elicitationId":           "2025-11-25",
	"ElicitParams._meta":                   "handshake revisions",
	"ElicitResult._meta":                   "handshake revisions",
	"CreateMessageParams._meta":            "handshake revisions",
	"ListRootsResult._meta":                "handshake revisions",
	"RootsCapability.listChanged":          "handshake revisions",
	"RequestMeta.traceparent":              "prose: basic/index, trace context",
	"RequestMeta.tracestate":               "prose: basic/index, trace context",
	"RequestMeta.baggage":                  "prose: basic/index, trace context",
	"NotificationMeta.traceparent":         "prose: basic/index, trace context",
	"NotificationMeta.tracestate":          "prose: basic/index, trace context",
	"NotificationMeta.baggage":             "prose: basic/index, trace context",
	"ResultMeta." + mcp.MetaSubscriptionID: "SubscriptionsListenResultMetaObject has it",
}

// unions are Go types that stand for several object types of the schema: each
// of those has some of its members, together they have all.
var unions = []reflect.Type{
	reflect.TypeFor[mcp.ResourceContents](),
	reflect.TypeFor[mcp.PrimitiveSchema](),
	reflect.TypeFor[mcp.ElicitParams](),
	reflect.TypeFor[mcp.CompletionRef](),
	reflect.TypeFor[mcp.EnumItems](),
}

// mixins are object types that others extend: the Go type stands for one of
// those.
var mixins = []string{
	"BaseMetadata", "CacheableResult", "Icons", "PaginatedResult", "ResourceContents",
	"InputResponseRequestParams", "ResourceRequestParams", "Annotated",
}

// specDir is where the schemas are.
func specDir(t testing.TB) string {
	dir := os.Getenv("PARLEY_SPEC_DIR")
	if dir == "" {
		t.Skip("PARLEY_SPEC_DIR is not set")
	}
	return dir
}

type object = map[string]any

// definitions reads the object types of a schema.
func definitions(t testing.TB, version string) object {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(specDir(t), version, "schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema object
	if err := wire.Decode(data, &schema); err != nil {
		t.Fatal(err)
	}
	if defs, ok := schema["$defs"].(object); ok {
		return defs
	}
	return schema["definitions"].(object)
}

// fields are the JSON members of a struct type, with their Go types.
func fields(t reflect.Type) map[string]reflect.StructField {
	all := map[string]reflect.StructField{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case options == "embed" || name == "-" || !f.IsExported():
		case f.Anonymous && name == "":
			maps.Copy(all, fields(f.Type))
		default:
			all[name] = f
		}
	}
	return all
}

// base takes pointers and slices away.
func base(t reflect.Type) reflect.Type {
	for t != reflect.TypeFor[mcp.RawValue]() && t != reflect.TypeFor[[]byte]() &&
		(t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
		t = t.Elem()
	}
	return t
}

func property(def object, name string) object {
	properties, _ := def["properties"].(object)
	p, _ := properties[name].(object)
	return p
}

// paramsDefs adds to defs the params of requests and notifications, as far as
// they have no name of their own, and returns their Go types.
func paramsDefs(t testing.TB, defs object) map[string]reflect.Type {
	found := map[string]reflect.Type{}
	for name, def := range maps.Clone(defs) {
		method, _ := property(def.(object), "method")["const"].(string)
		if method == "" {
			continue
		}
		if strings.Contains(method, "tasks/") {
			continue // core tasks were an experiment
		}
		row, ok := mcp.Lookup(method)
		if !ok {
			t.Errorf("%s: method %s is not in mcp.Methods", name, method)
			continue
		}
		params := property(def.(object), "params")
		if params["properties"] != nil {
			defs[name+".params"] = params
			found[name+".params"] = row.Params
		}
	}
	return found
}

type oracle struct {
	*testing.T
	newest bool
	// used are the members of Go types that some schema has.
	used map[string]bool
}

// compare checks an object type of the schema against a Go type.
func (o *oracle) compare(path string, def object, t reflect.Type) {
	if t.Kind() != reflect.Struct {
		return // a map or a RawValue: everything fits
	}
	have := fields(t)
	properties, _ := def["properties"].(object)
	required, _ := def["required"].([]any)
	for name, p := range properties {
		f, ok := have[name]
		if !ok {
			if _, explained := oldOnly[name]; !explained || o.newest {
				o.Errorf("%s.%s is not in %v", path, name, t)
			}
			continue
		}
		o.used[t.Name()+"."+name] = true
		o.compareField(path+"."+name, p.(object), f)
		if o.newest && slices.Contains(required, any(name)) {
			o.required(path, name, t, f)
		}
	}
	if !o.newest || slices.Contains(unions, t) {
		return
	}
	for name := range have {
		if properties[name] == nil && goOnly[t.Name()+"."+name] == "" {
			o.Errorf("%v has %q, which %s has not", t, name, path)
		}
	}
}

// required checks that what must be there is not left out when it is zero.
func (o *oracle) required(path, name string, t reflect.Type, f reflect.StructField) {
	if slices.Contains([]string{"_meta", "resultType", "ttlMs", "cacheScope"}, name) {
		return // not in older revisions; the core sets them
	}
	if t == reflect.TypeFor[mcp.RequestMeta]() || t == reflect.TypeFor[mcp.ResultMeta]() || slices.Contains(unions, t) {
		return // not in older revisions, or not in all of the union
	}
	if name == "requestId" {
		return // 2025-11-25 lets it be absent
	}
	if strings.Contains(f.Tag.Get("json"), "omitzero") {
		o.Errorf("%s.%s is required and yet left out when it is zero", path, name)
	}
}

func (o *oracle) compareField(path string, p object, f reflect.StructField) {
	t := base(f.Type)
	if ref, ok := p["$ref"].(string); ok {
		name := ref[strings.LastIndex(ref, "/")+1:]
		if want, ok := types[name]; ok && t.Kind() == reflect.Struct && want != t && name != "NotificationMetaObject" {
			o.Errorf("%s is %v, not %v", path, t, want)
		}
		return
	}
	if items, ok := p["items"].(object); ok {
		if f.Type.Kind() != reflect.Slice && t.Kind() != reflect.Struct {
			o.Errorf("%s is an array, not %v", path, f.Type)
			return
		}
		o.compareField(path+"[]", items, reflect.StructField{Type: t})
		return
	}
	if p["properties"] != nil {
		o.compare(path, p, t)
		return
	}
	if !fits(p["type"], t) {
		o.Errorf("%s is %v, not %v", path, p["type"], t)
	}
}

// fits says whether a Go type can hold what the schema says. Types that decode
// themselves hold what they say, which the examples prove.
func fits(want any, t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ UnmarshalJSON([]byte) error }]()) ||
		reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()) {
		return true
	}
	switch want {
	case "string":
		return t.Kind() == reflect.String || t == reflect.TypeFor[[]byte]()
	case "boolean":
		return t.Kind() == reflect.Bool
	case "integer":
		// Older schemas say integer where the protocol says number.
		return t.Kind() == reflect.Int64 || t.Kind() == reflect.Float64
	case "number":
		return t.Kind() == reflect.Float64
	case "object":
		return t.Kind() == reflect.Map || t.Kind() == reflect.Struct
	}
	return want == nil
}

// Every object type of every revision has a Go type with the same members: in
// the newest revision exactly the same, in older ones at least theirs.
func TestTypesFollowSchemas(t *testing.T) {
	used := map[string]bool{}
	for _, version := range revisions {
		t.Run(version, func(t *testing.T) {
			defs := definitions(t, version)
			all := maps.Clone(types)
			maps.Copy(all, paramsDefs(t, defs))
			o := &oracle{T: t, newest: version == newest, used: used}
			for name, def := range defs {
				def := def.(object)
				if def["type"] != "object" || property(def, "method")["const"] != nil ||
					strings.HasSuffix(name, "ResultResponse") || noType[name] != "" {
					continue
				}
				goType, ok := all[name]
				if !ok {
					t.Errorf("object type %s has no Go type and no reason", name)
					continue
				}
				if slices.Contains(mixins, name) {
					o := &oracle{T: t, used: used}
					o.compare(name, def, goType)
					continue
				}
				o.compare(name, def, goType)
			}
		})
	}
	if len(used) == 0 {
		t.Skip("PARLEY_SPEC_DIR is not set")
	}
	for _, union := range unions {
		for name := range fields(union) {
			if !used[union.Name()+"."+name] {
				t.Errorf("%v has %q, which no revision has", union, name)
			}
		}
	}
}

// Proves: MSG-2 (the codes of the protocol and the data of its errors).
func TestErrorData(t *testing.T) {
	for _, test := range []struct {
		version, def string
		code         int64
		data         reflect.Type
	}{
		{newest, "HeaderMismatchError", mcp.CodeHeaderMismatch, nil},
		{newest, "MissingRequiredClientCapabilityError", mcp.CodeMissingClientCapability, reflect.TypeFor[mcp.MissingCapabilityData]()},
		{newest, "UnsupportedProtocolVersionError", mcp.CodeUnsupportedVersion, reflect.TypeFor[mcp.UnsupportedVersionData]()},
		{newest, "ParseError", mcp.CodeParseError, nil},
		{newest, "InvalidRequestError", mcp.CodeInvalidRequest, nil},
		{newest, "MethodNotFoundError", mcp.CodeMethodNotFound, nil},
		{newest, "InvalidParamsError", mcp.CodeInvalidParams, nil},
		{newest, "InternalError", mcp.CodeInternalError, nil},
		{"2025-11-25", "URLElicitationRequiredError", mcp.CodeURLElicitationRequired, reflect.TypeFor[mcp.URLElicitationRequiredData]()},
	} {
		def := definitions(t, test.version)[test.def].(object)
		code, data := property(def, "code")["const"], object(nil)
		if inner := property(def, "error"); inner != nil {
			parts := inner["allOf"].([]any)
			code = property(parts[1].(object), "code")["const"]
			data = property(parts[1].(object), "data")
		}
		if code != float64(test.code) {
			t.Errorf("%s: code %v, want %d", test.def, code, test.code)
		}
		if test.data != nil {
			(&oracle{T: t, newest: true, used: map[string]bool{}}).compare(test.def, data, test.data)
		}
	}
}

// Proves: MSG-5 (one table of methods): it has every method of every revision
// and no other, sent by the right side.
func TestMethodsFollowSchemas(t *testing.T) {
	sides := map[string]mcp.Side{}
	notifications := map[string]bool{}
	for _, version := range revisions {
		defs := definitions(t, version)
		methodOf := func(ref any) string {
			name := ref.(object)["$ref"].(string)
			def := defs[name[strings.LastIndex(name, "/")+1:]].(object)
			return property(def, "method")["const"].(string)
		}
		for union, side := range map[string]mcp.Side{
			"ClientRequest": mcp.FromClient, "ClientNotification": mcp.FromClient,
			"ServerRequest": mcp.FromServer, "ServerNotification": mcp.FromServer, "InputRequest": mcp.FromServer,
		} {
			def, ok := defs[union].(object)
			if !ok {
				continue
			}
			if one, ok := property(def, "method")["const"].(string); ok {
				sides[one] |= side
				continue
			}
			for _, ref := range def["anyOf"].([]any) {
				method := methodOf(ref)
				sides[method] |= side
				notifications[method] = strings.HasSuffix(union, "Notification")
			}
		}
	}
	for method, side := range sides {
		if strings.Contains(method, "tasks/") {
			continue // core tasks were an experiment
		}
		row, ok := mcp.Lookup(method)
		if !ok {
			t.Errorf("%s is missing", method)
			continue
		}
		if row.From != side {
			t.Errorf("%s is sent by %d, want %d", method, row.From, side)
		}
		if row.Notification != notifications[method] {
			t.Errorf("%s: notification is %t", method, row.Notification)
		}
	}
	for _, row := range mcp.Methods {
		if sides[row.Name] == 0 {
			t.Errorf("%s is in no revision", row.Name)
		}
	}
}
