package mcp_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

func marshal(t testing.TB, v any) string {
	t.Helper()
	out, err := wire.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestConstructors(t *testing.T) {
	content := []mcp.Content{
		mcp.Text("<hello>"),
		mcp.Image([]byte{1}, "image/png"),
		mcp.Audio(nil, "audio/wav"),
		mcp.Link("file:///a", "a"),
		mcp.Embed(mcp.ResourceContents{URI: "file:///b", Text: ""}),
		mcp.Embed(mcp.ResourceContents{URI: "file:///c", Blob: []byte{}}),
	}
	const want = `{"content":[{"type":"text","text":"<hello>"},` +
		`{"type":"image","data":"AQ==","mimeType":"image/png"},` +
		`{"type":"audio","data":"","mimeType":"audio/wav"},` +
		`{"type":"resource_link","uri":"file:///a","name":"a"},` +
		`{"type":"resource","resource":{"uri":"file:///b","text":""}},` +
		`{"type":"resource","resource":{"uri":"file:///c","blob":""}}]}`
	got := marshal(t, &mcp.CallToolResult{Content: content})
	if got != want {
		t.Fatalf("\n got %s\nwant %s", got, want)
	}
	var back mcp.CallToolResult
	if err := wire.DecodeParams([]byte(got), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(content, []mcp.Content(back.Content), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	text, ok := back.Content[4].(*mcp.EmbeddedResource)
	if !ok || text.Resource.Blob != nil {
		t.Errorf("empty text came back as %#v", back.Content[4])
	}
	blob, ok := back.Content[5].(*mcp.EmbeddedResource)
	if !ok || blob.Resource.Blob == nil {
		t.Errorf("an empty blob came back as %#v", back.Content[5])
	}
}

func TestContentThatIsWrong(t *testing.T) {
	for raw, want := range map[string]string{
		`{"type":"video"}`: `"video"`,
		`{"type":"tool_use","id":"1","name":"t","input":{}}`: `"tool_use"`,
		`{"text":"a"}`: "no type",
		`{"type":"image","data":"?","mimeType":"image/png"}`:             "data",
		`{"type":"image","data":"AQ==\n","mimeType":"image/png"}`:        "data",
		`{"type":"text","text":"a","Text":"b"}`:                          "Text",
		`{"type":"resource","resource":{"uri":"u"}}`:                     "neither",
		`{"type":"resource","resource":{"uri":"u","text":"","blob":""}}`: "both",
		`"text"`: "object",
		`null`:   "object",
	} {
		var contents mcp.Contents
		err := wire.DecodeParams([]byte("["+raw+"]"), &contents)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", raw, err, want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "/0") {
			t.Errorf("%s: %v does not say where", raw, err)
		}
		var message mcp.PromptMessage
		if err := wire.DecodeParams([]byte(`{"role":"user","content":`+raw+`}`), &message); err == nil {
			t.Errorf("a message took %s", raw)
		}
	}
}

// Proves: FLOW-SAMPLE (one block or several, written back as they came).
func TestSamplingContentKeepsItsForm(t *testing.T) {
	const text = `{"type":"text","text":"a"}`
	for _, raw := range []string{
		`{"role":"user","content":` + text + `}`,
		`{"role":"user","content":[` + text + `]}`,
		`{"role":"user","content":[` + text + `,` + text + `]}`,
		`{"role":"user","content":[]}`,
		`{"role":"user","content":{"type":"tool_use","id":"1","name":"t","input":{}},"_meta":{"a":1}}`,
	} {
		var message mcp.SamplingMessage
		if err := wire.DecodeParams([]byte(raw), &message); err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got := marshal(t, message); got != raw {
			t.Errorf("\n got %s\nwant %s", got, raw)
		}
	}
	var message mcp.SamplingMessage
	err := wire.DecodeParams([]byte(`{"role":"user","content":{"type":"resource_link","uri":"u","name":"n"}}`), &message)
	if err == nil || !strings.Contains(err.Error(), "resource_link") {
		t.Errorf("a resource link in sampling: %v", err)
	}
	one := &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Content: []mcp.Content{mcp.Text("a")}, Model: "m"}
	if got, want := marshal(t, one), `{"role":"assistant","content":`+text+`,"model":"m"}`; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func FuzzContents(f *testing.F) {
	f.Add([]byte(`[{"type":"text","text":"a"},{"type":"resource","resource":{"uri":"u","blob":""}}]`))
	f.Add([]byte(`[{"type":"resource_link","uri":"u","name":"n","size":1},{"type":"image","data":"AA==","mimeType":"m"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if wire.Valid(data, wire.Limits{}) != nil {
			return
		}
		var first, second mcp.Contents
		if wire.DecodeParams(data, &first) != nil {
			return
		}
		out := marshal(t, first)
		if err := wire.DecodeParams([]byte(out), &second); err != nil {
			t.Fatalf("%s was decoded and encoded to %s: %v", data, out, err)
		}
		if again := marshal(t, second); !wire.Equal([]byte(out), []byte(again)) {
			t.Fatalf("%s, then %s", out, again)
		}
	})
}

func BenchmarkDecodeCallToolParams(b *testing.B) {
	raw := []byte(`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"ExampleClient","version":"1.0.0"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}},"name":"get_weather","arguments":{"location":"New York"}}`)
	b.ReportAllocs()
	for b.Loop() {
		var p mcp.CallToolParams
		if err := wire.DecodeParams(raw, &p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeCallToolResult(b *testing.B) {
	r := &mcp.CallToolResult{Content: []mcp.Content{mcp.Text("hello")}}
	r.ResultType = mcp.ResultComplete
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.Append(buf, r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeCallToolResult(b *testing.B) {
	raw := []byte(`{"content":[{"type":"text","text":"hello"}],"structuredContent":{"a":1}}`)
	b.ReportAllocs()
	for b.Loop() {
		var r mcp.CallToolResult
		if err := wire.DecodeParams(raw, &r); err != nil {
			b.Fatal(err)
		}
	}
}
