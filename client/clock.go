package client

import (
	"context"
	"sync"
	"time"
)

// A clock is the time limit of one call. It ends the call's context when the
// server was silent for too long, or when the call took too long in all; it
// stands still while persons are asked (spec 2026-07-28,
// basic/patterns/cancellation: timeouts SHOULD exist, progress MAY reset
// them, a maximum SHOULD always be enforced). The zero clock limits nothing.
type clock struct {
	end        context.CancelCauseFunc
	idle, hard time.Duration

	mu      sync.Mutex
	timer   *time.Timer // nil if nothing is limited, or all is over
	silent  time.Time   // when the silence becomes too long
	last    time.Time   // when the call has become too long
	left    time.Duration
	stopped int
}

// start begins the time of a call, once. A zero idle limits nothing.
func (k *clock) start(end context.CancelCauseFunc, idle, hard time.Duration) {
	k.mu.Lock() // the timer may fire at once
	defer k.mu.Unlock()
	k.end, k.idle, k.hard = end, idle, hard
	if idle <= 0 {
		return
	}
	now := time.Now()
	k.silent, k.last = now.Add(idle), now.Add(hard)
	k.timer = time.AfterFunc(min(idle, hard), k.fire)
}

// fire ends the call, or waits on if something was heard meanwhile.
func (k *clock) fire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer == nil || k.stopped > 0 {
		return
	}
	now := time.Now()
	switch {
	case !now.Before(k.last):
		k.end(&timeoutError{limit: k.hard, hard: true})
	case !now.Before(k.silent):
		k.end(&timeoutError{limit: k.idle})
	default:
		k.timer.Reset(min(k.silent.Sub(now), k.last.Sub(now)))
	}
}

// touch says that something was heard of the call.
func (k *clock) touch() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer != nil && k.stopped == 0 {
		k.silent = time.Now().Add(k.idle)
	}
}

// rest is how long nothing may be heard before the clock ends the call; more
// than longestTold if nothing is limited.
func (k *clock) rest() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer == nil || k.stopped > 0 {
		return 2 * longestTold
	}
	now := time.Now()
	return min(k.silent.Sub(now), k.last.Sub(now))
}

// pause stops the clock until the matching resume.
func (k *clock) pause() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer == nil {
		return
	}
	if k.stopped++; k.stopped == 1 {
		k.timer.Stop()
		k.left = time.Until(k.last)
	}
}

func (k *clock) resume() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer == nil || k.stopped == 0 {
		return
	}
	if k.stopped--; k.stopped == 0 {
		now := time.Now()
		k.silent, k.last = now.Add(k.idle), now.Add(k.left)
		k.timer.Reset(min(k.idle, k.left))
	}
}

// stop ends the clock for good.
func (k *clock) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
}
