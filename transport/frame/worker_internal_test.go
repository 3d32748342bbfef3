package frame

import (
	"bytes"
	"runtime"
	"testing"
	"testing/synctest"
)

// goroutine is the head of this goroutine's trace, which has its number.
func goroutine() string {
	head := make([]byte, 64)
	head, _, _ = bytes.Cut(head[:runtime.Stack(head, false)], []byte(" ["))
	return string(head)
}

// TestWorkerIsKept holds that a request runs on the goroutine of the one before
// it, that requests run concurrently, and that none is left when reading ends.
func TestWorkerIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{workers: workers{tasks: make(chan task)}}
		on := make(chan string, 2)
		begin := func(before func()) {
			s.runOnGoroutine(task{&exchange{server: s}, func() { before(); on <- goroutine() }})
		}
		begin(func() {})
		synctest.Wait()
		first := <-on
		release := make(chan struct{})
		begin(func() { <-release })
		synctest.Wait()
		begin(func() {})
		synctest.Wait()
		if other := <-on; other == first {
			t.Errorf("a request runs on %s, where another one runs", other)
		}
		close(release)
		synctest.Wait()
		if second := <-on; second != first {
			t.Errorf("a request ran on %s, want %s, which waited for it", second, first)
		}
		begin(runtime.Goexit)
		synctest.Wait()
		begin(func() {})
		synctest.Wait()
		<-on
		close(s.tasks)
		s.goroutines.Wait()
		if n := s.spawned.n.Load(); n != 0 {
			t.Errorf("%d requests are counted after their end", n)
		}
	})
}

// TestWorkersWait holds that of many requests at once, at most maxWaiting goroutines wait for other
// requests, which run on them, and that these end when nothing is read any more.
func TestWorkersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{workers: workers{tasks: make(chan task)}}
		run := func(n int) (on map[string]bool) {
			names, release := make(chan string, n), make(chan struct{})
			for range n {
				s.runOnGoroutine(task{&exchange{server: s}, func() { names <- goroutine(); <-release }})
			}
			synctest.Wait()
			close(release)
			synctest.Wait()
			on = make(map[string]bool)
			for range n {
				on[<-names] = true
			}
			return on
		}
		first := run(maxWaiting + 4)
		if len(first) != maxWaiting+4 {
			t.Errorf("%d requests at once ran on %d goroutines", maxWaiting+4, len(first))
		}
		if n := s.waiting.Load(); n != maxWaiting {
			t.Errorf("%d goroutines wait, want %d", n, maxWaiting)
		}
		for name := range run(maxWaiting) {
			if !first[name] {
				t.Errorf("a request ran on %s, which did not wait for it", name)
			}
		}
		close(s.tasks)
		s.goroutines.Wait()
		if n := s.waiting.Load(); n != 0 {
			t.Errorf("%d goroutines wait after the end", n)
		}
	})
}
