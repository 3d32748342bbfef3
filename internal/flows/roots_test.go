package flows_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

func tellRoots(ctx context.Context, _ mcp.None) (string, error) {
	roots, err := server.Roots(ctx)
	if errors.Is(err, server.ErrRefused) {
		return "refused", nil
	}
	if err != nil {
		return "", err
	}
	var all []string
	for _, r := range roots {
		all = append(all, r.URI+" "+r.Name)
	}
	return strings.Join(all, ", "), nil
}

// Proves: FLOW-ROOTS-P
func TestFLOW_ROOTS_P(t *testing.T) {
	changed := make(chan string, 8)
	build := func(t testing.TB, o *server.Options) *server.Server {
		o.OnRootsChanged = func(context.Context) { changed <- "changed" }
		return with(server.Tool("roots", "Tells the roots.", tellRoots))(t, o)
	}
	eachServer(t, build, func(t *testing.T, era mcptest.Era, join joiner) {
		roots := []mcp.Root{{URI: "file:///srv/a", Name: "a"}}
		_, c := join(&client.Options{OnRoots: func(context.Context) ([]mcp.Root, error) { return roots, nil }})
		if got, err := client.Call[string](t.Context(), c, "roots", nil); err != nil || got != "file:///srv/a a" {
			t.Errorf("%q, %v", got, err)
		}
		roots = append(roots, mcp.Root{URI: "file:///srv/b%20c"})
		if err := c.RootsChanged(t.Context()); err != nil {
			t.Fatal(err)
		}
		if era.Version != newest { // Ruling 25: legacy only
			<-changed
		}
		if got, err := client.Call[string](t.Context(), c, "roots", nil); err != nil || got != "file:///srv/a a, file:///srv/b%20c " {
			t.Errorf("%q, %v", got, err)
		}
		if len(changed) > 0 {
			t.Error("a change was told that nobody told")
		}
	})
	for name, test := range map[string]struct {
		roots []mcp.Root
		err   error
		want  string // of the handshake era; "" is a failure
	}{
		"none":       {[]mcp.Root{}, nil, ""},
		"refused":    {nil, client.ErrRefused, "refused"},
		"not a file": {[]mcp.Root{{URI: "https://example.com/"}}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := &client.Options{OnRoots: func(context.Context) ([]mcp.Root, error) { return test.roots, test.err }}
			mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
				got, err := client.Call[string](t.Context(), c, "roots", nil)
				switch {
				case name == "none":
					if err != nil || got != "" {
						t.Errorf("%q, %v", got, err)
					}
				case era.Version == newest:
					if !errors.Is(err, client.ErrInputRefused) { // Ruling 17
						t.Errorf("%q, %v", got, err)
					}
				case test.want == "" && err == nil, test.want != "" && (err != nil || got != test.want):
					t.Errorf("%q, %v", got, err)
				}
			})
		})
	}
}
