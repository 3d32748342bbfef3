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
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// keepBuffer is the largest buffer, in bytes, that is kept for reuse: that of a
// large resource too, since garbage of such a size makes the heap grow by it.
// The collector takes what is not used.
const keepBuffer = 32 << 20

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

// fit returns a buffer with the same message that is not much larger than it:
// what waits for long must not hold memory that no limit counts.
func (b *buffer) fit() *buffer {
	if cap(b.b) <= roomy || cap(b.b) <= 2*len(b.b) {
		return b
	}
	defer b.free()
	return &buffer{bytes.Clone(b.b)}
}

// Values of headers that never differ. Nobody writes to them.
var (
	typeJSON   = []string{"application/json"}
	typeStream = []string{eventstream.ContentType}
	noCache    = []string{"no-cache, no-transform"}
	noBuffer   = []string{"no"}
)

// A response writes the answer to one HTTP request: one JSON body, or an event
// stream. It has one caller at a time. Its writer must not be used once
// ServeHTTP has returned: net/http reuses what is behind it.
type response struct {
	*open
	h         *Handler
	streaming bool      // the header of an event stream has been sent
	wrote     time.Time // when something was written last, or begin
	failed    error     // why nothing can be written any more
	length    [1]string // the value of Content-Length
}

// begin takes the writer that ServeHTTP made.
func (o *response) begin(h *Handler, w http.ResponseWriter) {
	o.open, o.h, o.wrote = w.(*open), h, time.Now()
}

// end gives what net/http has still to write its time.
func (o *response) end() {
	if o.streaming && o.failed == nil {
		_ = http.NewResponseController(o.ResponseWriter).SetWriteDeadline(time.Now().Add(o.h.opts.WriteStall)) // not every server can
	}
}

// body sends the one JSON body. e is the error it carries, or nil, and who is
// the one who is told.
func (o *response) body(status int, data []byte, e *jsonrpc.Error, who *principal.Principal) error {
	header := o.Header()
	header["Content-Type"] = typeJSON
	o.length[0] = strconv.Itoa(len(data))
	header["Content-Length"] = o.length[:]
	if status >= http.StatusTooManyRequests && e != nil {
		if seconds, ok := web.RetryAfter(e); ok {
			header.Set("Retry-After", strconv.Itoa(seconds))
		}
	}
	if status == http.StatusForbidden && e != nil {
		web.Challenge(header, who, scopesOf(e))
	}
	o.WriteHeader(status)
	return o.flush(data)
}

// pieces sends one JSON body of size bytes as it is encoded.
func (o *response) pieces(size int64, m *jsonrpc.Outgoing) error {
	header := o.Header()
	header["Content-Type"] = typeJSON
	o.length[0] = strconv.FormatInt(size, 10)
	header["Content-Length"] = o.length[:]
	o.WriteHeader(http.StatusOK)
	t := &timed{response: o}
	err := m.WriteJSON(t)
	if err == nil && t.sent != size {
		err = fmt.Errorf("the result is %d bytes long, not %d as it said", t.sent, size)
	}
	if err != nil {
		if o.failed == nil { // it is not for want of a client
			o.failed = fmt.Errorf("writing a result: %w", err)
			o.h.log.Warn("a result broke off in the middle", "error", err)
		}
		return o.failed
	}
	return o.flush(nil)
}

// A timed is a response that is written in pieces. A client has as much time for
// all of them as it would have for the whole; the time that it takes to make
// them is not its own.
type timed struct {
	*response
	sent  int64
	spent time.Duration // by the client
}

func (t *timed) Write(data []byte) (int, error) {
	begun := time.Now()
	t.allow(begun.Add(-t.spent), t.sent+int64(len(data)))
	n, err := t.open.Write(data)
	t.writeDue.Store(0)
	t.spent += time.Since(begun)
	t.sent += int64(n)
	if err != nil {
		return n, t.outcome(begun, err)
	}
	return n, nil
}

// stream sends the header of an event stream, with the bytes that begin it.
func (o *response) stream(data []byte) error {
	o.streamHeader()
	o.streaming = true
	o.WriteHeader(http.StatusOK)
	return o.flush(data)
}

// events sends an event stream of which everything is there: with its length,
// it needs no second write for its end.
func (o *response) events(data []byte) error {
	o.length[0] = strconv.Itoa(len(data))
	o.streamHeader()["Content-Length"] = o.length[:]
	o.WriteHeader(http.StatusOK)
	return o.flush(data)
}

func (o *response) streamHeader() http.Header {
	header := o.Header()
	header["Content-Type"] = typeStream
	header["Cache-Control"] = noCache
	header["X-Accel-Buffering"] = noBuffer // spec 2026-07-28: servers SHOULD include it
	return header
}

// write sends bytes of an event stream, and its header before the first.
func (o *response) write(data []byte) error {
	if o.failed != nil {
		return o.failed
	}
	if !o.streaming {
		return o.stream(data)
	}
	return o.flush(data)
}

// flush sends data and waits until it has left, for as long as a client may
// take for it.
func (o *response) flush(data []byte) error {
	now := time.Now()
	o.allow(now, int64(len(data)))
	defer o.writeDue.Store(0)
	var err error
	if len(data) > 0 {
		_, err = o.Write(data)
	}
	if err == nil {
		err = http.NewResponseController(o.ResponseWriter).Flush()
	}
	return o.outcome(now, err)
}

// allow gives n bytes their time.
func (o *response) allow(begun time.Time, n int64) {
	o.writeDue.Store(begun.Add(o.h.opts.WriteStall + time.Duration(n/slowest)*time.Second).UnixNano())
}

// outcome notes how writing has ended.
func (o *response) outcome(now time.Time, err error) error {
	switch {
	case err == nil:
		o.wrote, o.flushed = now, true
		return nil
	case errors.Is(err, errors.ErrUnsupported): // what was written leaves at the end
		if o.streaming {
			o.h.warn(o.ResponseWriter)
		}
		o.wrote, o.flushed = now, true
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		o.failed = fmt.Errorf("writing a response: %w", transport.ErrStalled)
	default:
		o.failed = fmt.Errorf("writing a response: %w: %w", transport.ErrClosed, err)
	}
	return o.failed
}

// done gives a buffer back that was written. net/http may go on reading what it
// could not write: over HTTP/2 it does not wait for its own writer then.
func (o *response) done(b *buffer) {
	if o.failed == nil {
		b.free()
	}
}

// comment sends a sign of life.
func (o *response) comment() error { return o.write(eventstream.AppendComment(nil)) }
