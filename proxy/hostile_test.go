package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/internal/racetest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/server"
)

// What an upstream server refuses for now is sent again by the proxy alone: with each
// proxy on the way the tries would be multiplied.
func TestRefusalsAreNotMultiplied(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		for _, code := range []int64{mcp.CodeRateLimited, mcp.CodeTooManyInFlight, mcp.CodeHeaderMismatch, mcp.CodeUnsupportedVersion} {
			var runs atomic.Int64
			up := serverOf(server.Tool("refuse", "", func(context.Context, mcp.None) (string, error) {
				runs.Add(1)
				return "", mcp.NewError(code, "not now").With(map[string]any{"supported": []string{version}, "requested": version, "retryAfterMs": 10})
			}))
			near := connect(t, up, version, nil)
			far := connect(t, near.Server(), version, nil)
			_, err := join(t, far.Server(), caller, nil).CallTool(t.Context(), "refuse", nil, nil)
			wantCode(t, err, mcp.CodeInternalError, "not now")
			if n := runs.Load(); n > 6 {
				t.Errorf("code %d: %d tries", code, n)
			}
		}
	})
}

// What an upstream server lets its client keep may be meant for one caller alone: who
// that is may be in _meta, which results are not kept by.
func TestPrivateResults(t *testing.T) {
	up := server.New("upstream", "1", &server.Options{Logger: quiet})
	up.Add(server.Resource("me:///", "me", func(ctx context.Context) (string, error) {
		return string(server.CallFrom(ctx).Meta().Extra["com.example/user"]), nil
	}).With(server.ResourceOptions{Cache: &server.Cache{TTL: time.Hour}}))
	p := connect(t, up, v2607, nil)
	for _, version := range upstreams {
		for _, name := range []string{"ada", "bob"} {
			c := joinAs(t, p.Server(), version, named(name), nil)
			want := fmt.Sprintf("%q", name)
			r, err := c.ReadResource(t.Context(), "me:///", &client.CallOptions{Meta: map[string]mcp.RawValue{"com.example/user": mcp.RawValue(want)}})
			if err != nil || r.Contents[0].Text != want {
				t.Errorf("%s got %+v, %v", name, r, err)
			}
		}
	}
}

// An upstream server that always tells of changes is asked for its lists now and then,
// and callers are told as seldom.
func TestFloodOfListChanges(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		up := server.New("upstream", "1", &server.Options{Logger: quiet, DeclareTools: true, Limits: server.Limits{ChangeRate: 1e6, ListRate: server.Unlimited}})
		var lists, told atomic.Int64
		up.Use(func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				if c.Method() == mcp.MethodToolsList {
					lists.Add(1)
				}
				return next(c)
			}
		})
		p := connect(t, up, version, nil)
		c := join(t, p.Server(), caller, &client.Options{OnToolsChanged: func(context.Context) { told.Add(1) }})
		synctest.Wait()
		lists.Store(0)
		for i := range 10_000 {
			if i%2 == 0 {
				up.Add(server.Tool("t", fmt.Sprint(i), func(context.Context, mcp.None) (string, error) { return "", nil }))
			} else {
				up.RemoveTools("t")
			}
			time.Sleep(time.Millisecond) // of fake time
		}
		if n := lists.Load(); n < 10 || n > 55 {
			t.Errorf("%d lists in ten seconds", n)
		}
		if n := told.Load(); n > 55 {
			t.Errorf("the caller was told %d times", n)
		}
		up.Add(server.Tool("last", "", func(context.Context, mcp.None) (string, error) { return "", nil }))
		time.Sleep(time.Second) // of fake time
		var names []string
		for x, err := range c.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, x.Name)
		}
		if got := strings.Join(names, " "); got != "last" {
			t.Errorf("at last: %s", got)
		}
	})
}

// A subscription that the upstream server does not agree to at first is tried again,
// and callers are told of what they may have missed.
func TestWatchAgain(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		up := server.New("upstream", "1", &server.Options{Logger: quiet})
		up.Add(server.Text("x:///a", "a", "text"))
		var tries atomic.Int64
		up.Use(func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				subscribes := c.Method() == mcp.MethodResourcesSubscribe
				if p, ok := c.Params().(*mcp.ListenParams); ok {
					subscribes = len(p.Notifications.ResourceSubscriptions) > 0
				}
				if subscribes && tries.Add(1) <= 3 {
					return nil, mcp.NewError(mcp.CodeInternalError, "the database is away")
				}
				return next(c)
			}
		})
		p := connect(t, up, version, nil)
		var told logtest.List
		c := join(t, p.Server(), caller, &client.Options{OnResourceUpdated: func(_ context.Context, uri string) { told.Add(uri) }})
		if _, err := c.Subscribe(t.Context(), "x:///a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute) // of fake time
		if got := told.Take(); len(got) == 0 {
			t.Error("what was missed is not told")
		}
		up.ResourceUpdated("x:///a")
		time.Sleep(time.Second) // of fake time
		if got := told.Take(); len(got) != 1 {
			t.Errorf("told of %q after %d tries", got, tries.Load())
		}
	})
}

