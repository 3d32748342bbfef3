package server_test

import (
	"context"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// latin is a text as a file in Latin-1 gives it.
const latin = "caf\xe9"

// What a text says that is not valid UTF-8 is answered with U+FFFD in the place
// of the bytes that are not, in every revision, and the log says so.
func TestTextIsNotUTF8(t *testing.T) {
	shared := mcp.Text(latin)
	text := new(logtest.Log)
	s := newServer(&server.Options{Logger: text.Logger()},
		server.Tool("text", "", func(context.Context, none) (string, error) { return latin, nil }),
		server.Tool("content", "", func(context.Context, none) ([]mcp.Content, error) {
			return []mcp.Content{mcp.Image([]byte(latin), "image/png"), shared, mcp.Embed(mcp.ResourceContents{URI: "a:///b", Text: latin})}, nil
		}),
		server.Tool("error", "", func(context.Context, none) (string, error) { return "", mcp.Errorf("no file %s", latin) }),
		server.Tool("coded", "", func(context.Context, none) (string, error) { return "", mcp.NewError(7, "no file %s", latin) }),
		server.Tool("progress", "", func(ctx context.Context, _ none) (string, error) { return "", server.Progress(ctx, 1, 2, latin) }),
		server.Resource("a:///text", "n", func(context.Context) (string, error) { return latin, nil }),
		server.Resource("a:///bytes", "n", func(context.Context) ([]byte, error) { return []byte(latin), nil }),
		server.Resource("a:///error", "n", func(context.Context) (string, error) { return "", mcp.Errorf("no file %s", latin) }),
		server.Prompt("prompt", "", func(context.Context, none) (string, error) { return latin, nil }),
	)
	each(t, versions, func(t *testing.T, v string) {
		l := join(t, s, v)
		for method, want := range map[string]string{
			"text":    `"text":"caf` + "\uFFFD" + `"`,
			"content": `"data":"Y2Fm6Q=="`,
			"error":   "no file caf\uFFFD",
			"coded":   "no file caf\uFFFD",
		} {
			if m := l.tool(method, emptyBody); !strings.Contains(m.raw, want) {
				t.Errorf("%s: %s", method, m.raw)
			}
		}
		if m := l.tool("content", emptyBody); strings.Count(m.raw, "caf\uFFFD") != 2 {
			t.Errorf("content: %s", m.raw)
		}
		for uri, want := range map[string]string{
			"a:///text":  `"text":"caf` + "\uFFFD" + `"`,
			"a:///bytes": `"blob":"Y2Fm6Q=="`,
			"a:///error": "no file caf\uFFFD",
		} {
			if m := l.call("resources/read", `{"uri":"`+uri+`"}`); !strings.Contains(m.raw, want) {
				t.Errorf("%s: %s", uri, m.raw)
			}
		}
		if m := l.call("prompts/get", `{"name":"prompt"}`); !strings.Contains(m.raw, "caf\uFFFD") {
			t.Errorf("prompt: %s", m.raw)
		}
		l.meta = `"progressToken":1`
		if l.text(l.tool("progress", emptyBody)); len(l.notes) == 0 || v != v2024 && !strings.Contains(l.notes[len(l.notes)-1].raw, "caf\uFFFD") {
			t.Errorf("progress: %v", l.notes)
		}
	})
	if shared.Text != latin {
		t.Error("what the author shares between calls was changed")
	}
	if !strings.Contains(text.String(), "WARN") || !strings.Contains(text.String(), "not valid UTF-8") || !strings.Contains(text.String(), "mcp.target=text") {
		t.Errorf("the log has %s", text)
	}
}

// A structured result is never changed: the model reads which member it is.
func TestStructuredIsNotUTF8(t *testing.T) {
	type inner struct {
		Name string `json:"name"`
	}
	type out struct {
		List []inner `json:"list"`
	}
	text := new(logtest.Log)
	s := newServer(&server.Options{Logger: text.Logger()},
		server.Tool("typed", "", func(context.Context, none) (out, error) { return out{[]inner{{"a"}, {latin}}}, nil }),
		server.Tool("with", "", func(context.Context, none) (mcp.With[out], error) {
			return mcp.With[out]{Value: out{[]inner{{"a"}, {latin}}}, Content: []mcp.Content{mcp.Text("x")}}, nil
		}),
		server.Tool("raw", "", func(context.Context, none) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{StructuredContent: mcp.RawValue(`{"a":"` + latin + `"}`)}, nil
		}),
	)
	each(t, bothEras, func(t *testing.T, v string) {
		l := join(t, s, v)
		for name, want := range map[string]string{"typed": "/list/1/name: the text is not valid UTF-8", "with": "/list/1/name: the text is not valid UTF-8", "raw": "/structuredContent: the text is not valid UTF-8"} {
			if got := l.isError(l.tool(name, emptyBody)); !strings.Contains(got, want) {
				t.Errorf("%s: %s", name, got)
			}
		}
	})
	if strings.Count(text.String(), "not valid UTF-8") < 6 {
		t.Errorf("the log has %s", text)
	}
}
