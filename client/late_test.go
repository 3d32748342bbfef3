package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// lateFeatures are features that a server gets when its client is connected, with what uses them.
var lateFeatures = map[string]struct {
	feature func() server.Feature
	notice  string // of the client's handler
	option  string // that declares it from the beginning
	uses    map[string]func(ctx context.Context, c *client.Client) error
}{
	"tools": {
		func() server.Feature {
			return server.Tool("hi", "Greets.", func(context.Context, mcp.None) (string, error) { return "hello", nil })
		}, "tools", "DeclareTools",
		map[string]func(ctx context.Context, c *client.Client) error{
			"call": func(ctx context.Context, c *client.Client) error { return errorOf(c.CallTool(ctx, "hi", nil, nil)) },
			"list": func(ctx context.Context, c *client.Client) error {
				for tool, err := range c.Tools(ctx) {
					if err != nil || tool.Name != "hi" {
						return errors.Join(err, errors.New("another tool"))
					}
					return nil
				}
				return errors.New("no tool")
			},
		},
	},
	"prompts": {
		func() server.Feature { return latePrompt() }, "prompts", "DeclarePrompts",
		map[string]func(ctx context.Context, c *client.Client) error{
			"get": func(ctx context.Context, c *client.Client) error {
				return errorOf(c.GetPrompt(ctx, "p", map[string]string{"a": "ann"}, nil))
			},
		},
	},
	"completions": {
		func() server.Feature { return latePrompt() }, "prompts", "DeclarePrompts",
		map[string]func(ctx context.Context, c *client.Client) error{
			"complete": func(ctx context.Context, c *client.Client) error {
				return errorOf(c.Complete(ctx, &mcp.CompleteParams{Ref: mcp.PromptRef("p"), Argument: mcp.CompletionArgument{Name: "a", Value: "a"}}))
			},
		},
	},
	"resources": {
		func() server.Feature { return server.Text("test:a", "a", "text") }, "resources", "DeclareResources",
		map[string]func(ctx context.Context, c *client.Client) error{
			"read": func(ctx context.Context, c *client.Client) error { return errorOf(c.ReadResource(ctx, "test:a", nil)) },
			"subscribe": func(ctx context.Context, c *client.Client) error {
				s, err := c.Subscribe(ctx, "test:a")
				if err == nil {
					err = s.Close()
				}
				return err
			},
		},
	},
}

func errorOf[T any](_ T, err error) error { return err }

// latePrompt is a prompt whose argument can be completed.
func latePrompt() server.Feature {
	type args struct {
		A string `json:"a"`
	}
	p := server.Prompt("p", "Greets.", func(_ context.Context, in args) (string, error) { return "hello " + in.A, nil })
	return p.With(server.PromptOptions{Complete: map[string]server.Completer{
		"a": server.Choices("ann"),
	}})
}

// A client of the stateless revision uses what its server got after it connected, whether it was
// told of that or not. In other revisions it cannot, and the server's log says so once.
//
// Proves: C26 (punkpeye/fastmcp#370).
func TestLateFeatures(t *testing.T) {
	for name, late := range lateFeatures {
		for use, do := range late.uses {
			for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", newest, modern} {
				for _, told := range []bool{true, false} {
					t.Run(name+", "+use+", "+version, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							var log logtest.Log
							notices := make(chan string, 16)
							s := server.New("late", "1", &server.Options{Logger: log.Logger()})
							o := &client.Options{Versions: []string{version}, Eras: client.NewEraMemory()}
							if told {
								o.OnToolsChanged = func(context.Context) { notices <- "tools" }
								o.OnPromptsChanged = func(context.Context) { notices <- "prompts" }
								o.OnResourcesChanged = func(context.Context) { notices <- "resources" }
							}
							c := dial(t, mem.New(s, &mem.Options{Principal: principal.Local}), o)
							stateless := version == modern
							if err := do(t.Context(), c); !errors.Is(err, client.ErrNotCapable) && (name != "completions" || version != "2024-11-05") {
								t.Errorf("before: %v", err)
							}
							s.Add(late.feature())
							if stateless && told {
								for notice := ""; notice != late.notice; notice = <-notices {
								}
							}
							synctest.Wait()
							if err := do(t.Context(), c); stateless && err != nil {
								t.Errorf("after: %v", err)
							}
							s.Add(late.feature())
							synctest.Wait()
							if n := strings.Count(log.String(), late.option); (n == 1) == stateless || n > 1 {
								t.Errorf("the log names %s %d times:\n%s", late.option, n, log.String())
							}
						})
					})
				}
			}
		}
	}
}
