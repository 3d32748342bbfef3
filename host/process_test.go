//go:build unix

package host_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/stdio"
)

// Variables that make the test binary another program.
const (
	roleVar   = "PARLEY_HOST_ROLE"
	socketVar = "PARLEY_HOST_SOCKET" // is connected to for as long as the process lives
)

// patience ends a test that hangs; nothing else lasts so long, on a busy machine either.
const patience = 5 * time.Minute

// alive is the connection to the socket: one that nothing refers to ends with a garbage collection.
var alive net.Conn

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		os.Exit(m.Run())
	}
	if socket := os.Getenv(socketVar); socket != "" && role != "host" {
		var err error
		if alive, err = net.Dial("unix", socket); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	if err := play(role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(0)
}

// play is the program of a role.
func play(role string) error {
	ctx := context.Background()
	switch role {
	case "serve":
		return stdio.Serve(ctx, childServer())
	case "exit":
		return errors.New("no license")
	case "hang":
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	case "half":
		_, _ = io.WriteString(os.Stdout, `{"jsonrpc":"2.0",`)
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	case "host":
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
		defer stop()
		h := host.New(nil)
		for i, role := range []string{"serve", "serve", "hang"} {
			if err := h.Add(host.Server{Name: strconv.Itoa(i), Dialer: child(role, os.Getenv(socketVar))}); err != nil {
				return err
			}
		}
		h.Catalog()
		for _, name := range []string{"0", "1"} {
			if _, err := h.Client(ctx, name); err != nil {
				return err
			}
		}
		fmt.Println("ready")
		<-ctx.Done()
		return h.Close()
	}
	return fmt.Errorf("no role %q", role)
}

// childServer is what a child serves: "pid" says which process it is, and "wait"
// returns when "release" is called.
func childServer() *server.Server {
	s := server.New("child", "1", nil)
	released := make(chan struct{})
	s.Add(
		server.Tool("pid", "Tells the process.", func(context.Context, mcp.None) (string, error) { return strconv.Itoa(os.Getpid()), nil }),
		server.Tool("wait", "Waits.", func(ctx context.Context, _ mcp.None) (string, error) {
			_ = server.Progress(ctx, 1, 2, "waiting")
			select {
			case <-released:
				return "released", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}),
		server.Tool("release", "Lets wait return.", func(context.Context, mcp.None) (string, error) { close(released); return "", nil }),
	)
	return s
}

// child is a dialer that starts this binary in a role.
func child(role, socket string) *stdio.CommandDialer {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	d := stdio.Command(self)
	d.ExtraEnv = []string{roleVar + "=" + role, socketVar + "=" + socket, "GORACE=atexit_sleep_ms=0"}
	return d
}

// A census counts processes that connect to its socket when they start, and whose
// connections end with them.
type census struct {
	socket string
	ln     net.Listener
	ended  chan struct{}
	wg     sync.WaitGroup
}

func newCensus(t *testing.T) *census {
	t.Helper()
	c := &census{socket: filepath.Join(t.TempDir(), "s"), ended: make(chan struct{}, 10_000)}
	var err error
	if c.ln, err = net.Listen("unix", c.socket); err != nil {
		t.Fatal(err)
	}
	c.wg.Go(func() {
		for {
			conn, err := c.ln.Accept()
			if err != nil {
				return
			}
			c.wg.Go(func() {
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
				c.ended <- struct{}{}
			})
		}
	})
	return c
}

// expect waits for the end of n processes.
func (c *census) expect(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		select {
		case <-c.ended:
		case <-time.After(patience):
			t.Fatalf("%d of %d processes have not ended", n-i, n)
		}
	}
}

// none waits for the end of all.
func (c *census) none(t *testing.T) {
	t.Helper()
	_ = c.ln.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.wg.Wait()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Error("processes are left")
	}
}

// rounds is how often a host is opened and closed; make soak asks for more.
func rounds(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("PARLEY_TEST_ROUNDS"), "10"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Proves: FLOW-SHUTDOWN. A host that is closed leaves no process, whether its servers
// are ready, are starting, or hang.
func TestRoundsOfClose(t *testing.T) {
	mcptest.NoLeaks(t)
	c := newCensus(t)
	defer c.none(t)
	for i := range rounds(t) {
		h := host.New(nil)
		for _, role := range []string{"serve", "serve", "hang", "half", "exit"} {
			d := child(role, c.socket)
			d.Grace = stdio.Grace{Close: 20 * time.Second, Term: 20 * time.Second} // no child needs it
			if err := h.Add(host.Server{Name: fmt.Sprint(len(h.Servers())), Dialer: d}); err != nil {
				t.Fatal(err)
			}
		}
		h.Catalog()
		if i%2 == 0 { // else while they start
			for _, name := range []string{"0", "1"} {
				if _, err := h.Client(t.Context(), name); err != nil {
					t.Error(err)
				}
			}
		}
		closing(t, h)
	}
}

// Proves: FLOW-SHUTDOWN. A host process that is ended leaves no process either, also
// when it is killed.
func TestRoundsOfSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			mcptest.NoLeaks(t)
			c := newCensus(t)
			defer c.none(t)
			for range rounds(t) {
				endHost(t, c, sig)
			}
		})
	}
}

