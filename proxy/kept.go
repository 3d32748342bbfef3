package proxy

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// keptKey is where a request keeps the name of its kept call between rounds.
const keptKey = "parley.proxy/kept"

var (
	errExpired = mcp.NewError(mcp.CodeTimeout, "the call was ended: a question to the caller was not answered in time (proxy.Options.KeptTime)")
	errEnded   = mcp.Errorf("the call that the question belongs to has ended")
	errCrowded = mcp.NewError(mcp.CodeInternalError, "the call asked a question and was ended: too many calls have waited for answers to theirs for too long; answer those first (proxy.Options.MaxKept, MaxKeptPerPrincipal)")
	errGone    = mcp.NewError(mcp.CodeInvalidParams, "the call that this answer belongs to is not here: it has ended, its question waited too long, or another replica of the server began it; send the request again without requestState")
)

// keptCalls are the calls of an upstream server with a handshake for callers
// whose revision is stateless.
type keptCalls struct {
	most, perPrincipal int
	time               time.Duration

	mu       sync.Mutex
	byKey    map[string]*kept
	detached int
	count    map[string]int // of detached calls, by limit key
	room     chan struct{}  // closed when there may be room, if a call waits for that
}

func (t *keptCalls) init(o *Options) {
	t.most, t.perPrincipal, t.time = o.MaxKept, o.MaxKeptPerPrincipal, o.KeptTime
	t.byKey, t.count = make(map[string]*kept), make(map[string]int)
}

// A kept is a call of the upstream server that outlives the rounds of its caller.
//
// At each moment it is attached to one round, which waits for a question or the
// result, or detached: then the caller has been asked, and the call ends with
// errExpired unless the next round comes in time. Only so many calls are detached: a
// round asks nothing before there is room for its call. What a round cannot ask is
// refused upstream, and the call goes on.
type kept struct {
	table      *keptCalls
	key, owner string
	*upstreamCall
	cancel context.CancelCauseFunc

	free   chan struct{} // has an element while detached
	news   chan struct{} // has an element when a question was added
	done   chan struct{} // closed when the call is over
	gone   chan struct{} // closed when no round can bring an answer any more
	res    mcp.Result    // written before done is closed
	err    error
	expiry *time.Timer // belongs to the attached round

	lacks   *server.NotCapableError // why a question could not be asked; belongs to the round
	counted bool                    // among the detached ones; the table's mutex holds

	mu        sync.Mutex
	questions []*question
}

// A question is one that the upstream server asked in a kept call. All but its
// answer is written before others see it, or belongs to the round.
type question struct {
	key    string
	params mcp.Params
	ctx    context.Context //nolint:containedctx // it ends when the question is withdrawn
	reply  chan reply      // has room for the one answer
	sent   bool            // the caller was asked, or could not be; the call's mutex holds
	over   bool            // answered
}

type reply struct {
	raw mcp.RawValue
	err error
}

// keep carries a round of a request out for a caller of a stateless revision.
func (c *call) keep(ctx context.Context, caller *server.Call) (mcp.Result, error) {
	p := c.p
	k, err := c.kept(ctx, caller)
	if err != nil {
		return nil, err
	}
	asked := make(map[string]bool)
	round := time.NewTicker(waitRound)
	defer round.Stop()
	for {
		select {
		case <-round.C:
			if !k.waits() {
				continue
			}
			// A person is busy on a page: the caller gets a progress notification.
			if err := k.detach(ctx, false); err != nil {
				k.abandon(err)
				return nil, err
			}
			return nil, caller.RetryLater()
		case <-k.done:
			k.handOver(ctx, caller)
			k.end()
			return k.outcome()
		case <-ctx.Done():
			k.abandon(context.Cause(ctx))
			return nil, context.Cause(ctx)
		case <-k.news:
			if k.asksAnew() { // what is asked at the same time makes one round
				p.settle(ctx)
			}
			if err := k.table.hold(ctx, k); err != nil {
				k.abandon(err)
				return nil, err
			}
			if k.over() || !k.askCaller(ctx, caller, asked) {
				k.table.attach(k)
				continue
			}
			if err := k.detach(ctx, caller.Round() >= p.opts.MaxRounds); err != nil {
				k.abandon(err)
				return nil, err
			}
			return nil, server.ErrInputPending
		}
	}
}

// kept is the call of a request, attached to this round: one that a round before
// began, or a new one.
func (c *call) kept(ctx context.Context, caller *server.Call) (*kept, error) {
	key, again, err := server.Kept[string](ctx, keptKey)
	if err != nil {
		return nil, err
	}
	owner := caller.Principal().Identity()
	if again {
		return c.p.kept.resume(ctx, key, owner, caller)
	}
	return c.begin(ctx, caller, owner)
}

