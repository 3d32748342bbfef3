package proxy

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// Times of the order of calls.
const (
	// settleTime bounds how long the upstream server may take for a sign of life.
	settleTime = 2 * time.Second
	// otherTime is how long the calls of another caller wait while new ones of the
	// caller whose turn it is begin. After it, those wait too: a caller that always
	// has a question open must not keep all others away.
	otherTime = 10 * time.Second
	// answerTime is how long an answer waits for a call of another caller.
	answerTime = 10 * time.Second
	// cancelledTurnTime is how long the turn of a call lasts that was cancelled while its
	// question was open: what it asks when that fails is none of the next call's.
	cancelledTurnTime = time.Second
)

// callOrder order the calls of an upstream server with a handshake, since on a pipe
// nothing says which call a question belongs to. Each call is in one state:
//
//	queued → running → asked → answered → running → … → over
//
//	queued    it waits to begin, and has not been sent
//	running   the upstream server works for it, and may ask
//	asked     its caller was asked, or is busy on a page, and the upstream server
//	          waits for that
//	answered  the answer is here, and goes on when what the call asks next is certain
//
// A call is asked until none of its questions is open.
//
// Calls begin in the order in which they came:
//
//   - concurrently with calls of the same owner, if no call of another owner is under way.
//     While one of them runs or is answered, none begins before the waiting call of another
//     owner; while all are asked, none before one that has waited for otherTime;
//   - concurrently with calls of other owners that are asked, unless its feature is known to
//     ask, or the upstream server handles nothing while it asks: then its owner's turn must come.
//
// An answered call goes on when no call of another owner runs.
//
// A question without a stream of its own is of the owner of all calls in flight. If
// they are of several, it is refused and shown to no caller, and the features of all of
// them are taken for ones that ask. So the calls that wait for such a question are
// always of one owner.
//
// There is no deadlock. Calls of one owner never wait for each other but to begin, and
// what runs is not waited for by the upstream server: an answer that it needs waits
// for calls of other owners alone, and for answerTime at most. It is needed when such a
// call waits upstream for the asked one, for a lock or a worker; the answer goes on
// concurrently then, and questions are refused while both are in flight. A call waits to
// begin for Options.QueueTime at most, and a question is open for Options.KeptTime.
type callOrder struct {
	mu           sync.Mutex
	queue        []*upstreamCall // in the order in which they came
	queued       map[string]int  // how many are in the queue, by limit key
	under        []*upstreamCall // calls under way; the last one has begun or gone on last
	asks         askers
	unresponsive bool // the upstream server gave no sign of life while it waited for an answer
	cut          cut  // calls that were cancelled while they ran
}

// A state is that of a call in the order.
type state uint8

const (
	over state = iota // or not there yet
	queued
	running
	asked
	answered
)

// A turn is what the order knows of a call. Its mutex is held.
type turn struct {
	state   state
	since   time.Time       // when it came
	begun   chan struct{}   // closed when it begins
	open    int             // questions and pages that are open, and answers that have not gone on
	arrived int             // questions that were taken for its own and are not open yet
	answers []chan struct{} // of the answers that wait; each is closed when it goes on
	refused bool            // a question was refused that may have been its own
}

func (t *callOrder) init() {
	t.queued = make(map[string]int)
	t.asks.sure = make(map[feature]bool)
}

// take waits until a call may begin, while the time of its caller stands still. If
// there is no error, the call must leave.
func (t *callOrder) take(ctx context.Context, p *Proxy, a *upstreamCall) error {
	if p.opts.NoQuestions || p.client.Modern() {
		return nil
	}
	if err := t.enqueue(p, a); err != nil {
		return err
	}
	if caller := a.caller.Load(); caller != nil {
		defer caller.PauseTimeouts()()
	}
	late := time.NewTimer(p.opts.QueueTime)
	defer late.Stop()
	var err error
	select {
	case <-a.turn.begun:
		return nil
	case <-late.C:
		err = retryable("the call has waited for its turn for %v: the server %q behind this proxy runs calls of several callers one after the other, and others run for long or wait for an answer; try again later (proxy.Options.QueueTime)", p.opts.QueueTime, p.name())
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-p.ctx.Done():
		err = ErrClosed
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(a)
	return err
}

// enqueue adds a call to the queue if there is room.
func (t *callOrder) enqueue(p *Proxy, a *upstreamCall) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queued[a.limitKey] >= p.opts.MaxQueuedPerPrincipal {
		return retryable("%d calls of this caller wait for their turn at the server %q behind this proxy (proxy.Options.MaxQueuedPerPrincipal); wait for their results first", p.opts.MaxQueuedPerPrincipal, p.name())
	}
	if len(t.queue) >= p.opts.MaxQueued {
		return retryable("%d calls wait for their turn at the server %q behind this proxy (proxy.Options.MaxQueued); try again later", p.opts.MaxQueued, p.name())
	}
	a.turn = turn{state: queued, since: time.Now(), begun: make(chan struct{})}
	t.queue = append(t.queue, a)
	t.queued[a.limitKey]++
	t.advance()
	return nil
}

