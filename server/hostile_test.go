package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/linetest"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
)

// A fakeConn is a transport that does what the test wants: conn and responder in
// one.
type fakeConn struct {
	sends   func(m *jsonrpc.Outgoing)
	answers []*jsonrpc.Outgoing
}

func (c *fakeConn) Send(_ context.Context, m *jsonrpc.Outgoing) error {
	if c.sends != nil {
		c.sends(m)
	}
	return nil
}

func (c *fakeConn) Answer(_ context.Context, m *jsonrpc.Outgoing) error {
	c.answers = append(c.answers, m)
	return nil
}

func (c *fakeConn) Principal() *principal.Principal { return ada }
func (c *fakeConn) Shared() bool                    { return true }
func (c *fakeConn) Close(error) error               { return nil }

// exchange is a request over the connection.
func (c *fakeConn) exchange(t *testing.T, text string) *transport.Exchange {
	t.Helper()
	in, err := jsonrpc.Parse([]byte(text), jsonrpc.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return &transport.Exchange{In: in, Principal: ada, Out: c}
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`

// A handshake that arrives while the session is being closed, as when a
// transport closes it from another goroutine than its reader's, makes nothing
// that would outlive it. Proves: FLOW-SHUTDOWN, SEC-DOS-1.
func TestHandshakeAfterClose(t *testing.T) {
	s := newServer(nil, echo())
	c := new(fakeConn)
	p, err := s.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	p.Close(nil)
	if run := p.Begin(t.Context(), c.exchange(t, hello)); run != nil {
		t.Error("a closed session takes a handshake")
	}
	if len(c.answers) != 1 || c.answers[0].Error == nil || c.answers[0].Error.Code != mcp.CodeShuttingDown {
		t.Errorf("answered %+v", c.answers)
	}
}

// The race of the two, for the race detector.
func TestHandshakeWhileClosing(t *testing.T) {
	for range 50 {
		s := newServer(nil, echo())
		c := new(fakeConn)
		p, err := s.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			p.Close(nil)
		}()
		if run := p.Begin(t.Context(), c.exchange(t, hello)); run != nil {
			run()
		}
		<-closed
		if len(c.answers) != 1 {
			t.Fatalf("%d answers", len(c.answers))
		}
	}
}

// A handshake is a request like others: it is refused once the server ends.
// Ruling 26.
func TestHandshakeDuringShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		s := newServer(nil, server.Tool("slow", "", func(context.Context, none) (string, error) {
			<-let
			return "x", nil
		}))
		l, late := join(t, s, v2511), dial(t, s, v2511, nil)
		id := l.start("tools/call", toolParams("slow", emptyBody))
		synctest.Wait()
		ended := make(chan error)
		go func() { ended <- s.Shutdown(t.Context()) }()
		synctest.Wait()
		late.WriteLine(hello)
		late.fails(late.next(), mcp.CodeShuttingDown)
		close(let)
		l.text(l.wait(id))
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A session whose handlers do not listen keeps no other from being cancelled.
// Proves: FLOW-SHUTDOWN.
func TestShutdownCancelsAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{}, 8)
		s := newServer(nil, server.Tool("waits", "", func(ctx context.Context, _ none) (string, error) {
			<-ctx.Done()
			ended <- struct{}{}
			return "", ctx.Err()
		}), server.Tool("deaf", "", func(context.Context, none) (string, error) {
			for range 8 { // returns when all others have been told
				<-ended
			}
			return "", nil
		}))
		join(t, s, v2511).start("tools/call", toolParams("deaf", emptyBody))
		for range 8 {
			join(t, s, v2511).start("tools/call", toolParams("waits", emptyBody))
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begun := time.Now()
		if err := s.Shutdown(ctx); err == nil {
			t.Error("it did not need its context")
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// A peer that reads nothing holds up its own answer, not the time limits of
// others. Proves: SEC-DOS-1.
func TestCallTimeoutBesideStalledPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		s := newServer(nil, server.Tool("deaf", "", func(context.Context, none) (string, error) {
			<-let
			return "late", nil
		}))
		stalled := linetest.Unread(t, over(s, nil))
		l := join(t, s, v2607)
		if _, err := stalled.Write([]byte(l.request("1", "tools/call", toolParams("deaf", emptyBody)) + "\n")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		begun := time.Now()
		l.fails(l.tool("deaf", emptyBody), mcp.CodeTimeout)
		if took := time.Since(begun); took != 10*time.Minute {
			t.Errorf("it took %v", took)
		}
		close(let)
	})
}

// What the client cancelled is not answered when its time is up either.
// spec 2026-07-28, basic/patterns/cancellation. Proves: FLOW-CANCEL.
func TestNoTimeoutAfterCancel(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			let := make(chan struct{})
			s := newServer(nil, server.Tool("deaf", "", func(context.Context, none) (string, error) {
				<-let
				return "late", nil
			}))
			l := join(t, s, v)
			l.cancel(l.start("tools/call", toolParams("deaf", emptyBody)))
			time.Sleep(2 * time.Minute) // of the test's own clock
			l.Silent()
			close(let)
			l.Silent()
		})
	})
}

// A subscription that is made while its session closes leaves no watcher, and
// is no panic. Proves: SEC-RES-4, SEC-DOS-1.
func TestSubscribeWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var watchers atomic.Int64
		var said logtest.Log
		let := make(chan struct{})
		s := newServer(&server.Options{Logger: said.Logger()}, server.Resource("test:a", "a", func(context.Context) (string, error) { return "", nil }).
			With(server.ResourceOptions{Watch: watching(&watchers)}))
		s.Visible(func(context.Context, server.Item) bool {
			<-let // slow, which it should not be
			return true
		})
		l := join(t, s, v2511)
		l.start("resources/subscribe", `{"uri":"test:a"}`)
		synctest.Wait()
		l.Close()
		synctest.Wait()
		close(let)
		<-l.Served
		synctest.Wait()
		if n := watchers.Load(); n != 0 {
			t.Errorf("%d watchers are left", n)
		}
		if got := said.String(); strings.Contains(got, "panic") {
			t.Error(got)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// watching is a Watch that counts itself while it runs.
func watching(n *atomic.Int64) func(context.Context, func()) {
	return func(ctx context.Context, _ func()) {
		n.Add(1)
		defer n.Add(-1)
		<-ctx.Done()
	}
}

// An extension's filter that panics ends its subscription, with its watchers.
func TestListenFilterPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var watchers atomic.Int64
		s := newServer(nil, server.Resource("test:a", "a", func(context.Context) (string, error) { return "", nil }).
			With(server.ResourceOptions{Watch: watching(&watchers)}))
		s.Extend(server.Extension{ID: "com.example/x", Filters: map[string]server.Filter{
			"x": func(*server.Call, mcp.RawValue) (mcp.RawValue, []string, error) { panic("a mistake") },
		}})
		l := join(t, s, v2607)
		l.fails(l.call("subscriptions/listen", `{"notifications":{"resourceSubscriptions":["test:a"],"x":1}}`), jsonrpc.CodeInternalError)
		synctest.Wait()
		if n := watchers.Load(); n != 0 {
			t.Errorf("%d watchers are left", n)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Once a subscription has been ended with notifications/cancelled, no notice
// of it follows. Proves: FLOW-SUB. Ruling 24.
func TestNothingAfterUnlisten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(nil, echo())
		c := new(fakeConn)
		p, err := s.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		var sent []string
		c.sends = func(m *jsonrpc.Outgoing) {
			sent = append(sent, m.Method)
			if m.Method == mcp.NotifyCancelled {
				s.Add(give("x", "")) // a change at the worst moment
				synctest.Wait()
			}
		}
		run := p.Begin(t.Context(), c.exchange(t, `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},
			"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
		if run == nil {
			t.Fatalf("refused: %+v", c.answers)
		}
		p.Ending()
		run()
		if got, want := fmt.Sprint(sent), fmt.Sprint([]string{mcp.NotifySubscriptionsAcknowledged, mcp.NotifyCancelled}); got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
		if len(c.answers) != 1 || c.answers[0].Result == nil {
			t.Errorf("answered %+v", c.answers)
		}
		p.Close(nil)
	})
}

