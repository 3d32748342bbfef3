package frame

import (
	"sync"
	"sync/atomic"
)

// A counter counts the requests that run on goroutines of their own.
type counter struct {
	n    atomic.Int64
	mu   sync.Mutex
	zero chan struct{} // closed when the count is next zero
}

func (c *counter) add() { c.n.Add(1) }

func (c *counter) done() {
	if c.n.Add(-1) != 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.zero != nil && c.n.Load() == 0 { // one may have begun before the lock was had
		close(c.zero)
		c.zero = nil
	}
}

// whenZero returns a channel that is closed once the count is zero.
func (c *counter) whenZero() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.zero == nil {
		c.zero = make(chan struct{})
	}
	zero := c.zero
	if c.n.Load() == 0 {
		close(c.zero)
		c.zero = nil
	}
	return zero
}
