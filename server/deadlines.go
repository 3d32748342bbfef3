package server

import (
	"container/heap"
	"sync"
	"time"
)

// deadlines wakes the calls of a server that are out of time. All share one
// timer, since nearly every call ends long before its own would fire.
type deadlines struct {
	mu    sync.Mutex
	due   dueHeap
	timer *time.Timer
	at    time.Time // when the timer fires; zero if it does not run
}

// set makes w fire at due, instead of when it was to fire before.
func (d *deadlines) set(w *watchdog, due time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w.due = due
	if w.queued {
		heap.Fix(&d.due, w.index)
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
		heap.Remove(&d.due, w.index)
	}
}

// arm sets the timer for the first of the heap, if it is later or not running.
func (d *deadlines) arm() {
	if len(d.due) == 0 {
		return
	}
	first := d.due[0].due
	if !d.at.IsZero() && !first.Before(d.at) {
		return
	}
	d.at = first
	if d.timer == nil {
		d.timer = time.AfterFunc(time.Until(first), d.fire)
		return
	}
	d.timer.Reset(time.Until(first))
}

// fire ends what is due.
func (d *deadlines) fire() {
	d.mu.Lock()
	now := time.Now()
	d.at = time.Time{}
	var late []*watchdog
	for len(d.due) > 0 && !d.due[0].due.After(now) {
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
		d.at = time.Time{}
	}
}

// dueHeap is a heap of watchdogs by time; each knows its place.
type dueHeap []*watchdog

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push adds a watchdog at the end.
func (h *dueHeap) Push(x any) {
	w := x.(*watchdog)
	w.index = len(*h)
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
