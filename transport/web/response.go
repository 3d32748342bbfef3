package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/transport"
)

// A Response is the response to one HTTP request: one JSON body, or an event
// stream. It is written on one goroutine at a time, and each write waits until
// the client has taken the data, for at most [Responses].WriteStall and a second
// more for each 64 KiB. Abort, and Responses, may act at any time. It must not be
// used once ServeHTTP has returned: net/http reuses what is behind it.
//
//	unsent --JSON, EncodeJSON, Events--> complete
//	unsent --WriteEvents--> streaming --WriteEvents--> streaming
//	unsent --EncodeJSON fails--> torn
//	any    --another write fails--> failed
type Response struct {
	w     http.ResponseWriter
	all   *Responses
	owner ResponseOwner // nil before Begin

	// When what is read or written now must be done, in Unix nanoseconds; 0 if
	// nothing is.
	readDue, writeDue atomic.Int64
	wrote             atomic.Int64 // when something was written last, or Begin, in Unix nanoseconds

	err      error // why nothing can be written any more
	state    responseState
	bodyRead bool // the request's body was read to its end

	next, prev *Response // in the list of all
}

type responseState uint8

const (
	responseUnsent responseState = iota
	responseComplete
	responseStreaming
	responseFailed
	responseTorn
)

// slowest is how many bytes a client takes in a second, at the least.
const slowest = 64 << 10

// Values of headers that never differ. Nobody writes to them.
var (
	typeJSON   = []string{"application/json"}
	typeStream = []string{eventstream.ContentType}
	noCache    = []string{"no-cache, no-transform"}
	noBuffer   = []string{"no"}
)

// Header is the header that will be sent.
func (r *Response) Header() http.Header { return r.w.Header() }

// Writer is the writer behind the response, for what is refused.
func (r *Response) Writer() http.ResponseWriter { return r.w }

// Unsent reports whether nothing was written yet.
func (r *Response) Unsent() bool { return r.state == responseUnsent }

// Streaming reports whether an event stream has begun, which has not failed.
func (r *Response) Streaming() bool { return r.state == responseStreaming }

// Torn reports whether a part of a body was written, and the rest cannot be.
// ServeHTTP has to panic with http.ErrAbortHandler then.
func (r *Response) Torn() bool { return r.state == responseTorn }

// Err is why nothing can be written any more: transport.ErrStalled or
// transport.ErrClosed.
func (r *Response) Err() error { return r.err }

// JSON sends data as the body, which is complete with it.
func (r *Response) JSON(status int, data []byte) error {
	r.begin(status, typeJSON, int64(len(data)))
	r.state = responseComplete
	return r.write(data)
}

// EncodeJSON sends a body of size bytes with status 200 as encode writes it. If
// encode fails, or writes another number of bytes, the response is torn.
func (r *Response) EncodeJSON(size int64, encode func(io.Writer) error) error {
	r.begin(http.StatusOK, typeJSON, size)
	r.state = responseTorn // until it is whole
	t := &timedWriter{r: r}
	err := encode(t)
	if err == nil && t.sent != size {
		err = fmt.Errorf("the body is %d bytes long, not %d as it said", t.sent, size)
	}
	if err != nil {
		if r.err == nil { // it is not for want of a client
			r.err = fmt.Errorf("writing a result: %w", err)
			r.all.Logger.Warn("a result broke off in the middle", "error", err)
		}
		r.state = responseTorn
		return r.err
	}
	r.state = responseComplete
	return r.write(nil)
}

// A timedWriter writes a body in pieces. A client has as much time for all of
// them as it would have for the whole; the time that it takes to make them is
// not its own.
type timedWriter struct {
	r     *Response
	sent  int64
	spent time.Duration // by the client
}

// Write writes a piece.
func (t *timedWriter) Write(data []byte) (int, error) {
	began := time.Now()
	t.r.extendDeadline(began.Add(-t.spent), t.sent+int64(len(data)))
	n, err := t.r.w.Write(data)
	t.r.writeDue.Store(0)
	t.spent += time.Since(began)
	t.sent += int64(n)
	if err != nil {
		return n, t.r.recordWrite(began, err)
	}
	return n, nil
}

// Events sends a whole event stream: with its length, it needs no second write
// for its end.
func (r *Response) Events(data []byte) error {
	r.begin(http.StatusOK, typeStream, int64(len(data)))
	r.state = responseComplete
	return r.write(data)
}

// WriteEvents sends bytes of an event stream, and its header before the first.
// data may be empty.
func (r *Response) WriteEvents(data []byte) error {
	switch r.state {
	case responseStreaming:
	case responseUnsent:
		r.begin(http.StatusOK, typeStream, -1)
		r.state = responseStreaming
	default:
		return r.err
	}
	return r.write(data)
}

