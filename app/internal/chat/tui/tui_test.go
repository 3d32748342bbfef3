package tui_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/chat/tui"
	"github.com/parley-mcp/parley/app/internal/model"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

// A terminal is what a screen has written.
type terminal struct {
	mu      sync.Mutex
	b       bytes.Buffer
	changed chan struct{}
}

func newTerminal() *terminal { return &terminal{changed: make(chan struct{}, 1)} }

func (o *terminal) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.changed <- struct{}{}:
	default:
	}
	return o.b.Write(p)
}

func (o *terminal) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// wait waits until a text was written.
func (o *terminal) wait(t *testing.T, text string) {
	t.Helper()
	limit := time.NewTimer(5 * time.Minute) // only a hang lasts so long
	defer limit.Stop()
	for !strings.Contains(o.String(), text) {
		select {
		case <-o.changed:
		case <-limit.C:
			t.Fatalf("%q was not written: %q", text, o.String())
		}
	}
}

// open opens a session of a host without servers.
func open(t *testing.T) (*host.Host, *host.Session) {
	t.Helper()
	h := host.New(&host.Options{Store: new(host.Memory), Attended: true})
	t.Cleanup(func() { h.Close() })
	s, err := h.NewSession(t.Context(), model.Offline{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return h, s
}

// A brokenHost panics when it is asked for servers, once it is broken.
type brokenHost struct {
	ui.Host

	broken *atomic.Bool
}

func (h brokenHost) Status() []host.ServerStatus {
	if h.broken.Load() {
		panic("broken")
	}
	return h.Host.Status()
}

// However it ends, the screen leaves the terminal as it was.
func TestRun(t *testing.T) {
	t.Parallel()
	left := errors.New("the machine goes down")
	for name, test := range map[string]struct {
		broken bool
		end    func(in io.Writer, cancel context.CancelCauseFunc, s *host.Session) error
		want   error // nil: no error, errAny: any
	}{
		"quit": {end: func(in io.Writer, _ context.CancelCauseFunc, _ *host.Session) error {
			_, err := io.WriteString(in, "/quit\r")
			return err
		}},
		"Ctrl-C twice": {end: func(in io.Writer, _ context.CancelCauseFunc, _ *host.Session) error {
			_, err := io.WriteString(in, "\x03\x03")
			return err
		}},
		"the context": {want: left, end: func(_ io.Writer, cancel context.CancelCauseFunc, _ *host.Session) error {
			cancel(left)
			return nil
		}},
		"the session": {end: func(_ io.Writer, _ context.CancelCauseFunc, s *host.Session) error { return s.Close() }},
		"panic": {broken: true, want: errAny, end: func(in io.Writer, _ context.CancelCauseFunc, _ *host.Session) error {
			_, err := io.WriteString(in, "\x13") // the servers
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := open(t)
			in, keys := io.Pipe()
			t.Cleanup(func() { keys.Close() })
			out := newTerminal()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			screen := tui.New(&tui.Options{In: in, Out: out, Environ: []string{"TERM=xterm-256color"}, Greeting: "Welcome."})
			if _, err := screen.Write([]byte("a note\n")); err != nil {
				t.Fatal(err)
			}
			var broken atomic.Bool
			done := make(chan error, 1)
			go func() { done <- screen.Run(ctx, brokenHost{ui.OfHost(h), &broken}, ui.OfSession(s, nil)) }()
			out.wait(t, "Welcome.")
			out.wait(t, "a note")
			broken.Store(test.broken)
			if err := test.end(keys, cancel, s); err != nil {
				t.Fatal(err)
			}
			err := <-done
			switch {
			case test.want == nil && err != nil, test.want != nil && err == nil:
				t.Errorf("error %v, want %v", err, test.want)
			case !errors.Is(err, test.want) && !errors.Is(test.want, errAny):
				t.Errorf("error %v, want %v", err, test.want)
			}
			text := out.String()
			for on, off := range map[string]string{"\x1b[?1049h": "\x1b[?1049l", "\x1b[?2004h": "\x1b[?2004l"} {
				if a, b := strings.LastIndex(text, on), strings.LastIndex(text, off); a < 0 || b < a {
					t.Errorf("%q was written at %d, %q at %d", on, a, off, b)
				}
			}
			if a, b := strings.LastIndex(text, "\x1b[?25l"), strings.LastIndex(text, "\x1b[?25h"); b < a {
				t.Error("the cursor stays hidden")
			}
		})
	}
}

var errAny = errors.New("any")

// A terminal that is gone ends the screen, whichever end of it tells first.
func TestTerminalGone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"input", "output"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, s := open(t)
			in, keys, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			// in stays open: a program that was killed does not wait for its reader
			shown, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			screen := tui.New(&tui.Options{In: in, Out: out, Environ: []string{"TERM=xterm-256color"}})
			done := make(chan error, 1)
			go func() { done <- screen.Run(t.Context(), ui.OfHost(h), ui.OfSession(s, nil)) }()
			if _, err := shown.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			if name == "input" {
				go func() { _, _ = io.Copy(io.Discard, shown) }() // ends with out
				keys.Close()
			} else {
				shown.Close()
				if _, err := io.WriteString(keys, "hello"); err != nil {
					t.Fatal(err)
				}
				defer keys.Close()
			}
			if err := <-done; !errors.Is(err, tui.ErrTerminal) {
				t.Errorf("error %v, want %v", err, tui.ErrTerminal)
			}
		})
	}
}
