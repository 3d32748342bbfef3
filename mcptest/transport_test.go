package mcptest_test

import (
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// Proves: SEC-DOS-1, FLOW-SHUTDOWN. The kit passes over memory.
func TestTransportKit(t *testing.T) {
	mcptest.TestTransport(t, func(_ *testing.T, h transport.Handler, o mcptest.TransportOptions) transport.Dialer {
		return mem.New(h, &mem.Options{MaxMessage: o.MaxMessage})
	})
}

// A goroutine that stays is found; one that leaves is not held against the test.
func TestNoLeaks(t *testing.T) {
	recorder := &cleanups{TB: t}
	mcptest.NoLeaks(recorder)
	leave := make(chan struct{})
	left := make(chan struct{})
	go func() { defer close(left); <-leave }()
	close(leave)
	<-left
	recorder.run()
	if recorder.failed {
		t.Error("NoLeaks complained about a goroutine that had ended")
	}
}

// A goroutine that stays is found once its time is up.
func TestNoLeaksFinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := &cleanups{TB: t}
		mcptest.NoLeaks(recorder)
		leave := make(chan struct{})
		go func() { <-leave }()
		recorder.run()
		close(leave)
		if !recorder.failed {
			t.Error("NoLeaks did not see a goroutine that stayed")
		}
	})
}

// cleanups is a testing.TB whose clean-ups are run by hand.
type cleanups struct {
	testing.TB
	fs     []func()
	failed bool
}

func (c *cleanups) Cleanup(f func())      { c.fs = append(c.fs, f) }
func (c *cleanups) Helper()               {}
func (c *cleanups) Errorf(string, ...any) { c.failed = true }

func (c *cleanups) run() {
	for _, f := range c.fs {
		f()
	}
}
