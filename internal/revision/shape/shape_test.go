package shape_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/revision/shape"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

const (
	v2024 = "2024-11-05"
	v0326 = "2025-03-26"
	v0618 = "2025-06-18"
	v1125 = "2025-11-25"
	v2026 = "2026-07-28"
)

func facts(t testing.TB, version string) *revision.Facts {
	t.Helper()
	f, ok := revision.Lookup(version)
	if !ok {
		t.Fatalf("no revision %s", version)
	}
	return f
}

// A row of the table of translations: what becomes of a value in each revision,
// as JSON; an empty string says that it cannot be said.
type row struct {
	name   string
	method string
	result bool
	v      any
	want   map[string]string
}

func audio() *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{mcp.Audio([]byte("x"), "audio/wav")}}
}

func link() *mcp.CallToolResult {
	l := mcp.Link("file:///a.txt", "a.txt")
	l.Description, l.Icons = "notes", []mcp.Icon{{Src: "data:,"}}
	return &mcp.CallToolResult{Content: []mcp.Content{l}}
}

func elicit(schema mcp.PrimitiveSchema) *mcp.ElicitParams {
	return &mcp.ElicitParams{
		Mode: mcp.ModeForm, Message: "?",
		RequestedSchema: &mcp.ElicitSchema{
			Schema:     "https://json-schema.org/draft/2020-12/schema",
			Properties: mcp.Properties{{Name: "c", Schema: schema}},
		},
	}
}

// required makes every field of a form required.
func required(p *mcp.ElicitParams) *mcp.ElicitParams {
	for _, field := range p.RequestedSchema.Properties {
		p.RequestedSchema.Required = append(p.RequestedSchema.Required, field.Name)
	}
	return p
}

func sample(blocks ...mcp.Content) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{
		MaxTokens: 1,
		Messages:  []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: blocks, Meta: mcp.Meta{"com.example/x": mcp.RawValue("1")}}},
	}
}

func structured(value string) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		Content:           []mcp.Content{mcp.Text("text")},
		StructuredContent: mcp.RawValue(value),
	}
}

func tool(output string) *mcp.ListToolsResult {
	ttl := int64(5)
	return &mcp.ListToolsResult{
		ResultBase: mcp.ResultBase{ResultType: mcp.ResultComplete, Meta: mcp.ResultMeta{
			ServerInfo: &mcp.Implementation{Name: "s", Version: "1"},
		}},
		Cacheable: mcp.Cacheable{TTLMs: &ttl, CacheScope: mcp.CachePublic},
		Tools: []mcp.Tool{{
			Name: "t", Title: "T", Description: "d", InputSchema: mcp.RawValue(`{"type":"object"}`),
			OutputSchema: mcp.RawValue(output), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true)},
			Icons: []mcp.Icon{{Src: "data:,"}}, Meta: mcp.Meta{"com.example/x": mcp.RawValue("1")},
		}},
	}
}

