package frame_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/frame"
)

const ping = `{"jsonrpc":"2.0","id":9,"method":"ping"}`

const pong = `{"jsonrpc":"2.0","id":9,"result":{}}`

// Proves: MSG-1, MSG-2, MSG-4, SEC-DOS-1. What is not a message gets the error
// it deserves, and the session goes on.
func TestBadMessages(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, test := range []struct {
		name string
		in   any
		want string // what the answer begins with; empty: no answer
	}{
		{"empty line", "", ""},
		{"white space", " \t ", ""},
		{"no JSON", "hello", `{"jsonrpc":"2.0","error":{"code":-32700,`},
		{"cut off", `{"jsonrpc":"2.0","id":4,"method":"x"`, `{"jsonrpc":"2.0","id":4,"error":{"code":-32700,`},
		{"number", "12", `{"jsonrpc":"2.0","error":{"code":-32600,`},
		{"duplicate key", `{"jsonrpc":"2.0","id":4,"method":"x","params":{"a":1,"a":2}}`, `{"jsonrpc":"2.0","id":4,"error":{"code":-32700,`},
		{"two ids", `{"jsonrpc":"2.0","id":4,"id":5,"method":"x"}`, `{"jsonrpc":"2.0","error":{"code":-32700,`},
		{"deep", `{"jsonrpc":"2.0","id":"d","method":"x","params":` + strings.Repeat(`{"a":`, 200) + `1` + strings.Repeat("}", 200) + `}`, `{"jsonrpc":"2.0","id":"d","error":{"code":-32700,`},
		{"wrong version", `{"jsonrpc":"1.0","id":4,"method":"x"}`, `{"jsonrpc":"2.0","id":4,"error":{"code":-32600,`},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"x"}`, `{"jsonrpc":"2.0","error":{"code":-32600,`},
		{"bad notification", `{"jsonrpc":"2.0","method":"x","params":7}`, ""},
		{"bad response", `{"jsonrpc":"2.0","id":4,"result":7}`, ""},
		{"too long", frame.NewTooLongError(100, []byte(`{"jsonrpc":"2.0", "id" : "a\"b", "method":"x","par`)), `{"jsonrpc":"2.0","id":"a\"b","error":{"code":-32700,"message":"message exceeds the limit of 100 bytes`},
		{"too long, no id", frame.NewTooLongError(100, []byte(`{"params":{`)), `{"jsonrpc":"2.0","error":{"code":-32700,`},
		{"too long response", frame.NewTooLongError(100, []byte(`{"jsonrpc":"2.0","id":4,"result":{`)), ""},
		{"batch", `[` + ping + `]`, `{"jsonrpc":"2.0","error":{"code":-32600,`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := serve(t, new(peer), nil, test.in, ping)
			i := slices.Index(got, pong)
			if i < 0 {
				t.Fatalf("the session did not go on: %q", got)
			}
			got = slices.Delete(got, i, i+1) // requests run beside the reader
			switch {
			case test.want == "" && len(got) > 0:
				t.Errorf("answered %q, want nothing", got)
			case test.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], test.want)):
				t.Errorf("answered %q, want one that begins with %q", got, test.want)
			}
		})
	}
}

// Ruling 9: the session says how the absence of an id is written.
func TestNullID(t *testing.T) {
	got := serve(t, &peer{rules: transport.Rules{NullID: true}}, nil, "hello")
	if len(got) != 1 || !strings.HasPrefix(got[0], `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`) {
		t.Errorf("answered %q", got)
	}
}

// A message over the limit is refused even if the pipe let it through.
func TestLimitHolds(t *testing.T) {
	got := serve(t, new(peer), &frame.Options{MaxMessage: 50}, strings.Replace(ping, "ping", strings.Repeat("p", 50), 1), ping)
	if len(got) != 2 || !slices.Contains(got, pong) {
		t.Errorf("answered %q, want an error and %q", got, pong)
	}
}

