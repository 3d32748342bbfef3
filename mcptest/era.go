package mcptest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/websocket"
)

// A Build makes a server out of options, to which it may add. The options that
// it is given carry the keys that all servers of a test share. What it opens
// for the server is closed with tb.Cleanup, and is then no leak. It may be called
// several times in a test, also by several goroutines at once (see Era.Fresh).
type Build func(tb testing.TB, o *server.Options) *server.Server

// An Era is one way in which a client and a server can be joined.
type Era struct {
	// Version is the protocol revision that the client is pinned to.
	Version string
	// Transport is "mem", "stdio", "streamable", "sse" or "websocket".
	Transport string
	// Stateless says that the revision has neither handshake nor sessions.
	// Join does not need it.
	Stateless bool
	// Fresh says that every request is handled by a server value of its own,
	// so that only what travels on the wire survives between the rounds of
	// an asked request: hidden state shows.
	Fresh bool
}

// String names the era, as subtests do.
func (e Era) String() string {
	name := e.Version + "/" + e.Transport
	if e.Fresh {
		name += "/fresh"
	}
	return name
}

// A Filter says whether EachEra is to run an era.
type Filter func(era Era) bool

// Over keeps the eras over these transports.
func Over(transports ...string) Filter {
	return func(era Era) bool { return slices.Contains(transports, era.Transport) }
}

// In keeps the eras of these protocol revisions.
func In(versions ...string) Filter {
	return func(era Era) bool { return slices.Contains(versions, era.Version) }
}

// Stateless keeps the eras of revisions without handshake.
func Stateless(era Era) bool { return era.Stateless }

// Sessions keeps the eras of revisions with handshake and sessions.
func Sessions(era Era) bool { return !era.Stateless }

// EachEra runs a test body for every protocol revision over memory, pipes and
// Streamable HTTP, for the oldest over HTTP+SSE, and for one of each family of
// revisions over WebSocket, with
// a client that is connected to a server of its own. Client options may be
// nil; their Versions are replaced. With filters, only the eras are run that all
// of them keep; that none is left fails the test. Afterwards client and server are closed,
// and a goroutine that is left fails the test.
//
// An ask in a stateless revision always runs the handler again from the top.
// On top of that the stateless revisions are run with a fresh server value for
// every request.
func EachEra(t *testing.T, build Build, o *client.Options, body func(t *testing.T, era Era, c *client.Client), filters ...Filter) {
	t.Helper()
	eras := slices.DeleteFunc(Eras(t, build), func(era Era) bool {
		return slices.ContainsFunc(filters, func(keep Filter) bool { return !keep(era) })
	})
	if len(eras) == 0 {
		t.Error("the filters leave no era to run")
	}
	for _, era := range eras {
		t.Run(era.String(), func(t *testing.T) {
			NoLeaks(t)
			body(t, era, Join(t, build, o, era))
		})
	}
}

// Eras lists what EachEra runs without filters.
func Eras(tb testing.TB, build Build) []Era {
	tb.Helper()
	s := build(tb, options())
	defer closeServer(s)
	var eras []Era
	versions, stateless := s.Versions(), modern(s)
	for _, v := range versions {
		for _, name := range []string{"mem", "stdio", "streamable"} {
			eras = append(eras, Era{Version: v, Transport: name, Stateless: slices.Contains(stateless, v)})
		}
	}
	for _, v := range stateless {
		eras = append(eras,
			Era{Version: v, Transport: "websocket", Stateless: true},
			Era{Version: v, Transport: "mem", Stateless: true, Fresh: true},
			Era{Version: v, Transport: "streamable", Stateless: true, Fresh: true})
	}
	if shaken := versions[len(stateless):]; len(shaken) > 0 {
		eras = append(eras,
			Era{Version: shaken[0], Transport: "websocket"},
			Era{Version: shaken[len(shaken)-1], Transport: "sse"}) // the revision that had it
	}
	return eras
}

// Client connects a client to a server in memory, for the length of the test:
//
//	c := mcptest.Client(t, s)
//
// Its options may be left out.
func Client(t testing.TB, h transport.Handler, o ...*client.Options) *client.Client {
	t.Helper()
	var opts *client.Options
	if len(o) > 0 {
		opts = o[0]
	}
	return connect(t, mem.New(h, nil), opts)
}

// connect connects a client that is closed at the end of the test.
func connect(t testing.TB, d transport.Dialer, o *client.Options) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), d, o)
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("closing the client: %v", err)
		}
	})
	return c
}

// Join connects a client to a server in the way of an era, for the length of
// the test.
func Join(t testing.TB, build Build, o *client.Options, era Era) *client.Client {
	t.Helper()
	var h transport.Handler
	if era.Fresh {
		h = &fresh{tb: t, build: build}
	} else {
		s := build(t, options())
		t.Cleanup(func() { closeServer(s) })
		h = s
	}
	opts := client.Options{}
	if o != nil {
		opts = *o
	}
	opts.Versions = []string{era.Version}
	return connect(t, Dialer(t, h, era.Transport), &opts)
}

