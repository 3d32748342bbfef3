package pausetimer

import (
	"container/heap"
	"math"
	"sync"
	"time"
)

// A Scheduler runs Timers, all with one timer of the runtime: nearly every Timer
// is stopped long before it would run out. The zero Scheduler is ready. It may be
// used by many goroutines at once. One that is used in a bubble of testing/synctest
// must not be used outside of it.
type Scheduler struct {
	mu     sync.Mutex // guards the Timers too
	base   time.Time  // instant 0: the first use
	timers timerHeap  // that are running
	wake   *time.Timer
	at     instant // when wake fires, or never
}

// An instant is a time in nanoseconds since the first use of a Scheduler.
type instant int64

// never is an instant that does not come.
const never instant = math.MaxInt64

// after is the instant that comes d later. It is never if that overflows, or if d
// is negative, which stands for no limit.
func (i instant) after(d time.Duration) instant {
	if later := i + instant(d); d >= 0 && later >= i {
		return later
	}
	return never
}

func (s *Scheduler) now() instant {
	if s.base.IsZero() {
		s.base = time.Now()
	}
	return instant(time.Since(s.base))
}

// set has t expire at due, instead of when it was to expire before.
func (s *Scheduler) set(t *Timer, due, now instant) {
	t.due = due
	switch {
	case t.index >= 0:
		heap.Fix(&s.timers, int(t.index))
	case due != never:
		heap.Push(&s.timers, t)
	}
	s.arm(now)
}

// drop has t not expire. The runtime's timer is left: it finds nothing to do.
func (s *Scheduler) drop(t *Timer) {
	if t.index >= 0 {
		heap.Remove(&s.timers, int(t.index))
	}
}

// arm sets the runtime's timer for the first Timer, if it would fire later.
func (s *Scheduler) arm(now instant) {
	if len(s.timers) == 0 {
		return
	}
	first := s.timers[0].due
	wait := time.Duration(first - now)
	switch {
	case s.wake == nil:
		s.wake = time.AfterFunc(wait, s.expire)
	case first < s.at:
		s.wake.Reset(wait)
	default:
		return
	}
	s.at = first
}

// expire has the Timers expire that are due. Since the change of their state is
// made here under the mutex, a Timer that was stopped, paused or had progress
// before does not expire, and what is called after finds it expired.
func (s *Scheduler) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.at = never
	for len(s.timers) > 0 && s.timers[0].due <= now {
		t := heap.Pop(&s.timers).(*Timer)
		t.state, t.done = stateExpired, make(chan struct{})
		go t.expire() // an Expirer that takes long delays no other; Stop waits for it
	}
	s.arm(now)
}

// Stop stops the runtime's timer, unless a Timer is running. Others may be started
// afterwards.
func (s *Scheduler) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wake != nil && len(s.timers) == 0 {
		s.wake.Stop()
		s.at = never
	}
}

// timerHeap is a heap of Timers by the time when they are due. Each knows its index.
type timerHeap []*Timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = int32(i), int32(j)
}

// Push adds a Timer at the end.
func (h *timerHeap) Push(x any) {
	t := x.(*Timer)
	t.index = int32(len(*h))
	*h = append(*h, t)
}

// Pop takes the last one off.
func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.index = -1
	return t
}
