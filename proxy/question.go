package proxy

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// An upstreamCall is a call of the upstream server that may ask, and the owner of its
// questions, progress and log messages.
type upstreamCall struct {
	// caller is the request that waits for the call: always the same, or that of
	// the round under way, or nil between rounds.
	caller atomic.Pointer[server.Call]
	// ask brings a question to the caller. key names it among those of the call.
	ask func(ctx context.Context, params mcp.Params, key string) (mcp.RawValue, error)

	owner     string          // the caller, for the order of calls and for what belongs to no call for certain
	limitKey  string          // what the caller's calls are counted under
	feature   feature         // what it uses
	ctx       context.Context //nolint:containedctx // that of the call, which its questions end with
	turn      turn            // the mutex of the order holds
	asked     atomic.Int64    // questions so far
	mu        sync.Mutex
	pages     map[string]*page // by the upstream server's ElicitationID
	steps     []step           // which the caller has not been told
	stepBytes int              // of log messages among them, and of the one that is told now
	idle      chan struct{}    // closed when no steps are left; nil while there are none
}

// A page is one that the upstream server wants the caller to open.
type page struct {
	told string // the ElicitationID that the caller knows, or ""
	open bool   // the caller agreed to open it, and it is not done
	done func() // lets the caller's time go on; nil before it is open
}

type askingKey struct{}

// newUpstreamCall returns what a caller's call is known as. ctx is that of the call upstream.
func (c *call) newAsking(ctx context.Context, caller *server.Call) *upstreamCall {
	a := &upstreamCall{owner: ownerOf(caller), limitKey: caller.Principal().LimitKey(), feature: c.feature(), ctx: ctx}
	a.caller.Store(caller)
	return a
}

type arrivalKey struct{}

// An arrival is what was known of a question when it arrived.
type arrival struct {
	a     *upstreamCall   // the call that it belongs to; nil if that is not certain
	err   error           // why not
	mixed []*upstreamCall // the calls that it may belong to then
}

// maxAsked is how many questions one call of an upstream server with a handshake
// may ask.
const maxAsked = 256

// clientOptions are the options of the connection: handlers that ask callers.
func (p *Proxy) clientOptions() *client.Options {
	o := p.opts.Client
	o.Cache, o.CacheEntries = nil, -1 // a result is one caller's
	o.OnToolsChanged = both(o.OnToolsChanged, func() { p.lists.changed(toolList) })
	o.OnPromptsChanged = both(o.OnPromptsChanged, func() { p.lists.changed(promptList) })
	o.OnResourcesChanged = both(o.OnResourcesChanged, func() { p.lists.changed(resourceList, templateList) })
	updated := o.OnResourceUpdated
	o.OnResourceUpdated = func(ctx context.Context, uri string) {
		p.watch.changed(uri)
		if updated != nil {
			updated(ctx, uri)
		}
	}
	if o.OnLog == nil {
		o.OnLog = p.logged
	}
	if p.opts.NoQuestions {
		return &o
	}
	arrived := o.OnQuestion
	o.OnQuestion = func(ctx context.Context, method string) context.Context {
		if arrived != nil {
			if own := arrived(ctx, method); own != nil {
				ctx = own
			}
		}
		if _, told := ctx.Value(askingKey{}).(*upstreamCall); told {
			return ctx
		}
		// Now, since the turn may be another call's when the handler runs.
		return context.WithValue(ctx, arrivalKey{}, p.arrived())
	}
	if o.OnElicit == nil {
		o.OnElicit = p.elicit
	}
	if o.OnElicitURL == nil {
		o.OnElicitURL = p.elicit
	}
	if o.OnElicitationComplete == nil {
		o.OnElicitationComplete = p.elicited
	}
	if o.OnSample == nil {
		o.OnSample, o.SampleTools, o.SampleContext = p.sample, true, true
	}
	if o.OnRoots == nil {
		o.OnRoots = p.roots
	}
	return &o
}

func both(theirs func(context.Context), ours func()) func(context.Context) {
	return func(ctx context.Context) {
		ours()
		if theirs != nil {
			theirs(ctx)
		}
	}
}