// Log records outside of requests and notices of changed roots take their
// locks in no order that could make them wait for each other.
// Proves: SEC-DOS-1.
func TestLogBesideRootsChanged(t *testing.T) {
	o := quiet()
	o.OnRootsChanged = func(context.Context) {}
	s := newServer(o, echo())
	l := join(t, s, v2511)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		log := slog.New(s.LogHandler("", nil))
		for {
			select {
			case <-stop:
				return
			default:
				log.Info("outside of a request")
			}
		}
	}()
	for range 3000 {
		l.WriteLine(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	}
	close(stop)
	<-stopped
	l.text(l.tool("echo", `{"text":"x"}`))
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// Stateless requests cannot hide in the arrays of the one revision that has
// them. Ruling 10.
func TestNoStatelessBatch(t *testing.T) {
	l := join(t, newServer(nil, echo()), v2503)
	modern := &line{t: t, version: v2607, caps: `{}`}
	l.WriteLine("[" + l.request("5", "ping", emptyBody) + "," + modern.request("6", "tools/call", toolParams("echo", `{"text":"x"}`)) + "," +
		modern.request("7", "initialize", emptyBody) + "]")
	for _, m := range decode[[]message](t, mcp.RawValue(l.next().raw)) {
		switch string(m.ID) {
		case "5":
			l.result(m)
		default:
			if m.Error == nil || m.Error.Code != jsonrpc.CodeInvalidRequest {
				t.Errorf("%s: %+v", m.ID, m.Error)
			}
		}
	}
	l.text(modernTool(l))
}

// modernTool calls a tool as a stateless request on a connection that made a
// handshake.
func modernTool(l *line) message {
	l.version = v2607
	return l.tool("echo", `{"text":"x"}`)
}

// What depends on the caller is never for all, also if the rule is that of a
// mounted server. Ruling 22.
func TestCacheOfMountedVisible(t *testing.T) {
	o := quiet()
	o.Cache = server.Cache{TTL: time.Minute, Public: true}
	s, inner := newServer(o, echo(), server.Text("test:a", "a", "")), newServer(nil, give("x", "y"))
	inner.Visible(func(ctx context.Context, _ server.Item) bool { return server.Caller(ctx) == ada })
	s.Mount("in", inner)
	l := joinAs(t, s, v2607, ada)
	for _, m := range []message{l.call("tools/list", emptyBody), l.call("server/discover", emptyBody), l.read1("test:a")} {
		if raw := string(l.result(m)); !strings.Contains(raw, `"cacheScope":"private"`) {
			t.Errorf("got %s", raw)
		}
	}
}

// A mounted server does not take the place of the server's own features.
func TestMountHidesNothing(t *testing.T) {
	s := newServer(nil, give("in_x", "own"))
	s.Mount("in", newServer(nil, give("x", "mounted"), give("y", "mounted")))
	l := join(t, s, v2607)
	if x, y := l.text(l.tool("in_x", emptyBody)), l.text(l.tool("in_y", emptyBody)); x != "own" || y != "mounted" {
		t.Errorf("got %q and %q", x, y)
	}
}

// A feature that is added to two servers keeps the rules of each, and one that
// is added again changes while lists are made. Proves: SEC-TOOL-2.
func TestAddAgain(t *testing.T) {
	tool, doc := server.Tool("x", "", func(context.Context, none) (string, error) { return "x", nil }), server.Text("test:a", "a", "")
	closed, open := newServer(unlimited(), tool, doc), newServer(nil)
	closed.Visible(func(context.Context, server.Item) bool { return false })
	open.Add(tool, doc)
	l := join(t, closed, v2607)
	l.fails(l.tool("x", emptyBody), mcp.CodeInvalidParams)
	l.fails(l.read1("test:a"), mcp.CodeInvalidParams)
	again := join(t, open, v2511)
	added := make(chan struct{})
	go func() {
		defer close(added)
		for i := range 50 {
			open.Add(tool.With(server.ToolOptions{Title: fmt.Sprint(i)}))
		}
	}()
	for range 10 {
		again.result(again.call("tools/list", emptyBody))
	}
	<-added
	if raw := string(again.result(again.call("tools/list", emptyBody))); !strings.Contains(raw, `"title":"49"`) {
		t.Errorf("got %s", raw)
	}
}

// What a file's rule hides is not found another way, and a file that is gone
// cannot be subscribed to. Proves: SEC-RES-2.
func TestHiddenFile(t *testing.T) {
	root, dir := tree(t)
	s := newServer(nil, server.Directory("file:///w/", root).With(server.ResourceOptions{Labels: []string{"files"}}),
		server.Template("file:///{+path}", "any", func(context.Context, struct {
			Path string `uri:"path"`
		},
		) (string, error) {
			return "through the template", nil
		}))
	s.Visible(func(_ context.Context, it server.Item) bool {
		return len(it.Labels) == 0 || it.Name != "file:///w/a.txt"
	})
	l := join(t, s, v2511)
	l.fails(l.read1("file:///w/a.txt"), -32002)
	l.result(l.read1("file:///w/nosuch"))

	plain := newServer(nil, server.Directory("file:///w/", root))
	l = join(t, plain, v2511)
	l.result(l.call("resources/list", emptyBody))
	if err := os.Remove(filepath.Join(dir, "a.txt")); err != nil {
		t.Fatal(err)
	}
	l.fails(l.call("resources/subscribe", `{"uri":"file:///w/a.txt"}`), -32002)
}

// A question that is answered with what is no answer fails; its handler does
// not wait on. Proves: MSG-4, SEC-DOS-1.
func TestMalformedAnswer(t *testing.T) {
	for _, answer := range []string{`"result":5`, `"error":"no"`, `"result":{"action":"accept","action":"decline"}`, `"result":{},"error":{"code":1,"message":"x"}`} {
		l := join(t, newServer(nil, asker("drop", "Drop?")), v2511)
		id := l.start("tools/call", toolParams("drop", emptyBody))
		q := l.next()
		if q.Method != "elicitation/create" {
			t.Fatalf("got %s", q.raw)
		}
		l.WriteLine(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, q.ID, answer))
		l.isError(l.wait(id))
	}
}

