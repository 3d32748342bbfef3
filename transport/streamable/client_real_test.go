package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A shakenDialer gives links that have done the handshake.
type shakenDialer struct {
	*streamable.Dialer
	version string
}

func (d shakenDialer) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	link, err := d.Dialer.Dial(ctx, in)
	if err != nil {
		return nil, err
	}
	m := &jsonrpc.Outgoing{
		ID: jsonrpc.StringID("handshake"), Method: "initialize",
		Params: jsonrpc.JSON(map[string]string{"protocolVersion": d.version}),
	}
	_, err = link.Do(ctx, m, transport.Route{})
	if err == nil {
		err = link.Establish(ctx, transport.Established{Version: d.version, Handshake: true})
	}
	if err != nil {
		return nil, errors.Join(err, link.Close(ctx))
	}
	return separate{link}, nil
}

// A separate link gives each request a response of its own: the answer to one
// that is not waited for any more has no way to come, and the kit must not
// wait for it either.
type separate struct{ transport.Link }

func (l separate) Traits() transport.Traits {
	traits := l.Link.Traits()
	traits.Abandons = true
	return traits
}

// endpoint serves h until the test ends, and returns where.
func endpoint(t *testing.T, h transport.Handler, o *streamable.Options) string {
	t.Helper()
	e := streamable.NewHandler(h, o)
	s := webtest.Serve(t, e)
	webtest.Abort(t, e.Shutdown)
	return s.URL
}

// Proves: SEC-DOS-1, FLOW-SHUTDOWN. Client and server of this package keep the
// contract of package transport, in each revision with a handshake.
func TestTransportOfSessions(t *testing.T) {
	for _, version := range []string{primed, "2025-06-18", headless} {
		t.Run(version, func(t *testing.T) {
			mcptest.TestTransport(t, func(t *testing.T, h transport.Handler, o mcptest.TransportOptions) transport.Dialer {
				url := endpoint(t, h, &streamable.Options{MaxMessage: o.MaxMessage})
				return shakenDialer{streamable.URL(url), version}
			})
		})
	}
}

// Proves: FLOW-CANCEL, FLOW-PROGRESS. A stateless revision over real
// connections: many requests at once, notifications in order before their
// answer, and a context whose end reaches the handler.
func TestTransportStateless(t *testing.T) {
	mcptest.NoLeaks(t)
	cancelled := make(chan error, 1)
	url := endpoint(t, statelessPeer{cancelled}, nil)
	in := linktest.NewInboxOf(4000)
	link, err := streamable.URL(url).Dial(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	for g := range 8 {
		go func() {
			var failed error
			for i := range 25 {
				method := []string{"peer/echo", "peer/notes"}[i%2]
				m := ask(int64(100*g+i+1), method)
				got, err := link.Do(t.Context(), m, modernRoute(method))
				if err == nil && got.ID != m.ID {
					err = fmt.Errorf("the answer has id %s, the request %s", got.ID, m.ID)
				}
				failed = errors.Join(failed, err)
			}
			errs <- failed
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := len(in.Messages); n != 8*12*10 {
		t.Errorf("%d notes arrived, want %d", n, 8*12*10)
	}
	for len(in.Messages) > 0 {
		<-in.Messages
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := link.Do(ctx, ask(1, "peer/wait"), modernRoute("peer/wait"))
		done <- err
	}()
	<-in.Messages // it waits now
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want context.Canceled", err)
	}
	if err := <-cancelled; err == nil {
		t.Error("the handler was not cancelled")
	}
	shut(t, link, in)
}

// A statelessPeer serves the requests of TestTransportStateless.
type statelessPeer struct{ cancelled chan error }

func (statelessPeer) Open(transport.Conn) (transport.Session, error) {
	return nil, errors.New("no sessions here")
}

func (statelessPeer) Refused(context.Context, transport.Refusal) {}

func (p statelessPeer) Serve(ctx context.Context, x *transport.Exchange) {
	tell := func(n int) {
		_ = x.Out.Send(ctx, &jsonrpc.Outgoing{Method: "test/note", Params: jsonrpc.JSON(map[string]int{"n": n})})
	}
	switch x.In.Method {
	case "peer/notes":
		for n := range 10 {
			tell(n)
		}
	case "peer/wait":
		tell(0)
		<-ctx.Done()
		p.cancelled <- context.Cause(ctx)
		return
	}
	_ = x.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Result: jsonrpc.Empty()})
}
