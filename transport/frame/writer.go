package frame

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
)

// keepBuffer is the largest buffer that is kept for another message.
const keepBuffer = 1 << 20

// roomy is the largest buffer, in bytes, that may wait with a small message.
const roomy = 16 << 10

// slowest is how many bytes in a second a peer takes that is slow but reads.
const slowest = 64 << 10

// A buffer holds one encoded message on its way out.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// encode encodes m into a buffer of its own, outside any lock, since bodies
// may run code of users.
func encode(m *jsonrpc.Outgoing) (*buffer, error) {
	b := buffers.Get().(*buffer)
	data, err := m.AppendJSON(b.b[:0])
	if err != nil {
		buffers.Put(b)
		return nil, fmt.Errorf("encoding a message: %w", err)
	}
	b.b = data
	if cap(data) > roomy && cap(data) > 4*len(data) {
		// What waits for a slow peer must not hold memory that MaxQueued does
		// not count.
		defer b.free()
		return &buffer{bytes.Clone(data)}, nil
	}
	return b, nil
}

func (b *buffer) free() {
	if cap(b.b) <= keepBuffer {
		buffers.Put(b)
	}
}

// A closing says whether an exchange has been answered. It is read and
// written under the writer's lock, so that nothing of an exchange can be
// queued behind its answer.
type closing struct{ answered bool }

// A writer is the sending half of a connection. It has no goroutine while
// there is nothing to write.
type writer struct {
	pipe Pipe
	max  int
	// busyPeers says how many requests are under way: if there are several, a
	// round waits for one turn of the scheduler so that their messages leave
	// in one write.
	busyPeers *atomic.Int64

	mu      sync.Mutex
	queue   []*buffer
	spare   []*buffer // the other half of the double queue
	size    int       // bytes queued or being written
	busy    bool      // somebody is the writer
	room    chan struct{}
	quiet   chan struct{}
	sealed  error // ends sending, not answering
	err     error // ends both
	stall   time.Duration
	timer   *time.Timer
	under   bool           // a write is under way
	hurried bool           // there is no time for a slow peer any more
	rounds  sync.WaitGroup // writers at work

	views [][]byte // belongs to whoever is the writer
}

func newWriter(p Pipe, o *Options, busy *atomic.Int64) *writer {
	return &writer{pipe: p, max: o.MaxQueued, stall: o.WriteStall, busyPeers: busy}
}

// send queues a message that is no answer, for the exchange x if there is one.
// It waits for room until ctx ends, and never for the peer.
func (w *writer) send(ctx context.Context, m *jsonrpc.Outgoing, x *closing) error {
	if err := w.refusesSend(x); err != nil {
		return err
	}
	b, err := encode(m)
	if err != nil {
		return err
	}
	begin, err := w.push(ctx, b, x, false)
	if err != nil {
		b.free()
		return err
	}
	if begin {
		go w.drain()
	}
	return nil
}

// answer queues the answer that ends exchange x, if there is one. It waits for
// room for as long as the connection lives, because an answer must not be
// lost. With inline the caller's goroutine may do the writing.
func (w *writer) answer(m *jsonrpc.Outgoing, x *closing, inline bool) error {
	b, err := encode(m)
	if err != nil {
		return err // x may still be answered, with an error
	}
	return w.answerBuffer(b, x, inline)
}

func (w *writer) answerBuffer(b *buffer, x *closing, inline bool) error {
	if !w.claim(x) {
		b.free()
		return jsonrpc.ErrEnded
	}
	begin, err := w.push(context.Background(), b, x, true)
	switch {
	case err != nil:
		b.free()
		return err
	case begin && inline:
		w.round()
	case begin:
		go w.drain()
	}
	return nil
}

// claim marks x as answered and reports whether it was not before.
func (w *writer) claim(x *closing) bool {
	if x == nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	was := x.answered
	x.answered = true
	return !was
}

// refusesSend spares the encoding of what could not be sent anyway.
func (w *writer) refusesSend(x *closing) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sendError(x)
}

// sendError says why nothing can be sent for x. The lock is held.
func (w *writer) sendError(x *closing) error {
	switch {
	case x != nil && x.answered:
		return jsonrpc.ErrEnded
	case w.err != nil:
		return w.err
	}
	return w.sealed
}

// push waits for room and queues b. It reports whether the caller has to see
// to the writing, by drain or round. An answer to x passes where other messages
// of x do not.
func (w *writer) push(ctx context.Context, b *buffer, x *closing, answer bool) (begin bool, err error) {
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
		if err := w.wait(ctx); err != nil {
			return false, err
		}
	}
	w.queue = append(w.queue, b)
	w.size += len(b.b)
	if begin = !w.busy; begin {
		w.busy = true
		w.rounds.Add(1) // under the lock: close refuses before it waits
	}
	return begin, nil
}

