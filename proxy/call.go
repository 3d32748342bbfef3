package proxy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
)

// A call is a request of a caller on its way to the upstream server.
type call struct {
	p      *Proxy
	method string
	params mcp.Retryable // without answers and state
	// result makes room for the result.
	result func() mcp.Result
}

func (p *Proxy) callTool(ctx context.Context, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	return forward[mcp.CallToolResult](ctx, p, mcp.MethodToolsCall, params)
}

func (p *Proxy) getPrompt(ctx context.Context, params *mcp.GetPromptParams) (*mcp.GetPromptResult, error) {
	return forward[mcp.GetPromptResult](ctx, p, mcp.MethodPromptsGet, params)
}

func (p *Proxy) read(ctx context.Context, uri string) (*mcp.ReadResourceResult, error) {
	res, err := forward[mcp.ReadResourceResult](ctx, p, mcp.MethodResourcesRead, &mcp.ReadResourceParams{URI: uri})
	if missing(err, uri) {
		return nil, server.ErrNotFound
	}
	return res, err
}

// missing reports whether the upstream server says that a resource does not
// exist. Ruling 23: the code depends on the revision, data.uri is there.
func missing(err error, uri string) bool {
	e, ok := errors.AsType[*mcp.Error](err)
	if !ok {
		return false
	}
	raw, _ := e.Data.(mcp.RawValue)
	var data mcp.ResourceNotFoundData
	named := len(raw) > 0 && wire.Decode(raw, &data) == nil && data.URI == uri
	return e.Code == mcp.CodeResourceNotFoundLegacy || e.Code == mcp.CodeInvalidParams && named
}

// forward sends a request of the core that may be answered with questions.
func forward[R any, RP interface {
	*R
	mcp.Result
}](ctx context.Context, p *Proxy, method string, params mcp.Retryable) (*R, error) {
	caller := server.CallFrom(ctx)
	if caller == nil {
		return nil, server.ErrNoCall
	}
	k := &call{p: p, method: method, params: params, result: func() mcp.Result { return RP(new(R)) }}
	p.level.raise(ctx, p, caller.LogLevel())
	p.watch.settle(ctx)
	var (
		res mcp.Result
		err error
	)
	switch {
	case p.client.Modern():
		res, err = k.relay(ctx, caller)
	case caller.Handshake() || caller.Detached() || p.opts.NoQuestions:
		res, err = k.live(ctx, caller)
	default:
		res, err = k.keep(ctx, caller)
	}
	if err != nil {
		return nil, p.failure(ctx, err)
	}
	base := res.Base() // the proxy's server says which server answers, and in which revision
	base.Meta.ServerInfo, base.ResultType = nil, ""
	return (*R)(res.(RP)), nil
}

// drain waits until log messages that came before an answer were told, so that
// they reach the caller before it as well.
func (p *Proxy) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, noticeTime)
	defer cancel()
	_ = p.client.Drain(ctx) // what is late is lost, as for any call that has ended
}

// live carries a call out while its caller waits.
func (c *call) live(ctx context.Context, caller *server.Call) (mcp.Result, error) {
	ctx, end := context.WithCancelCause(c.traced(ctx, caller))
	defer end(nil)
	a := c.newAsking(ctx, caller)
	a.ask = func(ctx context.Context, params mcp.Params, key string) (mcp.RawValue, error) {
		ctx, cancel := context.WithTimeoutCause(a.within(ctx), c.p.opts.KeptTime, errExpired)
		defer cancel()
		raw, err := server.Ask(ctx, params, &server.AskOptions{Key: key})
		if err != nil && errors.Is(context.Cause(ctx), errExpired) {
			end(errExpired)
		}
		return raw, err
	}
	res, err := c.send(ctx, a, caller.Meta())
	// A result after errExpired is what the upstream server made of the missing answer.
	if cause := context.Cause(ctx); cause != nil && (err != nil || errors.Is(cause, errExpired)) {
		return nil, cause
	}
	return res, err
}

// feature is what the call uses.
func (c *call) feature() feature {
	switch p := c.params.(type) {
	case *mcp.CallToolParams:
		return feature{c.method, p.Name}
	case *mcp.GetPromptParams:
		return feature{c.method, p.Name}
	case *mcp.ReadResourceParams:
		return feature{c.method, p.URI}
	}
	panic(errParams(c.params))
}

// errParams says that there are no such requests: forward has three callers.
func errParams(params mcp.Retryable) string {
	return fmt.Sprintf("proxy: %T are params of no request that asks", params)
}

// send sends the request to an upstream server with a handshake, which may ask a
// while.
func (c *call) send(ctx context.Context, a *upstreamCall, meta *mcp.RequestMeta) (mcp.Result, error) {
	defer a.told(ctx)
	if err := c.p.order.take(ctx, c.p, a); err != nil {
		return nil, err
	}
	defer c.p.order.leave(ctx, c.p, a)
	defer c.p.calls.begin(ctx, a)()
	defer c.p.drain(ctx)
	defer a.closePages()
	res := c.result()
	err := c.p.client.Request(context.WithValue(ctx, askingKey{}, a), c.method, c.params, res, a.options(meta))
	if err != nil {
		return nil, err
	}
	return res, nil
}

