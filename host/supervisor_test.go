package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// A dialer that a test controls: each attempt is noted, and may fail, and the
// connections can be ended.
type controlled struct {
	transport.Dialer
	// fails says how attempt n, from 1, goes; nil: it works.
	fails func(ctx context.Context, n int) error

	mu    sync.Mutex
	times []time.Time
	link  transport.Link
}

func (d *controlled) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	d.mu.Lock()
	d.times = append(d.times, time.Now())
	n := len(d.times)
	d.mu.Unlock()
	if d.fails != nil {
		if err := d.fails(ctx, n); err != nil {
			return nil, err
		}
	}
	link, err := d.Dialer.Dial(ctx, in)
	d.mu.Lock()
	d.link = link
	d.mu.Unlock()
	return link, err
}

// attempts are the times of the attempts.
func (d *controlled) attempts() []time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.times)
}

// end ends the connection.
func (d *controlled) end() {
	d.mu.Lock()
	link := d.link
	d.mu.Unlock()
	_ = link.Close(context.Background())
}

var errNoAnswer = errors.New("no answer")

func dead(context.Context, int) error { return errNoAnswer }

func hung(ctx context.Context, _ int) error {
	<-ctx.Done()
	return ctx.Err()
}

// slowStart takes a second.
func slowStart(ctx context.Context, _ int) error {
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// add adds a server that a test controls.
func add(t *testing.T, h *host.Host, s host.Server, of transport.Handler, fails func(context.Context, int) error) *controlled {
	t.Helper()
	d := &controlled{Dialer: mem.New(of, nil), fails: fails}
	s.Dialer = d
	if err := h.Add(s); err != nil {
		t.Fatal(err)
	}
	return d
}

// status is that of one server.
func status(t *testing.T, h *host.Host, name string) host.ServerStatus {
	t.Helper()
	for _, s := range h.Status() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no server %q", name)
	return host.ServerStatus{}
}

func expectState(t *testing.T, h *host.Host, name string, want host.ServerState) {
	t.Helper()
	if got := status(t, h, name); got.State != want {
		t.Errorf("server %s is %v (%v), want %v", name, got.State, got.Err, want)
	}
}

// A server is connected when it is first needed, and not before.
func TestServersStartWhenNeeded(t *testing.T) {
	for name, need := range map[string]func(h *host.Host) error{
		"catalog": func(h *host.Host) error { h.Catalog(); return nil },
		"settle":  func(h *host.Host) error { h.Settle(context.Background(), time.Second); return nil },
		"client":  func(h *host.Host) error { _, err := h.Client(context.Background(), "one"); return err },
		"start":   func(h *host.Host) error { return h.Start("one") },
		"retry":   func(h *host.Host) error { return h.Retry("one") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t, nil, nil)
				ran := 0
				d := add(t, h, host.Server{Name: "one", Origin: "a file"}, serverOf(t, echo("echo", &ran)), nil)
				time.Sleep(time.Hour)
				expectState(t, h, "one", host.StateIdle)
				if n := len(d.attempts()); n != 0 {
					t.Errorf("%d attempts before the first need", n)
				}
				if err := need(h); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				s := status(t, h, "one")
				if s.State != host.StateReady || s.Tools != 1 || s.Starts != 1 || s.Version == "" || s.Err != nil || s.Stale || s.Origin != "a file" || s.Since != time.Now() {
					t.Errorf("the status is %+v", s)
				}
				if n := len(d.attempts()); n != 1 {
					t.Errorf("%d attempts", n)
				}
			})
		})
	}
}