// wait gives the lock up until there may be room.
func (w *writer) wait(ctx context.Context) error {
	if w.room == nil {
		w.room = make(chan struct{})
	}
	room := w.room
	w.mu.Unlock()
	defer w.mu.Lock()
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for room to send: %w", context.Cause(ctx))
	}
}

// wake lets all who wait look again. The lock is held.
func (w *writer) wake() {
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
}

// drain writes until nothing is left. Its end is counted in rounds, as its
// beginning was by push.
func (w *writer) drain() {
	defer w.rounds.Done()
	for w.write() {
	}
}

// round writes what is there now. What came meanwhile is for another
// goroutine, since the caller has an answered request to finish.
func (w *writer) round() {
	if w.write() {
		go w.drain()
		return
	}
	w.rounds.Done()
}

// write takes the whole queue, writes it, and reports whether there is more to
// do. Only the one who set busy, or was told so, may call it.
func (w *writer) write() (more bool) {
	if w.busyPeers.Load() > 1 {
		runtime.Gosched()
	}
	batch := w.take()
	if batch == nil {
		return false
	}
	w.views = w.views[:0]
	size := 0
	for _, b := range batch {
		w.views = append(w.views, b.b)
		size += len(b.b)
	}
	err := w.pipe.Write(w.views)
	clear(w.views)
	for i, b := range batch {
		b.free()
		batch[i] = nil
	}
	return w.wrote(batch, size, err)
}

// take starts the clock of a write and returns what is to be written, or nil
// if there is nothing, in which case the caller is no longer the writer.
func (w *writer) take() []*buffer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || len(w.queue) == 0 {
		w.rest()
		return nil
	}
	batch := w.queue
	w.queue, w.spare = w.spare, nil
	w.under = true
	if limit := w.patience(); w.timer == nil {
		w.timer = time.AfterFunc(limit, w.stalled)
	} else {
		w.timer.Reset(limit)
	}
	return batch
}

// patience is how long the next write may take: the limit, and what a slow
// line needs for as many bytes. The lock is held.
func (w *writer) patience() time.Duration {
	if w.hurried {
		return w.stall
	}
	return w.stall + time.Duration(w.size/slowest)*time.Second
}

// wrote settles a write and reports whether another is needed.
func (w *writer) wrote(batch []*buffer, size int, err error) (more bool) {
	w.mu.Lock()
	w.timer.Stop()
	w.under = false
	w.size -= size
	w.spare = batch[:0]
	if err != nil && w.err == nil {
		w.err = closed(fmt.Errorf("writing: %w", err))
		w.mu.Unlock()
		_ = w.pipe.Close() // the error of the write is the one that matters
		w.mu.Lock()
	}
	defer w.mu.Unlock()
	w.wake()
	if w.err != nil || len(w.queue) == 0 {
		w.rest()
		return false
	}
	return true
}

// rest ends being the writer. The lock is held.
func (w *writer) rest() {
	w.busy = false
	if w.quiet != nil {
		close(w.quiet)
		w.quiet = nil
	}
}

// stalled gives up on a peer that does not read.
func (w *writer) stalled() {
	w.mu.Lock()
	if !w.under {
		w.mu.Unlock()
		return
	}
	w.fail(transport.ErrStalled)
	w.mu.Unlock()
	_ = w.pipe.Close() // makes the write return
}

// fail ends the writer with err, unless it has ended. The lock is held.
func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
	w.wake()
}

// seal refuses further messages but answers: the connection is ending.
func (w *writer) seal(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sealed == nil {
		w.sealed = closed(cause)
	}
	w.wake()
}

// hurry shortens what a write may take from now on, also the one under way.
func (w *writer) hurry(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hurried {
		return
	}
	w.hurried = true
	w.stall = min(w.stall, limit)
	if w.under {
		w.timer.Reset(w.stall)
	}
}

// flush waits until all that is queued has been written, or writing has
// failed; the limits of the queue and of each write bound it.
func (w *writer) flush() {
	w.mu.Lock()
	if !w.busy {
		w.mu.Unlock()
		return
	}
	if w.quiet == nil {
		w.quiet = make(chan struct{})
	}
	quiet := w.quiet
	w.mu.Unlock()
	<-quiet
}

// close refuses everything, closes the pipe and waits for writes under way.
func (w *writer) close(cause error) error {
	w.mu.Lock()
	w.fail(closed(cause))
	w.mu.Unlock()
	err := w.pipe.Close()
	w.rounds.Wait()
	return err
}

// failure says why writing ended, or nil.
func (w *writer) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
