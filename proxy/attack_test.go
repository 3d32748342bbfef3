package proxy_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// joinAs connects a client of one revision for a principal.
func joinAs(t *testing.T, s *server.Server, version string, who *principal.Principal, o *client.Options) *client.Client {
	t.Helper()
	var opts client.Options
	if o != nil {
		opts = *o
	}
	opts.Versions = []string{version}
	c, err := client.Connect(t.Context(), mem.New(s, &mem.Options{Principal: who}), &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Anonymous callers of one address are many people: what the call of one asks
// later, while its first question waits, is not shown to another.
func TestAnonymousQuestions(t *testing.T) {
	for _, version := range upstreams { // of the callers
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := server.New("upstream", "1", &server.Options{Logger: quiet})
				up.Add(
					server.Tool("slow", "Asks a second question while the first one waits.", func(ctx context.Context, _ mcp.None) (string, error) {
						var wg sync.WaitGroup
						wg.Go(func() { _, _ = server.Elicit[confirm](ctx, "First of Ada?") })
						wg.Go(func() { time.Sleep(5 * time.Second); _, _ = server.Elicit[confirm](ctx, "Second of Ada?") })
						wg.Wait()
						return "done", nil
					}),
					server.Tool("wait", "", func(ctx context.Context, _ mcp.None) (string, error) {
						time.Sleep(10 * time.Second) // of fake time
						return "waited", nil
					}),
				)
				p := connect(t, up, v2511, &proxy.Options{KeptTime: time.Minute})
				anonymous := func() *principal.Principal { return &principal.Principal{Remote: "192.0.2.1"} }
				var asked logtest.List
				release := make(chan struct{})
				options := func(name string) *client.Options {
					return &client.Options{OnElicit: func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
						asked.Add(name + ": " + r.Params.Message)
						select {
						case <-release:
							return client.Accept(confirm{true})
						case <-ctx.Done():
							return nil, ctx.Err()
						}
					}}
				}
				ada := joinAs(t, p.Server(), version, anonymous(), options("ada"))
				bob := joinAs(t, p.Server(), version, anonymous(), options("bob"))
				var wg sync.WaitGroup
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				wg.Go(func() { _, _ = ada.CallTool(ctx, "slow", nil, nil) })
				synctest.Wait()
				wg.Go(func() { _, _ = bob.CallTool(ctx, "wait", nil, nil) })
				time.Sleep(20 * time.Second) // of fake time
				close(release)
				wg.Wait()
				for _, item := range asked.Take() {
					if item[:3] == "bob" {
						t.Errorf("shown to another: %s", item)
					}
				}
			})
		})
	}
}

// timeless are limits without a time for calls.
var timeless = server.Limits{ToolRate: server.Unlimited, CallTimeout: server.Unlimited}

// A caller with questions that wait one after another does not keep others from
// their turn for ever.
func TestTurnsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var under atomic.Int64
		up := counting(&under)
		up.Add(server.Tool("plain", "", func(context.Context, mcp.None) (string, error) { return "plain", nil }))
		p := connect(t, up, v2511, &proxy.Options{KeptTime: time.Minute, Server: server.Options{Limits: timeless}})
		h := byHand(t, p.Server(), nil)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				_, _, _ = h.call(ctx, "form", nil, nil)
				cancel()
				time.Sleep(30 * time.Second) // of fake time; then there is another that waits
			}
		})
		time.Sleep(time.Second)
		bob := joinAs(t, p.Server(), v2607, &principal.Principal{Issuer: "https://as.example", Subject: "bob"}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		began := time.Now()
		if _, err := bob.CallTool(ctx, "plain", nil, &client.CallOptions{NoTimeout: true}); err != nil {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		close(stop)
		wg.Wait()
	})
}

