package interop_test

import (
	"testing"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-mcp/parley/app/interop/gosdk"
	"github.com/parley-mcp/parley/app/interop/mcpgo"
	"github.com/parley-mcp/parley/app/interop/script"
)

// Clients that speak both eras and are left to choose take the newest revision.
func TestNegotiationNewest(t *testing.T) {
	t.Run("go-sdk", func(t *testing.T) {
		t.Parallel()
		e := serveOurs(t)
		check(t, gosdk.Run(bounded(t), &mcp.StreamableClientTransport{Endpoint: e.url}, ""), want(modern))
		e.seen.check(t, modern)
		e.traffic.checkModern(t)
	})
	t.Run("mcp-go", func(t *testing.T) {
		t.Parallel()
		e := serveOurs(t)
		check(t, mcpgo.Run(bounded(t), dialMCPGo(t, e.url), ""), want(modern))
		e.seen.check(t, modern)
		e.traffic.checkModern(t)
	})
}

// Where the operator of our server allows the handshake era alone, they learn so
// from the answer to their probe and go back to it.
func TestNegotiationOnlyHandshakes(t *testing.T) {
	t.Run("go-sdk", func(t *testing.T) {
		t.Parallel()
		e := serveOurs(t, handshakes...)
		check(t, gosdk.Run(bounded(t), &mcp.StreamableClientTransport{Endpoint: e.url}, ""), want(legacy))
		e.traffic.checkLegacy(t, legacy)
	})
	t.Run("mcp-go", func(t *testing.T) {
		t.Parallel()
		e := serveOurs(t, handshakes...)
		e.traffic.looseGET = true
		got := mcpgo.Run(bounded(t), dialMCPGo(t, e.url, transport.WithContinuousListening()), "", script.StepCancel)
		check(t, got, script.Want(legacy, script.StepCancel))
		e.traffic.checkLegacy(t, legacy)
	})
	t.Run("v2-client.mjs", func(t *testing.T) {
		t.Parallel()
		peersDir(t)
		e := serveOurs(t, handshakes...)
		check(t, runClient(t, "v2-client.mjs", map[string]any{"transport": "http", "url": e.url, "mode": "auto"}), want(legacy))
		e.traffic.checkLegacy(t, legacy)
	})
}

// Where no revision suits both, the connection fails at once.
func TestNegotiationNothingInCommon(t *testing.T) {
	t.Run("go-sdk, stateless server", func(t *testing.T) {
		t.Parallel()
		e := serveOurs(t, modern)
		checkRefused(t, gosdk.Run(bounded(t), &mcp.StreamableClientTransport{Endpoint: e.url}, legacy))
	})
	t.Run("mcp-go, stateless server", func(t *testing.T) {
		t.Parallel()
		e := serveOurs(t, modern)
		checkRefused(t, mcpgo.Run(bounded(t), dialMCPGo(t, e.url), legacy))
	})
	for _, peer := range []struct {
		name, file string
		mode       any
		server     []string
	}{
		{"v1-client.mjs, stateless server", "v1-client.mjs", nil, []string{modern}},
		{"v2-client.mjs, stateless server", "v2-client.mjs", "legacy", []string{modern}},
		{"v2-client.mjs, older server", "v2-client.mjs", map[string]string{"pin": modern}, handshakes},
	} {
		t.Run(peer.name, func(t *testing.T) {
			t.Parallel()
			peersDir(t)
			e := serveOurs(t, peer.server...)
			checkRefused(t, runClient(t, peer.file, map[string]any{"transport": "http", "url": e.url, "mode": peer.mode}))
		})
	}
}

// checkRefused checks that a client got nowhere and says so.
func checkRefused(t *testing.T, got script.Report) {
	t.Helper()
	if len(got.Errors) != 1 || got.Version != "" {
		t.Errorf("connected all the same: %+v", got)
		return
	}
	t.Log(got.Errors[0])
}
