package flows_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// Proves: FLOW-CANCEL-P: the end of the caller's context is the end of the
// handler's; the connection lives on.
func TestFLOW_CANCEL_P(t *testing.T) {
	began, ended := make(chan struct{}, 1), make(chan error, 1)
	build := with(
		server.Tool("wait", "Waits for its end.", func(ctx context.Context, _ mcp.None) (string, error) {
			began <- struct{}{}
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return "too late", nil
		}),
		server.Tool("sum", "Adds.", sum),
	)
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("changed my mind")
		got := make(chan error, 1)
		go func() {
			_, err := c.CallTool(ctx, "wait", nil, nil)
			got <- err
		}()
		<-began
		cancel(why)
		if err := <-got; !errors.Is(err, why) {
			t.Errorf("the call ended with %v", err)
		}
		if err := <-ended; err == nil {
			t.Error("the handler's context has no cause")
		}
		if r, err := client.Call[sumOut](t.Context(), c, "sum", sumIn{1, 2}); err != nil || r.Sum != 3 {
			t.Errorf("afterwards: %+v, %v", r, err)
		}
	})
}

// Proves: FLOW-CANCEL-P, SEC-CANCEL-1: after a cancellation comes no response;
// cancellations that come too late, twice, for nothing, or for what is another's
// change nothing.
func TestSEC_CANCEL_1(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan struct{}, 4)
				s := with(
					server.Tool("wait", "Waits.", func(ctx context.Context, _ mcp.None) (string, error) {
						<-ctx.Done()
						ended <- struct{}{}
						return "", context.Cause(ctx)
					}),
					server.Tool("stubborn", "Does not look up.", func(context.Context, mcp.None) (string, error) {
						time.Sleep(time.Second)
						ended <- struct{}{}
						return "done", nil
					}),
					server.Tool("sum", "Adds.", sum),
				)(t, quiet())
				l, other := dial(t, s, nil), dial(t, s, nil)
				params := ""
				if version == newest {
					params = "," + meta("{}")
				} else {
					l.shake(version, "{}")
					other.shake(version, "{}")
				}
				call := func(l *lines, id, tool, args string) {
					l.send(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s%s}}`, id, tool, args, params)
				}
				cancel := func(l *lines, id string) {
					l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"test"}}`, id)
				}
				call(l, "1", "wait", "{}")
				call(l, `"1"`, "stubborn", "{}")
				synctest.Wait()
				for _, bad := range []string{`2`, `"2"`, `null`, `{}`, `1.5`, `[1]`, `""`} {
					cancel(l, bad)
				}
				l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
				l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}`)
				cancel(other, "1") // one's own only
				l.Silent()
				if len(ended) > 0 {
					t.Fatal("a request ended that nobody could cancel")
				}
				cancel(l, "1")
				cancel(l, "1")
				<-ended
				cancel(l, `"1"`)
				<-ended
				l.Silent()
				other.Silent()
				// The connection lives, and an id may be used again.
				call(l, "1", "sum", `{"a":1,"b":2}`)
				l.next().want("1", "id")
				cancel(l, "1")
				l.Silent()
			})
		})
	}
}

// Proves: FLOW-CANCEL-P: initialize is not cancelled (ruling 13).
func TestFLOW_CANCEL_P_Initialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := dial(t, with(server.Tool("sum", "Adds.", sum))(t, quiet()), nil)
		l.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, june)
		l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		l.next().want(`"`+june+`"`, "result", "protocolVersion")
		l.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`).want("2", "id")
	})
}

// Proves: FLOW-CANCEL-P: in the handshake era a question that nobody waits for
// any more is withdrawn; in each era its handler's context ends.
func TestFLOW_CANCEL_P_Question(t *testing.T) {
	build := with(asksFor[toppings]("ask"), server.Tool("sum", "Adds.", sum))
	bubbles(t, build, func(t *testing.T, era mcptest.Era, join joiner) {
		if !since(era.Version, autumn) {
			t.Skip("no such form in this revision")
		}
		asked, withdrawn := make(chan struct{}, 1), make(chan struct{}, 1)
		_, c := join(&client.Options{OnElicit: func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
			asked <- struct{}{}
			<-ctx.Done()
			withdrawn <- struct{}{}
			return client.CancelElicit()
		}})
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error, 1)
		go func() {
			_, err := c.CallTool(ctx, "ask", nil, nil)
			got <- err
		}()
		<-asked
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("the call ended with %v", err)
		}
		<-withdrawn
		if _, err := client.Call[sumOut](t.Context(), c, "sum", sumIn{1, 2}); err != nil {
			t.Error(err)
		}
	})
}

// Proves: FLOW-CANCEL-P: races between answers and cancellations are harmless.
func TestFLOW_CANCEL_P_Races(t *testing.T) {
	mcptest.EachEra(t, func(t testing.TB, o *server.Options) *server.Server {
		o.Limits.ToolRate = server.Unlimited
		return with(server.Tool("sum", "Adds.", sum))(t, o)
	}, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		const n = 200
		got := make(chan error, n)
		for i := range n {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				r, err := client.Call[sumOut](ctx, c, "sum", sumIn{1, i})
				if err == nil && r.Sum != i+1 {
					err = fmt.Errorf("call %d got the answer %d of another", i, r.Sum)
				}
				got <- err
			}()
			go cancel()
		}
		for range n {
			if err := <-got; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		if _, err := client.Call[sumOut](t.Context(), c, "sum", sumIn{1, 2}); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// Proves: FLOW-PING-P, in both directions.
func TestFLOW_PING_P(t *testing.T) {
	build := with(server.Tool("ping", "Pings its client.", func(ctx context.Context, _ mcp.None) (string, error) {
		if err := server.CallFrom(ctx).Ping(ctx); err != nil {
			return "", mcp.Errorf("%v", err)
		}
		return "pong", nil
	}))
	mcptest.EachEra(t, build, nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		if err := c.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		got, err := client.Call[string](t.Context(), c, "ping", nil)
		if era.Version == newest {
			if err == nil || !strings.Contains(err.Error(), "session") {
				t.Errorf("%q, %v: the stateless revision has no ping", got, err)
			}
		} else if err != nil || got != "pong" {
			t.Errorf("%q, %v", got, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l := dial(t, build(t, quiet()), nil)
		l.ask(`{"jsonrpc":"2.0","id":"p","method":"ping"}`).want(`{"jsonrpc":"2.0","id":"p","result":{}}`)
		l.shake(march, "{}")
		l.ask(`{"jsonrpc":"2.0","id":-1,"method":"ping"}`).want(`{"jsonrpc":"2.0","id":-1,"result":{}}`)
		l.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ping"}}`)
		ask := l.next()
		ask.want(`"ping"`, "method")
		l.ask(`{"jsonrpc":"2.0","id":%s,"result":{}}`, ask.at("id")).want("3", "id")
		l.Silent()
	})
}
