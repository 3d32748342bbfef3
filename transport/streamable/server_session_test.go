package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/internal/racetest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

const initialize = `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}`

// Proves: SEC-DOS-1: sessions are counted, by caller and altogether.
func TestSessionLimits(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newSite(t, newPeer(nil), &streamable.Options{MaxSessions: 3, MaxSessionsPerPrincipal: 2})
	try := func(user string) outcome {
		return s.send(http.MethodPost, rpc(0, "initialize", initialize), "X-User", user)
	}
	first := try("ada").header.Get("Mcp-Session-Id")
	s.check("second", try("ada"), 200)
	r := try("ada")
	tooMany, ending := fmt.Sprint(mcp.CodeTooManyInFlight), fmt.Sprint(mcp.CodeShuttingDown)
	s.check("third of one caller", r, 429, tooMany, "retryAfterMs")
	if r.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q", r.header.Get("Retry-After"))
	}
	s.check("refused handshake", s.send(http.MethodPost, rpc(0, "initialize", `"protocolVersion":"bad"`), "X-User", "bob"), 200, "error")
	s.check("another caller", try("bob"), 200)
	s.check("fourth of all", try("eve"), 429, tooMany)
	s.check("delete", s.send(http.MethodDelete, "", "Mcp-Session-Id", first), 204)
	s.check("after delete", try("ada"), 200)
	if err := s.h.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.check("after Shutdown", try("bob"), 503, ending)
}

// Proves: SEC-HTTP-1: an id is of our making, unguessable, and of use to the
// one who got it alone.
func TestSessionIDs(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newSite(t, newPeer(nil), nil)
	seen := make(map[string]bool)
	for range 20 {
		id := s.open(v2511)
		if len(id) < 26 || seen[id] || strings.ContainsFunc(id, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
			t.Fatalf("session id %q", id)
		}
		seen[id] = true
	}
	id := s.open(v2511)
	others := []outcome{
		s.send(http.MethodPost, rpc(1, "echo", ""), "Mcp-Session-Id", id, "X-User", "eve"),
		s.send(http.MethodGet, "", "Mcp-Session-Id", id, "X-User", "eve"),
		s.send(http.MethodDelete, "", "Mcp-Session-Id", id, "X-User", "eve"),
	}
	unknown := s.send(http.MethodPost, rpc(1, "echo", ""), "Mcp-Session-Id", "chosen-by-the-client")
	for _, r := range others {
		s.check("another user", r, 404)
		if r.body != unknown.body {
			t.Errorf("body %s for another user's session, %s for an unknown one", r.body, unknown.body)
		}
	}
	s.check("its user", s.send(http.MethodPost, rpc(1, "echo", ""), "Mcp-Session-Id", id), 200)
	s.check("fixation", s.send(http.MethodPost, rpc(0, "initialize", initialize), "Mcp-Session-Id", "chosen-by-the-client"), 404)
	s.check("fixation", s.send(http.MethodPost, rpc(1, "echo", ""), "Mcp-Session-Id", "chosen-by-the-client"), 404)
}

func TestSessionRefused(t *testing.T) {
	mcptest.NoLeaks(t)
	p := newPeer(nil)
	s := newSite(t, p, nil)
	p.refusal = errors.New("the database is locked")
	r := s.send(http.MethodPost, rpc(0, "initialize", initialize))
	s.check("a reason of ours", r, 503, "-32603")
	if strings.Contains(r.body, "database") || r.header.Get("Retry-After") == "" {
		t.Errorf("body %s, headers %v", r.body, r.header)
	}
	p.refusal = jsonrpc.NewError(-31004, "closing time")
	s.check("a reason for the client", s.send(http.MethodPost, rpc(0, "initialize", initialize)), 503, "closing time", "-31004")
}

