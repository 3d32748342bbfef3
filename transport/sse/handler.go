package sse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/frame"
	"github.com/parley-mcp/parley/transport/web"
)

// errGone is why sessions end whose response net/http gave up, be it that the
// client has hung up or that a write failed.
var errGone = fmt.Errorf("%w: the client has left, or does not read", transport.ErrClosed)

// errShutdown is why sessions end that Shutdown did not let finish.
var errShutdown = fmt.Errorf("%w: the endpoint shuts down", transport.ErrClosed)

// refusalTimeout is how long the client may take for the end of a body that is not
// read, and once more for the end of the answer.
const refusalTimeout = 5 * time.Second

// corsPolicy is what pages of allowed origins may do.
var corsPolicy = web.CORS{
	Methods: []string{http.MethodGet, http.MethodPost},
	Headers: []string{"Accept", "Authorization", "Cache-Control", "Content-Type", "Last-Event-ID", "MCP-Protocol-Version"},
	Exposed: []string{"Retry-After", "WWW-Authenticate"},
}

// A Handler is an endpoint for streams (GET) and messages (POST). Each stream
// is a session, served on the goroutine of its GET; it ends with the stream.
//
// Deprecated: use streamable.Handler, in addition if clients may be old.
type Handler struct {
	handler transport.Handler
	o       Options
	warned  sync.Once // that the endpoint cannot stream

	responses web.Responses // of streams; the messages that are posted for them are held

	mu        sync.Mutex
	sessions  map[string]*session // whose responses are under way
	anonymous int                 // sessions of anonymous callers
	streams   map[string]int      // sessions by the limit key of their owner
}

var _ http.Handler = (*Handler)(nil)

// NewHandler returns the endpoint for h: mount it at a path of its own, such
// as /sse. o may be nil.
//
// Deprecated: use streamable.NewHandler, in addition if clients may be old.
func NewHandler(h transport.Handler, o *Options) *Handler {
	if err := transport.CheckHandler(h); err != nil {
		panic("sse.NewHandler: " + err.Error())
	}
	e := &Handler{
		handler:  h,
		o:        o.defaults(),
		sessions: make(map[string]*session),
		streams:  make(map[string]int),
	}
	e.o.Access = e.o.Access.OnRefused(e.refused)
	e.responses.ReadTimeout, e.responses.WriteStall = e.o.ReadTimeout, e.o.WriteStall
	e.responses.KeepAlive, e.responses.Logger = e.o.KeepAlive, e.o.Logger
	return e
}

// ServeHTTP serves one HTTP request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// What is left of the answer is written when this has returned. Where
	// middleware hides deadlines, it is responsible for them.
	defer func() {
		rc := http.NewResponseController(w)
		now := time.Now()
		_ = rc.SetWriteDeadline(now.Add(2 * refusalTimeout))
		if r.ContentLength != 0 { // net/http reads what is left of a body first
			_ = rc.SetReadDeadline(now.Add(refusalTimeout))
		}
	}()
	who, ok := h.o.Access.Admit(w, r, &corsPolicy)
	if !ok {
		return
	}
	switch r.Method {
	case http.MethodGet:
		h.stream(w, r, who)
	case http.MethodPost:
		h.post(w, r, who)
	default:
		w.Header().Set("Allow", strings.Join(corsPolicy.Methods, ", "))
		h.refuse(w, r, http.StatusMethodNotAllowed, jsonrpc.CodeInvalidRequest, "GET opens a stream, POST sends a message; %s does nothing here", r.Method)
	}
}

// A refusal is the error that a request is refused with.
type refusal struct {
	status int
	err    *jsonrpc.Error
}

var (
	refusedClosing = &refusal{http.StatusServiceUnavailable, web.ShuttingDown()}
	refusedUnknown = &refusal{http.StatusNotFound, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
		"no such session; open a stream with GET and post to the address it names")}
)

// tooMany refuses a client that may come back later.
func tooMany(limit, format string, args ...any) *refusal {
	return &refusal{http.StatusTooManyRequests, web.TooMany(limit, format, args...)}
}

// refuse refuses a request.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, status int, code int64, format string, args ...any) {
	h.refuseWith(w, r, &refusal{status, jsonrpc.NewError(code, format, args...)})
}

func (h *Handler) refuseWith(w http.ResponseWriter, r *http.Request, no *refusal) {
	h.refused(r, no.err)
	web.Refuse(w, no.status, no.err, true)
}

// refused tells the handler of a request that is refused.
func (h *Handler) refused(r *http.Request, e *jsonrpc.Error) {
	h.handler.Refused(r.Context(), transport.Refusal{Err: e, Principal: h.o.Access.Caller(r), Transport: &sessionlessTransport})
}

// sessionlessTransport describes the transport of requests without a session.
var sessionlessTransport = transport.Info{Name: transportName}

// transportName is the name of the transport for handlers.
const transportName = "sse"

