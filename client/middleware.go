package client

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// Result is what a request is answered with: a pointer to a result type of
// package mcp; what [Client.Request] was given to decode into; a
// [mcp.RawValue] for initialize, logging/setLevel and subscriptions of the
// handshake era; nil where the result holds nothing.
type Result any

// Func carries a request out.
type Func func(ctx context.Context, r *Request) (Result, error)

// Middleware wraps the carrying out of requests: logging, metrics, tracing,
// headers in _meta. It sees each request of the client once, with all that it
// takes: further attempts, questions of the server, another connection. That
// includes what the client sends by itself: server/discover and initialize, and
// subscriptions/listen, which lasts as long as the subscription does. What is
// taken from the cache is no request; notifications are none either.
//
// The values of the context that is passed on reach the handlers which answer
// the server's questions, and [WithTrace] in it goes out with the request. A
// middleware may call next more than once, one after another, or not at all;
// the result that it returns must be of the type that next returns. A panic of it
// is the caller's; in what the client sends by itself it is [ErrPanicked].
type Middleware func(next Func) Func

// A Request is one request of this client. Its methods may be called by many
// goroutines at once, but for SetMeta.
type Request struct{ k *call }

type requestKey struct{}

// RequestFrom returns the request that ctx belongs to, in the context of a
// handler that answers a question of the server: the one during which the
// server asked. It is nil if that is not known. It is known in the stateless
// era; in the handshake era if the transport tells (Streamable HTTP, where the
// server asks in the answer to the request), or with Options.OneAtATime.
func RequestFrom(ctx context.Context) *Request {
	k, _ := ctx.Value(requestKey{}).(*call)
	return k.request()
}

