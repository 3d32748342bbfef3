package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/streamable"
)

// limited is a server that lets little pass, for a caller with a name.
func limited(limits server.Limits) transport.Dialer {
	s := server.New("limited", "1", &server.Options{Limits: limits})
	s.Add(
		server.Tool("echo", "Says it again.", func(_ context.Context, in struct {
			Text string `json:"text"`
		},
		) (string, error) {
			return in.Text, nil
		}),
		server.Tool("slow", "Takes a while.", func(ctx context.Context, _ mcp.None) (string, error) {
			time.Sleep(time.Second)
			return "done", ctx.Err()
		}),
		server.Text("a:b", "a", "A"),
		server.Prompt("p", "Asks.", func(context.Context, mcp.None) (string, error) { return "hello", nil }),
	)
	return mem.New(s, &mem.Options{Principal: &principal.Principal{Issuer: "i", Subject: "ada"}})
}

// Ruling 31: what a server refused before it ran is sent again at the pace that
// the server allows, so that many calls at once and one after another succeed.
func TestManyCalls(t *testing.T) {
	all := func(rate float64) server.Limits {
		return server.Limits{ToolRate: rate, ListRate: rate, CompletionRate: rate, PingRate: rate}
	}
	call := func(ctx context.Context, c *client.Client, n int) error {
		text := fmt.Sprint(n)
		out, err := client.Call[string](ctx, c, "echo", map[string]string{"text": text})
		if err == nil && out != text {
			err = fmt.Errorf("echo of %s gave %s", text, out)
		}
		return err
	}
	slow := func(ctx context.Context, c *client.Client, _ int) error {
		_, err := client.Call[string](ctx, c, "slow", nil)
		return err
	}
	mixed := func(ctx context.Context, c *client.Client, n int) error {
		switch n % 4 {
		case 0:
			for _, err := range c.Tools(ctx) {
				if err != nil {
					return err
				}
			}
			return nil
		case 1:
			return second(c.ReadResource(ctx, "a:b", nil))
		case 2:
			return second(c.GetPrompt(ctx, "p", nil, nil))
		}
		return c.Ping(ctx)
	}
	for name, test := range map[string]struct {
		limits server.Limits
		n      int
		do     func(ctx context.Context, c *client.Client, n int) error
		within time.Duration // all at once
	}{
		"120 calls":             {all(50), 120, call, 5 * time.Second},
		"120 calls at defaults": {server.Limits{}, 120, call, 5 * time.Second},
		"120 mixed at defaults": {server.Limits{}, 120, mixed, 20 * time.Second},
		"500 calls":             {all(50), 500, call, 20 * time.Second},
		"500 calls, 20/s":       {all(20), 500, call, time.Minute},
		"120 mixed":             {all(20), 120, mixed, 20 * time.Second},
		"500 mixed":             {all(20), 500, mixed, 30 * time.Second},
		"many under way":        {server.Limits{MaxInFlight: 20, ToolRate: server.Unlimited}, 120, slow, 30 * time.Second},
		"many, and a low rate":  {server.Limits{MaxInFlight: 20, ToolRate: 10}, 120, slow, time.Minute},
	} {
		eras(t, func(t *testing.T, versions []string) {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := dial(t, limited(test.limits), &client.Options{Versions: versions})
					start := time.Now()
					var wg sync.WaitGroup
					for n := range test.n {
						wg.Go(func() {
							if err := test.do(t.Context(), c, n); err != nil {
								t.Errorf("call %d: %v", n, err)
							}
						})
					}
					wg.Wait()
					if took := time.Since(start); took > test.within {
						t.Errorf("%d at once took %v", test.n, took)
					}
					for n := range min(test.n, 120) {
						if err := test.do(t.Context(), c, n); err != nil {
							t.Fatalf("call %d after another: %v", n, err)
						}
					}
				})
			})
		})
	}
}

func second[T any](_ T, err error) error { return err }