// stream serves a session for as long as the client reads its stream.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, who *principal.Principal) {
	if r.ContentLength != 0 {
		// net/http would wait for the body before it begins the stream.
		w.Header().Set("Connection", "close")
		h.refuse(w, r, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "a GET opens a stream and has no body; send messages with POST")
		return
	}
	s := newSession(r, who)
	h.responses.Start(&s.out.Response, w, true)
	defer s.cancel(nil)
	defer s.end() // a panic of the handler must not leave a stream that writes
	defer context.AfterFunc(r.Context(), func() { s.cancel(errGone) })()
	// Each write has a deadline of its own. Without deadlines one to a client that
	// does not read could not time out, so that their lack is an error.
	rc := http.NewResponseController(w)
	if err := errors.Join(rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Time{})); err != nil {
		kind, _ := web.InnerWriter(w)
		h.warned.Do(func() {
			h.o.Logger.Error("this endpoint cannot stream; add an Unwrap method (http.ResponseController) to the ResponseWriter of the middleware in front of it, "+
				"or take the middleware away from this endpoint (http.TimeoutHandler)", "type", kind, "error", err)
		})
		h.refuse(w, r, http.StatusInternalServerError, jsonrpc.CodeInternalError, "this server cannot stream")
		return
	}
	if !h.responses.Begin(&s.out.Response, s.out) {
		h.refuseWith(w, r, refusedClosing)
		return
	}
	defer h.responses.End(&s.out.Response)
	if no := h.admit(s); no != nil {
		h.refuseWith(w, r, no)
		return
	}
	defer h.release(s)
	err := frame.Serve(s.ctx, s, h.handler, &frame.Options{
		MaxMessage: h.o.MaxMessage,
		MaxDepth:   h.o.MaxDepth,
		WriteStall: h.o.WriteStall,
		Linger:     math.MaxInt64, // Shutdown, which ends the input, says how long
		Principal:  who,
		Transport:  &transport.Info{Name: transportName, SessionID: s.id},
		Logger:     h.o.Logger,
	})
	if err != nil {
		h.o.Logger.Debug("a session ended", "error", err)
	}
	if !s.out.detach() {
		h.refuseUnopened(w, r, err)
	}
}

// refuseUnopened answers a client whose session ended before its stream began.
func (h *Handler) refuseUnopened(w http.ResponseWriter, r *http.Request, err error) {
	if told, ok := errors.AsType[*jsonrpc.Error](err); ok {
		h.refuseWith(w, r, &refusal{http.StatusServiceUnavailable, told})
		return
	}
	h.refuse(w, r, http.StatusServiceUnavailable, jsonrpc.CodeInternalError, "no session could be opened; try again later")
}

// admit makes the session known, or says why it cannot be.
func (h *Handler) admit(s *session) *refusal {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := s.principal.LimitKey()
	open := h.streams[key]
	switch anonymous := s.principal.Anonymous(); {
	case h.responses.Closing():
		return refusedClosing
	case len(h.sessions) >= h.o.MaxSessions:
		return tooMany("MaxSessions", "this server has %d streams open, which is the most it takes (MaxSessions); try again later", len(h.sessions))
	case anonymous && h.anonymous >= web.AnonymousShare(h.o.MaxSessions):
		return tooMany("MaxSessions", "the anonymous callers of this server have %d streams open, which is the most of them together (nine tenths of MaxSessions); sign in, or try again later", h.anonymous)
	case !anonymous && open >= h.o.MaxSessionsPerPrincipal:
		return tooMany("MaxSessionsPerPrincipal", "you have %d streams open, which is the most of one caller (MaxSessionsPerPrincipal); close one first", open)
	case anonymous && open >= h.o.MaxSessionsPerAddress:
		return tooMany("MaxSessionsPerAddress", "the anonymous callers of your address (%s) have %d streams open, which is the most of one address (MaxSessionsPerAddress); close one first",
			cmp.Or(s.principal.Remote, "unknown"), open)
	}
	h.sessions[s.id] = s
	h.streams[key]++
	if s.principal.Anonymous() {
		h.anonymous++
	}
	return nil
}

// release forgets a session.
func (h *Handler) release(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, s.id)
	if s.principal.Anonymous() {
		h.anonymous--
	}
	key := s.principal.LimitKey()
	if h.streams[key]--; h.streams[key] == 0 {
		delete(h.streams, key)
	}
}

// Shutdown ends the endpoint in good order: new requests get 503, sessions get
// no more messages, requests under way may finish until ctx ends and are
// cancelled then. It returns when nothing of the endpoint runs any more; the
// error is that of ctx, if it was needed.
func (h *Handler) Shutdown(ctx context.Context) error {
	defer h.responses.Stop()
	quiet, _ := h.responses.Close()
	h.mu.Lock()
	sessions := slices.Collect(maps.Values(h.sessions))
	h.mu.Unlock()
	for _, s := range sessions {
		s.finish()
	}
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
	}
	for _, s := range sessions {
		s.cancel(errShutdown)
	}
	<-quiet
	return ctx.Err()
}
