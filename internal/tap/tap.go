// Package tap is what transports share to show a transport.Tap what they carry.
package tap

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/transport"
)

var links, exchanges atomic.Uint64

// Link returns a tap for one link: it gives events the link's number, and the
// time. It is nil if t is.
func Link(t transport.Tap) transport.Tap {
	if t == nil {
		return nil
	}
	n := links.Add(1)
	return func(e transport.TapEvent) {
		e.Link = n
		if e.Time.IsZero() {
			e.Time = time.Now()
		}
		t(e)
	}
}

type exchangeKey struct{}

// An exchange is what the context of an HTTP request says of it.
type exchange struct {
	number uint64
	tap    transport.Tap // of the link
}

// Begin begins an exchange of the link whose tap is t. The context is for its
// HTTP requests.
func Begin(ctx context.Context, t transport.Tap) context.Context {
	return context.WithValue(ctx, exchangeKey{}, exchange{exchanges.Add(1), t})
}

// Exchange is the number of the exchange that a request with ctx belongs to,
// and the tap of its link. A request of none gets a number, and fallback.
func Exchange(ctx context.Context, fallback transport.Tap) (uint64, transport.Tap) {
	if x, ok := ctx.Value(exchangeKey{}).(exchange); ok {
		return x.number, x.tap
	}
	return exchanges.Add(1), fallback
}
