package sse_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/sse"
)

// rooms counts the client's roots: the server asks the client while it answers.
func rooms(ctx context.Context, _ struct{}) (int, error) {
	roots, err := server.Roots(ctx)
	return len(roots), err
}

func newServer(versions ...string) *server.Server {
	s := server.New("old", "1.0.0", &server.Options{Versions: versions, Logger: slog.New(slog.DiscardHandler)})
	s.Add(server.Tool("rooms", "Counts the roots.", rooms))
	return s
}

// A real server and a real client, in each revision: questions of the server
// travel on the stream, and their answers in a POST of their own.
func TestSession(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			mcptest.NoLeaks(t)
			core := newServer()
			h := sse.NewHandler(core, nil)
			s := webtest.Serve(t, h)
			c, err := client.Connect(t.Context(), sse.URL(s.URL), &client.Options{
				Versions: []string{version},
				OnRoots: func(context.Context) ([]mcp.Root, error) {
					return []mcp.Root{{URI: "file:///a"}, {URI: "file:///b"}}, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if got := c.Version(); got != version {
				t.Errorf("the revision is %s, want %s", got, version)
			}
			n, err := client.Call[int](t.Context(), c, "rooms", struct{}{})
			if err != nil || n != 2 {
				t.Errorf("the tool gives %d, %v; want 2", n, err)
			}
			if err := c.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if err := h.Shutdown(t.Context()); err != nil {
				t.Errorf("Shutdown of the endpoint: %v", err)
			}
			if err := core.Shutdown(t.Context()); err != nil {
				t.Errorf("Shutdown of the server: %v", err)
			}
		})
	}
}

// A server that does not serve the client's revision says so in the handshake.
func TestVersionRefused(t *testing.T) {
	mcptest.NoLeaks(t)
	s := webtest.Serve(t, sse.NewHandler(newServer("2026-07-28"), nil))
	c, err := client.Connect(t.Context(), sse.URL(s.URL), &client.Options{Versions: []string{"2024-11-05"}})
	var unsupported *client.UnsupportedVersionError
	if !errors.As(err, &unsupported) {
		t.Errorf("Connect gave %v, %v; want UnsupportedVersionError", c, err)
	}
}

// A server that has been shut down takes no stream.
func TestServerShutDown(t *testing.T) {
	mcptest.NoLeaks(t)
	core := newServer()
	if err := core.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := webtest.Serve(t, sse.NewHandler(core, nil))
	if code, body, _ := status(t, s.Client(), http.MethodGet, s.URL, nil, nil); code != http.StatusServiceUnavailable {
		t.Errorf("a stream is answered %d %s, want 503", code, body)
	}
}
