package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

type words struct {
	Text string `json:"text" minlen:"1"`
}

// shout is a server whose only tool is called the same everywhere.
func shout(name string) *server.Server {
	s := server.New(name, "1.0.0", nil)
	s.Add(server.Tool("say", "Says it as "+name+".", func(_ context.Context, in words) (string, error) {
		return name + ": " + in.Text, nil
	}))
	return s
}

// TestMain is a server on pipes when the test starts it with an argument.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "pipe" {
		if err := stdio.Serve(context.Background(), shout("pipe")); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func listen(t *testing.T, h interface {
	http.Handler
	Shutdown(ctx context.Context) error
},
) string {
	t.Helper()
	ts := httptest.NewServer(h)
	t.Cleanup(func() {
		if err := h.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		ts.Close()
	})
	return ts.URL
}

// three are servers over a pipe, over HTTP, and over the transport of the first
// revision, with a tool of the same name each.
func three(t *testing.T) []string {
	t.Helper()
	return []string{
		"pipe=" + os.Args[0] + " pipe",
		"web=" + listen(t, streamable.NewHandler(shout("web"), nil)) + "/mcp",
		"old=" + listen(t, sse.NewHandler(shout("old"), nil)) + "/sse",
	}
}

func output(t *testing.T, provider, call, with string, servers []string) string {
	t.Helper()
	var b strings.Builder
	if err := run(t.Context(), &b, provider, call, with, servers); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestThreeTransports(t *testing.T) {
	servers := three(t)
	want := "old__say  Says it as old.\npipe__say  Says it as pipe.\nweb__say  Says it as web.\n"
	if got := output(t, "", "", "", servers); got != want {
		t.Errorf("%s", got)
	}
	for _, name := range []string{"pipe", "web", "old"} {
		if got := output(t, "", name+"__say", `{"text":"hi"}`, servers); got != name+": hi\n" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// What is wrong with a call, or with one server, is said.
func TestFailures(t *testing.T) {
	servers := three(t)
	for _, test := range []struct{ call, with, want string }{
		{"web__say", `{}`, `member "text" is required`},
		{"web__sing", `{}`, `no tool "web__sing"`},
	} {
		if err := run(t.Context(), &strings.Builder{}, "", test.call, test.with, servers); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.call, err, test.want)
		}
	}
	servers[0] = "pipe=/nothing/here"
	if got := output(t, "", "web__say", `{"text":"hi"}`, servers); got != "web: hi\n" {
		t.Errorf("beside a server that does not start: %q", got)
	}
}

func TestProviders(t *testing.T) {
	const schema = `{"type":"object","properties":{"text":{"type":"string","minLength":1}},"required":["text"],"additionalProperties":false}`
	servers := []string{"a=" + os.Args[0] + " pipe"}
	for provider, want := range map[string]string{
		"anthropic": `[{"name":"a__say","description":"Says it as pipe.","input_schema":` + schema + `}]`,
		"openai":    `[{"type":"function","function":{"name":"a__say","description":"Says it as pipe.","parameters":` + schema + `}}]`,
		"gemini":    `[{"functionDeclarations":[{"name":"a__say","description":"Says it as pipe.","parametersJsonSchema":` + schema + `}]}]`,
	} {
		got := output(t, provider, "", "", servers)
		if canonical(t, got) != canonical(t, want) {
			t.Errorf("%s:\n%s\nwant\n%s", provider, got, want)
		}
	}
}

// The result of a call, as each provider takes it: what it cannot take is told
// in words.
func TestResults(t *testing.T) {
	picture := mcp.Image([]byte("png"), "image/png")
	mixed := &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("look <here>"), picture, mcp.Audio([]byte("mp3"), "audio/mp3"), mcp.Image([]byte("tif"), "image/tiff")}}
	failed := &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("out of paper")}, IsError: true}
	bare := &mcp.CallToolResult{StructuredContent: mcp.RawValue(`{"n":1}`)}
	const words = `"look <here>\n[audio, audio/mp3, 3 bytes]"`
	for _, test := range []struct {
		provider string
		result   *mcp.CallToolResult
		want     string
	}{
		{"anthropic", mixed, `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"id","is_error":false,"content":[{"type":"text","text":` + words +
			`},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"cG5n"}}]}]}]`},
		{"anthropic", failed, `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"id","is_error":true,"content":[{"type":"text","text":"out of paper"}]}]}]`},
		{"openai", mixed, `[{"role":"tool","tool_call_id":"id","content":` + words + `},{"role":"user","content":[{"type":"text","text":"Images of the tool draw:"},` +
			`{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]}]`},
		{"openai", failed, `[{"role":"tool","tool_call_id":"id","content":"out of paper"}]`},
		{"openai", bare, `[{"role":"tool","tool_call_id":"id","content":"{\"n\":1}"}]`},
		{"gemini", mixed, `[{"role":"user","parts":[{"functionResponse":{"name":"draw","response":{"output":` + words + `}}},{"inlineData":{"mimeType":"image/png","data":"cG5n"}}]}]`},
		{"gemini", failed, `[{"role":"user","parts":[{"functionResponse":{"name":"draw","response":{"error":"out of paper"}}}]}]`},
	} {
		got, err := json.Marshal(results[test.provider]("id", "draw", test.result))
		if err != nil {
			t.Fatal(err)
		}
		if canonical(t, string(got)) != canonical(t, test.want) {
			t.Errorf("%s:\n%s\nwant\n%s", test.provider, got, test.want)
		}
	}
	long := text(&mcp.CallToolResult{Content: mcp.Contents{mcp.Text(strings.Repeat("é", maxText))}})
	if len(long) > maxText+20 || !strings.HasSuffix(long, "é… (cut off)") {
		t.Errorf("%d bytes of a long text are kept", len(long))
	}
	servers := []string{"a=" + os.Args[0] + " pipe"}
	if got, want := output(t, "openai", "a__say", `{"text":"hi"}`, servers), `[{"role":"tool","tool_call_id":"call_1","content":"pipe: hi"}]`; canonical(t, got) != canonical(t, want) {
		t.Errorf("a call: %s, want %s", got, want)
	}
}

// canonical is JSON with its members in order.
func canonical(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