// The pauses after attempts in vain are 1 s, doubled up to 1 min, each changed by
// at most a quarter; the eighth attempt is the last until Retry.
func TestBackOffAndGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, nil, nil)
		works := false
		d := add(t, h, host.Server{Name: "one"}, serverOf(t), func(context.Context, int) error {
			if works {
				return nil
			}
			return errNoAnswer
		})
		c := h.Settle(t.Context(), time.Minute)
		if len(c.Down) != 1 || !errors.Is(c.Down[0], errNoAnswer) || c.Down[0].State != host.StateWaiting {
			t.Fatalf("down: %v", c.Down)
		}
		if next := c.Servers[0].NextTry; next.Before(time.Now()) || next.After(time.Now().Add(1250*time.Millisecond)) {
			t.Errorf("the next attempt is in %v", time.Until(next))
		}
		time.Sleep(time.Hour)
		times := d.attempts()
		if len(times) != 8 {
			t.Fatalf("%d attempts, want 8", len(times))
		}
		pause := time.Second
		var exact int
		for i := range times[1:] {
			got := times[i+1].Sub(times[i])
			if got < pause*3/4 || got > pause*5/4 {
				t.Errorf("pause %d is %v, want %v within a quarter", i+1, got, pause)
			}
			if got == pause {
				exact++
			}
			pause = min(2*pause, time.Minute)
		}
		if exact > 1 {
			t.Errorf("%d of the pauses are not changed at random", exact)
		}
		expectState(t, h, "one", host.StateGivenUp)
		_, err := h.Client(t.Context(), "one")
		var se *host.ServerError
		if !errors.As(err, &se) || se.State != host.StateGivenUp || !errors.Is(err, errNoAnswer) || !strings.Contains(err.Error(), "given up after 8 attempts") || !strings.Contains(err.Error(), "retry") {
			t.Errorf("the client of a server that was given up: %v", err)
		}
		h.Catalog() // does not start it either
		works = true
		if err := h.Retry("one"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Client(t.Context(), "one"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if s := status(t, h, "one"); s.State != host.StateReady || s.Err != nil || s.Starts != 9 {
			t.Errorf("after Retry: %+v", s)
		}
	})
}

// A pause ends at once when Retry says so.
func TestRetryWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, nil, nil)
		d := add(t, h, host.Server{Name: "one"}, serverOf(t), func(_ context.Context, n int) error {
			if n > 6 {
				return nil
			}
			return errNoAnswer
		})
		h.Catalog()
		time.Sleep(40 * time.Second) // in the pause of 32 s
		expectState(t, h, "one", host.StateWaiting)
		start := time.Now()
		_, err := h.Client(t.Context(), "one")
		var se *host.ServerError
		if !errors.As(err, &se) || se.State != host.StateWaiting || !strings.Contains(err.Error(), "it is started again in") || time.Since(start) != 0 {
			t.Errorf("the client of a server that waits: %v, after %v", err, time.Since(start))
		}
		if err := h.Retry("one"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		expectState(t, h, "one", host.StateReady)
		if n := len(d.attempts()); n != 7 {
			t.Errorf("%d attempts", n)
		}
	})
}

// A server that wants a person to sign in is not started again by itself.
func TestDeniedIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, nil, nil)
		d := add(t, h, host.Server{Name: "one"}, serverOf(t), func(context.Context, int) error {
			return fmt.Errorf("%w: sign in", transport.ErrDenied)
		})
		h.Catalog()
		time.Sleep(time.Hour)
		expectState(t, h, "one", host.StateGivenUp)
		if n := len(d.attempts()); n != 1 {
			t.Errorf("%d attempts, want 1", n)
		}
	})
}

// A server that ends soon after each start is given up at the fifth time, and one
// that works for a while each time is not.
func TestCrashLoop(t *testing.T) {
	for name, test := range map[string]struct {
		lives time.Duration
		ends  int
		state host.ServerState
	}{
		"after 80 s":  {0, 5, host.StateGivenUp},
		"after 100 s": {20 * time.Second, 5, host.StateGivenUp},
		"not yet":     {0, 4, host.StateReady},
		"after 3 min": {3 * time.Minute, 12, host.StateReady},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t, nil, nil)
				d := add(t, h, host.Server{Name: "one"}, serverOf(t), nil)
				for range test.ends {
					h.Settle(t.Context(), time.Minute)
					time.Sleep(80 * time.Second) // more than the longest pause
					expectState(t, h, "one", host.StateReady)
					time.Sleep(test.lives)
					d.end()
					synctest.Wait()
				}
				time.Sleep(time.Hour)
				s := status(t, h, "one")
				if s.State != test.state {
					t.Errorf("the server is %v (%v), want %v", s.State, s.Err, test.state)
				}
				if s.State == host.StateGivenUp && (s.Starts != 5 || !strings.Contains(s.Err.Error(), "given up after it ended 5 times within 2m0s")) {
					t.Errorf("%d starts, and the reason %q", s.Starts, s.Err)
				}
			})
		})
	}
}

