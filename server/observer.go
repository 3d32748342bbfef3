package server

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
)

// An Observer is told of what middleware does not see, for metrics. Each function
// may be nil. They are called by many goroutines at once, the peer waits for
// them, and they must be quick. A panic of one is logged.
type Observer struct {
	// Refused is told of a request that was refused before middleware ran: it
	// was malformed, unknown, over a limit, or its transport did not take it. A
	// stranger may send any number of them, with any methods. ctx is that of
	// the request or its connection; the peer is told afterwards.
	Refused func(ctx context.Context, r transport.Refusal)
	// SessionOpened is told of a session before its client learns that it is
	// open. A session begins with a handshake, or with the first request of a
	// stateless revision on a connection that carries many, as a pipe does; such
	// requests over HTTP belong to no session.
	SessionOpened func(s SessionInfo)
	// SessionEnded is told once of each session that SessionOpened was told of.
	// cause is transport.ErrClosed where it ended in good order.
	SessionEnded func(s SessionInfo, cause error)
}

// SessionInfo describes a session.
type SessionInfo struct {
	// Transport is the kind of transport, as Call.Transport gives it.
	Transport string
	// Version is the protocol revision that the session began in.
	Version string
	// Principal is the principal that opened it. It must not be written to.
	Principal *principal.Principal
	// Opened is when it began.
	Opened time.Time
}

// Observe adds observers. It panics after the first request. Those of a server
// that is mounted in another are told of what the mounted server serves itself.
func (s *Server) Observe(o ...Observer) {
	s.mustBeNew("Observe")
	s.observers = append(s.observers, o...)
}

// Refused tells observers and the log of what a transport has refused. It
// implements transport.Handler.
func (s *Server) Refused(ctx context.Context, r transport.Refusal) {
	s.refusals.log(ctx, s.log, r)
	for i := range s.observers {
		if f := s.observers[i].Refused; f != nil {
			s.guard(func() { f(ctx, r) })
		}
	}
}

// refused is Refused for a request that the server itself refuses. It returns
// what the caller is told of err.
func (s *Server) refused(c *Call, err error) *jsonrpc.Error {
	e := s.refusal(c, err)
	switch limited, ok := errors.AsType[*limitError](err); {
	case ok:
		e.Limit = limited.option
	case errors.Is(err, jsonrpc.ErrTooMany):
		e.Limit = optionMaxInFlight
	}
	s.Refused(c, transport.Refusal{Err: e, Method: c.Method(), Principal: c.Principal(), Transport: c.x.Transport})
	return e
}

// A limitError is the error of a limit, with the option that sets it.
type limitError struct {
	err    *mcp.Error
	option string
}

func (e *limitError) Error() string { return e.err.Error() }
func (e *limitError) Unwrap() error { return e.err }

// limitedBy says which option sets the limit that err is about.
func limitedBy(option string, err *mcp.Error) error { return &limitError{err, option} }

// optionMaxInFlight is the limit that jsonrpc.ErrTooMany speaks of.
const optionMaxInFlight = "Limits.MaxInFlight"

// refusalInterval is the least time between two lines about refusals.
const refusalInterval = 10 * time.Second

// refusals logs refused requests. Any client can cause any number of them, so
// lines are throttled.
type refusals struct{ warn, debug throttle }

// log tells of a refusal, and how many there were since the last line. What is no
// JSON, and what is over a limit, are warnings: clients that are in order cause
// neither, and an operator may raise the limit. A session that has ended, or a GET
// where nothing is streamed, are in the course of things.
func (l *refusals) log(ctx context.Context, log *slog.Logger, r transport.Refusal) {
	level, line := slog.LevelDebug, &l.debug
	if r.Err.Limit != "" || r.Err.Code == jsonrpc.CodeParseError {
		level, line = slog.LevelWarn, &l.warn
	}
	if !log.Enabled(ctx, level) {
		return
	}
	n, since := line.take(time.Now())
	if n == 0 {
		return
	}
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs, slog.Int64("code", r.Err.Code), slog.String("err", clip(r.Err.Message)))
	if r.Err.Limit != "" {
		attrs = append(attrs, slog.String("limit", r.Err.Limit))
	}
	if CallFrom(ctx) == nil { // or the line says it already
		if r.Method != "" {
			attrs = append(attrs, slog.String("method", clip(r.Method)))
		}
		if r.Transport != nil {
			attrs = append(attrs, slog.String("transport", r.Transport.Name))
		}
		if r.Principal != nil {
			attrs = append(attrs, slog.String("caller", clip(r.Principal.LimitKey())))
		}
	}
	if n > 1 {
		attrs = append(attrs, slog.Int64("refused", n), slog.Duration("within", since.Round(time.Millisecond)))
	}
	log.LogAttrs(ctx, level, "request refused", attrs...)
}

// A throttle lets one line pass in each refusalInterval.
type throttle struct {
	mu   sync.Mutex
	last time.Time
	n    int64
}

// take counts an event. It returns how many there were since the last line and
// how long ago that was, or 0 if it is too early for another.
func (r *throttle) take(now time.Time) (n int64, since time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	since = now.Sub(r.last)
	if since < refusalInterval {
		return 0, 0
	}
	n, r.n, r.last = r.n, 0, now
	return n, since
}

// begun tells observers that a session has opened, once.
func (p *session) begun(c *Call) {
	if len(p.srv.observers) == 0 || p.observed.Load() != nil {
		return
	}
	info := &SessionInfo{Transport: c.Transport(), Version: c.Version(), Principal: c.Principal(), Opened: time.Now()}
	if !p.observed.CompareAndSwap(nil, info) {
		return
	}
	for i := range p.srv.observers {
		if f := p.srv.observers[i].SessionOpened; f != nil {
			p.srv.guard(func() { f(*info) })
		}
	}
}

// finished tells observers that a session has ended, if they know it.
func (p *session) finished(cause error) {
	info := p.observed.Swap(nil)
	if info == nil {
		return
	}
	if errors.Is(cause, ErrShutdown) {
		cause = errors.Join(transport.ErrClosed, cause)
	}
	for i := range p.srv.observers {
		if f := p.srv.observers[i].SessionEnded; f != nil {
			p.srv.guard(func() { f(*info, cause) })
		}
	}
}