// A caller that does not read its progress holds up no other.
func TestSlowCaller(t *testing.T) {
	for _, version := range upstreams { // of the callers
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := server.New("upstream", "1", &server.Options{Logger: quiet, Limits: unlimited})
				up.Add(
					server.Tool("much", "", func(ctx context.Context, _ mcp.None) (string, error) {
						for i := range 4000 {
							if err := server.Progress(ctx, float64(i+1), 0, strings.Repeat("x", 1000)); err != nil {
								return "", err
							}
						}
						return "much", nil
					}),
					server.Tool("plain", "", func(context.Context, mcp.None) (string, error) { return "plain", nil }),
				)
				p := connect(t, up, v2607, nil)
				release := make(chan struct{})
				slow := joinAs(t, p.Server(), version, principal.Local, nil)
				other := joinAs(t, p.Server(), version, &principal.Principal{Issuer: "https://as.example", Subject: "bob"}, nil)
				var wg sync.WaitGroup
				wg.Go(func() {
					o := &client.CallOptions{NoTimeout: true, OnProgress: func(float64, float64, string) { <-release }}
					_, _ = slow.CallTool(t.Context(), "much", nil, o)
				})
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				if r, err := other.CallTool(ctx, "plain", nil, nil); err != nil {
					t.Errorf("another's call: %v, %v", r, err)
				}
				close(release)
				wg.Wait()
			})
		})
	}
}

// What cannot be offered is left out, and nothing else.
func TestBadDefinitions(t *testing.T) {
	for _, version := range upstreams {
		t.Run(version, func(t *testing.T) {
			up := server.New("upstream", "1", &server.Options{Logger: quiet})
			up.Add(server.Tool("good", "", func(context.Context, mcp.None) (string, error) { return "", nil }))
			up.Use(func(next server.Func) server.Func {
				return func(c *server.Call) (server.Result, error) {
					if c.Method() != mcp.MethodToolsList {
						return next(c)
					}
					list := new(mcp.ListToolsResult)
					for _, bad := range []string{`{"name":"good","inputSchema":{"type":"object"}}`, `{"name":"ctrl\u0007","inputSchema":{"type":"object"}}`, `{"name":"header","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}}`, `{"name":"good","description":"twice","inputSchema":{"type":"object"}}`, `{"name":"two words","inputSchema":{"type":"object"}}`, `{"name":"number","inputSchema":{"type":7}}`} {
						x := new(mcp.Tool)
						if err := decode(mcp.RawValue(bad), x); err != nil {
							t.Error(err)
						}
						list.Tools = append(list.Tools, *x)
					}
					return list, nil
				}
			})
			p := connect(t, up, version, nil)
			top := server.New("top", "1", &server.Options{Logger: quiet})
			top.Mount("up", p.Server())
			var names []string
			for x, err := range join(t, top, v2607, nil).Tools(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, x.Name)
			}
			if got := strings.Join(names, ","); got != "up_good,up_number,up_two words" {
				t.Errorf("got %s", got)
			}
		})
	}
}

// A sealed state belongs to the request it was given for.
func TestStateOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, _ := askingServer()
		p := connect(t, up, v2511, nil)
		h := byHand(t, p.Server(), nil)
		_, q, err := h.call(t.Context(), "form", nil, nil)
		if err != nil || q == nil {
			t.Fatal(q, err)
		}
		if _, _, err = h.call(t.Context(), "sample", yes(q), q.RequestState); err == nil {
			t.Error("taken for another tool")
		}
		params := &mcp.GetPromptParams{Name: "form"}
		params.InputResponses, params.RequestState = yes(q), q.RequestState
		var raw mcp.RawValue
		if err := h.c.Request(t.Context(), mcp.MethodPromptsGet, params, &raw, nil); err == nil {
			t.Errorf("taken for a prompt: %s", raw)
		}
	})
}