// retryable is the refusal of a call that was not sent.
func retryable(format string, args ...any) error {
	return mcp.NewError(mcp.CodeTooManyInFlight, format, args...).With(mcp.RetryData{RetryAfterMs: time.Second.Milliseconds()})
}

// advance has answered calls go on, and calls begin that may.
func (t *callOrder) advance() {
	for _, a := range slices.Clone(t.under) {
		if a.turn.state == answered && !t.otherRuns(a.owner) {
			t.proceed(a)
		}
	}
	for i := 0; i < len(t.queue); {
		a := t.queue[i]
		if !t.mayBegin(a, t.queue[:i]) {
			i++
			continue
		}
		t.dequeue(a)
		a.turn.state = running
		close(a.turn.begun)
		t.under = append(t.under, a)
	}
}

// otherRuns reports whether a call of another owner runs.
func (t *callOrder) otherRuns(owner string) bool {
	return slices.ContainsFunc(t.under, func(u *upstreamCall) bool { return u.turn.state == running && u.owner != owner })
}

// mayBegin reports whether a call may begin. before are those that came before it and
// wait still.
func (t *callOrder) mayBegin(a *upstreamCall, before []*upstreamCall) bool {
	other := func(u *upstreamCall) bool { return u.owner != a.owner }
	works := func(u *upstreamCall) bool { return u.turn.state != asked }
	if slices.ContainsFunc(t.under, other) {
		return !slices.ContainsFunc(t.under, works) && !t.unresponsive && !t.asks.has(a.feature)
	}
	wait := otherTime
	if slices.ContainsFunc(t.under, works) {
		wait = 0
	}
	return !slices.ContainsFunc(before, func(q *upstreamCall) bool { return other(q) && time.Since(q.turn.since) >= wait })
}

// proceed has a call go on with the answers that wait.
func (t *callOrder) proceed(a *upstreamCall) {
	a.turn.open -= len(a.turn.answers)
	for _, goes := range a.turn.answers {
		close(goes)
	}
	a.turn.answers = nil
	t.updateState(a)
	t.under = append(slices.DeleteFunc(t.under, func(u *upstreamCall) bool { return u == a }), a)
}

// updateState sets the state of a call under way by what it waits for.
func (t *callOrder) updateState(a *upstreamCall) {
	switch {
	case len(a.turn.answers) > 0:
		a.turn.state = answered
	case a.turn.open > 0:
		a.turn.state = asked
	default:
		a.turn.state = running
	}
}

// opened notes a question of a call that its caller is asked now. alive tells
// whether the upstream server gave a sign of life after it.
func (t *callOrder) opened(a *upstreamCall, alive bool) {
	t.mu.Lock()
	t.unresponsive = !alive
	a.turn.arrived = max(0, a.turn.arrived-1)
	t.asks.note(a.feature, !slices.ContainsFunc(t.under, func(u *upstreamCall) bool { return u.feature != a.feature }))
	t.mu.Unlock()
	t.pause(a)
}

// withdrawn notes that the upstream server waits for an answer no more, unless it
// does because the call was cancelled: leave wants to know that it was asked.
func (t *callOrder) withdrawn(a *upstreamCall) {
	if a.ctx.Err() == nil {
		t.resume(a)
	}
}

// ended reports whether a call has ended or is about to.
func (t *callOrder) ended(a *upstreamCall) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return a.turn.state == over || a.ctx.Err() != nil
}

// pause notes that a call waits for a person once more, and resume that it does no
// longer, whatever else runs.
func (t *callOrder) pause(a *upstreamCall)  { t.wait(a, 1) }
func (t *callOrder) resume(a *upstreamCall) { t.wait(a, -1) }

func (t *callOrder) wait(a *upstreamCall, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.turn.state == over {
		return
	}
	a.turn.open += n
	t.updateState(a)
	t.advance()
}

