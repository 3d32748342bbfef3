package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Times that a server process has.
const (
	// Grace is how long a server process may go on after the end of its input, and then after
	// it was asked to end by a signal, before it is killed.
	Grace = 2 * time.Second
	// drainTime is how long what an ended process left in its output is read, if another
	// process holds that open.
	drainTime = time.Second
	// pipeSize is the most that a pipe can hold.
	pipeSize = 1 << 20
)

// A Command is a server that is started as a process.
type Command struct {
	Name string
	Args []string
	// Dir is its working directory; default ours.
	Dir string
	// Env is its whole environment, as "key=value"; default ours.
	Env []string
	// Stderr gets what it writes on standard error, as it is; default nowhere.
	Stderr io.Writer
}

// An ExitError says that the server process ended although its input went on.
type ExitError struct{ Name, Status string }

// Error says how the process ended.
func (e *ExitError) Error() string {
	return fmt.Sprintf("server process %q ended (%s)", e.Name, e.Status)
}

// Run starts a server and passes lines between it and a client, as [Proxy.Pipe] does. When it
// returns the process has ended.
func (p *Proxy) Run(ctx context.Context, client Stream, c *Command) error {
	live, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	cmd := exec.CommandContext(live, c.Name, c.Args...)
	cmd.Dir, cmd.Env, cmd.Stderr = c.Dir, c.Env, c.Stderr
	cmd.WaitDelay = Grace
	cmd.Cancel = func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil { // not on Windows
			return cmd.Process.Kill()
		}
		return nil
	}
	in, out, err := start(cmd)
	if err != nil {
		return fmt.Errorf("starting %q: %w", c.Name, err)
	}
	exited := make(chan struct{})
	go func() { // waited for below
		defer close(exited)
		_ = cmd.Wait()                                     // cmd.ProcessState says the same
		_ = out.SetReadDeadline(time.Now().Add(drainTime)) // where unsupported, it ends with the last process that has it
	}()
	said := &endNoted{ReadCloser: client.In}
	client.In = said
	input := &processInput{WriteCloser: in, kill: kill}
	err = p.Pipe(ctx, client, Stream{In: &processOutput{out, pipeSize}, Out: input})
	<-exited
	input.timer.Stop() // Pipe has closed the input
	switch {
	case err != nil:
		return err
	case !cmd.ProcessState.Success() && !said.ended.Load():
		return &ExitError{c.Name, cmd.ProcessState.String()}
	}
	return nil
}

// An endNoted notes that a stream has ended.
type endNoted struct {
	io.ReadCloser

	ended atomic.Bool
}

// Read reads.
func (e *endNoted) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		e.ended.Store(true)
	}
	return n, err
}

// start starts a process with pipes of its own, which outlive it.
func start(cmd *exec.Cmd) (in io.WriteCloser, out *os.File, err error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, childIn.Close(), in.Close())
	}
	cmd.Stdin, cmd.Stdout = childIn, childOut
	err = cmd.Start()
	_, _ = childIn.Close(), childOut.Close() // the child has its own
	if err != nil {
		_, _ = in.Close(), out.Close() // nothing was written
		return nil, nil, err
	}
	return in, out, nil
}

// A processOutput is the standard output of a process. When that has ended, a deadline bounds the wait
// for the end of the stream, which others may hold open; what was in it by then is read all the
// same, however long that takes.
type processOutput struct {
	*os.File

	left int // what may still be read after the deadline
}

// Read reads on past the deadline as long as there is something to read.
func (o *processOutput) Read(p []byte) (int, error) {
	n, err := o.File.Read(p)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if o.left <= 0 {
		return 0, io.EOF
	}
	if err := o.SetReadDeadline(time.Now().Add(drainTime / 20)); err != nil {
		return 0, err
	}
	n, err = o.File.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	o.left -= n
	return n, err
}

// A processInput is the standard input of a process, which is to end when it is closed.
type processInput struct {
	io.WriteCloser

	kill  func()
	once  sync.Once
	timer *time.Timer // set by the first Close
}

// Close closes the input, and has the process killed if it does not end.
func (i *processInput) Close() error {
	i.once.Do(func() { i.timer = time.AfterFunc(Grace, i.kill) })
	return i.WriteCloser.Close()
}
