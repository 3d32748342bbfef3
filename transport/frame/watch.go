package frame

import (
	"sync/atomic"
	"time"
)

// tick is how often a watch looks, and so how long answers wait for the reader
// to have them written; a request that runs on the reader holds up those behind
// it for twice that at the most.
const tick = time.Millisecond

// A watch looks after something at every tick while there is reason to. It
// costs a timer, but none for each request: it is set when things begin and
// goes on by itself until they have calmed down.
type watch struct {
	look func() (again bool)
	busy func() bool // there is something to look at

	on    atomic.Bool
	timer atomic.Pointer[time.Timer]
}

// wake makes the watch look, if it does not.
func (w *watch) wake() {
	if !w.on.Load() && w.on.CompareAndSwap(false, true) {
		w.set()
	}
}

func (w *watch) set() {
	if t := w.timer.Load(); t != nil {
		t.Reset(tick)
		return
	}
	w.timer.Store(time.AfterFunc(tick, w.tick))
}

func (w *watch) tick() {
	if w.look() {
		w.set()
		return
	}
	w.on.Store(false)
	if w.busy() { // it began after the look, and found the watch still on
		w.wake()
	}
}
