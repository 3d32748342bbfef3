package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startTime = 30 * time.Second // for a child to say hello
	stopTime  = 5 * time.Second  // for a child to end by itself
)

// A Program is what Start starts.
type Program struct {
	// Path is the program; Args are its arguments without its name.
	Path string
	Args []string
	// Dir is its working directory. Default: the driver's.
	Dir string
	// Env is added to the driver's environment.
	Env []string
	// Stdio keeps the standard input and output of the child for the driver:
	// In and Out of the Child.
	Stdio bool
	// Foreign is a program without the channel: it says no hello, and of what it has
	// used only the time of processors is known.
	Foreign bool
}

// A Child is a process that is measured. Its methods have one caller at a time.
type Child struct {
	// Addr is where it listens, if it does.
	Addr string
	// In and Out are its standard input and output, if the driver asked for them.
	In, Out *os.File

	cmd      *exec.Cmd
	foreign  bool
	requests *os.File
	answers  *os.File
	enc      *json.Encoder
	dec      *json.Decoder
	errs     tail
	ended    chan struct{}
	err      error // how it ended; read after ended is closed
}

// Start starts a program and waits for its hello. The caller stops it.
func Start(ctx context.Context, p Program) (*Child, error) {
	// It ends with its channel, so that its last answers can still be read.
	c := &Child{cmd: exec.CommandContext(context.WithoutCancel(ctx), p.Path, p.Args...), ended: make(chan struct{}), foreign: p.Foreign}
	c.cmd.Dir = p.Dir
	c.cmd.Env = append(os.Environ(), p.Env...)
	c.cmd.Stderr = &c.errs
	if err := c.launch(p.Stdio); err != nil {
		c.close()
		return nil, fmt.Errorf("start %s: %w", p.Path, err)
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	if p.Foreign {
		return c, nil
	}
	if err := c.greet(ctx); err != nil {
		err = fmt.Errorf("start %s: no hello: %w", p.Path, err)
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// launch makes the pipes and starts the process, which gets their other ends.
func (c *Child) launch(stdio bool) (err error) {
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	requests, toChild := pipe()
	fromChild, answers := pipe()
	c.requests, c.answers = toChild, fromChild
	theirs = append(theirs, requests, answers)
	if stdio {
		in, toIn := pipe()
		fromOut, out := pipe()
		c.In, c.Out = toIn, fromOut
		theirs = append(theirs, in, out)
		c.cmd.Stdin, c.cmd.Stdout = in, out
	}
	if err != nil {
		return err
	}
	c.cmd.ExtraFiles = []*os.File{requests, answers}
	c.enc, c.dec = json.NewEncoder(c.requests), json.NewDecoder(c.answers)
	return c.cmd.Start()
}

// greet waits for the hello.
func (c *Child) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = c.answers.SetReadDeadline(time.Now()) })
	defer stop()
	var h Hello
	if err := c.dec.Decode(&h); err != nil {
		return err
	}
	c.Addr = h.Addr
	return nil
}

// Pid is the number of its process.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Stats tells what the child has used so far.
func (c *Child) Stats() (Stats, error) { return c.stats(OpStats) }

// Settled tells the same after a collection of garbage.
func (c *Child) Settled() (Stats, error) { return c.stats(OpGC) }

func (c *Child) stats(op string) (Stats, error) {
	if c.foreign {
		return c.scheduled()
	}
	a, err := c.ask(Request{Op: op})
	if err != nil {
		return Stats{}, err
	}
	if a.Stats == nil {
		return Stats{}, fmt.Errorf("control: %s: no stats in the answer", op)
	}
	return *a.Stats, nil
}

// scheduled is what is known of a child without the channel.
func (c *Child) scheduled() (s Stats, err error) {
	used, err := ThreadsTime(c.Pid())
	if err == nil && used == 0 {
		err = fmt.Errorf("%s has used no processor, as the kernel says", c.cmd.Path)
	}
	s.CPU = used.Microseconds()
	return s, err
}

// ThreadsTime is the time that the threads of a process had processors for, as the kernel counts
// it (proc(5): schedstat). That of threads that have ended is not in it; Go's programs keep theirs.
func ThreadsTime(pid int) (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, file := range files {
		data, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			return 0, err
		}
		spent, _, _ := strings.Cut(string(data), " ")
		ns, err := strconv.ParseInt(spent, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}

// Run has a child that measures itself make so many calls.
func (c *Child) Run(calls, concurrency int) (Ran, error) {
	a, err := c.ask(Request{Op: OpRun, Calls: calls, Concurrency: concurrency})
	if err != nil {
		return Ran{}, err
	}
	if a.Ran == nil {
		return Ran{}, errors.New("control: run: no figures in the answer")
	}
	return *a.Ran, nil
}

func (c *Child) ask(r Request) (a answer, err error) {
	if err = c.enc.Encode(r); err == nil {
		err = c.dec.Decode(&a)
	}
	switch {
	case err != nil:
		return a, fmt.Errorf("control: %s: %w\n%s", r.Op, err, c.errs.text())
	case a.Error != "":
		return a, fmt.Errorf("control: %s: %s", r.Op, a.Error)
	}
	return a, nil
}

// PeakRSS is the most memory that the child had at once since it began, or since
// ResetPeak, in bytes.
func (c *Child) PeakRSS() (int64, error) { return c.status("VmHWM:") }

// RSS is the memory that the child has now, in bytes.
func (c *Child) RSS() (int64, error) { return c.status("VmRSS:") }

func (c *Child) status(field string) (int64, error) {
	data, err := os.ReadFile(c.proc("status"))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(data) {
		rest, ok := bytes.CutPrefix(line, []byte(field))
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
		return kib << 10, err
	}
	return 0, fmt.Errorf("no %s in %s", field, c.proc("status"))
}

// ResetPeak makes PeakRSS begin anew.
func (c *Child) ResetPeak() error {
	return os.WriteFile(c.proc("clear_refs"), []byte("5"), 0) // proc(5): 5 resets the peak
}

func (c *Child) proc(file string) string {
	return fmt.Sprintf("/proc/%d/%s", c.cmd.Process.Pid, file)
}

// Stop ends the child: it closes its channel and its input, and kills it if
// that does not help. It returns once the process is gone, with what it said
// if it ended badly.
func (c *Child) Stop() error {
	c.close()
	select {
	case <-c.ended:
	case <-time.After(stopTime):
		_ = c.cmd.Process.Kill()
		<-c.ended
		return fmt.Errorf("%s: killed: it did not end with its channel\n%s", c.cmd.Path, c.errs.text())
	}
	if c.err != nil {
		return fmt.Errorf("%s: %w\n%s", c.cmd.Path, c.err, c.errs.text())
	}
	return nil
}

func (c *Child) close() {
	for _, f := range []*os.File{c.requests, c.answers, c.In, c.Out} {
		_ = f.Close() // of nil: os.ErrInvalid
	}
}

// A tail keeps the end of what a child says on its standard error.
type tail struct {
	mu   sync.Mutex
	data []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if over := len(t.data) - tailSize; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data)
}