// What the upstream server does for a call after that was cancelled reaches nobody else.
func TestCancelledCallGoesOn(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		up := server.New("upstream", "1", &server.Options{Logger: quiet})
		up.Add(
			server.Tool("deaf", "", func(ctx context.Context, _ mcp.None) (string, error) {
				time.Sleep(10 * time.Second) // of fake time, whatever is cancelled
				_ = server.Log(ctx, mcp.LogError, "deaf", "secret of ada")
				_ = server.Log(context.WithoutCancel(ctx), mcp.LogError, "deaf", "secret of ada 2")
				_, _ = server.Elicit[confirm](ctx, "Ada?")
				_, _ = server.Elicit[confirm](context.WithoutCancel(ctx), "Ada 2?")
				return "", nil
			}),
			server.Tool("wait", "", func(ctx context.Context, _ mcp.None) (string, error) {
				time.Sleep(20 * time.Second) // of fake time
				return "waited", nil
			}),
		)
		p := connect(t, up, version, nil)
		ada := joinAs(t, p.Server(), caller, principal.Local, &client.Options{OnElicit: accept})
		var got logtest.List
		bob := joinAs(t, p.Server(), caller, &principal.Principal{Issuer: "https://as.example", Subject: "bob"}, &client.Options{
			LogLevel: mcp.LogDebug,
			OnLog:    func(_ context.Context, m *mcp.LogParams) { got.Add(string(m.Data)) },
			OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
				got.Add(r.Params.Message)
				return client.Accept(confirm{true})
			},
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = ada.CallTool(ctx, "deaf", nil, nil)
		r, err := bob.CallTool(t.Context(), "wait", nil, nil)
		if s := text(t, r, err); s != "waited" {
			t.Error(s)
		}
		_ = bob.Drain(t.Context())
		for _, item := range got.Take() {
			t.Errorf("bob got %q", item)
		}
	})
}

// Errors of the protocol's own that an upstream server answers a call with say
// nothing of the proxy's server.
func TestErrorCodes(t *testing.T) {
	for _, transportName := range []string{"mem", "streamable"} {
		for _, caller := range upstreams {
			for _, version := range upstreams {
				for _, code := range []int64{-32700, -32600, -32601, -32602, -32603, -32000, -32001, -32002, -32021, -32022, -32042, -31003, -31004, -31005, -1, 0} {
					t.Run(fmt.Sprint(transportName, caller, version, code), func(t *testing.T) {
						up := server.New("upstream", "1", &server.Options{Logger: quiet, Limits: unlimited})
						var runs atomic.Int64
						up.Add(
							server.Tool("code", "", func(context.Context, mcp.None) (string, error) {
								runs.Add(1)
								return "", mcp.NewError(code, "special")
							}),
							server.Tool("plain", "", func(context.Context, mcp.None) (string, error) { return "plain", nil }),
						)
						p := connect(t, up, version, nil)
						c, err := client.Connect(t.Context(), dialer(t, p.Server(), transportName), &client.Options{Versions: []string{caller}})
						if err != nil {
							t.Fatal(err)
						}
						t.Cleanup(func() { c.Close() })
						r, err := c.CallTool(t.Context(), "code", nil, nil)
						if err == nil && !r.IsError {
							t.Errorf("no error but %+v", r)
						}
						if runs.Load() != 1 {
							t.Errorf("ran %d times", runs.Load())
						}
						r, err = c.CallTool(t.Context(), "plain", nil, nil)
						if got := text(t, r, err); got != "plain" {
							t.Error(got)
						}
					})
				}
			}
		}
	}
}

func dialer(t *testing.T, s *server.Server, transportName string) transport.Dialer {
	return mcptest.Dialer(t, s, transportName)
}

// A resource that is watched again at once, while the upstream server is slow to
// agree, stays watched.
func TestSubscribeAgain(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		up := server.New("upstream", "1", &server.Options{Logger: quiet})
		up.Add(server.Text("x:///a", "a", "text"))
		up.Use(func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				if c.Method() == mcp.MethodResourcesSubscribe || c.Method() == mcp.MethodListen {
					time.Sleep(5 * time.Second)
				}
				return next(c)
			}
		})
		p := connect(t, up, version, nil)
		var told logtest.List
		c := join(t, p.Server(), caller, &client.Options{OnResourceUpdated: func(_ context.Context, uri string) { told.Add(uri) }})
		first, err := c.Subscribe(t.Context(), "x:///a")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		first.Close()
		second, err := c.Subscribe(t.Context(), "x:///a")
		if err != nil {
			t.Fatal(err)
		}
		defer second.Close()
		time.Sleep(time.Minute)
		told.Take()
		up.ResourceUpdated("x:///a")
		time.Sleep(time.Minute)
		if got := told.Take(); len(got) == 0 {
			t.Error("nothing is told")
		}
	})
}

