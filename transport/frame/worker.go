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

// workers are the goroutines of requests. The last one that ends waits for
// another request, with the stack that it has: to start a goroutine and to grow
// its stack takes 20,000 instructions, as many as a quick request.
type workers struct {
	tasks      chan task   // to the worker that waits; closed when nothing is read any more
	waiting    atomic.Bool // a worker waits for a task, or is about to
	goroutines sync.WaitGroup
}

// runOnGoroutine runs a request on the worker that waits, or else on a new one.
func (s *server) runOnGoroutine(t task) {
	s.spawned.add()
	select {
	case s.tasks <- t:
	default:
		s.goroutines.Add(1)
		go s.work(t)
	}
}

// work runs a task, and others for as long as it is the worker that waits. A
// task may end the goroutine (runtime.Goexit).
func (s *server) work(t task) {
	defer s.goroutines.Done()
	for ok := true; ok; {
		t.do()
		if !s.waiting.CompareAndSwap(false, true) {
			return
		}
		t, ok = <-s.tasks
		s.waiting.Store(false)
	}
}
