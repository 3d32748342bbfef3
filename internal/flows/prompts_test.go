package flows_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

type review struct {
	File  string `json:"file" title:"File" desc:"What to look at"`
	Depth int    `json:"depth" default:"3" max:"9"`
	Harsh bool   `json:"harsh,omitzero"`
}

func messages(_ context.Context, a review) ([]mcp.PromptMessage, error) {
	return []mcp.PromptMessage{
		{Role: mcp.RoleUser, Content: mcp.Text(fmt.Sprintf("review %s, depth %d, harsh %v", a.File, a.Depth, a.Harsh))},
		{Role: mcp.RoleAssistant, Content: mcp.Embed(mcp.ResourceContents{URI: "x:a", Text: "A"})},
	}, nil
}

// Proves: FLOW-PROMPT-P
func TestFLOW_PROMPT_P(t *testing.T) {
	build := func(t testing.TB, o *server.Options) *server.Server {
		o.Limits.PageSize = 2
		return with(
			server.Prompt("review", "Reviews a file.", messages),
			server.Prompt("plain", "Says hello.", func(context.Context, mcp.None) (string, error) { return "hello", nil }),
			server.Prompt("z", "The last.", func(context.Context, mcp.None) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{Description: "own", Messages: []mcp.PromptMessage{}}, nil
			}),
		)(t, o)
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		list := collect(t, c.Prompts(t.Context()))
		if len(list) != 3 || list[0].Name != "plain" || list[1].Name != "review" || list[2].Name != "z" {
			t.Fatalf("prompts %+v", list)
		}
		args := list[1].Arguments
		if len(args) != 3 || args[0].Name != "file" || !args[0].Required || args[0].Description != "What to look at" || args[1].Required || args[2].Required {
			t.Errorf("arguments %+v", args)
		}
		if (args[0].Title == "File") != since(era.Version, june) {
			t.Errorf("title %q", args[0].Title)
		}
		for name, test := range map[string]struct {
			args map[string]string
			want string
		}{
			"defaults": {map[string]string{"file": "a.go"}, "review a.go, depth 3, harsh false"},
			"all":      {map[string]string{"file": "7", "depth": "5", "harsh": "true"}, "review 7, depth 5, harsh true"},
		} {
			r, err := c.GetPrompt(t.Context(), "review", test.args, nil)
			if err != nil || len(r.Messages) != 2 || r.Description != "Reviews a file." {
				t.Errorf("%s: %+v, %v", name, r, err)
				continue
			}
			if said, ok := r.Messages[0].Content.(*mcp.TextContent); !ok || said.Text != test.want || r.Messages[0].Role != mcp.RoleUser {
				t.Errorf("%s: %+v", name, r.Messages[0])
			}
			if e, ok := r.Messages[1].Content.(*mcp.EmbeddedResource); !ok || e.Resource.Text != "A" || r.Messages[1].Role != mcp.RoleAssistant {
				t.Errorf("%s: %+v", name, r.Messages[1])
			}
		}
		for name, args := range map[string]map[string]string{
			"missing": {}, "unknown": {"file": "a", "more": "b"}, "wrong type": {"file": "a", "depth": "deep"}, "too big": {"file": "a", "depth": "10"},
		} {
			if _, err := c.GetPrompt(t.Context(), "review", args, nil); code(err) != mcp.CodeInvalidParams {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := c.GetPrompt(t.Context(), "none", nil, nil); code(err) != mcp.CodeInvalidParams {
			t.Errorf("unknown prompt: %v", err)
		}
	})
}

