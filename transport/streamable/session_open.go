package streamable

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// initialize opens a session. It exists for the client once its handshake has
// succeeded, and then only under an id of our making.
func (h *Handler) initialize(w http.ResponseWriter, r *http.Request, who *principal.Principal, m *jsonrpc.Incoming) {
	if versions := r.Header[headerVersion]; len(versions) > 0 {
		if _, ok := revision.Lookup(versions[0]); !ok || len(versions) > 1 {
			refuse(w, r, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
				"MCP-Protocol-Version %.32q is none; leave it out of initialize", versions[0]))
			return
		}
	}
	h.deadlines(w) // once in each session is soon enough to warn
	s, status, e := h.newSession(who)
	if e != nil {
		refuse(w, r, status, e)
		return
	}
	defer s.release()
	registered := false
	defer func() {
		if !registered {
			s.end(errRefused) // it has ended, unless the handler panicked
		}
	}()
	if err := s.open(); err != nil {
		h.log.Warn("session refused", "error", err)
		s.end(errRefused)
		e, ok := errors.AsType[*jsonrpc.Error](err)
		if !ok {
			e = web.Unavailable("no session can be opened now; try again later")
		}
		refuse(w, r, http.StatusServiceUnavailable, e)
		return
	}
	x := &opening{s: s}
	x.Exchange = transport.Exchange{In: m, Principal: who, Out: x}
	answer, e := x.run(&sessionContext{s.ctx, r})
	if e == nil {
		s.settle()
		if e := h.sessions.register(s); e != nil {
			s.end(errRefused)
			refuse(w, r, http.StatusServiceUnavailable, e)
			return
		}
		registered = true
		w.Header()[headerSession] = []string{s.id}
	} else {
		s.end(errRefused)
	}
	status = http.StatusOK
	if e != nil {
		status = s.facts.HTTPStatus(e.Code)
	}
	var out response
	out.begin(h, w)
	defer out.end()
	if err := out.body(status, answer.b, e, who); err != nil {
		h.log.Debug("initialize not answered", "error", err)
	}
	out.done(answer)
}

// open makes the handler's half of the session.
func (s *session) open() error {
	s.order.Lock()
	defer s.order.Unlock()
	core, err := s.h.core.Open((*conn)(s))
	if err != nil {
		return err
	}
	s.core = core
	return nil
}

// An opening is the exchange of a handshake.
type opening struct {
	transport.Exchange
	s *session

	mu     sync.Mutex
	answer *buffer
	failed *jsonrpc.Error
	over   bool
}

// run has the handshake made and returns its answer, with the error in it.
func (x *opening) run(ctx context.Context) (*buffer, *jsonrpc.Error) {
	if run := x.s.admit(ctx, &x.Exchange); run != nil {
		run()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	if x.answer == nil {
		x.failed = errAbandoned()
		x.answer = newBuffer()
		x.answer.b, _ = (&jsonrpc.Outgoing{ID: x.In.ID, Error: x.failed}).AppendJSON(x.answer.b) // an error can always be written
	}
	return x.answer, x.failed
}

// Send sends on the session's own stream: the client does not know yet whether
// there is a session.
func (x *opening) Send(ctx context.Context, m *jsonrpc.Outgoing) error {
	x.mu.Lock()
	over := x.over
	x.mu.Unlock()
	if over {
		return jsonrpc.ErrEnded
	}
	return (*conn)(x.s).Send(ctx, m)
}

// Answer keeps the response.
func (x *opening) Answer(_ context.Context, m *jsonrpc.Outgoing) error {
	b, err := encode(m)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		b.free()
		return jsonrpc.ErrEnded
	}
	x.over = true
	x.answer, x.failed = b, m.Error
	return nil
}
