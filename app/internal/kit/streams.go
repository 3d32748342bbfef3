package kit

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/parley-mcp/parley/app/internal/discover"
	"github.com/parley-mcp/parley/app/internal/mask"
)

// Streams are the input and outputs of the program. Only results go to Out;
// questions, progress, labels and errors go to Err.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// InTerminal, OutTerminal and ErrTerminal report whether the stream is a terminal.
	InTerminal, OutTerminal, ErrTerminal bool
	// Screen reports whether In and Out are one terminal on which a screen can be drawn.
	Screen bool
	// Width returns the number of columns of the terminal at Err; nil means 80.
	Width func() int
	// Secret reads a line from the terminal without echoing it, until the line or
	// ctx ends; nil means that this is not possible.
	Secret func(ctx context.Context) (string, error)
	// Flush discards input typed at the terminal In that has not been read yet; nil means
	// that this is not possible.
	Flush func()
	// Passphrase is the passphrase of the encrypted token store; empty means that the user
	// is asked for it.
	Passphrase string
	// SystemRoot is the prefix of the paths of the machine's administrator; empty is the
	// machine's own root.
	SystemRoot string
	// ModelPorts are the ports on which the first run looks for local models; nil means the default ports.
	ModelPorts []discover.Port
	// ModelWait is how long the first run waits for their answers; 0 means the default.
	ModelWait time.Duration
	// StartWait is how long the first message of a conversation waits for servers that are
	// starting; 0 means the default.
	StartWait time.Duration
	// Now is the clock that distinguishes typed from pasted lines; nil means time.Now.
	Now func() time.Time
	// Interrupts receives the user's Ctrl-C and other signals that ask the program to
	// exit; nil means none.
	Interrupts <-chan os.Signal

	// diverted receives Ctrl-C if the command handles it itself; nil otherwise.
	diverted atomic.Pointer[chan os.Signal]
	// secrets is the result of Masker; nil before its first call.
	secrets atomic.Pointer[mask.Masker]
	// typing guards the first call of Keyboard, which makes keyboard.
	typing   sync.Once
	keyboard *Keyboard
}

// PassphraseVariable is the environment variable with the passphrase of the encrypted token store.
const PassphraseVariable = "PARLEY_PASSPHRASE"

// Standard returns the streams of the process.
func Standard() *Streams {
	interrupts := make(chan os.Signal, 2)
	// SIGTERM and SIGHUP as well: servers that do not end when their input
	// does would be left behind.
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// The browser, and what it starts in turn, would inherit it.
	phrase := os.Getenv(PassphraseVariable)
	_ = os.Unsetenv(PassphraseVariable) // fails only for impossible names
	in, out := term.IsTerminal(int(os.Stdin.Fd())), term.IsTerminal(int(os.Stdout.Fd()))
	return &Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTerminal: in, OutTerminal: out, Screen: in && out && drawable(),
		ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Width: func() int {
			width, _, err := term.GetSize(int(os.Stderr.Fd()))
			if err != nil {
				return 0
			}
			return width
		},
		Secret:     readSecret,
		Flush:      func() { flushTerminal(int(os.Stdin.Fd())) },
		Passphrase: phrase,
		Interrupts: interrupts,
	}
}

// readSecret reads a line from the terminal without echoing it. It restores the terminal
// before it returns, even if ctx ends.
func readSecret(ctx context.Context) (string, error) {
	fd := int(os.Stdin.Fd())
	state, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	type line struct {
		text []byte
		err  error
	}
	done := make(chan line, 1)
	go func() { // ends with the line, or with the process
		text, err := term.ReadPassword(fd)
		done <- line{text, err}
	}()
	select {
	case got := <-done:
		return string(got.text), got.err
	case <-ctx.Done():
		return "", errors.Join(context.Cause(ctx), term.Restore(fd, state))
	}
}

// UseMasker makes Masker return m, instead of a Masker of the secrets in the environment.
func (s *Streams) UseMasker(m *mask.Masker) { s.secrets.Store(m) }

// DivertInterrupts sends the user's Ctrl-C to c until the returned function is called. If a send
// on c would block, Ctrl-C ends the program as usual.
func (s *Streams) DivertInterrupts(c *chan os.Signal) (back func()) {
	s.diverted.Store(c)
	return func() { s.diverted.Store(nil) }
}

// Diverting reports whether Ctrl-C is diverted.
func (s *Streams) Diverting() bool { return s.diverted.Load() != nil }

// Divert sends a Ctrl-C to the channel of DivertInterrupts, and reports whether it did.
func (s *Streams) Divert(sig os.Signal) bool {
	c := s.diverted.Load()
	if c == nil || sig != os.Interrupt {
		return false
	}
	select {
	case *c <- sig:
		return true
	default: // it does not take them any more
		return false
	}
}

// drawable reports whether the terminal can move a cursor, according to $TERM.
func drawable() bool {
	kind := os.Getenv("TERM")
	return kind != "dumb" && (kind != "" || runtime.GOOS == "windows")
}

// Masker returns the Masker of the secrets that this run sends to servers. A server can repeat them
// wherever it writes: the program masks them in standard error, and commands that report on a
// server mask them in the report. The result of a call, read or prompt is printed unmasked.
func (s *Streams) Masker() *mask.Masker {
	if m := s.secrets.Load(); m != nil {
		return m
	}
	values := slices.DeleteFunc(mask.Environment(os.Environ(), nil), func(value string) bool {
		return mask.IsWord(value) || IsFile(value)
	})
	m := mask.New(&mask.Options{Values: values, Distinct: true})
	for _, line := range os.Environ() {
		if name, value, _ := strings.Cut(line, "="); strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
			_ = m.URL(value) // learns what it masks
		}
	}
	s.secrets.CompareAndSwap(nil, m)
	return s.secrets.Load()
}

// IsFile reports whether a value is an absolute path at which a file can be, such as a key file. Only its
// folder must exist: errors about a missing file should name it.
func IsFile(value string) bool {
	if !filepath.IsAbs(value) {
		return false
	}
	_, err := os.Stat(value)
	if dir := filepath.Dir(value); err != nil && dir != filepath.Dir(dir) {
		_, err = os.Stat(dir)
	}
	return err == nil
}
