package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/internal/pausetimer"
	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// Options are what is not required of a server. A nil *Options, and each zero
// field, means the default that is told.
type Options struct {
	// Title, Description, WebsiteURL and Icons describe the server to
	// people. Default none.
	Title, Description, WebsiteURL string
	Icons                          []mcp.Icon
	// Instructions tell a model how to use the server. Hosts treat them as
	// untrusted. Default none.
	Instructions string
	// HideInfo leaves the server's name and version out of results of the
	// stateless revision. Default false.
	HideInfo bool
	// Versions are the protocol revisions served, for operators who refuse
	// old ones (SEC-INIT-1). Default all.
	Versions []string
	// Limits bound what peers may ask. Default: see Limits.
	Limits Limits
	// StateKeys seal what passes through clients: requestState and cursors.
	// The first seals, each opens, so that keys can be rotated. Each has at
	// least 16 random bytes. Servers that run as several replicas need them.
	// Default: one random key for the life of the process.
	StateKeys [][]byte
	// ExposeErrors sends the text of every handler error to the peer, for
	// local tools whose user is their author. Default false: only errors of
	// package mcp are shown, others become "internal error" with a reference.
	ExposeErrors bool
	// MapError makes an error for the caller of one that would be hidden, such
	// as one of package mcp for sql.ErrNoRows, in all handlers and middleware.
	// What it returns is then treated as if the handler had returned it, and is
	// what middleware sees; nil leaves the error as it is, and MapError may then
	// be asked about it again. That of a mounted server is asked about the errors
	// of its own features and middleware, before that of the server it is mounted
	// in. ctx is that of the request. Default: none.
	MapError func(ctx context.Context, err error) error
	// ProgressEvery merges the progress of a request: at most one notification
	// in this time, the newest, and always the last one. Default 0: all are
	// sent.
	ProgressEvery time.Duration
	// Cache is the hint for lists, discovery and resources that say nothing
	// themselves. Default: not to be cached, private.
	Cache Cache
	// Experimental are non-standard capabilities to declare. Default none.
	Experimental map[string]mcp.RawValue
	// DeclareTools, DeclarePrompts and DeclareResources declare a capability
	// before anything is there to list. Default: declared once there is.
	DeclareTools, DeclarePrompts, DeclareResources bool
	// OnRootsChanged is called when a client of a handshake revision says
	// that its roots changed. Default: ignored.
	OnRootsChanged func(ctx context.Context)
	// Logger takes what peers are not told: panics, internal errors, dropped
	// messages; lines about a request say which (see RequestLogs). Default
	// slog.Default.
	Logger *slog.Logger
}

// Cache is a hint to clients: how long a result stays fresh, and whether it
// may be shared between callers.
//
// spec 2026-07-28, server/utilities/caching.
type Cache struct {
	// TTL is for how long; it is sent in whole milliseconds. Default 0: stale at once.
	TTL time.Duration
	// Public says that every caller may be given the same copy. Default
	// private. It is refused where visibility depends on the caller.
	Public bool
}

// A Server offers features to clients of every revision. Add and Remove, and
// the change notices, may be called at any time by any goroutine; Use,
// Visible, Mount and Extend belong before the first request.
type Server struct {
	info   mcp.Implementation
	opts   Options
	limits Limits
	// localTimeout is CallTimeout for principal.Local.
	localTimeout   time.Duration
	log            *slog.Logger
	seal           *sealer
	rates          rates
	timers         pausetimer.Scheduler // of all calls
	rows           map[string]*row
	metas          [16]atomic.Pointer[decodedMeta] // of requests that belong to no session
	handshakes     []string                        // the versions served that have a handshake
	lastInitialize atomic.Pointer[initializeText]  // the last one of a handshake

	tools     registry[*tool]
	prompts   registry[*prompt]
	resources registry[*resource]
	templates registry[*template]
	dirs      registry[*directory]
	merge     struct {
		tools     merged[*tool]
		prompts   merged[*prompt]
		resources merged[*resource]
		templates merged[*template]
		dirs      merged[*directory]
	}

	varies      atomic.Bool // a tool has had variants
	visible     func(ctx context.Context, it Item) bool
	middleware  []Middleware
	observers   []Observer
	refusals    refusals
	extensions  []*Extension
	viewers     []func(c *Call, it Item) bool // Visible of extensions
	toolMembers []*Extension                  // those with ToolMembers
	unlisted    *Reader                       // of URIs that nothing else has, or nil
	onSubscribe []func(ctx context.Context, uris []string) (release func())
	mounts      []*mount
	serve       Func // middleware around the features; made at the first request
	frozen      atomic.Bool
	once        sync.Once
	warnKeys    sync.Once

	hub hub

	mu             sync.Mutex
	sessions       map[*session]struct{}
	callers        callers        // of self-contained requests
	statelessCalls *Call          // the first of the same requests
	wg             sync.WaitGroup // self-contained requests
	closed         bool
	done           chan struct{}
}

