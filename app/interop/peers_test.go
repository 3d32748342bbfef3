package interop_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/interop/script"
)

// The programs of others, as peers/package.json has them installed.
const (
	everythingJS = "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
	inspectorJS  = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
)

// node returns a command in the folder of peers, which is killed when the test
// takes too long. It skips the test unless peers are wanted.
func node(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	dir := peersDir(t)
	cmd := exec.CommandContext(bounded(t), nodePath(t, dir), args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// peersDir is the folder of the peers in other languages.
func peersDir(t *testing.T) string {
	t.Helper()
	if os.Getenv("PARLEY_TEST_PEERS") == "" {
		t.Skip("set PARLEY_TEST_PEERS=1 to run peers from npm; \"make interop\" installs them and does so")
	}
	dir, err := filepath.Abs("peers")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		t.Fatalf("the peers are not installed (%v): run \"npm ci\" in %s", err, dir)
	}
	return dir
}

// nodePath is the Node.js that comes with the peers, or that of the system
// where there is no such package.
func nodePath(t *testing.T, dir string) string {
	t.Helper()
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	path := filepath.Join(dir, "node_modules", "node-"+runtime.GOOS+"-"+arch, "bin", "node")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	path, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("no Node.js: install version 22.19 or newer: %v", err)
	}
	return path
}

// runClient runs a client's script, and returns what it printed as one report.
func runClient(t *testing.T, file string, options map[string]any) script.Report {
	t.Helper()
	argument, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	cmd := node(t, file, string(argument))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", file, err, out, stderr.Bytes())
	}
	var report script.Report
	for line := range bytes.Lines(out) {
		if err := json.Unmarshal(line, &report); err != nil {
			t.Fatalf("%s printed %q: %v", file, line, err)
		}
	}
	if len(report.Errors) > 0 {
		t.Logf("%s on standard error:\n%s", file, stderr.Bytes())
	}
	return report
}

// startServer starts a server's script, and returns the URL it prints. It ends
// with the test: its standard input does, or it is killed.
func startServer(t *testing.T, env []string, args ...string) (url string) {
	t.Helper()
	cmd := node(t, args...)
	cmd.Env = append(cmd.Env, env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	lines := bufio.NewReader(stdout)
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		<-drained
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s on standard error:\n%s", strings.Join(args, " "), stderr.Bytes())
		}
	})
	url, err = firstURL(lines)
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, lines)
	}()
	if err != nil {
		t.Fatalf("%s printed no URL: %v", strings.Join(args, " "), err)
	}
	return url
}

// firstURL reads the line that tells the URL.
func firstURL(lines *bufio.Reader) (string, error) {
	for {
		line, err := lines.ReadBytes('\n')
		var told struct {
			URL string `json:"url"`
		}
		if json.Unmarshal(line, &told) == nil && told.URL != "" {
			return told.URL, nil
		}
		if err != nil {
			return "", errors.Join(errors.New("its output ended"), err)
		}
	}
}