// A handler may do everything at once, from goroutines that outlive it.
func TestAllAtOnce(t *testing.T) {
	var left sync.WaitGroup
	build := func(_ testing.TB, o *server.Options) *server.Server {
		o.Limits = server.Limits{LogRate: server.Unlimited}
		s := server.New("eras", "1", o)
		s.Add(server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
			c := server.CallFrom(ctx)
			begin := make(chan struct{})
			var wg sync.WaitGroup
			errs := make([]error, 4)
			for i := range errs {
				wg.Go(func() {
					<-begin
					if _, err := server.Once(ctx, "once", func() (int, error) { return 1, nil }); err != nil {
						t.Error(err)
					}
					// Of several at once one is the furthest.
					if err := server.Progress(ctx, float64(i+1), 4, ""); err != nil && !errors.Is(err, server.ErrNoProgress) {
						t.Error(err)
					}
					if err := server.Log(ctx, mcp.LogError, "all", "at once"); err != nil {
						t.Error(err)
					}
					_, errs[i] = server.Elicit[sure](ctx, fmt.Sprintf("question %d", i))
				})
				left.Go(func() {
					<-begin
					for range 1000 {
						c.Round()
						c.RoundsID()
						_ = server.Progress(ctx, 100, 0, "") // may be late
						runtime.Gosched()
					}
				})
			}
			close(begin)
			wg.Wait()
			return "done", errors.Join(errs...)
		}))
		return s
	}
	o := &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return client.Accept(sure{true})
	}}
	mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		if era.Version < v2506 {
			return
		}
		_, err := c.CallTool(t.Context(), "t", nil, &client.CallOptions{OnProgress: func(float64, float64, string) {}})
		if err != nil {
			t.Error(err)
		}
		left.Wait()
	})
}

// A result that somebody keeps does not keep the arguments of its call.
func TestResultKeepsNoArguments(t *testing.T) {
	type part struct {
		Text string `json:"text"`
	}
	var given weak.Pointer[part]
	var kept server.Result
	s := newServer(nil, server.Tool("t", "", func(_ context.Context, in struct {
		Part *part `json:"part"`
	},
	) (string, error) {
		given = weak.Make(in.Part)
		return "done", nil
	}))
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			res, err := next(c)
			kept = res
			return res, err
		}
	})
	out, l := new(sink), &line{version: v2607, caps: emptyBody}
	s.Serve(t.Context(), out.exchange(t, []byte(l.request("1", "tools/call", toolParams("t", `{"part":{"text":"large"}}`)))))
	runtime.GC()
	if given.Value() != nil {
		t.Error("the arguments are still there")
	}
	if r, ok := kept.(*mcp.CallToolResult); !ok || len(r.Content) != 1 || !strings.Contains(string(out.buffer), "done") {
		t.Errorf("the result is %v, sent as %s", kept, out.buffer)
	}
}
