package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/internal/pausetimer"
	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/revision/shape"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
)

// A Call is one in-flight request, and the context that middleware and handlers
// get, so that Progress, Elicit and the others find it; a context derived from it
// will do as well. To hand something on, a span or a user, middleware calls
//
//	next(c.WithContext(context.WithValue(c, key, value)))
//
// A Call is never reused or changed, and its methods may be called by many
// goroutines at once.
type Call struct {
	// scope is unexported, so that the context can be derived but not replaced. With an exported
	// context.Context, the obvious c.Context = context.WithValue(c, k, v) made a context its own parent,
	// and the first look-up overflowed the stack. WithContext returns a small new Call of the same
	// request instead, as http.Request.WithContext does. It costs an allocation of 24 bytes in addition
	// to the derived context. An input request belongs to the context that it is made in: if a deadline
	// of the handler or of middleware ends it, the client is notified.
	scope
	*request
}

// scope is context.Context under a name that other packages cannot set.
type scope = context.Context

// A request is what all Calls of one request share. It holds the first of them,
// so that a request is one allocation.
type request struct {
	first      Call
	srv        *Server
	x          *transport.Exchange
	row        *row
	facts      *revision.Facts
	session    *session // nil for a self-contained request
	caller     *caller  // of a self-contained request
	target     string
	params     any
	meta       *mcp.RequestMeta
	caps       *mcp.ClientCapabilities
	inbound    jsonrpc.Inbound
	prev, next *Call // other self-contained requests; they belong to the server's mutex
	counted    bool  // in flight, among those of caller; belongs to the server's mutex
	timer      pausetimer.Timer
	more       atomic.Pointer[extras] // nil until it is needed
	reply      jsonrpc.Outgoing
	tool       mcp.CallToolParams // the params of tools/call
}

// WithContext returns the same request with another context, which must be
// derived from c: it ends when ctx ends, asks that wait end with it, and its
// values are those of ctx. c itself does not change. With a context that is not
// derived from c the handler does not hear that the request has ended: it is
// answered all the same, but Shutdown waits for the handler. It panics if ctx is
// nil.
func (c *Call) WithContext(ctx context.Context) *Call {
	if ctx == nil {
		panic("server: Call.WithContext: nil context")
	}
	return &Call{scope: ctx, request: c.request}
}

// in is c with the context ctx, in which it was found.
func (c *Call) in(ctx context.Context) *Call {
	if own, ok := ctx.(*Call); ok && own == c {
		return c
	}
	return c.WithContext(ctx)
}

// extras are state that most requests do not need: of questions, progress and
// log messages.
type extras struct {
	reservation *reservation // of a request that waits for its rate limit
	asks        recorder
	progress    progressState
	logs        logState
	hidden      atomic.Bool // the text of an error was kept from the caller
	detached    *detachment // of a detached call; nil for others
}

// extras returns the extras, which are made at the first use.
func (c *Call) extras() *extras {
	if m := c.more.Load(); m != nil {
		return m
	}
	c.more.CompareAndSwap(nil, new(extras))
	return c.more.Load()
}

// detachment is what a detached call has instead of its exchange; nil for others.
func (c *Call) detachment() *detachment {
	if m := c.more.Load(); m != nil {
		return m.detached
	}
	return nil
}

// concealed reports whether the text of an error was kept from the caller.
func (c *Call) concealed() bool {
	m := c.more.Load()
	return m != nil && m.hidden.Load()
}

// shape is what translates for the revision of the request.
func (c *Call) shape() *shape.Shape { return shape.For(c.facts) }

// needsInput reports whether the run ended because an answer is missing.
func (c *Call) needsInput() bool {
	m := c.more.Load()
	return m != nil && m.asks.waits()
}

type progressState struct {
	once sync.Once
	busy chan struct{} // holds one while progress is made and sent
	last float64
	any  bool
	at   time.Time           // when the last one was sent
	held *mcp.ProgressParams // what ProgressEvery keeps back
}

type callKey struct{}

// Value gives the Call itself to this package, and the rest to the context.
func (c *Call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.scope.Value(key)
}

