package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/revision/shape"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
)

// A session is the server's half of a long-lived relation: what a handshake
// negotiated, and what is in flight in both directions. Modern requests may
// travel on the same connection; of the session they use only the tracking.
type session struct {
	srv  *Server
	conn transport.Conn
	peer *jsonrpc.Peer
	feed *feed  // change notices of the handshake era
	key  string // of the connection's principal, for limits

	meta     atomic.Pointer[decodedMeta] // the last one that was sent
	observed atomic.Pointer[SessionInfo] // what observers were told
	// initializing is set while initialize is being answered.
	initializing atomic.Pointer[initializing]

	mu           sync.Mutex
	facts        *revision.Facts       // nil before the handshake
	ready        bool                  // the initialize response is on its way
	ended        bool                  // Close was called
	clientParams *mcp.InitializeParams // perhaps of other sessions too; never written to
	minLogLevel  mcp.LogLevel
	inFlight     int      // requests
	roots        struct { // notices of changed roots
		busy, again bool
	}
	idle      chan struct{} // closed when none is under way; made by drain
	inputDone chan struct{} // closed when the client sends no more; made by inputEnded
	inputOver bool          // the client sends no more
}

func newSession(s *Server, conn transport.Conn) *session {
	p := &session{
		srv: s, conn: conn, key: conn.Principal().LimitKey(),
		minLogLevel: mcp.LogInfo,
	}
	p.peer = jsonrpc.NewPeer(&jsonrpc.PeerOptions{MaxInFlight: bound(s.limits.MaxInFlight), Logger: s.log})
	return p
}

// Begin admits one request in the order of arrival.
func (p *session) Begin(ctx context.Context, x *transport.Exchange) func() {
	c := p.srv.newCall(ctx, x, p)
	p.count(1) // before asking whether the server ends, since that looks at the count
	run, err := p.begin(ctx, c, x)
	if err != nil {
		p.count(-1)
		p.srv.refuse(ctx, x, cmp.Or(c.facts, p.negotiated()), err)
		return nil
	}
	return run
}

func (p *session) begin(ctx context.Context, c *Call, x *transport.Exchange) (run func(), err error) {
	if p.srv.closing() {
		return nil, ErrShutdown
	}
	if x.Batched || x.In.Method == mcp.MethodInitialize {
		_, modern, _ := modernVersion(x.In) // what is wrong with it is for enter to say
		switch {
		case !modern && x.In.Method == mcp.MethodInitialize:
			return p.initialize(c, x)
		case modern && x.Batched:
			return nil, errBatched
		}
	}
	tracked, err := p.peer.Track(ctx, x.In.ID, &c.inbound)
	if err != nil {
		return nil, err
	}
	c.scope = tracked
	if g := p.initializing.Load(); g != nil && waitsForInitialize(x.In) {
		return func() { c.runAfter(g) }, nil
	}
	if err := c.enter(x.In); err != nil {
		c.inbound.End()
		return nil, err
	}
	if !c.facts.Handshake {
		p.begun(c)
	}
	return c.run, nil
}

// errBatched refuses a stateless request in an array. Ruling 10: arrays exist
// in one revision, which has a handshake.
var errBatched = jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
	"a request of a stateless protocol revision cannot be part of a JSON-RPC batch; send it by itself")

// run handles a tracked call.
func (c *Call) run() {
	defer c.session.count(-1)
	defer c.inbound.End()
	c.srv.handle(c)
}

// initializing is an initialize request in flight: from its arrival until its
// answer is queued, or it failed.
type initializing struct{ done chan struct{} }

// maxInitializeWait is the longest that a request waits for initialize to be answered.
const maxInitializeWait = time.Minute

// waitsForInitialize reports whether a request that came right behind initialize
// has to wait for it: all of the handshake's revisions but ping.
func waitsForInitialize(in *jsonrpc.Incoming) bool {
	if in.Method == mcp.MethodPing {
		return false
	}
	_, modern, _ := modernVersion(in)
	return !modern
}

