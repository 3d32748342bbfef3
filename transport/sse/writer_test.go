package sse_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport/sse"
)

// An endpoint that middleware keeps from streaming says so once, and names the
// type that lacks a method.
func TestOpaqueWriter(t *testing.T) {
	var log bytes.Buffer
	h := sse.NewHandler(mcptest.TransportPeer(), &sse.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 2 {
		w := httptest.NewRecorder() // takes no deadlines
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/sse", http.NoBody)
		h.ServeHTTP(w, r)
		if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "cannot stream") {
			t.Errorf("status %d, body %s, want 500 and the reason", w.Code, w.Body)
		}
	}
	if got := log.String(); strings.Count(got, "Unwrap method") != 1 || !strings.Contains(got, "httptest.ResponseRecorder") {
		t.Errorf("the log is %s, want one line that names the type", got)
	}
}
