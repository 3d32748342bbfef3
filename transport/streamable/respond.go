package streamable

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// keepBuffer is the largest buffer, in bytes, that is kept for reuse.
const keepBuffer = 1 << 20

// roomy is the size of a buffer, in bytes, that may wait with a small message.
const roomy = 1 << 10

// slowest is how many bytes a client takes in a second, at the least.
const slowest = 64 << 10

// A buffer holds one encoded message on its way out.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

func newBuffer() *buffer {
	b := buffers.Get().(*buffer)
	b.b = b.b[:0]
	return b
}

// encode encodes m into a buffer of its own, outside any lock, since bodies
// may run code of users.
func encode(m *jsonrpc.Outgoing) (*buffer, error) {
	b := newBuffer()
	data, err := m.AppendJSON(b.b)
	if err != nil {
		b.free()
		return nil, fmt.Errorf("encoding a message: %w", err)
	}
	b.b = data
	return b, nil
}

func (b *buffer) free() {
	if cap(b.b) <= keepBuffer {
		buffers.Put(b)
	}
}

// Values of headers that never differ. Nobody writes to them.
var (
	typeJSON   = []string{"application/json"}
	typeStream = []string{eventstream.ContentType}
	noCache    = []string{"no-cache, no-transform"}
	noBuffer   = []string{"no"}
)

// A response writes the answer to one HTTP request: one JSON body, or an event
// stream. It has one caller at a time, but for expire. Between begin and end
// its writer may be used, never afterwards: net/http reuses what is behind it.
type response struct {
	h         *Handler
	w         http.ResponseWriter
	streaming bool      // the header of an event stream has been sent
	wrote     time.Time // when something was written last, or begin
	failed    error     // why nothing can be written any more
	length    [1]string // the value of Content-Length

	// These belong to responses.
	next, prev *response
	call       *call // the modern request, if this is its response
}

func (o *response) begin(h *Handler, w http.ResponseWriter) {
	o.h, o.w, o.wrote = h, w, time.Now()
	h.open.add(o)
}

// end gives what net/http has still to write of a stream its time.
func (o *response) end() {
	o.h.open.remove(o)
	if o.streaming && o.failed == nil {
		o.patience(0)
	}
}

// patience gives a client its time to take the next n bytes. It also lifts
// deadlines that the HTTP server may have set for the whole of a response.
func (o *response) patience(n int) {
	limit := time.Now().Add(o.h.opts.WriteStall + time.Duration(n/slowest)*time.Second)
	if o.h.hurry.Load() {
		limit = time.Unix(1, 0)
	}
	_ = http.NewResponseController(o.w).SetWriteDeadline(limit) // not every server can
	if o.h.hurry.Load() {
		o.giveUp()
	}
}

// giveUp makes a blocked write fail, and those to come. net/http then ends the
// request's context too: over HTTP/1 since the connection cannot be read any
// more, over HTTP/2 since the stream cannot be written.
func (o *response) giveUp() {
	past := time.Unix(1, 0)
	control := http.NewResponseController(o.w)
	_ = control.SetReadDeadline(past) // not every server can
	_ = control.SetWriteDeadline(past)
}

// relax lifts the deadline: HTTP/2 would hold it against a silent stream.
func (o *response) relax() {
	o.wrote = time.Now()
	_ = http.NewResponseController(o.w).SetWriteDeadline(time.Time{}) // not every server can
}

// body sends the one JSON body. e is the error it carries, or nil. Unless it is
// to leave now, it leaves when the HTTP request has been served.
func (o *response) body(status int, data []byte, e *jsonrpc.Error, now bool) error {
	header := o.w.Header()
	header["Content-Type"] = typeJSON
	if now || len(data) > unmeasured {
		o.length[0] = strconv.Itoa(len(data))
		header["Content-Length"] = o.length[:]
	}
	if status >= http.StatusTooManyRequests && e != nil {
		if seconds, ok := web.RetryAfter(e); ok {
			header.Set("Retry-After", strconv.Itoa(seconds))
		}
	}
	o.patience(len(data)) // net/http lifts it when all has left
	o.w.WriteHeader(status)
	if now {
		return o.flush(data)
	}
	_, err := o.w.Write(data)
	return o.check(err)
}

// unmeasured is up to how many bytes of a body are counted by net/http itself.
const unmeasured = 1 << 10

// stream sends the header of an event stream, with the bytes that begin it.
func (o *response) stream(data []byte) error {
	header := o.w.Header()
	header["Content-Type"] = typeStream
	header["Cache-Control"] = noCache
	header["X-Accel-Buffering"] = noBuffer // spec 2026-07-28: servers SHOULD include it
	o.streaming = true
	o.patience(len(data))
	o.w.WriteHeader(http.StatusOK)
	return o.flush(data)
}

// fit returns a buffer with the same message that is not much larger than it:
// what waits for long must not hold memory that no limit counts.
func (b *buffer) fit() *buffer {
	if cap(b.b) <= roomy || cap(b.b) <= 2*len(b.b) {
		return b
	}
	defer b.free()
	return &buffer{bytes.Clone(b.b)}
}

// write sends bytes of an event stream, and its header before the first.
func (o *response) write(data []byte) error {
	if o.failed != nil {
		return o.failed
	}
	if !o.streaming {
		return o.stream(data)
	}
	o.patience(len(data))
	return o.flush(data)
}

// flush sends data and waits until it has left.
func (o *response) flush(data []byte) error {
	var err error
	if len(data) > 0 {
		_, err = o.w.Write(data)
	}
	if err == nil {
		err = http.NewResponseController(o.w).Flush()
	}
	if err == nil || errors.Is(err, errors.ErrUnsupported) {
		o.relax()
		return nil
	}
	return o.check(err)
}

// check keeps the reason why nothing can be written any more.
func (o *response) check(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		o.failed = fmt.Errorf("writing a response: %w", transport.ErrStalled)
	default:
		o.failed = fmt.Errorf("writing a response: %w: %w", transport.ErrClosed, err)
	}
	return o.failed
}

// comment sends a sign of life.
func (o *response) comment() error { return o.write(eventstream.AppendComment(nil)) }
