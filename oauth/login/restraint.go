package login

// What keeps a person from being asked again and again: tokens that never
// worked, sign-ins that were refused, scopes that are never enough.

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// probe remembers whether tokens ever worked.
type probe struct {
	worked   atomic.Bool
	signedIn time.Time     // when there was a sign-in for them, in this process
	doubt    time.Duration // how long no other one is made if they do not work
	unsaved  atomic.Bool   // the store did not take them
}

// doubtful is how long tokens that never worked are not replaced by another
// sign-in: a resource that refuses everything must not send the person to the
// browser with each request. It doubles with each sign-in, up to mostDoubtful.
const (
	doubtful     = time.Minute
	mostDoubtful = time.Hour
)

// afterSignIn is the probe of new tokens that take the place of those of p.
func (p *probe) afterSignIn(now time.Time) *probe {
	made := &probe{signedIn: now, doubt: doubtful}
	if p != nil && p.doubt > 0 && !p.worked.Load() {
		made.doubt = min(2*p.doubt, mostDoubtful)
	}
	return made
}

// afterRefresh is that of refreshed ones.
func (p *probe) afterRefresh() *probe {
	made := &probe{signedIn: p.signedIn, doubt: p.doubt}
	made.worked.Store(p.worked.Load())
	return made
}

// futile reports whether another sign-in would hardly help.
func (s *session) futile(now time.Time) bool {
	return s != nil && !s.probe.worked.Load() && within(now, s.probe.signedIn, s.probe.doubt)
}

// within reports whether d has not passed since an earlier time. A clock that
// was set back ends it.
func within(now, since time.Time, d time.Duration) bool {
	age := now.Sub(since)
	return age >= 0 && age < d
}

// refusalTime is how long a person who did not sign in is left in peace: a
// resource that is asked again and again must not open a browser each time.
const refusalTime = time.Minute

// A refusedSignIn is what became of one that a person was asked for.
type refusedSignIn struct {
	at  time.Time
	err error
}

// refusedLately is what ended the last sign-in to a resource if that was a
// moment ago, or nil.
func (c *Client) refusedLately(id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.refusals[id]; ok && within(c.o.Now(), r.at, refusalTime) {
		return r.err
	}
	return nil
}

// heed remembers how a sign-in ended, and returns err as its error. One that all
// have left, or for which nobody was asked, says nothing of a person.
func (c *Client) heed(ctx context.Context, p *plan, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		delete(c.refusals, p.found.id)
		return nil
	}
	if !p.asked || errors.Is(context.Cause(ctx), context.Canceled) || errors.Is(err, ErrClosed) {
		return err
	}
	if len(c.refusals) >= maxSessions {
		clear(c.refusals)
	}
	err = &refusedError{err}
	c.refusals[p.found.id] = refusedSignIn{c.o.Now(), err}
	return err
}

// errSteps says that an operation has led to enough step-ups.
var errSteps = errors.New("no more scopes are asked for")

// countStep counts a step-up of an operation, and reports whether it may be. To
// be asked for what was asked for already mostly means that it will not be
// given: one more time may help, if the person said no to a part, and that was
// the last.
func (c *Client) countStep(operation string, known bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.steps[operation] >= c.o.StepUps {
		return false
	}
	if len(c.steps) >= maxSessions {
		clear(c.steps)
	}
	c.steps[operation]++
	if known {
		c.steps[operation] = c.o.StepUps
	}
	return true
}

func (c *Client) forgetSteps(operation string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.steps, operation)
}

// resetSteps lets operations that were given up try again: somebody has asked.
func (c *Client) resetSteps() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.steps)
}