// endHost starts a process with a host of three servers, and ends it by a signal.
func endHost(t *testing.T, c *census, sig syscall.Signal) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"=host", socketVar+"="+c.socket, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		t.Errorf("the host says %q, %v", line, err)
	}
	if err := cmd.Process.Signal(sig); err != nil {
		t.Error(err)
	}
	err = cmd.Wait()
	if sig == syscall.SIGTERM && err != nil {
		t.Errorf("the host ended with %v", err)
	}
	c.expect(t, 2) // the third may not have connected yet
}

// tool calls a tool without arguments.
func tool(t *testing.T, h *host.Host, name, tool string) (string, error) {
	t.Helper()
	c, err := h.Client(t.Context(), name)
	if err != nil {
		return "", err
	}
	r, err := c.CallTool(t.Context(), tool, nil, nil)
	if err != nil {
		return "", err
	}
	return host.ContentText(r.Content[0]), nil
}

// A process that is killed in the middle of a call: the call fails and says why, calls
// at others go on, and the server is back by itself as another process.
func TestServerIsKilledInACall(t *testing.T) {
	mcptest.NoLeaks(t)
	h := host.New(nil)
	defer closing(t, h)
	for _, name := range []string{"one", "two"} {
		if err := h.Add(host.Server{Name: name, Dialer: child("serve", "")}); err != nil {
			t.Fatal(err)
		}
	}
	var errs [2]chan error
	for i, name := range []string{"one", "two"} {
		c, err := h.Client(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		errs[i] = make(chan error, 1)
		runs := make(chan struct{}, 1)
		go func() {
			_, err := c.CallTool(t.Context(), "wait", nil, &client.CallOptions{OnProgress: func(float64, float64, string) { runs <- struct{}{} }})
			errs[i] <- err
		}()
		<-runs
	}
	text, err := tool(t, h, "one", "pid")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err = <-errs[0]
	if !errors.Is(err, transport.ErrInterrupted) || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("the call at the server that was killed: %v", err)
	}
	ready(t, h, "one", 2)
	if text, err = tool(t, h, "one", "pid"); err != nil || text == strconv.Itoa(pid) {
		t.Errorf("the process afterwards is %s: %v", text, err)
	}
	if _, err := tool(t, h, "two", "release"); err != nil {
		t.Error(err)
	}
	if err := <-errs[1]; err != nil {
		t.Errorf("the call at the other server: %v", err)
	}
	if s := status(t, h, "two"); s.Starts != 1 || s.State != host.StateReady {
		t.Errorf("the other server is %+v", s)
	}
}

// ready waits until a server is ready by its own doing, after a number of starts.
func ready(t *testing.T, h *host.Host, name string, starts int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for since := uint64(0); ; {
		c, err := h.WatchServers(ctx, since)
		if err != nil {
			t.Fatalf("server %s is %+v: %v", name, status(t, h, name), err)
		}
		since = c.Generation
		if s := status(t, h, name); s.State == host.StateReady && s.Starts == starts {
			return
		}
	}
}

// Twenty servers, most of them processes, five dead and five hung: the others can be
// used meanwhile.
func TestManyProcesses(t *testing.T) {
	mcptest.NoLeaks(t)
	h := host.New(nil)
	defer closing(t, h)
	ran := 0
	inProcess := serverOf(t, echo("pid", &ran))
	dialers := map[string]func(i int) transport.Dialer{
		"mem":  func(int) transport.Dialer { return mem.New(inProcess, nil) },
		"good": func(int) transport.Dialer { return child("serve", "") },
		"dead": func(i int) transport.Dialer {
			if i%2 == 0 {
				return child("exit", "")
			}
			return stdio.Command("no-such-program-anywhere")
		},
		"hung": func(i int) transport.Dialer {
			if i%2 == 0 {
				return child("half", "")
			}
			return child("hang", "")
		},
	}
	for kind, dialer := range dialers {
		for i := range 5 {
			if err := h.Add(host.Server{Name: fmt.Sprint(kind, i), Dialer: dialer(i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	h.Catalog()
	for i := range 5 {
		ready(t, h, fmt.Sprint("mem", i), 1)
		ready(t, h, fmt.Sprint("good", i), 1)
		if _, err := tool(t, h, fmt.Sprint("good", i), "pid"); err != nil {
			t.Error(err)
		}
		_, err := h.Client(t.Context(), fmt.Sprint("dead", i))
		var se *host.ServerError
		if !errors.As(err, &se) {
			t.Errorf("a dead server: %v", err)
		}
	}
	c := h.Catalog()
	if len(c.Tools) != 5*1+5*3 || len(c.Down) != 10 {
		t.Errorf("%d tools, %d servers down", len(c.Tools), len(c.Down))
	}
	for _, s := range c.Servers {
		switch s.Name[:4] {
		case "dead":
			if s.Err == nil || s.State == host.StateReady {
				t.Errorf("dead: %+v", s)
			}
		case "hung":
			if s.State != host.StateStarting || s.Starts != 1 {
				t.Errorf("hung: %+v", s)
			}
		}
	}
}
