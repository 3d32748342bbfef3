package tasks

import (
	"context"
	"testing"
)

// failing is a store that cannot be read.
type failing struct{ Store }

func (failing) Get(ctx context.Context, _, _ string) (*Task, error) { return nil, ctx.Err() }

// A goroutine that looks at changes and is ended meanwhile leaves them to the next one: the process
// has no more tasks for a moment, and then has some again.
func TestLookEndsLeavesChanges(t *testing.T) {
	for range 50 { // of two channels that are ready either may be taken
		ctx, cancel := context.WithCancel(t.Context())
		m := &manager{
			store: failing{}, nudge: make(chan struct{}, 1), claim: make(chan struct{}, 1), stale: make(map[string]bool),
			runs: map[string]*run{"a": {id: "a", created: make(chan struct{})}},
		}
		m.changed("a")
		cancel()
		m.look(ctx)
		if len(m.nudge) != 1 || !m.stale["a"] {
			t.Fatalf("after it ended: %d signals, stale %v", len(m.nudge), m.stale)
		}
	}
}