// New makes a server with its name and version, which clients show. It panics
// if an option is unusable: a state key that is too short, an unknown revision.
func New(name, version string, opts *Options) *Server {
	s := &Server{
		sessions: make(map[*session]struct{}),
		callers:  callers{byKey: make(map[string]*caller)},
		done:     make(chan struct{}),
	}
	if opts != nil {
		s.opts = *opts
	}
	s.info = mcp.Implementation{
		Name: name, Version: version,
		Title: s.opts.Title, Description: s.opts.Description,
		WebsiteURL: s.opts.WebsiteURL, Icons: s.opts.Icons,
	}
	s.limits = s.opts.Limits.filled()
	s.localTimeout = cmp.Or(s.opts.Limits.CallTimeout, localCallTimeout)
	s.log = slog.New(RequestLogs(cmp.Or(s.opts.Logger, slog.Default()).Handler()))
	for _, v := range s.opts.Versions {
		if _, ok := revision.Lookup(v); !ok {
			panic("server.New: unknown protocol revision " + v + " in Options.Versions")
		}
	}
	for _, f := range revision.Handshakes() {
		if s.allows(f) {
			s.handshakes = append(s.handshakes, f.Version)
		}
	}
	seal, err := newSealer(s.opts.StateKeys)
	if err != nil {
		panic("server.New: " + err.Error())
	}
	s.seal = seal
	s.rows = coreRows()
	s.hub.init(s)
	s.warnIcons("server", s.opts.Icons)
	return s
}

// Use adds middleware: the first one added sees a request first. It panics
// after the first request.
func (s *Server) Use(mw ...Middleware) {
	s.mustBeNew("Use")
	for i, m := range mw {
		if m == nil {
			panic(fmt.Sprintf("server: Use: middleware %d of %d is nil", i+1, len(mw)))
		}
	}
	s.middleware = append(s.middleware, mw...)
}

// Visible sets what each caller may see: fn is asked for every item of a list
// and before each call, read, get, completion and subscription, and what it
// hides answers like what does not exist. fn must be quick and must not block;
// it is called by many goroutines. It panics after the first request.
func (s *Server) Visible(fn func(ctx context.Context, it Item) bool) {
	s.mustBeNew("Visible")
	s.visible = fn
}

var errNotMade = errors.New("server: a nil or zero Server; make one with server.New")

// mustBeMade refuses a Server that New has not made, at the first use of it.
func (s *Server) mustBeMade() {
	if s == nil || s.done == nil {
		panic(errNotMade)
	}
}

func (s *Server) mustBeNew(what string) {
	s.mustBeMade()
	if s.frozen.Load() {
		panic("server: " + what + " after the first request; set the server up before serving it")
	}
}

// freeze ends the set-up, at the first request.
func (s *Server) freeze() {
	s.once.Do(func() {
		s.frozen.Store(true)
		next, wrapped := Func((*Call).serveRow), false
		for _, e := range s.extensions {
			e.next = next
			if e.Wrap != nil {
				next = e.Wrap(next)
				wrapped = true
			}
		}
		if wrapped {
			inner := next
			next = func(c *Call) (Result, error) {
				if err := c.grantedEarly(); err != nil {
					return nil, err
				}
				return inner(c)
			}
		}
		for _, mw := range slices.Backward(s.middleware) {
			next = mw(next)
		}
		if s.opts.MapError != nil {
			inner := next
			next = func(c *Call) (Result, error) {
				res, err := inner(c)
				return res, c.mapped(err)
			}
		}
		s.serve = next
	})
}

// Start ends the set-up, as the first connection or request does. Extensions then begin
// what they do without requests, such as to take up tasks that an earlier process left.
func (s *Server) Start() {
	s.mustBeMade()
	s.freeze()
}

// Closing returns a channel that is closed when Shutdown begins: what an extension does in
// the background then begins nothing new.
func (s *Server) Closing() <-chan struct{} {
	s.mustBeMade()
	return s.done
}

// Go runs f in the background, for extensions whose work belongs to no request. ctx ends
// when Shutdown has waited for requests and detached calls; Shutdown then waits for f,
// which must return. A panic of f is logged. It reports whether f runs: not after
// Shutdown.
func (s *Server) Go(f func(ctx context.Context)) bool {
	s.mustBeMade()
	return s.hub.spawn(f)
}