// Twenty servers, five dead and five hung: what works is there within a second, and
// each failure costs its own time once.
func TestManyServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const connectTimeout = 10 * time.Second
		h := newHost(t, &host.Options{ConnectTimeout: connectTimeout}, nil)
		ran := 0
		all := make(map[string]*controlled)
		for i := range 20 {
			name := fmt.Sprintf("s%02d", i)
			var fails func(context.Context, int) error
			switch {
			case i < 5:
				fails = dead
			case i < 10:
				fails = hung
			}
			all[name] = add(t, h, host.Server{Name: name}, serverOf(t, echo("echo", &ran)), fails)
		}
		start := time.Now()
		c := h.Settle(t.Context(), time.Second)
		if took := time.Since(start); took > time.Second {
			t.Errorf("settling took %v, want at most 1 s", took)
		}
		if len(c.Tools) != 10 || len(c.Down) != 10 {
			t.Errorf("%d tools, %d servers are down; want 10 and 10", len(c.Tools), len(c.Down))
		}
		var waits time.Duration
		for range 5 {
			start := time.Now()
			h.Settle(t.Context(), time.Minute)
			waits += time.Since(start)
		}
		if waits > connectTimeout {
			t.Errorf("later, %v were waited for servers that hang, want at most %v once", waits, connectTimeout)
		}
		time.Sleep(time.Minute)
		for name, d := range all {
			i := slices.Index(h.Servers(), name)
			times, own := d.attempts(), time.Duration(0)
			if i >= 10 {
				if len(times) != 1 {
					t.Errorf("%s works, and was dialled %d times", name, len(times))
				}
				continue
			}
			if i >= 5 {
				own = connectTimeout
			}
			if len(times) < 3 {
				t.Errorf("%s was dialled %d times only", name, len(times))
			}
			for k, pause := 1, time.Second; k < len(times); k, pause = k+1, 2*pause {
				if got := times[k].Sub(times[k-1]) - own; got < pause*3/4 || got > pause*5/4 {
					t.Errorf("%s: attempt %d came %v after the one before had failed, want %v within a quarter", name, k+1, got, pause)
				}
			}
		}
	})
}

// The time of a person who is asked to sign in is nobody's time limit.
func TestSignInStopsTheClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, &host.Options{MaxTime: time.Minute}, nil)
		add(t, h, host.Server{Name: "one"}, serverOf(t), func(ctx context.Context, _ int) error {
			defer transport.PauseTimeouts(ctx)()
			time.Sleep(time.Hour)
			return nil
		})
		if _, _, err := begin(t, h, &scripted{}).Ask(t.Context(), "please"); err != nil {
			t.Error(err)
		}
		if s := status(t, h, "one"); s.State != host.StateReady || s.Starts != 1 {
			t.Errorf("the status is %+v", s)
		}
	})
}

// A call at a server whose connection ends fails at once, the calls at others go on,
// and the server is back by itself.
func TestServerEndsInACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, nil, nil)
		slow := server.Tool("slow", "Is slow.", func(ctx context.Context, _ mcp.None) (string, error) {
			select {
			case <-time.After(10 * time.Second):
				return "done", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
		d := add(t, h, host.Server{Name: "one"}, serverOf(t, slow), nil)
		add(t, h, host.Server{Name: "two"}, serverOf(t, slow), nil)
		c := h.Settle(t.Context(), time.Minute)
		errs := make(map[string]error)
		var took time.Duration
		var wg sync.WaitGroup
		for _, name := range []string{"one", "two"} {
			cl, err := h.Client(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				start := time.Now()
				_, err := cl.CallTool(t.Context(), "slow", nil, nil)
				if name == "one" {
					took = time.Since(start)
				}
				errs[name] = err
			})
		}
		time.Sleep(time.Second)
		d.end()
		synctest.Wait()
		now := h.Catalog()
		if s := now.Servers[0]; s.State != host.StateWaiting || s.Err == nil || !s.Stale || s.Tools != 1 || len(now.Tools) != len(c.Tools) || len(now.Down) != 0 {
			t.Errorf("after the end: %+v; %d tools, down %v", s, len(now.Tools), now.Down)
		}
		cl, err := h.Client(t.Context(), "one") // waits for the next attempt
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cl.CallTool(t.Context(), "slow", nil, nil); err != nil {
			t.Errorf("a call after the server is back: %v", err)
		}
		wg.Wait()
		if !errors.Is(errs["one"], transport.ErrClosed) || took != time.Second || errs["two"] != nil {
			t.Errorf("the calls ended with %v after %v, and %v", errs["one"], took, errs["two"])
		}
		if s := status(t, h, "one"); s.State != host.StateReady || s.Starts != 2 || s.Stale || s.Err != nil {
			t.Errorf("in the end: %+v", s)
		}
	})
}

