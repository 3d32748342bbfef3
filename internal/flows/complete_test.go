package flows_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

// completing is a server that completes.
func completing(t testing.TB, o *server.Options) *server.Server {
	many := make([]string, 250)
	for i := range many {
		many[i] = fmt.Sprintf("v%03d", i)
	}
	return with(
		server.Prompt("review", "Reviews.", messages).With(server.PromptOptions{Complete: map[string]server.Completer{
			"file": server.Choices("main.go", "make.sh", "README"),
			"depth": func(_ context.Context, value string, sofar map[string]string) ([]string, error) {
				return []string{sofar["file"] + ":" + value}, nil
			},
		}}),
		server.Template("gh://{owner}/issues/{id}", "issue", readIssue).With(server.TemplateOptions{Complete: map[string]server.Completer{
			"owner": server.Choices(many...),
		}}),
	)(t, o)
}

// Proves: FLOW-COMPLETE-P
func TestFLOW_COMPLETE_P(t *testing.T) {
	issue := mcp.ResourceRef("gh://{owner}/issues/{id}")
	mcptest.EachEra(t, completing, nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		depth := "main.go:7"
		if !since(era.Version, june) {
			depth = ":7" // no context yet
		}
		for name, test := range map[string]struct {
			ref         mcp.CompletionRef
			arg, value  string
			want        []string
			total, sent int
		}{
			"prefix":       {mcp.PromptRef("review"), "file", "ma", []string{"main.go", "make.sh"}, 2, 2},
			"nothing fits": {mcp.PromptRef("review"), "file", "x", nil, 0, 0},
			"context":      {mcp.PromptRef("review"), "depth", "7", []string{depth}, 1, 1},
			"no completer": {mcp.PromptRef("review"), "harsh", "", nil, -1, 0},
			"many":         {issue, "owner", "v", []string{"v000"}, 250, 100},
			"exactly 100":  {issue, "owner", "v1", []string{"v100"}, 100, 100},
			"no variable":  {issue, "id", "", nil, -1, 0},
		} {
			got, err := c.Complete(t.Context(), &mcp.CompleteParams{
				Ref: test.ref, Argument: mcp.CompletionArgument{Name: test.arg, Value: test.value},
				Context: &mcp.CompletionContext{Arguments: map[string]string{"file": "main.go"}},
			})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if len(got.Values) != test.sent || !slices.Equal(got.Values[:len(test.want)], test.want) || got.HasMore != (test.total > 100) {
				t.Errorf("%s: %+v", name, got)
			}
			if test.total >= 0 != (got.Total != nil) || got.Total != nil && *got.Total != int64(test.total) {
				t.Errorf("%s: total %v, want %d", name, got.Total, test.total)
			}
		}
	})
}

// Proves: SEC-COMP-1: reference and argument are checked, the rate is limited.
func TestSEC_COMP_1(t *testing.T) {
	build := func(t testing.TB, o *server.Options) *server.Server {
		o.Limits.MaxArgument = 50
		return completing(t, o)
	}
	bubbles(t, build, func(t *testing.T, _ mcptest.Era, join joiner) {
		_, c := join(&client.Options{Retries: -1})
		long := string(make([]byte, 51))
		for name, p := range map[string]mcp.CompleteParams{
			"prompt":   {Ref: mcp.PromptRef("none"), Argument: mcp.CompletionArgument{Name: "file"}},
			"template": {Ref: mcp.ResourceRef("gh://none"), Argument: mcp.CompletionArgument{Name: "owner"}},
			"argument": {Ref: mcp.PromptRef("review"), Argument: mcp.CompletionArgument{Name: "none"}},
			"long":     {Ref: mcp.PromptRef("review"), Argument: mcp.CompletionArgument{Name: "file", Value: long}},
			"kind":     {Ref: mcp.CompletionRef{Type: "ref/tool", Name: "x"}, Argument: mcp.CompletionArgument{Name: "file"}},
		} {
			if _, err := c.Complete(t.Context(), &p); code(err) != mcp.CodeInvalidParams {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.Limits.CompletionRate = 0.5
		l := dial(t, completing(t, o), &stdio.Options{Principal: ada})
		l.shake(june, "{}")
		for i := range 40 {
			m := l.ask(`{"jsonrpc":"2.0","id":%d,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"file","value":""}}}`, i)
			if i < 5 { // a burst of ten seconds' worth
				m.want("", "error")
			} else {
				m.fails(mcp.CodeRateLimited, fmt.Sprint(i))
			}
		}
	})
}

// Ruling 5: 2024-11-05 has no capability for completion, and is served without.
func TestCompletionWithoutCapability(t *testing.T) {
	for _, version := range []string{y2024, march, june, autumn} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const ask = `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}}`
				l := dial(t, with(server.Prompt("p", "P.", func(_ context.Context, a struct {
					A string `json:"a"`
				},
				) (string, error) {
					return a.A, nil
				}))(t, quiet()), nil)
				l.shake(version, "{}").want("", "result", "capabilities", "completions")
				m := l.ask(ask)
				if version == y2024 {
					m.want("[]", "result", "completion", "values")
				} else {
					m.fails(-32601, "1")
				}
				full := dial(t, completing(t, quiet()), nil)
				want := "{}"
				if version == y2024 {
					want = ""
				}
				full.shake(version, "{}").want(want, "result", "capabilities", "completions")
			})
		})
	}
}
