//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A census counts processes that connect to its socket when they start, and whose
// connections end with them.
type census struct {
	t     *testing.T
	ln    net.Listener
	wg    sync.WaitGroup
	count atomic.Int64 // of processes that have begun
	alive atomic.Int64
}

// newCensus counts the actors of a folder.
func newCensus(t *testing.T, dir string) *census {
	t.Helper()
	ln, err := net.Listen("unix", filepath.Join(dir, censusFile))
	if err != nil {
		t.Fatal(err)
	}
	c := &census{t: t, ln: ln}
	c.wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			c.count.Add(1)
			c.alive.Add(1)
			c.wg.Go(func() {
				defer c.alive.Add(-1)
				_, _ = io.Copy(io.Discard, conn) // until the process has ended
				_ = conn.Close()
			})
		}
	})
	return c
}

// none waits until no process is left.
func (c *census) none() {
	c.t.Helper()
	_ = c.ln.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.wg.Wait()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		c.t.Error("processes are left")
	}
}

// However a conversation ends, also with a call under way, no process of a server is left.
//
// Proves: FLOW-SHUTDOWN-H.
func TestEndsOfChat(t *testing.T) {
	kill := func(signals ...syscall.Signal) func(t *testing.T, p *os.Process, out *output, _ io.Closer) {
		return func(t *testing.T, p *os.Process, out *output, _ io.Closer) {
			t.Helper()
			for i, sig := range signals {
				if i > 0 {
					out.wait("Interrupt once more to quit", t.Context().Done())
				}
				if err := p.Signal(sig); err != nil {
					t.Error(err)
				}
			}
		}
	}
	for _, tt := range []struct {
		name  string
		typed string
		until string // what is shown before the end
		end   func(t *testing.T, p *os.Process, out *output, in io.Closer)
		code  int
	}{
		{"quit", "one/who\n/quit\n", "speaks", nil, 0},
		{"end of input", "one/who\n", "speaks", func(_ *testing.T, _ *os.Process, _ *output, in io.Closer) { _ = in.Close() }, 0},
		{"Ctrl-C twice", "one/hang\n", "at 1 of 2", kill(syscall.SIGINT, syscall.SIGINT), 0},
		{"SIGTERM", "one/hang\n", "at 1 of 2", kill(syscall.SIGTERM), 128 + int(syscall.SIGTERM)},
		{"SIGHUP", "one/hang\n", "at 1 of 2", kill(syscall.SIGHUP), 128 + int(syscall.SIGHUP)},
		{"SIGKILL", "one/hang\n", "at 1 of 2", kill(syscall.SIGKILL), -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := shortDir(t)
			t.Cleanup(newCensus(t, dir).none)
			cmd := exec.CommandContext(t.Context(), "parley", "chat", "--plain", "--allow", "*",
				"--server", "one=actor "+dir, "--server", "two=actor "+dir, "--server", "three="+fakeScript(t, "start", "\tjoin "+dir, "\tdeaf"))
			cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "GORACE=atexit_sleep_ms=0")
			out := new(output)
			cmd.Stdout, cmd.Stderr = out, out
			in, err := cmd.StdinPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			timer := time.AfterFunc(patience, func() { close(ended) })
			typeOnceReady(in, out, tt.typed, ended)
			if out.wait(tt.until, ended) == "" {
				t.Errorf("%q is not shown, but\n%s", tt.until, out)
				_ = cmd.Process.Kill()
			} else if tt.end != nil {
				tt.end(t, cmd.Process, out, in)
			}
			_ = cmd.Wait() // the code tells
			timer.Stop()
			if code := cmd.ProcessState.ExitCode(); code != tt.code {
				t.Errorf("exit code %d, want %d\n%s", code, tt.code, out)
			}
		})
	}
}

