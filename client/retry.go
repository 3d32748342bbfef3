package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/parley-mcp/parley/internal/pausetimer"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// longestTold is the longest pause that is kept because a server asks for it.
// Callers that can wait longer know best when to try again.
const longestTold = time.Minute

// maxTold is the longest pause that is believed: an hour is as good as a year,
// and does not overflow.
const maxTold = time.Hour

// A RetryError says that a server did not take a request and did not change its
// mind: as often as Options.Retries allows, or for longer than there was time
// to wait. The server's last answer is in the chain: errors.As finds its
// *jsonrpc.Error, if it gave one.
type RetryError struct {
	// Tries is how often the request was sent; 0 if it was not, because another
	// one like it was refused just before: then Err is what that was answered.
	Tries int
	// RetryAfter is how long the server asked to wait before the next try; 0
	// if it did not say.
	RetryAfter time.Duration
	// Err is the server's last answer. If the time of the call ended while it
	// waited, or would have, the reason for that is in the chain as well.
	Err error
}

// Error says what the server answered, how often it was asked, and how long it
// wants the client to wait.
func (e *RetryError) Error() string {
	text := fmt.Sprintf("%v (tried %d times", e.Err, e.Tries)
	switch e.Tries {
	case 0:
		text = fmt.Sprintf("%v (not sent", e.Err)
	case 1:
		text = fmt.Sprintf("%v (tried once", e.Err)
	}
	if e.RetryAfter > 0 {
		text += fmt.Sprintf("; the server asks to wait %v", e.RetryAfter)
	}
	return text + ")"
}

// Unwrap returns the server's last answer.
func (e *RetryError) Unwrap() error { return e.Err }

// retryDelay is how long the server asks to wait before the next try, from 0, which is
// also if it does not say, to maxTold.
func retryDelay(err error) time.Duration {
	var (
		after     time.Duration
		temporary *transport.TemporaryError
		peer      *jsonrpc.Error
		data      mcp.RetryData
	)
	if errors.As(err, &temporary) {
		after = min(max(temporary.RetryAfter, 0), maxTold)
	}
	if errors.As(err, &peer) && len(peer.Data) > 0 && wire.Decode(peer.Data, &data) == nil {
		ms := min(max(data.RetryAfterMs, 0), maxTold.Milliseconds())
		after = max(after, time.Duration(ms)*time.Millisecond)
	}
	return after
}

// passes reports whether a failure may pass: it says nothing about the revision
// that a server speaks (ruling 31).
func passes(err error) bool {
	var (
		temporary *transport.TemporaryError
		peer      *jsonrpc.Error
	)
	switch {
	case errors.As(err, &temporary), errors.Is(err, transport.ErrInterrupted):
		return true
	case errors.As(err, &peer):
		return peer.Code == mcp.CodeInternalError || -32000 < peer.Code && peer.Code <= -31000
	}
	return false
}

// refused reports whether a request was refused and may be sent again: always
// if it has not run, otherwise, as a proxy may say the same of a request that
// has, only if doing it twice is harmless (rulings 16 and 31). A request whose
// answer was lost may have run, whatever was refused on the way to the answer.
// The caller sees to those of which something was heard while they ran.
//
// ErrInterrupted therefore takes precedence over everything else in the chain. If
// the answer to a tool call breaks off in a session of Streamable HTTP, the client
// asks for the rest with GET, and the server can reject that GET with 429. The
// error then contains ErrInterrupted, because the tool may have run, and a
// TemporaryError with NotRun, which is about the GET. Transports keep that cause
// for the user. A client cannot know whether a tool that itself answers -31001 has
// had effects before; package mcp reserves these codes for rejected requests.
func refused(err error, harmless func() bool) bool {
	var (
		temporary *transport.TemporaryError
		peer      *jsonrpc.Error
	)
	if errors.Is(err, transport.ErrInterrupted) {
		return errors.As(err, &temporary) && temporary.Busy && harmless()
	}
	if errors.As(err, &peer) && (peer.Code == mcp.CodeRateLimited || peer.Code == mcp.CodeTooManyInFlight) {
		return true
	}
	if !errors.As(err, &temporary) {
		return false
	}
	return temporary.NotRun || temporary.Busy && harmless()
}

// A retry repeats one request that the server refuses, at the rate that the
// server allows.
type retry struct {
	c     *Client
	about throttleKey
	tries int       // how often the request was refused
	sent  time.Time // when it was let go last
}

// again waits until a refused request may be sent once more. The error says
// that it may not: it is a RetryError.
func (r *retry) again(ctx context.Context, refusal error) error {
	r.tries++
	after := retryDelay(refusal)
	failed := &RetryError{Tries: r.tries, RetryAfter: after, Err: refusal}
	if r.tries > r.c.opts.Retries || after > left(ctx) {
		return failed
	}
	p := r.c.throttles.record(r.about, refusal, after, r.sent)
	defer r.c.throttles.release(p)
	err := sleep(ctx, r.backOff())
	if err == nil {
		r.sent, after, err = p.wait(ctx)
	}
	if err != nil {
		failed.RetryAfter = max(failed.RetryAfter, after)
		failed.Err = fmt.Errorf("%w: %w", err, refusal)
		return failed
	}
	return nil
}

// backOff is the pause of a request that was refused more than once, so that
// clients which know nothing of each other get out of each other's way.
func (r *retry) backOff() time.Duration {
	if r.tries < 2 {
		return 0
	}
	pause := min(firstRetryDelay<<min(r.tries-2, 10), maxRetryDelay)
	return pause/2 + rand.N(pause)
}

// left is how long a context lasts, as far as it says, and longestTold at most.
func left(ctx context.Context) time.Duration {
	rest := longestTold
	if end, ok := ctx.Deadline(); ok {
		rest = min(rest, time.Until(end))
	}
	if own, ok := pausetimer.From(ctx).(*pauseContext); ok && own.timer != nil {
		rest = min(rest, own.timer.Remaining())
	}
	return rest
}

// sendWithRetry sends a small request of the client's own, again if it is refused;
// noted, if not nil, is told about each refusal.
func (c *Client) sendWithRetry(ctx context.Context, method string, noted func(error), send func() (*jsonrpc.Incoming, error)) (*jsonrpc.Incoming, error) {
	r := retry{c: c, about: throttleKey{method: method}}
	for {
		in, err := send()
		refusal := failure(in, err)
		if refusal == nil || ctx.Err() != nil || !refused(refusal, func() bool { return true }) {
			return in, err
		}
		if noted != nil {
			noted(refusal)
		}
		if err := r.again(ctx, refusal); err != nil {
			return nil, err
		}
	}
}
