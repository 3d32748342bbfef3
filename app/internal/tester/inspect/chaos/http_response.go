package chaos

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"
)

// wrongTypes are content types that no answer of a server should have.
var wrongTypes = []string{"text/plain; charset=utf-8", "text/html", "application/octet-stream", "application/xml"}

// answer passes a response back, with faults. An error says that the client's connection ends.
func (x *exchange) answer(ctx context.Context, response *http.Response, whole *decision) error {
	header := x.w.Header()
	for name, values := range response.Header {
		header[name] = values
	}
	removeHopHeaders(header)
	events := isEvents(response.Header)
	if whole != nil && whole.fault == ContentType {
		other := wrongTypes[whole.rand.IntN(len(wrongTypes))]
		x.toClient.log(0, whole.fault, 0, other)
		header.Set("Content-Type", other)
	}
	control := http.NewResponseController(x.w)
	w := flushed{x.w, control, x.proxy.opts.WriteStall}
	w.limit(0) // of the header
	if whole != nil && whole.fault == HeadersOnly {
		x.toClient.log(0, whole.fault, 0, "")
		x.w.WriteHeader(response.StatusCode)
		_ = control.Flush() // the connection ends anyway
		return ErrDropped
	}
	out := &relay{flow: x.toClient, at: onEvent, w: w}
	if events {
		x.w.WriteHeader(response.StatusCode)
		if err := control.Flush(); err != nil {
			return err
		}
		return out.events(ctx, response.Body)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxFrame+1))
	switch {
	case err != nil:
		return err
	case len(body) > MaxFrame:
		x.w.WriteHeader(response.StatusCode)
		_, err = io.Copy(w, io.MultiReader(bytes.NewReader(body), response.Body))
		return err
	case len(body) == 0:
		x.w.WriteHeader(response.StatusCode)
		return nil
	}
	out.at = onBody
	x.w.WriteHeader(response.StatusCode)
	return out.pass(ctx, bodyFrame(body))
}

// isEvents says whether a response is an event stream.
func isEvents(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && kind == "text/event-stream"
}

// flushed passes each write on to the client at once, which has a time to take it.
type flushed struct {
	w       http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
}

// slowest is how many bytes a client takes in a second, at the least.
const slowest = 64 << 10

// limit gives n bytes their time.
func (f flushed) limit(n int) {
	_ = f.control.SetWriteDeadline(time.Now().Add(f.stall + time.Duration(n/slowest)*time.Second)) // not every server can
}

// Write writes and flushes.
func (f flushed) Write(p []byte) (int, error) {
	f.limit(len(p))
	n, err := f.w.Write(p)
	if err == nil {
		err = f.control.Flush()
	}
	return n, err
}

// events passes the events of a stream on until there are no more.
func (r *relay) events(ctx context.Context, from io.Reader) error {
	in := bufio.NewReaderSize(from, 32<<10)
	for {
		event, long, err := readEvent(in)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return err
		case long:
			r.frames++
			if _, err := r.w.Write(event); err != nil {
				return err
			}
			if _, err := io.Copy(r.w, in); err != nil { // without faults from here on
				return err
			}
			return r.release()
		case len(event) > 0:
			if err := r.pass(ctx, eventFrame(event)); err != nil {
				return err
			}
		}
		if err != nil {
			return r.release()
		}
	}
}

// readEvent reads an event with the blank line behind it. An event that is too long to be one
// frame is cut.
func readEvent(in *bufio.Reader) (event []byte, long bool, err error) {
	blank := true // the line so far
	for {
		part, err := in.ReadSlice('\n')
		event = append(event, part...)
		if len(event) > MaxFrame {
			return event, true, nil
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			blank = false
		case err != nil:
			return event, false, err
		case blank && len(bytes.TrimRight(part, "\r\n")) == 0:
			return event, false, nil
		default:
			blank = true
		}
	}
}