// CallFrom returns the request that ctx belongs to, or nil outside of one.
func CallFrom(ctx context.Context) *Call {
	if c, ok := ctx.(*Call); ok {
		return c
	}
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// Caller returns the sender of the request that ctx belongs to: principal.Local on
// a pipe, and nil outside of a request.
func Caller(ctx context.Context) *principal.Principal {
	if c := CallFrom(ctx); c != nil {
		return c.Principal()
	}
	return nil
}

// Method is the method of the request, for example "tools/call".
func (c *Call) Method() string { return c.x.In.Method }

// Target is what the request is about: the name of a tool or prompt, the URI
// of a resource, or "" for methods that have none.
func (c *Call) Target() string { return c.target }

// Params are the decoded parameters: a pointer to a params type of package mcp, or
// to the one that the method of an extension was made with. They must not be
// written to.
func (c *Call) Params() any { return c.params }

// Param returns a member of params as the client sent it, and whether it is there, for
// extensions that add members to methods of others, such as "task" of tools/call. A
// null is absent. It must not be written to, and is good until the request has
// been answered; in a detached call until that has ended.
func (c *Call) Param(name string) (value mcp.RawValue, ok bool) {
	value, ok = c.x.In.Params.Member(name)
	if string(value) == "null" { // ruling 33
		return nil, false
	}
	return value, ok
}

// ID is the id of the request. In the stateless revision each round of an
// asked request has a new one; see RoundsID.
func (c *Call) ID() jsonrpc.ID { return c.x.In.ID }

// Version is the protocol revision of the request.
func (c *Call) Version() string { return c.facts.Version }

// Principal is the sender of the request.
func (c *Call) Principal() *principal.Principal {
	if c.x.Principal == nil && c.session != nil {
		return c.session.conn.Principal()
	}
	return c.x.Principal
}

// Transport is the kind of transport that the request came by: "stdio", "http",
// "sse", "websocket", "memory", or "" if it does not say.
func (c *Call) Transport() string {
	if c.x.Transport == nil {
		return ""
	}
	return c.x.Transport.Name
}

// SessionID is the id of the session that the request came in, as the transport
// gave it out: the Mcp-Session-Id of Streamable HTTP. It is "" where there is
// none, as on a pipe and in the stateless revision. Its holder can use the
// session, so do not log it as it is.
func (c *Call) SessionID() string {
	if c.x.Transport == nil {
		return ""
	}
	return c.x.Transport.SessionID
}

// ClientInfo is what the client says of itself, or nil. It is not verified,
// must not decide anything, and must not be written to.
func (c *Call) ClientInfo() *mcp.Implementation {
	if c.session != nil && c.facts.Handshake {
		return c.session.clientInfo()
	}
	return c.meta.ClientInfo
}

// ClientCapabilities are what the client declared, for this request in the
// stateless revision and for the session before it. They must not be written to.
func (c *Call) ClientCapabilities() *mcp.ClientCapabilities { return c.caps }

// Meta is the `_meta` of the request. It must not be written to.
func (c *Call) Meta() *mcp.RequestMeta { return c.meta }

// Round counts how often the request has been answered "input required"
// before: 0 for the first time. Audit and budgets count round 0 only.
func (c *Call) Round() int {
	_, round := c.asked()
	return round
}

// RoundsID names all rounds of one request; it is empty before the first ask.
func (c *Call) RoundsID() string {
	flow, _ := c.asked()
	return flow
}

// asked is what is known of the rounds of the request.
func (c *Call) asked() (flow string, round int) {
	m := c.more.Load()
	if m == nil {
		return "", 0
	}
	m.asks.mu.Lock()
	defer m.asks.mu.Unlock()
	return m.asks.flow, m.asks.round
}

// newCall makes the call of an exchange, before anything is known of it.
func (s *Server) newCall(ctx context.Context, x *transport.Exchange, p *session) *Call {
	r := &request{srv: s, x: x, session: p, meta: &noMeta, caps: &noCapabilities}
	r.first = Call{scope: ctx, request: r}
	return &r.first
}

// What a request without `_meta` has. They are never written to.
var (
	noMeta         mcp.RequestMeta
	noCapabilities mcp.ClientCapabilities
)

// limitKey is the name that the limits of the caller count under.
func (c *Call) limitKey() string {
	if c.caller != nil {
		return c.caller.key
	}
	who := c.Principal()
	if c.session != nil && who == c.session.conn.Principal() {
		return c.session.key
	}
	return who.LimitKey()
}