// Serve handles one self-contained request: one of the stateless revision, or
// one of another that its transport keeps no session for. It implements transport.Handler.
func (s *Server) Serve(ctx context.Context, x *transport.Exchange) {
	s.freeze()
	c := s.newCall(ctx, x, nil)
	c.scope = c.inbound.Start(ctx)
	defer c.inbound.End()
	if err := s.admit(c); err != nil {
		s.refuse(ctx, x, nil, err)
		return
	}
	defer s.release(c)
	if x.Version != "" && x.In.Method == mcp.MethodInitialize {
		if err := s.initializeSessionless(c); err != nil {
			c.untrack()
			s.refuse(ctx, x, c.facts, err)
		}
		return
	}
	if x.Batched {
		if _, modern, _ := modernVersion(x.In); modern { // what is wrong with it is for enter to say
			c.untrack()
			s.refuse(ctx, x, nil, errBatched)
			return
		}
	}
	if err := c.enter(x.In); err != nil {
		c.untrack()
		s.refuse(ctx, x, c.facts, err)
		return
	}
	s.handle(c)
}

// Open begins a relation with a peer on a pipe, a WebSocket or a legacy HTTP
// session. It implements transport.Handler.
func (s *Server) Open(conn transport.Conn) (transport.Session, error) {
	if s.done == nil {
		return nil, errNotMade
	}
	s.freeze()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, toWire(shuttingDown())
	}
	p := newSession(s, conn)
	s.sessions[p] = struct{}{}
	return p, nil
}

// Shutdown ends the server in good order: new requests are refused,
// subscriptions end gracefully, methods that are MethodOptions.Long are cancelled,
// other requests under way are given until ctx ends to finish and are cancelled
// then. So are detached calls that would be lost; those with DetachOptions.Record
// end at once, for the process that takes them up, which then runs what is outside
// of Once again. It returns when nothing runs any more; the
// error is that of ctx, if it was needed.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	sessions := make([]*session, 0, len(s.sessions))
	for p := range s.sessions {
		sessions = append(sessions, p)
	}
	s.mu.Unlock()
	if first {
		close(s.done)
	}
	s.hub.endDurable(ErrShutdown)
	quiet := make(chan struct{})
	go func() {
		defer close(quiet)
		for _, p := range sessions {
			p.drain()
		}
		s.wg.Wait()
		s.hub.waitDetached()
	}()
	var err error
	select {
	case <-quiet:
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.cancelStateless()
	var ending sync.WaitGroup // at once: none has to wait for another's handlers to be told
	ending.Go(func() { s.hub.stop(ErrShutdown) })
	for _, p := range sessions {
		ending.Go(func() {
			_ = p.conn.Close(ErrShutdown) // it ends one way or the other
			p.Close(ErrShutdown)
		})
	}
	ending.Wait()
	<-quiet
	s.timers.Stop()
	return err
}

// admit counts a self-contained request as in flight, or refuses it.
func (s *Server) admit(c *Call) error {
	key := s.callers.keyOf(c.Principal())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrShutdown
	}
	entry := s.callers.at(key)
	anonymous := c.Principal().Anonymous()
	most := s.limits.MaxInFlight
	if anonymous {
		most = s.limits.MaxAnonymousInFlight
	}
	if over(entry.inFlight+1, most) {
		return tooManyOf(anonymous, most)
	}
	entry.inFlight++
	c.caller, c.counted = entry, true
	if s.statelessCalls != nil {
		s.statelessCalls.prev = c
	}
	c.next, s.statelessCalls = s.statelessCalls, c
	s.wg.Add(1)
	return nil
}

// uncount takes a self-contained request out of the count of its caller.
func (s *Server) uncount(c *Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uncountLocked(c)
}

// uncountLocked is uncount with the lock held.
func (s *Server) uncountLocked(c *Call) {
	if !c.counted {
		return
	}
	c.counted = false
	c.caller.inFlight--
	s.callers.dropIdle(c.caller)
}

// release ends a self-contained request: nothing of it runs any more.
func (s *Server) release(c *Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uncountLocked(c)
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		s.statelessCalls = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
	s.wg.Done()
}

// cancelStateless cancels the self-contained requests that are in flight.
func (s *Server) cancelStateless() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := s.statelessCalls; c != nil; c = c.next {
		c.inbound.Cancel(ErrShutdown)
	}
}

// closing reports whether Shutdown has begun.
func (s *Server) closing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// forget removes a session that has ended.
func (s *Server) forget(p *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, p)
}

// Versions lists the protocol revisions served, newest first.
func (s *Server) Versions() []string {
	var out []string
	for _, f := range revision.All() {
		if s.allows(f) {
			out = append(out, f.Version)
		}
	}
	return out
}

func (s *Server) allows(f *revision.Facts) bool {
	return len(s.opts.Versions) == 0 || slices.Contains(s.opts.Versions, f.Version)
}
