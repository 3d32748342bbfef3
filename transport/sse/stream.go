package sse

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/transport"
)

// Names of the events of this transport.
const (
	endpointEvent = "endpoint"
	messageEvent  = "message"
)

// joined is the size up to which queued messages are joined into one write.
const joined = 256 << 10

// slowest is the rate, in bytes per second, of the slowest client that is waited for.
const slowest = 64 << 10

// keepBuffer is the largest buffer that is kept between writes.
const keepBuffer = 64 << 10

// A stream is the response to a GET, as a sequence of events.
type stream struct {
	w         http.ResponseWriter
	rc        *http.ResponseController
	stall     time.Duration
	keepAlive time.Duration
	first     []byte // the event that begins the stream
	fail      context.CancelCauseFunc

	writeToken sync.Mutex // held while writing
	begun      bool
	buf        []byte
	alive      *time.Timer

	mu      sync.Mutex // never held while writing
	writing bool
	closed  bool
}

func newStream(w http.ResponseWriter, o *Options, fail context.CancelCauseFunc) *stream {
	return &stream{
		w:         w,
		rc:        http.NewResponseController(w),
		stall:     o.WriteStall,
		keepAlive: o.KeepAlive,
		fail:      fail,
	}
}

// prepare removes the deadlines of the whole response: each write has one of its
// own. Without deadlines a write to a client that does not read could not time
// out, so that their lack is an error.
func (s *stream) prepare() error {
	return errors.Join(s.rc.SetReadDeadline(time.Time{}), s.rc.SetWriteDeadline(time.Time{}))
}

// begin sends the header and the first event, once.
func (s *stream) begin() error {
	s.writeToken.Lock()
	defer s.writeToken.Unlock()
	return s.open()
}

// open is begin for a caller that holds writeToken.
func (s *stream) open() error {
	if s.begun {
		return nil
	}
	s.begun = true
	h := s.w.Header()
	h.Set("Content-Type", eventstream.ContentType)
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no") // for nginx, which would keep events back
	s.w.WriteHeader(http.StatusOK)
	s.alive = time.AfterFunc(s.keepAlive, s.comment)
	return s.send(s.first)
}

// write sends messages, as many as possible with one write.
func (s *stream) write(messages [][]byte) error {
	s.writeToken.Lock()
	defer s.writeToken.Unlock()
	if err := s.open(); err != nil {
		return err
	}
	for _, m := range messages {
		if len(s.buf) > 0 && len(s.buf)+len(m) >= joined {
			if err := s.flush(); err != nil {
				return err
			}
		}
		s.buf = eventstream.Append(s.buf, &eventstream.Event{Type: messageEvent, Data: m})
	}
	return s.flush()
}

// flush sends the buffered events.
func (s *stream) flush() error {
	err := s.send(s.buf)
	s.buf = s.buf[:0]
	if cap(s.buf) > keepBuffer {
		s.buf = nil
	}
	return err
}

// comment keeps a silent stream alive. During a write there is no silence; the
// end of the write begins the next.
func (s *stream) comment() {
	if !s.writeToken.TryLock() {
		return
	}
	defer s.writeToken.Unlock()
	err := s.send(eventstream.AppendComment(nil))
	if err != nil && !errors.Is(err, os.ErrClosed) {
		s.fail(fmt.Errorf("%w: writing to a silent stream: %w", transport.ErrClosed, err))
	}
}

// send writes whole events. The caller holds writeToken.
func (s *stream) send(events []byte) error {
	if err := s.arm(len(events)); err != nil {
		return err
	}
	_, err := s.w.Write(events)
	if err == nil {
		err = s.rc.Flush()
	}
	return s.disarm(err)
}

// arm begins a write and its deadline.
func (s *stream) arm(size int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return os.ErrClosed
	}
	s.writing = true
	return s.rc.SetWriteDeadline(time.Now().Add(s.stall + time.Duration(size/slowest)*time.Second))
}

// disarm ends a write that gave err, and says what that means.
func (s *stream) disarm(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = false
	switch {
	case err != nil && s.closed:
		return os.ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return transport.ErrStalled
	case err == nil && !s.closed:
		s.alive.Reset(s.keepAlive)
	}
	return err
}

// close refuses further writes and ends the one under way.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.writing {
		_ = s.rc.SetWriteDeadline(time.Unix(1, 0)) // works, or prepare would have failed
	}
}

// retire waits for a write under way and leaves the response to net/http. It
// reports whether it has begun. The stream is closed.
func (s *stream) retire() bool {
	s.writeToken.Lock()
	defer s.writeToken.Unlock()
	if s.alive != nil {
		s.alive.Stop() // if too late: it finds the stream closed
	}
	return s.begun
}
