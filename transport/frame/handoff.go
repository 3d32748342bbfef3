package frame

import (
	"math"
	"sync/atomic"
	"time"
)

// A request may run on the goroutine that reads (see scheduler). If it takes
// its time there, another goroutine goes on reading. One number, the
// readerToken, says which goroutine has the reading, and is its state:
//
//	               begin                         end
//	  reading ---------------> working ---------------------> reading
//	  n even                   n+1 odd   same goroutine       n+2 even
//	                              |
//	                              | handOff (end, called by another goroutine)
//	                              v
//	                           reading     on a new goroutine (startReader)
//	                           n+2 even
//
// Work is a request that runs on the reader, or a write that the reader does.
// The hand-off happens when
//   - the request sends something before its answer (exchange.Send),
//   - the monitor finds the same work twice, a monitorInterval apart,
//   - the connection shuts down, so that the work is waited for.
//
// The goroutine that moves the number on from odd has the reading: end succeeds
// for one of them. The one that worked learns from end that it does not read
// any more; it finishes its request as one of the spawned, and ends. A request
// that ends its goroutine (runtime.Goexit) starts another reader itself.

// readerToken counts pieces of work of the reader: even while reading, odd
// while working, so that no two pieces have the same number.
type readerToken struct{ n atomic.Uint64 }

// begin begins a piece of work and returns its number. Only the reader calls it.
func (t *readerToken) begin() uint64 {
	n := t.n.Load() + 1 // no other goroutine moves it on from an even number
	t.n.Store(n)
	return n
}

// end ends piece n; false says that another goroutine did.
func (t *readerToken) end(n uint64) bool { return t.n.CompareAndSwap(n, n+1) }

// current reports whether the reader is at piece n.
func (t *readerToken) current(n uint64) bool { return t.n.Load() == n }

func isWorking(n uint64) bool { return n&1 == 1 }

// ownGoroutine is the workNumber of an exchange that runs on a goroutine of its
// own. No work has it: a reader would take centuries to count so far.
const ownGoroutine = math.MaxUint64

// endWork ends a piece of work, and reports whether this goroutine still reads.
func (s *server) endWork(n uint64) bool {
	if s.token.end(n) {
		return true
	}
	s.spawned.done() // handOff counted it
	return false
}

// handOff starts another reader, if the present one is still at work n.
func (s *server) handOff(n uint64) {
	s.spawned.add() // first, since endWork takes it off
	if !s.token.end(n) {
		s.spawned.done()
		return
	}
	go s.startReader()
}

// flush writes the held answers, and reports whether this goroutine still reads.
func (s *server) flush() bool {
	s.answersHeld = false
	n := s.token.begin()
	s.monitor.start()
	s.out.writeHeld()
	return s.endWork(n)
}

// runOnReader runs a request on this goroutine, which reads, and reports
// whether it still does afterwards.
func (x *exchange) runOnReader(run func(), came time.Duration) (still bool) {
	s := x.server
	s.answersHeld = true
	done := s.done
	n := s.token.begin()
	x.workNumber.Store(n)
	s.monitor.start()
	returned := false
	defer func() {
		x.abandon()
		still = s.endWork(n)
		switch {
		case !still:
			*done = true
		case returned:
			s.scheduler.record(s.now() - came)
		default: // runtime.Goexit: this goroutine ends, not the reading
			*done = true
			go s.startReader()
		}
	}()
	run()
	returned = true
	return
}

// checkReader hands the reading off if the reader is at the same work as at the
// last check, and starts the writing of held answers, since the reader may be
// kept from it: there is always more to read, or the session takes long over a
// message. It reports whether to check again: as long as there is enough work
// for the cost of a check not to matter.
func (s *server) checkReader() (again bool) {
	n := s.token.n.Load() // before drainHeld: what is answered later is work, too
	s.out.drainHeld()
	before := s.lastToken
	s.lastToken = n
	if !isWorking(n) {
		return n-before >= 8
	}
	if n == before {
		s.handOff(n)
	}
	return true
}

// needsCheck reports whether there is work, or an answer that is held.
func (s *server) needsCheck() bool { return isWorking(s.token.n.Load()) || s.out.hasHeld() }

// monitorInterval is the time between two checks of a monitor, and so how long
// an answer may be held; a request that runs on the reader delays the next
// message by at most twice that.
const monitorInterval = time.Millisecond

// A monitor calls check at every interval while there is reason to. It costs a
// timer, but none for each request: start is called when work begins, and the
// timer is set again until check returns false.
type monitor struct {
	check  func() (again bool)
	needed func() bool // there is something to check

	on    atomic.Bool
	timer atomic.Pointer[time.Timer]
}

// start starts the timer, if it is not set.
func (m *monitor) start() {
	if !m.on.Load() && m.on.CompareAndSwap(false, true) {
		m.schedule()
	}
}

func (m *monitor) schedule() {
	if t := m.timer.Load(); t != nil {
		t.Reset(monitorInterval)
		return
	}
	m.timer.Store(time.AfterFunc(monitorInterval, m.fire))
}

func (m *monitor) fire() {
	if m.check() {
		m.schedule()
		return
	}
	m.on.Store(false)
	if m.needed() { // it began after the check, and found the monitor still on
		m.start()
	}
}
