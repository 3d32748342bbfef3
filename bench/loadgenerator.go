package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/parley-mcp/parley/bench/control"
	"github.com/parley-mcp/parley/bench/fixture"
	"github.com/parley-mcp/parley/bench/report"
)

// inspectorName is the load generator of the MCP Inspector in the report.
const inspectorName = "inspector"

const (
	loadHTTP      = "load-http"
	loadStdio     = "load-stdio"
	loadTheirHTTP = "load-everything-http"
	loadTheirPipe = "load-everything-stdio"
)

// The programs of others, as module interop has them installed.
const (
	inspectorJS  = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
	everythingJS = "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
)

// loads are load generators: how many calls of one tool they make in a second.
func loads() []*scenario {
	columns := []report.Metric{report.Rate, report.P50, report.P99}
	define := func(name, title, about string, theirs bool, enter func(b *bench, ctx context.Context) (*loaded, error)) *scenario {
		return &scenario{
			Scenario: report.Scenario{Name: name, Title: title, About: about, Columns: columns},
			servers:  []string{report.Parley, inspectorName},
			peers:    theirs,
			enter: func(ctx context.Context, b *bench, generator string, _ int) (*contestant, error) {
				l, err := enter(b, ctx)
				if err != nil {
					return nil, err
				}
				return l.contestant(b, generator), nil
			},
		}
	}
	const what = "Calls of echo, ten at once in one session of the handshake, by parley inspect --load and by the MCP Inspector's --load. Times are those that they tell. "
	return []*scenario{
		define(loadHTTP, "Load generator over HTTP", what+"The server is ours.", false, (*bench).loadOurs),
		define(loadStdio, "Load generator over stdio", what+"The server is ours.", false, func(b *bench, _ context.Context) (*loaded, error) {
			return &loaded{target: []string{"--", b.alone()}, args: []string{"--tool-arg", "text=" + fixture.Text}}, nil
		}),
		define(loadTheirHTTP, "Load generator over HTTP, server-everything", what+"The server is that of npm, and the bottleneck.", true, (*bench).loadTheirs),
		define(loadTheirPipe, "Load generator over stdio, server-everything", what+"The server is that of npm, and the bottleneck.", true, func(b *bench, _ context.Context) (*loaded, error) {
			return &loaded{target: []string{"--", b.node(), everythingJS, "stdio"}, args: []string{"--tool-arg", "message=" + fixture.Text}}, nil
		}),
	}
}

// A loaded is a server that load generators call.
type loaded struct {
	target, args []string
	stop         func() error // nil if it ends by itself
}

func (b *bench) loadOurs(ctx context.Context) (*loaded, error) {
	server, err := control.Start(ctx, b.program(report.Parley, false))
	if err != nil {
		return nil, err
	}
	return &loaded{
		target: []string{"http://" + server.Addr + "/mcp", "--transport", "http"},
		args:   []string{"--tool-arg", "text=" + fixture.Text}, stop: server.Stop,
	}, nil
}

// loadTheirs starts server-everything over HTTP, on the loopback interface.
func (b *bench) loadTheirs(ctx context.Context) (*loaded, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), b.node(), "--import", "./loopback.mjs", everythingJS, "streamableHttp") // our own words
	cmd.Dir = b.peersDir()
	server, err := serving(cmd, cmd.StdoutPipe)
	if err != nil {
		return nil, err
	}
	return &loaded{target: []string{server.url, "--transport", "http"}, args: []string{"--tool-arg", "message=" + fixture.Text}, stop: server.stop}, nil
}

// contestant has a load generator call the server in each round.
func (l *loaded) contestant(b *bench, generator string) *contestant {
	command := []string{b.parley(), "inspect"}
	if generator == inspectorName {
		command = []string{b.node(), inspectorJS, "--cli"}
	}
	seconds := fmt.Sprint(max(b.time, 10*time.Millisecond).Seconds())
	command = append(command, l.args...)
	command = append(command, "--method", "tools/call", "--tool-name", "echo", "--protocol-era", "legacy", "--load", "--load-duration", seconds, "--format", "json")
	command = append(command, l.target...)
	c := &contestant{server: generator, stop: func() error { return nil }}
	if l.stop != nil {
		c.stop = l.stop
	}
	c.round = func(ctx context.Context) (report.Metrics, error) {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...) // our own words
		cmd.Dir, cmd.Env = b.peersDir(), append(os.Environ(), "HOME="+b.bin, "XDG_CONFIG_HOME="+b.bin)
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, said.String())
		}
		return loadMetrics(out)
	}
	return c
}

// loadMetrics reads the summary of a load, which may have no errors.
func loadMetrics(out []byte) (report.Metrics, error) {
	var told struct {
		Result struct {
			Requests, OK int64
			Throughput   float64
			LatencyMs    struct{ P50, P99 float64 }
		}
	}
	if err := json.Unmarshal(out, &told); err != nil {
		return nil, fmt.Errorf("the summary: %w\n%s", err, out)
	}
	r := told.Result
	if r.OK == 0 || r.OK != r.Requests {
		return nil, fmt.Errorf("of %d calls %d have no error: %s", r.Requests, r.OK, out)
	}
	return report.Metrics{report.Rate: r.Throughput, report.P50: 1000 * r.LatencyMs.P50, report.P99: 1000 * r.LatencyMs.P99}, nil
}

// peersDir is the folder with programs of others, which module interop installs.
func (b *bench) peersDir() string { return filepath.Join(b.dir, "..", "app", "interop", "peers") }

// node is the Node.js of that folder, or that of the system.
func (b *bench) node() string {
	arch := strings.NewReplacer("amd64", "x64").Replace(runtime.GOARCH)
	own, err := filepath.Abs(filepath.Join(b.peersDir(), "node_modules", "node-"+runtime.GOOS+"-"+arch, "bin", "node"))
	if err != nil {
		return "node"
	}
	if _, err := os.Stat(own); err != nil {
		return "node"
	}
	return own
}

// hasPeers tells whether the programs of others are installed.
func (b *bench) hasPeers() bool {
	_, missing := os.Stat(filepath.Join(b.peersDir(), inspectorJS))
	_, noNode := exec.LookPath(b.node())
	return missing == nil && noNode == nil
}
