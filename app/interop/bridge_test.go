package interop_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"

	"github.com/parley-mcp/parley/app/interop/script"
)

// bridgeAt is what parley bridge says when it can be reached.
var bridgeAt = regexp.MustCompile(`at (http://\S+/mcp);`)

// startBridge runs parley bridge over HTTP, which ends with the test, and returns its URL.
func startBridge(t *testing.T, args ...string) (url string) {
	t.Helper()
	cmd := bridgeProgram(t, append([]string{"bridge", "--http", "127.0.0.1:0"}, args...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	said := ""
	drained := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-drained
		if err := cmd.Wait(); err != nil {
			t.Errorf("the bridge ended badly: %v\n%s", err, said)
		}
	})
	for err == nil && url == "" {
		var line string
		line, err = lines.ReadString('\n')
		said += line
		if m := bridgeAt.FindStringSubmatch(line); m != nil {
			url = m[1]
		}
	}
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, lines)
	}()
	if err != nil {
		t.Fatalf("the bridge did not start: %v\n%s", err, said)
	}
	return url
}

// bridgeProgram is parley as a command, with settings of its own.
func bridgeProgram(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	parley, err := buildParley()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), parley, args...) // told to end by the test
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + home}
	return cmd
}

// Clients of the TypeScript SDKs go through the whole script with servers of the other era, which
// parley bridge stands before: two questions in one call, and all else.
func TestBridge(t *testing.T) {
	dir := peersDir(t)
	v1stdio := []string{"--", "sh", "-c", `cd "$1" && exec "$2" v1-server.mjs stdio`, "sh", dir, nodePath(t, dir)}
	pinned := map[string]any{"transport": "http", "mode": map[string]string{"pin": modern}}
	for name, test := range map[string]struct {
		file       string
		options    map[string]any
		bridge     func(t *testing.T) []string // the arguments
		version    string
		deviations []func(*script.Report)
	}{
		"v2 client pinned, v1 server stdio": {
			"v2-client.mjs",
			pinned,
			func(*testing.T) []string { return v1stdio },
			modern,
			[]func(*script.Report){goSDKMissing},
		},
		"v2 client pinned, ours stdio " + legacy: {
			"v2-client.mjs",
			pinned,
			func(*testing.T) []string { return []string{"--protocol", legacy, "--", program, "ours"} },
			modern,
			nil,
		},
		"v1 client, v2 server http " + modern: {
			"v1-client.mjs",
			map[string]any{"transport": "http"},
			func(t *testing.T) []string {
				return []string{"--protocol", modern, startServer(t, nil, "v2-server.mjs", "http")}
			},
			legacy,
			nil,
		},
		"v1 client, ours http " + modern: {
			"v1-client.mjs",
			map[string]any{"transport": "http"},
			func(t *testing.T) []string { return []string{serveOurs(t, modern).url} },
			legacy,
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := map[string]any{"url": startBridge(t, test.bridge(t)...)}
			for k, v := range test.options {
				options[k] = v
			}
			check(t, runClient(t, test.file, options), want(test.version, test.deviations...))
		})
	}
	t.Run("v1 client stdio, ours http "+modern, func(t *testing.T) {
		t.Parallel()
		parley, err := buildParley()
		if err != nil {
			t.Fatal(err)
		}
		check(t, runClient(t, "v1-client.mjs", map[string]any{
			"transport": "stdio", "command": parley, "args": []string{"bridge", "--stdio", serveOurs(t, modern).url},
		}), want(legacy))
	})
}
