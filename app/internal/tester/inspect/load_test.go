package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/app/internal/tester/inspect"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/load"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// A tally is what a server saw of calls of its tool: it counts them, and delays each.
type tally struct {
	ok, failed, refused atomic.Int64

	mu                   sync.Mutex
	delays               []time.Duration // of all calls
	first, last          time.Time
	underWay, mostAtOnce int
}

// serve makes the server. The nth call, from 0, takes n%100+1 ms; one of 10 fails, and one of 25 is
// answered with an error.
func (c *tally) serve() *server.Server {
	s := server.New("tally", "1", &server.Options{Logger: slog.New(slog.DiscardHandler), Limits: server.Limits{ToolRate: server.Unlimited}})
	s.Add(server.Tool("work", "Takes a while.", func(context.Context, mcp.None) (string, error) { return "done", nil }))
	s.Use(func(next server.Func) server.Func {
		return func(call *server.Call) (server.Result, error) {
			if call.Method() != mcp.MethodToolsCall {
				return next(call)
			}
			switch n := c.work(); {
			case n%25 == 1:
				c.refused.Add(1)
				return nil, errors.New("no more of that") // an internal error
			case n%10 == 3:
				c.failed.Add(1)
				return &mcp.CallToolResult{IsError: true, Content: mcp.Contents{mcp.Text("as was asked for")}}, nil
			}
			c.ok.Add(1)
			return next(call)
		}
	})
	return s
}

// work is what a call does. It returns its number.
func (c *tally) work() int {
	c.mu.Lock()
	n := len(c.delays)
	delay := time.Duration(n%100+1) * time.Millisecond
	c.delays = append(c.delays, delay)
	c.underWay++
	c.mostAtOnce = max(c.mostAtOnce, c.underWay)
	if n == 0 {
		c.first = time.Now()
	}
	c.mu.Unlock()
	time.Sleep(delay) // of the bubble's time
	c.mu.Lock()
	defer c.mu.Unlock()
	c.underWay--
	c.last = time.Now()
	return n
}

// delay is a percentile of the delays.
func (c *tally) delay(percent float64) float64 {
	sorted := slices.Sorted(slices.Values(c.delays))
	rank := int(math.Ceil(percent / 100 * float64(len(sorted))))
	return float64(sorted[max(rank, 1)-1]) / float64(time.Millisecond)
}

// within says whether a figure is right within a part of 100.
func within(percent, got, want float64) bool { return math.Abs(got-want) <= want*percent/100 }

// What is told of a load is what the server counted, exactly for counts and within 5 % for rates
// and times, in each era, with a rate and without. The time is that of the bubble.
func TestLoadIsRight(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]load.Options{
		"requests": {Clients: 10, Requests: 1000},
		"one":      {Clients: 1, Requests: 300},
		"time":     {Clients: 25, Duration: 5 * time.Second},
		"rate":     {Clients: 50, Rate: 100, Duration: 20 * time.Second},
	} {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { loadIsRight(t, o, version) })
			})
		}
	}
}

func loadIsRight(t *testing.T, o load.Options, version string) {
	t.Helper()
	seen := new(tally)
	s := seen.serve()
	target := &inspect.Target{Dialer: mem.New(s, nil)}
	if version == "2026-07-28" {
		target.Modern = []string{version}
	} else {
		target.Legacy = []string{version}
	}
	o.Kind = func(err error) string {
		if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
			return fmt.Sprint("error ", e.Code)
		}
		return err.Error()
	}
	r, err := target.Load(t.Context(), &inspect.Args{Tool: "work"}, o)
	if err != nil {
		t.Fatal(err)
	}
	ok, failed, refused := seen.ok.Load(), seen.failed.Load(), seen.refused.Load()
	if calls := int64(len(seen.delays)); r.Requests != calls || r.OK != ok || r.ToolErrors != failed || r.Errors != refused || calls == 0 || refused == 0 {
		t.Errorf("told %+v; the server counted %d calls, %d ok, %d failed, %d refused", r, calls, ok, failed, refused)
	}
	if len(r.ErrorMessages) != 1 || r.ErrorMessages[0].Count != refused || r.ErrorMessages[0].Message != "error -32603" {
		t.Errorf("errors %+v, want one kind %d times", r.ErrorMessages, refused)
	}
	elapsed := seen.last.Sub(seen.first)
	if rate := float64(len(seen.delays)) / elapsed.Seconds(); !within(5, r.Throughput, rate) || o.Rate > 0 && !within(5, rate, o.Rate) {
		t.Errorf("%v per second are told, the server saw %v; the rate is %v", r.Throughput, rate, o.Rate)
	}
	if !within(5, r.ElapsedMs, float64(elapsed.Milliseconds())) {
		t.Errorf("%v ms are told, the server saw %v", r.ElapsedMs, elapsed)
	}
	if l := r.Latency; !within(5, l.P50, seen.delay(50)) || !within(5, l.P90, seen.delay(90)) || !within(5, l.P99, seen.delay(99)) ||
		!within(5, l.Max, seen.delay(100)) || !within(5, l.Min, seen.delay(0)) {
		t.Errorf("%+v; the delays are p50 %v, p90 %v, p99 %v, at most %v", l, seen.delay(50), seen.delay(90), seen.delay(99), seen.delay(100))
	}
	if seen.mostAtOnce > o.Clients || o.Rate == 0 && seen.mostAtOnce != o.Clients {
		t.Errorf("%d calls at once, want %d", seen.mostAtOnce, o.Clients)
	}
}

// What cannot be called is an error before any call.
func TestLoadErrors(t *testing.T) {
	t.Parallel()
	for want, test := range map[string]struct {
		tool string
		o    load.Options
	}{
		`no tool "rest"`:      {"rest", load.Options{}},
		"--tool-name":         {"", load.Options{}},
		"1001 clients are to": {"work", load.Options{Clients: 1001}},
	} {
		seen := new(tally)
		s := seen.serve()
		target := &inspect.Target{Dialer: mem.New(s, nil), Modern: []string{"2026-07-28"}}
		_, err := target.Load(t.Context(), &inspect.Args{Tool: test.tool}, test.o)
		if err == nil || !strings.Contains(err.Error(), want) || len(seen.delays) > 0 {
			t.Errorf("%v after %d calls, want %q", err, len(seen.delays), want)
		}
	}
}
