package server_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// A call without progress is ended after CallTimeout, with retry data.
// Proves: SEC-DOS-1. Ruling 26.
func TestCallTimeout(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			var cause error
			s := newServer(nil, server.Tool("waits", "", func(ctx context.Context, _ none) (string, error) {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return "", ctx.Err()
			}), echo())
			l := joinAs(t, s, v, ada)
			begun := time.Now()
			m := l.tool("waits", emptyBody)
			l.fails(m, mcp.CodeTimeout)
			if took := time.Since(begun); took != time.Minute || !strings.Contains(m.Error.Message, "no progress for 1m0s (Limits.CallTimeout)") {
				t.Errorf("after %v: %s", took, m.Error.Message)
			}
			local := join(t, s, v) // the owner of a pipe
			begun = time.Now()
			m = local.tool("waits", emptyBody)
			local.fails(m, mcp.CodeTimeout)
			if took := time.Since(begun); took != 10*time.Minute || !strings.Contains(m.Error.Message, "over 10m0s altogether (Limits.MaxCallTime)") {
				t.Errorf("on a pipe after %v: %s", took, m.Error.Message)
			}
			decode[mcp.RetryData](t, m.Error.Data)
			synctest.Wait()
			if cause == nil || !strings.Contains(cause.Error(), "too long") {
				t.Errorf("the cause is %v", cause)
			}
			if got := l.text(l.tool("echo", `{"text":"still here"}`)); got != "still here" {
				t.Errorf("got %q", got)
			}
		})
	})
}

// A handler that ignores its context gets its caller answered all the same,
// and what it returns later is dropped. Proves: SEC-DOS-1.
func TestCallTimeoutIgnored(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			let := make(chan struct{})
			s := newServer(nil, server.Tool("deaf", "", func(context.Context, none) (string, error) {
				<-let
				return "late", nil
			}))
			l := join(t, s, v)
			l.fails(l.tool("deaf", emptyBody), mcp.CodeTimeout)
			close(let)
			l.Silent()
		})
	})
}

// Progress gives a call its time again, up to the hard cap.
// Proves: FLOW-PROGRESS, SEC-DOS-1.
func TestCallTimeoutProgress(t *testing.T) {
	for name, token := range map[string]string{"told": `"progressToken":1`, "untold": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(nil, server.Tool("steps", "", func(ctx context.Context, in struct {
					N int `json:"n"`
				},
				) (string, error) {
					for i := range in.N {
						select {
						case <-time.After(50 * time.Second):
						case <-ctx.Done():
							return "", ctx.Err()
						}
						if err := server.Progress(ctx, float64(i+1), 0, ""); err != nil {
							return "", err
						}
					}
					return "done", nil
				}))
				l := join(t, s, v2607)
				l.meta = token
				if got := l.text(l.tool("steps", `{"n":10}`)); got != "done" { // 500 s
					t.Errorf("got %q", got)
				}
				begun := time.Now()
				l.fails(l.tool("steps", `{"n":100}`), mcp.CodeTimeout)
				if took := time.Since(begun); took != 10*time.Minute {
					t.Errorf("the hard cap came after %v", took)
				}
			})
		})
	}
}

// The time in which a person is asked does not count, and the time before and
// after does. Proves: FLOW-ELICIT-P.
func TestCallTimeoutAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(nil, server.Tool("asks", "", func(ctx context.Context, _ none) (string, error) {
			time.Sleep(40 * time.Second)
			if _, err := server.Elicit[sure](ctx, "Sure?"); err != nil {
				return "", err
			}
			select {
			case <-time.After(50 * time.Second):
				return "done", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}))
		l := join(t, s, v2511)
		id := l.start("tools/call", toolParams("asks", emptyBody))
		question := l.next()
		if question.Method != "elicitation/create" {
			t.Fatalf("got %s", question.raw)
		}
		time.Sleep(time.Hour)
		l.WriteLine(`{"jsonrpc":"2.0","id":` + string(question.ID) + `,"result":` + accepted + `}`)
		if got := l.text(l.wait(id)); got != "done" {
			t.Errorf("got %q", got)
		}
	})
}