// The error of a server that goes on to refuse says which limit it was, how
// often it was tried, and what the server told.
func TestRetryError(t *testing.T) {
	for name, test := range map[string]struct {
		refusal *jsonrpc.Error
		retries int
		sent    int
		says    string
	}{
		"told nothing": {jsonrpc.NewError(mcp.CodeRateLimited, "too many calls of t"), 0, 6, `tools/call "t": too many calls of t (code -31001) (tried 6 times)`},
		"told":         {jsonrpc.NewError(mcp.CodeTooManyInFlight, "more than 3").With(mcp.RetryData{RetryAfterMs: 40}), 2, 3, `more than 3 (code -31002) (tried 3 times; the server asks to wait 40ms)`},
		"switched off": {jsonrpc.NewError(mcp.CodeRateLimited, "too many"), -1, 1, `(tried once)`},
		"an hour":      {jsonrpc.NewError(mcp.CodeRateLimited, "too many").With(mcp.RetryData{RetryAfterMs: 3_600_000}), 0, 1, `(tried once; the server asks to wait 1h0m0s)`},
		"other":        {jsonrpc.NewError(-32050, "busy"), 0, 1, `tools/call "t": busy (code -32050)`},
	} {
		eras(t, func(t *testing.T, versions []string) {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &script{versions: versions, on: tool(func(*req) (any, error) { return nil, test.refusal })}
					c := connect(t, s, &client.Options{Retries: test.retries})
					_, err := c.CallTool(t.Context(), "t", nil, nil)
					if err == nil || !strings.HasSuffix(err.Error(), test.says) {
						t.Errorf("error %v, want %s", err, test.says)
					}
					var peer *jsonrpc.Error
					if !errors.As(err, &peer) || peer.Code != test.refusal.Code {
						t.Errorf("no error of the server in %v", err)
					}
					var tried *client.RetryError
					if errors.As(err, &tried) != (name != "other") || tried != nil && tried.Tries != test.sent {
						t.Errorf("retried: %+v", tried)
					}
					if n := len(s.got(mcp.MethodToolsCall)); n != test.sent {
						t.Errorf("sent %d times, want %d", n, test.sent)
					}
				})
			})
		})
	}
}

// A call that is refused ends in its own time, and with the reason.
func TestRefusedUntilTheEnd(t *testing.T) {
	refuse := tool(func(*req) (any, error) {
		return nil, jsonrpc.NewError(mcp.CodeRateLimited, "too many").With(mcp.RetryData{RetryAfterMs: 900})
	})
	for name, test := range map[string]struct {
		limit time.Duration
		o     *client.CallOptions
		after time.Duration
		want  error
	}{
		"context": {limit: 2500 * time.Millisecond, after: 1800 * time.Millisecond}, // at 1.8 s it is not worth waiting
		"timeout": {limit: time.Hour, o: &client.CallOptions{Timeout: 500 * time.Millisecond}, after: 0},
		"forever": {limit: time.Hour, o: &client.CallOptions{NoTimeout: true}, after: 4 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := connect(t, &script{on: refuse}, nil)
			ctx, cancel := context.WithTimeout(t.Context(), test.limit)
			defer cancel()
			start := time.Now()
			_, err := c.CallTool(ctx, "t", nil, test.o)
			var peer *jsonrpc.Error
			var tried *client.RetryError
			if !errors.As(err, &peer) || !errors.As(err, &tried) || tried.RetryAfter != 900*time.Millisecond {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(start); took < test.after || took > test.after+3*time.Second {
				t.Errorf("%s: took %v", name, took)
			}
		})
	}
}

