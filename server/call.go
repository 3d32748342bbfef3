package server

import (
	"context"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/revision/shape"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
)

// A Call is one request under way. It is the context that middleware and
// handlers get, so that Progress, Elicit and the others find it; a context
// derived from it will do as well. A Call is never reused, and its methods may
// be called by many goroutines at once.
type Call struct {
	context.Context //nolint:containedctx // a Call is the context of its request
	srv             *Server
	row             *row
	era             era
	facts           *revision.Facts
	shape           *shape.Shape
	session         *session // nil for a self-contained request
	out             transport.Responder
	principal       *principal.Principal
	key             string // limitKey of a self-contained request
	id              jsonrpc.ID
	in              *jsonrpc.Incoming
	route           *transport.Route
	ending          <-chan struct{} // closed when the carrier ends; nil if it does not say
	method          string
	target          string
	params          any
	meta            *mcp.RequestMeta
	caps            *mcp.ClientCapabilities
	life            lazyContext // of a self-contained request
	before, after   *Call       // other self-contained requests; they belong to the server's mutex
	clock           watchdog
	asks            recorder
	progress        progressState
	logs            logState
	tracked         jsonrpc.Inbound
	reply           jsonrpc.Outgoing
	body            resultBody
	tool            mcp.CallToolParams // the params of tools/call
}

type progressState struct {
	mu   sync.Mutex
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
	return c.Context.Value(key)
}

// CallFrom returns the request that ctx belongs to, or nil outside of one.
func CallFrom(ctx context.Context) *Call {
	if c, ok := ctx.(*Call); ok {
		return c
	}
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// Caller returns who sent the request that ctx belongs to: principal.Local on
// a pipe, and nil outside of a request.
func Caller(ctx context.Context) *principal.Principal {
	if c := CallFrom(ctx); c != nil {
		return c.principal
	}
	return nil
}

// Method is the method of the request, for example "tools/call".
func (c *Call) Method() string { return c.method }

// Target is what the request is about: the name of a tool or prompt, the URI
// of a resource, or "" for methods that have none.
func (c *Call) Target() string { return c.target }

// Params are the decoded parameters, a pointer to a params type of package
// mcp, or an mcp.RawValue for methods of extensions. They must not be written to.
func (c *Call) Params() any { return c.params }

// ID is the id of the request. In the stateless revision each round of an
// asked request has a new one; see Flow.
func (c *Call) ID() jsonrpc.ID { return c.id }

// Version is the protocol revision of the request.
func (c *Call) Version() string { return c.facts.Version }

// Principal is who sent the request.
func (c *Call) Principal() *principal.Principal { return c.principal }

// ClientInfo is what the client says of itself, or nil. It is not verified and
// must not decide anything.
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
func (c *Call) Round() int { return c.asks.round }

// Flow names all rounds of one request; it is empty before the first ask.
func (c *Call) Flow() string { return c.asks.flow }

// newCall makes the call of an exchange, before anything is known of it.
func (s *Server) newCall(ctx context.Context, x *transport.Exchange, p *session) *Call {
	c := &Call{
		Context:   ctx,
		srv:       s,
		session:   p,
		out:       x.Out,
		principal: x.Principal,
		id:        x.In.ID,
		in:        x.In,
		route:     &x.Route,
		ending:    x.Ending,
		method:    x.In.Method,
		meta:      &noMeta,
		caps:      &noCapabilities,
	}
	if p != nil && c.principal == nil {
		c.principal = p.conn.Principal()
	}
	return c
}

// resultBody encodes a result; it is a part of its call.
type resultBody struct{ v any }

// AppendJSON encodes the result.
func (b *resultBody) AppendJSON(dst []byte) ([]byte, error) {
	if body, ok := b.v.(jsonrpc.Body); ok {
		return body.AppendJSON(dst)
	}
	return wire.Append(dst, b.v)
}

// What a request without `_meta` has. They are never written to.
var (
	noMeta         mcp.RequestMeta
	noCapabilities mcp.ClientCapabilities
)

// limitKey is the name that the limits of the caller count under.
func (c *Call) limitKey() string {
	if c.key != "" {
		return c.key
	}
	if c.session != nil && c.principal == c.session.conn.Principal() {
		return c.session.key
	}
	return c.principal.LimitKey()
}
