package proxy

import (
	"sync"
	"time"
)

// cutTime is how long the upstream server may go on with a call that was
// cancelled, which it is free to.
const cutTime = time.Minute

// cut knows whose calls were cancelled and may go on upstream. What comes from
// there and belongs to no call for certain may be theirs.
type cut struct {
	mu    sync.Mutex
	owner string
	mixed bool // calls of several owners were
	until time.Time
}

// note notes that a call of an owner was cancelled.
func (c *cut) note(owner string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	over := !now.Before(c.until)
	c.mixed = !over && (c.mixed || owner != c.owner)
	c.owner, c.until = owner, now.Add(cutTime)
}

// of reports whether a call of another owner may go on.
func (c *cut) of(owner string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.until) && (c.mixed || owner != c.owner)
}
