package flows_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/linetest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
)

// The revisions, by when they came.
const (
	y2024   = "2024-11-05"
	march   = "2025-03-26"
	june    = "2025-06-18"
	autumn  = "2025-11-25" // the newest with a handshake
	newest  = "2026-07-28" // the stateless one
	unknown = "1999-12-31"
)

var versions = []string{newest, autumn, june, march, y2024}

type raw = wire.RawValue

// ada is a caller over HTTP, whom rates hold for.
var ada = &principal.Principal{Issuer: "https://as.example", Subject: "ada", Client: "c1"}

// quiet is a server's options for tests that look at its answers only.
func quiet() *server.Options {
	return &server.Options{Logger: slog.New(slog.DiscardHandler)}
}

// A joiner makes a client of a server that the test can reach as well.
type joiner func(o *client.Options) (*server.Server, *client.Client)

// eachServer runs body in every era in which one server lives through all
// requests, so that it can be changed under way.
func eachServer(t *testing.T, build mcptest.Build, body func(t *testing.T, era mcptest.Era, join joiner)) {
	t.Helper()
	for _, era := range mcptest.Eras(t, build) {
		if era.Fresh {
			continue
		}
		t.Run(era.String(), func(t *testing.T) {
			mcptest.NoLeaks(t)
			body(t, era, joining(t, build, era))
		})
	}
}

// bubbles runs body in every revision over memory, in fake time.
func bubbles(t *testing.T, build mcptest.Build, body func(t *testing.T, era mcptest.Era, join joiner)) {
	t.Helper()
	for _, version := range versions {
		era := mcptest.Era{Version: version, Transport: "mem"}
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { body(t, era, joining(t, build, era)) })
		})
	}
}

func joining(t *testing.T, build mcptest.Build, era mcptest.Era) joiner {
	return func(o *client.Options) (*server.Server, *client.Client) {
		var s *server.Server
		c := mcptest.Join(t, func(tb testing.TB, so *server.Options) *server.Server {
			s = build(tb, so)
			return s
		}, o, era)
		return s, c
	}
}

// with makes a Build of features.
func with(features ...server.Feature) mcptest.Build {
	return func(t testing.TB, o *server.Options) *server.Server {
		s := server.New("flows", "1.2.3", o)
		s.Add(features...)
		return s
	}
}

// code gives the code of a JSON-RPC error in an error chain; 0 if there
// is none.
func code(err error) int64 {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// lines is the client's end of a connection, one line at a time.
type lines struct {
	*linetest.Conn
	t *testing.T
}

// dial serves h to a peer that writes lines by hand.
func dial(t *testing.T, h transport.Handler, o *stdio.Options) *lines {
	t.Helper()
	if s, ok := h.(*server.Server); ok {
		webtest.Abort(t, s.Shutdown)
	}
	return &lines{linetest.Dial(t, func(ctx context.Context, far net.Conn) error { return stdio.ServeConn(ctx, far, h, o) }), t}
}

// send writes one line.
func (l *lines) send(format string, args ...any) {
	l.t.Helper()
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	l.WriteLine(format)
}

// next reads one line.
func (l *lines) next() message {
	l.t.Helper()
	return message{l.t, l.ReadLine()}
}

// ask sends a line and reads one.
func (l *lines) ask(format string, args ...any) message {
	l.t.Helper()
	l.send(format, args...)
	return l.next()
}

// shake makes a handshake of a revision.
func (l *lines) shake(version, capabilities string) message {
	l.t.Helper()
	m := l.ask(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"hand","version":"1"}}}`, version, capabilities)
	l.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return m
}

// meta is the _meta member of a request of the stateless revision.
func meta(capabilities string) string {
	return `"_meta":{"` + mcp.MetaProtocolVersion + `":"` + newest + `","` + mcp.MetaClientCapabilities + `":` + capabilities + `}`
}

// A message is one line of the server.
type message struct {
	t    *testing.T
	text string
}

// at gives what is at a path of members, as JSON; "" if it is not there.
func (m message) at(path ...string) string {
	m.t.Helper()
	value := raw(m.text)
	for _, name := range path {
		o, err := wire.ParseObject(value, wire.Limits{})
		if err != nil {
			m.t.Fatalf("%s of %s: %v", name, m.text, err)
		}
		var ok bool
		if value, ok = o.Member(name); !ok {
			return ""
		}
	}
	return string(value)
}

// code gives the code of an error response, as text.
func (m message) code() string {
	if m.at("error") == "" {
		return ""
	}
	return m.at("error", "code")
}

// want compares the value at a path.
func (m message) want(want string, path ...string) {
	m.t.Helper()
	got := m.at(path...)
	if got == want || got != "" && want != "" && wire.Equal(raw(got), raw(want)) {
		return
	}
	m.t.Errorf("%s is %q, want %q in %s", strings.Join(path, "."), got, want, m.text)
}

// fails compares the code of an error.
func (m message) fails(code int, id string) {
	m.t.Helper()
	m.want(fmt.Sprint(code), "error", "code")
	m.want(id, "id")
}

// collect gathers a sequence with errors, and fails the test at the first.
func collect[T any](t *testing.T, seq func(yield func(T, error) bool)) []T {
	t.Helper()
	var all []T
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// text is the text of a result of one block.
func text(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	if len(r.Content) != 1 {
		t.Fatalf("%d blocks of content, want 1", len(r.Content))
	}
	c, ok := r.Content[0].(*mcp.TextContent)
	if !ok {
		t.Fatalf("content is %T, want text", r.Content[0])
	}
	return c.Text
}

// since reports whether a revision is one of those from first on.
func since(version, first string) bool { return version >= first }

// jsonText is v as JSON.
func jsonText(t *testing.T, v any) raw {
	t.Helper()
	text, err := wire.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// object is the object at a path.
func (m message) object(path ...string) wire.Object {
	m.t.Helper()
	o, err := wire.ParseObject(raw(m.at(path...)), wire.Limits{})
	if err != nil {
		m.t.Fatalf("%v of %s: %v", path, m.text, err)
	}
	return o
}
