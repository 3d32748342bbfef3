package streamable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// Bounds of what is remembered of a stream, and how soon it is asked for again.
const (
	maxEventID = 1 << 10 // bytes
	maxSeen    = 256     // event ids
	minRetry   = 10 * time.Millisecond
)

// A clientCursor is a place in a stream that may take several connections to read.
type clientCursor struct {
	last     string        // id of the last event; empty if there is nothing to resume from
	retry    time.Duration // the pause that the server wishes, if named
	named    bool
	failures int // connections in a row that gave nothing
	round    int // number of the connection

	seen  map[string]int // ids and the connection they came on
	order []string       // the keys of seen, oldest first
}

// event notes an event. It reports whether an earlier connection has given it
// already: a server may repeat more than what follows the last event.
func (c *clientCursor) event(e *eventstream.Event) (known bool) {
	c.failures = 0
	if e.HasRetry {
		c.retry, c.named = e.Retry, true
	}
	if !e.HasID {
		return false
	}
	if e.ID == "" || len(e.ID) > maxEventID || !isFieldValue(e.ID) {
		c.last = "" // empty as the standard says; the others cannot be asked for
		return false
	}
	round, seen := c.seen[e.ID]
	if seen && round < c.round {
		return true
	}
	c.last = e.ID
	if seen {
		return false
	}
	if c.seen == nil {
		c.seen = make(map[string]int)
	}
	c.seen[e.ID] = c.round
	if c.order = append(c.order, e.ID); len(c.order) > maxSeen {
		delete(c.seen, c.order[0])
		c.order = c.order[1:]
	}
	return false
}

