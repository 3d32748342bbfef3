package sse

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// Names of the events of this transport.
const (
	endpointEvent = "endpoint"
	messageEvent  = "message"
)

// joined is the size up to which queued messages are joined into one write.
const joined = 256 << 10

// keepBuffer is the largest buffer that is kept between writes.
const keepBuffer = 64 << 10

// A stream is the response to a GET, as a sequence of events.
type stream struct {
	web.Response
	first []byte // the event that begins the stream
	fail  context.CancelCauseFunc

	writing sync.Mutex // held while writing
	begun   atomic.Bool
	buf     []byte
	closed  atomic.Bool
}

// begin sends the header and the first event, once. Later it does not wait for a
// write under way.
func (s *stream) begin() error {
	if s.begun.Load() {
		return nil
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.open()
}

// open is begin for a caller that holds writing.
func (s *stream) open() error {
	if !s.Unsent() {
		return nil
	}
	s.Header()["Cache-Control"] = []string{"no-store, no-transform"}
	if err := s.send(s.first); err != nil {
		return err
	}
	s.begun.Store(true)
	return nil
}

// write sends messages, as many as possible with one write.
func (s *stream) write(messages [][]byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
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

// send writes whole events. The caller holds writing.
func (s *stream) send(events []byte) error {
	if s.closed.Load() {
		return os.ErrClosed
	}
	err := s.WriteEvents(events)
	if err != nil && s.closed.Load() {
		return os.ErrClosed
	}
	return err
}

// KeepAlive sends a comment. During a write there is no silence; the end of the
// write begins the next.
func (s *stream) KeepAlive() {
	if !s.writing.TryLock() {
		return
	}
	defer s.writing.Unlock()
	if s.Unsent() || s.closed.Load() {
		return
	}
	if err := s.send(eventstream.AppendComment(nil)); err != nil && !s.closed.Load() {
		s.fail(fmt.Errorf("%w: writing to a silent stream: %w", transport.ErrClosed, err))
	}
}

// Cancel does nothing: sessions are cancelled by Shutdown.
func (s *stream) Cancel(error) {}

// close refuses further writes and ends the one under way.
func (s *stream) close() {
	s.closed.Store(true)
	if !s.writing.TryLock() {
		s.Abort()
		return
	}
	s.writing.Unlock()
}

// detach waits for a write under way and leaves the response to net/http. It
// reports whether it has begun. The stream is closed.
func (s *stream) detach() bool {
	s.writing.Lock()
	defer s.writing.Unlock()
	return !s.Unsent()
}
