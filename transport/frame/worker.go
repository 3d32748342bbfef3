package frame

import (
	"sync"
	"sync/atomic"
)

// A task is a request that runs on a goroutine of its own.
type task struct {
	exchange *exchange
	run      func()
}

// do runs the request. One that is left unanswered stays so.
func (t task) do() {
	defer t.exchange.server.spawned.done()
	defer t.exchange.abandon()
	t.run()
}

// workers are the goroutines of requests. Up to maxWaiting that have ended one wait
// for another, with the stacks that they have: to start a goroutine and to grow
// its stack takes 20,000 instructions, as many as a quick request.
type workers struct {
	tasks      chan task    // to a worker that waits; closed when nothing is read any more
	waiting    atomic.Int32 // workers that wait for a task, or are about to
	goroutines sync.WaitGroup
}

// maxWaiting is the most workers of a connection that wait: about as many requests as are read at
// once. One takes 2 to 8 KiB.
const maxWaiting = 16

// runOnGoroutine runs a request on a worker that waits, or else on a new one.
func (s *server) runOnGoroutine(t task) {
	s.spawned.add()
	select {
	case s.tasks <- t:
	default:
		s.goroutines.Add(1)
		go s.work(t)
	}
}

// work runs a task, and then others, unless enough goroutines wait for them. A
// task may end the goroutine (runtime.Goexit).
func (s *server) work(t task) {
	defer s.goroutines.Done()
	for ok := true; ok; {
		t.do()
		if s.waiting.Add(1) > maxWaiting {
			s.waiting.Add(-1)
			return
		}
		t, ok = <-s.tasks
		s.waiting.Add(-1)
	}
}
