package interop_test

import (
	"net/http"
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-mcp/parley/app/interop/gosdk"
	"github.com/parley-mcp/parley/app/interop/ours"
	"github.com/parley-mcp/parley/app/interop/script"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

// The official Go SDK's client, and our server as its child process.
func TestGoSDKClientStdio(t *testing.T) {
	for _, version := range append([]string{modern}, handshakes...) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			got := gosdk.Run(bounded(t), &mcp.CommandTransport{Command: exec.Command(program, "ours")}, version)
			check(t, got, want(version))
		})
	}
}

// Our client, and the official Go SDK's server as its child process.
func TestGoSDKServerStdio(t *testing.T) {
	for _, version := range handshakes {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			got := ours.Run(bounded(t), stdio.Command(program, "go-sdk"), version)
			check(t, got, want(version, structured, goSDKMissing))
		})
	}
	// Its server keeps one subscription per pipe.
	for _, skip := range []string{script.StepSubscribe, script.StepGrow} {
		t.Run(modern+" without "+skip, func(t *testing.T) {
			t.Parallel()
			got := ours.Run(bounded(t), stdio.Command(program, "go-sdk"), modern, skip)
			check(t, got, script.Want(modern, skip))
		})
	}
}

// The official Go SDK's client, and our server over Streamable HTTP: one
// endpoint for every revision.
func TestGoSDKClientHTTP(t *testing.T) {
	for _, version := range append([]string{modern}, handshakes...) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			e := serveOurs(t)
			got := gosdk.Run(bounded(t), &mcp.StreamableClientTransport{Endpoint: e.url}, version)
			check(t, got, want(version))
			e.seen.check(t, version)
			e.traffic.check(t, version)
		})
	}
}

// Our client, and the official Go SDK's server over Streamable HTTP, which
// serves each era with a handler of its own.
func TestGoSDKServerHTTP(t *testing.T) {
	serve := func(t *testing.T, o *mcp.StreamableHTTPOptions) string {
		s := gosdk.NewServer()
		return listen(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, o))
	}
	for _, version := range handshakes {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			d, log := dialer(t, serve(t, nil))
			check(t, ours.Run(bounded(t), d, version), want(version, structured, goSDKMissing))
			log.check(t, version)
		})
	}
	// Without a revision of the client's choice: the server refuses the newest
	// one and names those it has.
	t.Run("negotiated", func(t *testing.T) {
		t.Parallel()
		d, _ := dialer(t, serve(t, nil))
		check(t, ours.Run(bounded(t), d, ""), want(legacy, structured, goSDKMissing))
	})
	t.Run(modern, func(t *testing.T) {
		t.Parallel()
		d, log := dialer(t, serve(t, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}))
		check(t, ours.Run(bounded(t), d, ""), want(modern))
		log.check(t, modern)
	})
}

// The official Go SDK over HTTP+SSE, which 2024-11-05 has: its client with our
// server, and our client with its server.
func TestGoSDKSSE(t *testing.T) {
	t.Run("client", func(t *testing.T) {
		t.Parallel()
		got := gosdk.Run(bounded(t), &mcp.SSEClientTransport{Endpoint: serveSSE(t)}, first)
		check(t, got, want(first))
	})
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		s := gosdk.NewServer()
		url := listen(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))
		check(t, ours.Run(bounded(t), sse.URL(url), first), want(first, structured, goSDKMissing))
	})
	// A client that does not know what it will find tries the newer transport.
	t.Run("server found", func(t *testing.T) {
		t.Parallel()
		s := gosdk.NewServer()
		url := listen(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))
		got := ours.Run(bounded(t), transport.First(streamable.URL(url), sse.URL(url)), "")
		check(t, got, want(legacy, structured, goSDKMissing))
	})
}

// goSDKMissing: the server answers for what does not exist as the newest
// revision says, in every revision.
func goSDKMissing(r *script.Report) { r.Missing = script.Want(modern).Missing }
