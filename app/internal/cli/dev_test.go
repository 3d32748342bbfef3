//go:build unix

package cli_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A devFolder is the folder of a workbench.
type devFolder struct {
	t    *testing.T
	path string
	gate net.Listener
}

func newDevFolder(t *testing.T) *devFolder {
	t.Helper()
	f := &devFolder{t: t, path: shortDir(t)}
	if err := os.Mkdir(filepath.Join(f.path, "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(newCensus(t, f.path).none)
	var err error
	if f.gate, err = net.Listen("unix", filepath.Join(f.path, gateFile)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.gate.Close() })
	f.write("one")
	return f
}

func (f *devFolder) write(words string) {
	f.t.Helper()
	// At once, so that nobody sees half of it.
	written := filepath.Join(f.path, wordsFile)
	err := os.WriteFile(written, []byte(words), 0o600)
	if err == nil {
		err = os.Rename(written, filepath.Join(f.path, "src", wordsFile))
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// args are the arguments of parley for a workbench of a revision.
func (f *devFolder) args(version string, flags ...string) []string {
	return slices.Concat([]string{"dev", "--watch", filepath.Join(f.path, "src"), "--every", "20ms"}, flags,
		[]string{"--", "workbench", f.path, version})
}

// develop is what a client sees while the server is worked on.
func (f *devFolder) develop(dialer transport.Dialer, version string, said *output) {
	t := f.t
	t.Helper()
	changed := make(chan struct{}, 100)
	c, err := client.Connect(t.Context(), dialer, &client.Options{
		Versions: []string{version}, OnToolsChanged: func(context.Context) { changed <- struct{}{} },
		OnDisconnect: func(err error) { t.Errorf("disconnected: %v", err) },
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Errorf("%v\n%s", err, said)
		}
	}()
	until := func(word string) {
		for !slices.Contains(toolNames(t, c), word) {
			<-changed
		}
	}
	until("one")
	f.write("one two")
	until("two")

	f.write("broken")
	said.wait("words.txt:1: it is broken", t.Context().Done())
	said.wait("the process before goes on serving", t.Context().Done())
	if text, err := client.Call[string](t.Context(), c, "two", mcp.None{}); err != nil || text != "two" {
		t.Errorf("the process before: %q, %v", text, err)
	}

	answer := make(chan string, 1)
	go func() {
		text, err := client.Call[string](t.Context(), c, "slow", mcp.None{})
		answer <- fmt.Sprint(text, err)
	}()
	conn, err := f.gate.Accept()
	if err != nil {
		t.Fatal(err)
	}
	f.write("one two three")
	until("three")
	_ = conn.Close()
	if text := <-answer; text != "one two<nil>" {
		t.Errorf("the call under way: %s", text)
	}
	f.once(said)
}

// once checks that what a process says is shown once, however often it is started to find out whether
// the server is an old one.
func (f *devFolder) once(said *output) {
	f.t.Helper()
	if n := strings.Count("\n"+said.String(), "\nwords.txt:1: it is broken\n"); n != 1 {
		f.t.Errorf("the error was shown %d times:\n%s", n, said)
	}
}

func toolNames(t *testing.T, c *client.Client) []string {
	t.Helper()
	var names []string
	for tool, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

// A connected client goes on while the server behind it is changed, in each era, and no process is left.
func TestDev(t *testing.T) {
	for _, process := range []string{"2025-11-25", stateless} {
		for _, version := range []string{"2024-11-05", stateless} {
			t.Run("process "+process+", client "+version, func(t *testing.T) {
				t.Parallel()
				f, said := newDevFolder(t), new(output)
				d := stdio.Command("parley", f.args(process)...)
				d.ExtraEnv, d.Stderr = []string{"GORACE=atexit_sleep_ms=0"}, said
				f.develop(d, version, said)
			})
		}
	}
}

// A server that holds a lock is started again with --stop-first, and only so; the client stays connected.
func TestDevStopFirst(t *testing.T) {
	for _, stop := range []bool{false, true} {
		t.Run(map[bool]string{false: "without", true: "with"}[stop], func(t *testing.T) {
			t.Parallel()
			f, said := newDevFolder(t), new(output)
			f.write("alone one")
			args := f.args("2025-11-25")
			if stop {
				args = f.args("2025-11-25", "--stop-first")
			}
			d := stdio.Command("parley", args...)
			d.ExtraEnv, d.Stderr = []string{"GORACE=atexit_sleep_ms=0"}, said
			changed := make(chan struct{}, 100)
			c, err := client.Connect(t.Context(), d, &client.Options{
				Versions: []string{"2025-11-25"}, OnToolsChanged: func(context.Context) { changed <- struct{}{} },
				OnDisconnect: func(err error) { t.Errorf("disconnected: %v", err) },
			})
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			f.write("alone one two")
			if !stop {
				said.wait("the lock is taken", t.Context().Done())
				said.wait("the process before goes on serving", t.Context().Done())
			} else {
				for !slices.Contains(toolNames(t, c), "two") {
					<-changed
				}
			}
			if err := c.Close(); err != nil {
				t.Errorf("%v\n%s", err, said)
			}
		})
	}
}

func TestDevHTTP(t *testing.T) {
	t.Parallel()
	f, said := newDevFolder(t), new(output)
	cmd := exec.CommandContext(t.Context(), "parley", f.args(stateless, "--http", "127.0.0.1:0")...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f.develop(streamable.URL(said.wait(`serving at (\S+);`, t.Context().Done())), "2025-11-25", said)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d\n%s", code, said)
	}
}

// A client that leaves ends everything, although no process of the server ever started.
func TestDevWithoutServer(t *testing.T) {
	t.Parallel()
	f, said := newDevFolder(t), new(output)
	f.write("broken")
	cmd := exec.CommandContext(t.Context(), "parley", f.args(stateless)...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = said
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said.wait("it is started again when a file changes", t.Context().Done())
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	f.once(said)
}
