package streamable

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// Path is where [Serve] puts the endpoint.
const Path = "/mcp"

// A Handler is an MCP endpoint. It serves clients of every revision at once:
// requests of a stateless revision go to the handler one by one, on the
// goroutine of their HTTP request; those of a revision with a handshake go to
// the session that the client opened. Its methods may be called by many
// goroutines at once.
type Handler struct {
	core     transport.Handler
	opts     Options
	gate     *web.Gate
	limits   jsonrpc.Limits
	events   EventStore
	memory   *memoryStore // events, if they are kept in memory, else nil
	log      *slog.Logger
	sessions table
	list     openList
	priming  lateList     // requests of sessions whose streams begin soon
	patience lateList     // those of the others
	known    atomic.Value // a type of response writers that have deadlines
	warned   sync.Once    // about a response writer that cannot do all that it should
	asking   sync.Mutex
	maxBatch int // messages in an array, without sessions; 0 is not known yet

	ending chan struct{} // closed when Shutdown begins
}

// NewHandler returns the endpoint for h: mount it at a path of its own, such
// as /mcp. o may be nil.
func NewHandler(h transport.Handler, o *Options) *Handler {
	if err := transport.CheckHandler(h); err != nil {
		panic("streamable.NewHandler: " + err.Error())
	}
	e := &Handler{
		core:   h,
		opts:   o.filled(),
		ending: make(chan struct{}),
	}
	e.gate = web.NewGate(e.opts.Access.Telling(e.refused))
	e.limits = e.opts.limits()
	e.log = e.opts.Logger
	e.events = e.opts.Events
	if e.events == nil {
		e.memory = newMemoryStore(e.opts.ReplayBuffer, e.opts.ReplayMemory, e.opts.ReplayTime)
		e.events = e.memory
	}
	e.sessions.init(e)
	e.list.init(e)
	e.patience.after = e.opts.KeepAlive
	e.priming.after = min(e.opts.KeepAlive, primeAfter)
	return e
}

// face is what the endpoint shows to pages of other origins.
var face = web.Face{
	Methods: []string{http.MethodPost, http.MethodGet, http.MethodDelete},
	Headers: []string{
		"Accept", "Authorization", "Content-Type", "DPoP", "Last-Event-ID", "MCP-Protocol-Version",
		"Mcp-Session-Id", "Mcp-Method", "Mcp-Name", "Mcp-Param-*",
	},
	Exposed: []string{"DPoP-Nonce", "Mcp-Session-Id", "Retry-After", "WWW-Authenticate"},
}

// ServeHTTP serves one HTTP request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o := &open{ResponseWriter: w}
	read := r.ContentLength == 0
	defer func() { h.part(o, read) }()
	who, ok := h.gate.Admit(w, r, &face)
	if !ok {
		return
	}
	if !h.list.enter(o) {
		h.refuse(w, r, http.StatusServiceUnavailable, web.ShuttingDown())
		return
	}
	defer h.list.leave(o)
	if r.Method == http.MethodPost {
		read = h.post(o, r, who)
		return
	}
	h.other(o, r, who, read)
}

// other serves what is no POST.
func (h *Handler) other(o *open, r *http.Request, who *principal.Principal, bare bool) {
	if !bare {
		h.refuse(o.ResponseWriter, r, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"%.16s takes no body; leave Content-Length out", r.Method))
		return
	}
	switch r.Method {
	case http.MethodGet:
		h.list.unlimited(r.Context(), o)
		h.get(o, r, who)
	case http.MethodDelete:
		h.delete(o, r, who)
	default:
		allow := "GET, POST, DELETE"
		if h.opts.Sessionless {
			allow = http.MethodPost
		}
		h.notAllowed(o.ResponseWriter, r, allow)
	}
}

// part gives net/http its time for what it does when ServeHTTP has returned: it
// reads a little more of what was refused, and then writes a short answer.
func (h *Handler) part(o *open, read bool) {
	if read && o.flushed {
		return
	}
	control, due := http.NewResponseController(o.ResponseWriter), time.Now()
	if !read {
		due = due.Add(h.opts.ReadTimeout)
		_ = control.SetReadDeadline(due) // not every server can
	}
	if !o.flushed && !h.list.hurry.Load() {
		_ = control.SetWriteDeadline(due.Add(h.opts.WriteStall))
	}
}

// get serves the stream of a session: what the server sends outside of
// requests, or what the client missed of any stream (spec 2025-11-25,
// basic/transports, Listening for Messages, Resumability).
func (h *Handler) get(w http.ResponseWriter, r *http.Request, who *principal.Principal) {
	if isModern(r) || h.opts.Sessionless || len(r.Header[headerSession]) == 0 {
		h.notAllowed(w, r, "POST")
		return
	}
	if accept := r.Header["Accept"]; len(accept) > 0 && !accepts(accept, "text", "event-stream") {
		h.refuse(w, r, http.StatusNotAcceptable, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"a GET gives text/event-stream; say so in the Accept header"))
		return
	}
	s := h.find(w, r, who)
	if s == nil {
		return
	}
	defer s.release()
	if !s.speaks(w, r) {
		return
	}
	if ids := r.Header[headerLastEvent]; len(ids) > 0 && s.facts.Resume {
		s.resume(w, r, ids)
		return
	}
	s.listen(w, r)
}

// delete ends a session at the wish of its client (spec 2025-11-25,
// basic/transports, Session Management).
func (h *Handler) delete(w http.ResponseWriter, r *http.Request, who *principal.Principal) {
	if isModern(r) || h.opts.Sessionless {
		h.notAllowed(w, r, "POST")
		return
	}
	s := h.find(w, r, who)
	if s == nil {
		return
	}
	defer s.release()
	if !s.speaks(w, r) {
		return
	}
	s.end(ErrDeleted)
	w.WriteHeader(http.StatusNoContent)
}

// Shutdown ends the endpoint in good order: new requests get 503, subscriptions
// and streams of sessions end, requests under way may finish until ctx ends
// and are cancelled then. It returns when nothing of the endpoint runs any
// more; the error is that of ctx, if it was needed.
func (h *Handler) Shutdown(ctx context.Context) error {
	if h.list.close() {
		close(h.ending)
	}
	sessions := h.sessions.close()
	for _, s := range sessions {
		s.tell()
	}
	var err error
	select {
	case <-h.list.quiet:
	case <-ctx.Done():
		err = ctx.Err()
		h.list.expire(ErrStopped)
	}
	var closing sync.WaitGroup // at once: none waits for another's handlers to be told
	for _, s := range sessions {
		closing.Go(func() { s.end(ErrStopped) })
	}
	closing.Wait()
	<-h.list.quiet
	h.sessions.wait()
	h.priming.stop()
	h.patience.stop()
	h.list.stop()
	return err
}

// stopping reports whether Shutdown has begun.
func (h *Handler) stopping() bool {
	select {
	case <-h.ending:
		return true
	default:
		return false
	}
}

// Serve serves h at Path on the TCP address addr until ctx ends, and returns
// nil once it has shut down in good order; see [web.Serve] for what addr means.
// o may be nil.
func Serve(ctx context.Context, addr string, h transport.Handler, o *Options) error {
	endpoint := NewHandler(h, o)
	opts := endpoint.opts.HTTP
	first := opts.Shutdown
	opts.Shutdown = func(ctx context.Context) error {
		if first == nil {
			return endpoint.Shutdown(ctx)
		}
		err := first(ctx)
		if own := endpoint.Shutdown(ctx); own != nil {
			return own
		}
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(Path, endpoint)
	return web.Serve(ctx, addr, mux, &opts)
}