// Dialer joins to a handler by a transport: "mem"; "stdio" for lines on a pair
// of pipes; "streamable", "sse" or "websocket" over HTTP on the loopback
// interface.
func Dialer(t testing.TB, h transport.Handler, name string) transport.Dialer {
	t.Helper()
	switch name {
	case "mem":
		return mem.New(h, nil)
	case "stdio":
		return &piped{t: t, h: h}
	case "streamable":
		endpoint := streamable.NewHandler(h, nil)
		return streamable.URL("http" + listen(t, endpoint, endpoint.Shutdown))
	case "sse":
		endpoint := sse.NewHandler(h, nil)
		return sse.URL("http" + listen(t, endpoint, endpoint.Shutdown))
	case "websocket":
		endpoint := websocket.NewHandler(h, nil)
		return websocket.URL("ws" + listen(t, endpoint, endpoint.Shutdown))
	}
	t.Fatalf("unknown transport %q", name)
	return nil
}

// listen serves an endpoint until the test ends, and returns its address from
// "://" on.
func listen(t testing.TB, endpoint http.Handler, shutdown func(ctx context.Context) error) string {
	t.Helper()
	s := httptest.NewServer(endpoint)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = shutdown(ctx) // the error is that of ctx
		s.Close()
	})
	return strings.TrimPrefix(s.URL, "http")
}

// options are what every server of a test gets.
func options() *server.Options {
	return &server.Options{
		StateKeys: [][]byte{[]byte("the state key of package mcptest")},
		Logger:    slog.New(slog.DiscardHandler),
	}
}

// modern are the stateless revisions of a server: those that answer
// server/discover.
func modern(s *server.Server) []string {
	all := s.Versions()
	c, err := client.Connect(context.Background(), mem.New(s, nil), &client.Options{Versions: all})
	if err != nil {
		return nil
	}
	defer func() { _ = c.Close() }() // only its version is of interest
	if !c.Modern() {
		return nil
	}
	return []string{c.Version()}
}

// closeServer ends a server at once.
func closeServer(s *server.Server) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Shutdown(ctx) // the error is that of ctx
}

// piped serves each connection over a pair of pipes.
type piped struct {
	t testing.TB
	h transport.Handler
}

func (p *piped) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	near, far := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		err := stdio.ServeConn(context.Background(), far, p.h, nil)
		if err != nil && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, transport.ErrClosed) {
			p.t.Logf("serving over pipes: %v", err)
		}
	})
	p.t.Cleanup(func() {
		_ = near.Close() // never fails
		wg.Wait()
	})
	return stdio.Conn(near).Dial(ctx, in)
}

func (p *piped) Key() string { return "" }

// fresh hands every request to a server of its own.
type fresh struct {
	tb    testing.TB
	build Build
}

func (f *fresh) Serve(ctx context.Context, x *transport.Exchange) {
	s := f.build(f.tb, options())
	defer closeServer(s)
	s.Serve(ctx, hinting(x))
}

// hinting is an exchange whose answer says what may be wrong with the test where
// a server did not take the state of another one.
func hinting(x *transport.Exchange) *transport.Exchange {
	own := *x
	own.Out = hintingResponder{x.Out}
	return &own
}

type hintingResponder struct{ transport.Responder }

func (h hintingResponder) Answer(ctx context.Context, m *jsonrpc.Outgoing) error {
	if m.Error != nil && strings.HasPrefix(m.Error.Message, "requestState is not valid") {
		e, out := *m.Error, *m
		e.Message += " (mcptest: each request has a server of its own here, made by Build; " +
			"does Build give the options that it gets to server.New? They hold the key of the state)"
		out.Error = &e
		m = &out
	}
	return h.Responder.Answer(ctx, m)
}

func (f *fresh) Open(conn transport.Conn) (transport.Session, error) {
	return &freshSession{tb: f.tb, build: f.build, conn: conn, live: make(map[transport.Session]struct{})}, nil
}

func (f *fresh) Refused(context.Context, transport.Refusal) {}

type freshSession struct {
	tb    testing.TB
	build Build
	conn  transport.Conn
	mu    sync.Mutex
	live  map[transport.Session]struct{}
}

func (f *freshSession) Begin(ctx context.Context, x *transport.Exchange) func() {
	s := f.build(f.tb, options())
	one, err := s.Open(f.conn)
	if err != nil {
		panic("mcptest: a new server refuses a connection: " + err.Error())
	}
	end := func() {
		one.Close(transport.ErrClosed) // first: the server would close the connection
		closeServer(s)
	}
	run := one.Begin(ctx, hinting(x))
	if run == nil {
		end()
		return nil
	}
	f.mu.Lock()
	f.live[one] = struct{}{}
	f.mu.Unlock()
	return func() {
		defer func() {
			f.mu.Lock()
			delete(f.live, one)
			f.mu.Unlock()
			end()
		}()
		run()
	}
}

func (f *freshSession) Accept(m *jsonrpc.Incoming) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for one := range f.live {
		one.Accept(m)
	}
}

func (f *freshSession) Rules() transport.Rules { return transport.Rules{} }

func (f *freshSession) Ending() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for one := range f.live {
		one.Ending()
	}
}

func (f *freshSession) Close(cause error) {
	f.mu.Lock()
	live := make([]transport.Session, 0, len(f.live))
	for one := range f.live {
		live = append(live, one)
	}
	f.mu.Unlock()
	for _, one := range live {
		one.Close(cause)
	}
}