// Rulings, "Translating down": every row.
var rows = []row{
	{
		"audio content", mcp.MethodToolsCall, true, audio(), map[string]string{
			v1125: `{"content":[{"type":"audio","data":"eA==","mimeType":"audio/wav"}]}`,
			v0326: `{"content":[{"type":"audio","data":"eA==","mimeType":"audio/wav"}]}`,
			v2024: `{"content":[{"type":"resource","resource":{"uri":"about:audio","mimeType":"audio/wav","blob":"eA=="}}]}`,
		},
	},
	{
		"resource link", mcp.MethodToolsCall, true, link(), map[string]string{
			v1125: `{"content":[{"type":"resource_link","uri":"file:///a.txt","name":"a.txt","description":"notes","icons":[{"src":"data:,"}]}]}`,
			v0618: `{"content":[{"type":"resource_link","uri":"file:///a.txt","name":"a.txt","description":"notes"}]}`,
			v0326: `{"content":[{"type":"text","text":"Resource a.txt <file:///a.txt>: notes"}]}`,
			v2024: `{"content":[{"type":"text","text":"Resource a.txt <file:///a.txt>: notes"}]}`,
		},
	},
	{
		"structured object", mcp.MethodToolsCall, true, structured(` {"a":1}`), map[string]string{
			v1125: `{"content":[{"type":"text","text":"text"}],"structuredContent":{"a":1}}`,
			v0618: `{"content":[{"type":"text","text":"text"}],"structuredContent":{"a":1}}`,
			v0326: `{"content":[{"type":"text","text":"text"}]}`,
			v2024: `{"content":[{"type":"text","text":"text"}]}`,
		},
	},
	{
		"structured array", mcp.MethodToolsCall, true, structured(`[1]`), map[string]string{
			v2026: `{"content":[{"type":"text","text":"text"}],"structuredContent":[1]}`,
			v1125: `{"content":[{"type":"text","text":"text"}]}`,
			v0618: `{"content":[{"type":"text","text":"text"}]}`,
		},
	},
	{
		"structured content alone", mcp.MethodToolsCall, true,
		&mcp.CallToolResult{StructuredContent: mcp.RawValue(`[1]`)},
		map[string]string{
			v1125: `{"content":[{"type":"text","text":"[1]"}]}`,
		},
	},
	{
		"tool with object output", mcp.MethodToolsList, true, tool(`{"type":"object"}`), map[string]string{
			v1125: `{"tools":[{"name":"t","title":"T","description":"d","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},
				"annotations":{"readOnlyHint":true},"icons":[{"src":"data:,"}],"_meta":{"com.example/x":1}}]}`,
			v0618: `{"tools":[{"name":"t","title":"T","description":"d","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},
				"annotations":{"readOnlyHint":true},"_meta":{"com.example/x":1}}]}`,
			v0326: `{"tools":[{"name":"t","description":"d","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`,
			v2024: `{"tools":[{"name":"t","description":"d","inputSchema":{"type":"object"}}]}`,
		},
	},
	{
		"tool with array output", mcp.MethodToolsList, true, tool(`{"type":"array"}`), map[string]string{
			v0618: `{"tools":[{"name":"t","title":"T","description":"d","inputSchema":{"type":"object"},
				"annotations":{"readOnlyHint":true},"_meta":{"com.example/x":1}}]}`,
		},
	},
	{
		"titled enum", mcp.MethodElicit, false,
		elicit(mcp.PrimitiveSchema{Type: "string", OneOf: []mcp.EnumOption{{Const: "r", Title: "Red"}}, Default: mcp.RawValue(`"r"`)}),
		map[string]string{
			v1125: `{"mode":"form","message":"?","requestedSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
				"properties":{"c":{"type":"string","oneOf":[{"const":"r","title":"Red"}],"default":"r"}}}}`,
			v0618: `{"message":"?","requestedSchema":{"type":"object","properties":{"c":{"type":"string","enum":["r"],"enumNames":["Red"]}}}}`,
			v0326: "", v2024: "",
		},
	},
	{
		"boolean default", mcp.MethodElicit, false,
		elicit(mcp.PrimitiveSchema{Type: "boolean", Default: mcp.RawValue(`true`)}),
		map[string]string{
			v0618: `{"message":"?","requestedSchema":{"type":"object","properties":{"c":{"type":"boolean","default":true}}}}`,
		},
	},
	{
		"multi-select enum", mcp.MethodElicit, false,
		elicit(mcp.PrimitiveSchema{Type: "array", Items: &mcp.EnumItems{Type: "string", Enum: []string{"a"}}}),
		map[string]string{
			v1125: `{"mode":"form","message":"?","requestedSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
				"properties":{"c":{"type":"array","items":{"type":"string","enum":["a"]}}}}}`,
			v0618: `{"message":"?","requestedSchema":{"type":"object","properties":{}}}`, v0326: "", v2024: "",
		},
	},
	{
		"required multi-select enum", mcp.MethodElicit, false,
		required(elicit(mcp.PrimitiveSchema{Type: "array", Items: &mcp.EnumItems{Type: "string", Enum: []string{"a"}}})),
		map[string]string{
			v0618: "", v0326: "", v2024: "",
		},
	},
	{
		"URL elicitation", mcp.MethodElicit, false,
		&mcp.ElicitParams{Mode: mcp.ModeURL, Message: "?", URL: "https://e.test", ElicitationID: "1"},
		map[string]string{
			v1125: `{"mode":"url","message":"?","url":"https://e.test","elicitationId":"1"}`,
			v0618: "", v0326: "",
		},
	},
	{
		"sampling blocks of text", mcp.MethodCreateMessage, false, sample(mcp.Text("a"), mcp.Text("b")), map[string]string{
			v1125: `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"_meta":{"com.example/x":1}}],"maxTokens":1}`,
			v0618: `{"messages":[{"role":"user","content":{"type":"text","text":"a\nb"}}],"maxTokens":1}`,
			v2024: `{"messages":[{"role":"user","content":{"type":"text","text":"a\nb"}}],"maxTokens":1}`,
		},
	},
	{
		"sampling blocks of several kinds", mcp.MethodCreateMessage, false, sample(mcp.Text("a"), mcp.Image(nil, "image/png")),
		map[string]string{v0618: "", v0326: "", v2024: ""},
	},
	{
		"sampling with tool use", mcp.MethodCreateMessage, false, sample(&mcp.ToolUseContent{ID: "1", Name: "t", Input: mcp.RawValue("{}")}),
		map[string]string{v0618: "", v0326: "", v2024: ""},
	},
	{
		"sampling with tools", mcp.MethodCreateMessage, false,
		&mcp.CreateMessageParams{Messages: []mcp.SamplingMessage{}, Tools: []mcp.Tool{{Name: "t", InputSchema: mcp.RawValue(`{"type":"object"}`)}}},
		map[string]string{
			v1125: `{"messages":[],"maxTokens":0,"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`,
			v0618: "", v2024: "",
		},
	},
	{
		"sampling with audio", mcp.MethodCreateMessage, false, sample(mcp.Audio(nil, "audio/wav")), map[string]string{
			v0326: `{"messages":[{"role":"user","content":{"type":"audio","data":"","mimeType":"audio/wav"}}],"maxTokens":1}`,
			v2024: "",
		},
	},
	{
		"progress", mcp.NotifyProgress, false,
		&mcp.ProgressParams{ProgressToken: mcp.IntID(1), Progress: 1, Message: "m"},
		map[string]string{
			v0326: `{"progressToken":1,"progress":1,"message":"m"}`,
			v2024: `{"progressToken":1,"progress":1}`,
		},
	},
	{
		"completion", mcp.MethodComplete, false,
		&mcp.CompleteParams{
			Ref:      mcp.CompletionRef{Type: mcp.RefPrompt, Name: "p", Title: "P"},
			Argument: mcp.CompletionArgument{Name: "a", Value: "v"},
			Context:  &mcp.CompletionContext{Arguments: map[string]string{"b": "w"}},
		},
		map[string]string{
			v0618: `{"ref":{"type":"ref/prompt","name":"p","title":"P"},"argument":{"name":"a","value":"v"},"context":{"arguments":{"b":"w"}}}`,
			v0326: `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"}}`,
		},
	},
	{
		// Ruling 5: url alone is no elicitation where only forms exist.
		"capabilities", mcp.MethodInitialize, false,
		&mcp.InitializeParams{Capabilities: mcp.ClientCapabilities{
			Elicitation: &mcp.ElicitationCapability{URL: mcp.Settings{}},
			Sampling:    &mcp.SamplingCapability{Tools: mcp.Settings{}},
		}},
		map[string]string{
			v1125: `{"protocolVersion":"","clientInfo":{"name":"","version":""},"capabilities":{"elicitation":{"url":{}},"sampling":{"tools":{}}}}`,
			v0618: `{"protocolVersion":"","clientInfo":{"name":"","version":""},"capabilities":{"sampling":{}}}`,
		},
	},
	{
		"server", mcp.MethodInitialize, true,
		&mcp.InitializeResult{
			Capabilities: mcp.ServerCapabilities{Completions: mcp.Settings{}},
			ServerInfo:   mcp.Implementation{Name: "s", Title: "S", Version: "1", Description: "d", WebsiteURL: "https://e.test"},
		},
		map[string]string{
			v1125: `{"protocolVersion":"","serverInfo":{"name":"s","title":"S","version":"1","description":"d","websiteUrl":"https://e.test"},"capabilities":{"completions":{}}}`,
			v0618: `{"protocolVersion":"","serverInfo":{"name":"s","title":"S","version":"1"},"capabilities":{"completions":{}}}`,
			v0326: `{"protocolVersion":"","serverInfo":{"name":"s","version":"1"},"capabilities":{"completions":{}}}`,
			v2024: `{"protocolVersion":"","serverInfo":{"name":"s","version":"1"},"capabilities":{}}`,
		},
	},
	{
		"our metadata of a request", mcp.MethodToolsCall, false,
		&mcp.CallToolParams{
			RequestBase: mcp.RequestBase{Meta: mcp.RequestMeta{
				ProgressToken: mcp.IntID(7), ProtocolVersion: "v", ClientInfo: &mcp.Implementation{},
				ClientCapabilities: &mcp.ClientCapabilities{}, LogLevel: mcp.LogInfo, TraceParent: "t",
			}},
			InputBase: mcp.InputBase{RequestState: new(""), InputResponses: mcp.InputResponses{}},
			Name:      "t",
		},
		map[string]string{
			v1125: `{"_meta":{"progressToken":7,"traceparent":"t"},"name":"t"}`,
			v2024: `{"_meta":{"progressToken":7,"traceparent":"t"},"name":"t"}`,
		},
	},
	{
		"our metadata of a notification", mcp.NotifyResourcesUpdated, false,
		&mcp.ResourceUpdatedParams{
			NotificationBase: mcp.NotificationBase{Meta: mcp.NotificationMeta{SubscriptionID: mcp.IntID(1)}}, URI: "u",
		},
		map[string]string{v1125: `{"uri":"u"}`},
	},
	{
		"a question for an answer", mcp.MethodToolsCall, true, &mcp.InputRequiredResult{},
		map[string]string{v1125: "", v2024: ""},
	},
	{
		"roots", mcp.MethodRootsList, true,
		&mcp.ListRootsResult{Roots: []mcp.Root{{URI: "file:///", Meta: mcp.Meta{}}}},
		map[string]string{
			v0618: `{"roots":[{"uri":"file:///","_meta":{}}]}`,
			v0326: `{"roots":[{"uri":"file:///"}]}`,
		},
	},
	{
		"the list in an answer to a form that asks for one", mcp.MethodElicit, true,
		&mcp.ElicitResult{Action: mcp.ElicitAccept, Content: map[string]mcp.RawValue{"a": mcp.RawValue(`["x"]`)}},
		map[string]string{v1125: `{"action":"accept","content":{"a":["x"]}}`, v0618: `{"action":"accept","content":{"a":["x"]}}`},
	},
}