// Callers who watch more than can be watched take nothing from those who came before,
// and are told when there is room. The upstream server is not asked for them in vain.
func TestWatchTooMuch(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		if (testing.Short() || racetest.Enabled) && version == v2607 && caller == v2511 {
			t.Skip("it takes long, and minutes with the race detector: each of 1,800 subscriptions is a listen of all before it")
		}
		limits := server.Limits{MaxSubscriptions: 5000, ListRate: server.Unlimited, ToolRate: server.Unlimited}
		up := server.New("upstream", "1", &server.Options{Logger: quiet, Limits: limits})
		up.Add(server.Template("x:///{v}", "x", func(context.Context, struct {
			V string `uri:"v"`
		},
		) (string, error) {
			return "", nil
		}))
		var asked atomic.Int64
		up.Use(func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				if c.Method() == mcp.MethodListen || c.Method() == mcp.MethodResourcesSubscribe {
					asked.Add(1)
				}
				return next(c)
			}
		})
		p := connect(t, up, version, &proxy.Options{Server: server.Options{Limits: limits}})
		uris := func(name string) (out []string) {
			for i := range 600 {
				out = append(out, fmt.Sprint("x:///", name, i))
			}
			return out
		}
		var told [3]logtest.List
		var subs []*client.Subscription
		for i, name := range []string{"c", "b", "a"} {
			before := asked.Load()
			c := joinAs(t, p.Server(), caller, named(name), &client.Options{OnResourceUpdated: func(_ context.Context, uri string) { told[i].Add(uri) }})
			sub, err := c.Subscribe(t.Context(), uris(name)...)
			if err != nil {
				t.Fatal(err)
			}
			subs = append(subs, sub)
			time.Sleep(time.Second) // of fake time
			if more := asked.Load() - before; (more == 0) != (name == "a") {
				t.Errorf("the upstream server was asked %d times for what %s watches", more, name)
			}
		}
		check := func(when string, i int, name string, want int) {
			up.ResourceUpdated("x:///" + name + "7")
			time.Sleep(time.Second) // of fake time
			if got := told[i].Take(); len(got) != want {
				t.Errorf("%s: %s was told of %q", when, name, got)
			}
		}
		check("at first", 0, "c", 1)
		check("at first", 2, "a", 0)
		subs[0].Close()
		time.Sleep(time.Second) // of fake time
		check("afterwards", 0, "c", 0)
		check("afterwards", 1, "b", 1)
	})
}

// A level that the upstream server did not take is asked for again, later.
func TestLogLevelNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := server.New("upstream", "1", &server.Options{Logger: quiet})
		var tries atomic.Int64
		up.Use(func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				if c.Method() == mcp.MethodSetLevel && tries.Add(1) == 2 { // the first is the proxy's own
					time.Sleep(time.Minute) // of fake time
				}
				return next(c)
			}
		})
		up.Add(server.Tool("log", "", func(ctx context.Context, _ mcp.None) (string, error) {
			return "", server.Log(ctx, mcp.LogDebug, "log", "details")
		}))
		p := connect(t, up, v2511, nil)
		var logs logtest.List
		c := join(t, p.Server(), v2511, &client.Options{
			LogLevel: mcp.LogDebug,
			OnLog:    func(_ context.Context, m *mcp.LogParams) { logs.Add(string(m.Data)) },
		})
		call := func() int {
			if _, err := c.CallTool(t.Context(), "log", nil, nil); err != nil {
				t.Error(err)
			}
			if err := c.Drain(t.Context()); err != nil {
				t.Error(err)
			}
			return len(logs.Take())
		}
		if n := call(); n != 0 {
			t.Errorf("%d messages although the level was not taken", n)
		}
		began := time.Now()
		call()
		if d := time.Since(began); d != 0 {
			t.Errorf("the next call waited %v", d)
		}
		time.Sleep(2 * time.Minute) // of fake time
		if n := call(); n != 1 || tries.Load() != 3 {
			t.Errorf("%d messages after %d tries", n, tries.Load())
		}
	})
}

