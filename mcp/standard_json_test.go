package mcp_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// standardTypes are the types of the package that are JSON, each with its zero
// value. What of them has Go's own encoding anyway is here too.
var standardTypes = []any{
	mcp.AcknowledgedParams{},
	mcp.Annotations{},
	mcp.AudioContent{},
	mcp.Cacheable{},
	mcp.CallToolParams{},
	mcp.CallToolResult{},
	mcp.CancelledParams{},
	mcp.ClientCapabilities{},
	mcp.CompleteParams{},
	mcp.CompleteResult{},
	mcp.Completion{},
	mcp.CompletionArgument{},
	mcp.CompletionContext{},
	mcp.CompletionRef{},
	mcp.Contents{},
	mcp.CreateMessageParams{},
	mcp.CreateMessageResult{},
	mcp.DiscoverParams{},
	mcp.DiscoverResult{},
	mcp.ElicitParams{},
	mcp.ElicitResult{},
	mcp.ElicitSchema{},
	mcp.ElicitationCapability{},
	mcp.ElicitationCompleteParams{},
	mcp.EmbeddedResource{},
	mcp.EmptyParams{},
	mcp.EmptyResult{},
	mcp.EnumItems{},
	mcp.EnumOption{},
	mcp.GetPromptParams{},
	mcp.GetPromptResult{},
	mcp.Icon{},
	mcp.ImageContent{},
	mcp.Implementation{},
	mcp.InitializeParams{},
	mcp.InitializeResult{},
	mcp.InputBase{},
	mcp.InputRequest{},
	mcp.InputRequests{},
	mcp.InputRequiredResult{},
	mcp.InputResponses{},
	mcp.InsufficientScopeData{},
	mcp.ListParams{},
	mcp.ListPromptsResult{},
	mcp.ListResourceTemplatesResult{},
	mcp.ListResourcesResult{},
	mcp.ListRootsParams{},
	mcp.ListRootsResult{},
	mcp.ListToolsResult{},
	mcp.ListenParams{},
	mcp.ListenResult{},
	mcp.LogParams{},
	mcp.Meta{},
	mcp.MissingCapabilityData{},
	mcp.ModelHint{},
	mcp.ModelPreferences{},
	mcp.None{},
	mcp.NotificationBase{},
	mcp.NotificationMeta{},
	mcp.NotificationParams{},
	mcp.Page{},
	mcp.PrimitiveSchema{},
	mcp.ProgressParams{},
	mcp.Prompt{},
	mcp.PromptArgument{},
	mcp.PromptMessage{},
	mcp.PromptsCapability{},
	mcp.Properties{},
	mcp.ReadResourceParams{},
	mcp.ReadResourceResult{},
	mcp.RequestBase{},
	mcp.RequestMeta{},
	mcp.Resource{},
	mcp.ResourceContents{},
	mcp.ResourceLink{},
	mcp.ResourceNotFoundData{},
	mcp.ResourceTemplate{},
	mcp.ResourceUpdatedParams{},
	mcp.ResourcesCapability{},
	mcp.ResultBase{},
	mcp.ResultMeta{},
	mcp.RetryData{},
	mcp.Root{},
	mcp.RootsCapability{},
	mcp.SamplingCapability{},
	mcp.SamplingMessage{},
	mcp.ServerCapabilities{},
	mcp.SetLevelParams{},
	mcp.Settings{},
	mcp.SubscribeParams{},
	mcp.SubscriptionFilter{},
	mcp.TextContent{},
	mcp.Tool{},
	mcp.ToolAnnotations{},
	mcp.ToolChoice{},
	mcp.ToolResultContent{},
	mcp.ToolUseContent{},
	mcp.ToolsCapability{},
	mcp.URLElicitationRequiredData{},
	mcp.UnsubscribeParams{},
	mcp.UnsupportedVersionData{},
}

// notJSON are the types that are never encoded themselves, and why.
var notJSON = map[string]string{
	"Error":    "package server makes an error object of it",
	"Method":   "a row of the table of methods",
	"Property": "Properties encode them as members of an object",
	"With":     "package server makes a result of it",
}

