package load_test

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/load"
)

// A target counts calls and connections, and each call takes as long as it says.
type target struct {
	calls, open, opened atomic.Int64

	takes func(n int64) time.Duration // the nth call, from 0
	fails func(n int64) error
}

func (s *target) connect(context.Context) (*load.Conn, error) {
	s.open.Add(1)
	s.opened.Add(1)
	return &load.Conn{
		Call: func(ctx context.Context) error {
			n := s.calls.Add(1) - 1
			if s.takes != nil {
				select {
				case <-time.After(s.takes(n)):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			if s.fails != nil {
				return s.fails(n)
			}
			return nil
		},
		Close: func() error { s.open.Add(-1); return nil },
	}, nil
}

// near says whether a figure is right within a hundredth, which is less exact than it has to be.
func near(got, want float64) bool { return math.Abs(got-want) <= want/100 }

// run runs in a bubble with its own time.
func run(t *testing.T, s *target, o load.Options, check func(r *load.Report)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.Connect, o.Kind = s.connect, error.Error
		r, err := load.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if s.open.Load() != 0 || r.Requests != s.calls.Load() {
			t.Errorf("%d connections are open; %d calls arrived, %d are told", s.open.Load(), s.calls.Load(), r.Requests)
		}
		check(r)
	})
}

// Percentiles, throughput and counts of calls whose times are known.
func TestFigures(t *testing.T) {
	t.Parallel()
	s := &target{takes: func(n int64) time.Duration { return time.Duration(n%1000+1) * time.Millisecond }}
	run(t, s, load.Options{Requests: 10000}, func(r *load.Report) {
		l := r.Latency
		if r.OK != 10000 || !near(l.P50, 500) || !near(l.P90, 900) || !near(l.P99, 990) || !near(l.P999, 999) || !near(l.Max, 1000) || !near(l.Mean, 500.5) {
			t.Errorf("%+v, %+v", r, l)
		}
		if !near(r.Seconds, 5005) || !near(r.PerSecond, 10000/5005.0) {
			t.Errorf("%v s, %v per second", r.Seconds, r.PerSecond)
		}
	})
}

// Clients work at once, each with one call under way, until the time is over.
func TestClients(t *testing.T) {
	t.Parallel()
	s := &target{takes: func(int64) time.Duration { return 99 * time.Millisecond }}
	run(t, s, load.Options{Clients: 20}, func(r *load.Report) {
		if want := int64(20 * 102); r.Requests != want || r.OK != want || s.opened.Load() != 20 || !near(r.Seconds, 10.098) {
			t.Errorf("%+v of %d clients, want %d requests", r, s.opened.Load(), want)
		}
	})
}

// With a rate, a server that stops shows in all the calls that were due meanwhile.
func TestCoordinatedOmission(t *testing.T) {
	t.Parallel()
	stops := func(n int64) time.Duration {
		if n == 500 {
			return 5 * time.Second
		}
		return time.Millisecond
	}
	run(t, &target{takes: stops}, load.Options{Rate: 100, Requests: 1000}, func(r *load.Report) {
		// 500 calls are due during the stop. Each waits for what is left of it, and for those before it.
		l := r.Latency
		if r.OK != 1000 || l.P50 > 100 || l.P90 < 4000 || !near(l.P99, 4910) || !near(l.Max, 5000) || r.NotSent != 0 {
			t.Errorf("%+v, %+v", r, l)
		}
	})
	run(t, &target{takes: stops}, load.Options{Requests: 1000}, func(r *load.Report) {
		if l := r.Latency; !near(l.P99, 1) || !near(l.Max, 5000) {
			t.Errorf("without a rate: %+v", l)
		}
	})
}

// The rate is kept by as many clients as there are, and what they could not send is told.
func TestRate(t *testing.T) {
	t.Parallel()
	quick := &target{takes: func(int64) time.Duration { return time.Millisecond }}
	run(t, quick, load.Options{Clients: 4, Rate: 50, Duration: 10 * time.Second}, func(r *load.Report) {
		if r.Requests != 500 || r.NotSent != 0 || !near(r.Latency.Max, 1) || r.Rate != 50 || r.Clients != 4 {
			t.Errorf("%+v, %+v", r, r.Latency)
		}
	})
	slow := &target{takes: func(int64) time.Duration { return time.Second }}
	run(t, slow, load.Options{Clients: 2, Rate: 10, Duration: 10 * time.Second}, func(r *load.Report) {
		if r.Requests+r.NotSent != 100 || r.Requests < 19 || r.Requests > 22 || r.Latency.Max < 8000 {
			t.Errorf("%+v, %+v", r, r.Latency)
		}
	})
}

