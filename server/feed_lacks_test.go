package server_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// A server whose own log goes to its clients can get its first tool while they are connected.
func TestFirstFeatureIsLoggedToClients(t *testing.T) {
	own := new(laterHandler)
	s := server.New("late", "1", &server.Options{Logger: slog.New(own)})
	own.Handler = s.LogHandler("server", nil)
	logs := make(chan string, 16)
	c, err := client.Connect(t.Context(), mem.New(s, nil), &client.Options{
		Versions: []string{"2025-06-18"},
		OnLog:    func(_ context.Context, l *mcp.LogParams) { logs <- string(l.Data) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s.Add(server.Tool("hi", "Greets.", func(context.Context, mcp.None) (string, error) { return "hello", nil }))
	for said := ""; !strings.Contains(said, "DeclareTools"); said = <-logs {
	}
}

// A laterHandler is a slog.Handler that needs the server that has it.
type laterHandler struct{ slog.Handler }

func (h *laterHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h *laterHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.Handler.Handle(ctx, r)
}
func (h *laterHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h *laterHandler) WithGroup(string) slog.Handler      { return h }
