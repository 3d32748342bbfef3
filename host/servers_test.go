package host_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/streamable"
)

// Apply leaves alone what is the same, and does nothing on bad input.
func TestApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, nil, nil)
		ran := 0
		dialers := make(map[string]*controlled)
		entry := func(name, key string) host.Server {
			d := &controlled{Dialer: mem.New(serverOf(t, echo("echo", &ran)), nil)}
			dialers[name+key] = d
			return host.Server{Name: name, Key: key, Dialer: d}
		}
		dials := func(id string) int { return len(dialers[id].attempts()) }
		changes, err := h.Apply([]host.Server{entry("same", "1"), entry("new key", "1"), entry("goes", "1"), entry("off", "1"), entry("idle", "1")})
		if diff := cmp.Diff(host.Changes{Added: []string{"same", "new key", "goes", "off", "idle"}}, changes); err != nil || diff != "" {
			t.Fatalf("%v: %s", err, diff)
		}
		clients := make(map[string]*client.Client)
		for _, name := range []string{"same", "new key", "goes", "off"} {
			if clients[name], err = h.Client(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.Disable("off"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		before := h.Status()
		for name, bad := range map[string][]host.Server{
			"no name":   {entry("same", "2"), {Dialer: dialers["same1"]}},
			"no dialer": {entry("same", "2"), {Name: "x"}},
			"twice":     {entry("same", "2"), entry("same", "3")},
			"timeout":   {{Name: "same", Dialer: dialers["same1"], CallTimeout: -1}},
		} {
			if changes, err := h.Apply(bad); err == nil || changes.Changed != nil {
				t.Errorf("%s: applied %+v", name, changes)
			}
		}
		if diff := cmp.Diff(before, h.Status(), cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) })); diff != "" {
			t.Errorf("bad input changed the servers: %s", diff)
		}
		changes, err = h.Apply([]host.Server{entry("added", "1"), entry("same", "1"), entry("new key", "2"), entry("off", "2"), entry("idle", "2")})
		want := host.Changes{Added: []string{"added"}, Changed: []string{"new key", "off", "idle"}, Removed: []string{"goes"}, Kept: []string{"same"}}
		if diff := cmp.Diff(want, changes); err != nil || diff != "" {
			t.Fatalf("%v: %s", err, diff)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"added", "same", "new key", "off", "idle"}, h.Servers()); diff != "" {
			t.Error(diff)
		}
		for name, state := range map[string]host.ServerState{
			"added": host.StateIdle, "same": host.StateReady, "new key": host.StateReady, "off": host.StateDisabled, "idle": host.StateIdle,
		} {
			expectState(t, h, name, state)
		}
		if c, err := h.Client(t.Context(), "same"); err != nil || c != clients["same"] || dials("new key2") != 1 || dials("off2") != 0 {
			t.Errorf("error %v; the client is the same: %t; dials %d and %d", err, c == clients["same"], dials("new key2"), dials("off2"))
		}
		for _, name := range []string{"new key", "goes", "off"} {
			if _, err := clients[name].CallTool(t.Context(), "echo", textIn{"x"}, nil); !errors.Is(err, client.ErrClosed) {
				t.Errorf("a call of the old client of %s: %v", name, err)
			}
		}
		if _, err := h.Client(t.Context(), "goes"); !errors.Is(err, host.ErrNoServer) {
			t.Errorf("the client of a server that was removed: %v", err)
		}
	})
}

// A server that is disabled is not started, and is when it is enabled and needed.
func TestDisable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, nil, nil)
		ran := 0
		d := add(t, h, host.Server{Name: "one"}, serverOf(t, echo("echo", &ran)), nil)
		waits := add(t, h, host.Server{Name: "two"}, serverOf(t), hung)
		waiting := make(chan error, 1)
		go func() {
			_, err := h.Client(context.Background(), "two")
			waiting <- err
		}()
		h.Settle(t.Context(), time.Second)
		for _, name := range h.Servers() {
			if err := h.Disable(name); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-waiting; !errors.Is(err, host.ErrDisabled) {
			t.Errorf("a client that was waited for: %v", err)
		}
		time.Sleep(time.Hour)
		c := h.Catalog()
		if len(c.Tools) != 0 || len(c.Down) != 0 || c.Servers[0].State != host.StateDisabled || len(d.attempts()) != 1 || len(waits.attempts()) != 1 {
			t.Errorf("disabled: %+v, %d attempts", c, len(d.attempts()))
		}
		if err := h.Retry("one"); !errors.Is(err, host.ErrDisabled) {
			t.Errorf("retrying: %v", err)
		}
		if err := h.Enable("one"); err != nil {
			t.Fatal(err)
		}
		expectState(t, h, "one", host.StateIdle)
		if _, err := h.Client(t.Context(), "one"); err != nil {
			t.Error(err)
		}
		if err := h.Remove("one"); err != nil {
			t.Fatal(err)
		}
		for name, change := range map[string]func(string) error{"remove": h.Remove, "disable": h.Disable, "enable": h.Enable, "retry": h.Retry, "start": func(s string) error { return h.Start(s) }} {
			if err := change("one"); !errors.Is(err, host.ErrNoServer) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Changes of servers are told without polling, and the end of the host. A catalog is
// that of now, so that a state which lasts no time may go by unseen: a start takes a
// second here.
func TestWatchServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(nil)
		d := add(t, h, host.Server{Name: "one"}, serverOf(t), slowStart)
		seen := make(chan host.ServerState, 100)
		done := make(chan error, 1)
		go func() {
			var since uint64
			for {
				c, err := h.WatchServers(context.Background(), since)
				if err != nil {
					done <- err
					return
				}
				if c.Generation <= since {
					t.Errorf("generation %d after %d", c.Generation, since)
				}
				since = c.Generation
				seen <- c.Servers[0].State
			}
		}()
		synctest.Wait()
		h.Catalog()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		d.end()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := h.WatchServers(ctx, h.Catalog().Generation); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nothing has changed, and the error is %v", err)
		}
		closing(t, h)
		if err := <-done; !errors.Is(err, host.ErrClosed) {
			t.Errorf("the end: %v", err)
		}
		close(seen)
		var states []host.ServerState
		for s := range seen {
			if len(states) == 0 || states[len(states)-1] != s {
				states = append(states, s)
			}
		}
		want := []host.ServerState{host.StateIdle, host.StateStarting, host.StateReady, host.StateWaiting, host.StateStarting, host.StateReady, host.StateClosed}
		if diff := cmp.Diff(want, states); diff != "" {
			t.Error(diff)
		}
	})
}

