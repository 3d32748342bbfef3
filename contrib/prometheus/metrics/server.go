package metrics

import (
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
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
			l := labels{
				method:   s.methods.take(c.Method(), true),
				target:   s.target(c.Method(), c.Target(), c.Offered()),
				outcome:  outcomes[server.OutcomeFailed], // of a panic
				revision: c.Version(),
			}
			done := m.begin(s, &l)
			defer done()
			res, err = next(c)
			if o := server.OutcomeOf(c, res, err); int(o) < len(outcomes) {
				l.outcome = outcomes[o]
			}
			return res, err
		}
	}
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

// begin counts a request as under way. The function that it returns counts it
// as ended, under what l is then.
func (m *Metrics) begin(s *side, l *labels) func() {
	g := s.gauge(l.method)
	g.Add(1)
	start := time.Now()
	return func() {
		g.Add(-1)
		s.histogram(*l).observe(m.bounds, time.Since(start).Seconds())
	}
}