// A session that nobody uses ends; one with a request or a stream does not.
func TestSessionIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		p := newPeer(map[string]method{"wait": g.wait})
		s := newPipes(t, p, nil)
		idle, busy, listening := s.open(v2511), s.open(v2511), s.open(v2511)
		ping := func(id string, status int) {
			t.Helper()
			s.check("ping", s.send(http.MethodPost, rpc(1, "echo", ""), "Mcp-Session-Id", id), status)
		}
		read := func(f *feed) {
			go func() {
				for {
					if _, err := f.events.Next(); err != nil {
						return
					}
				}
			}()
		}
		read(s.follow(http.MethodGet, "", "Mcp-Session-Id", listening))
		read(s.follow(http.MethodPost, rpc(2, "wait", ""), "Mcp-Session-Id", busy))
		for range 3 {
			time.Sleep(25 * time.Minute)
			ping(idle, 200)
		}
		time.Sleep(40 * time.Minute)
		ping(idle, 404)
		ping(listening, 200)
		ping(busy, 200)
		g.release <- struct{}{}
		synctest.Wait()
		time.Sleep(40 * time.Minute)
		ping(busy, 404)
		p.mu.Lock()
		defer p.mu.Unlock()
		if err := p.sessions[0].closed; !errors.Is(err, transport.ErrClosed) {
			t.Errorf("the idle session was closed with %v", err)
		}
	})
}

// The end of a session ends what is under way in it, and DELETE waits for that.
func TestSessionDelete(t *testing.T) {
	mcptest.NoLeaks(t)
	g := newGate()
	s := newSite(t, newPeer(map[string]method{"wait": g.wait, "quiet": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
		g.entered <- ctx
		<-ctx.Done()
		return nil, errNone
	}}), nil)
	id := s.open(v2511)
	listening := s.follow(http.MethodGet, "", "Mcp-Session-Id", id)
	listening.primed()
	answers := make(chan outcome, 2)
	for i, name := range []string{"wait", "quiet"} {
		go func() { answers <- s.send(http.MethodPost, rpc(i, name, ""), "Mcp-Session-Id", id) }()
	}
	one, two := within(t, "a request", g.entered), within(t, "a request", g.entered)
	s.check("delete", s.send(http.MethodDelete, "", "Mcp-Session-Id", id), 204)
	if one.Err() == nil || two.Err() == nil {
		t.Error("DELETE was answered while requests were under way")
	}
	for range 2 {
		if r := within(t, "an answer", answers); r.status != 200 || strings.Contains(r.body, `"result"`) {
			t.Errorf("status %d, body %s", r.status, r.body)
		}
	}
	listening.ends()
	s.check("delete again", s.send(http.MethodDelete, "", "Mcp-Session-Id", id), 404)
}

// The handler can end a session, even from one of its requests.
func TestSessionClosedByHandler(t *testing.T) {
	mcptest.NoLeaks(t)
	var p *peer
	p = newPeer(map[string]method{"vanish": func(context.Context, *transport.Exchange) (jsonrpc.Body, error) {
		return nil, errors.Join(errNone, p.session().conn.Close(errors.New("enough")))
	}})
	s := newSite(t, p, nil)
	id := s.open(v2511)
	listening := s.follow(http.MethodGet, "", "Mcp-Session-Id", id)
	listening.primed()
	s.check("vanish", s.send(http.MethodPost, rpc(1, "vanish", ""), "Mcp-Session-Id", id), 200)
	listening.ends()
	s.check("afterwards", s.send(http.MethodPost, rpc(1, "echo", ""), "Mcp-Session-Id", id), 404)
	if err := p.session().closed; !errors.Is(err, transport.ErrClosed) || !strings.Contains(err.Error(), "enough") {
		t.Errorf("closed with %v", err)
	}
	if err := notify(t.Context(), p.session().conn, 1); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Send after the end: %v", err)
	}
}

