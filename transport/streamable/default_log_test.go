package streamable_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// bare is a writer of middleware that hides what net/http can do.
type bare struct{ w http.ResponseWriter }

func (b bare) Header() http.Header         { return b.w.Header() }
func (b bare) Write(p []byte) (int, error) { return b.w.Write(p) }
func (b bare) WriteHeader(status int)      { b.w.WriteHeader(status) }

// Without a Logger the program's default one is told, once, what its operator
// has to mend; what clients send wrong is not among it.
func TestDefaultLogger(t *testing.T) { // not parallel: it changes the default logger
	before := slog.Default()
	defer slog.SetDefault(before)
	var text bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	h := streamable.NewHandler(server.New("x", "1", &server.Options{Logger: slog.New(slog.DiscardHandler)}), nil)
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`,
		`{"jsonrpc"`,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		h.ServeHTTP(bare{httptest.NewRecorder()}, r)
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if got := text.String(); strings.Count(got, "hides what net/http can do") != 1 || strings.Count(got, "\n") != 1 {
		t.Errorf("the log has %q", got)
	}
}
