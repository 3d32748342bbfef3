package frame

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/parley-mcp/parley/jsonrpc"
)

// keepBuffer is the largest buffer that is kept for another message.
const keepBuffer = 1 << 20

// maxIdleCapacity is the largest buffer, in bytes, that may wait with a small
// message.
const maxIdleCapacity = 16 << 10

// A buffer holds one encoded message on its way out.
type buffer struct {
	b       []byte
	request jsonrpc.ID // zero if the message is not a request
}

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
	b.b, b.request = data, jsonrpc.ID{}
	if m.Method != "" {
		b.request = m.ID
	}
	if cap(data) > maxIdleCapacity && cap(data) > 4*len(data) {
		// What waits for a slow peer must not hold memory that MaxQueued does
		// not count.
		defer b.free()
		return &buffer{bytes.Clone(data), b.request}, nil
	}
	return b, nil
}

func (b *buffer) free() {
	if cap(b.b) <= keepBuffer {
		buffers.Put(b)
	}
}
