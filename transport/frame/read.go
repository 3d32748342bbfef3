package frame

import (
	"context"
	"errors"
	"runtime/debug"
)

// A reader is the state of the goroutine that reads. It is handed from one to
// the next with the reading: nothing of it is touched between begin and end of
// the readerToken.
type reader struct {
	scheduler   scheduler
	answersHeld bool  // answers of requests that ran here wait to be written
	done        *bool // see read
}

// A readResult says how reading ended: with the pipe's last error, or with a
// panic of the session.
type readResult struct {
	err        error
	panicValue any
}

// errExit is the error of a reader whose goroutine was ended by the session.
var errExit = errors.New("a message made its reader exit")

// read reads until the pipe has no more, and sends the result to Serve, or
// until another goroutine reads.
func (s *server) read(ctx context.Context) {
	done := false // the result was sent, or another goroutine reads
	s.done = &done
	defer func() {
		if done {
			return // a panic that comes here is a handler's, and goes on
		}
		fault := recover()
		if fault != nil {
			s.log.Error("panic while reading", "panic", fault, "stack", string(debug.Stack()))
		}
		s.readEnded <- readResult{err: errExit, panicValue: fault}
	}()
	err := s.readLoop(ctx)
	if done = true; err != nil {
		s.readEnded <- readResult{err: err}
	}
}

// readLoop returns the pipe's last error, or nil if this goroutine no longer
// reads.
func (s *server) readLoop(ctx context.Context) error {
	for {
		if s.answersHeld && !s.more() && !s.flush() {
			return nil
		}
		data, err := readMessage(s.pipe, s.limits.Bytes)
		if err == nil {
			if !s.handleMessage(ctx, data) {
				return nil
			}
			continue
		}
		long := tooLong(err)
		if long == nil {
			return err
		}
		s.log.Debug("message skipped", "error", err)
		s.refuseLong(ctx, long)
	}
}

// more reports whether the next message can be read without waiting.
func (s *server) more() bool { return s.gauge != nil && s.gauge.Buffered() }
