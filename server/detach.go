package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// Detach runs next in the background with a copy of the call that outlives its
// request, for extensions whose results come later. The copy has the request's
// parameters, caller and capabilities; its context ends when cancel is called
// and when the server ends, which waits for it. No time limit holds for it, what
// it would notify is dropped, and it asks through an extension's Asker or not
// at all. done is called once, with the result as the revision of the request
// encodes it, or with the error that the peer may see; a panic is an error too.
//
// What was asked, answered and done once in earlier rounds of the request holds
// for the copy too.
//
// Detach is called before next has been, by middleware or an extension's Wrap.
func (c *Call) Detach(next Func, done func(d *Call, result mcp.RawValue, err *jsonrpc.Error)) (d *Call, cancel context.CancelCauseFunc, err error) {
	d, err = c.detached()
	if err != nil {
		return nil, nil, fmt.Errorf("detaching %s: %w", c.Method(), err)
	}
	d.scope, cancel = context.WithCancelCause(c.srv.hub.ctx)
	started := c.srv.hub.spawn(func(context.Context) {
		defer cancel(nil)
		var (
			result mcp.RawValue
			err    = errGone
		)
		defer func() { // deferred, for handlers that end their goroutine
			if err != nil {
				done(d, nil, c.srv.wireError(d, err))
				return
			}
			done(d, result, nil)
		}()
		result, err = c.srv.finish(d, next)
	})
	if !started {
		cancel(errShutdown)
		return nil, nil, errShutdown
	}
	return d, cancel, nil
}

// detached is a copy of the call that shares no memory with its message, which
// is void after the exchange.
func (c *Call) detached() (*Call, error) {
	in := &jsonrpc.Incoming{Kind: c.x.In.Kind, ID: c.x.In.ID, Method: c.x.In.Method}
	if raw := c.x.In.Params.Raw(); len(raw) > 0 {
		params, err := wire.ParseObject(slices.Clone(raw), wire.Limits{Depth: maxDefinitionDepth})
		if err != nil {
			return nil, err
		}
		in.Params = params
	}
	x := &transport.Exchange{In: in, Out: noResponder{}, Principal: c.Principal(), Transport: c.x.Transport}
	d := c.srv.newCall(c.srv.hub.ctx, x, c.session)
	d.row, d.facts, d.target, d.caps = c.row, c.facts, c.target, c.caps
	if m := c.more.Load(); m != nil {
		d.extras().asks.take(&m.asks)
	}
	params, meta, err := c.row.decode(d, in)
	if err != nil {
		return nil, err
	}
	d.params = params
	if meta != nil {
		d.meta = meta
	}
	return d, nil
}

// finish runs a detached call to its encoded result.
func (s *Server) finish(d *Call, next Func) (_ mcp.RawValue, err error) {
	defer s.catch(d, &err)
	res, err := s.run(d, next)
	if d.needsInput() && !panicked(err) {
		return nil, fmt.Errorf("a detached call asked in a way that needs its request: %w", ErrCannotAsk)
	}
	if err != nil {
		return nil, err
	}
	if res, err = d.era().settle(d, res); err != nil {
		return nil, err
	}
	body, err := d.encode(res)
	if err != nil {
		return nil, err
	}
	return body.AppendJSON(nil)
}

// errGone is for a handler that ended its goroutine instead of returning.
var errGone = errors.New("the handler ended its goroutine")

// noResponder is the responder of a detached call.
type noResponder struct{}

// Send drops notifications; a request fails.
func (noResponder) Send(_ context.Context, m *jsonrpc.Outgoing) error {
	if m.ID.IsZero() {
		return nil
	}
	return jsonrpc.ErrEnded
}

func (noResponder) Answer(context.Context, *jsonrpc.Outgoing) error { return jsonrpc.ErrEnded }
