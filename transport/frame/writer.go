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

// How an answer gets written when nobody is writing.
type written int

const (
	byOther  written = iota // by a goroutine that is started for it
	byCaller                // by the goroutine that answers
	byReader                // by the one that reads, when there is no more to read, or its watch
)

// gather is how much may wait for the reader to have it written.
const gather = 64 << 10

// A writer is the sending half of a connection. It has no goroutine while
// there is nothing to write.
type writer struct {
	pipe  Pipe
	gauge Gauge // the pipe, if it is one
	max   int
	// busyPeers says how many requests are under way: if there are several, a
	// round waits for one turn of the scheduler so that their messages leave
	// in one write.
	busyPeers *atomic.Int64
	began     time.Time

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
	fires   time.Duration  // when it does, since began; 0: it is not set
	until   time.Duration  // when the write under way is late
	under   bool           // a write is under way
	hurried bool           // there is no time for a slow peer any more
	rounds  sync.WaitGroup // writers at work

	views [][]byte // belongs to whoever is the writer
}

func newWriter(p Pipe, o *Options, busy *atomic.Int64) *writer {
	gauge, _ := p.(Gauge)
	return &writer{pipe: p, gauge: gauge, max: o.MaxQueued, stall: o.WriteStall, busyPeers: busy, began: time.Now()}
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
	begin, err := w.push(ctx, b, x, byOther, false)
	if err != nil {
		b.free()
		return err
	}
	if begin && !w.spurt() {
		go w.drain()
	}
	return nil
}

// answer queues the answer that ends exchange x, if there is one. It waits for
// room for as long as the connection lives, because an answer must not be
// lost.
func (w *writer) answer(m *jsonrpc.Outgoing, x *atomic.Bool, by written) error {
	b, err := encode(m)
	if err != nil {
		return err // x may still be answered, with an error
	}
	return w.answerBuffer(b, x, by)
}

func (w *writer) answerBuffer(b *buffer, x *atomic.Bool, by written) error {
	if x != nil && !claim(x) {
		b.free()
		return jsonrpc.ErrEnded
	}
	begin, err := w.push(context.Background(), b, x, by, true)
	switch {
	case err != nil:
		b.free()
		return err
	case begin && by == byOther:
		go w.drain()
	case begin:
		w.round()
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

// push waits for room and queues b. It reports whether the caller has to see
// to the writing, by drain or round. An answer to x passes where other messages
// of x do not.
func (w *writer) push(ctx context.Context, b *buffer, x *atomic.Bool, by written, answer bool) (begin bool, err error) {
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
		w.release() // which makes room
		if err := w.wait(ctx); err != nil {
			return false, err
		}
	}
	w.queue = append(w.queue, b)
	w.size += len(b.b)
	if by == byReader && w.size <= gather {
		return false, nil
	}
	return w.begin(), nil
}

// begin makes the caller the writer, if there is none, who has to see to the
// writing by drain or round. The lock is held.
func (w *writer) begin() bool {
	if w.busy {
		return false
	}
	w.busy = true
	w.rounds.Add(1) // under the lock: close refuses before it waits
	return true
}

// holds reports whether something waits for somebody to have it written.
func (w *writer) holds() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held()
}

func (w *writer) held() bool { return len(w.queue) > 0 && !w.busy && w.err == nil }

// kick writes what is held.
func (w *writer) kick() {
	w.mu.Lock()
	begin := w.held() && w.begin()
	w.mu.Unlock()
	if begin {
		w.round()
	}
}

// nudge has what is held written by another goroutine.
func (w *writer) nudge() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release()
}

// release is nudge with the lock held.
func (w *writer) release() {
	if w.held() && w.begin() {
		go w.drain()
	}
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

// spurt writes what is there now, if that does not mean waiting for the peer.
// False says that nothing was done.
func (w *writer) spurt() bool {
	if w.gauge == nil {
		return false
	}
	w.mu.Lock()
	if w.gauge.Room() < len(w.queue) {
		w.mu.Unlock()
		return false
	}
	batch := w.take()
	w.mu.Unlock()
	if batch != nil && w.put(batch) {
		go w.drain()
		return true
	}
	w.rounds.Done()
	return true
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
	w.mu.Lock()
	batch := w.take()
	w.mu.Unlock()
	if batch == nil {
		return false
	}
	return w.put(batch)
}

// put writes what take returned and reports whether there is more to do.
func (w *writer) put(batch []*buffer) (more bool) {
	w.views = w.views[:0]
	size := 0
	for _, b := range batch {
		w.views = append(w.views, b.b)
		size += len(b.b)
	}
	err := w.pipe.Write(w.views)
	clear(w.views)
	for i, b := range batch {
		if err == nil { // a pipe that failed may go on reading what it was given
			b.free()
		}
		batch[i] = nil
	}
	return w.wrote(batch, size, err)
}

// take starts the clock of a write and returns what is to be written, or nil
// if there is nothing, in which case the caller is no longer the writer. The
// lock is held.
func (w *writer) take() []*buffer {
	if w.err != nil || len(w.queue) == 0 {
		w.rest()
		return nil
	}
	batch := w.queue
	w.queue, w.spare = w.spare, nil
	w.under = true
	w.allow(w.patience())
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

// allow gives the write under way until limit from now. The timer is not set
// for each write, nor stopped after it: it finds out when it fires whether there
// is one that takes too long. The lock is held.
func (w *writer) allow(limit time.Duration) {
	now := time.Since(w.began)
	w.until = now + limit
	switch {
	case w.timer == nil:
		w.timer = time.AfterFunc(limit, w.late)
	case w.fires == 0 || w.fires > w.until:
		w.timer.Reset(limit)
	default:
		return
	}
	w.fires = w.until
}

// wrote settles a write and reports whether another is needed.
func (w *writer) wrote(batch []*buffer, size int, err error) (more bool) {
	w.mu.Lock()
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

// late gives up on a peer that has not taken a write in time.
func (w *writer) late() {
	w.mu.Lock()
	w.fires = 0
	left := w.until - time.Since(w.began)
	if !w.under || left > 0 {
		if w.under {
			w.fires = w.until
			w.timer.Reset(left)
		}
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
		w.allow(w.stall)
	}
}

// flush waits until all that is queued has been written, or writing has
// failed; the limits of the queue and of each write bound it.
func (w *writer) flush() {
	w.mu.Lock()
	w.release()
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
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	return err
}

// failure says why writing ended, or nil.
func (w *writer) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