// begin sends the header, with the length of the body if it is known.
func (r *Response) begin(status int, kind []string, length int64) {
	header := r.w.Header()
	header["Content-Type"] = kind
	if length >= 0 {
		header["Content-Length"] = []string{strconv.FormatInt(length, 10)}
	}
	if &kind[0] == &typeStream[0] {
		if header["Cache-Control"] == nil {
			header["Cache-Control"] = noCache
		}
		header["X-Accel-Buffering"] = noBuffer // spec 2026-07-28: servers SHOULD include it
	}
	r.w.WriteHeader(status)
}

// write sends data and waits until it has left.
func (r *Response) write(data []byte) error {
	now := time.Now()
	r.extendDeadline(now, int64(len(data)))
	var err error
	if len(data) > 0 {
		_, err = r.w.Write(data)
	}
	if err == nil {
		err = r.flush()
	}
	r.writeDue.Store(0)
	return r.recordWrite(now, err)
}

func (r *Response) flush() error {
	if f, ok := r.w.(interface{ FlushError() error }); ok { // that of net/http, without a search
		return f.FlushError()
	}
	return http.NewResponseController(r.w).Flush()
}

// extendDeadline gives n bytes their time.
func (r *Response) extendDeadline(began time.Time, n int64) {
	r.writeDue.Store(began.Add(r.all.WriteStall + time.Duration(n/slowest)*time.Second).UnixNano())
}

// recordWrite notes how a write has ended.
func (r *Response) recordWrite(now time.Time, err error) error {
	switch {
	case err == nil:
	case errors.Is(err, errors.ErrUnsupported): // what was written leaves at the end
		if r.state == responseStreaming {
			r.warn()
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		r.state, r.err = responseFailed, fmt.Errorf("writing a response: %w", transport.ErrStalled)
		return r.err
	default:
		r.state, r.err = responseFailed, fmt.Errorf("writing a response: %w: %w", transport.ErrClosed, err)
		return r.err
	}
	r.wrote.Store(now.UnixNano())
	return nil
}

// ReadBody calls read, which reads the request's body and has ReadTimeout for
// it. Without an error the body has been read to its end.
func (r *Response) ReadBody(read func() ([]byte, error)) ([]byte, error) {
	r.readDue.Store(time.Now().Add(r.all.ReadTimeout).UnixNano())
	data, err := read()
	if r.readDue.Swap(0) == readExpired && err == nil {
		// The body arrived at the last moment, but the deadline has ended the context of
		// the connection.
		data, err = nil, os.ErrDeadlineExceeded
	}
	r.bodyRead = err == nil
	return data, err
}

// HasDeadlines reports whether the writer takes deadlines, of which net/http
// ends the context of a request that does not keep to them. If it does not, the
// log has a warning, once for all responses.
func (r *Response) HasDeadlines() bool {
	_, wrapped := r.w.(interface{ Unwrap() http.ResponseWriter })
	kind := reflect.TypeOf(r.w)
	if !wrapped && r.all.known.Load() == kind {
		return true
	}
	if http.NewResponseController(r.w).SetWriteDeadline(time.Time{}) != nil {
		r.warn()
		return false
	}
	if !wrapped {
		r.all.known.CompareAndSwap(nil, kind)
	}
	return true
}

// readExpired is Response.readDue once the deadline for reading has passed.
const readExpired = -1

// past is a deadline that makes a blocked read or write fail, and those to come.
var past = time.Unix(1, 0)

// Abort makes reads and writes fail. net/http then ends the request's context
// too: over HTTP/1 since the connection cannot be read any more, unless the
// beginning of the next request is there already, over HTTP/2 since the stream
// cannot be written.
func (r *Response) Abort() {
	control := http.NewResponseController(r.w)
	_ = control.SetReadDeadline(past) // not every server can
	_ = control.SetWriteDeadline(past)
}

// HangUp ends a response while its ServeHTTP goes on, and its connection too. An
// event stream ends in good order, over HTTP/1.1 with its last chunk.
func (r *Response) HangUp(req *http.Request) {
	conn, _, err := http.NewResponseController(r.w).Hijack()
	if err != nil {
		r.Abort() // over HTTP/2 that ends the stream
		return
	}
	if r.state == responseStreaming && req.ProtoAtLeast(1, 1) {
		_ = conn.SetWriteDeadline(time.Now().Add(r.all.WriteStall))
		_, _ = io.WriteString(conn, "0\r\n\r\n") // a client that has gone needs no end
	}
	_ = conn.Close() // nobody reads or writes it any more
}

// warn tells the log, once, what a writer cannot do that middleware in front of
// the endpoint has put around that of net/http. Requests are served all the same.
func (r *Response) warn() {
	r.all.warned.Do(func() {
		kind, flushes := InnerWriter(r.w)
		effect := "clients that do not read their answers are not timed out"
		if !flushes {
			effect = "nothing is streamed: events reach a client only when its request ends"
		}
		r.all.Logger.Warn("the ResponseWriter of middleware in front of this endpoint hides what net/http can do; "+
			"add an Unwrap method (http.ResponseController) to its type, or take the middleware away from this endpoint (http.TimeoutHandler)",
			"type", kind, "effect", effect)
	})
}
