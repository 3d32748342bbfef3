//go:build unix

package cli_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A server that dies in a call is started again by the next one. The call that it died in gets a
// typed error, and is not run again.
func TestBridgeServerDies(t *testing.T) {
	for _, behind := range bridgedEras {
		for _, caller := range bridgedEras {
			t.Run("server "+behind+", client "+caller, func(t *testing.T) {
				t.Parallel()
				dir := shortDir(t)
				t.Cleanup(newCensus(t, dir).none)
				url, _ := startBridge(t, []string{"--protocol", behind}, "interviewer", dir)
				c := joinBridge(t, streamable.URL(url), caller)
				before, err := client.Call[string](t.Context(), c.Client, "pid", nil)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					_, err := c.CallTool(t.Context(), "die", nil, nil)
					e, ok := errors.AsType[*jsonrpc.Error](err)
					if !ok || e.Code != mcp.CodeInternalError || !strings.Contains(e.Message, "the call may have run") {
						t.Errorf("the call of a server that died: %v", err)
					}
				}
				after, err := client.Call[string](t.Context(), c.Client, "pid", nil)
				if err != nil || after == before {
					t.Errorf("afterwards process %s, before %s: %v", after, before, err)
				}
				deaths, err := os.ReadFile(filepath.Join(dir, "deaths"))
				if n := strings.Count(string(deaths), "died"); err != nil || n != 2 {
					t.Errorf("two calls ran %d times: %v", n, err)
				}
				c.calls("interview", "accept answer 1, accept answer 2", nil)
			})
		}
	}
}

// However a bridge ends, also with a call under way, no process is left.
func TestBridgeEnds(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT, "SIGKILL": syscall.SIGKILL} {
		t.Run("http "+name, func(t *testing.T) {
			t.Parallel()
			dir := shortDir(t)
			t.Cleanup(newCensus(t, dir).none)
			cmd, said, _ := runBridge(t, dir, "bridge", "--http", "127.0.0.1:0", "--", "interviewer", dir)
			ended := make(chan struct{})
			late := time.AfterFunc(patience, func() { close(ended) })
			defer late.Stop()
			address := said.wait(`http://([^/]+)/mcp;`, ended)
			if address == "" {
				t.Fatalf("no address in\n%s", said)
			}
			c := joinBridge(t, streamable.URL("http://"+address+streamable.Path), stateless)
			_, err := c.CallTool(t.Context(), "hang", nil, &client.CallOptions{OnProgress: func(float64, float64, string) {
				if err := cmd.Process.Signal(signal); err != nil {
					t.Error(err)
				}
			}})
			if e, ok := errors.AsType[*jsonrpc.Error](err); signal != syscall.SIGKILL && (!ok || e.Code != mcp.CodeShuttingDown) || err == nil {
				t.Errorf("the call of a bridge that ended: %v", err)
			}
			_ = cmd.Wait() // the code tells
			if code := cmd.ProcessState.ExitCode(); signal != syscall.SIGKILL && code != 0 && code != 128+int(signal) {
				t.Errorf("exit code %d\n%s", code, said)
			}
		})
	}
	t.Run("stdio, SIGTERM in a call", func(t *testing.T) {
		t.Parallel()
		dir := shortDir(t)
		t.Cleanup(newCensus(t, dir).none)
		cmd := exec.CommandContext(t.Context(), "parley", "bridge", "--stdio", "--", "interviewer", dir)
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "GORACE=atexit_sleep_ms=0")
		said := new(output)
		cmd.Stderr = said
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + stateless + `","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"progressToken":1}`
		if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"hang",`+meta+`}}`+"\n"); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if !lines.Scan() || !strings.Contains(lines.Text(), "hanging") {
			t.Fatalf("no progress, but %q\n%s", lines.Text(), said)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if !lines.Scan() || !strings.Contains(lines.Text(), `"id":7,"error":{"code":-31004`) {
			t.Errorf("the answer of a call that was cut off: %q\n%s", lines.Text(), said)
		}
		if lines.Scan() {
			t.Errorf("after the answer: %q", lines.Text())
		}
		_ = cmd.Wait() // the code tells
		if code := cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGTERM) {
			t.Errorf("exit code %d\n%s", code, said)
		}
	})
	t.Run("stdio, end of input", func(t *testing.T) {
		t.Parallel()
		dir := shortDir(t)
		t.Cleanup(newCensus(t, dir).none)
		cmd, said, in := runBridge(t, dir, "bridge", "--stdio", "--", "interviewer", dir)
		// Half a message, as of a parent that was killed.
		if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"pi`); err != nil {
			t.Error(err)
		}
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, said)
		}
	})
}

// runBridge runs the program in a process of its own, with settings of its own.
func runBridge(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, said *output, in io.WriteCloser) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), "parley", args...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "GORACE=atexit_sleep_ms=0")
	said = new(output)
	cmd.Stdout, cmd.Stderr = io.Discard, said
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd, said, in
}

// The guards of parley serve hold for a bridge as well.
func TestBridgeGuards(t *testing.T) {
	url, _ := startBridge(t, []string{"--auth", "http://127.0.0.1:1"}, "interviewer", t.TempDir())
	open, _ := startBridge(t, nil, "interviewer", t.TempDir())
	for _, path := range []string{"/mcp", "/sse", "/ws"} {
		guarded, open := strings.TrimSuffix(url, "/mcp")+path, strings.TrimSuffix(open, "/mcp")+path
		for _, test := range []struct {
			url    string
			header http.Header
			status int
		}{
			{guarded, nil, http.StatusUnauthorized},
			{guarded, http.Header{"Authorization": {"Bearer x"}}, http.StatusUnauthorized},
			{open, http.Header{"Origin": {"https://evil.example"}}, http.StatusForbidden},
		} {
			if status := postStatus(t, test.url, test.header); status != test.status {
				t.Errorf("%s with %v: status %d, want %d", test.url, test.header, status, test.status)
			}
		}
	}
}

// postStatus posts a request and returns the status of its response.
func postStatus(t *testing.T, url string, header http.Header) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, values := range header {
		r.Header[name] = values
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}
