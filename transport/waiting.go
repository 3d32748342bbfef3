package transport

import (
	"context"
	"time"

	"github.com/parley-mcp/parley/internal/patience"
)

// A Clock is a time limit that can stand still. Pauses may overlap: it goes on
// when there were as many calls of Resume. Its methods may be called by many
// goroutines at once.
type Clock = patience.Clock

// ClockKey is the key under which a context has the Clock of whoever waits for
// what is done in it. Package client puts it there; others call Waiting.
type ClockKey = patience.Key

// Waiting stops the time limit of whoever waits for what is done in ctx, such
// as the context of an HTTP request, until resume is called: while a person is
// asked, to sign in for example, nobody is slow. It does nothing if ctx has no
// Clock, and resume does nothing the second time.
//
// spec 2026-07-28, basic/patterns/cancellation: timeouts are the sender's.
func Waiting(ctx context.Context) (resume func()) { return patience.Waiting(ctx) }

// WithTimeout is context.WithTimeoutCause for a time that stands still while
// somebody within says Waiting, as do the Clocks around it.
func WithTimeout(ctx context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc) {
	return patience.WithTimeout(ctx, limit, cause)
}