// elicit shows the person a form or a URL.
func (p *Proxy) elicit(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
	params := *r.Params
	params.RequestBase = mcp.RequestBase{Meta: mcp.RequestMeta{Extra: params.Meta.Extra}}
	a, err := p.questionCall(ctx, mcp.MethodElicit)
	if err != nil {
		return nil, err
	}
	if params.ElicitationID == "" {
		return answer[mcp.ElicitResult](ctx, p, a, &params)
	}
	pg := a.page(params.ElicitationID)
	params.ElicitationID = pg.told
	res, err := answer[mcp.ElicitResult](ctx, p, a, &params)
	if err == nil && res.Action == mcp.ElicitAccept {
		p.opened(a, pg)
	}
	return res, err
}

func (p *Proxy) sample(ctx context.Context, params *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	own := *params
	own.RequestBase = mcp.RequestBase{Meta: mcp.RequestMeta{Extra: own.Meta.Extra}}
	a, err := p.questionCall(ctx, mcp.MethodCreateMessage)
	if err != nil {
		return nil, err
	}
	return answer[mcp.CreateMessageResult](ctx, p, a, &own)
}

func (p *Proxy) roots(ctx context.Context) ([]mcp.Root, error) {
	a, err := p.questionCall(ctx, mcp.MethodRootsList)
	if err != nil {
		return nil, err
	}
	res, err := answer[mcp.ListRootsResult](ctx, p, a, &mcp.ListRootsParams{})
	if err != nil {
		return nil, err
	}
	return res.Roots, nil
}

// Why a question of the upstream server is refused. Servers show the caller of the
// call that asked these, or how they begin.
var (
	errNoCall = mcp.NewError(mcp.CodeInternalError, "nobody can be asked: this client is a proxy, which asks those who call it, and no call of a tool, a prompt or a resource is under way")
	errCut    = mcp.NewError(mcp.CodeInternalError, "send the request again in a minute: nobody can be asked just after a call of another caller of this client, a proxy, was cancelled, since that may go on and nothing says which call asks")
	errMixed  = mcp.NewError(mcp.CodeInternalError, "send the request again, it waits for its turn then: nobody can be asked while calls of other callers of this client, a proxy, are under way, since nothing says which call asks")
)

// arrived notes the call that a question belongs to if no stream tells.
func (p *Proxy) arrived() *arrival {
	a, mixed := p.order.likelyCall()
	switch {
	case mixed != nil:
		return &arrival{err: errMixed, mixed: mixed}
	case a == nil:
		return &arrival{err: errNoCall}
	case p.order.cut.of(a.owner):
		return &arrival{err: errCut}
	}
	p.order.expect(a)
	return &arrival{a: a}
}

// questionCall is the call that a question belongs to: what the stream that it came by
// tells, or what was known when it arrived. The error says why that is not certain; the
// question is shown to no caller then.
func (p *Proxy) questionCall(ctx context.Context, method string) (*upstreamCall, error) {
	if a, ok := ctx.Value(askingKey{}).(*upstreamCall); ok {
		return a, nil
	}
	q, ok := ctx.Value(arrivalKey{}).(*arrival)
	if !ok { // a handler that the program calls
		q = p.arrived()
	}
	if q.err != nil {
		p.order.markRefused(q.mixed)
		p.log.Info("a question of the upstream server was refused", "server", p.name(), "method", method, "err", q.err)
	}
	return q.a, q.err
}

// answer asks the caller of a call and decodes what it says. ctx ends when the
// upstream server withdraws the question.
func answer[R any](ctx context.Context, p *Proxy, a *upstreamCall, params mcp.Params) (*R, error) {
	raw, err := p.bring(ctx, a, params)
	if err != nil {
		return nil, refusal(params, err)
	}
	res := new(R)
	if err := wire.DecodeParams(raw, res); err != nil {
		return nil, fmt.Errorf("the caller's answer: %w", err)
	}
	return res, nil
}

// bring brings a question to the caller of a call and the answer back. If the call
// ends before, the question was not its own, but that of another of its owner. If no stream
// tells, it may be so, too, where the caller's client cannot answer: the owner may have others.
func (p *Proxy) bring(ctx context.Context, a *upstreamCall, params mcp.Params) (mcp.RawValue, error) {
	_, told := ctx.Value(askingKey{}).(*upstreamCall)
	var tried []*upstreamCall
	for {
		n := a.asked.Add(1)
		if n > maxAsked {
			return nil, mcp.NewError(mcp.CodeInternalError, "more than %d questions in one call", maxAsked)
		}
		alive := p.settle(ctx) // what the call asks at the same time is on its way
		p.order.opened(a, alive)
		raw, err := a.ask(ctx, params, "q"+strconv.FormatInt(n, 10))
		switch {
		case ctx.Err() != nil:
			p.order.withdrawn(a)
			return nil, cmp.Or(err, context.Cause(ctx))
		case err == nil:
			return raw, p.order.closed(ctx, p, a)
		case !p.order.ended(a):
			tried = append(tried, a)
			if next := p.order.another(tried); next != nil && !told && incapable(err) {
				p.order.resume(a)
				a = next
				continue
			}
			return nil, cmp.Or(p.order.closed(ctx, p, a), err) // the error is the answer
		}
		next, _ := p.order.likelyCall()
		if next == nil || next.owner != a.owner || next.ctx.Err() != nil {
			return nil, err
		}
		a = next
	}
}

