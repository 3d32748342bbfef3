package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/face"
	"github.com/parley-mcp/parley/app/tui/style"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// Options are what is not required of a Screen. A nil *Options, and each zero field, means
// the default that is told.
type Options struct {
	// Face is the name of this face in answers. Default "screen".
	Face string
	// In and Out are the terminal. Default: the process's own.
	In  io.Reader
	Out io.Writer
	// Environ is the environment: TERM, NO_COLOR, COLORTERM. Default os.Environ().
	Environ []string
	// Theme is how it looks. Default: without colour where NO_COLOR is set, else by the
	// background of the terminal, and dark where it does not tell.
	Theme *style.Theme
	// Keys are the keys. Default style.DefaultKeys().
	Keys *style.Keys
	// ReducedMotion leaves out what only moves.
	ReducedMotion bool
	// Interrupts tell that the person wants to interrupt from elsewhere than the keyboard:
	// as Ctrl-C does. Default none.
	Interrupts <-chan os.Signal
	// Open opens a page to which the person agreed, in a browser. Default: the address is
	// shown only.
	Open func(ctx context.Context, address string) error
	// Edit lets the person edit a text in an editor, which has the terminal meanwhile, and
	// returns it. Default: not offered.
	Edit func(ctx context.Context, text string) (string, error)
	// SetTitle changes the title of a session. Default: not offered.
	SetTitle func(ctx context.Context, session, title string) error
	// Model finds a model by what the person calls it. Default: it cannot be changed.
	Model func(ctx context.Context, name string) (host.Model, error)
	// Resources lists the resources of a server, for completion. Default: not offered.
	Resources func(ctx context.Context, server string) ([]*mcp.Resource, error)
	// Since is the number of the last record that is not shown at the beginning, which is
	// told. Default: all are shown. See [face.LastExchanges].
	Since int64
	// Greeting is shown at the beginning, or empty. It is the program's own text.
	Greeting string
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// withDefaults fills in what is not set.
func (o *Options) withDefaults() *Options {
	var all Options
	if o != nil {
		all = *o
	}
	all.Face = cmp.Or(all.Face, "screen")
	if all.In == nil {
		all.In = os.Stdin
	}
	if all.Out == nil {
		all.Out = os.Stdout
	}
	if all.Environ == nil {
		all.Environ = os.Environ()
	}
	if all.Keys == nil {
		all.Keys = style.DefaultKeys()
	}
	if all.Now == nil {
		all.Now = time.Now
	}
	return &all
}

// noColor reports whether the environment asks for text without colours.
//
// https://no-color.org
func noColor(environ []string) bool {
	return slices.ContainsFunc(environ, func(v string) bool {
		value, ok := strings.CutPrefix(v, "NO_COLOR=")
		return ok && value != ""
	})
}

// A Screen is the face for terminals that can move a cursor. Its methods may be called
// by many goroutines at once; Run once.
type Screen struct {
	opts *Options

	mu      sync.Mutex
	waiting []string // notes that were not shown yet
	lost    int      // notes for which there was no room
	wake    chan struct{}
}

// New makes a screen. opts may be nil.
func New(opts *Options) *Screen {
	return &Screen{opts: opts.withDefaults(), wake: make(chan struct{}, 1)}
}

// noteMsg is a line of the program.
type noteMsg string

// mostWaiting bounds the notes that were not shown yet.
const mostWaiting = 1000

// Write shows what the program would write to its standard error, by whole lines, which
// are escaped. It does not wait and never fails; of more than 1000 texts that come at once
// the rest is counted only.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) >= mostWaiting {
		s.lost++
		return len(p), nil
	}
	s.waiting = append(s.waiting, strings.TrimRight(string(p), "\n"))
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return len(p), nil
}

// notes takes what was written.
func (s *Screen) notes() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost > 0 {
		s.waiting = append(s.waiting, fmt.Sprintf("%d more messages of the program came too fast to be shown.", s.lost))
	}
	text := strings.Join(s.waiting, "\n")
	s.waiting, s.lost = nil, 0
	return text
}

// Rest takes what was written and has not been shown, for after Run.
func (s *Screen) Rest() string { return s.notes() }

// ErrTerminal is the error of Run when the terminal has gone away, or cannot be used any more.
var ErrTerminal = errors.New("the terminal is gone")

// A terminalFile is an end of the terminal. The first error ends the screen: a signal does not
// always come with it, and without a terminal nobody can leave.
type terminalFile struct {
	*os.File

	gone chan<- error // takes one
}

func (f *terminalFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	return n, f.check(err)
}

func (f *terminalFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.check(err)
}

func (f *terminalFile) check(err error) error {
	if err != nil {
		select {
		case f.gone <- fmt.Errorf("%w: %w", ErrTerminal, err):
		default: // it was told
		}
	}
	return err
}

// Run shows the session and takes what the person types, until they quit, ctx ends or the
// session is closed. The error is that of ctx or of the session. The terminal is then as
// it was before. The session is not closed.
func (s *Screen) Run(ctx context.Context, h face.Host, session face.Session) error {
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()

	m := newScreen(s.opts, h)
	in, out, gone := s.opts.In, s.opts.Out, make(chan error, 1)
	if f, ok := in.(*os.File); ok {
		in = &terminalFile{f, gone}
	}
	if f, ok := out.(*os.File); ok {
		out = &terminalFile{f, gone}
	}
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out),
		tea.WithEnvironment(s.opts.Environ), tea.WithWindowSize(usualWidth, usualHeight), tea.WithoutSignalHandler())
	m.send = program.Send
	m.base = func() context.Context { return ctx }
	m.start = func(f func()) { tasks.Go(f) }
	m.attach(session, s.opts.Since)
	defer m.unwatch()
	m.started = func() {
		tasks.Go(func() { s.passNotes(ctx, program.Send) })
		tasks.Go(func() { s.passInterrupts(ctx, m) })
		tasks.Go(func() {
			select {
			case err := <-gone:
				m.send(goneMsg{err})
			case <-ctx.Done():
			}
		})
	}
	_, err := program.Run()
	switch {
	case m.err != nil:
		return m.err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, tea.ErrInterrupted):
		return nil
	}
	return err
}

// passNotes passes on notes until ctx ends.
func (s *Screen) passNotes(ctx context.Context, send func(tea.Msg)) {
	for {
		select {
		case <-s.wake:
			send(noteMsg(s.notes()))
		case <-ctx.Done():
			return
		}
	}
}

// passInterrupts passes on interrupts until ctx ends. Those that come while an editor has the
// terminal are the editor's.
func (s *Screen) passInterrupts(ctx context.Context, m *screen) {
	for {
		select {
		case <-s.opts.Interrupts:
			if !m.away.Load() {
				m.send(interruptMsg{s.opts.Now()})
			}
		case <-ctx.Done():
			return
		}
	}
}
