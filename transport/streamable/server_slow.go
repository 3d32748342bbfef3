package streamable

import (
	"sync"
	"time"
)

// primeAfter is when the response to a request that is not answered yet begins
// as an event stream, in revisions where the client can then come back for the
// answer if the connection breaks.
const primeAfter = 200 * time.Millisecond

// A slowRequest is an entry of slowRequests.
type slowRequest struct {
	a          *activeRequest
	due        time.Time
	next, prev *slowRequest
}

// A slowRequests holds requests in the order in which they came, and has their
// responses begin if they take longer than all of them may. One timer waits for
// the first; while there is none it does not run.
type slowRequests struct {
	after time.Duration

	mu          sync.Mutex
	first, last *slowRequest
	timer       *time.Timer
	armed       bool
}

// add begins to wait for a request that has begun, until remove.
func (l *slowRequests) add(a *activeRequest, begun time.Time) {
	e := a.slow
	e.a, e.due = a, begun.Add(l.after)
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.prev = l.last; e.prev != nil {
		e.prev.next = e
	} else {
		l.first = e
	}
	l.last = e
	if !l.armed {
		l.arm(l.after)
	}
}

func (l *slowRequests) arm(wait time.Duration) {
	l.armed = true
	if l.timer == nil {
		l.timer = time.AfterFunc(wait, l.beginDue)
	} else {
		l.timer.Reset(wait)
	}
}

// remove ends the wait for a request, if it is still waited for.
func (l *slowRequests) remove(a *activeRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeEntry(a.slow)
}

func (l *slowRequests) removeEntry(e *slowRequest) {
	switch {
	case e.prev != nil:
		e.prev.next = e.next
	case l.first == e:
		l.first = e.next
	default:
		return // it is out already
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.last = e.prev
	}
	e.next, e.prev = nil, nil
}

// beginDue has the responses begin of requests that have taken long.
func (l *slowRequests) beginDue() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
	now := time.Now()
	for e := l.first; e != nil; e = l.first {
		if wait := e.due.Sub(now); wait > 0 {
			l.arm(wait)
			return
		}
		l.removeEntry(e)
		e.a.beginSoon()
	}
}

// stop ends the waiting.
func (l *slowRequests) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
}
