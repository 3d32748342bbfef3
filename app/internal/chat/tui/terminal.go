package tui

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// ErrTerminal is the error of Run when the terminal has gone away, or cannot be used any more.
var ErrTerminal = errors.New("the terminal is gone")

// stalled is how long the end of the screen waits for a terminal that takes nothing.
const stalled = 2 * time.Second

// chunk is how much is written to a terminal at once, in bytes: the end of the screen sees
// by it whether a slow one still takes something.
const chunk = 512

// A terminal is the terminal of a screen, which has it between enter and leave.
type terminal struct {
	in    io.Reader
	out   *terminalWriter
	shown io.Writer // out as what it is: a file, or not
	gone  chan error
	flush func()
	file  *os.File // where keys come from, if that is a terminal; else nil
	state *term.State
}

func newTerminal(opts *Options) *terminal {
	t := &terminal{in: opts.In, gone: make(chan error, 1), flush: opts.Flush}
	t.out = newTerminalWriter(opts.Out, t.lost)
	t.shown = t.out
	if f, ok := opts.Out.(*os.File); ok {
		t.shown = &outputFile{f, t.out}
	}
	if f, ok := opts.In.(*os.File); ok {
		t.in = &inputFile{f, t.lost}
		if term.IsTerminal(int(f.Fd())) {
			t.file = f
		}
	}
	return t
}

// size is that of the terminal, or the usual one where it does not tell.
func (t *terminal) size() (width, height int) {
	if f, ok := t.shown.(*outputFile); ok {
		if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 && height > 0 {
			return width, height
		}
	}
	return usualWidth, usualHeight
}

// enter takes the terminal: keys come one by one from now on. What was typed before is thrown
// away: Enter was another character then, and nobody saw what it would answer.
func (t *terminal) enter() error {
	if t.file == nil {
		return nil
	}
	state, err := term.MakeRaw(int(t.file.Fd()))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTerminal, err)
	}
	t.state = state
	if t.flush != nil {
		t.flush()
	}
	return nil
}

// leave waits until everything was written, and gives the terminal back as it was.
func (t *terminal) leave() error {
	err := t.out.drain(stalled)
	if t.state != nil {
		if e := term.Restore(int(t.file.Fd()), t.state); e != nil && err == nil {
			err = fmt.Errorf("%w: %w", ErrTerminal, e)
		}
		t.state = nil
	}
	return err
}

// lost tells that an end of the terminal does not work any more. The first error ends the
// screen: a signal does not always come with it, and without a terminal nobody can leave.
func (t *terminal) lost(err error) {
	select {
	case t.gone <- fmt.Errorf("%w: %w", ErrTerminal, err):
	default: // it was told
	}
}

// An inputFile is where keys come from. An error of it is told to lost alone, and reads as its end:
// bubbletea would end by another one, maybe before lost has ended the screen.
type inputFile struct {
	*os.File

	lost func(error)
}

func (f *inputFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	if err != nil {
		f.lost(err)
		err = io.EOF
	}
	return n, err
}

// An outputFile is what is drawn on: bubbletea asks the file for its size.
type outputFile struct {
	*os.File

	to *terminalWriter
}

func (f *outputFile) Write(p []byte) (int, error) { return f.to.Write(p) }

// A terminalWriter writes to a terminal in a goroutine of its own, so that a slow one keeps
// nobody from taking keys. While something waits to be written no new frame is drawn
// (screen.View), so that what waits is about one frame at most.
type terminalWriter struct {
	w    io.Writer
	lost func(error)
	wake chan struct{} // holds one: there is something to write, or the end
	// free holds one after everything was written that Busy was told of.
	free chan struct{}

	mu      sync.Mutex
	changed chan struct{} // closed when something was written
	waiting []byte        // not given to w
	writing int           // bytes given to w of which it has not returned
	asked   bool          // Busy was told that it is
	closed  bool
	err     error
}

func newTerminalWriter(w io.Writer, lost func(error)) *terminalWriter {
	return &terminalWriter{
		w: w, lost: lost, wake: make(chan struct{}, 1), free: make(chan struct{}, 1), changed: make(chan struct{}),
	}
}

// Write has p written soon, and does not wait. The error is one of before.
func (t *terminalWriter) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return 0, t.err
	}
	t.waiting = append(t.waiting, p...)
	t.signal()
	return len(p), nil
}

func (t *terminalWriter) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Busy reports whether something was not written yet. If so, free tells when it was.
func (t *terminalWriter) Busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	busy := t.err == nil && len(t.waiting)+t.writing > 0
	t.asked = t.asked || busy
	return busy
}

// run writes until close, or the first error.
func (t *terminalWriter) run() {
	for range t.wake {
		for {
			p := t.next()
			if len(p) == 0 {
				break
			}
			_, err := t.w.Write(p)
			t.wrote(err)
			if err != nil {
				t.lost(err)
				return
			}
		}
		t.mu.Lock()
		closed := t.closed
		t.mu.Unlock()
		if closed {
			return
		}
	}
}

// next takes what is written next.
func (t *terminalWriter) next() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(t.waiting), chunk)
	p := t.waiting[:n:n]
	t.waiting = t.waiting[n:]
	t.writing = n
	return p
}

// wrote notes that what was taken has been written, or cannot be.
func (t *terminalWriter) wrote(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writing, t.err = 0, err
	if len(t.waiting) == 0 || err != nil {
		t.waiting = nil
		if t.asked {
			t.asked = false
			select {
			case t.free <- struct{}{}:
			default:
			}
		}
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

// drain waits until everything was written. It gives up when nothing could be written for
// so long, and the error is ErrTerminal then.
func (t *terminalWriter) drain(limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		t.mu.Lock()
		done, changed := t.err != nil || len(t.waiting)+t.writing == 0, t.changed
		t.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
			timer.Reset(limit)
		case <-timer.C:
			return fmt.Errorf("%w: it takes nothing any more", ErrTerminal)
		}
	}
}

// close has run end once everything was written. What the terminal does not take keeps run's
// goroutine until the end of the process: a write cannot be taken back.
func (t *terminalWriter) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.signal()
}