// Requests know who calls, and what stood in the context of their HTTP
// request, but do not end with it.
func TestRequestContext(t *testing.T) {
	mcptest.NoLeaks(t)
	g := newGate()
	type key struct{}
	p := newPeer(map[string]method{"wait": g.wait, "who": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
		return jsonrpc.JSON(map[string]any{"who": x.Principal.Subject, "from": ctx.Value(key{}), "carried": x.Route.Carried}), nil
	}})
	h := streamable.NewHandler(p, asUser(nil))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, "outside")))
	}))
	s := &site{TB: t, h: h, url: srv.URL, client: &http.Client{Transport: &http.Transport{}}, user: "ada"}
	defer func() {
		s.client.CloseIdleConnections()
		srv.Close()
		if err := h.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	id := s.open(v2511)
	s.check("who", s.send(http.MethodPost, rpc(1, "who", ""), "Mcp-Session-Id", id), 200, `"who":"ada"`, `"from":"outside"`, `"carried":false`)
	s.check("who", s.modern("who", ""), 200, `"who":"ada"`, `"from":"outside"`, `"carried":true`)
	f := s.follow(http.MethodPost, rpc(2, "wait", ""), "Mcp-Session-Id", id)
	f.primed()
	ctx := within(t, "the request", g.entered)
	f.hangUp()
	s.check("another", s.send(http.MethodPost, rpc(3, "echo", ""), "Mcp-Session-Id", id), 200)
	if ctx.Err() != nil {
		t.Error("a disconnect cancelled a request of a session (ruling 13)")
	}
	s.check("delete", s.send(http.MethodDelete, "", "Mcp-Session-Id", id), 204)
	if ctx.Err() == nil {
		t.Error("the request outlived its session")
	}
	if got := p.session().conn.Principal(); got.Subject != "ada" || p.session().conn.Shared() {
		t.Errorf("the session is %v's", got)
	}
}

// Sessions begin and end, and requests come, all at the same time.
func TestConcurrentSessions(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newSite(t, newPeer(map[string]method{"count": count(5)}), nil)
	done := make(chan struct{})
	const clients = 10
	for range clients {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 5 {
				id := s.open(v2511)
				f := s.follow(http.MethodGet, "", "Mcp-Session-Id", id)
				go func() { // may win or lose against DELETE
					r := s.send(http.MethodPost, rpc(1, "count", ""), "Mcp-Session-Id", id)
					if r.status != 200 && r.status != 404 && !strings.Contains(r.body, "the relation has ended") {
						t.Errorf("status %d, body %s", r.status, r.body)
					}
					done <- struct{}{}
				}()
				s.check("delete", s.send(http.MethodDelete, "", "Mcp-Session-Id", id), 204)
				f.primed()
				f.ends()
			}
		}()
	}
	for range clients * 6 {
		within(t, "the end of a client", done)
	}
}

// An idle session takes little memory and no goroutine, and a stream that
// waits takes what net/http needs for it. The limits are those of the design.
func TestSessionCost(t *testing.T) {
	if testing.Short() {
		t.Skip("opens thousands of connections")
	}
	const (
		sessions      = 5000
		streams       = 1000
		sessionLimit  = 3 << 10
		listenerLimit = 34 << 10
	)
	opts := &streamable.Options{MaxSessions: -1, MaxSessionsPerPrincipal: -1}
	opts.Access.Principal = func(*http.Request) *principal.Principal { return principal.Local }
	h := streamable.NewHandler(benchServer(), opts)
	w := dialBench(t, h)
	open := benchRequest(rpc(0, "initialize", initialize))
	var ids []string
	for range 10 { // what is made once
		w.round(open)
	}
	before, goroutines := usedMemory(), runtime.NumGoroutine()
	for range sessions {
		id, _ := w.round(open)
		ids = append(ids, id)
	}
	each := (usedMemory() - before) / sessions
	t.Logf("a session takes %d bytes", each)
	if each > sessionLimit && !racetest.Enabled {
		t.Errorf("a session takes %d bytes, want at most %d", each, sessionLimit)
	}
	if more := runtime.NumGoroutine() - goroutines; more > 5 {
		t.Errorf("%d sessions have %d goroutines", sessions, more)
	}
	before, goroutines = usedMemory(), runtime.NumGoroutine()
	var listeners []*listener
	for _, id := range ids[:streams] {
		listeners = append(listeners, w.listen(id))
	}
	each = (usedMemory() - before) / streams
	t.Logf("a stream takes %d bytes and %.1f goroutines", each, float64(runtime.NumGoroutine()-goroutines)/streams)
	if each+sessionLimit > listenerLimit && !racetest.Enabled {
		t.Errorf("a stream takes %d bytes, want at most %d with its session", each, listenerLimit)
	}
	for _, l := range listeners {
		l.conn.Close()
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// usedMemory is what heap and stacks take, without what is free.
func usedMemory() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapInuse + m.StackInuse)
}

