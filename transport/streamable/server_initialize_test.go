package streamable_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
)

// A greeter says something before it answers the handshake, and tries to
// afterwards.
type greeter struct {
	*peer
	late chan error
}

func (g *greeter) Open(c transport.Conn) (transport.Session, error) {
	s, err := g.peer.Open(c)
	return &greeting{s.(*peerSession), g}, err
}

type greeting struct {
	*peerSession
	g *greeter
}

func (s *greeting) Begin(ctx context.Context, x *transport.Exchange) func() {
	run := s.peerSession.Begin(ctx, x)
	return func() {
		s.g.late <- notify(ctx, x.Out, 1)
		run()
		s.g.late <- notify(ctx, x.Out, 2)
		s.g.late <- x.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Result: jsonrpc.Empty()})
	}
}

// The answer to initialize carries the session's id, so that it is JSON; what
// is said before it comes on the session's own stream.
func TestOpening(t *testing.T) {
	mcptest.NoLeaks(t)
	g := &greeter{newPeer(nil), make(chan error, 10)}
	s := newSite(t, g, nil)
	id := s.open(v2511)
	if err := <-g.late; err != nil {
		t.Errorf("Send before the answer: %v", err)
	}
	for range 2 {
		if err := <-g.late; !errors.Is(err, jsonrpc.ErrEnded) {
			t.Errorf("after the answer: %v, want ErrEnded", err)
		}
	}
	f := s.follow(http.MethodGet, "", "Mcp-Session-Id", id)
	f.primed()
	f.wants(noted(1))
}

// A handshake that nobody answers opens nothing.
func TestOpeningAbandoned(t *testing.T) {
	mcptest.NoLeaks(t)
	p := &silent{}
	s := newSite(t, p, nil)
	r := s.send(http.MethodPost, rpc(0, "initialize", initialize))
	s.check("initialize", r, 200, "-32603", `"id":0`)
	if r.header.Get("Mcp-Session-Id") != "" || !errors.Is(p.closed, transport.ErrClosed) {
		t.Errorf("session %q, closed with %v", r.header.Get("Mcp-Session-Id"), p.closed)
	}
}

// silent answers nothing.
type silent struct {
	transport.Handler
	transport.Session
	closed error
}

func (s *silent) Open(transport.Conn) (transport.Session, error)          { return s, nil }
func (s *silent) Begin(context.Context, *transport.Exchange) (run func()) { return nil }
func (s *silent) Close(cause error)                                       { s.closed = cause }

// A hasty peer closes the connection while it makes the handshake.
type hasty struct{ *peer }

func (p hasty) Open(c transport.Conn) (transport.Session, error) {
	s, err := p.peer.Open(c)
	return &hastySession{s.(*peerSession), make(chan struct{})}, err
}

type hastySession struct {
	*peerSession
	over chan struct{}
}

func (s *hastySession) Begin(ctx context.Context, x *transport.Exchange) func() {
	run := s.peerSession.Begin(ctx, x)
	return func() {
		_ = s.conn.Close(nil)
		<-s.over
		run()
	}
}

func (s *hastySession) Close(cause error) {
	s.peerSession.Close(cause)
	close(s.over)
}

// A session that has ended before its handshake was answered is not handed out:
// nobody would ever end it again.
func TestOpeningEnded(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newSite(t, hasty{newPeer(nil)}, nil)
	r := s.send(http.MethodPost, rpc(0, "initialize", initialize))
	s.check("initialize", r, 503, "try again")
	if id := r.header.Get("Mcp-Session-Id"); id != "" {
		t.Errorf("the session that has ended is called %q", id)
	}
}