// Proxies of proxies pass questions on.
func TestChain(t *testing.T) {
	for _, a := range upstreams {
		for _, b := range upstreams {
			for _, caller := range upstreams {
				t.Run(a+" "+b+" "+caller, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						up, _ := askingServer()
						first := connect(t, up, a, nil)
						second := connect(t, first.Server(), b, nil)
						c := join(t, second.Server(), caller, answers())
						for tool, want := range map[string]string{"form": "accept", "both": "accept accept", "sample": "hi there by m1", "url": "true"} {
							r, err := c.CallTool(t.Context(), tool, nil, nil)
							if got := text(t, r, err); got != want {
								t.Errorf("%s: %s", tool, got)
							}
						}
					})
				})
			}
		}
	}
}

// A handler of questions may call through the proxy that asks.
func TestCallBack(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		up, _ := askingServer()
		p := connect(t, up, version, nil)
		var c *client.Client
		depth := 0
		o := answers()
		o.OnElicit = func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
			if depth++; depth < 5 {
				if _, err := c.CallTool(ctx, "form", nil, nil); err != nil {
					t.Error(err)
				}
			}
			return client.Accept(confirm{true})
		}
		c = join(t, p.Server(), caller, o)
		r, err := c.CallTool(t.Context(), "form", nil, nil)
		if got := text(t, r, err); got != "accept" || depth != 5 {
			t.Errorf("%s, %d", got, depth)
		}
	})
}

// The answer to a question does not wait until another call of the caller ends: it
// may be what that call runs for.
func TestAnswerBesideLongCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, _ := askingServer()
		end := make(chan struct{})
		up.Add(server.Tool("long", "", func(ctx context.Context, _ mcp.None) (string, error) {
			select {
			case <-end:
			case <-ctx.Done():
			}
			return "long", ctx.Err()
		}))
		p := connect(t, up, v2511, nil)
		answer := make(chan struct{})
		c := join(t, p.Server(), v2511, &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			<-answer
			return client.Accept(confirm{true})
		}})
		var wg sync.WaitGroup
		wg.Go(func() {
			defer close(end)
			r, err := c.CallTool(t.Context(), "form", nil, nil)
			if err != nil || text(t, r, err) != "accept" {
				t.Errorf("got %+v, %v", r, err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if r, err := c.CallTool(t.Context(), "long", nil, nil); err != nil || text(t, r, err) != "long" {
				t.Errorf("got %+v, %v", r, err)
			}
		})
		synctest.Wait()
		close(answer)
		wg.Wait()
	})
}

// What a caller reads is not shown to another one, although a proxy has one
// connection for both: the upstream server tells them apart by their _meta.
// Attack: wrong-user cache.
func TestAttackWrongCallerCache(t *testing.T) {
	up := server.New("upstream", "1", &server.Options{Logger: quiet, Cache: server.Cache{TTL: time.Hour}})
	up.Add(server.Resource("notes://mine", "mine", func(ctx context.Context) (string, error) {
		return "notes of " + string(server.CallFrom(ctx).Meta().Extra["com.example/tenant"]), nil
	}))
	p := connect(t, up, v2607, &proxy.Options{Client: client.Options{Cache: client.NewCache(0, 0)}})
	for _, tenant := range []string{`"ada"`, `"bob"`} {
		c := joinAs(t, p.Server(), v2607, principal.Local, nil)
		r, err := c.ReadResource(t.Context(), "notes://mine", &client.CallOptions{Meta: map[string]mcp.RawValue{"com.example/tenant": mcp.RawValue(tenant)}})
		if err != nil || len(r.Contents) != 1 || r.Contents[0].Text != "notes of "+tenant {
			t.Errorf("%s reads %+v, %v", tenant, r, err)
		}
	}
}