// clumsy is a peer that panics where nothing may be left locked or counted.
func clumsy() *linktest.Handler {
	return &linktest.Handler{
		Handler: newPeer(nil),
		OnBegin: func(ctx context.Context, x *transport.Exchange, s transport.Session) func() {
			switch raw, _ := x.In.Params.Member("protocolVersion"); {
			case x.In.Method == "begin" || string(raw) == `"begin"`:
				panic("begin")
			case string(raw) == `"run"`:
				return func() { panic("run") }
			}
			return s.Begin(ctx, x)
		},
		OnAccept: func(m *jsonrpc.Incoming, s transport.Session) {
			if m.Method == "accept" {
				panic("accept")
			}
			s.Accept(m)
		},
	}
}

// A panic of the handler ends its request, which is for net/http to see to, and
// neither locks the session nor leaves one behind.
func TestSessionPanics(t *testing.T) {
	mcptest.NoLeaks(t)
	h := streamable.NewHandler(clumsy(), asUser(&streamable.Options{MaxSessionsPerPrincipal: 1}))
	call := func(id, body string) (w *httptest.ResponseRecorder, panicked any) {
		defer func() { panicked = recover() }()
		r := httptest.NewRequest(http.MethodPost, "http://localhost/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if id != "" {
			r.Header.Set("Mcp-Session-Id", id)
		}
		w = httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w, nil
	}
	for _, version := range []string{"begin", "run"} {
		if _, v := call("", rpc(0, "initialize", `"protocolVersion":"`+version+`"`)); v != version {
			t.Fatalf("initialize panicked with %v, want %s", v, version)
		}
	}
	w, _ := call("", rpc(0, "initialize", `"protocolVersion":"2025-11-25"`))
	id := w.Header().Get("Mcp-Session-Id")
	if id == "" {
		t.Fatalf("initialize after panics: status %d, body %s", w.Code, w.Body)
	}
	if _, v := call(id, rpc(1, "begin", "")); v != "begin" {
		t.Errorf("begin panicked with %v", v)
	}
	if _, v := call(id, `{"jsonrpc":"2.0","method":"accept"}`); v != "accept" {
		t.Errorf("accept panicked with %v", v)
	}
	answered := make(chan int, 1)
	go func() {
		w, _ := call(id, rpc(2, "echo", ""))
		answered <- w.Code
	}()
	if status := within(t, "an answer after panics", answered); status != http.StatusOK {
		t.Errorf("echo: status %d", status)
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// DELETE waits for the handlers of the session, for longer than a server gives
// to its other requests too.
func TestSessionDeleteTakesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := streamable.NewHandler(&linktest.Handler{
			Handler: newPeer(nil), OnClose: func(error) { time.Sleep(time.Minute) },
		}, asUser(nil))
		webtest.ShutDown(t, h.Shutdown)
		m := webtest.NewMemory(t)
		webtest.ServeOn(t, m, &http.Server{Handler: h, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second})
		s := &site{TB: t, h: h, url: "http://localhost", client: m.Client(), user: "ada"}
		id := s.open(v2511)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		r, err := s.do(ctx, http.MethodDelete, "", "Mcp-Session-Id", id)
		if err != nil {
			t.Error(err)
		} else if r.Body.Close(); r.StatusCode != http.StatusNoContent {
			t.Errorf("DELETE: status %d", r.StatusCode)
		}
	})
}
