package server_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
)

// Each kind of request has its limit by default, per caller: a burst of ten
// seconds' worth, then a second's worth that waits. A request that is refused
// carries the time after which it can be sent again. Proves: SEC-TOOL-2, SEC-COMP-1, SEC-DOS-1.
// Rulings 26 and 30.
func TestRates(t *testing.T) {
	for _, c := range []struct {
		method, params string
		burst, rate    int
		versions       []string
	}{
		{"tools/call", `{"name":"echo","arguments":{"text":"x"}}`, 500, 50, bothEras},
		{"tools/list", `{}`, 500, 100, bothEras},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}`, 500, 50, bothEras},
		{"ping", `{}`, 500, 50, []string{v2511}},
		{"prompts/get", `{"name":"p","arguments":{"a":"x"}}`, 500, 50, bothEras},
		{"resources/read", `{"uri":"test:a"}`, 500, 50, bothEras},
	} {
		for _, v := range c.versions {
			t.Run(c.method+"/"+v, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newServer(nil, echo(), server.Text("test:a", "a", ""), server.Prompt("p", "", func(context.Context, struct {
						A string `json:"a"`
					},
					) (string, error) {
						return "", nil
					}).With(server.PromptOptions{Complete: map[string]server.Completer{"a": server.Choices("x")}}))
					l, again, other := joinAs(t, s, v, ada), joinAs(t, s, v, ada), joinAs(t, s, v, bob)
					begun := time.Now()
					for range c.burst {
						l.result(l.call(c.method, c.params))
					}
					if took := time.Since(begun); took != 0 {
						t.Errorf("a burst took %v", took)
					}
					for range c.rate { // a second's worth more has to wait
						l.start(c.method, c.params)
					}
					synctest.Wait()
					m := again.call(c.method, c.params) // another connection of the same caller
					again.fails(m, mcp.CodeRateLimited)
					wait := decode[mcp.RetryData](t, m.Error.Data).RetryAfterMs
					if wait <= 1000 || wait > 1020 {
						t.Fatalf("wait %d ms", wait)
					}
					other.result(other.call(c.method, c.params))
					if took := time.Since(begun); took != 0 {
						t.Errorf("another caller waited for %v", took)
					}
					time.Sleep(time.Duration(wait) * time.Millisecond)
					for range c.rate {
						l.result(l.next())
					}
					again.result(again.call(c.method, c.params))
				})
			})
		}
	}
}

// Tools are counted one by one; limits can be set and switched off.
func TestRateOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.Limits.ToolRate, o.Limits.ListRate = 0.2, server.Unlimited
		s := newServer(o, give("a", "x"), give("b", "x"))
		l := joinAs(t, s, v2607, ada)
		for range 2 {
			l.text(l.tool("a", emptyBody))
			l.text(l.tool("b", emptyBody))
		}
		l.fails(l.tool("a", emptyBody), mcp.CodeRateLimited)
		for range 5000 {
			l.result(l.call("tools/list", emptyBody))
		}
	})
}

// A tool that replaces another has its own rate at once, a lower one too.
func TestRateOfReplacedTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := func(rate float64) server.Feature {
			return server.Tool("a", "", func(context.Context, struct{}) (string, error) { return "x", nil }).With(server.ToolOptions{Rate: rate})
		}
		s := newServer(quiet(), tool(0.1))
		l := joinAs(t, s, v2607, ada)
		l.text(l.tool("a", emptyBody))
		l.fails(l.tool("a", emptyBody), mcp.CodeRateLimited)
		s.Add(tool(1000))
		time.Sleep(time.Second)
		for range 900 {
			l.text(l.tool("a", emptyBody))
		}
		s.Add(tool(0.1))
		time.Sleep(10 * time.Second)
		l.text(l.tool("a", emptyBody))
		l.fails(l.tool("a", emptyBody), mcp.CodeRateLimited)
	})
}

// Anonymous callers are limited by their address, not together, and ten times
// as high as others. Ruling 30.
func TestRateAnonymous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.Limits.ToolRate = 0.05
		s := newServer(o, give("a", "x"))
		one := joinAs(t, s, v2607, &principal.Principal{Remote: "192.0.2.1"})
		two := joinAs(t, s, v2607, &principal.Principal{Remote: "192.0.2.2"})
		for range 5 {
			one.text(one.tool("a", emptyBody))
		}
		two.text(two.tool("a", emptyBody))
		one.fails(one.tool("a", emptyBody), mcp.CodeRateLimited)
	})
}

// The later rounds of an asked request are not counted again.
func TestRateOfRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.Limits.ToolRate = 0.1
		s := newServer(o, asker("drop", "Drop?"))
		l := joinAs(t, s, v2607, ada)
		res := l.asked(l.tool("drop", emptyBody))
		if got := l.text(l.call("tools/call", with(toolParams("drop", emptyBody), res.answers(accepted)))); got != "accept true" {
			t.Errorf("got %q", got)
		}
	})
}

// The memory of the limiter is bounded whatever targets are made up.
// Proves: SEC-DOS-1.
func TestRateTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.Limits.ToolRate = 0.9 // the next token is more than a second away
		s := newServer(o, give("a", "x"))
		l := joinAs(t, s, v2607, ada)
		for i := range 10_100 {
			code := int64(mcp.CodeInvalidParams)
			if i >= 9 { // all unknown names together are one tool
				code = mcp.CodeRateLimited
			}
			l.fails(l.tool(fmt.Sprintf("made-up-%d", i), emptyBody), code)
		}
		l.text(l.tool("a", emptyBody))
	})
}

// What is hidden is counted as what does not exist, so that the limit does not
// tell them apart; and a caller cannot make up prompts, nor resources without
// end. Proves: SEC-TOOL-2, SEC-DOS-1.
func TestRateHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.Limits.ToolRate = 0.9
		s := newServer(o, give("a", "x"), give("hidden", "x"), review(), server.Text("test:a", "a", ""))
		s.Visible(func(_ context.Context, it server.Item) bool {
			if it.Name == "test:panics" {
				panic("a mistake")
			}
			return it.Name != "hidden"
		})
		l := joinAs(t, s, v2607, ada)
		for i := range 9 {
			l.fails(l.tool(fmt.Sprintf("made-up-%d", i), emptyBody), mcp.CodeInvalidParams)
			l.fails(l.prompt(fmt.Sprintf("made-up-%d", i), emptyBody), mcp.CodeInvalidParams)
		}
		l.fails(l.tool("hidden", emptyBody), mcp.CodeRateLimited)
		l.fails(l.prompt("made-up", emptyBody), mcp.CodeRateLimited)
		l.text(l.tool("a", emptyBody))
		limited := 0
		for i := range 64*9 + 1 {
			if m := l.read1(fmt.Sprintf("test:made-up-%d", i)); m.Error.Code == mcp.CodeRateLimited {
				limited++
			}
		}
		if limited == 0 {
			t.Error("each made-up URI has a limit of its own")
		}
	})
}

// More requests under way than allowed are refused with retry data, and their
// places are free as soon as answers are out. Proves: SEC-DOS-1. Ruling 26.
func TestMaxInFlight(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			let := make(chan struct{})
			o := unlimited()
			o.Limits.MaxInFlight = 3
			s := newServer(o, server.Tool("waits", "", func(context.Context, none) (string, error) {
				<-let
				return "x", nil
			}), echo())
			l := join(t, s, v)
			var ids []string
			for range 3 {
				ids = append(ids, l.start("tools/call", toolParams("waits", emptyBody)))
			}
			synctest.Wait()
			m := l.tool("echo", `{"text":"x"}`)
			l.fails(m, mcp.CodeTooManyInFlight)
			if got := decode[mcp.RetryData](t, m.Error.Data); got.RetryAfterMs <= 0 {
				t.Errorf("retry data %s", m.Error.Data)
			}
			close(let)
			for range ids {
				m := l.next()
				l.text(m)
			}
			for range 100 { // never more than one under way
				l.text(l.tool("echo", `{"text":"x"}`))
			}
		})
	})
}

// The owner of a pipe has no rates, and a caller over HTTP may discover as
// often as it likes. Ruling 30.
func TestRatesOfLocal(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			o := quiet()
			o.Limits.ToolRate, o.Limits.ListRate = 0.1, 0.1
			s := newServer(o, echo(), give("slow", "x").With(server.ToolOptions{Rate: 0.1}))
			l := join(t, s, v)
			for range 1000 {
				l.text(l.tool("echo", `{"text":"x"}`))
				l.text(l.tool("slow", emptyBody))
				l.result(l.call("tools/list", emptyBody))
			}
			if l.modern() {
				named := joinAs(t, s, v, ada)
				for range 1000 {
					named.result(named.call("server/discover", emptyBody))
				}
			}
		})
	})
}

// Each list method has a bucket of its own.
func TestRatesOfLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.Limits.ListRate = 0.1
		s := newServer(o, echo(), review(), server.Text("test:a", "a", ""))
		l := joinAs(t, s, v2511, ada)
		for method, params := range map[string]string{
			"tools/list": emptyBody, "prompts/list": emptyBody, "resources/list": emptyBody, "resources/templates/list": emptyBody,
			"logging/setLevel": `{"level":"error"}`,
		} {
			l.result(l.call(method, params))
			m := l.call(method, params)
			l.fails(m, mcp.CodeRateLimited)
			if want := "rate limit: 0.1 " + method + " per second for each caller (Limits.ListRate); try again in 10s"; m.Error.Message != want {
				t.Errorf("%q, want %q", m.Error.Message, want)
			}
		}
	})
}

// A refusal says which limit it was, whose, and which option changes it.
func TestRateText(t *testing.T) {
	for name, c := range map[string]struct {
		who          *principal.Principal
		version      string
		tool, params string
		want         string
	}{
		"named":     {ada, v2607, "a", "", `rate limit: 0.1 tools/call of "a" per second for each caller (Limits.ToolRate); try again in 10s`},
		"anonymous": {&principal.Principal{Remote: "192.0.2.1"}, v2511, "a", "", `rate limit: 1 tools/call of "a" per second for the anonymous callers of one address (10 times Limits.ToolRate); try again in 2s`},
		"own":       {ada, v2511, "own", "", `rate limit: 0.2 tools/call of "own" per second for each caller (ToolOptions.Rate); try again in 5s`},
		"unknown":   {ada, v2607, "none", "", `rate limit: 0.1 tools/call of unknown names per second for each caller (Limits.ToolRate); try again in 10s`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := quiet()
				o.Limits.ToolRate = 0.1
				s := newServer(o, give("a", "x"), give("own", "x").With(server.ToolOptions{Rate: 0.2}))
				l := joinAs(t, s, c.version, c.who)
				for range 13 {
					l.start("tools/call", toolParams(c.tool, emptyBody))
				}
				synctest.Wait()
				var last message
				for range 12 {
					if m := l.next(); m.Error != nil && m.Error.Code == mcp.CodeRateLimited {
						last = m
						break
					}
				}
				if last.Error == nil || last.Error.Message != c.want {
					t.Errorf("got %s, want %q", last.raw, c.want)
				}
			})
		})
	}
}

// A request that waits for its turn can be cancelled, and ends with the server;
// its place is given back, what waits does not hold up what follows on the same
// connection, and the wait is no part of the call's time.
func TestTurns(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			o := quiet()
			o.Limits.ToolRate, o.Limits.CallTimeout = 1, 600*time.Millisecond
			var ran atomic.Int32
			s := newServer(o, server.Tool("slow", "", func(ctx context.Context, _ none) (string, error) {
				ran.Add(1)
				time.Sleep(500 * time.Millisecond)
				return "done", ctx.Err()
			}), echo())
			l := joinAs(t, s, v, ada)
			for range 10 {
				l.start("tools/call", toolParams("slow", emptyBody))
			}
			for range 10 {
				l.text(l.next())
			}
			time.Sleep(500 * time.Millisecond)
			begun := time.Now()
			first := l.start("tools/call", toolParams("slow", emptyBody)) // at once
			l.text(l.wait(first))
			waiting := l.start("tools/call", toolParams("slow", emptyBody)) // half a second later
			synctest.Wait()
			l.result(l.call("tools/list", emptyBody)) // overtakes it
			if took := time.Since(begun); took != 500*time.Millisecond {
				t.Errorf("after %v", took)
			}
			l.text(l.wait(waiting)) // 500 ms of waiting and 500 ms of work: over 600 ms together
			if took := time.Since(begun); took != 1500*time.Millisecond {
				t.Errorf("answered after %v", took)
			}
			before := ran.Load()
			l.cancel(l.start("tools/call", toolParams("slow", emptyBody)))
			l.Silent()
			again := l.start("tools/call", toolParams("slow", emptyBody)) // takes the place of the cancelled one
			l.text(l.wait(again))
			if ran.Load() != before+1 {
				t.Errorf("%d ran, want 1", ran.Load()-before)
			}
			last := l.start("tools/call", toolParams("slow", emptyBody))
			synctest.Wait()
			begun = time.Now()
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			l.fails(l.wait(last), mcp.CodeShuttingDown)
			if took := time.Since(begun); took != 0 || ran.Load() != before+1 {
				t.Errorf("shutdown took %v, %d ran", took, ran.Load()-before)
			}
		})
	})
}

// Self-contained requests wait too, and the end of their context ends the wait.
func TestTurnOfSelfContained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.Limits.ToolRate = 1
		ran := 0
		s := newServer(o, server.Tool("a", "", func(context.Context, none) (string, error) {
			ran++
			return "x", nil
		}))
		l := &line{version: v2607, caps: emptyBody}
		call := func(ctx context.Context) {
			out := new(sink)
			x := out.exchange(t, []byte(l.request("1", "tools/call", toolParams("a", emptyBody))))
			x.Principal = ada
			s.Serve(ctx, x)
		}
		begun := time.Now()
		for range 11 {
			call(t.Context())
		}
		if took := time.Since(begun); took != time.Second || ran != 11 {
			t.Errorf("%d ran in %v", ran, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		call(ctx)
		if took := time.Since(begun); took != 1100*time.Millisecond || ran != 11 {
			t.Errorf("%d ran in %v", ran, took)
		}
	})
}

// A hasty client sends its next request as soon as it has the answer to the last one.
type hasty struct {
	sink

	next func()
}

func (h *hasty) Answer(ctx context.Context, m *jsonrpc.Outgoing) error {
	err := h.sink.Answer(ctx, m)
	h.next()
	return err
}

// The place of a self-contained request is free as soon as its answer is out, whether that is a result
// or an error. Proves: SEC-DOS-1.
func TestPlaceIsFreeWithAnswer(t *testing.T) {
	o := unlimited()
	o.Limits.MaxInFlight = 1
	s := newServer(o, echo(), server.Tool("exits", "", func(context.Context, none) (string, error) {
		runtime.Goexit()
		return "", nil
	}))
	l := &line{version: v2607, caps: emptyBody}
	good := l.request("1", "tools/call", toolParams("echo", `{"text":"x"}`))
	for name, first := range map[string]struct{ text, version string }{
		"a result":               {good, ""},
		"an error":               {l.request("1", "tools/call", toolParams("no such", emptyBody)), ""},
		"a refusal":              {l.request("1", "no/such", emptyBody), ""},
		"an end without a word":  {l.request("1", "tools/call", toolParams("exits", emptyBody)), ""},
		"a handshake of its own": {hello, v2511},
	} {
		serve := func(text, version string, next func()) string {
			out := &hasty{next: next}
			x := out.exchange(t, []byte(text))
			x.Principal, x.Out, x.Version = ada, out, version
			done := make(chan struct{})
			go func() {
				defer close(done)
				s.Serve(t.Context(), x)
			}()
			<-done
			return string(out.buffer)
		}
		var second string
		answer := serve(first.text, first.version, func() { second = serve(good, "", func() {}) })
		if !strings.Contains(second, `"result"`) {
			t.Errorf("behind %s, %s: %s", name, answer, second)
		}
	}
}

// Middleware that ends its goroutine in a handshake has that answered with an error.
func TestHandshakeExits(t *testing.T) {
	s := newServer(nil, echo())
	s.Use(func(server.Func) server.Func {
		return func(*server.Call) (server.Result, error) {
			runtime.Goexit()
			return nil, nil
		}
	})
	l := dial(t, s, v2511, nil)
	l.WriteLine(hello)
	l.fails(l.next(), mcp.CodeInternalError)
}

// The anonymous callers of one address may have more under way than one named
// caller, and the refusal says which limit it was. Ruling 30.
func TestMaxInFlightOfAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		s := newServer(unlimited(), server.Tool("waits", "", func(context.Context, none) (string, error) {
			<-let
			return "x", nil
		}))
		var wg sync.WaitGroup
		defer wg.Wait()
		defer close(let)
		l := &line{version: v2607, caps: emptyBody}
		text := []byte(l.request("1", "tools/call", toolParams("waits", emptyBody)))
		for who, c := range map[*principal.Principal]struct {
			most int
			want string
		}{
			ada:                   {256, "more than 256 requests under way by one caller (Limits.MaxInFlight)"},
			{Remote: "192.0.2.1"}: {1024, "more than 1024 requests under way by the anonymous callers of one address (Limits.MaxAnonymousInFlight)"},
		} {
			serve := func() *sink {
				out := new(sink)
				x := out.exchange(t, text)
				x.Principal = who
				s.Serve(t.Context(), x)
				return out
			}
			for range c.most {
				wg.Go(func() { serve() })
			}
			synctest.Wait()
			if got := string(serve().buffer); !strings.Contains(got, c.want) {
				t.Errorf("%s, want %s", got, c.want)
			}
		}
	})
}

// However many callers come too early, a bounded number of requests waits.
func TestTurnsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, callers, most = 250, 17, 4096
		o := quiet()
		o.Limits.ToolRate = rate
		s := newServer(o, give("a", "x"))
		l := &line{version: v2607, caps: emptyBody}
		text := []byte(l.request("1", "tools/call", toolParams("a", emptyBody)))
		call := func(who *principal.Principal) string {
			out := new(sink)
			x := out.exchange(t, text)
			x.Principal = who
			s.Serve(t.Context(), x)
			return string(out.buffer)
		}
		var (
			wg      sync.WaitGroup
			refused atomic.Int32
		)
		for i := range callers {
			who := &principal.Principal{Subject: fmt.Sprint(i)}
			for range 10 * rate { // the burst
				call(who)
			}
			for range rate {
				wg.Go(func() {
					if strings.Contains(call(who), "more than 4096 requests wait for their turn") {
						refused.Add(1)
					}
				})
			}
		}
		wg.Wait()
		if got := refused.Load(); got != callers*rate-most {
			t.Errorf("%d of %d were refused, want %d", got, callers*rate, callers*rate-most)
		}
	})
}

// On a busy connection requests run on the goroutine that reads (decision
// 0017). One that waits for its turn gives the reading up: what comes behind it
// is answered before.
func TestTurnOnReader(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		o := quiet()
		o.Limits.ToolRate = 2
		s := newServer(o, give("a", "x"), echo())
		l := joinAs(t, s, v, ada)
		l.result(l.call("tools/list", emptyBody)) // what comes right behind a handshake may have to wait for its end
		var burst strings.Builder
		for i := range 22 { // the last two wait for half a second and a whole one
			burst.WriteString(l.request(fmt.Sprint(100+i), "tools/call", toolParams("a", emptyBody)) + "\n")
		}
		burst.WriteString(l.request("200", "tools/list", emptyBody))
		l.WriteLine(burst.String())
		var order []string
		for range 23 {
			m := l.next()
			l.result(m)
			order = append(order, string(m.ID))
		}
		if !slices.Equal(order[21:], []string{"120", "121"}) {
			t.Errorf("answered in the order %v", order)
		}
	})
}