// incapable reports whether a question has no answer since a client cannot give one.
func incapable(err error) bool {
	_, ok := errors.AsType[*server.NotCapableError](err)
	return ok
}

// refusal is what an upstream server with a handshake is told of a question that
// has no answer.
func refusal(params mcp.Params, err error) error {
	var incapable *server.NotCapableError
	switch {
	case errors.Is(err, server.ErrRefused):
		return client.ErrRefused
	case errors.As(err, &incapable):
		code := int64(mcp.CodeMethodNotFound)
		if _, form := params.(*mcp.ElicitParams); form { // spec 2025-11-25, client/elicitation: an undeclared mode is -32602
			code = mcp.CodeInvalidParams
		}
		return mcp.NewError(code, "the client of this request cannot answer: %v", incapable)
	}
	if _, ok := errors.AsType[*mcp.Error](err); ok {
		return err
	}
	return mcp.Errorf("the client of this request did not answer: %w", err)
}

// within is the request of the caller in a context that ends with ctx as well.
func (a *upstreamCall) within(ctx context.Context) context.Context {
	caller := a.caller.Load()
	if caller == nil {
		return ctx
	}
	own, cancel := context.WithCancelCause(caller)
	context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return own
}

// pageTime is how long the time of a caller stands still for a page that the
// upstream server does not say the end of.
const pageTime = 10 * time.Minute

// page returns what is known of an elicitation of the upstream server. The caller
// gets another id, since those of several servers must not clash; stateless
// revisions have none.
func (a *upstreamCall) page(id string) *page {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pages == nil {
		a.pages = make(map[string]*page)
	}
	if a.pages[id] == nil {
		a.pages[id] = new(page)
		if caller := a.caller.Load(); caller != nil && caller.Handshake() {
			a.pages[id].told = rand.Text()
		}
	}
	return a.pages[id]
}

// opened lets the caller's time stand still until a page is done, and others have
// their turn: the person is busy there, and the call waits for it.
func (p *Proxy) opened(a *upstreamCall, pg *page) {
	resume := func() {}
	if caller := a.caller.Load(); caller != nil {
		resume = caller.PauseTimeouts()
	}
	p.order.pause(a)
	over := sync.OnceFunc(func() {
		resume()
		p.order.resume(a)
		a.mu.Lock()
		defer a.mu.Unlock()
		pg.open = false
	})
	late := time.AfterFunc(pageTime, over)
	a.mu.Lock()
	defer a.mu.Unlock()
	pg.open, pg.done = true, func() {
		late.Stop()
		over()
	}
}

// waits reports whether the person is busy on a page.
func (a *upstreamCall) waits() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, pg := range a.pages {
		if pg.open {
			return true
		}
	}
	return false
}

// closePages ends the waiting for all pages of a call.
func (a *upstreamCall) closePages() {
	a.mu.Lock()
	pages := slices.Collect(maps.Values(a.pages))
	a.mu.Unlock()
	for _, pg := range pages {
		a.close(pg)
	}
}

// close ends the waiting for a page.
func (a *upstreamCall) close(pg *page) {
	a.mu.Lock()
	done := pg.done
	a.mu.Unlock()
	if done != nil {
		done()
	}
}

// elicited tells the caller that what it opened a URL for is done.
func (p *Proxy) elicited(_ context.Context, id string) {
	for _, a := range p.calls.all() {
		a.mu.Lock()
		pg := a.pages[id]
		a.mu.Unlock()
		if pg == nil {
			continue
		}
		a.close(pg)
		caller := a.caller.Load()
		if pg.told == "" || caller == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(caller, noticeTime)
		if err := caller.Elicited(ctx, pg.told); err != nil {
			p.log.Debug("the end of an elicitation was not delivered", "err", err)
		}
		cancel()
	}
}

// noticeTime bounds how long a notice waits for a caller that does not read.
const noticeTime = 5 * time.Second
