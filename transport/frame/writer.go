package frame

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
)

// writeBy says which goroutine writes an answer when none is writing.
type writeBy int

const (
	byNewGoroutine writeBy = iota // a goroutine that is started for it
	byCaller                      // the goroutine that answers
	byReader                      // the reader, when there is no more to read, or its monitor
)

// maxHeld is how many bytes may be held for the reader to write.
const maxHeld = 64 << 10

// A writerState says whether a goroutine has the role of writing the queue, and
// what it does:
//
//	idle   --activate--> active --takeQueue--> writing --finishWrite--> active
//	active --the queue is empty, or writing has failed--> idle
type writerState uint8

const (
	writerIdle    writerState = iota // no goroutine writes
	writerActive                     // one does, between two writes
	writerWriting                    // it is in Write of the pipe
)

// A writer is the sending half of a connection. It has no goroutine while
// there is nothing to write.
type writer struct {
	pipe  Pipe
	gauge Gauge // the pipe, if it is one
	max   int
	// inFlight counts requests: if there are several, a write yields to the Go
	// scheduler once, so that their messages leave in one write.
	inFlight *atomic.Int64
	started  time.Time

	mu           sync.Mutex
	queue        []*buffer
	spare        []*buffer // the second buffer of the queue
	size         int       // bytes queued or being written
	state        writerState
	roomFreed    chan struct{}
	idle         chan struct{}
	sealed       error        // ends sending, not answering
	err          error        // ends both
	unsent       []jsonrpc.ID // requests that a failed write did not send
	writeTimeout time.Duration
	timer        *time.Timer
	timerAt      time.Duration  // when timer fires, since started; 0: not set
	deadline     time.Duration  // of the current write
	closing      bool           // slow peers get no extra time
	writers      sync.WaitGroup // active writers

	views [][]byte // belongs to the writer
}

func newWriter(p Pipe, o *Options, busy *atomic.Int64) *writer {
	gauge, _ := p.(Gauge)
	return &writer{pipe: p, gauge: gauge, max: o.MaxQueued, writeTimeout: o.WriteStall, inFlight: busy, started: time.Now()}
}

// send queues a message that is no answer, for the exchange x if there is one.
// It waits for room until ctx ends, and never for the peer.
func (w *writer) send(ctx context.Context, m *jsonrpc.Outgoing, x *atomic.Bool) error {
	if err := w.refusesSend(x); err != nil {
		return err
	}
	b, err := encode(m)
	if err != nil {
		return err
	}
	begin, err := w.enqueue(ctx, b, x, byNewGoroutine, false)
	if err != nil {
		b.free()
		return err
	}
	if begin && !w.tryWrite() {
		go w.drain()
	}
	return nil
}

// answer queues the answer that ends exchange x, if there is one. It waits for
// room for as long as the connection lives, because an answer must not be
// lost.
func (w *writer) answer(m *jsonrpc.Outgoing, x *atomic.Bool, by writeBy) error {
	b, err := encode(m)
	if err != nil {
		return err // x may still be answered, with an error
	}
	return w.answerBuffer(b, x, by)
}

func (w *writer) answerBuffer(b *buffer, x *atomic.Bool, by writeBy) error {
	if x != nil && !claim(x) {
		b.free()
		return jsonrpc.ErrEnded
	}
	begin, err := w.enqueue(context.Background(), b, x, by, true)
	switch {
	case err != nil:
		b.free()
		return err
	case begin && by == byNewGoroutine:
		go w.drain()
	case begin:
		w.writeOnce()
	}
	return nil
}

// claim marks an exchange as answered and reports whether it was not before.
// An answer is queued after this, and what else belongs to the exchange under
// the writer's lock and not after this: so nothing follows the answer.
func claim(answered *atomic.Bool) bool {
	return !answered.Load() && answered.CompareAndSwap(false, true)
}

// refusesSend spares the encoding of what could not be sent anyway.
func (w *writer) refusesSend(x *atomic.Bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sendError(x)
}

// sendError says why nothing can be sent for x. The lock is held.
func (w *writer) sendError(x *atomic.Bool) error {
	switch {
	case x != nil && x.Load():
		return jsonrpc.ErrEnded
	case w.err != nil:
		return w.err
	}
	return w.sealed
}

// enqueue waits for room and queues b. It reports whether the caller has to
// write, by drain or writeOnce. After an answer to x was claimed, other messages
// of x are refused.
func (w *writer) enqueue(ctx context.Context, b *buffer, x *atomic.Bool, by writeBy, answer bool) (begin bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		refused := w.err
		if !answer {
			refused = w.sendError(x)
		}
		if refused != nil {
			return false, refused
		}
		if w.size == 0 || w.size+len(b.b) <= w.max {
			break
		}
		w.drainHeldLocked() // which makes room
		if err := w.waitForRoom(ctx); err != nil {
			return false, err
		}
	}
	w.queue = append(w.queue, b)
	w.size += len(b.b)
	if by == byReader && w.size <= maxHeld {
		return false, nil
	}
	return w.activate(), nil
}

// activate makes the caller the writer, if there is none; it has to call drain
// or writeOnce. The lock is held.
func (w *writer) activate() bool {
	if w.state != writerIdle {
		return false
	}
	w.state = writerActive
	w.writers.Add(1) // under the lock: close refuses before it waits
	return true
}

// hasHeld reports whether a message is queued and none is writing.
func (w *writer) hasHeld() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heldLocked()
}

func (w *writer) heldLocked() bool { return len(w.queue) > 0 && w.state == writerIdle && w.err == nil }

// writeHeld writes held messages.
func (w *writer) writeHeld() {
	w.mu.Lock()
	begin := w.heldLocked() && w.activate()
	w.mu.Unlock()
	if begin {
		w.writeOnce()
	}
}

