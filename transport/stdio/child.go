package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/transport"
)

// drainTime is how long we read what an ended child left in its streams, if
// a process outside its process group holds them open.
const drainTime = time.Second

// An ExitError says that the server process ended by itself.
type ExitError struct {
	// Name is the program.
	Name string
	// Status says how it ended, such as "exit status 1" or "signal: killed".
	Status string
	// Reason is the line of its standard error that seems to say why, escaped
	// and cut, or empty: that of a panic in Go, or else the last one that is no
	// part of a stack.
	Reason string
}

// Error says how the process ended and why.
func (e *ExitError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("server process %q ended (%s)", e.Name, e.Status)
	}
	return fmt.Sprintf("server process %q ended (%s): %s", e.Name, e.Status, e.Reason)
}

// A child is a server process and the frame.Pipe to it.
type child struct {
	name   string
	cmd    *exec.Cmd
	grace  Grace
	pipes  *pipes
	in     *lines
	out    lineWriter
	stderr *stderr
	tap    transport.Tap // or nil

	closing      atomic.Bool   // we asked it to end
	stop         func()        // begins the way down, once
	skipGrace    func()        // makes it short, once
	graceSkipped chan struct{} // closed by rush
	exited       chan struct{} // closed when the process has been reaped
	done         chan struct{} // closed when nothing of it is left
	status       string        // set before exited is closed
	drains       sync.WaitGroup
}

// An exitReader reads a stream of a child. When the process has ended, a deadline
// bounds the wait for the end of the stream, which others may hold open; but
// what was in the stream by then is read all the same.
type exitReader struct {
	f    *os.File
	left int // what may still be read after the deadline
}

// pipeSize is the most that a pipe can hold.
const pipeSize = 1 << 20

// Read reads on past the deadline as long as there is something to read.
func (t *exitReader) Read(p []byte) (int, error) {
	n, err := t.f.Read(p)
	if !errors.Is(err, os.ErrDeadlineExceeded) || t.left <= 0 {
		return n, err
	}
	if err := t.f.SetReadDeadline(time.Now().Add(drainTime / 20)); err != nil {
		return 0, err
	}
	n, err = t.f.Read(p)
	t.left -= n
	return n, err
}

// watch begins to read standard error and to wait for the exit.
func (c *child) watch() {
	var said io.Reader = &exitReader{f: c.pipes.err, left: pipeSize}
	if c.tap != nil {
		said = &tappedReader{said, c.tap}
	}
	c.drains.Go(func() { c.stderr.drain(said) })
	go func() { // end waits for c.exited
		defer close(c.exited)
		err := c.cmd.Wait()
		killGroup(c.cmd) // what it started and left behind
		c.status = describe(c.cmd, err)
		if c.tap != nil {
			c.tap(transport.TapEvent{Kind: transport.TapStep, Name: transport.StepExit, Detail: c.status})
		}
		c.limitReads()
	}()
}

// limitReads bounds the reading of what the child left in its streams.
func (c *child) limitReads() {
	until := time.Now().Add(drainTime)
	_ = c.pipes.in.SetReadDeadline(until) // where unsupported, end closes the stream
	_ = c.pipes.err.SetReadDeadline(until)
}

// A tappedReader shows what a child writes on standard error.
type tappedReader struct {
	io.Reader

	tap transport.Tap
}

// Read reads and shows a part.
func (r *tappedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.tap(transport.TapEvent{Kind: transport.TapStderr, Data: p[:n]})
	}
	return n, err
}

// describe says how the process ended.
func describe(cmd *exec.Cmd, err error) string {
	if cmd.ProcessState != nil {
		return cmd.ProcessState.String()
	}
	return err.Error()
}

// Read returns the next line of standard output. When there is no more it sees
// the process to its end, and says how that was unless we had asked for it.
func (c *child) Read() ([]byte, error) {
	line, err := c.in.next()
	if err == nil || !over(err) {
		return line, err
	}
	asked := c.closing.Load()
	c.stop()
	<-c.done
	if asked {
		return nil, io.EOF
	}
	return nil, &ExitError{Name: c.name, Status: c.status, Reason: c.stderr.reason()}
}

// over reports whether err means that the stream has no more.
func over(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded)
}

// OnPart sets what is called when a part of a line has arrived.
func (c *child) OnPart(arrived func()) { c.in.onPart(arrived) }

// Write writes messages to standard input.
func (c *child) Write(messages [][]byte) error { return c.out.write(messages) }

// Close begins the shutdown: standard input is closed, which asks the server
// to end, and signals follow. It does not wait; c.done is closed at the end.
func (c *child) Close() error {
	c.stop()
	return nil
}

// end ends the process (spec 2026-07-28, basic/transports/stdio,
// Shutdown): close its input, wait, ask its group to end, wait, kill its group.
// It closes done when process, streams and goroutines are gone.
func (c *child) end() {
	defer close(c.done)
	_ = c.pipes.out.Close() // also makes a Write return
	if !c.waitExit(c.grace.Close) {
		terminateGroup(c.cmd)
		if !c.waitExit(c.grace.Term) {
			killGroup(c.cmd)
		}
	}
	<-c.exited
	c.drains.Wait()
	closeAll(c.pipes.err)
}

// waitExit waits for the process to end, and reports whether it did in time.
func (c *child) waitExit(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.exited:
		return true
	case <-timer.C:
	case <-c.graceSkipped:
	}
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// A childLink is a link to a child process. Closing it ends the process.
type childLink struct {
	transport.Link
	child *child
}

// Close ends the process, politely until ctx ends, and returns when it and all
// that it started in its process group are gone.
func (l *childLink) Close(ctx context.Context) error {
	l.child.closing.Store(true)
	stop := context.AfterFunc(ctx, l.child.skipGrace)
	defer stop()
	err := l.Link.Close(ctx)
	<-l.child.done
	closeAll(l.child.pipes.in)
	return err
}
