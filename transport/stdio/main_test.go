//go:build unix

package stdio_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
)

// roleVar tells the test binary, run again as a child, which part it plays.
const roleVar = "PARLEY_STDIO_ROLE"

// roles are the servers, good and bad, that the tests talk to.
var roles = map[string]func() int{
	"serve":      serve,
	"print":      printing,
	"cancelled":  cancelled,
	"stubborn":   stubborn,
	"flood":      flood,
	"parent":     parent,
	"hush":       hush,
	"grandchild": grandchild,
	"die":        die,
	"kill":       kill,
	"panic":      panicking,
	"env":        environment,
	"farewell":   farewell,
}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(roles[role]())
	}
	os.Exit(run(m))
}

// run runs the tests. Children that were built to measure coverage get a place
// for it, so that they do not complain.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "stdio")
	if err != nil {
		return report(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Setenv("GOCOVERDIR", dir); err != nil {
		return report(err)
	}
	return m.Run()
}

// command is a dialer for this test binary in a role.
func command(role string, env ...string) *stdio.CommandDialer {
	c := stdio.Command(os.Args[0])
	c.ExtraEnv = append([]string{roleVar + "=" + role, "GORACE=atexit_sleep_ms=0", "GOCOVERDIR=" + os.Getenv("GOCOVERDIR")}, env...)
	return c
}

func report(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// serve serves the kit on the standard streams until their end.
func serve() int {
	limit, err := strconv.Atoi(os.Getenv("LIMIT"))
	if err != nil {
		return report(stdio.Serve(context.Background(), mcptest.TransportPeer()))
	}
	std, err := stdio.Standard()
	if err != nil {
		return report(err)
	}
	return report(stdio.ServeConn(context.Background(), std, mcptest.TransportPeer(), &stdio.Options{MaxMessage: limit}))
}

// A talker prints on standard output whenever a session begins.
type talker struct{ transport.Handler }

func (t talker) Open(c transport.Conn) (transport.Session, error) {
	fmt.Println("stray words")
	cmd := exec.Command("/bin/echo", "words of a child")
	cmd.Stdout = os.Stdout
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return t.Handler.Open(c)
}

// printing serves, and prints where it must not; at the end where it may.
func printing() int {
	if err := stdio.Serve(context.Background(), talker{mcptest.TransportPeer()}); err != nil {
		return report(err)
	}
	fmt.Println("given back")
	return 0
}

// cancelled serves until SIGUSR1, with its input still open.
func cancelled() int {
	ctx, stop := signal.NotifyContext(context.Background(), userSignal)
	defer stop()
	fmt.Fprintln(os.Stderr, "ready")
	if err := stdio.Serve(ctx, mcptest.TransportPeer()); ctx.Err() == nil || !errors.Is(err, context.Cause(ctx)) {
		fmt.Fprintln(os.Stderr, "Serve returned", err)
		return 1
	}
	return 0
}

// stay stays until it is killed. Of select {} alone, a program without cgo dies: the runtime calls it a
// deadlock.
func stay() int {
	time.Sleep(time.Hour)
	return 1
}

// stubborn ignores the end of its input and SIGTERM.
func stubborn() int {
	signal.Ignore(syscall.SIGTERM)
	fmt.Println(`{"jsonrpc":"2.0","method":"ready"}`)
	return stay()
}

// flood writes much more to standard error than a pipe holds, then serves.
func flood() int {
	line := strings.Repeat("flood ", 2000) + "\n"
	for range 4 << 20 / len(line) {
		if _, err := os.Stderr.WriteString(line); err != nil {
			return 1
		}
	}
	return serve()
}

// parent starts a grandchild that outlives it, given the chance, then serves.
func parent() int {
	if err := beget(); err != nil {
		return report(err)
	}
	return serve()
}

// hush starts a grandchild too, says nothing and heeds nothing.
func hush() int {
	signal.Ignore(syscall.SIGTERM)
	if err := beget(); err != nil {
		return report(err)
	}
	return stay()
}

func beget() error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"=grandchild")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Start()
}

// grandchild holds on to everything it has inherited, and to a connection by
// which the test sees that it lives.
func grandchild() int {
	signal.Ignore(syscall.SIGTERM)
	c, err := net.Dial("unix", os.Getenv("SOCKET"))
	if err != nil {
		return report(err)
	}
	if _, err := c.Write([]byte("alive\n")); err != nil {
		return report(err)
	}
	return stay()
}

// die reads one line, says why and ends.
func die() int {
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	fmt.Fprint(os.Stderr, "some warning\nnpx: not \x1b[31mfound\n\n")
	return 3
}

// panicking reads one line and panics, while others have their say.
func panicking() int {
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	fmt.Fprintln(os.Stderr, "connected to the database")
	go panic("no license") // of a goroutine beside the one that serves
	select {}
}

// kill reads one line and is killed.
func kill() int {
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// environment says what it was given, as a notification for each variable.
func environment() int {
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		fmt.Printf("{\"jsonrpc\":\"2.0\",\"method\":%q}\n", name)
	}
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return 0
}

// farewell sends many messages and ends without waiting to be asked.
func farewell() int {
	pad := strings.Repeat("x", 1000)
	for i := range 50 {
		fmt.Printf("{\"jsonrpc\":\"2.0\",\"method\":\"bye\",\"params\":{\"number\":%d,\"pad\":%q}}\n", i, pad)
	}
	return 0
}

// userSignal is how the tests ask a child to end its context.
const userSignal = syscall.SIGUSR1