// closed waits until the answer to a question may go on, while the time of the
// caller stands still. The error is that of ctx, or ErrClosed.
func (t *callOrder) closed(ctx context.Context, p *Proxy, a *upstreamCall) error {
	t.mu.Lock()
	if a.turn.state == over {
		t.mu.Unlock()
		return nil
	}
	goes := make(chan struct{})
	a.turn.answers = append(a.turn.answers, goes)
	t.updateState(a)
	t.advance()
	t.mu.Unlock()
	if caller := a.caller.Load(); caller != nil {
		defer caller.PauseTimeouts()()
	}
	late := time.NewTimer(answerTime)
	defer late.Stop()
	select {
	case <-goes:
		return nil
	case <-late.C:
	case <-ctx.Done():
	case <-p.ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(a.turn.answers, goes); i >= 0 {
		a.turn.answers = slices.Delete(a.turn.answers, i, i+1)
		a.turn.open--
		t.updateState(a)
		t.advance()
	}
	if p.ctx.Err() != nil {
		return ErrClosed
	}
	return context.Cause(ctx)
}

// leave ends the turn of a call. If its context has ended, what the upstream server
// sent before it heard of the cancellation must arrive first: a question among it is
// none of the next call.
func (t *callOrder) leave(ctx context.Context, p *Proxy, a *upstreamCall) {
	t.mu.Lock()
	was := a.turn.state
	t.mu.Unlock()
	if was == over {
		return
	}
	if ctx.Err() != nil {
		p.settle(p.ctx)
		if was != running {
			p.sleep(cancelledTurnTime)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if was == running && ctx.Err() != nil {
		t.cut.note(a.owner)
	}
	if ctx.Err() == nil && a.asked.Load() == 0 && !a.turn.refused {
		t.asks.clear(a.feature)
	}
	t.forget(a)
}

// forget takes a call out, wherever it is.
func (t *callOrder) forget(a *upstreamCall) {
	t.dequeue(a)
	t.under = slices.DeleteFunc(t.under, func(u *upstreamCall) bool { return u == a })
	for _, goes := range a.turn.answers {
		close(goes)
	}
	a.turn = turn{}
	t.advance()
}

func (t *callOrder) dequeue(a *upstreamCall) {
	i := slices.Index(t.queue, a)
	if i < 0 {
		return
	}
	t.queue = slices.Delete(t.queue, i, i+1)
	if t.queued[a.limitKey]--; t.queued[a.limitKey] == 0 {
		delete(t.queued, a.limitKey)
	}
}

// likelyCall returns the call that a question belongs to if nothing else says so: of those
// that run and have the highest rank the one that began or went on first, since questions
// come in that order most often, or else the last of those that are asked. It is nil if there
// is none. mixed are the calls under way if they are of several owners, so that is not known.
func (t *callOrder) likelyCall() (a *upstreamCall, mixed []*upstreamCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, u := range t.under {
		if u.owner != t.under[0].owner {
			return nil, slices.Clone(t.under)
		}
		if a == nil || t.precedes(u, a) {
			a = u
		}
	}
	return a, nil
}

// another returns a call that runs, of the owner of some that is none of them, or nil. One that is
// asked has had its own question, and its client may be gone.
func (t *callOrder) another(tried []*upstreamCall) *upstreamCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, u := range slices.Backward(t.under) {
		if u.turn.state == running && u.owner == tried[0].owner && u.ctx.Err() == nil && !slices.Contains(tried, u) {
			return u
		}
	}
	return nil
}

// precedes reports whether a question is that of a rather than of b, which is before
// it among the calls under way. The mutex of the order is held.
func (t *callOrder) precedes(a, b *upstreamCall) bool {
	if ended := a.ctx.Err() != nil; ended != (b.ctx.Err() != nil) {
		return !ended
	}
	return t.rank(a) > t.rank(b) || a.turn.state != running && b.turn.state != running
}

// rank is how likely a question is that of a call, compared with others: a call that runs,
// one without a question that has just arrived, one of a feature that asks for sure.
func (t *callOrder) rank(a *upstreamCall) int {
	switch {
	case a.turn.state != running:
		return 0
	case a.turn.arrived > 0:
		return 1
	case !t.asks.sure[a.feature]:
		return 2
	}
	return 3
}

// expect notes that a question has arrived that is taken for that of a call.
func (t *callOrder) expect(a *upstreamCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.turn.state != over {
		a.turn.arrived++
	}
}

// markRefused notes that a question was refused that may be of any of some calls.
func (t *callOrder) markRefused(calls []*upstreamCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range calls {
		a.turn.refused = true
		t.asks.note(a.feature, false)
	}
}

// settle returns when what the upstream server sent so far has arrived: its answer
// to a ping comes behind it. It reports whether there was one.
func (p *Proxy) settle(ctx context.Context) (alive bool) {
	if ctx.Err() != nil || !p.client.Connected() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	err := p.client.Ping(ctx)
	if _, refused := errors.AsType[*jsonrpc.Error](err); err != nil && !refused {
		p.log.Debug("the upstream server gave no sign of life", "server", p.name(), "err", err)
		return false
	}
	return true
}

// sleep waits, or until the proxy is closed.
func (p *Proxy) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ctx.Done():
	}
}
