package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

const (
	modern = "2026-07-28"
	newest = "2025-11-25" // of the handshake era
)

// A script is a server made of functions by method. What it has no function
// for is answered with "method not found".
type script struct {
	versions []string // default: modern; without a modern one it does not know server/discover
	caps     string   // default: everything
	on       map[string]func(r *req) (any, error)
	noted    func(m *jsonrpc.Incoming) // takes notifications

	mu    sync.Mutex
	heard []*jsonrpc.Incoming // all requests and notifications, in order
	conns []*peerConn
	told  []*jsonrpc.Incoming // the client's answers
	seen  sync.Cond
}

// A req is one request that a script handles.
type req struct {
	ctx  context.Context //nolint:containedctx // a request lives as long as its context
	in   *jsonrpc.Incoming
	out  transport.Responder
	conn *peerConn
}

const allCaps = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}}`

// raw is a result that is JSON already.
type raw = wire.RawValue

// A peerConn is one connection to a script.
type peerConn struct {
	s    *script
	conn transport.Conn
	peer *jsonrpc.Peer
}

func (s *script) Serve(context.Context, *transport.Exchange) {}

func (s *script) Refused(context.Context, transport.Refusal) {}

func (s *script) Open(c transport.Conn) (transport.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A script answers all requests: one that it dropped would be missed for a minute.
	p := &peerConn{s: s, conn: c, peer: jsonrpc.NewPeer(&jsonrpc.PeerOptions{MaxInFlight: 1 << 16})}
	s.conns = append(s.conns, p)
	return p, nil
}

func (s *script) note(m *jsonrpc.Incoming) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, m)
	if s.seen.L != nil {
		s.seen.Broadcast()
	}
}

// await returns the n-th message of a method, counted from 1, once it is there.
func (s *script) await(method string, n int) *jsonrpc.Incoming {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.L = &s.mu
	for {
		left := n
		for _, m := range s.heard {
			if m.Method == method {
				if left--; left == 0 {
					return m
				}
			}
		}
		s.seen.Wait()
	}
}

// got returns what was heard of a method so far.
func (s *script) got(method string) []*jsonrpc.Incoming {
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []*jsonrpc.Incoming
	for _, m := range s.heard {
		if m.Method == method {
			got = append(got, m)
		}
	}
	return got
}

// methods returns the methods heard, in order.
func (s *script) methods() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []string
	for _, m := range s.heard {
		got = append(got, m.Method)
	}
	return got
}

// last returns the latest connection.
func (s *script) last() *peerConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns[len(s.conns)-1]
}

func (p *peerConn) Begin(ctx context.Context, x *transport.Exchange) func() {
	p.s.note(x.In)
	ctx, end, err := p.peer.Begin(ctx, x.In.ID)
	if err != nil {
		return nil
	}
	return func() {
		defer end()
		result, err := p.s.handle(&req{ctx, x.In, x.Out, p})
		if ctx.Err() != nil {
			return
		}
		m := &jsonrpc.Outgoing{ID: x.In.ID}
		switch {
		case errors.Is(err, errSilent):
			<-ctx.Done()
			return
		case err != nil:
			var e *jsonrpc.Error
			if !errors.As(err, &e) {
				e = jsonrpc.NewError(jsonrpc.CodeInternalError, "%v", err)
			}
			m.Error = e
		default:
			m.Result = jsonrpc.JSON(result)
		}
		_ = x.Out.Answer(context.WithoutCancel(ctx), m)
	}
}

var errSilent = errors.New("no answer")

func (s *script) handle(r *req) (any, error) {
	if f := s.on[r.in.Method]; f != nil {
		return f(r)
	}
	versions := s.versions
	if versions == nil {
		versions = []string{modern}
	}
	caps := s.caps
	if caps == "" {
		caps = allCaps
	}
	switch r.in.Method {
	case mcp.MethodDiscover:
		if !slices.Contains(versions, modern) {
			break
		}
		list, _ := wire.Marshal(versions)
		return raw(fmt.Sprintf(`{"resultType":"complete","supportedVersions":%s,"capabilities":%s,"instructions":"be kind","ttlMs":0,"cacheScope":"private",`+
			`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"script","version":"1"}}}`, list, caps)), nil
	case mcp.MethodInitialize:
		version := member[string](r.in.Params, "protocolVersion")
		if !slices.Contains(versions, version) {
			version = versions[0]
		}
		return raw(fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"script","version":"1"},"instructions":"be kind"}`, version, caps)), nil
	case mcp.MethodPing, mcp.MethodSetLevel, mcp.MethodResourcesSubscribe, mcp.MethodResourcesUnsubscribe:
		return raw(`{}`), nil
	}
	return nil, jsonrpc.NewError(jsonrpc.CodeMethodNotFound, "no method %s", r.in.Method)
}

