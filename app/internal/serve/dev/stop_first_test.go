package dev_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/app/internal/serve/dev"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// stopFirst runs a test with processes that cannot run beside each other.
func stopFirst(t *testing.T, body func(t *testing.T, b *workbench)) {
	t.Helper()
	erasOf(t, nil, dev.Options{StopFirst: true}, body)
}

// A process that holds a port alone is started again, and the client stays connected.
func TestStopFirst(t *testing.T) {
	stopFirst(t, func(t *testing.T, b *workbench) {
		for _, more := range []string{"two", "three"} {
			b.offers(tool("one"), tool(more))
			b.restart()
			for want := slices.Sorted(slices.Values([]string{"one", more})); !slices.Equal(b.tools(), want); {
				<-b.notices
			}
			if text, err := b.call(more); err != nil || text != more {
				t.Errorf("the new tool: %q, %v", text, err)
			}
		}
	})
	eras(t, nil, func(t *testing.T, b *workbench) { // without the option it cannot be
		b.mu.Lock()
		b.alone = true
		b.mu.Unlock()
		if err := b.runner.Restart(t.Context()); !errors.Is(err, errPort) {
			t.Errorf("got %v", err)
		}
	})
}

// A call under way ends before its process, and what is asked meanwhile waits for the new one, longer
// than it would for one that starts beside another.
func TestStopFirstWaits(t *testing.T) {
	stopFirst(t, func(t *testing.T, b *workbench) {
		slow := newStuck()
		b.offers(slow.tool("slow", "old"), says("who", "old"))
		b.restart()
		synctest.Wait()
		answers := make(chan string, 2)
		ask := func(name string) {
			text, err := b.call(name)
			answers <- text + errorText(err)
		}
		go ask("slow")
		<-slow.began
		b.offers(says("slow", "new"), says("who", "new"))
		hold := make(chan struct{})
		b.mu.Lock()
		starts := b.starts
		b.hold = hold
		b.mu.Unlock()
		restarted := make(chan error, 1)
		go func() { restarted <- b.runner.Restart(t.Context()) }()
		synctest.Wait()
		go ask("who")
		synctest.Wait()
		b.mu.Lock()
		if b.starts != starts || b.running != 1 {
			t.Errorf("during the call there are %d starts and %d processes", b.starts-starts, b.running)
		}
		b.mu.Unlock()
		close(slow.let)
		if text := <-answers; text != "old" {
			t.Errorf("the call under way: %q", text)
		}
		time.Sleep(45 * time.Second) // of the test's own clock: more than WaitTime, less than a call may take
		select {
		case text := <-answers:
			t.Fatalf("the call did not wait: %q", text)
		default:
		}
		close(hold)
		if text := <-answers; text != "new" {
			t.Errorf("the call that waited: %q", text)
		}
		if err := <-restarted; err != nil {
			t.Error(err)
		}
	})
}

// A call that does not end in time fails, and the process ends.
func TestStopFirstDrain(t *testing.T) {
	stopFirst(t, func(t *testing.T, b *workbench) {
		errs := b.callsSlow()
		b.offers(tool("one"))
		start := time.Now()
		b.restart()
		err := <-errs
		if failed, ok := errors.AsType[*jsonrpc.Error](err); !ok || failed.Code != mcp.CodeShuttingDown || !strings.Contains(err.Error(), "it may have run") {
			t.Errorf("the call under way: %v", err)
		}
		if took := time.Since(start); took < 10*time.Second || took > 15*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// If the new process does not start, nothing is offered until one does, and the client stays.
func TestStopFirstNotStarted(t *testing.T) {
	stopFirst(t, func(t *testing.T, b *workbench) {
		b.breaks()
		if err := b.runner.Restart(t.Context()); !errors.Is(err, dev.ErrNotStarted) || !errors.Is(err, errBuild) {
			t.Errorf("%v", err)
		}
		for len(b.tools()) > 0 {
			<-b.notices
		}
		if last := b.reported[len(b.reported)-1]; !strings.Contains(last, "started again when a file changes") {
			t.Errorf("reported: %q", last)
		}
		b.offers(tool("two"))
		b.restart()
		for !slices.Equal(b.tools(), []string{"two"}) {
			<-b.notices
		}
	})
}

// The end of the context ends the wait for calls under way.
func TestStopFirstContext(t *testing.T) {
	stopFirst(t, func(t *testing.T, b *workbench) {
		errs := b.callsSlow()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := b.runner.Restart(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if err := <-errs; err == nil {
			t.Error("the call succeeded")
		}
	})
}