// The hard cap counts what was spent before a question and after it.
func TestCallTimeoutAskingCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.Limits.MaxCallTime = 90 * time.Second
		s := newServer(o, server.Tool("asks", "", func(ctx context.Context, _ none) (string, error) {
			time.Sleep(50 * time.Second)
			if _, err := server.Elicit[sure](ctx, "Sure?"); err != nil {
				return "", err
			}
			<-ctx.Done()
			return "", ctx.Err()
		}))
		l := join(t, s, v2511)
		id := l.start("tools/call", toolParams("asks", emptyBody))
		question := l.next()
		time.Sleep(time.Hour)
		begun := time.Now()
		l.WriteLine(`{"jsonrpc":"2.0","id":` + string(question.ID) + `,"result":` + accepted + `}`)
		l.fails(l.wait(id), mcp.CodeTimeout)
		if took := time.Since(begun); took != 40*time.Second {
			t.Errorf("ended %v after the answer", took)
		}
	})
}

// Both limits can be switched off, and either alone.
func TestCallTimeoutOff(t *testing.T) {
	for _, c := range []struct {
		idle, most, want time.Duration
	}{
		{server.Unlimited, server.Unlimited, 0},
		{server.Unlimited, time.Hour, time.Hour},
		{time.Hour, server.Unlimited, time.Hour},
		{time.Hour, time.Minute, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := quiet()
			o.Limits.CallTimeout, o.Limits.MaxCallTime = c.idle, c.most
			s := newServer(o, server.Tool("long", "", func(ctx context.Context, _ none) (string, error) {
				select {
				case <-time.After(48 * time.Hour):
					return "done", nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}))
			l := join(t, s, v2607)
			begun := time.Now()
			m := l.tool("long", emptyBody)
			if c.want == 0 {
				l.text(m)
				return
			}
			l.fails(m, mcp.CodeTimeout)
			if took := time.Since(begun); took != c.want {
				t.Errorf("%+v: it took %v", c, took)
			}
		})
	}
}

// A call that is over is not ended again: a listen stays for days.
func TestListenHasNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(nil, echo())
		l := join(t, s, v2607)
		l.listen(`{"toolsListChanged":true}`, `{"toolsListChanged":true}`)
		time.Sleep(72 * time.Hour)
		s.Add(give("x", ""))
		l.note("notifications/tools/list_changed")
	})
}

// Cancelling ends the handler's context, answers nothing, and frees its place;
// what is unknown, finished or somebody else's is left alone.
// Proves: FLOW-CANCEL, SEC-CANCEL-1.
func TestCancel(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 1)
			s := newServer(nil, echo(), server.Tool("waits", "", func(ctx context.Context, _ none) (string, error) {
				<-ctx.Done()
				ended <- ctx.Err()
				return "late", nil
			}))
			l, stranger := join(t, s, v), join(t, s, v)
			id := l.start("tools/call", toolParams("waits", emptyBody))
			synctest.Wait()
			stranger.cancel(id) // an id of another connection
			for _, bad := range []string{`{}`, `{"requestId":null}`, `{"requestId":999}`, `{"requestId":{}}`, `{"requestId":"` + id + `"}`, `[]`} {
				l.WriteLine(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":` + bad + `}`)
			}
			l.Silent()
			if len(ended) != 0 {
				t.Fatal("ended by a cancellation that was not meant for it")
			}
			l.cancel(id)
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("ended by %v", err)
			}
			l.Silent()
			l.cancel(id) // too late: ignored
			if got := l.text(l.tool("echo", `{"text":"on"}`)); got != "on" {
				t.Errorf("got %q", got)
			}
		})
	})
}

// Limits as long as can be said are as good as none.
func TestCallTimeoutEndless(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			const endless = time.Duration(math.MaxInt64)
			o := quiet()
			o.Limits = server.Limits{CallTimeout: endless, MaxCallTime: endless}
			s := newServer(o, server.Tool("waits", "", func(ctx context.Context, _ none) (string, error) {
				select {
				case <-time.After(time.Hour):
					return "done", nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}))
			l := join(t, s, v)
			time.Sleep(time.Second) // the sum of both cannot be said
			if got := l.text(l.tool("waits", emptyBody)); got != "done" {
				t.Errorf("got %q", got)
			}
		})
	})
}

