package proxy_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
)

// Everything that a server offers is offered by a proxy of it, in all eras on
// both sides.
func TestPassthrough(t *testing.T) {
	up := upstream()
	eachEra(t, up, nil, func(t *testing.T, version string, era mcptest.Era, c *client.Client) {
		r, err := c.CallTool(t.Context(), "up_add", sum{2, 3}, nil)
		if got := text(t, r, err); got != `{"total":5}` {
			t.Errorf("add: %s", got)
		}
		if era.Version != v2024 && era.Version != "2025-03-26" && string(r.StructuredContent) != `{"total":5}` {
			t.Errorf("structured content %s", r.StructuredContent)
		}
		r, err = c.CallTool(t.Context(), "up_add", map[string]string{"a": "x"}, nil)
		if err == nil && !r.IsError {
			t.Error("bad arguments were taken")
		}
		r, err = c.CallTool(t.Context(), "up_fail", nil, nil)
		if got := text(t, r, err); got != "no luck" || !r.IsError {
			t.Errorf("fail: %s", got)
		}
		_, err = c.CallTool(t.Context(), "up_code", nil, nil)
		if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != -31999 || e.Message != "special" || string(e.Data) != `{"n":7}` {
			t.Errorf("code: %v", err)
		}
		m, err := c.GetPrompt(t.Context(), "up_greet", map[string]string{"name": "Ada"}, nil)
		if err != nil || m.Messages[0].Content.(*mcp.TextContent).Text != "Hello Ada" {
			t.Errorf("prompt: %+v, %v", m, err)
		}
		for uri, want := range map[string]string{"up+note:///one": "first note", "up+note:///x": "note x"} {
			got, err := c.ReadResource(t.Context(), uri, nil)
			if err != nil || got.Contents[0].Text != want {
				t.Errorf("read %s: %+v, %v", uri, got, err)
			}
		}
		_, err = c.ReadResource(t.Context(), "up+note:///none", nil)
		if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || string(e.Data) != `{"uri":"up+note:///none"}` {
			t.Errorf("what does not exist: %v", err)
		}
		for _, ref := range []mcp.CompletionRef{mcp.PromptRef("up_greet"), mcp.ResourceRef("up+note:///{id}")} {
			arg := mcp.CompletionArgument{Name: "name", Value: "ada"}
			want := []string{"ada", "adam"}
			if ref.Type == mcp.RefResource {
				arg, want = mcp.CompletionArgument{Name: "id", Value: "t"}, []string{"two"}
			}
			got, err := c.Complete(t.Context(), &mcp.CompleteParams{Ref: ref, Argument: arg})
			if err != nil || !cmp.Equal(got.Values, want) {
				t.Errorf("completing %v: %+v, %v", ref, got, err)
			}
		}
	})
}

// Two questions after one another, in all four combinations of eras.
func TestTwoQuestions(t *testing.T) {
	up := upstream()
	eachEra(t, up, &client.Options{OnElicit: accept}, func(t *testing.T, version string, era mcptest.Era, c *client.Client) {
		r, err := c.CallTool(t.Context(), "up_ask", nil, nil)
		got := text(t, r, err)
		if era.Version < v2506 { // they know no forms
			if !r.IsError {
				t.Errorf("asked a client without forms: %s", got)
			}
			return
		}
		if got != "accept true, accept true" {
			t.Errorf("got %q", got)
		}
	})
}
