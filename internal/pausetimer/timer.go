// Package pausetimer has the time limits of calls, connections and runs: a
// Timer has an idle limit and a hard limit, both of which stop while a person
// is asked.
package pausetimer

import (
	"math"
	"time"
)

// A Limit is one of the two limits of a Timer.
type Limit uint8

// Limits.
const (
	Idle Limit = iota // the time without progress
	Hard              // the time altogether, without pauses
)

// An Expirer is told once that a limit of its Timer has run out, on a goroutine
// of its own. It must not call Stop, which waits for it.
type Expirer interface{ Expired(l Limit) }

// A Timer limits the time of one operation. The zero Timer has no limits, and all
// methods but Start do nothing. Start comes first and once; the other methods may
// be called by many goroutines at once. None of them allocates or calls the
// Expirer.
//
// The state, guarded by the mutex of the scheduler:
//
//	new ──Start──▶ running ──a limit runs out──▶ expired
//	                │   ▲                           (Pause and Stop change nothing)
//	       the first│   │the last Resume
//	           Pause▼   │
//	                paused
//
//	running, paused ──Stop──▶ stopped
type Timer struct {
	scheduler *Scheduler // nil without limits
	expirer   Expirer
	idle      time.Duration
	hard      instant       // when the hard limit runs out
	due       instant       // when the first limit runs out; in a pause: when that began
	done      chan struct{} // nil until expired; closed when the Expirer has returned
	index     int32         // in the heap of the scheduler, or -1
	pauses    int32         // that are not over
	state     state
}

type state uint8

const (
	stateNew state = iota
	stateRunning
	statePaused
	stateExpired
	stateStopped
)

// Start starts the limits. A negative limit is none, as is one of centuries; 0
// runs out at once.
func (t *Timer) Start(s *Scheduler, e Expirer, idle, hard time.Duration) {
	if idle < 0 && hard < 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	t.scheduler, t.expirer, t.index = s, e, -1
	t.idle, t.hard = idle, now.after(hard)
	t.run(now)
}

// run starts the idle limit; the scheduler is locked.
func (t *Timer) run(now instant) {
	t.state = stateRunning
	t.scheduler.set(t, min(now.after(t.idle), t.hard), now)
}

// Progress restarts the idle limit, unless the Timer is paused.
func (t *Timer) Progress() {
	if t.scheduler == nil {
		return
	}
	t.scheduler.mu.Lock()
	defer t.scheduler.mu.Unlock()
	if t.state == stateRunning {
		t.run(t.scheduler.now())
	}
}

// AllowIdle lifts the idle limit for good. The hard one stays.
func (t *Timer) AllowIdle() {
	if t.scheduler == nil {
		return
	}
	t.scheduler.mu.Lock()
	defer t.scheduler.mu.Unlock()
	t.idle = -1
	if t.state == stateRunning {
		t.run(t.scheduler.now())
	}
}

// Pause stops both limits until there were as many calls of Resume as of Pause.
func (t *Timer) Pause() {
	if t.scheduler == nil {
		return
	}
	t.scheduler.mu.Lock()
	defer t.scheduler.mu.Unlock()
	t.pauses++
	if t.state == stateRunning {
		t.state = statePaused
		t.scheduler.drop(t)
		t.due = t.scheduler.now()
	}
}

// Resume ends one Pause. After the last the hard limit continues, and the idle
// limit starts again.
func (t *Timer) Resume() {
	if t.scheduler == nil {
		return
	}
	t.scheduler.mu.Lock()
	defer t.scheduler.mu.Unlock()
	if t.pauses == 0 {
		return
	}
	if t.pauses--; t.pauses == 0 && t.state == statePaused {
		now := t.scheduler.now()
		t.hard = t.hard.after(time.Duration(now - t.due))
		t.run(now)
	}
}

// Stop ends the limits for good. If one has run out before, Stop returns after the
// Expirer has.
func (t *Timer) Stop() {
	if t.scheduler == nil {
		return
	}
	t.scheduler.mu.Lock()
	if t.state != stateExpired {
		t.state = stateStopped
		t.scheduler.drop(t)
	}
	t.scheduler.mu.Unlock()
	if t.done != nil {
		<-t.done
	}
}

// Deadline is when the hard limit runs out. There is none without that limit, nor
// in a pause: a context that is derived in it needs a timer of its own.
func (t *Timer) Deadline() (at time.Time, ok bool) {
	if t.scheduler == nil {
		return time.Time{}, false
	}
	t.scheduler.mu.Lock()
	defer t.scheduler.mu.Unlock()
	if t.state == statePaused || t.hard == never {
		return time.Time{}, false
	}
	return t.scheduler.base.Add(time.Duration(t.hard)), true
}

// Remaining is the time until the first limit runs out, if nothing happens before;
// in a pause and without limits it is the longest duration.
func (t *Timer) Remaining() time.Duration {
	if t.scheduler == nil {
		return math.MaxInt64
	}
	t.scheduler.mu.Lock()
	defer t.scheduler.mu.Unlock()
	if t.state == statePaused || t.due == never {
		return math.MaxInt64
	}
	return time.Duration(t.due - t.scheduler.now())
}

// expire tells the Expirer which limit has run out.
func (t *Timer) expire() {
	defer close(t.done)
	l := Idle
	if t.due == t.hard {
		l = Hard
	}
	t.expirer.Expired(l)
}