// runAfter is run for a tracked call that came while initialize was being answered.
// A client may send its first requests without waiting for that answer, though it
// should not (spec 2025-11-25, basic/lifecycle, Initialization).
func (c *Call) runAfter(g *initializing) {
	p := c.session
	defer p.count(-1)
	defer c.inbound.End()
	timer := time.NewTimer(maxInitializeWait)
	defer timer.Stop()
	select {
	case <-g.done:
	case <-timer.C:
	case <-c.Done():
	case <-c.srv.done:
	}
	err := context.Cause(c)
	switch {
	case errors.Is(err, ErrCancelled):
		return // spec, basic/patterns/cancellation: no response to a cancelled request
	case err == nil && p.srv.closing():
		err = ErrShutdown
	case err == nil:
		err = c.enter(c.x.In)
	}
	if err != nil {
		c.inbound.End()
		p.srv.refuse(context.WithoutCancel(c), c.x, cmp.Or(c.facts, p.negotiated()), err)
		return
	}
	c.srv.handle(c)
}

// initializeAnswered ends the wait of requests for the answer to initialize.
func (p *session) initializeAnswered() {
	if g := p.initializing.Swap(nil); g != nil {
		close(g.done)
	}
}

// count keeps the number of requests under way.
func (p *session) count(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight += n
	if p.inFlight == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

// drain waits until no request is under way.
func (p *session) drain() {
	p.mu.Lock()
	if p.inFlight == 0 {
		p.mu.Unlock()
		return
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	quiet := p.idle
	p.mu.Unlock()
	<-quiet
}

// Accept takes a notification or response of the client.
func (p *session) Accept(m *jsonrpc.Incoming) {
	if m.Kind == jsonrpc.Response {
		p.peer.Resolve(m)
		return
	}
	switch m.Method {
	case mcp.NotifyCancelled:
		p.cancelled(m)
	case mcp.NotifyInitialized:
		// Requests are served since the initialize response (ruling 3).
	case mcp.NotifyRootsListChanged:
		if f := p.srv.opts.OnRootsChanged; f != nil && p.clientCaps().Roots != nil {
			p.rootsChanged(f)
		}
	default:
		p.srv.log.Debug("notification ignored", "method", clip(m.Method))
	}
}

// rootsChanged has f called in the background, once for all notices that come
// while it runs.
func (p *session) rootsChanged(f func(ctx context.Context)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roots.again = true
	if p.roots.busy {
		return
	}
	p.roots.busy = p.srv.hub.spawn(func(ctx context.Context) {
		for p.rootsAgain() {
			p.srv.guard(func() { f(ctx) })
		}
	})
}

// rootsAgain reports whether there was a notice since it was asked last.
func (p *session) rootsAgain() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.roots.again {
		p.roots.busy = false
		return false
	}
	p.roots.again = false
	return true
}

// cancelled ends a request of the client. Unknown, finished and malformed ones
// are ignored, as the specification says.
func (p *session) cancelled(m *jsonrpc.Incoming) {
	var params mcp.CancelledParams
	if err := wire.DecodeParams(m.Params.Raw(), &params); err != nil || params.RequestID.IsZero() {
		p.srv.log.Debug("malformed cancellation ignored", "err", err)
		return
	}
	if p.peer.Cancel(params.RequestID, ErrCancelled) {
		p.srv.log.Debug("request cancelled", "id", params.RequestID.String(), "reason", clip(params.Reason))
	}
}

// Rules says what the negotiated revision allows on the wire.
func (p *session) Rules() transport.Rules {
	p.mu.Lock()
	f := p.facts // also while initialize is being answered, when the next messages may be there
	p.mu.Unlock()
	if f == nil { // Ruling 9: not yet negotiated peers get what JSON-RPC says
		return transport.Rules{NullID: true, MaxBatch: p.srv.limits.MaxBatch}
	}
	return transport.Rules{
		Version: f.Version, Serves: p.srv.handshakes,
		Batch: f.Batch, MaxBatch: p.srv.limits.MaxBatch, NullID: f.NullID,
	}
}

// Ending ends the subscriptions of a client that sends no more.
func (p *session) Ending() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inputOver = true; p.inputDone != nil {
		close(p.inputDone)
	}
}