func TestTranslatingDown(t *testing.T) {
	for _, row := range rows {
		for version, want := range row.want {
			t.Run(row.name+"/"+version, func(t *testing.T) {
				before := encode(t, row.v)
				got, err := down(shape.For(facts(t, version)), message{method: row.method, result: row.result}, row.v)
				if after := encode(t, row.v); !wire.Equal(before, after) {
					t.Errorf("the value was written to: %s", after)
				}
				if want == "" {
					cannot, ok := errors.AsType[*shape.UnsupportedError](err)
					if !ok || cannot.Version != version || cannot.Error() == "" {
						t.Fatalf("got %v, %v, want CannotSay", got, err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if out := encode(t, got); !wire.Equal(out, mcp.RawValue(want)) {
					t.Errorf("\n got %s\nwant %s", out, want)
				}
			})
		}
	}
}

// What differs in nothing is returned itself, and costs nothing in the newest
// revision and next to nothing in others.
func TestDownWithoutDifference(t *testing.T) {
	modern := &mcp.CallToolResult{
		ResultBase: mcp.ResultBase{ResultType: mcp.ResultComplete},
		Content:    []mcp.Content{mcp.Text("a"), mcp.Audio(nil, "audio/wav")},
	}
	plain := &mcp.CallToolResult{Content: modern.Content, StructuredContent: mcp.RawValue(`{}`)}
	for _, test := range []struct {
		version string
		v       *mcp.CallToolResult
		allocs  float64
	}{{v2026, modern, 0}, {v1125, plain, 1}, {v0618, plain, 3}} {
		s := shape.For(facts(t, test.version))
		got, err := s.DownResult(mcp.MethodToolsCall, test.v)
		if err != nil || got != any(test.v) {
			t.Errorf("%s: got %v, %v, want the value itself", test.version, got, err)
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = s.DownResult(mcp.MethodToolsCall, test.v) }); n > test.allocs {
			t.Errorf("%s: %v allocations, want at most %v", test.version, n, test.allocs)
		}
	}
}

// What is no value of the method's row goes through untouched: methods of
// extensions, raw JSON, nil.
func TestDownOfOtherValues(t *testing.T) {
	s := shape.For(facts(t, v2024))
	raw := wire.RawValue(`{"title":"x"}`)
	for _, v := range []any{nil, raw, "x"} {
		for _, method := range []string{mcp.MethodToolsList, "x/y"} {
			got, err := s.DownResult(method, v)
			if err != nil || cmp.Diff(v, got) != "" {
				t.Errorf("DownResult(%q, %v) = %v, %v", method, v, got, err)
			}
			if got, err = s.DownParams(method, v); err != nil || cmp.Diff(v, got) != "" {
				t.Errorf("DownParams(%q, %v) = %v, %v", method, v, got, err)
			}
		}
	}
}

// Ruling 8: twins of known members are refused in typed params, but not in _meta
// and not in arguments.
func TestUpRefusesTwins(t *testing.T) {
	s := shape.For(facts(t, v2026))
	for _, test := range []struct {
		raw string
		ok  bool
	}{
		{`{"name":"t","arguments":{"Name":1},"_meta":{"ProgressToken":1,"io.modelcontextprotocol/clientCapabilities":{"Roots":1}}}`, true},
		{`{"name":"t","other":1}`, true},
		{`{"name":"t","Name":"u"}`, false},
		{`{"name":"t","REQUESTSTATE":"u"}`, false},
		{`{"name":1}`, false},
	} {
		var p mcp.CallToolParams
		if err := s.UpParams(mcp.MethodToolsCall, mcp.RawValue(test.raw), &p); (err == nil) != test.ok {
			t.Errorf("UpParams(%s): %v", test.raw, err)
		}
	}
	var p mcp.ListParams
	if err := s.UpParams(mcp.MethodToolsList, nil, &p); err != nil {
		t.Errorf("UpParams without params: %v", err)
	}
}

// The numbers in the table of revisions are those of package mcp. Ruling 12,
// ruling 26.
func TestCodesAgree(t *testing.T) {
	modern, old := revision.Newest(), revision.NewestHandshake()
	for code, status := range map[int64]int{
		mcp.CodeParseError: 400, mcp.CodeInvalidRequest: 400, mcp.CodeMethodNotFound: 404,
		mcp.CodeHeaderMismatch: 400, mcp.CodeMissingClientCapability: 400, mcp.CodeUnsupportedVersion: 400,
		mcp.CodeRateLimited: 429, mcp.CodeTooManyInFlight: 429, mcp.CodeShuttingDown: 503,
		mcp.CodeTimeout: 200, mcp.CodeTooLarge: 200, mcp.CodeInvalidParams: 200, mcp.CodeInternalError: 200,
		mcp.CodeInsufficientScope: 403,
	} {
		if got := modern.HTTPStatus(code); got != status {
			t.Errorf("HTTPStatus(%d) = %d, want %d", code, got, status)
		}
	}
	if got := old.HTTPStatus(mcp.CodeInsufficientScope); got != 403 {
		t.Errorf("HTTPStatus of insufficient scope = %d in %s, want 403", got, old.Version)
	}
	if modern.NotFoundCode != mcp.CodeInvalidParams || old.NotFoundCode != mcp.CodeResourceNotFoundLegacy {
		t.Errorf("not found is %d and %d", modern.NotFoundCode, old.NotFoundCode)
	}
	for i := range mcp.Methods {
		known := false
		for _, f := range revision.All() {
			known = known || f.Has(mcp.Methods[i].Name)
		}
		if !known {
			t.Errorf("no revision has %s", mcp.Methods[i].Name)
		}
	}
}

func BenchmarkDownResult(b *testing.B) {
	r := &mcp.CallToolResult{Content: []mcp.Content{mcp.Text("hello")}}
	for _, version := range []string{v2026, v1125, v2024} {
		b.Run(version, func(b *testing.B) {
			s := shape.For(facts(b, version))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.DownResult(mcp.MethodToolsCall, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A field that must be filled and cannot be said is named, with the revision
// and what would fit. Ruling 34.
func TestUnfitField(t *testing.T) {
	f, _ := revision.Lookup(v0618)
	p := required(elicit(mcp.PrimitiveSchema{Type: "array", Items: &mcp.EnumItems{Type: "string", Enum: []string{"a"}}}))
	_, err := shape.For(f).DownParams(mcp.MethodElicit, p)
	if err == nil || !strings.Contains(err.Error(), `multiple choice "c"`) || !strings.Contains(err.Error(), "a choice of one would fit") || !strings.Contains(err.Error(), v0618) {
		t.Errorf("got %v", err)
	}
}
