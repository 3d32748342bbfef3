package streamable

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// initialize opens a session. It exists for the client once its handshake has
// succeeded, and then only under an id of our making.
func (h *Handler) initialize(a *activeRequest, hd *head, m *jsonrpc.Incoming) {
	if len(hd.version) > 1 || len(hd.version) > 0 && hd.named == nil {
		h.refuse(a, hd, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"MCP-Protocol-Version %.32q is none; leave it out of initialize", hd.version[0]))
		return
	}
	a.HasDeadlines() // once in each session is soon enough to warn
	who := a.x.Principal
	s, status, e := h.newSession(who, "")
	if e != nil {
		h.refuse(a, hd, status, e)
		return
	}
	defer s.release()
	registered := false
	defer func() {
		if !registered {
			s.end(errRefused) // it has ended, unless the handler panicked
		}
	}()
	if err := s.start(); err != nil {
		h.log.Debug("session refused", "error", err)
		s.end(errRefused)
		e, ok := errors.AsType[*jsonrpc.Error](err)
		if !ok {
			e = web.Unavailable("no session can be opened now; try again later")
		}
		h.refuse(a, hd, http.StatusServiceUnavailable, e)
		return
	}
	a.ends, a.x.Transport = s.ctx, &s.info
	answer, e := s.perform(a.context(), who, m)
	if e == nil {
		s.settle()
		if status, e := h.sessions.register(s); e != nil {
			s.end(errRefused)
			h.refuse(a, hd, status, e)
			return
		}
		registered = true
		s.reportMessage(SessionOpened, m)
		a.Header()[headerSession] = []string{s.id()}
	} else {
		s.end(errRefused)
	}
	var failed *failure
	if e != nil {
		failed = &failure{e, who, s.facts.HTTPStatus(e.Code)}
	}
	if err := a.JSON(a.status(failed), answer.b[prefix:]); err != nil {
		h.log.Debug("initialize not answered", "error", err)
	}
	a.free(answer)
}

// start makes the handler's half of the session, unless it has ended already:
// then nobody would close it.
func (s *session) start() error {
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
	x := &handshake{s: s}
	x.Exchange = transport.Exchange{In: m, Principal: who, Out: x, Transport: &s.info}
	if run := s.admit(ctx, &x.Exchange); run != nil {
		run()
	}
	return x.end()
}

// A handshake is a request whose answer is kept for the one who has it carried
// out.
type handshake struct {
	transport.Exchange
	s *session // takes what is sent before the answer

	mu     sync.Mutex
	answer *buffer
	failed *jsonrpc.Error
	over   bool
}

// end returns the answer, with the error in it. There is one if nobody gave one.
func (x *handshake) end() (*buffer, *jsonrpc.Error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	if x.answer == nil {
		x.failed = errAbandoned()
		x.answer, _ = encode(&jsonrpc.Outgoing{ID: x.In.ID, Error: x.failed}) // an error can always be written
	}
	return x.answer, x.failed
}

// Send sends a message ahead of the answer.
func (x *handshake) Send(ctx context.Context, m *jsonrpc.Outgoing) error {
	x.mu.Lock()
	over := x.over
	x.mu.Unlock()
	if over {
		return jsonrpc.ErrEnded
	}
	return (*conn)(x.s).Send(ctx, m)
}

// Answer keeps the response.
func (x *handshake) Answer(_ context.Context, m *jsonrpc.Outgoing) error {
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