// Requests are begun, and everything else accepted, in order of arrival.
func TestOrderOfArrival(t *testing.T) {
	var order []string
	p := &peer{accept: func(m *jsonrpc.Incoming) { order = append(order, m.Method) }}
	p.begin = func(ctx context.Context, x *transport.Exchange) func() {
		order = append(order, x.In.ID.String())
		if x.Principal != principal.Local {
			t.Errorf("principal is %v, want Local", x.Principal)
		}
		_ = x.Out.Answer(ctx, result(x, `{}`))
		return nil // refused, and answered
	}
	var in []any
	var want []string
	for i := range 50 {
		in = append(in, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"a"}`, i), fmt.Sprintf(`{"jsonrpc":"2.0","method":"n%d"}`, i))
		want = append(want, fmt.Sprint(i), fmt.Sprintf("n%d", i))
	}
	if got := serve(t, p, nil, in...); len(got) != 50 {
		t.Errorf("%d answers, want 50", len(got))
	}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order of arrival (-want +got):\n%s", diff)
	}
}

// A result that cannot be encoded leaves room for an error in its place.
func TestAnswerNotEncodable(t *testing.T) {
	p := &peer{handle: func(ctx context.Context, x *transport.Exchange) {
		if err := x.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Result: jsonrpc.JSON(func() {})}); err == nil {
			t.Error("a function was encoded")
		}
		if err := x.Out.Answer(ctx, result(x, `{}`)); err != nil {
			t.Errorf("answering instead: %v", err)
		}
		if err := x.Out.Answer(ctx, result(x, `{}`)); !errors.Is(err, jsonrpc.ErrEnded) {
			t.Errorf("answering again: %v, want ErrEnded", err)
		}
	}}
	if got := one(serve(t, p, nil, ping)); got != pong {
		t.Errorf("answered %q", got)
	}
}

// An exchange that its handler left without an answer takes none later.
func TestAbandoned(t *testing.T) {
	var late transport.Responder
	p := &peer{handle: func(_ context.Context, x *transport.Exchange) { late = x.Out }}
	if got := serve(t, p, nil, ping); len(got) != 0 {
		t.Errorf("answered %q", got)
	}
	if err := late.Send(t.Context(), &jsonrpc.Outgoing{Method: "n"}); !errors.Is(err, jsonrpc.ErrEnded) {
		t.Errorf("sending late: %v, want ErrEnded", err)
	}
}

// Proves: FLOW-SHUTDOWN. After the end of the input, requests under way have
// Linger to end; then they are cancelled, with a cause, and waited for.
func TestLinger(t *testing.T) {
	for _, test := range []struct{ takes, linger, ends time.Duration }{
		{300 * time.Millisecond, 500 * time.Millisecond, 300 * time.Millisecond},
		{time.Hour, 500 * time.Millisecond, 500 * time.Millisecond},
		{time.Hour, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{handle: func(ctx context.Context, x *transport.Exchange) {
				select {
				case <-time.After(test.takes):
				case <-ctx.Done():
					if !errors.Is(context.Cause(ctx), transport.ErrClosed) {
						t.Errorf("cancelled with %v, want ErrClosed", context.Cause(ctx))
					}
				}
				_ = x.Out.Answer(ctx, result(x, `{}`)) // also of a cancelled one: it must not be lost
			}}
			start := time.Now()
			if got := one(serve(t, p, &frame.Options{Linger: test.linger}, ping)); got != pong {
				t.Errorf("answered %q", got)
			}
			if took := time.Since(start); took != test.ends {
				t.Errorf("ended after %v, want %v", took, test.ends)
			}
		})
	}
}

// Proves: FLOW-SHUTDOWN. The end of the context ends the session with its
// cause, although the peer says nothing.
func TestContextEnds(t *testing.T) {
	mcptest.NoLeaks(t)
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	p := &peer{closing: make(chan struct{})}
	p.handle = func(ctx context.Context, x *transport.Exchange) {
		cancel(reason)
		<-ctx.Done()
		<-p.closing
		if err := x.Out.Send(context.Background(), &jsonrpc.Outgoing{Method: "n"}); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("sending while the session ends: %v, want ErrClosed", err)
		}
		_ = x.Out.Answer(ctx, result(x, `{}`))
	}
	pipe := newScript(ping)
	pipe.held = true
	if err := frame.Serve(ctx, pipe, p, nil); !errors.Is(err, reason) {
		t.Errorf("Serve: %v, want the cause", err)
	}
	if !errors.Is(p.cause, reason) {
		t.Errorf("the session was closed with %v, want the cause", p.cause)
	}
	if got := one(pipe.lines()); got != pong {
		t.Errorf("answered %q", got)
	}
}

// Conn.Close ends the session from within.
func TestConnClose(t *testing.T) {
	mcptest.NoLeaks(t)
	reason := errors.New("misbehaved")
	var conn transport.Conn
	p := &peer{open: func(c transport.Conn) error { conn = c; return nil }}
	p.handle = func(ctx context.Context, x *transport.Exchange) {
		if !conn.Shared() || conn.Principal() != principal.Local {
			t.Errorf("the connection is %v, %v", conn.Shared(), conn.Principal())
		}
		_ = x.Out.Answer(ctx, result(x, `{}`))
		_ = conn.Close(reason)
		if err := conn.Send(ctx, &jsonrpc.Outgoing{Method: "n"}); !errors.Is(err, reason) {
			t.Errorf("sending after Close: %v, want the cause", err)
		}
	}
	pipe := newScript(ping)
	pipe.held = true
	if err := frame.Serve(t.Context(), pipe, p, nil); !errors.Is(err, reason) {
		t.Errorf("Serve: %v, want the cause", err)
	}
	if got := one(pipe.lines()); got != pong {
		t.Errorf("answered %q: what was queued is written", got)
	}
}

// A handler may refuse the peer.
func TestOpenRefuses(t *testing.T) {
	reason := errors.New("not you")
	pipe := newScript(ping)
	err := frame.Serve(t.Context(), pipe, &peer{open: func(transport.Conn) error { return reason }}, nil)
	if !errors.Is(err, reason) {
		t.Errorf("Serve: %v, want the reason", err)
	}
	<-pipe.closed
}

// A pipe that breaks ends the session with what broke.
func TestPipeBreaks(t *testing.T) {
	broken := errors.New("cable cut")
	p := &peer{handle: func(ctx context.Context, _ *transport.Exchange) { <-ctx.Done() }}
	err := frame.Serve(t.Context(), newScript(ping, broken), p, &frame.Options{Linger: time.Hour})
	if !errors.Is(err, broken) || !errors.Is(p.cause, broken) {
		t.Errorf("Serve: %v, session closed with %v, want what broke", err, p.cause)
	}
}

// Proves: SEC-DOS-1. A peer that does not read is given up.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe := newScript(ping)
		pipe.held = true
		pipe.gate = make(chan struct{})
		start := time.Now()
		if err := frame.Serve(t.Context(), pipe, new(peer), nil); !errors.Is(err, transport.ErrStalled) {
			t.Errorf("Serve: %v, want ErrStalled", err)
		}
		if took := time.Since(start); took != frame.DefaultWriteStall {
			t.Errorf("given up after %v, want %v", took, frame.DefaultWriteStall)
		}
	})
}

// Senders wait for room, no longer than their context; those that wait when
// the answer comes send nothing.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe := newScript(ping)
		pipe.gate = make(chan struct{}, 10)
		note := &jsonrpc.Outgoing{Method: "n", Params: jsonrpc.Raw(jsonrpc.RawValue(`{"pad":"` + strings.Repeat("x", 60) + `"}`))}
		p := &peer{handle: func(ctx context.Context, x *transport.Exchange) {
			if err := x.Out.Send(ctx, note); err != nil {
				t.Errorf("the first: %v", err)
			}
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := x.Out.Send(short, note); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the second: %v, want DeadlineExceeded", err)
			}
			waiting := make(chan error)
			go func() { waiting <- x.Out.Send(ctx, note) }()
			synctest.Wait()
			answered := make(chan error)
			go func() { answered <- x.Out.Answer(ctx, result(x, `{}`)) }()
			synctest.Wait()
			pipe.gate <- struct{}{}
			pipe.gate <- struct{}{}
			if err := <-waiting; !errors.Is(err, jsonrpc.ErrEnded) {
				t.Errorf("the one that waited: %v, want ErrEnded", err)
			}
			if err := <-answered; err != nil {
				t.Errorf("the answer: %v", err)
			}
		}}
		if err := frame.Serve(t.Context(), pipe, p, &frame.Options{MaxQueued: 100, Linger: time.Hour}); err != nil {
			t.Errorf("Serve: %v", err)
		}
		got := pipe.lines()
		if len(got) != 2 || got[1] != pong {
			t.Errorf("written %q, want one notification and %q", got, pong)
		}
	})
}

// What gathers behind a write leaves with the next.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe := newScript(ping)
		pipe.gate = make(chan struct{}, 10)
		p := &peer{handle: func(ctx context.Context, x *transport.Exchange) {
			for range 20 {
				_ = x.Out.Send(ctx, &jsonrpc.Outgoing{Method: "n"})
				synctest.Wait()
			}
			pipe.gate <- struct{}{}
			pipe.gate <- struct{}{}
			pipe.gate <- struct{}{}
			_ = x.Out.Answer(ctx, result(x, `{}`))
		}}
		if err := frame.Serve(t.Context(), pipe, p, &frame.Options{Linger: time.Hour}); err != nil {
			t.Errorf("Serve: %v", err)
		}
		if got := pipe.lines(); len(got) != 21 || pipe.calls > 3 {
			t.Errorf("%d messages in %d writes, want 21 in at most 3", len(got), pipe.calls)
		}
	})
}

// A response that cannot be read is not answered, but the request of ours that
// it belongs to learns of it: it would wait for ever.
// Proves: MSG-4, SEC-DOS-1.
func TestBadResponseFails(t *testing.T) {
	const good = `{"jsonrpc":"2.0","id":"g","result":{}}`
	for _, test := range []struct {
		name string
		in   any
		want string // the id that fails; empty: none
	}{
		{"result", `{"jsonrpc":"2.0","id":4,"result":5}`, "4"},
		{"error", `{"jsonrpc":"2.0","id":"a","error":"no"}`, `a`},
		{"both", `{"jsonrpc":"2.0","id":4,"result":{},"error":{"code":1,"message":"x"}}`, "4"},
		{"no JSON", `{"jsonrpc":"2.0","id":4,"result":{"a":1,"a":2}}`, "4"},
		{"too long", frame.NewTooLongError(100, []byte(`{"jsonrpc":"2.0","id":4,"result":{`)), "4"},
		{"in a batch", `[{"jsonrpc":"2.0","id":4,"result":5},` + good + `]`, "4"},
		{"no id", `{"jsonrpc":"2.0","result":5}`, ""},
		{"a request", `{"jsonrpc":"2.0","id":4,"method":"x","params":7}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var failed []string
			p := &peer{rules: transport.Rules{Batch: true}, accept: func(m *jsonrpc.Incoming) {
				if m.Kind != jsonrpc.Response {
					t.Errorf("accepted %+v", m)
				}
				if m.Error != nil {
					failed = append(failed, m.ID.String())
				}
			}}
			serve(t, p, nil, test.in)
			if got := strings.Trim(strings.Join(failed, ","), `"`); got != test.want {
				t.Errorf("failed %q, want %q", got, test.want)
			}
		})
	}
}

// The session is told which requests came in an array. Ruling 10.
func TestBatched(t *testing.T) {
	batched := make(chan string, 2)
	p := &peer{rules: transport.Rules{Batch: true}, handle: func(ctx context.Context, x *transport.Exchange) {
		batched <- fmt.Sprint(x.In.ID, x.Batched)
		_ = x.Out.Answer(ctx, result(x, `{}`))
	}}
	serve(t, p, &frame.Options{Linger: time.Hour}, "["+ping+"]")
	serve(t, p, &frame.Options{Linger: time.Hour}, ping)
	if a, b := <-batched, <-batched; a != "9 true" || b != "9 false" {
		t.Errorf("got %q and %q", a, b)
	}
}
