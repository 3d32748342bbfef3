package streamable

import (
	"context"
	"errors"
	"net/http"

	"github.com/parley-mcp/parley/transport/web"
)

// listen reads the stream for what the server sends outside of answers, until
// ctx ends or the server says that there is none (spec 2025-11-25,
// basic/transports, Listening for Messages from the Server).
func (l *link) listen(ctx context.Context, s *clientSession) {
	x := &clientCall{l: l, s: s} // waits for no response
	c := new(clientCursor)
	had := false
	for first := true; ; first = false {
		resp, err := l.get(ctx, s, c)
		if first {
			close(s.listening)
		}
		if err == nil {
			had = true
			_, err = x.read(ctx, resp.Body, c)
			_ = resp.Body.Close() // it is read no further
			l.broken(c, err)
		} else if ctx.Err() != nil || !l.insist(c, err, had) {
			return
		}
		if l.pause(ctx, c) != nil {
			return
		}
		c.failures++ // until something comes
	}
}

// broken prepares to ask for a stream again that has ended.
func (l *link) broken(c *clientCursor, err error) {
	var bad *malformedError
	if errors.As(err, &bad) {
		l.log.Warn("the server's stream cannot be read", "error", err)
		c.last = "" // what cannot be read must not come again
		return
	}
	l.log.Debug("the server's stream ended; it will be asked for again", "error", err)
}

// insist reports whether a stream that was not given is to be asked for again.
// A server that never gave one is not pestered for ever; one that does not
// like the place to resume from may like to begin anew, and one that gave a
// stream before may only not like the caller's token any more.
func (l *link) insist(c *clientCursor, err error, had bool) bool {
	var (
		refusal *noStreamError
		status  *web.StatusError
	)
	refused := errors.As(err, &refusal)
	switch {
	case refused && refusal.status == http.StatusMethodNotAllowed:
		l.log.Debug("the server has no stream for what it sends by itself")
		return false
	case refused && (had || c.last != ""):
		c.last = ""
	case refused, errors.As(err, &status) && !had && c.failures >= l.maxResumes:
		l.log.Warn("the server gives no stream for what it sends by itself", "error", err)
		return false
	}
	l.log.Debug("the server's stream could not be asked for", "error", err)
	return true
}
