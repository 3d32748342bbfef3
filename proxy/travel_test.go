package proxy_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/server"
)

// Progress and log messages reach the caller, before the answer.
func TestProgressAndLogs(t *testing.T) {
	var logs logtest.List
	o := &client.Options{OnLog: func(_ context.Context, p *mcp.LogParams) { logs.Add(p.Logger + " " + string(p.Data)) }}
	eachEra(t, upstream(), o, func(t *testing.T, version string, era mcptest.Era, c *client.Client) {
		logs.Take()
		var steps []string
		r, err := c.CallTool(t.Context(), "up_work", nil, &client.CallOptions{OnProgress: func(progress, total float64, message string) {
			if total != 3 || progress != float64(len(steps)+1) {
				t.Errorf("progress %v of %v", progress, total)
			}
			steps = append(steps, message)
		}})
		if got := text(t, r, err); got != "done" || len(steps) != 3 {
			t.Errorf("%s after %q", got, steps)
		}
		if err := c.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if got := logs.Take(); !slices.Equal(got, []string{`work {"msg":"half way"}`}) {
			t.Errorf("logs %q", got)
		}
	})
}

// Log messages reach the caller also while several of its calls run, of which nothing says
// whose a message is.
func TestLogsOfCallsAtOnce(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		up := server.New("upstream", "1", &server.Options{Logger: quiet})
		up.Add(server.Tool("say", "Says something.", func(ctx context.Context, _ mcp.None) (string, error) {
			time.Sleep(time.Second) // of fake time
			return "", server.Log(ctx, mcp.LogWarning, "say", "details")
		}))
		p := connect(t, up, version, &proxy.Options{Client: client.Options{LogLevel: mcp.LogDebug}})
		var logs logtest.List
		c := join(t, p.Server(), caller, &client.Options{
			LogLevel: mcp.LogDebug,
			OnLog:    func(_ context.Context, m *mcp.LogParams) { logs.Add(string(m.Data)) },
		})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := c.CallTool(t.Context(), "say", nil, nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if err := c.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if got := logs.Take(); len(got) != 3 {
			t.Errorf("logs %q, want three", got)
		}
	})
}

// modes runs a test for each combination of eras, over memory and in fake time.
func modes(t *testing.T, body func(t *testing.T, up, caller string)) {
	t.Helper()
	for _, up := range upstreams {
		for _, caller := range upstreams {
			t.Run("upstream "+up+", caller "+caller, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { body(t, up, caller) })
			})
		}
	}
}

// A caller that cancels ends the call upstream, whether it runs or waits for its
// turn.
func TestCancel(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		up := server.New("upstream", "1", &server.Options{Logger: quiet})
		var ended, under atomic.Int64
		up.Add(server.Tool("wait", "Waits.", func(ctx context.Context, _ mcp.None) (string, error) {
			under.Add(1)
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), server.ErrCancelled) {
				t.Errorf("ended by %v", context.Cause(ctx))
			}
			ended.Add(1)
			return "", ctx.Err()
		}))
		p := connect(t, up, version, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, name := range []string{"ada", "bob"} {
			c := joinAs(t, p.Server(), caller, named(name), nil)
			for range 3 {
				wg.Go(func() {
					if _, err := c.CallTool(ctx, "wait", nil, nil); !errors.Is(err, context.Canceled) {
						t.Errorf("got %v", err)
					}
				})
			}
			synctest.Wait()
		}
		if want := map[string]int64{v2511: 3, v2607: 6}[version]; under.Load() != want {
			t.Errorf("%d under way at once, want %d", under.Load(), want)
		}
		cancel()
		wg.Wait()
		synctest.Wait()
		if ended.Load() != under.Load() {
			t.Errorf("%d of %d ended", ended.Load(), under.Load())
		}
	})
}

