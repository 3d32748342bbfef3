package main

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport/mem"
)

// The host tells its model of one tool, shows its page, and lets the page call the other.
func TestHost(t *testing.T) {
	h, err := connect(t.Context(), mem.New(newServer(), nil))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.c.Close() }()
	list, err := h.forModel(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != "weather" {
		t.Fatalf("%v, %v", list, err)
	}
	page, err := h.pageOf(t.Context(), list[0])
	if err != nil || page == nil {
		t.Fatalf("%v, %v", page, err)
	}
	w := httptest.NewRecorder()
	frame(page).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Body.String() != view || !strings.Contains(w.Header().Get("Content-Security-Policy"), "img-src 'self' data: https://icons.example.com;") {
		t.Errorf("the frame gets %v", w.Header())
	}
	res, err := h.fromPage(t.Context(), &mcp.CallToolParams{Name: "refresh", Arguments: mcp.RawValue(`{"city":"Oslo"}`)})
	if err != nil || string(res.StructuredContent) != `{"city":"Oslo","degrees":14}` {
		t.Errorf("%+v, %v", res, err)
	}
}

// A client without pages has one tool, and its text.
func TestWithoutPages(t *testing.T) {
	c := mcptest.Client(t, newServer())
	res, err := c.CallTool(t.Context(), "weather", place{City: "Oslo"}, nil)
	if err != nil || len(res.Content) != 1 || res.Content[0].(*mcp.TextContent).Text != `{"city":"Oslo","degrees":14}` {
		t.Errorf("%+v, %v", res, err)
	}
	_, err = client.Call[report](t.Context(), c, "refresh", place{City: "Oslo"})
	if err == nil || errors.Is(err, client.ErrNotCapable) || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("refresh: %v", err)
	}
}