// Each time limit is the server's own, or else the host's.
func TestTimeouts(t *testing.T) {
	for _, own := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			const connect, list, call = 3 * time.Second, 7 * time.Second, 11 * time.Second
			general, s := &host.Options{ConnectTimeout: time.Hour, ListTimeout: time.Hour, CallTimeout: time.Hour}, host.Server{}
			if own {
				s.ConnectTimeout, s.ListTimeout, s.CallTimeout = connect, list, call
			} else {
				general = &host.Options{ConnectTimeout: connect, ListTimeout: list, CallTimeout: call}
			}
			h := newHost(t, general, nil)
			s.Name = "hangs"
			add(t, h, s, serverOf(t), hung)
			asked := make(chan struct{}, 100)
			s.Name = "lists nothing"
			add(t, h, s, silentMethod(t, mcp.MethodToolsList, asked), nil)
			s.Name = "answers nothing"
			add(t, h, s, silentMethod(t, mcp.MethodToolsCall, asked), nil)
			ends := make(map[string]time.Duration)
			start := time.Now()
			var since uint64
			for len(ends) < 2 {
				c, err := h.WatchServers(t.Context(), since)
				if err != nil {
					t.Fatal(err)
				}
				since = c.Generation
				for _, st := range c.Servers {
					if _, known := ends[st.Name]; !known && st.Err != nil {
						ends[st.Name] = time.Since(start)
					}
				}
				h.Catalog()
			}
			c, err := h.Client(t.Context(), "answers nothing")
			if err != nil {
				t.Fatal(err)
			}
			start = time.Now()
			if _, err := c.CallTool(t.Context(), "say", nil, nil); !errors.Is(err, client.ErrTimeout) {
				t.Errorf("the call: %v", err)
			}
			ends["answers nothing"] = time.Since(start)
			want := map[string]time.Duration{"hangs": connect, "lists nothing": list, "answers nothing": call}
			if diff := cmp.Diff(want, ends); diff != "" {
				t.Errorf("own limits %t: %s", own, diff)
			}
		})
	}
}

// A server that is silent from the start has the whole ConnectTimeout, not that of a call.
func TestConnectTimeoutOfSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, nil, nil)
		asked := make(chan struct{}, 100)
		s := silentMethod(t, mcp.MethodInitialize, asked)
		add(t, h, host.Server{Name: "one", Versions: []string{"2025-11-25"}}, s, nil)
		start := time.Now()
		_, err := h.Client(t.Context(), "one")
		if took := time.Since(start); took != 2*time.Minute || err == nil || !strings.Contains(err.Error(), "start its command by hand") {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// Where all servers are slow today, and some hang, a run begins with what is there first.
func TestSlowServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 3 * time.Second
		h := newHost(t, nil, nil)
		ran := 0
		for i, fails := range []func(context.Context, int) error{
			hung, dead,
			func(context.Context, int) error { time.Sleep(slow); return nil },
			func(context.Context, int) error { time.Sleep(slow + 100*time.Millisecond); return nil },
		} {
			add(t, h, host.Server{Name: fmt.Sprintf("s%d", i)}, serverOf(t, echo("echo", &ran)), fails)
		}
		m := &scripted{}
		start := time.Now()
		if _, _, err := begin(t, h, m).Ask(t.Context(), "please"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > slow+time.Second {
			t.Errorf("the run took %v, want at most a second more than the servers", took)
		}
		if n := len(m.requests()[0].Tools); n != 2 {
			t.Errorf("the model was given %d tools, want those of both servers", n)
		}
	})
}
