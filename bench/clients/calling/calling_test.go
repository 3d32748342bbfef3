package calling_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/bench/clients/calling"
	"github.com/parley-mcp/parley/bench/fixture"
)

// Each makes exactly the calls it is told, as many at once as it is told.
func TestEach(t *testing.T) {
	for _, c := range []struct{ calls, concurrency int }{{10, 1}, {10, 3}, {2, 4}, {0, 2}} {
		var made, now, most atomic.Int64
		// The first calls wait for each other, and show how many there are at once.
		var first sync.WaitGroup
		first.Add(min(c.calls, c.concurrency))
		run := calling.Each(func(context.Context) error {
			if most.Load() < now.Add(1) {
				most.Store(now.Load())
			}
			if made.Add(1) <= int64(c.concurrency) {
				first.Done()
				first.Wait()
			}
			now.Add(-1)
			return nil
		})
		if err := run(c.calls, c.concurrency); err != nil {
			t.Error(err)
		}
		if made.Load() != int64(c.calls) || most.Load() > int64(c.concurrency) {
			t.Errorf("%d calls, %d at once: %d, %d at once", c.calls, c.concurrency, made.Load(), most.Load())
		}
	}
}

func TestEachFails(t *testing.T) {
	wrong := errors.New("wrong")
	var made atomic.Int64
	err := calling.Each(func(context.Context) error {
		if made.Add(1) == 3 {
			return wrong
		}
		return nil
	})(1_000_000, 2)
	if !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
	if made.Load() == 1_000_000 {
		t.Error("it went on")
	}
}

func TestCheck(t *testing.T) {
	if err := calling.Check(fixture.Text); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"", fixture.Text + "!"} {
		if calling.Check(text) == nil {
			t.Errorf("%q passes", text)
		}
	}
}
