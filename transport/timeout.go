package transport

import (
	"context"
	"time"

	"github.com/parley-mcp/parley/internal/pausetimer"
)

// A Pauser is a time limit that can be paused. Pauses may overlap: it continues
// when there were as many calls of Resume as of Pause. Its methods may be called
// by many goroutines at once.
type Pauser interface {
	Pause()
	Resume()
}

// PauserKey is the key under which a context has the Pauser of the operation that it
// belongs to. Package client puts it there; others call PauseTimeouts.
type PauserKey = pausetimer.Key

// PauseTimeouts pauses the time limits of the operation that ctx belongs to, such
// as the context of an HTTP request, until resume is called: while a person is
// asked, to sign in for example. It does nothing if ctx has no Pauser, and resume
// does nothing the second time.
//
// spec 2026-07-28, basic/patterns/cancellation: timeouts are the sender's.
func PauseTimeouts(ctx context.Context) (resume func()) { return pausetimer.Pause(ctx) }

// Progress restarts the time that the operation which ctx belongs to may be silent. A
// Link calls it with the context of Do when a part of the answer has arrived and the rest
// has not, so that a long answer is not taken for silence; comments and pings are no part
// of an answer. It does nothing if ctx is not of a call of package client.
func Progress(ctx context.Context) { pausetimer.Progress(ctx) }

// WithTimeout is context.WithTimeoutCause with a limit that PauseTimeouts
// pauses, together with the Pausers of outer contexts. The context tells no deadline.
func WithTimeout(ctx context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc) {
	return pausetimer.WithTimeout(ctx, limit, cause)
}