// Rulings 16 and 31: over HTTP 429 is always repeated, 503 where doing it twice
// is harmless, and nothing else more than once.
func TestRepeatedStatus(t *testing.T) {
	calls := map[string]func(ctx context.Context, c *client.Client) error{
		"write": func(ctx context.Context, c *client.Client) error { return second(c.CallTool(ctx, "writes", nil, nil)) },
		"read":  func(ctx context.Context, c *client.Client) error { return second(c.CallTool(ctx, "reads", nil, nil)) },
		"resource": func(ctx context.Context, c *client.Client) error {
			return second(c.ReadResource(ctx, "a:b", nil))
		},
		"complete": func(ctx context.Context, c *client.Client) error {
			return second(c.Complete(ctx, &mcp.CompleteParams{Ref: mcp.PromptRef("p")}))
		},
	}
	for _, test := range []struct {
		f    *failing
		call string
		sent int
	}{
		{&failing{status: 429}, "write", 3},
		{&failing{status: 429, code: -32000}, "write", 3},
		{&failing{status: 429, code: -31001, header: "1"}, "resource", 3},
		{&failing{status: 200, code: -31002}, "write", 3},
		{&failing{status: 503}, "write", 1},
		{&failing{status: 503, header: "1"}, "write", 1},
		{&failing{status: 503, code: -31001}, "write", 3},
		{&failing{status: 503}, "read", 3},
		{&failing{status: 503, header: "1"}, "resource", 3},
		{&failing{status: 503, code: -31004}, "complete", 3},
		{&failing{status: 502}, "resource", 2}, // as after a broken stream
		{&failing{status: 500, code: -32603}, "resource", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := test.f
			f.set(2)
			s := &front{f: f}
			s.on = map[string]func(*http.Request, string) *http.Response{
				mcp.MethodToolsList: func(_ *http.Request, id string) *http.Response {
					return result(id, `{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[
						{"name":"reads","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
						{"name":"writes","inputSchema":{"type":"object"}}]}`)
				},
				mcp.MethodResourcesRead: func(_ *http.Request, id string) *http.Response { return result(id, `{"contents":[]}`) },
				mcp.MethodComplete: func(_ *http.Request, id string) *http.Response {
					return result(id, `{"completion":{"values":[]}}`)
				},
			}
			c := dial(t, &streamable.Dialer{URL: "http://far.example/mcp", Client: &http.Client{Transport: s}},
				&client.Options{Eras: client.NewEraMemory(), TrustAnnotations: true})
			for _, err := range c.Tools(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
			}
			f.method = map[string]string{"write": mcp.MethodToolsCall, "read": mcp.MethodToolsCall, "resource": mcp.MethodResourcesRead, "complete": mcp.MethodComplete}[test.call]
			err := calls[test.call](t.Context(), c)
			if f.asked() != test.sent || (err == nil) != (test.sent == 3) {
				t.Errorf("%s with status %d and code %d: sent %d times, want %d; error %v", test.call, f.status, f.code, f.asked(), test.sent, err)
			}
		})
	}
}

// A refused subscription is repeated as a call is, and says why it failed.
func TestSubscribeRefusedForNow(t *testing.T) {
	for name, test := range map[string]struct {
		times int
		told  int64
		limit time.Duration
		says  string
	}{
		"once":       {times: 1, told: 1000, limit: time.Hour},
		"for ever":   {times: -1, told: 1000, limit: time.Hour, says: "more than 8 (code -31002) (tried 6 times; the server asks to wait 1s)"},
		"for long":   {times: -1, told: 3_600_000, limit: time.Hour, says: "more than 8 (code -31002) (tried once; the server asks to wait 1h0m0s)"},
		"no time":    {times: -1, told: 1000, limit: 500 * time.Millisecond, says: "more than 8 (code -31002)"},
		"more often": {times: 5, told: 0, limit: time.Hour},
	} {
		eras(t, func(t *testing.T, versions []string) {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := &failing{times: test.times}
					good := subscribing(versions)
					s := subscribing(versions)
					refuse := func(r *req) (any, error) {
						if f.due("") {
							return nil, jsonrpc.NewError(mcp.CodeTooManyInFlight, "more than 8").With(mcp.RetryData{RetryAfterMs: test.told})
						}
						return good.handle(r)
					}
					s.on[mcp.MethodListen], s.on[mcp.MethodResourcesSubscribe] = refuse, refuse
					c := connect(t, s, nil)
					ctx, cancel := context.WithTimeout(t.Context(), test.limit)
					defer cancel()
					sub, err := c.Subscribe(ctx, "a:1")
					if test.says == "" {
						if err != nil || len(sub.URIs()) != 1 {
							t.Errorf("%v, %v", sub, err)
						}
						return
					}
					var peer *jsonrpc.Error
					if err == nil || !errors.As(err, &peer) || !strings.Contains(err.Error(), test.says) {
						t.Errorf("error %v, want %s", err, test.says)
					}
				})
			})
		})
	}
}

