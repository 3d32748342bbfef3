// Package clocktest is a clock for code that takes its time from a function.
package clocktest

import (
	"sync"
	"time"
)

// A Clock stands still until it is moved. Many goroutines may use it.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// New returns a clock that stands at a time.
func New(now time.Time) *Clock { return &Clock{now: now} }

// Now returns the time at which the clock stands.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Add moves the clock.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
