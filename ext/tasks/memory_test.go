package tasks_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/ext/tasks/storetest"
	"github.com/parley-mcp/parley/internal/racetest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	storetest.Test(t, func(testing.TB) storetest.Backend {
		var ahead atomic.Int64
		store := tasks.MemoryAt(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
		return storetest.Backend{
			Open:    func(testing.TB) tasks.Store { return store },
			Advance: func(d time.Duration) { ahead.Add(int64(d)) },
		}
	})
	if tasks.Memory().Durable() {
		t.Error("memory is durable")
	}
}

// The store reads the ordinary clock, which stands still in a bubble: a lease and a
// task end when they should, to the nanosecond.
func TestMemoryClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := tasks.Memory()
		n := &tasks.NewTask{ID: "t", Owner: "ada", TTL: time.Hour}
		if _, _, err := store.Create(t.Context(), n, time.Minute); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			sleep   time.Duration
			claimed int
		}{{time.Minute - time.Nanosecond, 0}, {time.Nanosecond, 1}, {0, 0}} {
			time.Sleep(step.sleep)
			if claimed, err := store.Claim(t.Context(), time.Minute, 1, nil); err != nil || len(claimed) != step.claimed {
				t.Errorf("%d tasks were claimed, error %v, want %d", len(claimed), err, step.claimed)
			}
		}
		time.Sleep(59*time.Minute - time.Nanosecond)
		if _, err := store.Get(t.Context(), "t", "ada"); err != nil {
			t.Errorf("before the TTL has passed: %v", err)
		}
		time.Sleep(time.Nanosecond)
		if _, err := store.Get(t.Context(), "t", "ada"); err == nil {
			t.Error("the TTL has passed and the task is known")
		}
	})
}

// 10,000 kept tasks take at most 2 KiB each in memory beside their results, and nothing
// once they have expired.
func TestMemorySize(t *testing.T) {
	const (
		kept  = 10_000
		limit = 2 << 10
	)
	var ahead time.Duration
	store := tasks.MemoryAt(func() time.Time { return time.Now().Add(ahead) })
	before := heap()
	for i := range kept {
		owner := fmt.Sprintf("https://as.example user %d", i%100)
		_, l, err := store.Create(t.Context(), &tasks.NewTask{
			ID: fmt.Sprintf("%032d", i), Owner: owner, LimitKey: owner, Tool: "slow", Message: "begun", TTL: time.Hour,
		}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 {
			continue // one of ten still runs
		}
		end := &tasks.End{Status: tasks.Completed, Result: []byte(`{"content":[{"type":"text","text":"done"}]}`), Message: "done"}
		if _, err := store.Change(t.Context(), l, tasks.Change{End: end}); err != nil {
			t.Fatal(err)
		}
	}
	each := (heap() - before) / kept
	t.Logf("a task takes %d bytes", each)
	if each > limit && !racetest.Enabled {
		t.Errorf("a task takes %d bytes, want at most %d", each, limit)
	}
	ahead = time.Hour
	if n, err := store.Expire(t.Context()); n != kept || err != nil {
		t.Errorf("%d tasks were deleted, error %v", n, err)
	}
	if left := heap() - before; left > kept*limit/4 && !racetest.Enabled {
		t.Errorf("after all tasks were deleted %d bytes are left", left)
	}
	runtime.KeepAlive(store)
}

// heap is how much memory is in use, without what is free.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