// pause waits before the stream is asked for again: as long as the server
// wishes (spec 2025-11-25, basic/transports: the client MUST respect the retry
// field), longer with each failure.
func (l *link) pause(ctx context.Context, c *clientCursor) error {
	wait := l.retry
	if c.named {
		wait = c.retry
	}
	wait = min(max(wait, minRetry), l.maxRetry)
	for range c.failures {
		wait = min(2*wait, l.maxRetry)
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// follow reads a stream, on as many connections as it takes, until the response
// is there or there is no hope for it.
func (x *clientCall) follow(ctx context.Context, c *clientCursor, resp *http.Response) outcome {
	x.streamed = true
	for {
		in, err := x.read(ctx, resp, c)
		if in != nil {
			return outcome{in: in, rest: resp.Body}
		}
		_ = resp.Body.Close() // it is read no further
		if x.passed != nil {  // it can have been the answer
			err = fmt.Errorf("%w: %w", errMalformed, x.passed)
		}
		if resp, err = x.resume(ctx, c, err); err != nil {
			return outcome{err: err}
		}
	}
}

// listen reads the stream for what the server sends outside of answers, until
// ctx ends or the server says that there is none (spec 2025-11-25,
// basic/transports, Listening for Messages from the Server).
func (l *link) listen(ctx context.Context, s *clientSession) {
	x := &clientCall{l: l, s: s} // waits for no response
	c := new(clientCursor)
	resp, err := l.get(ctx, s, c) //nolint:bodyclose // follow closes it
	close(s.listening)
	if err != nil {
		resp, err = x.resume(ctx, c, err) //nolint:bodyclose // follow closes it
	}
	if err == nil {
		x.follow(ctx, c, resp)
	}
}

// read reads one connection of a stream until the response is there. An error
// says why it ended without; io.EOF is the server's end of it.
func (x *clientCall) read(ctx context.Context, resp *http.Response, c *clientCursor) (*jsonrpc.Incoming, error) {
	began := time.Now()
	c.round++
	events := eventstream.NewReader(resp.Body, x.l.limits.Bytes)
	if !x.id.IsZero() {
		events.Parts = x
	}
	for {
		e, err := events.Next()
		if errors.Is(err, eventstream.ErrTooLong) {
			err = fmt.Errorf("%w: %w of %d bytes (MaxResponse)", errMalformed, err, x.l.limits.Bytes)
			x.l.show(transport.TapRefused, resp.Request, nil, err)
			return nil, err
		}
		if err != nil {
			if time.Since(began) >= x.l.maxRetry {
				c.failures = 0 // signs of life were all that there was to say
			}
			return nil, err
		}
		known := c.event(&e)
		x.l.showEvent(resp, &e)
		if len(e.Data) == 0 || e.Type != "" && e.Type != "message" {
			continue
		}
		if in, err := x.take(ctx, resp, e.Data, known); in != nil || err != nil {
			return in, err
		}
	}
}

// resume asks for what follows the last event (spec 2025-11-25,
// basic/transports, Resumability and Redelivery), until there is a stream or
// no hope. The cause is why there is none.
func (x *clientCall) resume(ctx context.Context, c *clientCursor, cause error) (*http.Response, error) {
	for {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %w", transport.ErrInterrupted, context.Cause(ctx))
		}
		if err := x.hopeless(ctx, c, cause); err != nil {
			return nil, err
		}
		if err := x.l.pause(ctx, c); err != nil {
			return nil, fmt.Errorf("%w: %w", transport.ErrInterrupted, err)
		}
		c.failures++
		resp, err := x.l.get(ctx, x.s, c)
		if err == nil {
			return resp, nil
		}
		cause = err
	}
}

// hopeless is why a stream is not asked for again; nil if it is.
func (x *clientCall) hopeless(ctx context.Context, c *clientCursor, cause error) error {
	if x.id.IsZero() {
		return x.unheard(ctx, c, cause)
	}
	refusal, refused := errors.AsType[*noStreamError](cause)
	switch {
	case refused:
		if refusal.status == http.StatusNotFound {
			_ = x.l.askSession(ctx, x.s) // the request is interrupted either way
		}
		return fmt.Errorf("%w: asking for the rest of the answer: %w", transport.ErrInterrupted, cause)
	case errors.Is(cause, io.EOF):
		cause = errors.New("the server ended the stream")
	}
	if errors.Is(cause, errMalformed) || x.s == nil || !x.s.facts.Resume || c.last == "" || c.failures >= x.l.maxResumes {
		return fmt.Errorf("%w: %w", transport.ErrInterrupted, cause)
	}
	return nil
}

// unheard is hopeless for the stream for what the server sends outside of answers.
// A server that never gave one is not pestered for ever; one that does not
// like the place to resume from may like to begin anew, and one that gave a
// stream before may only not like the caller's token any more. 404 and 405 mean
// that there is no stream (ruling 40). 400, or a bare 401 or 403, with words about an unknown session, from a
// server that gave a stream before, means that it has lost the session.
func (x *clientCall) unheard(ctx context.Context, c *clientCursor, cause error) error {
	l := x.l
	refusal, refused := errors.AsType[*noStreamError](cause)
	status, answered := errors.AsType[*web.StatusError](cause)
	had := c.round > 0
	switch {
	case errors.Is(cause, errMalformed):
		l.log.Warn("the server's stream cannot be read", "error", cause)
		c.last = "" // what cannot be read must not come again
		return nil
	case refused && refusal.status == http.StatusNotFound && c.last == "":
		if lost := l.askSession(ctx, x.s); lost != nil {
			return lost
		}
		l.log.Debug("the server has no stream for what it sends by itself")
		return cause
	case refused && had && c.last == "" && answered && refusesSession(status) && x.forgotten(status.Text):
		lost := sessionLost(cause)
		l.lose(l.life, x.s, lost)
		return lost
	case refused && refusal.status == http.StatusMethodNotAllowed:
		l.log.Debug("the server has no stream for what it sends by itself")
		return cause
	case refused && (had || c.last != ""):
		c.last = ""
	case refused, answered && !had && c.failures >= l.maxResumes:
		l.log.Warn("the server gives no stream for what it sends by itself", "error", cause)
		return cause
	}
	l.log.Debug("the server's stream is asked for again", "error", cause)
	return nil
}

// errMalformed says that the server sent what is no message. Asking again would
// not help.
var errMalformed = errors.New("malformed message of the server")

// A noStreamError says that the server will not give a stream, however often it
// is asked.
type noStreamError struct {
	err    error
	status int
}

func (e *noStreamError) Error() string { return e.err.Error() }
func (e *noStreamError) Unwrap() error { return e.err }

// get asks for a stream with GET: for what follows the last event, if there
// is one. An error that is a *noStreamError is final.
func (l *link) get(ctx context.Context, s *clientSession, c *clientCursor) (*http.Response, error) {
	req, p, err := l.newRequest(ctx, http.MethodGet, s)
	if err != nil {
		return nil, err
	}
	if c.last != "" && s.facts.Resume {
		p.set(req.Header, headerLastEvent, c.last)
	}
	resp, err := l.roundTrip(req, p)
	switch {
	case err != nil:
		return nil, err
	case succeeded(resp) && mediaType(resp) == eventstream.ContentType:
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }() // it is of no more use
	status := web.NewStatusError(resp)
	switch code := status.Status; {
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests,
		code == http.StatusConflict, // servers say that who have not noticed yet that the connection before has broken
		code >= http.StatusInternalServerError && code != http.StatusNotImplemented:
		return nil, status // it may not last
	case succeeded(resp):
		return nil, &noStreamError{fmt.Errorf("the server gave content type %q in place of a stream", mediaType(resp)), code}
	default:
		return nil, &noStreamError{status, code}
	}
}
