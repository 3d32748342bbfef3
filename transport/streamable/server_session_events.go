package streamable

import (
	"runtime/debug"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
)

// A SessionState is what a [SessionEvent] tells of a session.
type SessionState int

const (
	// SessionOpened says that a client has opened the session. Message is its
	// initialize request.
	SessionOpened SessionState = iota + 1
	// SessionRestored says that Restore has opened the session.
	SessionRestored
	// SessionChanged says that a request was carried out that changes what the
	// session holds: its subscriptions, its log level. Message is the request.
	SessionChanged
	// SessionEnded says that the session has ended. Cause says why.
	SessionEnded
)

// String names the state.
func (s SessionState) String() string {
	names := [...]string{"unknown", "opened", "restored", "changed", "ended"}
	if s < 0 || int(s) >= len(names) {
		s = 0
	}
	return names[s]
}

// A SessionEvent tells what became of a session of a revision with a handshake.
// The first one is SessionOpened or SessionRestored, the last one SessionEnded.
type SessionEvent struct {
	// State says what has happened.
	State SessionState
	// ID is the session's id, as in Mcp-Session-Id. Who knows the id of an
	// anonymous caller's session can use it, so do not log it as it is.
	ID string
	// Principal is who opened the session. It must not be written to.
	Principal *principal.Principal
	// Message is the JSON-RPC message that opened or changed the session, for
	// Restore; nil with the other states. It belongs to who is told.
	Message []byte
	// Cause is why the session ended, nil before.
	Cause error
}

// report calls OnSession, if there is one. What happens to a session that was
// never opened, or has ended, is not told.
func (s *session) report(e SessionEvent) {
	f := s.h.opts.OnSession
	if f == nil {
		return
	}
	s.reports.Lock()
	defer s.reports.Unlock()
	begins := e.State == SessionOpened || e.State == SessionRestored
	silent := s.reported == SessionEnded || s.reported == 0 && !begins
	if !silent || e.State == SessionEnded {
		s.reported = e.State
	}
	if silent {
		return
	}
	e.ID, e.Principal = s.id(), s.who
	defer func() { // sessions end on goroutines of ours, where a panic would end the process
		if v := recover(); v != nil {
			s.h.log.Error("OnSession panicked", "state", e.State.String(), "panic", v, "stack", string(debug.Stack()))
		}
	}()
	f(e)
}

// reportMessage reports a request that opened or changed the session.
func (s *session) reportMessage(state SessionState, m *jsonrpc.Incoming) {
	if s.h.opts.OnSession == nil {
		return
	}
	out := jsonrpc.Outgoing{ID: m.ID, Method: m.Method}
	if raw := m.Params.Raw(); len(raw) > 0 {
		out.Params = jsonrpc.Raw(raw)
	}
	text, _ := out.AppendJSON(nil) // what was read can be written
	s.report(SessionEvent{State: state, Message: text})
}