// inputEnded returns a channel that is closed when the client sends no more.
func (p *session) inputEnded() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inputDone == nil {
		p.inputDone = make(chan struct{})
		if p.inputOver {
			close(p.inputDone)
		}
	}
	return p.inputDone
}

// Close ends the relation and waits until nothing of it runs.
func (p *session) Close(cause error) {
	p.mu.Lock()
	p.ended = true // from here on no handshake makes a feed
	feed := p.feed
	p.mu.Unlock()
	if feed != nil {
		feed.close()
	}
	p.peer.Close(cause)
	p.drain()
	p.finished(cause)
	p.srv.forget(p)
}

// admit checks that the handshake has been made.
func (p *session) admit(c *Call) error {
	f := p.negotiated()
	if f == nil && (c.Method() == mcp.MethodPing || c.Method() == mcp.MethodDiscover) {
		f = revision.NewestHandshake()
		if c.Method() == mcp.MethodDiscover {
			// A client that probes without `_meta` is told what to send.
			c.use(revision.Newest())
			return jsonrpc.NewError(jsonrpc.CodeInvalidParams, "_meta lacks the required member %q", mcp.MetaProtocolVersion)
		}
	}
	if f == nil {
		c.use(revision.NewestHandshake())
		return jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"%s before initialize: begin with an initialize request, or name a protocol version in _meta (supported: %v)", clip(c.Method()), p.srv.Versions())
	}
	c.use(f)
	return nil
}

// initialize makes the handshake. Ruling 3: an unknown version is answered
// with our newest one that has a handshake; a second initialize changes nothing.
func (p *session) initialize(c *Call, x *transport.Exchange) (run func(), err error) {
	c.use(revision.NewestHandshake())
	result, err := p.negotiate(x.In)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	f, feed := p.facts, p.feed
	c.params, c.caps = p.clientParams, &p.clientParams.Capabilities
	p.mu.Unlock()
	c.use(f)
	c.row = initializeRow(result)
	p.srv.freeze()
	return func() {
		defer p.count(-1)
		defer p.initializeAnswered()
		answer, err := p.srv.run(c, p.srv.serve)
		if err == nil {
			p.mu.Lock()
			p.ready = true
			p.mu.Unlock()
			p.begun(c)
			if err = p.srv.answer(c, answer); err == nil {
				feed.release()
				return
			}
		}
		p.undoHandshake(feed) // the client may try again
		p.finished(err)
		p.srv.answerError(c, err)
	}, nil
}

// initializeRow is the row of a handshake, for middleware: what it serves has
// been decided.
func initializeRow(result *mcp.InitializeResult) *row {
	m, _ := mcp.Lookup(mcp.MethodInitialize)
	return &row{Method: m, serve: func(*Call) (Result, error) { return result, nil }}
}

// undoHandshake undoes a handshake that middleware refused.
func (p *session) undoHandshake(feed *feed) {
	p.mu.Lock()
	ended := p.ended
	p.facts, p.clientParams, p.feed, p.ready = nil, nil, nil, false
	p.mu.Unlock()
	if !ended { // or Close does it
		feed.close()
	}
}