// A silent upstream server costs the caller its own time limit, after which the
// upstream server is told.
func TestSilentUpstream(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		up := server.New("upstream", "1", &server.Options{Logger: quiet, Limits: server.Limits{CallTimeout: server.Unlimited, MaxCallTime: server.Unlimited}})
		var ended atomic.Int64
		up.Add(server.Tool("wait", "Waits.", func(ctx context.Context, _ mcp.None) (string, error) {
			<-ctx.Done()
			ended.Add(1)
			return "", ctx.Err()
		}))
		p := connect(t, up, version, &proxy.Options{Server: server.Options{Limits: server.Limits{CallTimeout: 20 * time.Second}}})
		c := join(t, p.Server(), caller, nil)
		began := time.Now()
		_, err := c.CallTool(t.Context(), "wait", nil, nil)
		if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != mcp.CodeTimeout || time.Since(began) != 20*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		synctest.Wait()
		if ended.Load() != 1 {
			t.Error("the call goes on upstream")
		}
	})
}

// Changes of lists reach callers, and the lists are those of the upstream server.
func TestListChanges(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		up := server.New("upstream", "1", &server.Options{Logger: quiet, DeclareTools: true, DeclarePrompts: true, DeclareResources: true})
		p := connect(t, up, version, nil)
		top := server.New("top", "1", &server.Options{Logger: quiet, DeclareTools: true, DeclarePrompts: true, DeclareResources: true})
		top.Mount("up", p.Server())
		var told logtest.List
		c := join(t, top, caller, &client.Options{
			OnToolsChanged:     func(context.Context) { told.Add("tools") },
			OnPromptsChanged:   func(context.Context) { told.Add("prompts") },
			OnResourcesChanged: func(context.Context) { told.Add("resources") },
		})
		names := func() string {
			var out []string
			for x, err := range c.Tools(t.Context()) {
				out = append(out, x.Name)
				if err != nil {
					t.Fatal(err)
				}
			}
			for x, err := range c.Prompts(t.Context()) {
				out = append(out, x.Name)
				if err != nil {
					t.Fatal(err)
				}
			}
			for x, err := range c.Resources(t.Context()) {
				out = append(out, x.URI)
				if err != nil {
					t.Fatal(err)
				}
			}
			for x, err := range c.ResourceTemplates(t.Context()) {
				out = append(out, x.URITemplate)
				if err != nil {
					t.Fatal(err)
				}
			}
			return strings.Join(out, " ")
		}
		if got := names(); got != "" {
			t.Errorf("at first: %s", got)
		}
		for _, f := range upstreamFeatures() {
			up.Add(f)
		}
		time.Sleep(time.Second) // of fake time
		if got := names(); got != "up_t up_p up+x:///r up+x:///{v}" {
			t.Errorf("after adding: %s", got)
		}
		if got := told.Take(); !slices.Contains(got, "tools") || !slices.Contains(got, "prompts") || !slices.Contains(got, "resources") {
			t.Errorf("told of %v", got)
		}
		up.RemoveTools("t")
		up.RemoveResources("x:///{v}")
		time.Sleep(time.Second) // of fake time
		if got := names(); got != "up_p up+x:///r" {
			t.Errorf("after removing: %s", got)
		}
		if got := told.Take(); !slices.Contains(got, "tools") || slices.Contains(got, "prompts") || !slices.Contains(got, "resources") {
			t.Errorf("told of %v", got)
		}
	})
}

func upstreamFeatures() []server.Feature {
	return []server.Feature{
		server.Tool("t", "", func(context.Context, mcp.None) (string, error) { return "", nil }),
		server.Prompt("p", "", func(context.Context, mcp.None) (string, error) { return "", nil }),
		server.Text("x:///r", "r", "text"),
		server.Template("x:///{v}", "v", func(context.Context, struct {
			V string `uri:"v"`
		},
		) (string, error) {
			return "", nil
		}),
	}
}

// A subscription reaches the upstream server before it is answered, also if that takes its time to
// agree and where the proxy is mounted in servers. What a call changes afterwards is told.
func TestSubscribeThenCall(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		for _, prefix := range []string{"", "up", "top.up"} {
			subscribeThenCall(t, version, caller, prefix)
		}
	})
}

