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
	wait = max(wait, minRetry)
	for range c.failures {
		if wait >= l.maxRetry {
			break
		}
		wait *= 2
	}
	t := time.NewTimer(min(wait, l.maxRetry))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// follow reads the stream that answers a request, on as many connections as it
// takes.
func (x *clientCall) follow(ctx context.Context, resp *http.Response) outcome {
	c := new(clientCursor)
	for {
		in, err := x.read(ctx, resp.Body, c)
		if in != nil {
			return outcome{in: in, rest: resp.Body}
		}
		_ = resp.Body.Close() // it is read no further
		if resp, err = x.resume(ctx, c, err); err != nil {
			return outcome{err: err}
		}
	}
}

// read reads one connection of a stream until the response is there. An error
// says why it ended without; io.EOF is the server's end of it.
func (x *clientCall) read(ctx context.Context, body io.Reader, c *clientCursor) (*jsonrpc.Incoming, error) {
	began := time.Now()
	c.round++
	events := eventstream.NewReader(body, x.l.limits.Bytes)
	for {
		e, err := events.Next()
		if errors.Is(err, eventstream.ErrTooLong) {
			return nil, &malformedError{fmt.Errorf("%w of %d bytes (MaxResponse)", err, x.l.limits.Bytes)}
		}
		if err != nil {
			if time.Since(began) >= x.l.maxRetry {
				c.failures = 0 // signs of life were all that there was to say
			}
			return nil, err
		}
		known := c.event(&e)
		if len(e.Data) == 0 || e.Type != "" && e.Type != "message" {
			continue
		}
		if in, err := x.take(ctx, e.Data, known); in != nil || err != nil {
			return in, err
		}
	}
}

// resume asks for what follows the last event (spec 2025-11-25,
// basic/transports, Resumability and Redelivery), until there is a stream or
// no hope. The cause is why the connection before ended.
func (x *clientCall) resume(ctx context.Context, c *clientCursor, cause error) (*http.Response, error) {
	for {
		var bad *malformedError
		if errors.Is(cause, io.EOF) {
			cause = errors.New("the server ended the stream")
		}
		if errors.As(cause, &bad) || x.s == nil || !x.s.facts.Resume || c.last == "" || c.failures >= x.l.maxResumes {
			return nil, fmt.Errorf("%w: %w", transport.ErrInterrupted, cause)
		}
		if err := x.l.pause(ctx, c); err != nil {
			return nil, fmt.Errorf("%w: %w", transport.ErrInterrupted, err)
		}
		c.failures++
		resp, err := x.l.get(ctx, x.s, c)
		var refusal *noStreamError
		switch {
		case err == nil:
			return resp, nil
		case errors.As(err, &refusal), ctx.Err() != nil:
			return nil, fmt.Errorf("%w: asking for the rest of the answer: %w", transport.ErrInterrupted, err)
		}
		cause = err
	}
}

// A noStreamError says that the server will not give a stream, however often it
// is asked.
type noStreamError struct {
	err    error
	status int
}

func (e *noStreamError) Error() string { return e.err.Error() }
func (e *noStreamError) Unwrap() error { return e.err }

// get asks for a stream with GET: for what follows the last event, if there
// is one. An error that is a *noStreamError is final; if the server has
// forgotten the session, the link is over.
func (l *link) get(ctx context.Context, s *clientSession, c *clientCursor) (*http.Response, error) {
	req, p, err := l.newRequest(ctx, http.MethodGet, s)
	if err != nil {
		return nil, err
	}
	if c.last != "" && s.facts.Resume {
		req.Header.Set(headerLastEvent, c.last)
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
	case code == http.StatusNotFound && s.tracked():
		lost := sessionLost(status)
		l.fail(lost)
		return nil, &noStreamError{lost, code}
	case code >= http.StatusInternalServerError && code != http.StatusNotImplemented, mayPass(code):
		return nil, status
	case succeeded(resp):
		return nil, &noStreamError{fmt.Errorf("the server gave content type %q in place of a stream", mediaType(resp)), code}
	default:
		return nil, &noStreamError{status, code}
	}
}

// mayPass reports whether a refusal may not last. 409 is what servers say that
// have not noticed yet that the connection before has broken.
func mayPass(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return false
}
