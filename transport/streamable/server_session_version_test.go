package streamable_test

import (
	"net/http"
	"testing"

	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// A session takes every version in the header that its server serves, and goes
// on in the one that it negotiated (ruling 32).
func TestSessionVersionHeader(t *testing.T) {
	mcptest.NoLeaks(t)
	core := server.New("s", "1", &server.Options{Versions: []string{v2607, v2511, v2506}})
	s := newSite(t, core, nil)
	id := s.send(http.MethodPost, rpc(0, "initialize", initialize)).header.Get("Mcp-Session-Id")
	broken := `{"jsonrpc":"2.0","method":1}`
	for _, test := range []struct {
		version string
		status  int
		parts   []string
	}{
		{v2511, 200, nil},
		{v2506, 200, nil},
		{v2503, 400, []string{"-32600", v2503, v2511}}, // the operator refuses it
		{"1999-01-01", 400, []string{"-32600", "1999-01-01"}},
		{v2607, 400, []string{"-32602", "_meta"}}, // which makes the message modern
	} {
		s.check("POST with "+test.version, s.send(http.MethodPost, rpc(1, "ping", ""), "Mcp-Session-Id", id, "MCP-Protocol-Version", test.version), test.status, test.parts...)
	}
	s.check("POST without", s.send(http.MethodPost, rpc(1, "ping", ""), "Mcp-Session-Id", id), 200)
	s.check("POST with an empty one", s.send(http.MethodPost, rpc(1, "ping", ""), "Mcp-Session-Id", id, "MCP-Protocol-Version", " "), 400, "-32600")
	// An error without id has "id": null in 2025-06-18, and no id in 2025-11-25.
	s.check("goes on in its own", s.send(http.MethodPost, broken, "Mcp-Session-Id", id, "MCP-Protocol-Version", v2506), 400, `{"jsonrpc":"2.0","error"`)
	f := s.follow(http.MethodGet, "", "Mcp-Session-Id", id, "MCP-Protocol-Version", v2506)
	f.cancel()
	s.check("DELETE", s.send(http.MethodDelete, "", "Mcp-Session-Id", id, "MCP-Protocol-Version", v2506), 204)
	s.check("afterwards", s.send(http.MethodPost, rpc(1, "ping", ""), "Mcp-Session-Id", id), 404)
}
