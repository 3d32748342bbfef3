package tasks_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport/streamable"
)

// An event is what a server process says: what happened, in the call with a number.
//
//	listening  it serves; value is its address
//	start      a handler was begun
//	conflict   another one runs for the same call
//	ticket     what server.Once gave
//	late       what it gave after the gate
//	stopped    the context of the handler ended before it; value is the cause
//	end        the handler returns
type event struct {
	what  string
	n     int
	pid   int
	value string
}

// servers are processes that serve the tasks of one database.
type servers struct {
	t     *testing.T
	dsn   string
	files string
	lease time.Duration

	mu     sync.Mutex
	events []event
	more   chan struct{} // closed at the next event
}

// newServers has no process yet.
func newServers(t *testing.T, dsn string, lease time.Duration) *servers {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("processes are not stopped, and files not locked, on this system")
	}
	s := &servers{t: t, dsn: dsn, files: t.TempDir(), lease: lease, more: make(chan struct{})}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, e := range s.events {
			t.Log(e)
		}
		if log, err := os.ReadFile(s.log()); err == nil {
			t.Logf("the processes logged:\n%s", log[max(0, len(log)-20_000):])
		}
	})
	return s
}

func (s *servers) log() string { return filepath.Join(s.files, "log") }

// A process is one server.
type process struct {
	s     *servers
	child *exec.Cmd
	stdin io.Closer
	gone  chan struct{} // closed when it has ended
	addr  string
}

func (p *process) pid() int { return p.child.Process.Pid }

// start starts a server and waits until it listens.
func (s *servers) start(ctx context.Context) *process {
	s.t.Helper()
	child := exec.CommandContext(context.WithoutCancel(ctx), os.Args[0])
	child.Env = append(os.Environ(), serveEnv+"="+s.dsn, filesEnv+"="+s.files, leaseEnv+"="+s.lease.String())
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	child.Stderr = log
	in, err1 := child.StdinPipe()
	out, err2 := child.StdoutPipe()
	for _, err := range []error{err1, err2, child.Start()} {
		if err != nil {
			s.t.Fatal(err)
		}
	}
	p := &process{s: s, child: child, stdin: in, gone: make(chan struct{})}
	go p.read(out)
	s.t.Cleanup(p.kill)
	p.addr = s.await(ctx, "listening", 0, p.pid()).value
	return p
}

// read collects what a process says until it ends.
func (p *process) read(out io.Reader) {
	defer close(p.gone)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var e event
		if _, err := fmt.Sscanf(lines.Text(), "%s %d %d %q", &e.what, &e.n, &e.pid, &e.value); err != nil {
			p.s.t.Errorf("a server says %q: %v", lines.Text(), err)
			continue
		}
		p.s.mu.Lock()
		p.s.events = append(p.s.events, e)
		close(p.s.more)
		p.s.more = make(chan struct{})
		p.s.mu.Unlock()
	}
	_ = p.child.Wait() // its state is in child
}

// kill ends the process without a warning.
func (p *process) kill() {
	_ = p.child.Process.Kill() // it may have ended
	<-p.gone
}

// shutdown has the process end in good order.
func (p *process) shutdown() {
	p.s.t.Helper()
	_ = p.stdin.Close() // it may have ended
	select {
	case <-p.gone:
	case <-time.After(patience):
		p.s.t.Error("a server does not shut down")
		p.kill()
	}
	if !p.child.ProcessState.Success() {
		p.s.t.Errorf("a server ended with %v", p.child.ProcessState)
	}
}

// saw reports whether there is an event of a kind; pid may be 0 for that of any process.
func (s *servers) saw(what string, n, pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.find(what, n, pid)
	return ok
}

// find is the first event of a kind. The lock is held.
func (s *servers) find(what string, n, pid int) (event, bool) {
	i := slices.IndexFunc(s.events, func(e event) bool { return e.what == what && e.n == n && (e.pid == pid || pid == 0) })
	if i < 0 {
		return event{}, false
	}
	return s.events[i], true
}

// await waits for an event.
func (s *servers) await(ctx context.Context, what string, n, pid int) event {
	s.t.Helper()
	for {
		s.mu.Lock()
		e, ok := s.find(what, n, pid)
		more := s.more
		s.mu.Unlock()
		if ok {
			return e
		}
		select {
		case <-more:
		case <-ctx.Done():
			s.t.Fatalf("no %q of call %d in process %d: %v", what, n, pid, context.Cause(ctx))
		}
	}
}

// open opens the gate of a call.
func (s *servers) open(n int) {
	s.t.Helper()
	if err := os.WriteFile(gate(s.files, n), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// patience ends a test that hangs; nothing else lasts so long, on a busy machine either.
const patience = 8 * time.Minute

// within is a context that ends a test that hangs.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, fmt.Errorf("nothing came within %v", patience))
	t.Cleanup(cancel)
	return ctx
}

// connect is a client of the server at an address, which may change, that answers
// questions.
func (s *servers) connect(ctx context.Context, addr func() string, o client.Options) *client.Client {
	s.t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr())
	}}
	s.t.Cleanup(transport.CloseIdleConnections)
	if o.Extensions == nil {
		o.Extensions = []client.Extension{tasks.Client(nil)}
	}
	o.OnElicit = func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return client.Accept(naming{nameOf(r.Params.Message)})
	}
	c, err := client.Connect(ctx, &streamable.Dialer{URL: "http://127.0.0.1:1/mcp", Client: &http.Client{Transport: transport}}, &o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// at is a client of one process.
func (p *process) at(ctx context.Context) *client.Client {
	p.s.t.Helper()
	return p.s.connect(ctx, func() string { return p.addr }, client.Options{})
}

// An outcome is what a task came to.
type outcome struct{ result, fault string }

// wait waits for the end of a task.
func wait(ctx context.Context, h *tasks.Handle[string]) outcome {
	result, err := h.Wait(ctx)
	if err != nil {
		return outcome{fault: err.Error()}
	}
	return outcome{result: result}
}

// right tests what the task of a call of work came to.
func right(t *testing.T, tool string, n int, got outcome) {
	t.Helper()
	lost := tool == "fragile" && strings.Contains(got.fault, "the tool is not marked as repeatable, so it was not run again")
	if got != (outcome{result: done(n)}) && (got.result != "" || !lost) {
		t.Errorf("%s %d came to %+v", tool, n, got)
	}
}
