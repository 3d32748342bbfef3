package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/parley-mcp/parley/bench/control"
	"github.com/parley-mcp/parley/bench/report"
)

// Ways of a call from a client to a server.
const (
	wayPipe        = "pipe"
	wayHTTP        = "HTTP"
	wayBridgeHTTP  = "bridge --http"
	wayBridgeStdio = "bridge --stdio"
)

const (
	bridgeOne  = "bridge"
	bridgeMany = "bridge-16"
)

// bridges are calls that go through 'parley bridge', beside direct ones.
func bridges() []*scenario {
	define := func(name, title, about string, concurrency int) *scenario {
		return &scenario{
			Scenario: report.Scenario{Name: name, Title: title, About: about, Columns: []report.Metric{report.CPU, report.Elapsed, report.Rate}},
			servers:  []string{wayPipe, wayHTTP, wayBridgeHTTP, wayBridgeStdio},
			enter: func(ctx context.Context, b *bench, way string, _ int) (*contestant, error) {
				return b.way(ctx, way, concurrency)
			},
		}
	}
	const what = "Calls of echo by our client to our server: over a pipe and over HTTP, by bridge --http to the server on a pipe, and by bridge --stdio to the server over HTTP. " +
		"CPU is that of all processes of the way: client, bridge and server."
	return []*scenario{
		define(bridgeOne, "Through parley bridge", what+" One call after the other.", 1),
		define(bridgeMany, "Through parley bridge, 16 calls at once", what, 16),
	}
}

// way starts a server, a bridge where the way has one, and a client.
func (b *bench) way(ctx context.Context, way string, concurrency int) (c *contestant, err error) {
	c = &contestant{server: way}
	var started []func() error
	c.stop = func() error {
		var errs []error
		for i := len(started) - 1; i >= 0; i-- {
			errs = append(errs, started[i]())
		}
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	var pids []int
	start := func(p control.Program) (*control.Child, error) {
		child, err := control.Start(ctx, p)
		if err == nil {
			started, pids = append(started, child.Stop), append(pids, child.Pid())
		}
		return child, err
	}
	url := ""
	if way == wayHTTP || way == wayBridgeStdio {
		server, err := start(b.program(report.Parley, false))
		if err != nil {
			return nil, err
		}
		url = "http://" + server.Addr + "/mcp"
	}
	var to []string
	switch way {
	case wayPipe:
		to = []string{"-stdio", b.alone()}
	case wayHTTP:
		to = []string{"-http", url}
	case wayBridgeHTTP:
		bridge, err := b.bridge(ctx)
		if err != nil {
			return nil, err
		}
		started, pids = append(started, bridge.stop), append(pids, bridge.cmd.Process.Pid)
		to = []string{"-http", bridge.url}
	case wayBridgeStdio:
		script, err := b.script("exec '" + b.parley() + "' bridge --stdio '" + url + "'")
		if err != nil {
			return nil, err
		}
		started = append(started, func() error { return os.Remove(script) })
		to = []string{"-stdio", script}
	}
	client, err := start(control.Program{Path: filepath.Join(b.bin, "clients", "parley"), Args: to})
	if err != nil {
		return nil, err
	}
	calls, err := enough(client, concurrency, b.time)
	c.round = func(context.Context) (report.Metrics, error) { return wayRound(client, calls, concurrency, pids) }
	return c, err
}

// enough is how many calls take about so long.
func enough(client *control.Child, concurrency int, d time.Duration) (int, error) {
	for calls := 64; ; calls *= 4 {
		ran, err := client.Run(calls, concurrency)
		if err != nil {
			return 0, err
		}
		if ran.Elapsed >= d/4 {
			return max(64, int(float64(calls)*float64(d)/float64(ran.Elapsed))), nil
		}
	}
}

// wayRound measures calls, with the processor time of all processes.
func wayRound(client *control.Child, calls, concurrency int, pids []int) (report.Metrics, error) {
	before, err := processorTime(pids...)
	if err != nil {
		return nil, err
	}
	ran, err := client.Run(calls, concurrency)
	if err != nil {
		return nil, err
	}
	after, err := processorTime(pids...)
	if err != nil {
		return nil, err
	}
	n := float64(calls)
	return report.Metrics{
		report.CPU:     float64(after-before) / float64(time.Microsecond) / n,
		report.Elapsed: float64(ran.Elapsed) / float64(time.Microsecond) / n,
		report.Rate:    n / ran.Elapsed.Seconds(),
	}, nil
}

// script makes a program of its own of a command line of sh.
func (b *bench) script(line string) (path string, err error) {
	f, err := os.CreateTemp(b.bin, "script")
	if err != nil {
		return "", err
	}
	return f.Name(), errors.Join(f.Close(), b.writeScript(f.Name(), line))
}

// writeScript writes a program that is a command line of sh, with a home of its own. It ignores its
// arguments.
func (b *bench) writeScript(path, line string) error {
	text := fmt.Sprintf("#!/bin/sh\nexport HOME='%[1]s' XDG_CONFIG_HOME='%[1]s'\n%[2]s\n", b.bin, line)
	return errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, 0o700)) // a program
}

// alone is our server over stdio, which the driver does not know.
func (b *bench) alone() string { return filepath.Join(b.bin, "program", "server") }

// parley is the program.
func (b *bench) parley() string { return filepath.Join(b.bin, "program", "parley") }

// compileProgram builds the program, which is a module of its own.
func (b *bench) compileProgram(ctx context.Context) error {
	root, err := filepath.Abs(filepath.Join(b.dir, ".."))
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, "go", "build", "-o", b.parley(), "./cmd/parley")
	c.Dir = filepath.Join(root, "app")
	c.Env = append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work"))
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return b.writeScript(b.alone(), "exec '"+filepath.Join(b.bin, "servers", programs[report.Parley])+"' -stdio -alone")
}

// A running is a process that serves over HTTP.
type running struct {
	cmd *exec.Cmd
	url string
}

// address is what a program says that serves over HTTP.
var address = regexp.MustCompile(`http://[^\s"]+/mcp`)

// serving starts a program and waits until it says where it serves; pipe is where it says that.
func serving(cmd *exec.Cmd, pipe func() (io.ReadCloser, error)) (*running, error) {
	said, err := pipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	r := &running{cmd: cmd}
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	var text strings.Builder
	lines := bufio.NewScanner(said)
	for r.url == "" && lines.Scan() {
		text.WriteString(lines.Text() + "\n")
		r.url = address.FindString(lines.Text())
	}
	if r.url == "" {
		return nil, errors.Join(fmt.Errorf("%s does not say where it serves:\n%s", cmd.Path, text.String()), r.stop())
	}
	go func() { _, _ = io.Copy(io.Discard, said) }() // ends with the process
	return r, nil
}

// bridge starts one over HTTP, in front of our server on a pipe.
func (b *bench) bridge(ctx context.Context) (*running, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), b.parley(), // our own words
		"bridge", "--single-user", "--http", "127.0.0.1:0", "--", b.alone())
	cmd.Env = append(os.Environ(), "HOME="+b.bin, "XDG_CONFIG_HOME="+b.bin)
	return serving(cmd, cmd.StderrPipe)
}

// stop ends the process, and what it has started.
func (r *running) stop() error {
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	kill := time.AfterFunc(10*time.Second, func() { _ = r.cmd.Process.Kill() })
	defer kill.Stop()
	err := r.cmd.Wait()
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		return nil // it was told to
	}
	return err
}
