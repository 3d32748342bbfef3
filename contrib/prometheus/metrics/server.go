package metrics

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
)

// outcomes are the label values of the outcomes of package server, in its order.
var outcomes = [...]string{
	server.OutcomeOK:            "ok",
	server.OutcomeInputRequired: "input_required",
	server.OutcomeToolError:     "tool_error",
	server.OutcomeRefused:       "refused",
	server.OutcomeFailed:        "failed",
	server.OutcomeCancelled:     "cancelled",
	server.OutcomeTimedOut:      "timed_out",
}

// Server is middleware that counts the requests of a server:
//
//	s.Use(m.Server())
//
// Added first, it counts what other middleware refuses too. A server that is
// mounted in another must not count with the same Metrics once more.
func (m *Metrics) Server() server.Middleware {
	return func(next server.Func) server.Func {
		return func(c *server.Call) (res server.Result, err error) {
			s := &m.server
			method := s.methods.take(c.Method(), true)
			target := s.target(c.Method(), c.Target(), c.Offered())
			outcome := outcomes[server.OutcomeFailed] // of a panic
			s.flight.Add(1, method)
			start := time.Now()
			defer func() {
				s.flight.Add(-1, method)
				s.durations.Observe(time.Since(start).Seconds(), method, target, outcome, c.Version())
			}()
			res, err = next(c)
			if o := server.OutcomeOf(c, res, err); int(o) < len(outcomes) {
				outcome = outcomes[o]
			}
			return res, err
		}
	}
}

// ServerObserver counts what a server's middleware does not see, requests that
// are refused before it and sessions:
//
//	s.Observe(m.ServerObserver())
func (m *Metrics) ServerObserver() server.Observer {
	s := &m.server
	return server.Observer{
		Refused: func(_ context.Context, r transport.Refusal) {
			m.refused.Add(1, m.codes.take(strconv.FormatInt(r.Err.Code, 10), true), m.limits.take(r.Err.Limit, true), s.method(r.Method))
		},
		SessionOpened: func(i server.SessionInfo) { s.open.Add(1, s.transports.take(i.Transport, true), i.Version) },
		SessionEnded: func(i server.SessionInfo, cause error) {
			s.ended(s.transports.take(i.Transport, true), i.Version, time.Since(i.Opened), cause)
		},
	}
}

// ended counts a session that has ended.
func (s *side) ended(transportName, version string, after time.Duration, cause error) {
	outcome := outcomes[server.OutcomeOK]
	if !errors.Is(cause, transport.ErrClosed) && !errors.Is(cause, client.ErrClosed) {
		outcome = outcomes[server.OutcomeFailed]
	}
	s.open.Add(-1, transportName, version)
	s.sessions.Observe(after.Seconds(), transportName, version, outcome)
}

// method is the label value of a method that a stranger may have made up.
func (s *side) method(name string) string {
	if name == "" {
		return ""
	}
	_, core := mcp.Lookup(name)
	return s.methods.take(name, core)
}

// target is the label value of what a request is about.
func (s *side) target(method, name string, offered bool) string {
	switch {
	case !named(method):
		return ""
	case !offered:
		return other
	}
	return s.targets.take(name, true)
}

// named reports whether requests of a method are about something with a name of
// the server's own, of which there are not too many.
func named(method string) bool {
	return method == mcp.MethodToolsCall || method == mcp.MethodPromptsGet
}