// Close ends at once what waits for servers that hang.
func TestCloseEndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(nil)
		for i := range 5 {
			add(t, h, host.Server{Name: fmt.Sprint(i)}, serverOf(t), hung)
		}
		errs := make(chan error, 5)
		for i := range 5 {
			go func() {
				_, err := h.Client(context.Background(), fmt.Sprint(i))
				errs <- err
			}()
		}
		settled := make(chan *host.Catalog, 1)
		go func() { settled <- h.Settle(context.Background(), time.Hour) }()
		synctest.Wait()
		start := time.Now()
		closing(t, h)
		for range 5 {
			if err := <-errs; !errors.Is(err, host.ErrClosed) {
				t.Errorf("a client: %v", err)
			}
		}
		if c := <-settled; len(c.Down) != 5 || time.Since(start) != 0 {
			t.Errorf("down: %v, after %v", c.Down, time.Since(start))
		}
		closing(t, h) // again
	})
}

// The name of a tool does not depend on which other servers are there.
func TestModelNamesWithoutOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		names := func(down string) map[string]string {
			h := newHost(t, nil, nil)
			for _, name := range []string{"a", "a_", "é", "ü"} {
				var fails func(context.Context, int) error
				if name == down {
					fails = dead
				}
				add(t, h, host.Server{Name: name}, serverOf(t, echo("b.c", &ran), echo("b_c", &ran), echo("_b_c", &ran)), fails)
			}
			list := make(map[string]string)
			for _, tool := range h.Settle(t.Context(), time.Minute).Tools {
				list[tool.Server+"/"+tool.Def.Name] = tool.ModelName
			}
			return list
		}
		all := names("")
		if len(all) != 12 {
			t.Errorf("%d tools", len(all))
		}
		for _, down := range []string{"a", "a_", "é", "ü"} {
			for pair, name := range names(down) {
				if all[pair] != name {
					t.Errorf("without %s, %s is %q and not %q", down, pair, name, all[pair])
				}
			}
		}
	})
}

// Close does not wait for ever for a handler that does not return.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, release := make(chan struct{}), make(chan struct{})
		h := host.New(&host.Options{OnLog: func(string, *mcp.LogParams) {
			close(told)
			<-release
		}})
		asks := server.Tool("ask", "Logs.", func(ctx context.Context, _ mcp.None) (string, error) {
			return "", server.Log(ctx, mcp.LogWarning, "", "hello")
		})
		add(t, h, host.Server{Name: "one", Versions: []string{"2025-11-25"}}, serverOf(t, asks), nil)
		add(t, h, host.Server{Name: "two"}, serverOf(t), nil)
		c, err := h.Client(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = c.CallTool(context.Background(), "ask", nil, nil) }()
		<-told
		start := time.Now()
		err = h.Close()
		if took := time.Since(start); err == nil || took > time.Minute || !strings.Contains(err.Error(), `server "one": a handler has not returned`) || strings.Contains(err.Error(), "two") {
			t.Errorf("closed after %v with %v", took, err)
		}
		close(release)
		synctest.Wait()
		closing(t, h)
	})
}

// A server over HTTP that was restarted, and has forgotten the session, is asked again
// by its client.
func TestSessionForgottenOverHTTP(t *testing.T) {
	var current atomic.Pointer[streamable.Handler]
	ran := 0
	serve := func() { current.Store(streamable.NewHandler(serverOf(t, echo("echo", &ran)), nil)) }
	serve()
	listening := make(chan struct{})
	var once sync.Once
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler := current.Load()
		if r.Method == http.MethodGet {
			once.Do(func() { close(listening) })
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		ts.CloseClientConnections()
		ts.Close()
	})
	h := newHost(t, nil, nil)
	if err := h.Add(host.Server{Name: "one", Dialer: streamable.URL(ts.URL), Versions: []string{"2025-11-25"}}); err != nil {
		t.Fatal(err)
	}
	c, err := h.Client(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	// Another request that came now would be the one that ends the session.
	<-listening
	h.Settle(t.Context(), time.Minute)
	serve()
	if _, err := c.CallTool(t.Context(), "echo", textIn{"x"}, nil); err != nil || ran != 1 {
		t.Errorf("ran %d times: %v", ran, err)
	}
	if now, err := h.Client(t.Context(), "one"); err != nil || now != c {
		t.Errorf("another client: %v", err)
	}
}
