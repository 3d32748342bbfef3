package host

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A BudgetError says that a run was ended because a budget was spent.
type BudgetError struct {
	// What is the budget: "steps", "calls", "time", "samples", "questions".
	What string
	// Limit is the budget as a text, for example "16 steps".
	Limit string
}

// Error names the budget.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("the budget of %s is spent", e.Limit)
}

// A clock ends a context after some time in which no person was asked.
type clock struct {
	mu     sync.Mutex
	left   time.Duration
	since  time.Time // when the timer was last started
	paused int
	over   bool
	timer  *time.Timer
}

// startClock gives a context that ends with a BudgetError once the time is
// spent. The function ends both.
func startClock(ctx context.Context, limit time.Duration) (context.Context, *clock, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &clock{left: limit, since: time.Now()}
	c.timer = time.AfterFunc(limit, func() {
		cancel(&BudgetError{"time", limit.String()})
	})
	return ctx, c, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.over = true
		c.timer.Stop()
		cancel(context.Canceled)
	}
}

// pause stops the clock while a person is asked. Pauses may overlap.
func (c *clock) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused++
	if c.paused == 1 && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
}

// resume ends one pause.
func (c *clock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused--
	if c.paused == 0 && !c.over {
		c.since = time.Now()
		c.timer.Reset(max(c.left, 0))
	}
}