func (p *session) negotiate(in *jsonrpc.Incoming) (*mcp.InitializeResult, error) {
	s := p.srv
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, jsonrpc.ErrClosed
	}
	if p.facts != nil {
		return nil, jsonrpc.NewError(jsonrpc.CodeInvalidRequest, "initialize was sent already on this connection; it negotiated %s", p.facts.Version)
	}
	params, f, err := s.agree(in)
	if err != nil {
		return nil, err
	}
	p.facts = f
	p.clientParams = params
	p.initializing.Store(&initializing{make(chan struct{})})
	p.feed = newFeed(s, p.conn, nil)
	p.feed.session = p
	p.feed.hold() // nothing before the initialize response
	s.hub.add(p.feed)
	caps := s.capabilities(f, p.conn.Principal())
	if caps.Tools == nil {
		p.feed.lack(topicTools, func() bool { return s.offers(f, mcp.CapTools) })
	}
	if caps.Prompts == nil {
		p.feed.lack(topicPrompts, func() bool { return s.offers(f, mcp.CapPrompts) })
	}
	if caps.Resources == nil {
		p.feed.lack(topicResources, func() bool { return s.offers(f, mcp.CapResources) })
	}
	return s.initializeResult(f, caps), nil
}

// agree reads what a client says in its handshake, and picks the revision.
func (s *Server) agree(in *jsonrpc.Incoming) (*mcp.InitializeParams, *revision.Facts, error) {
	if in.ParamsArray || in.Params.IsZero() {
		return nil, nil, jsonrpc.NewError(jsonrpc.CodeInvalidParams, "initialize needs params: protocolVersion, capabilities and clientInfo")
	}
	if _, ok := in.Params.Member("protocolVersion"); !ok {
		return nil, nil, jsonrpc.NewError(jsonrpc.CodeInvalidParams, "initialize needs a protocolVersion")
	}
	if n := len(in.Params.Raw()); n > maxHandshake {
		return nil, nil, jsonrpc.NewError(jsonrpc.CodeInvalidParams,
			"params of initialize have %d bytes, and may have %d; leave large icons and metadata out", n, maxHandshake)
	}
	params, err := s.decodeInitialize(in.Params.Raw())
	if err != nil {
		return nil, nil, invalidParams(mcp.MethodInitialize, err)
	}
	f := s.handshakeFor(params.ProtocolVersion)
	if f == nil {
		return nil, nil, mcp.NewError(mcp.CodeInvalidParams, "unsupported protocol version %q: this server speaks %v", clip(params.ProtocolVersion), s.Versions()).
			With(mcp.UnsupportedVersionData{Supported: s.Versions(), Requested: params.ProtocolVersion})
	}
	return params, f, nil
}

// initializeResult is the result of initialize.
func (s *Server) initializeResult(f *revision.Facts, caps *mcp.ServerCapabilities) *mcp.InitializeResult {
	return &mcp.InitializeResult{
		ProtocolVersion: f.Version,
		Capabilities:    *caps,
		ServerInfo:      s.info,
		Instructions:    s.opts.Instructions,
	}
}

// initializeText is the params of an initialize request and their text. Clients of
// one program say the same, so that their sessions share it.
type initializeText struct {
	text   []byte
	params *mcp.InitializeParams
}

// maxHandshake is the most bytes of params of initialize, over every transport. A session keeps them, and one
// address can have 1,000 idle sessions: with params of 4 MiB each, the server would keep 4 GiB for half an hour.
// Stateless clients send the same with each request, so honest ones are far below; icons can be https URLs.
const maxHandshake = 64 << 10

// maxInitializeText is the longest text that is cached, in bytes.
const maxInitializeText = 4 << 10

// decodeInitialize decodes the parameters of a handshake.
func (s *Server) decodeInitialize(raw mcp.RawValue) (*mcp.InitializeParams, error) {
	if last := s.lastInitialize.Load(); last != nil && bytes.Equal(last.text, raw) {
		return last.params, nil
	}
	params := new(mcp.InitializeParams)
	if err := shape.For(revision.NewestHandshake()).UpParams(mcp.MethodInitialize, raw, params); err != nil {
		return nil, err
	}
	if len(raw) <= maxInitializeText {
		s.lastInitialize.Store(&initializeText{text: bytes.Clone(raw), params: params})
	}
	return params, nil
}