// A tool may have a time of its own, and each handler sees when its call ends
// at the latest.
func TestDeadline(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			type seen struct {
				left time.Duration
				ok   bool
			}
			saw := make(chan seen, 1)
			look := func(ctx context.Context, _ none) (string, error) {
				at, ok := ctx.Deadline()
				saw <- seen{time.Until(at), ok}
				if err := server.Progress(ctx, 1, 0, ""); err != nil {
					return "", err
				}
				<-ctx.Done()
				return "", ctx.Err()
			}
			o := quiet()
			o.Limits.MaxCallTime = 30 * time.Second
			s := newServer(
				o, server.Tool("usual", "", look),
				server.Tool("short", "", look).With(server.ToolOptions{Timeout: 5 * time.Second}),
				server.Tool("long", "", look).With(server.ToolOptions{Timeout: 2 * time.Hour}),
			)
			top := server.New("top", "1", quiet())
			top.Mount("m", s)
			for name, c := range map[string]struct {
				srv  *server.Server
				most time.Duration
				text string
			}{
				"usual":   {s, 30 * time.Second, "over 30s altogether (Limits.MaxCallTime)"},
				"short":   {s, 5 * time.Second, "over 5s altogether (ToolOptions.Timeout)"},
				"long":    {s, 2 * time.Hour, "over 2h0m0s altogether (ToolOptions.Timeout)"},
				"m_short": {top, 5 * time.Second, "over 5s altogether (ToolOptions.Timeout)"},
			} {
				l := joinUnasked(t, c.srv, v)
				begun := time.Now()
				m := l.tool(name, emptyBody)
				l.fails(m, mcp.CodeTimeout)
				if took := time.Since(begun); took != c.most || !strings.Contains(m.Error.Message, c.text) {
					t.Errorf("%s: after %v: %s", name, took, m.Error.Message)
				}
				if got := <-saw; got != (seen{c.most, true}) {
					t.Errorf("%s: its deadline is %+v", name, got)
				}
			}
			free := newServer(nil, server.Tool("free", "", func(ctx context.Context, _ none) (string, error) {
				_, ok := ctx.Deadline()
				time.Sleep(24 * time.Hour)
				return fmt.Sprint(ok), ctx.Err()
			}).With(server.ToolOptions{Timeout: server.Unlimited}))
			l := joinAs(t, free, v, ada)
			if got := l.text(l.tool("free", emptyBody)); got != "false" {
				t.Errorf("without a limit there is a deadline: %s", got)
			}
		})
	})
}

// joinUnasked connects a client that cannot be asked anything.
func joinUnasked(t *testing.T, s *server.Server, v string) *line {
	t.Helper()
	l := dial(t, s, v, ada)
	if l.caps = emptyBody; !l.modern() {
		l.handshake()
	}
	return l
}

// Where a question stops the limit, no deadline is told that would have package
// context leave out the timer of a question's own timeout: it ends in time, though
// the limit is shorter, and the limit ends the rest.
func TestDeadlineAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan time.Duration, 1)
		s := newServer(nil, server.Tool("asks", "", func(ctx context.Context, _ none) (string, error) {
			if at, ok := ctx.Deadline(); ok {
				t.Errorf("the deadline %v is told", at)
			}
			begun := time.Now()
			minute, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			_, err := server.Elicit[sure](minute, "Sure?")
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the question ended with %v", err)
			}
			asked <- time.Since(begun)
			<-ctx.Done()
			return "", ctx.Err()
		}).With(server.ToolOptions{Timeout: 30 * time.Second}))
		l := joinAs(t, s, v2511, ada)
		begun := time.Now()
		id := l.start("tools/call", toolParams("asks", emptyBody))
		l.next() // the question, which nobody answers
		l.fails(l.wait(id), mcp.CodeTimeout)
		if took := <-asked; took != time.Minute {
			t.Errorf("the question was open for %v", took)
		}
		if took := time.Since(begun); took != 90*time.Second {
			t.Errorf("the call took %v", took)
		}
	})
}

// A request whose limits stopped twice goes on when each has been resumed, however
// often the first is.
func TestWaitingResumedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(nil, server.Tool("waits", "", func(ctx context.Context, _ none) (string, error) {
			c := server.CallFrom(ctx)
			second := c.PauseTimeouts()
			first := c.PauseTimeouts()
			first()
			first()
			time.Sleep(time.Hour)
			second()
			<-ctx.Done()
			return "", ctx.Err()
		}).With(server.ToolOptions{Timeout: 30 * time.Second}))
		l := joinAs(t, s, v2607, ada)
		begun := time.Now()
		l.fails(l.tool("waits", emptyBody), mcp.CodeTimeout)
		if took := time.Since(begun); took != time.Hour+30*time.Second {
			t.Errorf("the call took %v", took)
		}
	})
}
