package guard

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A watcher verifies the tokens of requests under way anew, each once for all of its requests, so
// that no verification is older than Options.RequireFresh.
//
// It verifies when the last verification is half as old, and tries again, at intervals, until it is
// as old. It goes on when a request ends: what it learns is in the cache for the next one.
type watcher struct {
	g       *Guard
	base    context.Context //nolint:containedctx // of verifications, which belong to no request
	stop    context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	tokens map[digest]*watchedToken
}

// A watchedToken is a token of requests under way.
type watchedToken struct {
	token    string
	key      digest
	began    time.Time // when the last verification that went well did
	requests map[*watchedRequest]struct{}
	timer    *time.Timer
	busy     bool // it is being verified
}

// A watchedRequest is a request under way.
type watchedRequest struct {
	v    *verified // what it was admitted with
	long bool      // it ends with its token
	end  func()
}

func newWatcher(g *Guard) *watcher {
	w := &watcher{g: g, tokens: map[digest]*watchedToken{}}
	w.base, w.stop = context.WithCancel(context.Background())
	return w
}

// close ends verifications under way, waits for them, and begins no more.
func (w *watcher) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.stop()
	w.running.Wait()
}

// watch has end called when a request that was admitted with v may not go on. Unwatch must be called
// when it is over.
func (w *watcher) watch(token string, v *verified, long bool, end func()) (unwatch func()) {
	r := &watchedRequest{v: v, long: long, end: end}
	key := digestOf(token)
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tokens[key]
	if t == nil {
		t = &watchedToken{token: token, key: key, began: v.began, requests: map[*watchedRequest]struct{}{}}
		w.tokens[key] = t
		t.timer = time.AfterFunc(w.due(t), func() { w.renew(t) })
	}
	t.requests[r] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(t.requests, r)
		w.tidy(t)
	}
}

// due is in how long a token is to be verified anew. The lock is held.
func (w *watcher) due(t *watchedToken) time.Duration {
	return t.began.Add(w.g.opts.RequireFresh / 2).Sub(w.g.opts.Now())
}

// tidy forgets a token that no request has. The lock is held.
func (w *watcher) tidy(t *watchedToken) {
	if len(t.requests) == 0 && !t.busy {
		t.timer.Stop()
		if w.tokens[t.key] == t {
			delete(w.tokens, t.key)
		}
	}
}

// renew verifies a token anew, and ends the requests that it is no longer good for.
func (w *watcher) renew(t *watchedToken) {
	w.mu.Lock()
	if w.closed || len(t.requests) == 0 {
		w.end(t, "the guard was closed", func(*watchedRequest) bool { return true })
		w.mu.Unlock()
		return
	}
	t.busy = true
	w.running.Add(1)
	defer w.running.Done()
	began := t.began
	w.mu.Unlock()

	fresh := w.g.opts.RequireFresh
	left := began.Add(fresh).Sub(w.g.opts.Now())
	ctx, cancel := context.WithTimeout(w.base, left)
	v, why, _ := w.g.verify(ctx, t.token, t.key, began)
	cancel()

	w.mu.Lock()
	defer w.mu.Unlock()
	t.busy = false
	defer w.tidy(t)
	now := w.g.opts.Now()
	switch {
	case v != nil:
		t.began = v.began
		w.end(t, "the token is no longer good for them", func(r *watchedRequest) bool { return !covers(v, r.v) })
		t.timer.Reset(w.due(t))
	case why == kindUnavailable:
		if left = began.Add(fresh).Sub(now); left <= 0 || w.closed {
			w.end(t, "the token could not be verified in time", func(*watchedRequest) bool { return true })
			return
		}
		t.timer.Reset(min(fresh/8, left))
	default:
		w.g.cache.remove(t.key)
		delete(w.tokens, t.key)
		// A call that has outlasted its token goes on, unwatched.
		w.end(t, "the token is refused", func(r *watchedRequest) bool {
			return r.long || r.v.nominal.IsZero() || now.Before(r.v.nominal)
		})
	}
}

// end ends the requests of a token that are to end, and logs how many. The lock is held.
func (w *watcher) end(t *watchedToken, reason string, which func(*watchedRequest) bool) {
	n := 0
	for r := range t.requests {
		if which(r) {
			delete(t.requests, r)
			r.end()
			n++
		}
	}
	if n > 0 {
		w.g.log.Info("requests under way ended", "reason", reason, "requests", n)
	}
}

// covers reports whether a token is still good for what it was good for.
func covers(now, before *verified) bool {
	p, old := now.principal, before.principal
	return now.enough && p.Identity() == old.Identity() && now.thumbprint == before.thumbprint &&
		!slices.ContainsFunc(old.Scopes, func(scope string) bool { return !p.Has(scope) })
}