// A type that is added to the package must be added to one of the lists above.
func TestStandardTypesAreAll(t *testing.T) {
	t.Parallel()
	listed := maps.Clone(notJSON)
	for _, v := range standardTypes {
		listed[reflect.TypeOf(v).Name()] = ""
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for spec := range ast.Preorder(file) {
			d, ok := spec.(*ast.TypeSpec)
			if !ok || !d.Name.IsExported() || d.Assign.IsValid() {
				continue
			}
			switch d.Type.(type) {
			case *ast.StructType, *ast.ArrayType, *ast.MapType:
			default:
				continue // names and numbers, which need nothing, and interfaces
			}
			found++
			if _, ok := listed[d.Name.Name]; !ok {
				t.Errorf("%s is missing from standardTypes", d.Name.Name)
			}
		}
	}
	if found < len(standardTypes) {
		t.Errorf("%d types found, of which %d are listed", found, len(standardTypes))
	}
}

// encoding/json writes and reads what the module's own codec does.
func TestStandardCodec(t *testing.T) {
	t.Parallel()
	for _, v := range standardTypes {
		typ := reflect.TypeOf(v)
		t.Run(typ.Name(), func(t *testing.T) {
			t.Parallel()
			if typ.Kind() != reflect.Map { // a nil map is what is absent
				sameEncoding(t, reflect.New(typ))
			}
			full := reflect.New(typ)
			fill(full.Elem(), 0)
			text := sameEncoding(t, full)
			own, standard := reflect.New(typ), reflect.New(typ)
			if err := wire.DecodeParams(text, own.Interface()); err != nil {
				t.Fatalf("own codec: %v\n%s", err, text)
			}
			if err := json.Unmarshal(text, standard.Interface()); err != nil {
				t.Fatalf("encoding/json: %v\n%s", err, text)
			}
			if !reflect.DeepEqual(own.Interface(), standard.Interface()) {
				t.Errorf("decoded %#v\nand with encoding/json %#v", own, standard)
			}
			if again := sameEncoding(t, standard); !wire.Equal(again, text) {
				t.Errorf("%s\nbecame %s", text, again)
			}
		})
	}
}

// sameEncoding encodes what p points to with both codecs: by pointer, by value,
// and within another value.
func sameEncoding(t *testing.T, p reflect.Value) []byte {
	t.Helper()
	want, err := wire.Marshal(p.Interface())
	if err != nil {
		t.Fatal(err)
	}
	for what, v := range map[string]any{"pointer": p.Interface(), "value": p.Elem().Interface()} {
		got, err := json.Marshal(v)
		if err != nil || !wire.Equal(got, want) {
			t.Errorf("%s: encoding/json wrote %s, %v\nthe wire has %s", what, got, err, want)
		}
	}
	got, err := json.Marshal([]any{p.Elem().Interface()})
	if err != nil || !wire.Equal(got, []byte("["+string(want)+"]")) {
		t.Errorf("in a list: encoding/json wrote %s, %v\nthe wire has %s", got, err, want)
	}
	return want
}

// fill sets everything in v that can be set, to what its type may hold.
func fill(v reflect.Value, depth int) {
	switch p := v.Addr().Interface().(type) {
	case *mcp.RawValue:
		*p = mcp.RawValue(`{"a":[1,"<é>"]}`)
		return
	case *mcp.ID:
		*p = mcp.StringID("seven")
		return
	case *mcp.Content:
		*p = mcp.Text("said")
		return
	case *mcp.ResourceContents:
		*p = mcp.ResourceContents{URI: "a:///b", MIMEType: "text/plain", Text: "words"}
		return
	case *mcp.CompletionRef:
		*p = mcp.CompletionRef{Type: mcp.RefPrompt, Name: "n", Title: "t"}
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("a<b>é\"")
	case reflect.Int, reflect.Int64, reflect.Uint8:
		v.Set(reflect.ValueOf(7).Convert(v.Type()))
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), depth+1)
			if name := v.Index(i); name.Kind() == reflect.Struct && name.Type() == reflect.TypeFor[mcp.Property]() {
				name.Field(0).SetString(string(rune('a' + i)))
			}
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		element := reflect.New(v.Type().Elem()).Elem()
		fill(element, depth+1)
		v.SetMapIndex(reflect.ValueOf("com.example/key").Convert(v.Type().Key()), element)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), depth+1)
			}
		}
	}
}
