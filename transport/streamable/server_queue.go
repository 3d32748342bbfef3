package streamable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/parley-mcp/parley/jsonrpc"
)

// keepBuffer is the largest buffer, in bytes, that is kept for reuse: that of a
// large resource too, since garbage of such a size makes the heap grow by it.
// The collector takes what is not used.
const keepBuffer = 32 << 20

// roomy is the size of a buffer, in bytes, that may wait with a small message.
const roomy = 1 << 10

// prefix is the size of what stands before each message in a queue: its length.
const prefix = 4

// A buffer holds messages on their way out, or bytes of a body.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

func newBuffer() *buffer {
	b := buffers.Get().(*buffer)
	b.b = b.b[:0]
	return b
}

func (b *buffer) free() {
	if b != nil && cap(b.b) <= keepBuffer {
		buffers.Put(b)
	}
}

// encode encodes m into a buffer of its own, after room for its length. That is
// done outside any lock, since bodies may run code of users.
func encode(m *jsonrpc.Outgoing) (*buffer, error) {
	b := newBuffer()
	data, err := m.AppendJSON(append(b.b, 0, 0, 0, 0))
	if err != nil {
		b.free()
		return nil, fmt.Errorf("encoding a message: %w", err)
	}
	b.b = data
	binary.LittleEndian.PutUint32(data, uint32(len(data)-prefix))
	return b, nil
}

// A queue holds encoded messages, one behind the other in one buffer. It belongs
// to the mutex of its stream.
type queue struct {
	buf  *buffer       // nil: none
	from int           // where the first message begins
	n    int32         // messages
	room chan struct{} // closed when it is worth to look for room again, if somebody waits
}

// size is how many bytes of messages wait.
func (q *queue) size() int {
	if q.n == 0 {
		return 0
	}
	return len(q.buf.b) - q.from - int(q.n)*prefix
}

// full reports whether there is no room for b. One large message may pass when
// it is the only one.
func (q *queue) full(b *buffer, most int) bool {
	return q.n > 0 && q.size()+len(b.b)-prefix > most
}

// push adds an encoded message, whose buffer is the queue's from here on.
func (q *queue) push(b *buffer) {
	q.n++
	if q.buf == nil {
		q.buf, q.from = b, 0
		return
	}
	if q.from > len(q.buf.b)/2 { // what was taken makes room
		q.buf.b = q.buf.b[:copy(q.buf.b, q.buf.b[q.from:])]
		q.from = 0
	}
	q.buf.b = append(q.buf.b, b.b...)
	b.free()
}

// first is the oldest message, as long as it is in the queue.
func (q *queue) first() []byte {
	at := q.from + prefix
	return q.buf.b[at : at+int(binary.LittleEndian.Uint32(q.buf.b[q.from:]))]
}

// pop takes the oldest message out.
func (q *queue) pop() {
	q.from += prefix + len(q.first())
	if q.n--; q.n == 0 {
		q.drop()
	}
}

// take takes the buffer with all messages out. They begin at from.
func (q *queue) take() (b *buffer, from int) {
	b, from = q.buf, q.from
	q.buf, q.from, q.n = nil, 0, 0
	return b, from
}

// fit gives up a buffer that is much larger than what is in it: what waits for
// long must not hold memory that no limit counts.
func (q *queue) fit() {
	if q.buf == nil || cap(q.buf.b) <= roomy || cap(q.buf.b) <= 2*(len(q.buf.b)-q.from) {
		return
	}
	fitting := &buffer{bytes.Clone(q.buf.b[q.from:])}
	q.buf.free()
	q.buf, q.from = fitting, 0
}

// drop forgets what waits.
func (q *queue) drop() {
	b, _ := q.take()
	b.free()
}

// wait returns what is closed when it is worth to look for room again.
func (q *queue) wait() <-chan struct{} {
	if q.room == nil {
		q.room = make(chan struct{})
	}
	return q.room
}

// wakeSenders has those who wait for room look again.
func (q *queue) wakeSenders() {
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
}
