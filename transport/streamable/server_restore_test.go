package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// records keeps what OnSession tells, as a store that replicas share would.
type records struct {
	mu       sync.Mutex
	messages map[string][][]byte
	events   []string
	causes   []error
}

func (r *records) keep(e streamable.SessionEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	who := ""
	if e.Principal != nil {
		who = e.Principal.Subject
	}
	r.events = append(r.events, fmt.Sprintf("%v %s", e.State, who))
	switch {
	case e.Message != nil:
		if r.messages == nil {
			r.messages = make(map[string][][]byte)
		}
		r.messages[e.ID] = append(r.messages[e.ID], e.Message)
	case e.State == streamable.SessionEnded:
		r.causes = append(r.causes, e.Cause)
		if !errors.Is(e.Cause, streamable.ErrStopped) {
			delete(r.messages, e.ID)
		}
	}
}

func (r *records) of(id string) [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.messages[id]
}

// told returns what was told since the last call.
func (r *records) told() (events string, causes []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	events, causes = strings.Join(r.events, ", "), r.causes
	r.events, r.causes = nil, nil
	return events, causes
}

// notesServer has a resource that can be watched, and a tool that tells its
// session and logs.
func notesServer() *server.Server {
	s := server.New("notes", "1", nil)
	s.Add(
		server.Resource("note://1", "note", func(context.Context) (string, error) { return "text", nil }),
		server.Tool("where", "Tells its session.", func(ctx context.Context, _ struct{}) (string, error) {
			if err := server.Log(ctx, mcp.LogInfo, "", "hello"); err != nil {
				return "", err
			}
			c := server.CallFrom(ctx)
			return c.Transport() + " " + c.SessionID() + " " + c.Version(), nil
		}),
	)
	return s
}

// OnSession is told what opens, changes and ends a session, and why.
func TestOnSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r records
		s := newPipes(t, notesServer(), &streamable.Options{OnSession: r.keep, MaxSessionsPerAddress: 1})
		expect := func(what, events string, cause error) {
			t.Helper()
			synctest.Wait()
			got, causes := r.told()
			if !slices.Contains(strings.Split(events, "|"), got) {
				t.Errorf("%s: told %q, want %q", what, got, events)
			}
			if cause != nil && (len(causes) != 1 || !errors.Is(causes[0], cause)) {
				t.Errorf("%s: the cause is %v, want %v", what, causes, cause)
			}
		}
		id := s.open(v2511)
		expect("initialize", "opened ada", nil)
		in := []string{"Mcp-Session-Id", id}
		s.check("call", s.send(http.MethodPost, rpc(1, "tools/call", `"name":"where"`), in...), 200, "http "+id+" "+v2511)
		expect("a call", "", nil)
		s.check("subscribe", s.send(http.MethodPost, rpc(2, "resources/subscribe", `"uri":"note://1"`), in...), 200)
		s.check("subscribe to nothing", s.send(http.MethodPost, rpc(3, "resources/subscribe", `"uri":"note://2"`), in...), 200, "error")
		expect("subscribe", "changed ada", nil)
		if m := r.of(id); len(m) != 2 || !strings.Contains(string(m[0]), `"initialize"`) || !strings.Contains(string(m[1]), "note://1") {
			t.Errorf("the record is %s", m)
		}
		s.check("delete", s.send(http.MethodDelete, "", in...), 204)
		expect("delete", "ended ada", streamable.ErrDeleted)
		s.check("refused", s.send(http.MethodPost, rpc(0, "initialize", `"protocolVersion":1`)), 200, "error")
		expect("a refused handshake", "", nil)
		s.open(v2511)
		time.Sleep(2 * time.Hour)
		expect("idle", "opened ada, ended ada", streamable.ErrIdle)
		s.user = ""
		s.open(v2511)
		time.Sleep(time.Second)
		s.open(v2511)
		// What happens to two sessions at once is told in any order.
		expect("displaced", "opened , opened , ended |opened , ended , opened ", streamable.ErrDisplaced)
		if err := s.h.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect("shut down", "ended ", streamable.ErrStopped)
	})
}

