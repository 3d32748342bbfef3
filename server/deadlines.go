package server

import (
	"container/heap"
	"math"
	"sync"
	"time"
)

// deadlines wakes the calls of a server that are out of time. All share one
// timer, since nearly every call ends long before its own would fire.
type deadlines struct {
	base  time.Time // when the server was made
	mu    sync.Mutex
	due   dueHeap
	timer *time.Timer
	at    instant // when the timer fires; 0 if it does not run
}

// An instant is a time in nanoseconds since the server was made.
type instant int64

// after is the instant that comes wait later, or the last one there is.
func (i instant) after(wait time.Duration) instant {
	if later := i + instant(wait); later >= i {
		return later
	}
	return math.MaxInt64
}

func (d *deadlines) now() instant { return instant(time.Since(d.base)) }

// set makes w fire at due, instead of when it was to fire before.
func (d *deadlines) set(w *watchdog, due instant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w.due = due
	if w.queued {
		heap.Fix(&d.due, int(w.index))
	} else {
		w.queued = true
		heap.Push(&d.due, w)
	}
	d.arm()
}

// drop makes w not fire. The timer is left: it finds nothing to do.
func (d *deadlines) drop(w *watchdog) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.queued {
		w.queued = false
		heap.Remove(&d.due, int(w.index))
	}
}

// arm sets the timer for the first of the heap, if it is later or not running.
func (d *deadlines) arm() {
	if len(d.due) == 0 {
		return
	}
	first := d.due[0].due
	if d.at != 0 && first >= d.at {
		return
	}
	d.at = max(first, 1)
	wait := time.Duration(first - d.now())
	if d.timer == nil {
		d.timer = time.AfterFunc(wait, d.fire)
		return
	}
	d.timer.Reset(wait)
}

// fire ends what is due.
func (d *deadlines) fire() {
	d.mu.Lock()
	now := d.now()
	d.at = 0
	var late []*watchdog
	for len(d.due) > 0 && d.due[0].due <= now {
		w := heap.Pop(&d.due).(*watchdog)
		w.queued = false
		late = append(late, w)
	}
	d.arm()
	d.mu.Unlock()
	for _, w := range late {
		// A peer that does not read holds up its own answer alone. The stop of
		// each call waits for it.
		go w.fire()
	}
}

// stop ends the timer, when no call is under way any more.
func (d *deadlines) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.at = 0
	}
}

// dueHeap is a heap of watchdogs by time; each knows its place.
type dueHeap []*watchdog

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = int32(i), int32(j)
}

// Push adds a watchdog at the end.
func (h *dueHeap) Push(x any) {
	w := x.(*watchdog)
	w.index = int32(len(*h))
	*h = append(*h, w)
}

// Pop takes the last one off.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return w
}
