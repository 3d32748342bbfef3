//go:build unix

package stdio_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
)

// patience ends a test that hangs; nothing else lasts so long, on a busy machine either.
const patience = 5 * time.Minute

// next takes one message.
func next(t *testing.T, in *linktest.Inbox) *jsonrpc.Incoming {
	t.Helper()
	select {
	case m := <-in.Messages:
		return m
	case err := <-in.Ended:
		t.Fatalf("the link ended: %v", err)
	case <-time.After(patience):
		t.Fatal("nothing arrived")
	}
	return nil
}

func dial(t *testing.T, d transport.Dialer) (transport.Link, *linktest.Inbox) {
	t.Helper()
	in := linktest.NewInbox()
	link, err := d.Dial(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hangUp(t, link) })
	return link, in
}

func hangUp(t *testing.T, link transport.Link) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := link.Close(ctx); err != nil {
		t.Errorf("closing: %v", err)
	}
	if ctx.Err() != nil {
		t.Error("closing took all the time there was")
	}
}

func ask(ctx context.Context, link transport.Link, method string) (*jsonrpc.Incoming, error) {
	return link.Do(ctx, &jsonrpc.Outgoing{ID: jsonrpc.IntID(1), Method: method, Params: jsonrpc.Empty()}, transport.Route{})
}

// Proves: FLOW-SHUTDOWN. A child that heeds neither the end of its input nor
// SIGTERM is killed, and reaped, in the time that it was given.
func TestLadder(t *testing.T) {
	mcptest.NoLeaks(t)
	d := command("stubborn")
	d.Grace = stdio.Grace{Close: 20 * time.Millisecond, Term: 20 * time.Millisecond}
	link, in := dial(t, d)
	if m := next(t, in); m.Method != "ready" {
		t.Fatalf("%s arrived", m.Method)
	}
	hangUp(t, link)
	if err := <-in.Ended; !errors.Is(err, transport.ErrClosed) {
		t.Errorf("the inbox was told %v, want ErrClosed", err)
	}
}

// Proves: FLOW-SHUTDOWN. The end of Close's context makes it impolite.
func TestLadderCutShort(t *testing.T) {
	mcptest.NoLeaks(t)
	d := command("stubborn")
	d.Grace = stdio.Grace{Close: time.Hour, Term: time.Hour}
	link, in := dial(t, d)
	next(t, in)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = link.Close(ctx) // returns at all: the grace is two hours
	if err := <-in.Ended; !errors.Is(err, transport.ErrClosed) {
		t.Errorf("the inbox was told %v, want ErrClosed", err)
	}
}

// Proves: FLOW-SHUTDOWN. What the server started ends with it.
func TestGrandchild(t *testing.T) {
	mcptest.NoLeaks(t)
	socket := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	link, _ := dial(t, command("parent", "SOCKET="+socket))
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	if line, err := r.ReadString('\n'); line != "alive\n" {
		t.Fatalf("the grandchild said %q, %v", line, err)
	}
	hangUp(t, link)
	if _, err := r.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the grandchild still has its connection: %v", err)
	}
}

// Proves: FLOW-SHUTDOWN. Who gives up on a server that never spoke does not
// wait for it to end, and nothing of it is left.
func TestConnectGivesUp(t *testing.T) {
	mcptest.NoLeaks(t)
	t.Run("context", func(t *testing.T) {
		if !givesUp(t, nil) {
			t.Error("connecting ended before its context")
		}
	})
	t.Run("timeout", func(t *testing.T) {
		limit := time.Second // must be longer than the start takes, which nobody knows
		for !givesUp(t, &client.Options{CallTimeout: limit, Versions: []string{"2025-11-25"}}) {
			limit *= 2
		}
	})
}

