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
			h.refuse(w, r, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
				"MCP-Protocol-Version %.32q is none; leave it out of initialize", versions[0]))
			return
		}
	}
	h.deadlines(w) // once in each session is soon enough to warn
	s, status, e := h.newSession(who, "")
	if e != nil {
		h.refuse(w, r, status, e)
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
		h.log.Debug("session refused", "error", err)
		s.end(errRefused)
		e, ok := errors.AsType[*jsonrpc.Error](err)
		if !ok {
			e = web.Unavailable("no session can be opened now; try again later")
		}
		h.refuse(w, r, http.StatusServiceUnavailable, e)
		return
	}
	answer, e := s.perform(&sessionContext{s.ctx, r}, who, m)
	if e == nil {
		s.settle()
		if status, e := h.sessions.register(s); e != nil {
			s.end(errRefused)
			h.refuse(w, r, status, e)
			return
		}
		registered = true
		s.reportMessage(SessionOpened, m)
		w.Header()[headerSession] = []string{s.id()}
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

// open makes the handler's half of the session, unless it has ended already:
// then nobody would close it.
func (s *session) open() error {
	s.order.Lock()
	defer s.order.Unlock()
	if err := context.Cause(s.ctx); err != nil {
		return err
	}
	core, err := s.h.core.Open((*conn)(s))
	if err != nil {
		return err
	}
	s.core = core
	return nil
}

// perform has the server carry out a request whose answer is not written by
// itself. What it sends before goes to the session's own stream: a client that
// opens a session does not know yet whether there is one.
func (s *session) perform(ctx context.Context, who *principal.Principal, m *jsonrpc.Incoming) (*buffer, *jsonrpc.Error) {
	x := &keptExchange{out: (*conn)(s)}
	x.Exchange = transport.Exchange{In: m, Principal: who, Out: x, Carrier: &s.carrier}
	if run := s.admit(ctx, &x.Exchange); run != nil {
		run()
	}
	return x.end()
}

// A keptExchange is a request whose answer is kept for who handles it: that of a
// handshake, or of one request of an array.
type keptExchange struct {
	transport.Exchange
	out jsonrpc.Sender // takes what is sent before the answer

	mu     sync.Mutex
	answer *buffer
	failed *jsonrpc.Error
	over   bool
}

// end returns the answer, with the error in it. There is one if nobody gave one.
func (x *keptExchange) end() (*buffer, *jsonrpc.Error) {
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

// Send sends a message ahead of the answer.
func (x *keptExchange) Send(ctx context.Context, m *jsonrpc.Outgoing) error {
	x.mu.Lock()
	over := x.over
	x.mu.Unlock()
	if over {
		return jsonrpc.ErrEnded
	}
	return x.out.Send(ctx, m)
}

// Answer keeps the response.
func (x *keptExchange) Answer(_ context.Context, m *jsonrpc.Outgoing) error {
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
