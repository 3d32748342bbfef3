package host_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
)

// An oddResult is a result with members of the wrong kind.
type oddResult struct {
	mcp.ResultBase
	Tools   []any `json:"tools,omitzero"`
	Content []any `json:"content,omitzero"`
}

// The person is told of each wrong part of answers once, of what is new and not again of what was told.
func TestWrongPartsAreTold(t *testing.T) {
	s := serverOf(t, rawTool("get", func(context.Context, mcp.RawValue) (*mcp.CallToolResult, error) { return nil, nil }))
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			switch c.Method() {
			case mcp.MethodToolsList:
				return &oddResult{Tools: []any{5, map[string]any{"name": "get", "title": 7, "inputSchema": map[string]any{"type": "object"}}}}, nil
			case mcp.MethodToolsCall:
				return &oddResult{Content: []any{map[string]any{"type": "hologram"}}}, nil
			}
			return next(c)
		}
	})
	h := newHost(t, &host.Options{Policy: allowing(t, "*")}, map[string]transport.Handler{"one": s})
	session := begin(t, h, &scripted{turns: []turn{use("one__get", "{}"), use("one__get", "{}")}})
	if _, _, err := session.Ask(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, n := range bodies[*host.NoticeRecord](session) {
		told = append(told, n.Text)
	}
	if len(told) != 2 || !strings.Contains(told[0], "1 of 2 tools is left out (/tools/0: ") || !strings.Contains(told[0], `tools/list "get": /tools/1/title: `) ||
		!strings.Contains(told[1], `a part of its answers is wrong and was left out or replaced: tools/call "get": /content/0: `) {
		t.Errorf("told %q", told)
	}
	if status := h.Status(); len(status) != 1 || len(status[0].Problems) != 3 {
		t.Errorf("%+v", status)
	}
}

// A notice about a part that is new counts all items, and does not name what moved in its list.
func TestNewWrongPartsAreToldWithAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serverOf(t, rawTool("get", func(context.Context, mcp.RawValue) (*mcp.CallToolResult, error) { return nil, nil }))
		tools := []any{map[string]any{"name": "get", "title": 7, "inputSchema": map[string]any{"type": "object"}}, 5}
		s.Use(func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				if c.Method() == mcp.MethodToolsList {
					return &oddResult{Tools: tools}, nil
				}
				return next(c)
			}
		})
		h := newHost(t, &host.Options{Policy: allowing(t, "*")}, map[string]transport.Handler{"one": s})
		session := begin(t, h, &scripted{})
		ask(t, session)
		tools = append([]any{map[string]any{"name": "first", "inputSchema": map[string]any{"type": "object"}}}, tools[0], 6)
		s.Add(echo("touch", new(int))) // a notice that the list changed
		time.Sleep(time.Minute)        // of fake time: the host hears of it
		ask(t, session)
		var told []string
		for _, n := range bodies[*host.NoticeRecord](session) {
			told = append(told, n.Text)
		}
		const left, title = "1 of 2 tools is left out (/tools/1: ", "/tools/0/title"
		if len(told) != 2 || !strings.Contains(told[0], left) || !strings.Contains(told[0], title) || !strings.Contains(told[1], "1 of 3 tools is left out (/tools/2: ") || strings.Contains(told[1], "title") {
			t.Errorf("told %q", told)
		}
	})
}
