package host_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// A silent server changes its tools without a word, and says for how long its list stays.
type silentServer struct {
	*server.Server

	ttl   func(cursor bool) time.Duration // of the first page, and of others
	grown atomic.Bool                     // a second tool is there
	fails atomic.Bool                     // lists are refused
	lists atomic.Int32                    // requests for pages
}

func silent(t *testing.T, pageSize int, ttl func(cursor bool) time.Duration) *silentServer {
	t.Helper()
	ran := 0
	s := &silentServer{Server: server.New("silent", "1", &server.Options{Limits: server.Limits{PageSize: pageSize, ListRate: server.Unlimited}}), ttl: ttl}
	s.Add(echo("first", &ran), echo("second", &ran), echo("third", &ran))
	s.Visible(func(_ context.Context, it server.Item) bool { return it.Name != "third" || s.grown.Load() })
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			res, err := next(c)
			if c.Method() != mcp.MethodToolsList || err != nil {
				return res, err
			}
			s.lists.Add(1)
			if s.fails.Load() {
				return nil, errors.New("no list today")
			}
			params, _ := c.Params().(*mcp.ListParams)
			res.(mcp.CacheableResult).Hints().TTLMs = new(s.ttl(params != nil && params.Cursor != nil).Milliseconds())
			return res, nil
		}
	})
	t.Cleanup(func() {
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("shutting the server down: %v", err)
		}
	})
	return s
}

// host is a host of the server.
func (s *silentServer) host(t *testing.T) *host.Host {
	t.Helper()
	h := newHost(t, &host.Options{Policy: allowing(t, "*"), MaxTime: 24 * time.Hour}, nil)
	if err := h.Add(host.Server{Name: "one", Dialer: mem.New(s.Server, nil)}); err != nil {
		t.Fatal(err)
	}
	return h
}

func lasting(d time.Duration) func(bool) time.Duration {
	return func(bool) time.Duration { return d }
}

// A list whose time is over is read again when it is needed, and not before.
func TestListOverItsTime(t *testing.T) {
	for name, test := range map[string]struct {
		ttl   time.Duration
		after time.Duration
		want  int // tools
	}{
		"fresh":        {5 * time.Minute, 4 * time.Minute, 2},
		"over":         {5 * time.Minute, 6 * time.Minute, 3},
		"no time":      {0, 30 * 24 * time.Hour, 2},
		"a month":      {30 * 24 * time.Hour, 25 * time.Hour, 3},
		"overflowing":  {1<<63 - 1, 25 * time.Hour, 3},
		"a short time": {time.Millisecond, time.Hour, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := silent(t, 0, lasting(test.ttl))
				h := s.host(t)
				if n := len(h.Settle(t.Context(), time.Minute).Tools); n != 2 {
					t.Errorf("at first there are %d tools, want 2", n)
				}
				s.grown.Store(true)
				time.Sleep(test.after)
				if n := s.lists.Load(); n != 1 {
					t.Errorf("the list was read %d times before it was needed again, want once", n)
				}
				if n := len(h.Settle(t.Context(), time.Minute).Tools); n != test.want {
					t.Errorf("%v later there are %d tools, want %d", test.after, n, test.want)
				}
			})
		})
	}
}

// The model sees what is listed again: at the first turn of a run, and in the course of one.
func TestRunAfterTheTimeOfAList(t *testing.T) {
	for name, test := range map[string]struct {
		between, within time.Duration
		want            []int // tools at each turn
	}{
		"first turn": {10 * time.Minute, 0, []int{3, 3, 3}},
		"later turn": {0, 10 * time.Minute, []int{2, 2, 3}}, // no turn but the first waits
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := silent(t, 0, lasting(5*time.Minute))
				h := s.host(t)
				h.Settle(t.Context(), time.Minute)
				s.grown.Store(true)
				time.Sleep(test.between)
				call := use("one__first", `{"text":""}`)
				m := &scripted{turns: []turn{func(r *host.Request) []host.Piece {
					time.Sleep(test.within)
					return call(r)
				}, func(r *host.Request) []host.Piece {
					time.Sleep(time.Second) // the list comes
					return call(r)
				}}}
				if _, _, err := begin(t, h, m).Ask(t.Context(), "please"); err != nil {
					t.Fatal(err)
				}
				var got []int
				for _, r := range m.requests() {
					got = append(got, len(r.Tools))
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// Each page has its own time: what the client has in its cache is not read again, and its
// time counts from when it came.
func TestPagesOverTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := silent(t, 1, func(cursor bool) time.Duration {
			if cursor {
				return 2 * time.Minute
			}
			return 5 * time.Minute
		})
		h := s.host(t)
		var reads []int32
		for range 4 { // at 0, 3, 6 and 7 minutes
			h.Settle(t.Context(), time.Minute)
			reads = append(reads, s.lists.Load())
			time.Sleep([]time.Duration{3 * time.Minute, 3 * time.Minute, time.Minute, 0}[len(reads)-1])
		}
		// Both pages; the second alone; both, since 6 minutes are more than 5; none.
		if diff := cmp.Diff([]int32{2, 3, 5, 5}, reads); diff != "" {
			t.Error(diff)
		}
	})
}

// A list that cannot be read again leaves the tools as they were, and is read when it can
// be. A short time does not make it be read more than once per second.
func TestListOverItsTimeInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := silent(t, 0, lasting(time.Minute))
		h := s.host(t)
		h.Settle(t.Context(), time.Minute)
		s.grown.Store(true)
		s.fails.Store(true)
		time.Sleep(2 * time.Minute)
		c := h.Settle(t.Context(), time.Minute)
		if st := c.Servers[0]; len(c.Tools) != 2 || !st.Stale || st.Err == nil || st.State != host.StateReady {
			t.Errorf("%d tools, %+v", len(c.Tools), st)
		}
		s.fails.Store(false)
		time.Sleep(2 * time.Minute)
		if c := h.Settle(t.Context(), time.Minute); len(c.Tools) != 3 || c.Servers[0].Stale {
			t.Errorf("%d tools, %+v", len(c.Tools), c.Servers[0])
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := silent(t, 0, lasting(time.Millisecond))
		h := s.host(t)
		start := time.Now()
		for time.Since(start) < 10*time.Second {
			h.Settle(t.Context(), 50*time.Millisecond)
			time.Sleep(50 * time.Millisecond)
		}
		if n := s.lists.Load(); n < 5 || n > 11 {
			t.Errorf("the list was read %d times in 10 s, want at most once per second", n)
		}
	})
}
