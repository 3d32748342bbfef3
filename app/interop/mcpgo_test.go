package interop_test

import (
	"slices"
	"testing"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/server"

	"github.com/parley-mcp/parley/app/interop/mcpgo"
	"github.com/parley-mcp/parley/app/interop/ours"
	"github.com/parley-mcp/parley/app/interop/script"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/stdio"
)

// mcp-go's client, and our server as its child process.
func TestMCPGoClientStdio(t *testing.T) {
	for _, version := range append([]string{modern}, handshakes...) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			got := mcpgo.Run(bounded(t), transport.NewStdio(program, nil, "ours"), version)
			check(t, got, want(version))
		})
	}
}

// Our client, and mcp-go's server as its child process.
func TestMCPGoServerStdio(t *testing.T) {
	for _, version := range handshakes {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			got := ours.Run(bounded(t), stdio.Command(program, "mcp-go"), version)
			check(t, late(t, got), want(version, structured))
		})
	}
	t.Run(modern, func(t *testing.T) {
		t.Parallel()
		got := ours.Run(bounded(t), stdio.Command(program, "mcp-go"), modern, script.StepSubscribe, script.StepGrow)
		check(t, late(t, got), script.Want(modern, script.StepSubscribe, script.StepGrow))
	})
}

// dialMCPGo leads mcp-go's client to url.
func dialMCPGo(t *testing.T, url string, o ...transport.StreamableHTTPCOption) transport.Interface {
	t.Helper()
	c, err := transport.NewStreamableHTTP(url, o...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mcp-go's client, and our server over Streamable HTTP.
func TestMCPGoClientHTTP(t *testing.T) {
	t.Run(modern, func(t *testing.T) {
		t.Parallel()
		e := serveOurs(t)
		check(t, mcpgo.Run(bounded(t), dialMCPGo(t, e.url), modern), want(modern))
		e.seen.check(t, modern)
		e.traffic.check(t, modern)
	})
	// In the handshake era its client cancels nothing over HTTP.
	for _, version := range handshakes {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			e := serveOurs(t)
			e.traffic.looseGET = true
			got := mcpgo.Run(bounded(t), dialMCPGo(t, e.url, transport.WithContinuousListening()), version, script.StepCancel)
			check(t, got, script.Want(version, script.StepCancel))
			e.seen.check(t, version)
			e.traffic.check(t, version)
		})
	}
}

// Our client, and mcp-go's server over Streamable HTTP: one endpoint for both
// eras.
func TestMCPGoServerHTTP(t *testing.T) {
	for _, version := range append([]string{modern}, handshakes...) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			d, log := dialer(t, listen(t, server.NewStreamableHTTPServer(mcpgo.NewServer())))
			check(t, late(t, ours.Run(bounded(t), d, version)), want(version, structured))
			log.check(t, version)
		})
	}
}

// mcp-go over HTTP+SSE, which 2024-11-05 has: its client with our server, and
// our client with its server. Neither asks or is asked over this transport, and
// the client cancels nothing.
func TestMCPGoSSE(t *testing.T) {
	t.Run("client", func(t *testing.T) {
		t.Parallel()
		c, err := transport.NewSSE(serveSSE(t))
		if err != nil {
			t.Fatal(err)
		}
		got := mcpgo.Run(bounded(t), c, first, script.StepModel, script.StepCancel)
		check(t, got, script.Want(first, script.StepModel, script.StepCancel))
	})
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		url := listen(t, server.NewSSEServer(mcpgo.NewServer()))
		got := late(t, ours.Run(bounded(t), sse.URL(url+"/sse"), first, script.StepModel))
		expected := script.Want(first, script.StepModel)
		structured(&expected)
		check(t, got, expected)
	})
}

// late completes the progress of a server that sends it from a queue beside the
// answer, over whichever stream comes first: some is overtaken and dropped, but
// what was seen must be in order.
func late(t *testing.T, r script.Report) script.Report {
	t.Helper()
	all := script.Want(r.Version).Progress
	if !slices.IsSorted(r.Progress) || len(r.Progress) > len(all) {
		t.Errorf("progress %v is out of order", r.Progress)
	}
	r.Progress = all
	return r
}
