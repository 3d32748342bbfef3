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

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
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
	// Flush throws away what was typed at In and not read yet. It is called when the screen
	// takes the terminal, from which keys then come one by one. Default: nothing is thrown away.
	Flush func()
	// Environ is the environment: TERM, NO_COLOR, COLORTERM. Default os.Environ().
	Environ []string
	// Theme is how it looks. Default: without colour where NO_COLOR is set, else by the
	// background of the terminal, and dark where it does not tell.
	Theme *style.Theme
	// Keys are the keys. Default style.DefaultKeys().
	Keys *style.Keys
	// ReducedMotion leaves out what only moves.
	ReducedMotion bool
	// Mouse has the terminal send what the mouse does: its wheel scrolls, and clicks do
	// nothing. The terminal then selects text with a further key only, mostly Shift.
	Mouse bool
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
	// Sessions are those to which the person can go. Default: to none.
	Sessions ui.Sessions
	// Logs are the last lines that a server logged, as they came. Default: they are not kept.
	Logs func(server string) []string
	// Image reads an image from the clipboard. Default: it cannot be read.
	Image func(ctx context.Context) (mcp.Content, error)
	// Since is the number of the last record that is not shown at the beginning, which is
	// told. Default: all are shown. See [ui.LastExchanges].
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

// Run shows the session and takes what the person types, until they quit, ctx ends or the
// session is closed. The error is that of ctx or of the session; it has ErrTerminal in it if
// nothing can be written to the terminal any more. The terminal is then as it was before. The
// session is not closed.
func (s *Screen) Run(ctx context.Context, h ui.Host, session ui.Session) error {
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()

	m, t, in := newScreen(s.opts, h), newTerminal(s.opts), newInbox(ctx)
	go t.out.run()
	defer t.out.close()
	m.send = in.send
	m.base = func() context.Context { return ctx }
	m.start = func(f func()) { tasks.Go(f) }
	m.lineBusy = t.out.Busy
	m.resize(t.size())
	m.attach(session, s.opts.Since)
	defer m.unwatch()
	tasks.Go(func() { s.passNotes(ctx, m.send) })
	tasks.Go(func() { s.passInterrupts(ctx, m) })
	tasks.Go(func() { passTerminal(ctx, t, m.send) })
	for {
		err := s.show(ctx, m, t, in)
		switch {
		case m.err != nil:
			return errors.Join(m.err, err)
		case ctx.Err() != nil:
			return errors.Join(context.Cause(ctx), err)
		case err != nil || m.outside == nil:
			return err
		}
		m.runOutside()
	}
}

// show shows the screen until it is left, for good or for another program. It is a Program
// each time: bubbletea's own way to lend the terminal and take it back (tea.Exec, tea.Suspend)
// may stop the ticker of the renderer after it was started again, and nothing is drawn any
// more then. It is ended by a message and never by bubbletea's context, with which bubbletea
// closes what its reader still reads from.
func (s *Screen) show(ctx context.Context, m *screen, t *terminal, in *inbox) (err error) {
	if err := t.enter(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.leave()) }()
	program := tea.NewProgram(m, tea.WithInput(t.in), tea.WithOutput(t.shown), tea.WithFilter(m.filter),
		tea.WithEnvironment(s.opts.Environ), tea.WithWindowSize(m.width, m.height), tea.WithoutSignalHandler())
	if t.file != nil {
		defer whenContinued(program.Send)()
	}
	ended := make(chan struct{})
	var passing sync.WaitGroup
	passing.Go(func() { in.pass(program, ended) })
	passing.Go(func() {
		select {
		case <-ctx.Done():
			program.Quit()
		case <-ended:
		}
	})
	_, err = program.Run()
	close(ended)
	passing.Wait()
	return err
}

// An inbox has messages for the screen, of which none is lost when one Program ends and
// another begins.
type inbox struct {
	ctx  context.Context //nolint:containedctx // that of the Run whose messages these are
	msgs chan tea.Msg
	next *delivery // was not taken yet
}

// A delivery is a message, and whether the screen has taken it.
type delivery struct {
	msg   tea.Msg
	taken chan struct{}
}

func newInbox(ctx context.Context) *inbox { return &inbox{ctx: ctx, msgs: make(chan tea.Msg)} }

// send waits until a message is on its way, or the end.
func (in *inbox) send(msg tea.Msg) {
	select {
	case in.msgs <- msg:
	case <-in.ctx.Done():
	}
}

// pass passes messages on until a Program has ended.
func (in *inbox) pass(to *tea.Program, ended <-chan struct{}) {
	for {
		if in.next == nil {
			select {
			case msg := <-in.msgs:
				in.next = &delivery{msg, make(chan struct{})}
			case <-ended:
				return
			}
		}
		to.Send(in.next)
		select {
		case <-in.next.taken:
			in.next = nil
			continue
		case <-ended:
		}
		select {
		case <-in.next.taken:
			in.next = nil
		default:
		}
		return
	}
}

// passTerminal tells when the terminal is gone, and when it has taken everything.
func passTerminal(ctx context.Context, t *terminal, send func(tea.Msg)) {
	for {
		select {
		case err := <-t.gone:
			send(goneMsg{err})
		case <-t.out.free:
			send(freeMsg{})
		case <-ctx.Done():
			return
		}
	}
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