// traced adds the trace context of the caller.
func (c *call) traced(ctx context.Context, caller *server.Call) context.Context {
	m := caller.Meta()
	if m.TraceParent == "" && m.Baggage == "" {
		return ctx
	}
	return client.WithTrace(ctx, m.TraceParent, m.TraceState, m.Baggage)
}

// options are those of an upstream request for a caller.
func (a *upstreamCall) options(meta *mcp.RequestMeta) *client.CallOptions {
	// The caller's own limits hold. What the upstream server lets the proxy keep may
	// be of one caller alone: callers keep it for themselves.
	o := &client.CallOptions{NoTimeout: true, NoCache: true}
	for key, value := range meta.Extra {
		if mcp.ReservedMetaKey(key) || mcp.ValidMetaKey(key) != nil {
			continue
		}
		if o.Meta == nil {
			o.Meta = make(map[string]mcp.RawValue)
		}
		o.Meta[key] = value
	}
	if !meta.ProgressToken.IsZero() {
		o.OnProgress = a.progress
	}
	return o
}

// failure makes of an error of the upstream server, or of the way to it, what the
// caller is told.
func (p *Proxy) failure(ctx context.Context, err error) error {
	if errors.Is(err, server.ErrInputPending) {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, client.ErrInputRefused) || errors.Is(err, client.ErrRefused) {
		return server.ErrRefused
	}
	if _, ok := errors.AsType[*server.NotCapableError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*mcp.Error](err); ok {
		return err
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		if e.Code == mcp.CodeMissingClientCapability && server.CallFrom(ctx).Handshake() { // ruling 5: not in those revisions
			return mcp.Errorf("%s", e.Message)
		}
		switch e.Code {
		case mcp.CodeRateLimited, mcp.CodeTooManyInFlight, mcp.CodeHeaderMismatch, mcp.CodeUnsupportedVersion:
			// They speak of the proxy's own requests, which its client has repeated:
			// callers of the proxy must not repeat each of them as often again.
			e = &jsonrpc.Error{Code: mcp.CodeInternalError, Message: fmt.Sprintf("the server %q behind this proxy refused the request: %s", p.name(), e.Message), Data: e.Data}
		}
		out := mcp.NewError(e.Code, "%s", e.Message)
		if len(e.Data) > 0 {
			out = out.With(mcp.RawValue(e.Data))
		}
		return out
	}
	p.log.Warn("a call of the upstream server failed", "server", p.name(), "err", err)
	what := "gave an answer that cannot be used"
	_, busy := errors.AsType[*transport.TemporaryError](err)
	switch {
	case errors.Is(err, ErrClosed), errors.Is(err, client.ErrClosed):
		what = "is no longer connected: the proxy was closed"
	case errors.Is(err, transport.ErrInterrupted):
		what = "was lost before it answered; the call may have run"
	case busy:
		what = "takes no requests for now; try again later"
	case errors.Is(err, transport.ErrClosed), errors.Is(err, transport.ErrDenied):
		what = "cannot be reached"
	case errors.Is(err, client.ErrNotCapable):
		what = "does not offer this any more"
	case errors.Is(err, client.ErrTimeout):
		return mcp.NewError(mcp.CodeTimeout, "the server %q behind this proxy did not answer in time", p.name())
	}
	return mcp.NewError(mcp.CodeInternalError, "the server %q behind this proxy %s", p.name(), what)
}

// completer completes arguments, or is nil if the upstream server does not.
func (p *Proxy) completer() server.RawCompleter {
	if p.client.Modern() && p.client.Capabilities().Completions == nil {
		return nil
	}
	return func(ctx context.Context, params *mcp.CompleteParams) (*mcp.CompleteResult, error) {
		got, err := p.client.Complete(ctx, params)
		if errors.Is(err, client.ErrNotCapable) {
			return &mcp.CompleteResult{}, nil
		}
		if err != nil {
			return nil, p.failure(ctx, err)
		}
		return &mcp.CompleteResult{Completion: *got}, nil
	}
}

// ownerOf names whose a call is: those of one owner may see what is meant for
// another of its calls. Anonymous callers of one address are many people (ruling
// 30), so that a session is the most that two of their calls can share.
func ownerOf(caller *server.Call) string {
	if id := caller.Principal().Identity(); id != "" {
		return id
	}
	if id := caller.SessionID(); id != "" {
		return "session " + id
	}
	return "call " + rand.Text()
}

// calls are the calls of the upstream server that are under way, in the order in which
// they began.
type calls struct {
	mu    sync.Mutex
	under []*upstreamCall
	cut   cut
}

func (c *calls) begin(ctx context.Context, a *upstreamCall) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.under = append(c.under, a)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.under = slices.DeleteFunc(c.under, func(u *upstreamCall) bool { return u == a })
		if ctx.Err() != nil {
			c.cut.note(a.owner)
		}
	}
}

// likely returns the call under way that began last if all are of one owner, and no other
// caller's was cancelled that may go on.
func (c *calls) likely() *upstreamCall {
	under := c.all()
	if len(under) == 0 {
		return nil
	}
	last := under[len(under)-1]
	if c.cut.of(last.owner) || slices.ContainsFunc(under, func(u *upstreamCall) bool { return u.owner != last.owner }) {
		return nil
	}
	return last
}

// all returns the calls that are under way.
func (c *calls) all() []*upstreamCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.under)
}