// subscribeThenCall subscribes at a server that a proxy is mounted in under the parts of a prefix.
func subscribeThenCall(t *testing.T, version, caller, prefix string) {
	t.Helper()
	up := server.New("upstream", "1", &server.Options{Logger: quiet})
	var agreed atomic.Int64
	up.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			switch c.Method() {
			case mcp.MethodResourcesSubscribe:
				defer agreed.Add(1)
			case mcp.MethodListen:
				agreed.Add(1) // it is answered at its end
			default:
				return next(c)
			}
			time.Sleep(200 * time.Millisecond) // of fake time
			return next(c)
		}
	})
	up.Add(server.Text("x:///a", "a", "text"), server.Tool("touch", "", func(context.Context, mcp.None) (string, error) {
		up.ResourceUpdated("x:///a")
		return "touched", nil
	}))
	s, uri, tool := connect(t, up, version, nil).Server(), "x:///a", "touch"
	for part := range strings.SplitSeq(prefix, ".") {
		if part == "" {
			continue
		}
		outer := server.New("outer", "1", &server.Options{Logger: quiet})
		outer.Mount(part, s)
		s, uri, tool = outer, part+"+"+uri, part+"_"+tool
	}
	var told logtest.List
	c := join(t, s, caller, &client.Options{OnResourceUpdated: func(_ context.Context, uri string) { told.Add(uri) }})
	sub, err := c.Subscribe(t.Context(), uri)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if agreed.Load() == 0 {
		t.Errorf("mounted under %q: answered before the upstream server was", prefix)
	}
	if _, err := c.CallTool(t.Context(), tool, nil, nil); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // of fake time
	if got := told.Take(); !slices.Equal(got, []string{uri}) {
		t.Errorf("mounted under %q: told of %q", prefix, got)
	}
}

// A resource that callers subscribe to is subscribed to once upstream, until the
// last of them leaves; changes reach all.
func TestSubscriptions(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		up := server.New("upstream", "1", &server.Options{Logger: quiet})
		var watched atomic.Int64
		for _, uri := range []string{"x:///a", "x:///ab"} {
			up.Add(server.Text(uri, uri, "text").With(server.ResourceOptions{Watch: func(ctx context.Context, _ func()) {
				watched.Add(1)
				<-ctx.Done()
				watched.Add(-1)
			}}))
		}
		p := connect(t, up, version, nil)
		top := server.New("top", "1", &server.Options{Logger: quiet})
		top.Mount("up", p.Server())
		var told logtest.List
		o := &client.Options{OnResourceUpdated: func(_ context.Context, uri string) { told.Add(uri) }}
		var subs []*client.Subscription
		for range 3 {
			c := join(t, top, caller, o)
			sub, err := c.Subscribe(t.Context(), "up+x:///a", "up+x:///ab")
			if err != nil {
				t.Fatal(err)
			}
			subs = append(subs, sub)
		}
		time.Sleep(time.Second) // of fake time
		if n := watched.Load(); n != 2 {
			t.Errorf("%d are watched upstream, want 2", n)
		}
		up.ResourceUpdated("x:///a")
		time.Sleep(time.Second) // of fake time
		if got := told.Take(); !slices.Equal(got, []string{"up+x:///a", "up+x:///a", "up+x:///a"}) {
			t.Errorf("told of %q", got)
		}
		up.ResourceUpdated("x:///ab") // it does not lie beneath the other
		time.Sleep(time.Second)       // of fake time
		if got := told.Take(); !slices.Equal(got, []string{"up+x:///ab", "up+x:///ab", "up+x:///ab"}) {
			t.Errorf("told of %q", got)
		}
		for _, sub := range subs {
			if watched.Load() == 0 {
				t.Error("given up too early")
			}
			sub.Close()
			time.Sleep(time.Second) // of fake time
		}
		if n := watched.Load(); n != 0 {
			t.Errorf("%d are still watched upstream", n)
		}
	})
}
