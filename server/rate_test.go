package server_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
)

// Each kind of request has its limit by default, per caller; who is refused is
// told when to come back, and can. Proves: SEC-TOOL-2, SEC-COMP-1, SEC-DOS-1.
// Rulings 26 and 30.
func TestRates(t *testing.T) {
	for _, c := range []struct {
		method, params string
		burst          int
		versions       []string
	}{
		{"tools/call", `{"name":"echo","arguments":{"text":"x"}}`, 50, bothEras},
		{"tools/list", `{}`, 20, bothEras},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}`, 20, bothEras},
		{"ping", `{}`, 10, []string{v2511}},
		{"prompts/get", `{"name":"p","arguments":{"a":"x"}}`, 50, bothEras},
		{"resources/read", `{"uri":"test:a"}`, 50, bothEras},
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
					for range c.burst {
						l.result(l.call(c.method, c.params))
					}
					m := again.call(c.method, c.params) // another connection of the same caller
					again.fails(m, mcp.CodeRateLimited)
					wait := decode[mcp.RetryData](t, m.Error.Data).RetryAfterMs
					if wait <= 0 || wait > 1000 {
						t.Fatalf("wait %d ms", wait)
					}
					other.result(other.call(c.method, c.params))
					time.Sleep(time.Duration(wait) * time.Millisecond)
					l.result(l.call(c.method, c.params))
					l.fails(l.call(c.method, c.params), mcp.CodeRateLimited)
				})
			})
		}
	}
}

// Tools are counted one by one; limits can be set and switched off.
func TestRateOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.Limits.ToolRate, o.Limits.ListRate = 2, server.Unlimited
		s := newServer(o, give("a", "x"), give("b", "x"))
		l := join(t, s, v2607)
		for range 2 {
			l.text(l.tool("a", emptyBody))
			l.text(l.tool("b", emptyBody))
		}
		l.fails(l.tool("a", emptyBody), mcp.CodeRateLimited)
		for range 100 {
			l.result(l.call("tools/list", emptyBody))
		}
	})
}

// Anonymous callers are limited by their address, not together.
func TestRateAnonymous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.Limits.ToolRate = 1
		s := newServer(o, give("a", "x"))
		one := joinAs(t, s, v2607, &principal.Principal{Remote: "192.0.2.1"})
		two := joinAs(t, s, v2607, &principal.Principal{Remote: "192.0.2.2"})
		one.text(one.tool("a", emptyBody))
		two.text(two.tool("a", emptyBody))
		one.fails(one.tool("a", emptyBody), mcp.CodeRateLimited)
	})
}

// The later rounds of an asked request are not counted again.
func TestRateOfRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.Limits.ToolRate = 1
		s := newServer(o, asker("drop", "Drop?"))
		l := join(t, s, v2607)
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
		s := newServer(nil, give("a", "x"))
		l := join(t, s, v2607)
		for i := range 10_100 {
			code := int64(mcp.CodeInvalidParams)
			if i >= 50 { // all unknown names together are one tool
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
		s := newServer(nil, give("a", "x"), give("hidden", "x"), review(), server.Text("test:a", "a", ""))
		s.Visible(func(_ context.Context, it server.Item) bool {
			if it.Name == "test:panics" {
				panic("a mistake")
			}
			return it.Name != "hidden"
		})
		l := join(t, s, v2607)
		for i := range 50 {
			l.fails(l.tool(fmt.Sprintf("made-up-%d", i), emptyBody), mcp.CodeInvalidParams)
			l.fails(l.prompt(fmt.Sprintf("made-up-%d", i), emptyBody), mcp.CodeInvalidParams)
		}
		l.fails(l.tool("hidden", emptyBody), mcp.CodeRateLimited)
		l.fails(l.prompt("made-up", emptyBody), mcp.CodeRateLimited)
		l.text(l.tool("a", emptyBody))
		limited := 0
		for i := range 64*50 + 1 {
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
