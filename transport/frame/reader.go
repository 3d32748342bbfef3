package frame

import (
	"context"
	"errors"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/transport"
)

// apart is the place of an exchange that runs on a goroutine of its own. It is
// no work's number: a reader would take centuries to count so far.
const apart = math.MaxUint64

// A turn says whether the goroutine that reads is at work: at a request that
// runs on it, or at writing. It counts up: even while reading, odd while at
// work, so that no two pieces of work have the same number. Whoever moves it on
// from an odd number has the reading: the reader itself when the work is done,
// or somebody who did not want to wait for it and starts another reader.
type turn struct{ n atomic.Uint64 }

// enter begins a piece of work and returns its number.
func (t *turn) enter() uint64 {
	n := t.n.Load() + 1 // nobody else moves it on from an even number
	t.n.Store(n)
	return n
}

// leave moves on from a piece of work; false says that somebody has.
func (t *turn) leave(n uint64) bool { return t.n.CompareAndSwap(n, n+1) }

// at reports whether n is being worked on by the one who reads.
func (t *turn) at(n uint64) bool { return t.n.Load() == n }

func atWork(n uint64) bool { return n&1 == 1 }

// A tally counts what runs beside the reader.
type tally struct {
	n    atomic.Int64
	mu   sync.Mutex
	zero chan struct{} // closed when the count is next zero
}

func (t *tally) add() { t.n.Add(1) }

func (t *tally) done() {
	if t.n.Add(-1) != 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.zero != nil && t.n.Load() == 0 { // something may have begun before the lock was had
		close(t.zero)
		t.zero = nil
	}
}

// none returns a channel that is closed once nothing runs.
func (t *tally) none() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.zero == nil {
		t.zero = make(chan struct{})
	}
	zero := t.zero
	if t.n.Load() == 0 {
		close(t.zero)
		t.zero = nil
	}
	return zero
}

// A reader is what belongs to the goroutine that reads, and goes with the
// reading from one to the next: nothing of it is touched between enter and
// leave.
type reader struct {
	pace pace
	held bool  // answers of requests that ran here wait to be written
	done *bool // see read
}

// An ending is how reading ended: with the pipe's last error, or with a panic
// of the session.
type ending struct {
	err   error
	fault any
}

// errExit is the end of a reader whose goroutine was ended by the session.
var errExit = errors.New("a message made its reader exit")

// read reads until the pipe has no more, and says so to Serve, or until the
// reading has gone to another goroutine.
func (s *server) read(ctx context.Context) {
	done := false // told, or gone to another
	s.done = &done
	defer func() {
		if done {
			return // a panic that comes here is a handler's, and goes on
		}
		fault := recover()
		if fault != nil {
			s.log.Error("panic while reading", "panic", fault, "stack", string(debug.Stack()))
		}
		s.over <- ending{err: errExit, fault: fault}
	}()
	err := s.readOn(ctx)
	if done = true; err != nil {
		s.over <- ending{err: err}
	}
}

// readOn returns the pipe's last error, or nil if this goroutine no longer
// reads.
func (s *server) readOn(ctx context.Context) error {
	for {
		if s.held && !s.more() && !s.flush() {
			return nil
		}
		data, err := next(s.pipe, s.limits.Bytes)
		if err == nil {
			if !s.take(ctx, data) {
				return nil
			}
			continue
		}
		long := tooLong(err)
		if long == nil {
			return err
		}
		s.log.Warn("message skipped", "error", err)
		s.refuseLong(long)
	}
}

// more reports whether the next message can be read without waiting.
func (s *server) more() bool { return s.gauge != nil && s.gauge.Buffered() }

// flush writes what is held, and reports whether this goroutine still reads.
func (s *server) flush() bool {
	s.held = false
	n := s.turn.enter()
	s.watch.wake()
	s.out.kick()
	return s.leave(n)
}

// leave ends a piece of work, and reports whether this goroutine still reads.
func (s *server) leave(n uint64) bool {
	if s.turn.leave(n) {
		return true
	}
	s.beside.done() // overtake counted it
	return false
}

// overtake gives the reading to another goroutine, if n is still being worked
// on by the one that has it.
func (s *server) overtake(n uint64) {
	s.beside.add() // first, since leave takes it off
	if !s.turn.leave(n) {
		s.beside.done()
		return
	}
	go s.resume()
}

// look hands the reading on if the reader is at the same work as at the last
// look, and has the answers written that wait for the reader, whatever keeps it
// from that: there may always be more to read, or the session takes its time
// over a message. It reports whether to look again: as long as there is enough
// work for the looks not to matter.
func (s *server) look() (again bool) {
	n := s.turn.n.Load() // before the nudge: what is answered later is work, too
	s.out.nudge()
	before := s.seen
	s.seen = n
	if !atWork(n) {
		return n-before >= 8
	}
	if n == before {
		s.overtake(n)
	}
	return true
}

// watched reports whether there is something to look at.
func (s *server) watched() bool { return atWork(s.turn.n.Load()) || s.out.holds() }

// here runs a request on this goroutine, which reads, and reports whether it
// still does afterwards.
func (x *exchange) here(run func(), came time.Duration) (still bool) {
	s := x.s
	s.held = true
	done := s.done
	n := s.turn.enter()
	x.place.Store(n)
	s.watch.wake()
	returned := false
	defer func() {
		x.abandon()
		still = s.leave(n)
		switch {
		case !still:
			*done = true
		case returned:
			s.pace.took(s.now() - came)
		default: // runtime.Goexit: this goroutine ends, not the reading
			*done = true
			go s.resume()
		}
	}()
	run()
	returned = true
	return
}

// beside runs a request on a goroutine of its own. If it leaves it unanswered,
// that is how it stays.
func (x *exchange) beside(run func()) {
	defer x.s.beside.done()
	defer x.abandon()
	run()
}

// now is the time since the connection began.
func (s *server) now() time.Duration { return time.Since(s.began) }

// An exchange is one request and its responder.
type exchange struct {
	transport.Exchange
	s        *server
	batch    *batch
	answered atomic.Bool
	// place is where it runs: 0 while it is being begun, apart, or the number
	// of the reader's work.
	place atomic.Uint64
}