// A session moves from one endpoint to another, and its client does not notice:
// its calls, its subscription and its log level go on.
func TestRestore(t *testing.T) {
	mcptest.NoLeaks(t)
	var r records
	servers := [2]*server.Server{notesServer(), notesServer()}
	var handlers [2]*streamable.Handler
	for i, s := range servers {
		handlers[i] = streamable.NewHandler(s, &streamable.Options{OnSession: r.keep})
	}
	var active atomic.Int32
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		handlers[active.Load()].ServeHTTP(w, req)
	}))
	defer front.Close()
	defer handlers[1].Shutdown(context.Background()) //nolint:errcheck // it has no end to wait for

	changed, logged := make(chan string, 10), make(chan string, 10)
	c, err := client.Connect(t.Context(), streamable.URL(front.URL), &client.Options{
		Versions:          []string{v2511},
		OnResourceUpdated: func(_ context.Context, uri string) { changed <- uri },
		OnLog:             func(_ context.Context, p *mcp.LogParams) { logged <- string(p.Data) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	where := func() string {
		t.Helper()
		res, err := c.CallTool(t.Context(), "where", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return res.Content[0].(*mcp.TextContent).Text
	}
	sub, err := c.Subscribe(t.Context(), "note://1")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if err := c.SetLogLevel(t.Context(), mcp.LogError); err != nil {
		t.Fatal(err)
	}
	before := where()
	id := strings.Fields(before)[1]
	servers[0].ResourceUpdated("note://1")
	<-changed

	if err := handlers[0].Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	active.Store(1)
	if err := handlers[1].Restore(t.Context(), id, nil, r.of(id)); err != nil {
		t.Fatal(err)
	}
	if after := where(); after != before {
		t.Errorf("after the move a call is answered by %q, before by %q", after, before)
	}
	servers[1].ResourceUpdated("note://1")
	if uri := <-changed; uri != "note://1" {
		t.Errorf("%q has changed", uri)
	}
	select {
	case text := <-logged:
		t.Errorf("the client got %s, below its level", text)
	default:
	}
	// The client sets its level when it connects.
	if events, _ := r.told(); events != "opened , changed , changed , changed , ended , restored " {
		t.Errorf("told %q", events)
	}
}

// Proves: Ruling 43. While both halves of a session ask, an answer to a question of one half
// resolves no question of the other.
func TestRestoredQuestions(t *testing.T) {
	mcptest.NoLeaks(t)
	half := func() *site {
		s := server.New("asking", "1", nil)
		s.Add(server.Tool("root", "Returns the first root of the client.", func(ctx context.Context, _ struct{}) (string, error) {
			roots, err := server.Roots(ctx)
			if err != nil || len(roots) == 0 {
				return "", err
			}
			return roots[0].URI, nil
		}))
		return newSite(t, s, nil)
	}
	a, b := half(), half()
	open := rpc(0, "initialize", `"protocolVersion":"`+v2511+`","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}`)
	id := a.send(http.MethodPost, open).header.Get("Mcp-Session-Id")
	ada := &principal.Principal{Subject: "ada", Remote: "192.0.2.1"}
	if err := b.h.Restore(t.Context(), id, ada, [][]byte{[]byte(open)}); err != nil {
		t.Fatal(err)
	}
	ask := func(s *site) (*feed, jsonrpc.ID) {
		t.Helper()
		f := s.follow(http.MethodPost, rpc(1, "tools/call", `"name":"root"`), "Mcp-Session-Id", id)
		f.primed()
		m, err := jsonrpc.Parse(f.wants(`"method":"roots/list"`).Data, jsonrpc.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return f, m.ID
	}
	answer := func(s *site, to jsonrpc.ID, root string) {
		t.Helper()
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":%q}]}}`, to, root)
		s.check("answer", s.send(http.MethodPost, body, "Mcp-Session-Id", id), 202)
	}
	atA, first := ask(a)
	atB, second := ask(b)
	answer(b, first, "file:///a")
	answer(b, second, "file:///b")
	atB.wants(`"id":1`, "file:///b")
	atB.ends()
	answer(a, first, "file:///a")
	atA.wants(`"id":1`, "file:///a")
	atA.ends()
}

// What cannot be restored is refused with a reason, and leaves nothing behind.
func TestRestoreRefused(t *testing.T) {
	mcptest.NoLeaks(t)
	ada := &principal.Principal{Subject: "ada", Remote: "192.0.2.1"}
	open := rpc(0, "initialize", initialize)
	s := newSite(t, notesServer(), &streamable.Options{MaxSessionsPerPrincipal: 2})
	used := s.open(v2511)
	for name, test := range map[string]struct {
		id       string
		messages []string
		want     string
	}{
		"empty id":           {"", []string{open}, "visible ASCII"},
		"blank in the id":    {"a b", []string{open}, "visible ASCII"},
		"odd id":             {"ä", []string{open}, "visible ASCII"},
		"long id":            {strings.Repeat("a", 5000), []string{open}, "visible ASCII"},
		"id in use":          {used, []string{open}, "with this id already"},
		"no messages":        {"x", nil, "no messages"},
		"no JSON":            {"x", []string{open, "{"}, "message 2"},
		"no handshake":       {"x", []string{rpc(1, "logging/setLevel", `"level":"info"`)}, "first message is not the initialize"},
		"second handshake":   {"x", []string{open, open}, "message 2 (initialize)"},
		"a call":             {"x", []string{open, rpc(1, "tools/call", `"name":"where"`)}, `message 2 ("tools/call") changes nothing`},
		"a notification":     {"x", []string{open, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`}, "message 2"},
		"of another era":     {"x", []string{modernBody(1, "initialize", "")}, "without sessions"},
		"refused subscribed": {"x", []string{open, rpc(1, "resources/subscribe", `"uri":"note://2"`)}, "message 2 (resources/subscribe)"},
	} {
		var messages [][]byte
		for _, m := range test.messages {
			messages = append(messages, []byte(m))
		}
		if err := s.h.Restore(t.Context(), test.id, ada, messages); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, test.want)
		}
	}
	s.check("the session that was there", s.send(http.MethodPost, rpc(1, "ping", ""), "Mcp-Session-Id", used), 200)

	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.h.Restore(over, "moved", ada, [][]byte{[]byte(open)}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of ctx: %v", err)
	}
	messages := [][]byte{[]byte(open), []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)}
	if err := s.h.Restore(t.Context(), "moved", ada, messages); err != nil {
		t.Fatal(err)
	}
	in := []string{"Mcp-Session-Id", "moved"}
	s.check("its owner", s.send(http.MethodPost, rpc(1, "ping", ""), in...), 200)
	s.check("somebody else", s.send(http.MethodPost, rpc(1, "ping", ""), append(in, "X-User", "eve")...), 404)
	s.check("an event of another life", s.send(http.MethodGet, "", append(in, "Last-Event-ID", "1-3")...), 400, "cannot be resumed")
	if err := s.h.Restore(t.Context(), "third", ada, messages); err == nil || !strings.Contains(err.Error(), "MaxSessionsPerPrincipal") {
		t.Errorf("over the limit: %v", err)
	}
	if err := s.h.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.h.Restore(t.Context(), "late", ada, messages); err == nil || !strings.Contains(err.Error(), "shutting down") {
		t.Errorf("after Shutdown: %v", err)
	}
}

// An OnSession that panics harms nobody, also when it is told on a goroutine of
// ours, and the log says so.
func TestOnSessionPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		s := newPipes(t, notesServer(), &streamable.Options{
			OnSession:             func(e streamable.SessionEvent) { panic("of " + e.State.String()) },
			MaxSessionsPerAddress: 1,
			Logger:                slog.New(slog.NewTextHandler(&said, nil)),
		})
		s.user = ""
		first := s.open(v2511)
		s.check("its session", s.send(http.MethodPost, rpc(1, "ping", ""), "Mcp-Session-Id", first), 200)
		s.open(v2511) // ends the first
		time.Sleep(time.Hour)
		s.open(v2511) // the second was idle for too long
		synctest.Wait()
		if got := said.String(); strings.Count(got, `panic="of opened"`) != 3 || strings.Count(got, `panic="of ended"`) != 2 {
			t.Errorf("logged %s", got)
		}
	})
}

// A forgetful store notes of which sessions the events were dropped.
type forgetful struct {
	streamable.EventStore

	mu   sync.Mutex
	gone map[string]bool
}

func (f *forgetful) Forget(_ context.Context, session, _ string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone[session] = true
	return nil
}

// Restore races with itself and with Shutdown: of several one opens the session,
// and those that fail drop no events, which are those of another endpoint.
func TestRestoreRace(t *testing.T) {
	mcptest.NoLeaks(t)
	messages := [][]byte{[]byte(rpc(0, "initialize", initialize))}
	const ids = 5
	for range 40 {
		events := &forgetful{gone: make(map[string]bool)}
		var open atomic.Int32 // sessions of the server
		core := &linktest.Handler{
			Handler: notesServer(), OnOpened: func() { open.Add(1) }, OnClose: func(error) { open.Add(-1) },
		}
		h := streamable.NewHandler(core, &streamable.Options{Events: events})
		var opened [ids]atomic.Int32
		var running sync.WaitGroup
		for i := range 4 * ids {
			running.Go(func() {
				if h.Restore(context.Background(), fmt.Sprint(i%ids), nil, messages) == nil {
					opened[i%ids].Add(1)
				}
			})
		}
		running.Go(func() {
			if err := h.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		})
		running.Wait()
		if n := open.Load(); n != 0 {
			t.Fatalf("%d sessions of the server are open after Shutdown", n)
		}
		for i := range ids {
			n := opened[i].Load()
			if n > 1 || n == 0 && events.gone[fmt.Sprint(i)] {
				t.Fatalf("session %d: opened %d times, events dropped: %v", i, n, events.gone[fmt.Sprint(i)])
			}
		}
	}
}