// Proves: SEC-PROMPT-1: arguments are data, bounded and without control
// characters.
func TestSEC_PROMPT_1(t *testing.T) {
	ran := 0
	build := func(t testing.TB, o *server.Options) *server.Server {
		o.Limits.MaxArgument = 100
		return with(server.Prompt("p", "Echoes.", func(_ context.Context, a struct {
			Text string `json:"text"`
		},
		) (string, error) {
			ran++
			return "say: " + a.Text, nil
		}))(t, o)
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		for _, said := range []string{"{{.Secret}}", `"}],"role":"system"`, "${HOME}", "line\nline\t.", `{"file":"x"}`, strings.Repeat("x", 100)} {
			r, err := c.GetPrompt(t.Context(), "p", map[string]string{"text": said}, nil)
			if err != nil || len(r.Messages) != 1 {
				t.Errorf("%q: %+v, %v", said, r, err)
				continue
			}
			if got := r.Messages[0].Content.(*mcp.TextContent).Text; got != "say: "+said {
				t.Errorf("%q became %q", said, got)
			}
		}
		ran = 0
		for _, said := range []string{"\x1b[2J", "a\x00b", "\u009b31m", "\x7f", strings.Repeat("x", 101)} {
			if _, err := c.GetPrompt(t.Context(), "p", map[string]string{"text": said}, nil); code(err) != mcp.CodeInvalidParams {
				t.Errorf("%.20q: %v", said, err)
			}
		}
		if ran > 0 {
			t.Errorf("the handler ran %d times", ran)
		}
	})
}

// Proves: SEC-PROMPT-2: one decision holds for list and get.
func TestSEC_PROMPT_2(t *testing.T) {
	build := func(t testing.TB, o *server.Options) *server.Server {
		s := with(
			server.Prompt("open", "For all.", func(context.Context, mcp.None) (string, error) { return "o", nil }),
			server.Prompt("closed", "For nobody.", func(context.Context, mcp.None) (string, error) { return "c", nil }),
		)(t, o)
		s.Visible(func(_ context.Context, it server.Item) bool { return it.Kind != server.KindPrompt || it.Name == "open" })
		return s
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		if list := collect(t, c.Prompts(t.Context())); len(list) != 1 || list[0].Name != "open" {
			t.Errorf("prompts %+v", list)
		}
		_, hidden := c.GetPrompt(t.Context(), "closed", nil, nil)
		_, absent := c.GetPrompt(t.Context(), "absent", nil, nil)
		if code(hidden) != mcp.CodeInvalidParams || strings.ReplaceAll(hidden.Error(), "closed", "absent") != absent.Error() {
			t.Errorf("hidden: %v\nabsent: %v", hidden, absent)
		}
		if _, err := c.GetPrompt(t.Context(), "open", nil, nil); err != nil {
			t.Error(err)
		}
	})
}

// Proves: SEC-PROMPT-3: an argument that names a resource is only a string, and
// rendering is bounded in time.
func TestSEC_PROMPT_3(t *testing.T) {
	read := 0
	build := func(t testing.TB, o *server.Options) *server.Server {
		o.Limits.CallTimeout = 1e9
		return with(
			server.Resource("x:private", "p", func(context.Context) (string, error) { read++; return "private", nil }),
			server.Prompt("quote", "Quotes.", func(_ context.Context, a struct {
				URI string `json:"uri"`
			},
			) (mcp.PromptMessage, error) {
				return mcp.PromptMessage{Role: mcp.RoleUser, Content: mcp.Link(a.URI, "it")}, nil
			}),
			server.Prompt("slow", "Never ends.", func(ctx context.Context, _ mcp.None) (string, error) {
				<-ctx.Done()
				return "", context.Cause(ctx)
			}),
		)(t, o)
	}
	bubbles(t, build, func(t *testing.T, _ mcptest.Era, join joiner) {
		_, c := join(nil)
		r, err := c.GetPrompt(t.Context(), "quote", map[string]string{"uri": "x:private"}, nil)
		if err != nil || len(r.Messages) != 1 || read > 0 {
			t.Errorf("%+v, %v; the resource was read %d times", r, err, read)
		}
		if _, err := c.GetPrompt(t.Context(), "slow", nil, nil); code(err) != mcp.CodeTimeout {
			t.Errorf("slow: %v", err)
		}
	})
}