// givesUp connects to a server that says nothing, until its context ends or, with
// options, by a timeout. It reports whether the server had started by then.
func givesUp(t *testing.T, opts *client.Options) (started bool) {
	t.Helper()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(t.TempDir(), "s")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	d := command("hush", "SOCKET="+ln.Addr().String())
	d.Grace = stdio.Grace{Close: time.Hour, Term: time.Hour}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := client.Connect(ctx, d, opts)
		_ = ln.SetDeadline(time.Unix(1, 0)) // who has not come by now does not come any more
		done <- err
	}()
	c, err := ln.Accept()
	if started = err == nil; started {
		defer func() { _ = c.Close() }()
		if opts == nil {
			cancel()
		}
	}
	if err := <-done; !errors.Is(err, context.Canceled) && !errors.Is(err, client.ErrTimeout) {
		t.Fatalf("connecting: %v", err)
	}
	if !started {
		return false
	}
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the grandchild still has its connection: %v", err)
	}
	return true
}

// A child that floods standard error before it serves is read all the same.
func TestFlood(t *testing.T) {
	mcptest.NoLeaks(t)
	var said lineCounter
	d := command("flood")
	d.Stderr = &said
	link, _ := dial(t, d)
	if _, err := ask(t.Context(), link, "kit/echo"); err != nil {
		t.Fatal(err)
	}
	hangUp(t, link)
	if said.longest > 5<<10 || said.lines < 300 {
		t.Errorf("%d lines of up to %d bytes were passed on, want all of them, each cut", said.lines, said.longest)
	}
}

type lineCounter struct{ lines, longest int }

func (l *lineCounter) Write(p []byte) (int, error) {
	l.lines++
	l.longest = max(l.longest, len(p))
	return len(p), nil
}

// The error of a request whose server died says what the person has to know.
func TestDeath(t *testing.T) {
	mcptest.NoLeaks(t)
	for role, want := range map[string][]string{
		"die":   {"exit status 3", `npx: not \x1b[31mfound`, "may have run"},
		"kill":  {"signal: killed", "may have run"},
		"panic": {"exit status 2", "panic: no license", "may have run"},
	} {
		link, in := dial(t, command(role))
		_, err := ask(t.Context(), link, "kit/echo")
		var exit *stdio.ExitError
		if !errors.Is(err, transport.ErrInterrupted) || !errors.As(err, &exit) {
			t.Errorf("%s: %v, want ErrInterrupted and an ExitError", role, err)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", role, err, part)
			}
		}
		if err := <-in.Ended; !errors.As(err, &exit) || !errors.Is(err, transport.ErrClosed) {
			t.Errorf("%s: the inbox was told %v", role, err)
		}
		if _, err := ask(t.Context(), link, "kit/echo"); !errors.Is(err, transport.ErrClosed) || errors.Is(err, transport.ErrInterrupted) {
			t.Errorf("%s: a request after the end: %v, want ErrClosed and not ErrInterrupted", role, err)
		}
	}
}

// What a child wrote before it ended by itself is all read.
func TestFarewell(t *testing.T) {
	mcptest.NoLeaks(t)
	_, in := dial(t, command("farewell"))
	err := <-in.Ended
	var exit *stdio.ExitError
	if !errors.As(err, &exit) || exit.Status != "exit status 0" {
		t.Errorf("the inbox was told %v, want exit status 0", err)
	}
	if n := len(in.Messages); n != 50 {
		t.Errorf("%d messages arrived, want 50", n)
	}
}

// A program that does not start gives an error that says what to do.
func TestStartErrors(t *testing.T) {
	mcptest.NoLeaks(t)
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	lost := stdio.Command("sh")
	lost.Dir = filepath.Join(t.TempDir(), "nowhere")
	for _, test := range []struct {
		d    *stdio.CommandDialer
		want string
	}{
		{stdio.Command("no-such-program-anywhere"), "install it"},
		{stdio.Command("/no/such/program"), "install it"},
		{stdio.Command("./hello --flag x"), `arguments go apart from the name: Command("./hello", "--flag", "x")`},
		{stdio.Command(plain), "chmod +x"},
		{lost, "working directory"},
	} {
		_, err := test.d.Dial(t.Context(), linktest.NewInbox())
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.d.Name) {
			t.Errorf("%s: error %v, want one that names it and says %q", test.d.Name, err, test.want)
		}
	}
	if _, err := stdio.Command("no-such-program-anywhere").Dial(t.Context(), linktest.NewInbox()); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("error %v is not exec.ErrNotFound", err)
	}
}