// A server that lets a little more wait, for a second, and refuses the rest with
// the time at which it would have had room: nothing says how many may come
// then. So does one that many clients share.
func TestPaceIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		rate, clients, calls int
		waits                time.Duration
		within               time.Duration
	}{
		"fast":         {rate: 50, clients: 1, calls: 500, waits: time.Second, within: 30 * time.Second},
		"slow":         {rate: 10, clients: 1, calls: 300, waits: time.Second, within: time.Minute},
		"many clients": {rate: 50, clients: 50, calls: 4, within: 10 * time.Second},
		"they wait":    {rate: 50, clients: 50, calls: 4, waits: time.Second, within: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := rate.NewLimiter(rate.Limit(test.rate), test.rate)
				s := &script{on: tool(func(*req) (any, error) {
					now := time.Now()
					r := limiter.ReserveN(now, 1)
					if wait := r.DelayFrom(now); wait > test.waits {
						r.CancelAt(now)
						return nil, jsonrpc.NewError(mcp.CodeRateLimited, "too many").With(mcp.RetryData{RetryAfterMs: wait.Milliseconds() + 1})
					} else {
						time.Sleep(wait) // of fake time
					}
					return raw(done), nil
				})}
				start := time.Now()
				var wg sync.WaitGroup
				for range test.clients {
					c := connect(t, s, nil)
					for range test.calls {
						wg.Go(func() {
							if _, err := c.CallTool(t.Context(), "t", nil, nil); err != nil {
								t.Error(err)
							}
						})
					}
				}
				wg.Wait()
				took, sent, calls := time.Since(start), len(s.got(mcp.MethodToolsCall)), test.clients*test.calls
				t.Logf("%d calls took %v and %d messages", calls, took, sent)
				if took > test.within || sent > 5*calls {
					t.Errorf("%d calls took %v and %d messages", calls, took, sent)
				}
			})
		})
	}
}

// A call that another one's refusal holds back for longer than it has time is told
// so at once, with what the server said; one with time enough waits and is sent.
func TestRefusalOfAnother(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			s := &script{versions: versions, on: tool(func(*req) (any, error) {
				if n++; n == 1 {
					return nil, jsonrpc.NewError(mcp.CodeRateLimited, "over its rate").With(mcp.RetryData{RetryAfterMs: 50_000})
				}
				return raw(done), nil
			})}
			c := connect(t, s, nil)
			start := time.Now()
			first := make(chan error, 1)
			go func() { first <- second(c.CallTool(t.Context(), "t", nil, nil)) }()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, err := c.CallTool(ctx, "t", nil, nil)
			var refused *client.RetryError
			var peer *jsonrpc.Error
			if !errors.As(err, &refused) || refused.Tries != 0 || refused.RetryAfter != 50*time.Second || !errors.As(err, &peer) || peer.Code != mcp.CodeRateLimited {
				t.Errorf("error %v", err)
			}
			if time.Since(start) != 0 || !strings.Contains(fmt.Sprint(err), "over its rate (code -31001) (not sent; the server asks to wait 50s)") {
				t.Errorf("error %v after %v", err, time.Since(start))
			}
			if err := second(c.CallTool(t.Context(), "t", nil, nil)); err != nil || time.Since(start) < 50*time.Second {
				t.Errorf("a call with time enough: %v after %v", err, time.Since(start))
			}
			if err := <-first; err != nil || n != 3 {
				t.Errorf("the call that was refused: %v; %d were sent", err, n)
			}
		})
	})
}
