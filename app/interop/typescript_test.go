package interop_test

import (
	"net/http"
	"testing"

	"github.com/parley-mcp/parley/app/interop/ours"
	"github.com/parley-mcp/parley/app/interop/script"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

// overStdio are the options of a client's script that starts our server.
func overStdio(more map[string]any) map[string]any {
	o := map[string]any{"transport": "stdio", "command": program, "args": []string{"ours"}}
	for k, v := range more {
		o[k] = v
	}
	return o
}

// peer leads our client to a server's script over stdio.
func peer(t *testing.T, args ...string) *stdio.CommandDialer {
	t.Helper()
	dir := peersDir(t)
	d := stdio.Command(nodePath(t, dir), args...)
	d.Dir = dir
	d.Stderr = t.Output()
	return d
}

// The client of the TypeScript SDK, version 1, with our server.
func TestTypeScriptV1Client(t *testing.T) {
	const file = "v1-client.mjs"
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		check(t, runClient(t, file, overStdio(nil)), want(legacy))
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		peersDir(t)
		e := serveOurs(t)
		check(t, runClient(t, file, map[string]any{"transport": "http", "url": e.url}), want(legacy))
		e.seen.check(t, legacy)
		e.traffic.check(t, legacy)
	})
	t.Run("sse", func(t *testing.T) {
		t.Parallel()
		peersDir(t)
		check(t, runClient(t, file, map[string]any{"transport": "sse", "url": serveSSE(t)}), want(legacy))
	})
	t.Run("websocket", func(t *testing.T) {
		t.Parallel()
		peersDir(t)
		check(t, runClient(t, file, map[string]any{"transport": "websocket", "url": serveWebSocket(t)}), want(legacy))
	})
}

// Our client with the server of the TypeScript SDK, version 1.
func TestTypeScriptV1Server(t *testing.T) {
	const file = "v1-server.mjs"
	for _, version := range append([]string{""}, handshakes...) {
		t.Run("stdio "+version, func(t *testing.T) {
			t.Parallel()
			expected := script.Want(negotiated(version))
			typescriptServer(&expected)
			check(t, ours.Run(bounded(t), peer(t, file, "stdio"), version), expected)
		})
		t.Run("http "+version, func(t *testing.T) {
			t.Parallel()
			d, log := dialer(t, startServer(t, nil, file, "http"))
			expected := script.Want(negotiated(version))
			typescriptServer(&expected)
			check(t, ours.Run(bounded(t), d, version), expected)
			if version != "" {
				log.check(t, version)
			}
		})
	}
	t.Run("sse", func(t *testing.T) {
		t.Parallel()
		url := startServer(t, nil, file, "sse")
		check(t, ours.Run(bounded(t), sse.URL(url), first), want(first, typescriptServer))
	})
	// A client that does not know what it will find tries the newer transport.
	t.Run("sse found", func(t *testing.T) {
		t.Parallel()
		url := startServer(t, nil, file, "sse")
		got := ours.Run(bounded(t), transport.First(streamable.URL(url), sse.URL(url)), "")
		check(t, got, want(legacy, typescriptServer))
	})
}

// negotiated is the revision that comes of asking an older server for version.
func negotiated(version string) string {
	if version == "" {
		return legacy
	}
	return version
}

// typescriptServer: the servers give structured content in every revision, and
// answer for what does not exist as the newest one says.
func typescriptServer(r *script.Report) {
	structured(r)
	goSDKMissing(r)
}

// The client of the TypeScript SDK, version 2, with our server, in each mode of
// its negotiation.
func TestTypeScriptV2Client(t *testing.T) {
	const file = "v2-client.mjs"
	for name, mode := range map[string]struct {
		mode    any
		version string
	}{
		"legacy": {"legacy", legacy},
		"auto":   {"auto", modern},
		"pinned": {map[string]string{"pin": modern}, modern},
	} {
		t.Run("stdio "+name, func(t *testing.T) {
			t.Parallel()
			check(t, runClient(t, file, overStdio(map[string]any{"mode": mode.mode})), want(mode.version))
		})
		t.Run("http "+name, func(t *testing.T) {
			t.Parallel()
			peersDir(t)
			e := serveOurs(t)
			got := runClient(t, file, map[string]any{"transport": "http", "url": e.url, "mode": mode.mode})
			check(t, got, want(mode.version))
			e.seen.check(t, mode.version)
			e.traffic.check(t, mode.version)
		})
	}
}

// Our client with the server of the TypeScript SDK, version 2.
func TestTypeScriptV2Server(t *testing.T) {
	const file = "v2-server.mjs"
	for _, version := range append([]string{modern}, handshakes...) {
		t.Run("stdio "+version, func(t *testing.T) {
			t.Parallel()
			check(t, ours.Run(bounded(t), peer(t, file, "stdio"), version), want(version, typescriptServer))
		})
	}
	t.Run("http "+modern, func(t *testing.T) {
		t.Parallel()
		d, log := dialer(t, startServer(t, nil, file, "http"))
		check(t, ours.Run(bounded(t), d, ""), want(modern))
		log.check(t, modern)
	})
	// The same endpoint serves the handshake era without sessions, so that it
	// can neither ask nor tell of changes, nor learn that a call was cancelled.
	t.Run("http without sessions", func(t *testing.T) {
		t.Parallel()
		d, log := dialer(t, startServer(t, nil, file, "http"))
		skip := []string{script.StepQuestions, script.StepModel, script.StepSubscribe, script.StepGrow, script.StepCancel}
		expected := script.Want(legacy, skip...)
		typescriptServer(&expected)
		check(t, ours.Run(bounded(t), d, legacy, skip...), expected)
		for _, e := range log.entries() {
			if e.Session || e.Opened || e.Method == http.MethodDelete {
				t.Errorf("without sessions: %+v", e)
			}
		}
	})
	t.Run("http with sessions", func(t *testing.T) {
		t.Parallel()
		d, log := dialer(t, startServer(t, nil, file, "sessions"))
		check(t, ours.Run(bounded(t), d, legacy), want(legacy, typescriptServer))
		log.check(t, legacy)
	})
}