// typeOnceReady types a text once the server one is ready: a message waits for servers that are still
// starting no longer than until another one is ready, and a little more.
func typeOnceReady(in io.Writer, out *output, text string, ended <-chan struct{}) {
	for over := false; !over && lines(out.String(), `Server one \([^)]*\): ready`) == 0; {
		_, _ = io.WriteString(in, "/servers\n") // the test sees what is missing
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ended:
			over = true
		}
	}
	_, _ = io.WriteString(in, text) // likewise
}

// Twenty servers, five of them dead and five hung: the others can be used at once. One that
// is killed in a call is back by itself, and nothing is left in the end.
//
// Proves: FLOW-SHUTDOWN-H, FLOW-INIT-H, SEC-DOS-1.
func TestTwentyServers(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := shortDir(t)
	t.Cleanup(newCensus(t, dir).none)
	config := twentyServers(t, dir)

	k := begin(t, "--config", config, "--allow", "*")
	k.says("what is there?") // it starts the servers, and waits for none that hangs
	k.sees("Done: ")
	for late := time.Now().Add(patience); ; <-time.After(50 * time.Millisecond) { // some are slow today
		k.says("/servers")
		k.sees("Server hung4 ")
		shown := k.out.String()
		shown = shown[strings.LastIndex(shown, "Server dead0"):]
		if n := lines(shown, `Server hung\d \([^)]*\): starting`); n != 5 {
			t.Fatalf("%d of 5 that hang are starting:\n%s", n, shown)
		}
		dead := lines(shown, `Server dead\d \([^)]*\): (waiting|given up); connect: `)
		if ready := lines(shown, `Server good\d \([^)]*\): ready, 14 tools`); ready == 10 && dead == 5 {
			break
		} else if time.Now().After(late) {
			t.Fatalf("%d are ready, %d are told to be dead:\n%s", ready, dead, shown)
		}
	}
	k.says("good9/who")
	k.sees("says:\n    parley speaks ") // an older revision if the machine is busy
	k.says("good1/hang")
	k.sees("hang of server good1: at 1 of 2")
	pid := filepath.Join(dir, "1", pidFile)
	before := killActor(t, pid)
	k.sees("hang of server good1: failed", "signal: killed", "Done: ")
	k.says("good2/who")
	k.sees("who of server good2: done", "Done: ")
	k.says("good1/who")
	k.sees("who of server good1: done", "Done: ")
	if after, err := os.ReadFile(pid); err != nil || string(after) == before {
		t.Errorf("the process is %s and was %s: %v", after, before, err)
	}
	k.quits()
}

// twentyServers writes a configuration of twenty servers, five of them dead and five hung, and
// returns its path. good are more arguments of the others.
func twentyServers(t *testing.T, dir string, good ...string) (config string) {
	t.Helper()
	servers := make(map[string]any)
	for i := range 10 {
		own := filepath.Join(dir, strconv.Itoa(i))
		if err := os.Mkdir(own, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(dir, censusFile), filepath.Join(own, censusFile)); err != nil {
			t.Fatal(err)
		}
		servers[fmt.Sprint("good", i)] = map[string]any{"command": "actor", "args": append([]string{own}, good...)}
	}
	fakes := func(lines ...string) map[string]any {
		command, script, _ := strings.Cut(fakeScript(t, append([]string{"start", "\tjoin " + dir}, lines...)...), " ")
		return map[string]any{"command": command, "args": []string{script}}
	}
	dead, mute, half := fakes("\tstderr no license", "\texit 3"), fakes("\tdeaf"), fakes(`	write {"jsonrpc":"2.0",`, "\tdeaf")
	for i := range 5 {
		servers[fmt.Sprint("dead", i)] = dead
		servers[fmt.Sprint("hung", i)] = []map[string]any{mute, half}[i%2]
	}
	servers["dead0"] = map[string]any{"command": "no-such-program-anywhere"}
	config = filepath.Join(dir, "claude.json")
	raw, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	write(t, config, string(raw))
	return config
}

// killActor kills the actor that wrote its process into a file.
func killActor(t *testing.T, file string) (pid string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(string(raw))
	if err == nil {
		err = syscall.Kill(number, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
