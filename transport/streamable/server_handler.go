package streamable

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// Path is where [Serve] puts the endpoint, with and without a slash at the end.
const Path = "/mcp"

// A Handler is an MCP endpoint. It serves clients of every revision at once:
// requests of a stateless revision go to the handler one by one, on the
// goroutine of their HTTP request; those of a revision with a handshake go to
// the session that the client opened. Its methods may be called by many
// goroutines at once.
type Handler struct {
	core      transport.Handler
	opts      Options
	access    *web.CachedAccess
	limits    jsonrpc.Limits
	memory    *memoryStore // nil: Options.Events
	log       *slog.Logger
	sessions  table
	responses web.Responses
	asking    sync.Mutex
	maxBatch  int // messages in an array, without sessions; 0 is not known yet

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
	e.access = web.NewCachedAccess(e.opts.Access.OnRefused(e.refusedAccess))
	e.limits = jsonrpc.Limits{Bytes: e.opts.MaxMessage, Depth: e.opts.MaxDepth}
	e.log = e.opts.Logger
	if e.opts.Events == nil {
		e.memory = newMemoryStore(e.opts.ReplayBuffer, e.opts.ReplayMemory, e.opts.ReplayTime)
	}
	e.sessions.init(e)
	e.responses.ReadTimeout, e.responses.WriteStall = e.opts.ReadTimeout, e.opts.WriteStall
	e.responses.KeepAlive, e.responses.Logger = e.opts.KeepAlive, e.log
	return e
}

// refusedAccess tells the core of a request that was not let in.
func (h *Handler) refusedAccess(r *http.Request, e *jsonrpc.Error) {
	h.core.Refused(r.Context(), transport.Refusal{Err: e, Principal: h.opts.Access.Caller(r), Transport: &selfContained})
}

// corsPolicy is what pages of allowed origins may do.
var corsPolicy = web.CORS{
	Methods: []string{http.MethodPost, http.MethodGet, http.MethodDelete},
	Headers: []string{
		"Accept", "Authorization", "Content-Type", "DPoP", "Last-Event-ID", "MCP-Protocol-Version",
		"Mcp-Session-Id", "Mcp-Method", "Mcp-Name", "Mcp-Param-*",
	},
	Exposed: []string{"DPoP-Nonce", "Mcp-Session-Id", "Retry-After", "WWW-Authenticate"},
}

// ServeHTTP serves one HTTP request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var hd head
	hd.read(r.Header)
	a := newActiveRequest(h, r, hd.stateless)
	h.responses.Start(&a.Response, w, r.ContentLength == 0)
	defer h.responses.End(&a.Response)
	who, ok := h.access.Admit(w, r, &corsPolicy)
	if !ok {
		return
	}
	a.x.Principal = who
	if !h.responses.Begin(&a.Response, a) {
		h.refuse(a, &hd, http.StatusServiceUnavailable, web.ShuttingDown())
		return
	}
	switch bare := r.ContentLength == 0; {
	case r.Method == http.MethodPost:
		h.post(a, &hd)
	case !bare:
		h.refuse(a, &hd, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"%.16s takes no body; leave Content-Length out", r.Method))
	case r.Method == http.MethodGet:
		h.get(a, &hd)
	case r.Method == http.MethodDelete:
		h.delete(a, &hd)
	case h.opts.Sessionless:
		h.notAllowed(a, &hd, http.MethodPost)
	default:
		h.notAllowed(a, &hd, "GET, POST, DELETE")
	}
	if a.Torn() {
		panic(http.ErrAbortHandler)
	}
}

// delete ends a session at the wish of its client (spec 2025-11-25,
// basic/transports, Session Management).
func (h *Handler) delete(a *activeRequest, hd *head) {
	if hd.stateless || h.opts.Sessionless {
		h.notAllowed(a, hd, http.MethodPost)
		return
	}
	s := h.caller(a, hd)
	if s == nil {
		return
	}
	defer s.release()
	s.end(ErrDeleted)
	a.Writer().WriteHeader(http.StatusNoContent)
}

// Shutdown ends the endpoint in good order: new requests get 503, subscriptions
// and streams of sessions end, requests under way may finish until ctx ends
// and are cancelled then. It returns when nothing of the endpoint runs any
// more; the error is that of ctx, if it was needed.
func (h *Handler) Shutdown(ctx context.Context) error {
	quiet, first := h.responses.Close()
	if first {
		close(h.ending)
	}
	sessions := h.sessions.close()
	for _, s := range sessions {
		s.tell()
	}
	var err error
	select {
	case <-quiet:
	case <-ctx.Done():
		err = ctx.Err()
		h.responses.Abort(ErrStopped)
	}
	var closing sync.WaitGroup // at once: none waits for another's handlers to be told
	for _, s := range sessions {
		closing.Go(func() { s.end(ErrStopped) })
	}
	closing.Wait()
	<-quiet
	h.sessions.work.Wait()
	h.responses.Stop()
	return err
}

// Serve serves h at Path on the TCP address addr until ctx ends, and returns
// nil once it has shut down in good order; see [web.Serve] for what addr means.
// o may be nil.
func Serve(ctx context.Context, addr string, h transport.Handler, o *Options) error {
	endpoint := NewHandler(h, o)
	opts := endpoint.opts.HTTP
	first := opts.Shutdown
	opts.Shutdown = func(ctx context.Context) (err error) {
		if first != nil {
			err = first(ctx)
		}
		return cmp.Or(endpoint.Shutdown(ctx), err)
	}
	mux := http.NewServeMux()
	mux.Handle(Path, endpoint)
	mux.Handle(Path+"/{$}", endpoint) // as many clients write it
	return web.Serve(ctx, addr, mux, &opts)
}