// begin starts the call in the background, attached to the first round. It has the
// values of that round's context, such as the span of a trace, and outlives it.
func (c *call) begin(round context.Context, caller *server.Call, owner string) (*kept, error) {
	p := c.p
	k := &kept{
		table: &p.kept, key: rand.Text(), owner: owner,
		free: make(chan struct{}, 1), news: make(chan struct{}, 1), done: make(chan struct{}), gone: make(chan struct{}),
	}
	k.expiry = time.AfterFunc(p.kept.time, k.expire)
	k.expiry.Stop()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(round))
	closed := context.AfterFunc(p.ctx, func() { cancel(ErrClosed) })
	k.cancel = cancel
	ctx, meta := c.traced(ctx, caller), caller.Meta()
	k.upstreamCall = c.newAsking(ctx, caller)
	k.ask = k.put
	if err := p.kept.add(k); err != nil {
		closed()
		cancel(err)
		return nil, err
	}
	if !p.spawn(func() {
		defer closed()
		defer cancel(nil)
		defer close(k.done)
		k.res, k.err = c.send(ctx, k.upstreamCall, meta)
		if k.err != nil && ctx.Err() != nil {
			k.err = context.Cause(ctx)
		}
	}) {
		closed()
		cancel(ErrClosed)
		p.kept.remove(k)
		return nil, ErrClosed
	}
	return k, nil
}

// resume makes a round the one that waits for a call. Another round that waits
// already goes first.
func (t *keptCalls) resume(ctx context.Context, key, owner string, caller *server.Call) (*kept, error) {
	k := t.find(key, owner)
	if k == nil {
		return nil, errGone
	}
	select {
	case <-k.free:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	k.expiry.Stop()
	if !t.attach(k) { // the round before has taken the result
		k.free <- struct{}{}
		return nil, errGone
	}
	k.caller.Store(caller)
	k.tell()
	return k, nil
}

// detach leaves the call alone until the caller's next round, if there may be
// one and there is room.
func (k *kept) detach(ctx context.Context, last bool) error {
	if last {
		return mcp.NewError(mcp.CodeInternalError, "the server behind this proxy asked in too many rounds")
	}
	if err := server.Keep(ctx, keptKey, k.key); err != nil {
		return err
	}
	if err := k.table.hold(ctx, k); err != nil {
		return err
	}
	k.caller.Store(nil)
	k.expiry.Reset(k.table.time)
	k.free <- struct{}{}
	return nil
}

// expire ends a call whose caller did not come back.
func (k *kept) expire() {
	select {
	case <-k.free:
	default:
		return // a round has just come
	}
	k.abandon(errExpired)
}

// abandon cancels an attached call and forgets it once it is over.
func (k *kept) abandon(cause error) {
	k.cancel(cause)
	<-k.done
	k.end()
}

// end forgets the call, which is over and attached.
func (k *kept) end() {
	k.caller.Store(nil)
	k.table.remove(k)
	k.free <- struct{}{} // a round that waits hears that it is gone
}

// over reports whether the call has ended upstream.
func (k *kept) over() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// put asks a question: it waits for a round to bring the answer.
func (k *kept) put(ctx context.Context, params mcp.Params, key string) (mcp.RawValue, error) {
	q := &question{key: key, params: params, ctx: ctx, reply: make(chan reply, 1)}
	k.mu.Lock()
	k.questions = append(k.questions, q)
	k.mu.Unlock()
	k.tell()
	select {
	case r := <-q.reply:
		return r.raw, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-k.done:
	}
	k.mu.Lock()
	sent := q.sent
	k.mu.Unlock()
	if !sent {
		return nil, errEnded
	}
	select { // the caller was asked: the round that takes the result brings the answer
	case r := <-q.reply:
		return r.raw, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-k.gone:
		return nil, errEnded
	}
}

// tell wakes the round that is attached, or the next one.
func (k *kept) tell() {
	select {
	case k.news <- struct{}{}:
	default:
	}
}

// askCaller asks the caller all questions of the call that were not asked in this
// round, those of earlier rounds too, whose answers are there at once, and hands
// answers on. It reports whether answers are missing.
func (k *kept) askCaller(ctx context.Context, caller *server.Call, asked map[string]bool) (pending bool) {
	k.mu.Lock()
	questions := k.questions
	k.mu.Unlock()
	given := caller.Params().(mcp.Retryable).Input().InputResponses // only such requests ask
	for _, q := range questions {
		_, brought := given[q.key]
		if asked[q.key] || q.ctx.Err() != nil && !brought && !q.over {
			continue // asked in this round; or withdrawn, and nothing waits for the answer
		}
		asked[q.key] = true
		k.mu.Lock()
		q.sent = true
		k.mu.Unlock()
		pending = k.askOne(ctx, q) || pending
	}
	return pending
}

// askOne asks the caller one question and hands the answer on. It reports whether there
// is none yet.
func (k *kept) askOne(ctx context.Context, q *question) (pending bool) {
	raw, err := server.Ask(ctx, q.params, &server.AskOptions{Key: q.key})
	if errors.Is(err, server.ErrInputPending) {
		return true
	}
	if !q.over {
		q.over = true
		_ = errors.As(err, &k.lacks)
		q.reply <- reply{raw, err}
	}
	return false
}

// handOver hands on the answers that a round has brought to questions of a call that is
// over: they were those of another call of the owner.
func (k *kept) handOver(ctx context.Context, caller *server.Call) {
	k.mu.Lock()
	questions := k.questions
	k.mu.Unlock()
	given := caller.Params().(mcp.Retryable).Input().InputResponses // only such requests ask
	for _, q := range questions {
		if _, brought := given[q.key]; brought && !q.over {
			k.askOne(ctx, q)
		}
	}
}

// asksAnew reports whether there is a question that no round has asked.
func (k *kept) asksAnew() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.questions, func(q *question) bool { return !q.sent && q.ctx.Err() == nil })
}