func (p *peerConn) Accept(m *jsonrpc.Incoming) {
	if m.Kind == jsonrpc.Response {
		p.s.mu.Lock()
		p.s.told = append(p.s.told, m)
		p.s.mu.Unlock()
		p.peer.Resolve(m)
		return
	}
	if m.Method == mcp.NotifyCancelled {
		var c mcp.CancelledParams
		if wire.DecodeParams(m.Params.Raw(), &c) == nil {
			p.peer.Cancel(c.RequestID, context.Canceled)
		}
	}
	p.s.note(m)
	if p.s.noted != nil {
		p.s.noted(m)
	}
}

func (p *peerConn) Rules() transport.Rules { return transport.Rules{} }

func (p *peerConn) Ending()           {}
func (p *peerConn) Close(cause error) { p.peer.Close(cause) }

// end ends the connection as a server does that dies.
func (p *peerConn) end() { _ = p.conn.Close(transport.ErrClosed) }

// ask sends a request to the client and waits for its answer.
func (p *peerConn) ask(ctx context.Context, method, params string) (*jsonrpc.Incoming, error) {
	return p.peer.Call(ctx, p.conn, method, jsonrpc.Raw(raw(params)))
}

// tell sends a notification to the client.
func (p *peerConn) tell(ctx context.Context, method, params string) error {
	return p.conn.Send(ctx, &jsonrpc.Outgoing{Method: method, Params: jsonrpc.Raw(raw(params))})
}

// tell sends a notification that belongs to the request.
func (r *req) tell(method, params string) error {
	return r.out.Send(r.ctx, &jsonrpc.Outgoing{Method: method, Params: jsonrpc.Raw(raw(params))})
}

// meta returns a member of the request's _meta as text, or "".
func meta(m *jsonrpc.Incoming, key string) string {
	o, _ := m.Params.Object("_meta")
	v, _ := o.Member(key)
	return string(v)
}

// member decodes a member of an object; the zero value if it is absent.
func member[T any](o wire.Object, name string) T {
	var v T
	if text, ok := o.Member(name); ok {
		if err := wire.Decode(text, &v); err != nil {
			panic(err)
		}
	}
	return v
}

// text returns a member of params as text, or "".
func text(m *jsonrpc.Incoming, name string) string {
	v, _ := m.Params.Member(name)
	return string(v)
}

// dial connects with any dialer and closes the client at the end of the test.
func dial(t *testing.T, d transport.Dialer, o *client.Options) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// connect connects to a script and closes the client at the end of the test.
func connect(t *testing.T, s *script, o *client.Options) *client.Client {
	t.Helper()
	return dial(t, mem.New(s, &mem.Options{Principal: principal.Local}), o)
}

// eras runs a test body against a script of each era.
func eras(t *testing.T, body func(t *testing.T, versions []string)) {
	t.Run("modern", func(t *testing.T) { body(t, []string{modern}) })
	t.Run("handshake", func(t *testing.T) { body(t, []string{newest}) })
}
