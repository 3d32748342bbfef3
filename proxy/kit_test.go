package proxy_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/server"
)

const (
	v2024 = "2024-11-05"
	v2506 = "2025-06-18"
	v2511 = "2025-11-25"
	v2607 = "2026-07-28"
)

// upstreams are the revisions of upstream servers that tests run with: one of
// each era.
var upstreams = []string{v2511, v2607}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// connect makes a proxy of a server, which speaks one revision to it.
func connect(t *testing.T, up *server.Server, version string, o *proxy.Options) *proxy.Proxy {
	t.Helper()
	return connectBy(t, up, version, "mem", o)
}

func connectBy(t *testing.T, up *server.Server, version, transportName string, o *proxy.Options) *proxy.Proxy {
	t.Helper()
	var opts proxy.Options
	if o != nil {
		opts = *o
	}
	opts.Client.Versions = []string{version}
	if opts.Logger == nil {
		opts.Logger = quiet
	}
	p, err := proxy.Connect(t.Context(), mcptest.Dialer(t, up, transportName), &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("closing the proxy: %v", err)
		}
	})
	return p
}

// eachEra runs a test with a client of every revision and transport, of a server
// that a proxy of up is mounted in, for upstream servers of both eras.
func eachEra(t *testing.T, up *server.Server, o *client.Options, body func(t *testing.T, version string, era mcptest.Era, c *client.Client)) {
	t.Helper()
	for _, version := range upstreams {
		t.Run("upstream "+version, func(t *testing.T) {
			plain := func(_ testing.TB, o *server.Options) *server.Server { return server.New("top", "1.0.0", o) }
			for _, era := range mcptest.Eras(t, plain) {
				t.Run(era.String(), func(t *testing.T) {
					mcptest.NoLeaks(t)
					p := connect(t, up, version, nil)
					c := mcptest.Join(t, func(tb testing.TB, o *server.Options) *server.Server {
						top := plain(tb, o)
						top.Mount("up", p.Server())
						return top
					}, o, era)
					body(t, version, era, c)
				})
			}
		})
	}
}

// join connects a client of one revision to a server.
func join(t *testing.T, s *server.Server, version string, o *client.Options) *client.Client {
	t.Helper()
	var opts client.Options
	if o != nil {
		opts = *o
	}
	opts.Versions = []string{version}
	c, err := client.Connect(t.Context(), mcptest.Dialer(t, s, "mem"), &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

type sum struct {
	A int `json:"a"`
	B int `json:"b"`
}

type total struct {
	Total int `json:"total"`
}

type confirm struct {
	Sure bool `json:"sure"`
}

// upstream is a server with something of everything.
func upstream() *server.Server {
	s := server.New("upstream", "2.0.0", &server.Options{Instructions: "Be kind.", Logger: quiet, Limits: unlimited})
	s.Add(
		server.Tool("add", "Adds two numbers.", func(_ context.Context, in sum) (total, error) {
			return total{in.A + in.B}, nil
		}).With(server.ToolOptions{Title: "Add", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true)}, Meta: mcp.Meta{"com.example/x": mcp.RawValue(`1`)}}),
		server.Tool("fail", "Fails.", func(context.Context, mcp.None) (string, error) { return "", mcp.Errorf("no luck") }),
		server.Tool("code", "Fails with a code.", func(context.Context, mcp.None) (string, error) {
			return "", mcp.NewError(-31999, "special").With(map[string]int{"n": 7})
		}),
		server.Tool("work", "Tells of progress and logs.", func(ctx context.Context, _ mcp.None) (string, error) {
			for i := range 3 {
				if err := server.Progress(ctx, float64(i+1), 3, fmt.Sprint("step ", i+1)); err != nil {
					return "", err
				}
			}
			return "done", server.Log(ctx, mcp.LogWarning, "work", map[string]string{"msg": "half way"})
		}),
		server.Tool("ask", "Asks twice.", func(ctx context.Context, _ mcp.None) (string, error) {
			first, err := server.Elicit[confirm](ctx, "First?")
			if err != nil {
				return "", err
			}
			second, err := server.Elicit[confirm](ctx, "Second?")
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%s %v, %s %v", first.Action, first.Value.Sure, second.Action, second.Value.Sure), nil
		}),
		server.Prompt("greet", "Greets.", func(_ context.Context, in struct {
			Name string `json:"name"`
		},
		) (string, error) {
			return "Hello " + in.Name, nil
		}).With(server.PromptOptions{Complete: map[string]server.Completer{"name": server.Choices("ada", "adam", "bob")}}),
		server.Text("note:///one", "one", "first note"),
		server.Template("note:///{id}", "notes", func(_ context.Context, v struct {
			ID string `uri:"id"`
		},
		) (string, error) {
			if v.ID == "none" {
				return "", server.ErrNotFound
			}
			return "note " + v.ID, nil
		}).With(server.TemplateOptions{Complete: map[string]server.Completer{"id": server.Choices("one", "two")}}),
	)
	return s
}

func text(t *testing.T, r *mcp.CallToolResult, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, c := range r.Content {
		if x, ok := c.(*mcp.TextContent); ok {
			parts = append(parts, x.Text)
		}
	}
	return strings.Join(parts, "|")
}

func accept(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
	return client.Accept(confirm{true})
}

// unlimited are limits without rates: tests are quicker than people.
var unlimited = server.Limits{
	ToolRate: server.Unlimited, ListRate: server.Unlimited, CompletionRate: server.Unlimited, PingRate: server.Unlimited,
}

func decode(raw mcp.RawValue, v any) error { return wire.Decode(raw, v) }

// answerSeven fills in a form of the example.
func answerSeven(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
	return client.Accept(map[string]int{"candles": 7})
}
