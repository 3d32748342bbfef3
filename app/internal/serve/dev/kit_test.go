package dev_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/app/internal/serve/dev"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// One revision of each era.
const (
	handshake = "2025-11-25"
	stateless = "2026-07-28"
)

// A workbench is a runner whose processes are servers in memory, and a client of it.
type workbench struct {
	t       *testing.T
	runner  *dev.Runner
	client  *client.Client
	version string // that the processes speak
	notices chan string

	mu       sync.Mutex
	next     *server.Server // what the next start connects to; nil starts nothing
	starts   int
	hold     chan struct{} // a start waits until it is closed, if it is not nil
	alone    bool          // a process cannot start while another one runs
	running  int           // processes
	reported []string
}

var (
	errBuild = errors.New("main.go:1:1: expected 'package'")
	errPort  = errors.New("listen tcp 127.0.0.1:8080: bind: address already in use")
)

// Dial connects to the process that was started last.
func (b *workbench) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	b.mu.Lock()
	b.starts++
	next, hold := b.next, b.hold
	b.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if next == nil {
		return nil, errBuild
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.alone && b.running > 0 {
		return nil, errPort
	}
	l, err := mem.New(next, nil).Dial(ctx, in)
	if err != nil {
		return nil, err
	}
	b.running++
	return &countedLink{Link: l, b: b}, nil
}

// A countedLink is a process that runs until it is closed.
type countedLink struct {
	transport.Link

	b    *workbench
	once sync.Once
}

// Close ends the process.
func (l *countedLink) Close(ctx context.Context) error {
	err := l.Link.Close(ctx)
	l.once.Do(func() {
		l.b.mu.Lock()
		defer l.b.mu.Unlock()
		l.b.running--
	})
	return err
}

// Key is empty.
func (b *workbench) Key() string { return "" }

// offers sets what the next start connects to.
func (b *workbench) offers(features ...server.Feature) {
	s := server.New("words", "1.0.0", &server.Options{Versions: []string{b.version}})
	s.Add(features...)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = s
}

// breaks has the next start fail.
func (b *workbench) breaks() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = nil
}

// eras runs a test with processes and clients of both eras, in the time of the test.
func eras(t *testing.T, o *client.Options, body func(t *testing.T, b *workbench)) {
	t.Helper()
	erasOf(t, o, dev.Options{}, body)
}

// erasOf is eras with options of the runner. With StopFirst, processes cannot run beside each other.
func erasOf(t *testing.T, o *client.Options, opts dev.Options, body func(t *testing.T, b *workbench)) {
	t.Helper()
	for _, process := range []string{handshake, stateless} {
		for _, version := range []string{handshake, stateless} {
			t.Run("process "+process+", client "+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := &workbench{t: t, version: process, notices: make(chan string, 100), alone: opts.StopFirst}
					b.offers(tool("one"))
					opts.Report = b.report
					b.runner = dev.NewRunner(func() transport.Dialer { return b }, &opts)
					t.Cleanup(func() {
						if err := b.runner.Close(); err != nil {
							t.Error(err)
						}
					})
					body(t, b.connect(version, o))
				})
			})
		}
	}
}

func (b *workbench) report(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reported = append(b.reported, text)
}

// connect starts the runner and connects the client.
func (b *workbench) connect(version string, o *client.Options) *workbench {
	b.t.Helper()
	if err := b.runner.Start(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	var opts client.Options
	if o != nil {
		opts = *o
	}
	opts.Versions = []string{version}
	opts.OnToolsChanged = func(context.Context) { b.notices <- "tools" }
	opts.OnResourceUpdated = func(_ context.Context, uri string) { b.notices <- uri }
	opts.OnDisconnect = func(err error) { b.t.Errorf("the client was disconnected: %v", err) }
	c, err := client.Connect(b.t.Context(), mem.New(b.runner.Server(), nil), &opts)
	if err != nil {
		b.t.Fatal(err)
	}
	b.client = c
	b.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.t.Error(err)
		}
	})
	return b
}

// tools are the names of the tools that the client sees.
func (b *workbench) tools() []string {
	b.t.Helper()
	var names []string
	for tool, err := range b.client.Tools(b.t.Context()) {
		if err != nil {
			b.t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

func (b *workbench) restart() {
	b.t.Helper()
	if err := b.runner.Restart(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// call calls a tool and returns its text.
func (b *workbench) call(name string) (string, error) {
	return client.Call[string](b.t.Context(), b.client, name, mcp.None{})
}

// tool is a tool that says its name.
func tool(name string) server.Feature {
	return server.Tool(name, "Says its name.", func(context.Context, mcp.None) (string, error) { return name, nil })
}

// says is a tool that says a text.
func says(name, text string) server.Feature {
	return server.Tool(name, "Says something.", func(context.Context, mcp.None) (string, error) { return text, nil })
}

// A stuck tool waits until it is let go, or cancelled.
type stuck struct{ began, let chan struct{} }

func newStuck() *stuck { return &stuck{make(chan struct{}, 10), make(chan struct{})} }

func (s *stuck) wait(ctx context.Context, text string) (string, error) {
	s.began <- struct{}{}
	select {
	case <-s.let:
		return text, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (s *stuck) tool(name, text string) server.Feature {
	return server.Tool(name, "Waits.", func(ctx context.Context, _ mcp.None) (string, error) { return s.wait(ctx, text) })
}

// callsSlow has the process offer a tool that waits, and calls it. It returns when the call is under
// way; its error comes later.
func (b *workbench) callsSlow() <-chan error {
	slow := newStuck()
	b.offers(slow.tool("slow", "old"))
	b.restart()
	synctest.Wait()
	errs := make(chan error, 1)
	go func() {
		_, err := b.call("slow")
		errs <- err
	}()
	<-slow.began
	return errs
}

// dialer connects another workbench to its own processes.
func (b *workbench) dialer(other *workbench) func() transport.Dialer {
	return func() transport.Dialer { return other }
}
