package frame

import (
	"runtime"
	"testing"
)

// What begins just when the last one has ended is waited for.
func TestTally(t *testing.T) {
	var count counter
	count.add()
	count.mu.Lock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		count.done()
	}()
	for count.n.Load() != 0 { // it has counted, and waits for the lock
		runtime.Gosched()
	}
	count.add()
	zero := make(chan struct{})
	count.zero = zero // as none does, which comes to the lock first
	count.mu.Unlock()
	<-ended
	select {
	case <-zero:
		t.Error("nothing is said to run, and something does")
	default:
	}
	count.done()
	<-zero
	<-count.whenZero()
}
