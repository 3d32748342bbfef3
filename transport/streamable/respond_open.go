package streamable

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Responses are those that are open: of them some need a sign of life, and all
// an end when nobody is waited for any more. They have one timer.
type responses struct {
	every time.Duration // between two looks
	keep  time.Duration

	mu    sync.Mutex
	first *response
	timer *time.Timer
	armed bool
	over  bool
	beats sync.WaitGroup

	late    *time.Timer // of answers whose Serve goes on
	pending atomic.Bool // it runs
}

// lateAfter is how long an answer waits for the end of Serve.
const lateAfter = 25 * time.Millisecond

func (l *responses) init(h *Handler) {
	l.keep = h.opts.KeepAlive
	l.every = max(l.keep/4, time.Millisecond)
	l.late = time.AfterFunc(math.MaxInt64, l.hurry)
	l.late.Stop()
}

func (l *responses) add(o *response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first != nil {
		l.first.prev = o
	}
	o.next, l.first = l.first, o
	if l.armed || l.over || o.call == nil {
		return
	}
	l.armed = true
	if l.timer == nil {
		l.timer = time.AfterFunc(l.every, l.look)
		return
	}
	l.timer.Reset(l.every)
}

func (l *responses) remove(o *response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o.prev != nil {
		o.prev.next = o.next
	} else {
		l.first = o.next
	}
	if o.next != nil {
		o.next.prev = o.prev
	}
	o.next, o.prev = nil, nil
}

// look gives a sign of life on behalf of modern requests that have been silent
// for long: those of sessions look after themselves.
func (l *responses) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
	if l.over {
		return
	}
	for o := l.first; o != nil; o = o.next {
		if o.call == nil {
			continue
		}
		if !l.armed {
			l.armed = true
			l.timer.Reset(l.every)
		}
		if o.call.silent(l.keep - l.every) {
			l.beats.Go(o.call.beat)
		}
	}
}

// expect has the answers that wait looked at after a while.
func (l *responses) expect() {
	if !l.pending.Swap(true) {
		l.late.Reset(lateAfter)
	}
}

// hurry sends the answers that have waited for too long.
func (l *responses) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending.Store(false) // what comes from here on asks again
	if l.over {
		return
	}
	wait := false
	for o := l.first; o != nil; o = o.next {
		if o.call != nil && o.call.overdue() {
			wait = true
		}
	}
	if wait {
		l.expect()
	}
}

// stop ends the signs of life, and returns once none is under way.
func (l *responses) stop() {
	l.mu.Lock()
	l.over = true
	l.late.Stop()
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	l.beats.Wait()
}

// expire makes all writes fail, now and from now on, and cancels what is
// behind modern requests.
func (l *responses) expire(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for o := l.first; o != nil; o = o.next {
		o.giveUp()
		if o.call != nil {
			o.call.fail(cause)
		}
	}
}
