package streamable

import (
	"context"
	"errors"
	"net/http"

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
	s, status, e := h.newSession(a.x.Principal, "")
	if e != nil {
		h.refuse(a, hd, status, e)
		return
	}
	defer s.release()
	answer, failed, status, e := s.handshake(a, m)
	if e != nil {
		h.refuse(a, hd, status, e)
		return
	}
	if failed == nil {
		a.Header()[headerSession] = []string{s.id()}
	}
	if err := a.JSON(a.status(failed), answer.b[prefix:]); err != nil {
		h.log.Debug("initialize not answered", "error", err)
	}
	a.free(answer)
}

// handshake carries out the handshake m and returns its answer, or why there is none,
// with a status. Unless that is a success, the session has ended.
func (s *session) handshake(a *activeRequest, m *jsonrpc.Incoming) (answer *buffer, failed *failure, status int, _ *jsonrpc.Error) {
	registered := false
	defer func() {
		if !registered { // also if the handler panicked
			s.end(errRefused)
		}
	}()
	if err := s.start(); err != nil {
		s.h.log.Debug("session refused", "error", err)
		e, ok := errors.AsType[*jsonrpc.Error](err)
		if !ok {
			e = web.Unavailable("no session can be opened now; try again later")
		}
		return nil, nil, http.StatusServiceUnavailable, e
	}
	a.ends, a.x.Transport = s.ctx, &s.info
	answer, failed = s.perform(a.context(), a.x.Principal, m)
	if failed != nil {
		return answer, failed, 0, nil
	}
	s.settle()
	if status, e := s.h.sessions.register(s); e != nil {
		return nil, nil, status, e
	}
	registered = true
	s.reportMessage(SessionOpened, m)
	return answer, nil, 0, nil
}

// start makes the handler's half of the session, unless it has ended already:
// then nobody would close it.
func (s *session) start() error {
	s.order.Lock()
	defer s.order.Unlock()
	if err := context.Cause(s.ctx); err != nil {
		return err
	}
	core, err := s.h.core.Open(s)
	if err != nil {
		return err
	}
	s.core = core
	return nil
}

// perform has the server carry out a request and returns its answer, with the
// error in it. There is one if nobody gave one, but in a session that has ended:
// that cannot be registered.
func (s *session) perform(ctx context.Context, who *principal.Principal, m *jsonrpc.Incoming) (*buffer, *failure) {
	x := new(handshake)
	st := x.answer.init(s.h, s, formObject)
	x.Exchange, x.st = transport.Exchange{In: m, Principal: who, Out: x, Transport: &s.info}, st
	st.waiting = 1
	if run := s.admit(ctx, &x.Exchange); run != nil {
		run()
	}
	x.abandon()
	st.lock()
	defer st.unlock()
	if st.inbox.n == 0 && s.ended == nil {
		answer, _ := encode(&jsonrpc.Outgoing{ID: m.ID, Error: errAbandoned}) // an error can always be written
		return answer, &failure{errAbandoned, who, s.facts.HTTPStatus(errAbandoned.Code)}
	}
	answer, _ := st.inbox.take()
	return answer, st.failed
}

// A handshake is an exchange whose answer is not written by itself. What is sent
// before that goes to the session's own stream: a client that opens a session
// does not know yet whether there is one.
type handshake struct {
	exchange
	answer stream
}

// Send sends a message ahead of the answer.
func (x *handshake) Send(ctx context.Context, m *jsonrpc.Outgoing) error {
	return x.st.s.own.send(ctx, &x.exchange, m)
}
