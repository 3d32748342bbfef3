package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// A recorder keeps what a request asked and was answered, and what Once did,
// through all its rounds. Handlers may ask from several goroutines.
type recorder struct {
	mu      sync.Mutex
	flow    string
	round   int
	order   []string          // ids of all questions, in the order first asked
	kinds   map[string]string // id → digest
	answers map[string]mcp.RawValue
	offered mcp.InputResponses       // what a request without state brought; used only where asked
	done    map[string]mcp.RawValue  // results of Once
	told    map[recordName]bool      // of a detached call: what its extension has
	running map[string]chan struct{} // running Once, by key; closed when it has returned

	asked       map[string]bool // in this run
	pending     []pending       // without answer in this run
	retryWanted bool            // the client is to send the request again, without a question
	askEnded    bool            // an ask was not made, since its context had ended
}

type pending struct {
	id string
	q  *question
}

// take copies what earlier rounds of a request left, and what its message offers,
// whose memory is not kept.
func (r *recorder) take(earlier *recorder) {
	earlier.mu.Lock()
	defer earlier.mu.Unlock()
	r.flow, r.round, r.order = earlier.flow, earlier.round, slices.Clone(earlier.order)
	r.kinds, r.done = maps.Clone(earlier.kinds), maps.Clone(earlier.done)
	r.answers, r.offered = maps.Clone(earlier.answers), maps.Clone(earlier.offered)
	for id, raw := range r.offered {
		r.offered[id] = slices.Clone(raw)
	}
	r.told = make(map[recordName]bool) // what is here is in the saved call
	for id := range r.kinds {
		r.told[recordName{RecordQuestion, id}] = true
	}
	for id := range r.answers {
		r.told[recordName{RecordAnswer, id}] = true
	}
	for key := range r.done {
		r.told[recordName{RecordOnce, key}] = true
	}
}

// begun is what earlier rounds of the request left, apart from its records.
func (r *recorder) begun() (flow string, round int, offered mcp.InputResponses) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flow, r.round, r.offered
}

// begin registers that a question is asked in this run and gives its id.
func (r *recorder) begin(q *question) (string, error) {
	digest, err := q.digest()
	if err != nil {
		return "", err
	}
	id := q.key
	if id == "" {
		id = digest
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked[id] {
		return "", fmt.Errorf("asking for %s: the same question was asked twice in one request: give each a Key", q.what)
	}
	if old, ok := r.kinds[id]; ok && old != digest {
		return "", errChanged
	}
	if r.asked == nil {
		r.asked = make(map[string]bool)
	}
	r.asked[id] = true
	if _, ok := r.kinds[id]; !ok {
		if r.kinds == nil {
			r.kinds = make(map[string]string)
		}
		r.kinds[id] = digest
		r.order = append(r.order, id)
	}
	return id, nil
}

// errChanged ends a request whose handler asked something else on replay.
var errChanged = mcp.NewError(mcp.CodeInternalError, "handler is not deterministic: on replay it asked something else than before")

// answer returns a recorded answer.
func (r *recorder) answer(id string) (mcp.RawValue, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	raw, ok := r.answers[id]
	if !ok {
		raw, ok = r.offered[id]
	}
	return raw, ok
}

// record keeps an answer.
func (r *recorder) record(id string, raw mcp.RawValue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answers == nil {
		r.answers = make(map[string]mcp.RawValue)
	}
	r.answers[id] = slices.Clone(raw)
}

// addPending records a question that has no answer yet.
func (r *recorder) addPending(id string, q *question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(r.pending, pending{id, q})
}

// requestRetry notes that the request is to be repeated without a new question.
func (r *recorder) requestRetry() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retryWanted = true
}

// noteEndedAsk notes that a question was not asked, or what comes before one not done,
// because its context had ended.
func (r *recorder) noteEndedAsk() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.askEnded = true
}

// waits reports whether the run ended because an answer is missing.
func (r *recorder) waits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending) > 0 || r.retryWanted
}

// unasked reports whether an answered question of an earlier round was not
// asked again in this run, although the run asked something new. That says nothing
// of a run in which concurrent asks ended each other.
func (r *recorder) unasked() bool {
	if len(r.pending) == 0 || r.askEnded {
		return false
	}
	for id := range r.answers {
		if !r.asked[id] {
			return true
		}
	}
	return false
}

// Once runs fn the first time that a request gets to it, and gives the same
// result when the handler runs again for a later round: for what must not be
// repeated, such as opening a ticket. The result travels through the client,
// sealed, so T must encode as JSON, and should be small; an extension that runs the
// call detached may keep it in a store. If it cannot, Once fails, and tries that
// again when it is called again: fn does not run twice. An error of fn is not kept.
// Within one request a key names one thing. Of several goroutines with one
// key one runs fn and the others wait; a wait ends with ctx and its cause, and
// fn is not begun if ctx has ended. fn must not call Once with its own key: it
// would wait for itself.
//
// Once holds for the rounds of one request. A client that sends the first
// request twice gets it run twice; what must be single across requests needs
// a store of your own.
func Once[T any](ctx context.Context, key string, fn func() (T, error)) (T, error) {
	var zero T
	c := CallFrom(ctx)
	if c == nil {
		return zero, fmt.Errorf("once %q: %w", key, ErrNoCall)
	}
	release, err := c.extras().asks.claim(ctx, key)
	if err != nil {
		return zero, fmt.Errorf("once %q: %w", key, err)
	}
	defer release()
	if raw, ok := c.extras().asks.result(key); ok {
		if err := c.retryRecord(key); err != nil {
			return zero, fmt.Errorf("once %q: %w", key, err)
		}
		var v T
		if err := wire.Decode(raw, &v); err != nil {
			return zero, fmt.Errorf("once %q: %w", key, err)
		}
		return v, nil
	}
	v, err := fn()
	if err != nil {
		return zero, err
	}
	raw, err := wire.Marshal(v)
	if err != nil {
		return zero, fmt.Errorf("once %q: %w", key, err)
	}
	if err := c.recordResult(key, raw); err != nil {
		return zero, fmt.Errorf("once %q: %w", key, err)
	}
	return v, nil
}

// claim waits until no other Once of the key runs, or ctx ends.
func (r *recorder) claim(ctx context.Context, key string) (release func(), err error) {
	for ctx.Err() == nil {
		r.mu.Lock()
		other := r.running[key]
		if other == nil {
			over := make(chan struct{})
			if r.running == nil {
				r.running = make(map[string]chan struct{})
			}
			r.running[key] = over
			r.mu.Unlock()
			return func() {
				r.mu.Lock()
				delete(r.running, key)
				r.mu.Unlock()
				close(over)
			}, nil
		}
		r.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
		}
	}
	r.noteEndedAsk()
	return nil, context.Cause(ctx)
}

func (r *recorder) result(key string) (mcp.RawValue, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	raw, ok := r.done[key]
	return raw, ok
}

func (r *recorder) keep(key string, raw mcp.RawValue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done == nil {
		r.done = make(map[string]mcp.RawValue)
	}
	r.done[key] = raw
}
