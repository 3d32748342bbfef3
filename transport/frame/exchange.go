package frame

import (
	"context"
	"sync/atomic"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
)

// An exchange is one request and its responder.
type exchange struct {
	transport.Exchange
	server   *server
	batch    *batch
	answered atomic.Bool
	// workNumber is the number of the reader's work that this request is, 0
	// while it is being begun, or ownGoroutine.
	workNumber atomic.Uint64
}

// Send sends a message that belongs to the exchange. It waits for room in the
// queue until ctx ends. A handler that sends before its answer often waits for
// a reply, and always for room: another goroutine goes on reading.
func (x *exchange) Send(ctx context.Context, m *jsonrpc.Outgoing) error {
	if n := x.workNumber.Load(); isWorking(n) && n != ownGoroutine {
		x.server.handOff(n)
	}
	return x.server.out.send(ctx, m, &x.answered)
}

// Answer sends the response. It waits for room until the connection ends, not
// only until ctx does: the answer to a request that ran out of time goes out
// too. A response that cannot be encoded leaves the exchange open, so that an
// error can be sent in its place.
func (x *exchange) Answer(_ context.Context, m *jsonrpc.Outgoing) error {
	if x.batch != nil {
		return x.batch.answer(x, m)
	}
	out := x.server.out
	switch n := x.workNumber.Load(); {
	case n == 0:
		return out.answer(m, &x.answered, byNewGoroutine)
	case !x.server.token.current(n): // also if it runs on its own goroutine
		return out.answer(m, &x.answered, byCaller)
	default:
		err := out.answer(m, &x.answered, byReader)
		if !x.server.token.current(n) {
			out.writeHeld() // the next reader may have checked before the answer was held
		}
		return err
	}
}

// abandon notes that there will be no answer, if there was none.
func (x *exchange) abandon() {
	if claim(&x.answered) && x.batch != nil {
		_ = x.batch.add(nil) // fails only when the connection has ended
	}
}