// handshakeFor picks the revision of a session: the one asked for, else our
// newest with a handshake that the operator allows, else nil.
func (s *Server) handshakeFor(version string) *revision.Facts {
	if f, ok := revision.Lookup(version); ok && f.Handshake && s.allows(f) {
		return f
	}
	for _, f := range revision.All() {
		if f.Handshake && s.allows(f) {
			return f
		}
	}
	return nil
}

// negotiated is the revision of the session, once requests may use it.
func (p *session) negotiated() *revision.Facts {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ready {
		return nil
	}
	return p.facts
}

func (p *session) clientCaps() *mcp.ClientCapabilities {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clientParams == nil {
		return &noCapabilities
	}
	return &p.clientParams.Capabilities
}

func (p *session) clientInfo() *mcp.Implementation {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clientParams == nil {
		return nil
	}
	return &p.clientParams.ClientInfo
}

func (p *session) level() mcp.LogLevel {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.minLogLevel
}

// setLevel serves logging/setLevel.
//
// spec 2025-11-25, server/utilities/logging.
func (c *Call) setLevel(params *mcp.SetLevelParams) (Result, error) {
	if !params.Level.Valid() {
		return nil, mcp.NewError(mcp.CodeInvalidParams, "unknown log level %q: one of %v", clip(string(params.Level)), mcp.LogLevels())
	}
	p := c.session
	p.mu.Lock()
	defer p.mu.Unlock()
	p.minLogLevel = params.Level
	return &mcp.EmptyResult{}, nil
}

func (c *Call) ping(*mcp.EmptyParams) (Result, error) { return &mcp.EmptyResult{}, nil }

// discover serves server/discover.
//
// spec 2026-07-28, server/discover.
func (c *Call) discover(*mcp.DiscoverParams) (Result, error) {
	s := c.srv
	res := &mcp.DiscoverResult{
		SupportedVersions: s.Versions(),
		Capabilities:      *s.capabilities(c.facts, c.Principal()),
		Instructions:      s.opts.Instructions,
	}
	s.opts.Cache.fill(&res.Cacheable, s.filters())
	return res, nil
}

// capabilities are what the server offers to a caller in a revision.
func (s *Server) capabilities(f *revision.Facts, caller *principal.Principal) *mcp.ServerCapabilities {
	caps := &mcp.ServerCapabilities{Experimental: s.opts.Experimental, Logging: mcp.Settings{}}
	if s.offers(f, "tools") {
		caps.Tools = &mcp.ToolsCapability{ListChanged: true}
	}
	if s.offers(f, "prompts") {
		caps.Prompts = &mcp.PromptsCapability{ListChanged: true}
	}
	if s.offers(f, "resources") {
		caps.Resources = &mcp.ResourcesCapability{ListChanged: true, Subscribe: true}
	}
	if f.CompletionCapability && s.completes() {
		caps.Completions = mcp.Settings{}
	}
	for _, e := range s.extensions {
		e.declare(caps, f, caller)
	}
	return caps
}

// offers reports whether the server has a capability, by its dotted name.
func (s *Server) offers(f *revision.Facts, capability string) bool {
	switch capability {
	case "tools":
		return s.opts.DeclareTools || len(s.allTools().keys) > 0
	case "prompts":
		return s.opts.DeclarePrompts || len(s.allPrompts().keys) > 0
	case "resources", "resources.subscribe":
		return s.opts.DeclareResources || s.extendsResources(f) || s.readsUnlisted() || len(s.resourcesWithoutFiles().keys) > 0 || len(s.allTemplates().keys) > 0 || len(s.allDirs().keys) > 0
	case "completions":
		return s.completes() || !f.CompletionCapability
	}
	return true
}

// cancelWith ends the context of a call.
func (c *Call) cancelWith(cause error) {
	c.inbound.Cancel(cause)
}

var _ transport.Session = (*session)(nil)