// Ten thousand tools are offered, and one more when there is.
func TestManyTools(t *testing.T) {
	for _, version := range upstreams {
		t.Run(version, func(t *testing.T) {
			up := server.New("upstream", "1", &server.Options{Logger: quiet, Limits: unlimited})
			var tools []server.Feature
			for i := range 10_000 {
				tools = append(tools, server.Tool(fmt.Sprint("tool", i), "", func(context.Context, mcp.None) (string, error) { return fmt.Sprint(i), nil }))
			}
			up.Add(tools...)
			p := connect(t, up, version, nil)
			c := join(t, p.Server(), version, nil)
			n := 0
			for _, err := range c.Tools(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != 10_000 {
				t.Errorf("%d tools", n)
			}
			r, err := c.CallTool(t.Context(), "tool9999", nil, nil)
			if got := text(t, r, err); got != "9999" {
				t.Error(got)
			}
		})
	}
}

// Results as big as a message pass; bigger ones are an error of their call alone.
func TestHugeResults(t *testing.T) {
	for _, version := range upstreams {
		for _, transportName := range []string{"mem", "streamable"} {
			t.Run(version+" "+transportName, func(t *testing.T) {
				up := server.New("upstream", "1", &server.Options{Logger: quiet, Limits: unlimited})
				up.Add(
					server.Tool("big", "", func(context.Context, mcp.None) (string, error) { return strings.Repeat("x", 3<<20), nil }),
					server.Tool("huge", "", func(context.Context, mcp.None) (string, error) { return strings.Repeat("x", 80<<20), nil }),
					server.Tool("plain", "", func(context.Context, mcp.None) (string, error) { return "plain", nil }),
				)
				p := connectBy(t, up, version, transportName, nil)
				c := join(t, p.Server(), v2607, nil)
				r, err := c.CallTool(t.Context(), "big", nil, nil)
				if got := text(t, r, err); len(got) != 3<<20 {
					t.Errorf("%d bytes", len(got))
				}
				r, err = c.CallTool(t.Context(), "huge", nil, nil)
				if _, ok := errors.AsType[*jsonrpc.Error](err); !ok {
					t.Errorf("huge: %v, %v", r, err)
				}
				r, err = c.CallTool(t.Context(), "plain", nil, nil)
				if got := text(t, r, err); got != "plain" {
					t.Error(got)
				}
			})
		}
	}
}

// A caller over HTTP who goes away, at each point of its call, leaves nothing behind:
// a connection that ends in the revision without sessions, a session that is
// deleted in the others.
func TestCallerGoes(t *testing.T) {
	for _, version := range upstreams {
		for _, point := range []string{"queued", "running", "asked", "answered"} {
			t.Run(version+" "+point, func(t *testing.T) {
				callerGoes(t, version, point)
			})
		}
	}
}

func callerGoes(t *testing.T, version, point string) {
	var under atomic.Int64
	counted := func(name string, f func(ctx context.Context) error) server.Feature {
		return server.Tool(name, "", func(ctx context.Context, _ mcp.None) (string, error) {
			under.Add(1)
			defer under.Add(-1)
			return name, f(ctx)
		})
	}
	release := make(chan struct{})
	waits := func(ctx context.Context) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	up := serverOf(
		counted("wait", waits),
		counted("form", func(ctx context.Context) error {
			if _, err := server.Elicit[confirm](ctx, "Sure?"); err != nil {
				return err
			}
			return waits(ctx)
		}),
	)
	p := connect(t, up, v2511, &proxy.Options{KeptTime: 3 * time.Second})
	asked := make(chan struct{}, 1)
	c, err := client.Connect(t.Context(), dialer(t, p.Server(), "streamable"), &client.Options{
		Versions: []string{version},
		OnElicit: func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
			asked <- struct{}{}
			if point == "asked" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return client.Accept(confirm{true})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	bob := joinAs(t, p.Server(), v2607, named("bob"), nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	other, done := make(chan error, 1), make(chan error, 1)
	start := func(c *client.Client, ctx context.Context, tool string, done chan<- error) {
		go func() {
			_, err := c.CallTool(ctx, tool, nil, nil)
			done <- err
		}()
	}
	switch point {
	case "queued":
		start(bob, t.Context(), "wait", other)
		eventually(t, func() bool { return under.Load() == 1 })
		start(c, ctx, "wait", done)
		eventually(t, func() bool { queued, _ := proxy.Turns(p); return queued == 1 })
	case "running":
		start(c, ctx, "wait", done)
		eventually(t, func() bool { return under.Load() == 1 })
	case "asked":
		start(c, ctx, "form", done)
		<-asked
	case "answered":
		start(c, ctx, "form", done)
		<-asked
		start(bob, t.Context(), "wait", other) // before or after the answer
		eventually(t, func() bool { queued, n := proxy.Turns(p); return queued+n == 2 })
	}
	if version == v2511 {
		c.Close() // it deletes the session
	} else {
		cancel()
		defer c.Close()
	}
	if err := <-done; err == nil {
		t.Error("the call ended well")
	}
	if point == "queued" || point == "answered" {
		close(release)
		if err := <-other; err != nil {
			t.Errorf("the other caller's: %v", err)
		}
	}
	eventually(t, func() bool {
		queued, n := proxy.Turns(p)
		return queued == 0 && n == 0 && under.Load() == 0 && proxy.Kept(p) == 0
	})
}

// eventually waits until something holds, which real connections take a while to.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); <-tick.C {
		if holds() {
			return
		}
	}
	t.Fatal("it does not come to hold")
}
