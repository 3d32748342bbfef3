package stdio

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/tap"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/frame"
)

// A CommandDialer starts a server as a child process and talks to it over its
// standard streams. Each Dial starts a process of its own. Its fields may be
// set before the first Dial.
type CommandDialer struct {
	// Name is the program, a path or a name to be found in PATH; Args are its
	// arguments. No shell is involved.
	Name string
	Args []string
	// Dir is the working directory. Default: ours.
	Dir string
	// Env is the whole environment of the child, as "key=value". Default: what
	// programs need to run at all, taken from ours: PATH, HOME, USER, LOGNAME,
	// SHELL, TERM, LANG, LANGUAGE, LC_*, TZ, TMPDIR, XDG_*, and on Windows
	// what the system needs. Secrets in our environment stay with us.
	Env []string
	// ExtraEnv is added to Env or to its default.
	ExtraEnv []string
	// Stderr gets each line of the child's standard error, bounded in length
	// and with control characters escaped. A slow Stderr slows the child.
	// Default: Logger, at level info.
	Stderr io.Writer
	// Logger is told what the child says on standard error, and what it does
	// wrong. Default: none.
	Logger *slog.Logger
	// Grace is how long the child gets to end.
	Grace Grace
	// Tap is shown what each link carries, and what the child writes on
	// standard error. Default: none, which costs nothing.
	Tap transport.Tap
	// Options adjust the connection; nil gives the defaults.
	Options *Options
}

// Grace is how long a child process gets to end, step by step. The end of the
// context of Link.Close cuts it short, and a client that gives up on a server
// which never answered gives it none.
type Grace struct {
	// Close is the time between closing the child's standard input and
	// SIGTERM. Default: 2 s.
	Close time.Duration
	// Term is the time between SIGTERM and SIGKILL. Default: 2 s.
	Term time.Duration
}

// DefaultGrace is each step of Grace where nothing else is said.
const DefaultGrace = 2 * time.Second

var _ transport.Dialer = (*CommandDialer)(nil)

// Command returns a dialer for the program name with args.
func Command(name string, args ...string) *CommandDialer {
	return &CommandDialer{Name: name, Args: args}
}

// Key is the command line, the directory, and a digest of the environment
// that was asked for.
func (d *CommandDialer) Key() string {
	var key strings.Builder
	key.WriteString("command:" + strconv.Quote(d.Name))
	for _, a := range d.Args {
		key.WriteString(" " + strconv.Quote(a))
	}
	if d.Dir != "" {
		key.WriteString(" in " + strconv.Quote(d.Dir))
	}
	if d.Env != nil || d.ExtraEnv != nil {
		h := sha256.New()
		for _, e := range slices.Concat(d.Env, []string{""}, d.ExtraEnv) {
			_, _ = io.WriteString(h, strconv.Quote(e)) // a hash takes everything
		}
		key.WriteString(" with " + hex.EncodeToString(h.Sum(nil)[:8]))
	}
	return key.String()
}

// Dial starts the process. The end of ctx after Dial has returned does not
// concern it.
func (d *CommandDialer) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	show := tap.Link(d.Tap)
	c, err := d.start(show)
	if err != nil {
		return nil, err
	}
	opts := d.Options.orZero()
	opts.Logger = cmp.Or(opts.Logger, d.Logger)
	f := opts.frame()
	f.Tap = show
	return &childLink{Link: frame.Dial(c, in, f), child: c}, nil
}

// start starts the process and everything that watches it. What happens to it
// is shown to show, which may be nil.
func (d *CommandDialer) start(show transport.Tap) (*child, error) {
	cmd := exec.Command(d.Name, d.Args...) //nolint:noctx // a link outlives the dialling context
	cmd.Dir = d.Dir
	cmd.Env = d.environ()
	ownGroup(cmd)
	p, err := newPipes()
	if err != nil {
		return nil, fmt.Errorf("starting %q: %w", d.Name, err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.childIn, p.childOut, p.childErr
	began := time.Now()
	err = cmd.Start()
	p.closeChild()
	if show != nil {
		e := transport.TapEvent{Kind: transport.TapStep, Name: transport.StepProcess, Took: time.Since(began), Err: err}
		if err == nil {
			e.Detail = strconv.Itoa(cmd.Process.Pid)
		}
		show(e)
	}
	if err != nil {
		p.closeParent()
		return nil, d.adviceFor(err)
	}
	opts := d.Options.orZero()
	c := &child{
		name: d.Name,
		cmd:  cmd,
		grace: Grace{
			Close: cmp.Or(d.Grace.Close, DefaultGrace),
			Term:  cmp.Or(d.Grace.Term, DefaultGrace),
		},
		pipes:        p,
		in:           newLines(&exitReader{f: p.in, left: pipeSize}, cmp.Or(opts.MaxMessage, frame.DefaultMaxResponse)),
		out:          lineWriter{w: p.out},
		stderr:       d.newStderr(),
		tap:          show,
		exited:       make(chan struct{}),
		graceSkipped: make(chan struct{}),
		done:         make(chan struct{}),
	}
	c.skipGrace = sync.OnceFunc(func() { close(c.graceSkipped) })
	c.stop = sync.OnceFunc(func() { go c.end() }) // closes c.done
	c.watch()
	return c, nil
}

func (d *CommandDialer) newStderr() *stderr {
	return &stderr{
		name: d.Name,
		w:    d.Stderr,
		log:  cmp.Or(d.Logger, slog.New(slog.DiscardHandler)),
	}
}

// adviceFor says what a person can do about a process that did not start.
func (d *CommandDialer) adviceFor(err error) error {
	advice := ""
	notThere := errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
	words := strings.Fields(d.Name)
	for i, w := range words {
		words[i] = strconv.Quote(w)
	}
	switch {
	case errors.Is(err, exec.ErrDot):
		advice = "; write ./ before the name to run a program of the current directory"
	case d.Dir != "" && !isDir(d.Dir):
		advice = fmt.Sprintf("; the working directory %q does not exist", d.Dir)
	case notThere && len(words) > 1:
		advice = fmt.Sprintf("; arguments go apart from the name: Command(%s)", strings.Join(words, ", "))
	case notThere:
		advice = "; install it, or give the full path to the program"
	case errors.Is(err, fs.ErrPermission):
		advice = "; make the file executable (chmod +x)"
	}
	return fmt.Errorf("starting %q: %w%s", d.Name, err, advice)
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// pipes are the two ends of the three standard streams of a child.
type pipes struct {
	childIn, childOut, childErr *os.File
	out, in, err                *os.File // ours: to its stdin, from its stdout and stderr
}

func newPipes() (*pipes, error) {
	var p pipes
	var e [3]error
	p.childIn, p.out, e[0] = os.Pipe()
	p.in, p.childOut, e[1] = os.Pipe()
	p.err, p.childErr, e[2] = os.Pipe()
	if err := errors.Join(e[:]...); err != nil {
		p.closeChild()
		p.closeParent()
		return nil, err
	}
	return &p, nil
}

func (p *pipes) closeChild() { closeAll(p.childIn, p.childOut, p.childErr) }

func (p *pipes) closeParent() { closeAll(p.out, p.in, p.err) }

// closeAll closes what is open; the errors of pipes say nothing of use.
func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