// drainHeld starts a goroutine that writes held messages.
func (w *writer) drainHeld() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drainHeldLocked()
}

// drainHeldLocked is drainHeld with the lock held.
func (w *writer) drainHeldLocked() {
	if w.heldLocked() && w.activate() {
		go w.drain()
	}
}

// waitForRoom releases the lock until there may be room.
func (w *writer) waitForRoom(ctx context.Context) error {
	if w.roomFreed == nil {
		w.roomFreed = make(chan struct{})
	}
	room := w.roomFreed
	w.mu.Unlock()
	defer w.mu.Lock()
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for room to send: %w", context.Cause(ctx))
	}
}

// signalRoom wakes all senders that wait for room. The lock is held.
func (w *writer) signalRoom() {
	if w.roomFreed != nil {
		close(w.roomFreed)
		w.roomFreed = nil
	}
}

// drain writes until the queue is empty. activate counted it in writers.
func (w *writer) drain() {
	defer w.writers.Done()
	for w.write() {
	}
}

// tryWrite writes the queue, if that does not mean waiting for the peer. False
// says that nothing was done.
func (w *writer) tryWrite() bool {
	if w.gauge == nil {
		return false
	}
	w.mu.Lock()
	if w.gauge.Room() < len(w.queue) {
		w.mu.Unlock()
		return false
	}
	batch := w.takeQueue()
	w.mu.Unlock()
	if batch != nil && w.writeBatch(batch) {
		go w.drain()
		return true
	}
	w.writers.Done()
	return true
}

// writeOnce writes the queue. Messages that came meanwhile are for another
// goroutine, since the caller has an answered request to finish.
func (w *writer) writeOnce() {
	if w.write() {
		go w.drain()
		return
	}
	w.writers.Done()
}

// write takes the whole queue, writes it, and reports whether there is more to
// do. Only the writer may call it.
func (w *writer) write() (more bool) {
	if w.inFlight.Load() > 1 {
		runtime.Gosched()
	}
	w.mu.Lock()
	batch := w.takeQueue()
	w.mu.Unlock()
	if batch == nil {
		return false
	}
	return w.writeBatch(batch)
}

// writeBatch writes what takeQueue returned and reports whether there is more to do.
func (w *writer) writeBatch(batch []*buffer) (more bool) {
	w.views = w.views[:0]
	size := 0
	for _, b := range batch {
		w.views = append(w.views, b.b)
		size += len(b.b)
	}
	err := w.pipe.Write(w.views)
	clear(w.views)
	if err != nil {
		w.noteUnsent(batch, err)
	}
	for i, b := range batch {
		if err == nil { // a pipe that failed may go on reading what it was given
			b.free()
		}
		batch[i] = nil
	}
	return w.finishWrite(batch, size, err)
}

// noteUnsent keeps the requests of a batch that its failed write did not send.
func (w *writer) noteUnsent(batch []*buffer, err error) {
	failed, ok := errors.AsType[*WriteError](err)
	if !ok {
		return // any of them can have arrived
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range batch[min(failed.Sent, len(batch)):] {
		w.unsent = append(w.unsent, b.request)
	}
}

// abandon ends the writer, if it has not ended, and returns the requests that were not sent. One
// that is being written may have been.
func (w *writer) abandon(cause error) []jsonrpc.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail(closed(cause))
	unsent := w.unsent
	for _, b := range w.queue {
		unsent = append(unsent, b.request)
	}
	return unsent
}

// takeQueue sets the deadline of a write and returns what is to be written, or
// nil if there is nothing, in which case the caller is no longer the writer.
// The lock is held.
func (w *writer) takeQueue() []*buffer {
	if w.err != nil || len(w.queue) == 0 {
		w.deactivate()
		return nil
	}
	batch := w.queue
	w.queue, w.spare = w.spare, nil
	w.state = writerWriting
	w.setDeadline(w.writeLimit())
	return batch
}

// finishWrite records the end of a write and reports whether another is needed.
func (w *writer) finishWrite(batch []*buffer, size int, err error) (more bool) {
	w.mu.Lock()
	w.state = writerActive
	w.size -= size
	w.spare = batch[:0]
	if err != nil && w.err == nil {
		w.err = closed(fmt.Errorf("writing: %w", err))
		w.mu.Unlock()
		_ = w.pipe.Close() // the error of the write is the one that matters
		w.mu.Lock()
	}
	defer w.mu.Unlock()
	w.signalRoom()
	if w.err != nil || len(w.queue) == 0 {
		w.deactivate()
		return false
	}
	return true
}

// deactivate ends the caller's role as the writer. The lock is held.
func (w *writer) deactivate() {
	w.state = writerIdle
	if w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
}

// fail ends the writer with err, unless it has ended. The lock is held.
func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
	w.signalRoom()
}

// seal refuses further messages but answers: the connection is ending.
func (w *writer) seal(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sealed == nil {
		w.sealed = closed(cause)
	}
	w.signalRoom()
}

// flush waits until all that is queued has been written, or writing has
// failed; the limits of the queue and of each write bound it.
func (w *writer) flush() {
	w.mu.Lock()
	w.drainHeldLocked()
	if w.state == writerIdle {
		w.mu.Unlock()
		return
	}
	if w.idle == nil {
		w.idle = make(chan struct{})
	}
	quiet := w.idle
	w.mu.Unlock()
	<-quiet
}

// close refuses everything, closes the pipe and waits for the current write.
func (w *writer) close(cause error) error {
	w.mu.Lock()
	w.fail(closed(cause))
	w.mu.Unlock()
	err := w.pipe.Close()
	w.writers.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	return err
}

// lastError says why writing ended, or nil.
func (w *writer) lastError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
