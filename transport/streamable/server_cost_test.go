package streamable_test

import (
	"math"
	"runtime"
	"testing"

	"github.com/parley-mcp/parley/internal/racetest"
	"github.com/parley-mcp/parley/transport/streamable"
)

// What requests cost is counted, so that nobody makes them dearer without
// knowing. Of it 32 allocations and 3.1 KB are net/http's.
func TestRequestCost(t *testing.T) {
	if racetest.Enabled {
		t.Skip("memory is measured in vain")
	}
	w := dialBench(t, streamable.NewHandler(newPeer(nil), nil))
	id, _ := w.round(benchRequest(rpc(0, "initialize", initialize)))
	for _, c := range []struct {
		name          string
		request       []byte
		allocs, bytes uint64
	}{
		{"modern", benchRequest(modernBody(1, "echo", benchText), "MCP-Protocol-Version: "+v2607, "Mcp-Method: echo"), maxModernAllocs, maxModernBytes},
		{"session", benchRequest(rpc(1, "echo", benchText), "Mcp-Session-Id: "+id), maxSessionAllocs, maxSessionBytes},
	} {
		t.Run(c.name, func(t *testing.T) {
			const rounds = 2000
			allocs, bytes := spent(rounds, func() {
				if head, body := w.round(c.request); head != "" {
					t.Fatalf("%s %s", head, body)
				}
			})
			t.Logf("%d allocations, %d bytes", allocs, bytes)
			if allocs > c.allocs || bytes > c.bytes {
				t.Errorf("a request takes %d allocations and %d bytes, want at most %d and %d", allocs, bytes, c.allocs, c.bytes)
			}
		})
	}
}

const (
	maxModernAllocs  = 36
	maxModernBytes   = 3650
	maxSessionAllocs = 37
	maxSessionBytes  = 4000
)

// Each notification of a burst costs its encoding and nothing more.
func TestNotificationCost(t *testing.T) {
	if racetest.Enabled {
		t.Skip("memory is measured in vain")
	}
	const many = 1000
	note := count(many)
	s := newSite(t, newPeer(map[string]method{"count": note}), nil)
	allocs, bytes := spent(20, func() {
		if r := s.modern("count", ""); r.status != 200 || len(r.body) < 60*many {
			t.Fatal(r.body)
		}
	})
	t.Logf("%d allocations, %d bytes", allocs, bytes)
	if allocs > 8*many || bytes > 900*many {
		t.Errorf("%d notifications take %d allocations and %d bytes, want at most %d and %d", many, allocs, bytes, 8*many, 900*many)
	}
}

// spent says how much memory one of many rounds takes, in the whole process: the
// least of three measurements, since what else it does, such as filling pools
// again after a collection, only adds to them.
func spent(rounds int, round func()) (allocs, bytes uint64) {
	for range 10 { // what is made once
		round()
	}
	allocs, bytes = math.MaxUint64, math.MaxUint64
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range rounds {
			round()
		}
		runtime.ReadMemStats(&after)
		allocs = min(allocs, (after.Mallocs-before.Mallocs)/uint64(rounds))
		bytes = min(bytes, (after.TotalAlloc-before.TotalAlloc)/uint64(rounds))
	}
	return allocs, bytes
}