// outcome is what the caller gets of a call that is over. If it failed for want of
// an answer that the caller cannot give, the caller is told what to declare (spec
// 2026-07-28, basic/index: -32021).
func (k *kept) outcome() (mcp.Result, error) {
	failed := k.err != nil
	if r, ok := k.res.(*mcp.CallToolResult); ok && k.err == nil {
		failed = r.IsError
	}
	if failed && k.lacks != nil {
		return nil, k.lacks
	}
	return k.res, k.err
}

// add notes a call, unless there would be no room for it if it asks.
func (t *keptCalls) add(k *kept) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.full(k.limitKey) {
		return mcp.NewError(mcp.CodeTooManyInFlight, "too many calls wait for answers to questions; answer those first").
			With(mcp.RetryData{RetryAfterMs: time.Second.Milliseconds()})
	}
	t.byKey[k.key] = k
	return nil
}

// full reports whether no more calls of a caller may be detached.
func (t *keptCalls) full(key string) bool {
	return t.detached >= t.most || t.count[key] >= t.perPrincipal
}

// hold counts a call among the detached ones. It waits for room, for as long as a
// question may be open.
func (t *keptCalls) hold(ctx context.Context, k *kept) error {
	room := t.tryHold(k)
	if room == nil {
		return nil
	}
	late := time.NewTimer(t.time)
	defer late.Stop()
	for ; room != nil; room = t.tryHold(k) {
		select {
		case <-room:
		case <-late.C:
			return errCrowded
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-k.done: // what it asked is another's question now
			return nil
		}
	}
	return nil
}

// tryHold counts a call among the detached ones, or returns what to wait for.
func (t *keptCalls) tryHold(k *kept) (room <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case k.counted:
	case !t.full(k.limitKey):
		k.counted = true
		t.detached++
		t.count[k.limitKey]++
	default:
		if t.room == nil {
			t.room = make(chan struct{})
		}
		return t.room
	}
	return nil
}

// attach takes a call out of the count, and reports whether it is still there.
func (t *keptCalls) attach(k *kept) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.uncount(k)
	return t.byKey[k.key] == k
}

func (t *keptCalls) uncount(k *kept) {
	if !k.counted {
		return
	}
	k.counted = false
	t.detached--
	if t.count[k.limitKey]--; t.count[k.limitKey] == 0 {
		delete(t.count, k.limitKey)
	}
	if t.room != nil {
		close(t.room)
		t.room = nil
	}
}

// find returns the call of that name, if it is the principal's own.
func (t *keptCalls) find(key, owner string) *kept {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.byKey[key]; k != nil && k.owner == owner {
		return k
	}
	return nil
}

// remove forgets a call.
func (t *keptCalls) remove(k *kept) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.uncount(k)
	if t.byKey[k.key] == k {
		delete(t.byKey, k.key)
		close(k.gone)
	}
}

// close forgets all calls, which have ended.
func (t *keptCalls) close() {
	t.mu.Lock()
	all := slices.Collect(maps.Values(t.byKey))
	t.mu.Unlock()
	for _, k := range all {
		<-k.free
		k.expiry.Stop()
		k.end()
	}
}