// Errors are counted by kind, and their times are not those of calls that succeed.
func TestErrors(t *testing.T) {
	t.Parallel()
	s := &target{
		takes: func(n int64) time.Duration { return time.Duration(1+n%2*99) * time.Millisecond },
		fails: func(n int64) error {
			switch {
			case n%2 == 0:
				return nil
			case n%4 == 1:
				return errors.New("refused")
			}
			return errors.New("lost")
		},
	}
	run(t, s, load.Options{Requests: 100}, func(r *load.Report) {
		if r.OK != 50 || r.Errors["refused"] != 25 || r.Errors["lost"] != 25 || !near(r.Latency.Max, 1) {
			t.Errorf("%+v, %+v", r, r.Latency)
		}
	})
	run(t, &target{fails: func(int64) error { return errors.New("no") }}, load.Options{Requests: 3}, func(r *load.Report) {
		if r.OK != 0 || r.Errors["no"] != 3 || r.Latency != nil {
			t.Errorf("%+v", r)
		}
	})
}

// Failures have a count of their own, kinds of errors beyond the most are one, and with TimeAll the
// times of both count.
func TestKinds(t *testing.T) {
	t.Parallel()
	s := &target{
		takes: func(n int64) time.Duration { return time.Duration(n+1) * time.Millisecond },
		fails: func(n int64) error {
			if n < 20 {
				return load.ErrFailed
			}
			return errors.New("error " + strconv.FormatInt(n%40, 10))
		},
	}
	run(t, s, load.Options{Requests: 100, TimeAll: true}, func(r *load.Report) {
		if r.OK != 0 || r.Failed != 20 || len(r.Errors) != load.MaxKinds+1 || r.Errors["error 20"] != 2 || r.Errors[load.OtherKinds] != 60 {
			t.Errorf("%+v", r)
		}
		if l := r.Latency; l == nil || !near(l.Min, 1) || !near(l.P50, 50) || !near(l.Max, 100) {
			t.Errorf("%+v", l)
		}
	})
}

// The end of ctx ends a run, which tells what it had by then.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &target{takes: func(n int64) time.Duration {
			if n < 10 {
				return time.Millisecond
			}
			return time.Hour
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := load.Run(ctx, load.Options{Connect: s.connect, Kind: error.Error, Clients: 3, Rate: 100, Duration: time.Hour})
		if err != nil || !r.Interrupted || r.OK != 10 || len(r.Errors) != 0 || r.Requests != 13 || r.NotSent != 0 || s.open.Load() != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// Clients that cannot connect end the run, and the connections that were made are closed.
func TestConnect(t *testing.T) {
	t.Parallel()
	s := &target{}
	var mu sync.Mutex
	tries := 0
	_, err := load.Run(t.Context(), load.Options{Clients: 50, Kind: error.Error, Connect: func(ctx context.Context) (*load.Conn, error) {
		mu.Lock()
		tries++
		fails := tries == 20
		mu.Unlock()
		if fails {
			return nil, errors.New("no more room")
		}
		return s.connect(ctx)
	}})
	if err == nil || !strings.Contains(err.Error(), "of 50: no more room") || s.open.Load() != 0 || s.calls.Load() != 0 {
		t.Errorf("%v; %d connections are open, %d calls", err, s.open.Load(), s.calls.Load())
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := load.Run(ctx, load.Options{Connect: s.connect, Kind: error.Error}); !errors.Is(err, enough) {
		t.Errorf("a run that ended before it began: %v", err)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]load.Options{
		"there may be 1 to 1000":   {Clients: 1001},
		"there may be 1 to 1000 ":  {Clients: -1},
		"it may be up to 1000000":  {Rate: 2e6},
		"it may be up to 1000000 ": {Rate: math.NaN()},
		"it may take up to 24h0m0": {Duration: 25 * time.Hour},
		"there may be up to 1000":  {Requests: -1},
	} {
		if _, err := load.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}