// WithRequest returns a context whose questions belong to a request that was made
// before, maybe by another process: handlers that [Client.Answer] calls in it have the
// request from [RequestFrom] and in ElicitRequest.Call. It is for extensions whose
// results come after the request that asked for them. method and params are those of
// the request, as far as they are known. Nothing is sent.
func WithRequest(ctx context.Context, c *Client, method string, params any) (context.Context, error) {
	k, err := c.newCall(method, "", nil, nil)
	if err == nil {
		err = k.take(params)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	k.own.Context = ctx
	return context.WithValue(ctx, requestKey{}, k), nil
}

// Progress tells the caller of a request that an extension settles how it goes on, as
// a server does: CallOptions.OnProgress gets the message, a progress that is greater by
// one than the last, and no total. It does nothing if the caller wants no progress, and
// after the end of the request.
func (r *Request) Progress(message string) {
	if t := r.k.tracker; t != nil {
		t.next(message)
	}
}

// request is the call as others see it, nil for nil.
func (k *call) request() *Request {
	if k == nil {
		return nil
	}
	return &k.self
}

// Method is the method, for example "tools/call".
func (r *Request) Method() string { return r.k.method }

// Target is what the request is about: the name of a tool or prompt, the URI of
// a resource, or "" for methods that have none.
func (r *Request) Target() string { return r.k.target }

// Params are the parameters without _meta: a pointer to a params type of
// package mcp, a [mcp.RawValue] of [Client.Request], or nil. They must not be
// written to.
func (r *Request) Params() any {
	if _, ok := r.k.params.(*toolParams); ok {
		return &mcp.CallToolParams{Name: r.k.target, Arguments: r.k.args}
	}
	return r.k.params
}

// ID is the id of the attempt that was sent last, which is its progress token
// too; the zero ID if nothing was sent yet.
func (r *Request) ID() mcp.ID {
	if n := r.k.sent.Load(); n > 0 {
		return mcp.IntID(n)
	}
	return mcp.ID{}
}

// Attempts is how many messages were sent for the request so far; 0 before the
// next Func is called.
func (r *Request) Attempts() int { return int(r.k.attempts.Load()) }

// Rounds is how often the server has asked for input so far.
func (r *Request) Rounds() int { return int(r.k.rounds.Load()) }

// Context is the context that the request was made with.
func (r *Request) Context() context.Context {
	if r.k.mw != nil {
		return r.k.mw.origin
	}
	return r.k.own.Context
}

// Client is whose request it is. While it connects, middleware must not send
// requests of its own: they would wait for the connection that waits for it.
func (r *Request) Client() *Client { return r.k.c }

// Version is the revision in use, or "" before one is.
func (r *Request) Version() string { return r.k.c.Version() }

// Session is the id of the session, as [Client.Session] gives it.
func (r *Request) Session() string { return r.k.c.Session() }

// Meta are the members of _meta that were given with the request or added to
// it. They must not be written to.
func (r *Request) Meta() map[string]mcp.RawValue { return r.k.opts.Meta }

// SetMeta adds a member to _meta, before the next Func is called. The value is
// encoded as JSON. Keys that the protocol reserves are refused; for the trace
// context see [WithTrace]. What is kept in the cache is looked for before there
// is middleware, without what that adds.
func (r *Request) SetMeta(key string, value any) error {
	if err := checkMetaKey(key); err != nil {
		return fmt.Errorf("%s: %w", r.k.method, err)
	}
	raw, err := wire.Marshal(value)
	if err != nil {
		return fmt.Errorf("%s: _meta key %q: %w", r.k.method, key, err)
	}
	meta := make(map[string]mcp.RawValue, len(r.k.opts.Meta)+1)
	maps.Copy(meta, r.k.opts.Meta) // the caller's own is not written to
	meta[key] = raw
	r.k.opts.Meta = meta
	return nil
}

// checkMetaKey refuses keys of _meta that are none, or not for callers.
func checkMetaKey(key string) error {
	if err := mcp.ValidMetaKey(key); err != nil {
		return err
	}
	if mcp.ReservedMetaKey(key) {
		return fmt.Errorf("_meta key %q is reserved by the protocol", key)
	}
	return nil
}

// chained puts the middleware together, the first outermost; nil if there is
// none.
func chained(list []Middleware) Func {
	if len(list) == 0 {
		return nil
	}
	f := func(ctx context.Context, r *Request) (Result, error) { return r.k.mw.send(ctx) }
	for i := len(list) - 1; i >= 0; i-- {
		f = list[i](f)
	}
	return f
}

// inMiddleware is what a call needs that middleware wraps.
type inMiddleware struct {
	origin context.Context //nolint:containedctx // the caller's
	send   func(ctx context.Context) (Result, error)
}

// through has the middleware send a request.
func (k *call) through(ctx context.Context, send func(ctx context.Context) (Result, error)) (Result, error) {
	if k.c.chain == nil {
		return send(ctx)
	}
	k.mw = &inMiddleware{ctx, send}
	return k.c.chain(ctx, k.request())
}

// doThrough is carry by way of the middleware. Each attempt has a result of its
// own: one that is decoded twice into the same memory would be a mixture.
func (k *call) doThrough(ctx context.Context, out any, carry func(ctx context.Context, out any) error) error {
	r, err := k.through(ctx, func(ctx context.Context) (Result, error) {
		if v := reflect.ValueOf(out); v.Kind() != reflect.Pointer || v.IsNil() {
			return nil, carry(ctx, out) // nil, or what nothing can be decoded into
		}
		fresh := reflect.New(reflect.TypeOf(out).Elem()).Interface()
		if err := carry(ctx, fresh); err != nil {
			return nil, err
		}
		return fresh, nil
	})
	if err != nil || out == nil {
		return err
	}
	got, want := reflect.ValueOf(r), reflect.ValueOf(out)
	if !got.IsValid() || got.Type() != want.Type() || got.IsNil() {
		return k.wrap(fmt.Errorf("middleware returned a %T as result, not a %T", r, out))
	}
	want.Elem().Set(got.Elem())
	return nil
}
