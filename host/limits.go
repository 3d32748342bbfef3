package host

import (
	"context"
	"sync"

	"github.com/parley-mcp/parley/internal/pausetimer"
)

// A limitSet is the time limits of a host that do not run down while a person is asked:
// those of runs, and of waiting for servers. It is their common Pauser. The zero set is
// ready, and its methods may be called by many goroutines at once.
type limitSet struct {
	mu     sync.Mutex
	asked  int // how often a person is being asked
	limits map[*limit]struct{}
}

// A limit is one time limit of a set.
type limit struct{ pausetimer.Pauser }

// Pause notes that a person is asked.
func (set *limitSet) Pause() {
	set.mu.Lock()
	defer set.mu.Unlock()
	if set.asked++; set.asked > 1 {
		return
	}
	for l := range set.limits {
		l.Pause()
	}
}

// Resume notes the end of one Pause.
func (set *limitSet) Resume() {
	set.mu.Lock()
	defer set.mu.Unlock()
	if set.asked--; set.asked > 0 {
		return
	}
	for l := range set.limits {
		l.Resume()
	}
}

// limitSetKey is the key under which a context has the set that it pauses.
type limitSetKey struct{}

// pausedFrom returns a context of what may ask a person: transport.PauseTimeouts pauses
// the set there.
func (set *limitSet) pausedFrom(ctx context.Context) context.Context {
	return context.WithValue(context.WithValue(ctx, limitSetKey{}, set), pausetimer.Key{}, set)
}

// add adds the time limit of ctx, which is paused at once if a person is being asked,
// until remove is called. A context of pausedFrom is not added: the set would pause
// itself.
func (set *limitSet) add(ctx context.Context) (remove func()) {
	if ctx.Value(limitSetKey{}) == set {
		return func() {}
	}
	l := &limit{pausetimer.From(ctx)}
	set.mu.Lock()
	defer set.mu.Unlock()
	if set.limits == nil {
		set.limits = make(map[*limit]struct{})
	}
	set.limits[l] = struct{}{}
	if set.asked > 0 {
		l.Pause()
	}
	return func() {
		set.mu.Lock()
		defer set.mu.Unlock()
		delete(set.limits, l)
		if set.asked > 0 {
			l.Resume()
		}
	}
}
