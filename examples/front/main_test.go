package main

import (
	"context"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

type size struct {
	Kilos int `json:"kilos" min:"1"`
}

// shop is a server that asks. It speaks some revisions.
func shop(versions ...string) *server.Server {
	s := server.New("shop", "1.0.0", &server.Options{Versions: versions, StateKeys: [][]byte{make([]byte, 32)}})
	s.Add(
		server.Tool("order", "Orders fruit.", func(ctx context.Context, _ mcp.None) (string, error) {
			a, err := server.Elicit[size](ctx, "How many kilos?")
			if err != nil || !a.Accepted() {
				return "nothing", err
			}
			return strings.Repeat("apple ", a.Value.Kilos), nil
		}),
		server.Text("shop:///prices", "prices", "apples 3.50"),
	)
	return s
}

// TestMain is an old server on pipes when the test starts it with an argument.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "pipe" {
		if err := stdio.Serve(context.Background(), shop("2025-06-18")); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// two are an old server, as a child process, and a new one over HTTP.
func two(t *testing.T) []string {
	t.Helper()
	endpoint := streamable.NewHandler(shop("2026-07-28"), nil)
	ts := httptest.NewServer(endpoint)
	t.Cleanup(func() {
		if err := endpoint.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		ts.Close()
	})
	return []string{"old=" + os.Args[0] + " pipe", "new=" + ts.URL + streamable.Path}
}

// Clients of new and old revisions use both servers, and answer what they ask.
func TestFront(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			top, closeAll, err := join(t.Context(), nil, two(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := closeAll(); err != nil {
					t.Error(err)
				}
			})
			c := mcptest.Client(t, top, &client.Options{
				Versions: []string{version},
				OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
					return client.Accept(size{2})
				},
			})
			var names []string
			for tool, err := range c.Tools(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, tool.Name)
			}
			slices.Sort(names)
			if !slices.Equal(names, []string{"new_order", "old_order"}) {
				t.Errorf("tools %v", names)
			}
			for _, prefix := range []string{"old", "new"} {
				if text, err := client.Call[string](t.Context(), c, prefix+"_order", nil); err != nil || text != "apple apple " {
					t.Errorf("%s: %q, %v", prefix, text, err)
				}
				r, err := c.ReadResource(t.Context(), prefix+"+shop:///prices", nil)
				if err != nil || r.Contents[0].Text != "apples 3.50" {
					t.Errorf("%s: %+v, %v", prefix, r, err)
				}
			}
		})
	}
}

// A server that cannot be reached is named, and the others are ended.
func TestUnreachable(t *testing.T) {
	_, _, err := join(t.Context(), nil, append(two(t), "gone=/nothing/here"))
	if err == nil || !strings.Contains(err.Error(), "gone: ") {
		t.Errorf("%v", err)
	}
}