// A child gets no variable of ours that it was not given.
func TestEnvironment(t *testing.T) {
	t.Setenv("MY_API_KEY", "secret")
	t.Setenv("LC_ALL", "C")
	given := variables(t, command("env", "EXTRA=1"))
	for name, want := range map[string]bool{"PATH": true, "LC_ALL": true, "EXTRA": true, "MY_API_KEY": false} {
		if got := slices.Contains(given, name); got != want {
			t.Errorf("child has %s: %t, want %t", name, got, want)
		}
	}
	exact := command("env")
	exact.Env = []string{"ONLY=1"}
	if got, want := variables(t, exact), []string{"ONLY", roleVar, "GORACE", "GOCOVERDIR"}; !slices.Equal(got, want) {
		t.Errorf("child has %v, want %v", got, want)
	}
}

func variables(t *testing.T, d transport.Dialer) []string {
	t.Helper()
	link, in := dial(t, d)
	_, err := ask(t.Context(), link, "end")
	if !errors.Is(err, transport.ErrInterrupted) {
		t.Fatal(err)
	}
	close(in.Messages)
	var names []string
	for m := range in.Messages {
		names = append(names, m.Method)
	}
	return names
}

// Keys tell servers apart, and what they run with, without telling secrets.
func TestKeys(t *testing.T) {
	other := stdio.Command("a", "b c")
	other.ExtraEnv = []string{"TOKEN=hunter2"}
	dir := stdio.Command("a", "b c")
	dir.Dir = "/tmp"
	keys := []string{
		stdio.Command("a", "b c").Key(), stdio.Command("a", "b", "c").Key(), other.Key(), dir.Key(),
		stdio.Dial("tcp", "localhost:1").Key(), stdio.Dial("unix", "localhost:1").Key(),
	}
	slices.Sort(keys)
	if n := len(slices.Compact(slices.Clone(keys))); n != len(keys) {
		t.Errorf("keys are not distinct: %q", keys)
	}
	if strings.Contains(strings.Join(keys, " "), "hunter2") {
		t.Errorf("a key tells a secret: %q", keys)
	}
	if a, b := stdio.Command("a").Key(), stdio.Command("a").Key(); a != b || a == "" {
		t.Errorf("one server has keys %q and %q", a, b)
	}
}

// What the program prints while it serves does not reach the protocol's
// stream, and does after.
func TestStandardIsKept(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"=print")
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"kit/echo","params":{"a":1}}`)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	want := `{"jsonrpc":"2.0","id":1,"result":{"a":1}}` + "\ngiven back\n"
	if stdout.String() != want {
		t.Errorf("standard output is %q, want %q", stdout.String(), want)
	}
	if want := "stray words\nwords of a child\n"; stderr.String() != want {
		t.Errorf("standard error is %q, want %q", stderr.String(), want)
	}
}

// Proves: FLOW-SHUTDOWN. The end of its context ends a server although its
// input is open and silent.
func TestStandardCancelled(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"=cancelled")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	ready := &signals{seen: make(chan string, 1)}
	cmd.Stderr = ready
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if said := <-ready.seen; said != "ready\n" {
		t.Fatalf("the child said %q", said)
	}
	if err := cmd.Process.Signal(userSignal); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the child ended with %v", err)
	}
}

// signals passes the first thing written on.
type signals struct {
	once sync.Once
	seen chan string
}

func (s *signals) Write(p []byte) (int, error) {
	s.once.Do(func() { s.seen <- string(p) })
	return len(p), nil
}

// What a child says on standard error reaches the log, made harmless.
func TestStderrLog(t *testing.T) {
	var log bytes.Buffer
	d := command("die")
	d.Logger = slog.New(slog.NewTextHandler(&log, nil))
	link, in := dial(t, d)
	_, err := ask(t.Context(), link, "kit/echo")
	if err == nil {
		t.Fatal("a dead server answered")
	}
	if err := <-in.Ended; !errors.Is(err, transport.ErrClosed) {
		t.Errorf("the inbox was told %v, want ErrClosed", err)
	}
	hangUp(t, link)
	if text := log.String(); !strings.Contains(text, "some warning") || strings.Contains(text, "\x1b") {
		t.Errorf("the log is %q", text)
	}
}
