package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/streamable"
)

type userKey struct{}

// Middleware hands a value on, several times over, and everything that looks for
// the request in the handler's context finds it.
func TestCallWithContext(t *testing.T) {
	tool := server.Tool("who", "Who calls.", func(ctx context.Context, _ none) (string, error) {
		if err := server.Progress(ctx, 1, 2, "half"); err != nil {
			return "", err
		}
		ticket, err := server.Once(ctx, "ticket", func() (string, error) { return "T1", nil })
		if err != nil {
			return "", err
		}
		own, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		a, err := server.Elicit[sure](own, "Sure?")
		if err != nil {
			return "", err
		}
		c := server.CallFrom(own)
		user, _ := ctx.Value(userKey{}).(string)
		return strings.Join([]string{c.Method(), c.Target(), user, ticket, string(a.Action)}, " "), nil
	})
	s := newServer(nil, tool)
	for range 2 {
		s.Use(func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				user, _ := c.Value(userKey{}).(string)
				d := c.WithContext(context.WithValue(c, userKey{}, user+"ada"))
				if c.Value(userKey{}) != nil && user == "" || d.ID() != c.ID() {
					t.Errorf("the call itself has changed")
				}
				return next(d)
			}
		})
	}
	each(t, bothEras, func(t *testing.T, version string) {
		l := join(t, s, version)
		l.meta = `"progressToken":7`
		var m message
		if l.modern() {
			first := l.asked(l.tool("who", emptyBody))
			m = l.call("tools/call", with(toolParams("who", emptyBody), first.answers(accepted)))
		} else {
			id := l.start("tools/call", toolParams("who", emptyBody))
			l.note(mcp.NotifyProgress)
			q := l.next()
			l.WriteLine(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":` + accepted + `}`)
			m = l.wait(id)
		}
		if got, want := l.text(m), "tools/call who adaada T1 accept"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	panics(t, "nil context", func() { (&server.Call{}).WithContext(nil) }) //nolint:staticcheck // the point of it
}

// An ask ends with the context it is made in, be it the handler's own or one that
// middleware derived, and the client is told.
func TestAskEndsWithItsContext(t *testing.T) {
	why := errors.New("why")
	for name, derive := range map[string]func(s *server.Server){
		"handler": func(s *server.Server) {
			s.Add(server.Tool("ask", "", func(ctx context.Context, _ none) (string, error) {
				own, cancel := context.WithTimeoutCause(ctx, time.Second, why)
				defer cancel()
				_, err := server.Elicit[sure](own, "Sure?")
				if !errors.Is(err, why) || ctx.Err() != nil {
					t.Errorf("the ask gives %v, the request %v", err, ctx.Err())
				}
				return "gave up", nil
			}))
		},
		"middleware": func(s *server.Server) {
			s.Add(server.Tool("ask", "", func(ctx context.Context, _ none) (string, error) {
				_, err := server.Elicit[sure](ctx, "Sure?")
				if !errors.Is(err, why) || !errors.Is(context.Cause(ctx), why) {
					t.Errorf("the ask gives %v, the context %v", err, context.Cause(ctx))
				}
				return "gave up", nil
			}))
			s.Use(func(next server.Func) server.Func {
				return func(c *server.Call) (server.Result, error) {
					ctx, cancel := context.WithTimeoutCause(c, time.Second, why)
					defer cancel()
					return next(c.WithContext(ctx))
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(nil)
				derive(s)
				l := join(t, s, v2511)
				id := l.start("tools/call", toolParams("ask", emptyBody))
				q := l.next()
				if q.Method != mcp.MethodElicit {
					t.Fatalf("want a question, got %s", q.raw)
				}
				if got := l.text(l.wait(id)); got != "gave up" {
					t.Errorf("got %q", got)
				}
				if len(l.notes) != 1 || l.notes[0].Method != mcp.NotifyCancelled {
					t.Errorf("the client was told %v", l.notes)
				}
			})
		})
	}
}

// A handler that middleware gives less time is told from one that failed.
func TestMiddlewareTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(nil, server.Tool("slow", "", func(ctx context.Context, _ none) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}))
		s.Use(func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				ctx, cancel := context.WithTimeout(c, time.Second)
				defer cancel()
				res, err := next(c.WithContext(ctx))
				if c.Method() == "initialize" {
					return res, err
				}
				if got := server.OutcomeOf(c, res, err); got != server.OutcomeTimedOut {
					t.Errorf("the outcome is %v", got)
				}
				return res, err
			}
		})
		for _, version := range bothEras {
			l := join(t, s, version)
			l.fails(l.tool("slow", emptyBody), mcp.CodeTimeout)
		}
	})
}

// The text of the error that such a handler returns is for the log alone, unless it
// was made for the caller. Proves: SEC-TOOL-6.
func TestMiddlewareTimeoutHidesErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text logtest.Log
		o := quiet()
		o.Logger = text.Logger()
		s := newServer(o,
			server.Tool("f", "", func(ctx context.Context, _ none) (string, error) {
				<-ctx.Done()
				return "", fmt.Errorf("%w: %w", errSecret, ctx.Err())
			}),
			server.Prompt("f", "", func(ctx context.Context, _ none) (string, error) {
				<-ctx.Done()
				return "", fmt.Errorf("%w: %w", errSecret, ctx.Err())
			}),
			server.Prompt("made", "", func(ctx context.Context, _ none) (string, error) {
				<-ctx.Done()
				return "", mcp.Errorf("no answer of the weather office: %w", ctx.Err())
			}),
		)
		s.Use(func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				ctx, cancel := context.WithTimeout(c, time.Second)
				defer cancel()
				return next(c.WithContext(ctx))
			}
		})
		for _, version := range bothEras {
			l := join(t, s, version)
			for _, m := range []message{l.tool("f", emptyBody), l.prompt("f", emptyBody)} {
				if said := l.fails(m, mcp.CodeTimeout); strings.Contains(said, "db01") {
					t.Errorf("the caller is told %q", said)
				}
			}
			if said := l.fails(l.prompt("made", emptyBody), mcp.CodeInternalError); !strings.Contains(said, "weather office") {
				t.Errorf("an error made for the caller: %q", said)
			}
		}
		if !strings.Contains(text.String(), "db01") {
			t.Error("the log does not tell what happened")
		}
	})
}

// Proves that a cancelled request has one cause, whatever it came by.
func TestCauseOfCancelledCall(t *testing.T) {
	for name, look := range map[string]bool{"looks at its context": true, "asks for the cause alone": false} {
		t.Run(name, func(t *testing.T) {
			began, ended := make(chan struct{}), make(chan error, 1)
			release := make(chan struct{})
			s := newServer(nil, server.Tool("wait", "", func(ctx context.Context, _ none) (string, error) {
				began <- struct{}{}
				if look {
					<-ctx.Done()
				} else {
					<-release
				}
				ended <- context.Cause(ctx)
				return "", ctx.Err()
			}))
			s.Use(func(next server.Func) server.Func {
				return func(c *server.Call) (server.Result, error) {
					res, err := next(c)
					if got := server.OutcomeOf(c, res, err); got != server.OutcomeCancelled && c.Method() != "initialize" {
						t.Errorf("the outcome is %v", got)
					}
					return res, err
				}
			})
			t.Run("notification", func(t *testing.T) {
				if !look {
					t.Skip("it comes while the handler runs, when nobody can tell")
				}
				for _, version := range bothEras {
					l := join(t, s, version)
					id := l.start("tools/call", toolParams("wait", emptyBody))
					<-began
					l.WriteLine(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
					if cause := <-ended; !errors.Is(cause, server.ErrCancelled) {
						t.Errorf("%s: the cause is %v", version, cause)
					}
				}
			})
			t.Run("request of its own", func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				l := &line{version: v2607, caps: emptyBody}
				x := new(sink).exchange(t, []byte(l.request("1", "tools/call", toolParams("wait", emptyBody))))
				served := make(chan struct{})
				go func() {
					defer close(served)
					s.Serve(ctx, x)
				}()
				<-began
				cancel()
				close(release)
				if cause := <-ended; !errors.Is(cause, server.ErrCancelled) {
					t.Errorf("the cause is %v", cause)
				}
				<-served
			})
		})
	}
}

// Each way in which a request may go is told from the others, and a question
// from a failure.
func TestOutcome(t *testing.T) {
	tool := func(name string, err error) server.Feature {
		return server.Tool(name, "", func(context.Context, none) (string, error) { return "", err })
	}
	s := newServer(nil,
		tool("ok", nil), tool("model", mcp.Errorf("no such order")), tool("code", mcp.NewError(-5, "no")), tool("bug", errors.New("bug")),
		server.Tool("ask", "", func(ctx context.Context, _ none) (string, error) {
			if _, err := server.Elicit[sure](ctx, "Sure?"); err != nil {
				return "", errors.New("words of its own")
			}
			return "", nil
		}),
		server.Resource("test:gone", "gone", func(context.Context) (string, error) { return "", server.ErrNotFound }),
		server.Resource("test:bug", "bug", func(context.Context) (string, error) { return "", errors.New("bug") }),
		server.Resource("test:roots", "roots", func(ctx context.Context) (string, error) {
			_, err := server.Roots(ctx)
			return "", err
		}),
	)
	var got server.Outcome
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			res, err := next(c)
			got = server.OutcomeOf(c, res, err)
			return res, err
		}
	})
	l := join(t, s, v2607)
	for _, try := range []struct {
		method, params string
		caps           string
		want           server.Outcome
		word           string
	}{
		{"tools/call", toolParams("ok", "{}"), "{}", server.OutcomeOK, "ok"},
		{"tools/list", "{}", "{}", server.OutcomeOK, "ok"},
		{"tools/call", toolParams("ask", "{}"), allCaps, server.OutcomeInputRequired, "input required"},
		{"tools/call", toolParams("model", "{}"), "{}", server.OutcomeToolError, "tool error"},
		{"tools/call", toolParams("ok", `{"more":1}`), "{}", server.OutcomeToolError, "tool error"},
		{"tools/call", toolParams("code", "{}"), "{}", server.OutcomeRefused, "refused"},
		{"tools/call", toolParams("none", "{}"), "{}", server.OutcomeRefused, "refused"},
		{"resources/read", `{"uri":"test:gone"}`, "{}", server.OutcomeRefused, "refused"},
		{"resources/read", `{"uri":"test:roots"}`, "{}", server.OutcomeRefused, "refused"},
		{"tools/call", toolParams("bug", "{}"), "{}", server.OutcomeFailed, "failed"},
		{"resources/read", `{"uri":"test:bug"}`, "{}", server.OutcomeFailed, "failed"},
	} {
		l.caps = try.caps
		got = 99
		l.call(try.method, try.params)
		if got != try.want || got.String() != try.word {
			t.Errorf("%s %s: the outcome is %v, want %v", try.method, try.params, got, try.want)
		}
	}
	if got := server.Outcome(99).String(); got != "unknown" {
		t.Errorf("got %q", got)
	}
}

// Middleware knows what a request came by, and its session.
func TestCallTransport(t *testing.T) {
	var got []string
	s := newServer(nil, echo())
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			if c.Method() != "initialize" {
				got = append(got, c.Transport()+" "+c.SessionID())
			}
			return next(c)
		}
	})
	l := join(t, s, v2511)
	l.call("ping", "{}")
	c, err := client.Connect(t.Context(), mem.New(s, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got = got[:1]
	if _, err := client.Call[string](t.Context(), c, "echo", map[string]string{"text": "a"}); err != nil {
		t.Fatal(err)
	}
	x := new(sink).exchange(t, []byte((&line{version: v2607, caps: "{}"}).request("1", "tools/list", "{}")))
	s.Serve(t.Context(), x)
	x.Transport = &transport.Info{Name: "pigeon", SessionID: "s1"}
	s.Serve(t.Context(), x)
	want := "stdio |memory | |pigeon s1"
	if all := strings.Join(got, "|"); all != want {
		t.Errorf("got %q, want %q", all, want)
	}
}

// The handshake reaches middleware, which may refuse it, tell each client other
// instructions, and see who it is; a client that was refused may try again.
func TestMiddlewareSeesHandshake(t *testing.T) {
	s := newServer(nil, echo())
	refuse := true
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			if c.Method() != "initialize" {
				return next(c)
			}
			hello, _ := c.Params().(*mcp.InitializeParams)
			if hello == nil || hello.ClientInfo.Name != "raw" || c.ClientInfo().Name != "raw" || c.Version() != v2511 || c.Transport() != "stdio" || !c.ClientCapabilities().HasForm() {
				t.Errorf("the handshake is %+v of %v in %s", hello, c.ClientInfo(), c.Version())
			}
			res, err := next(c)
			if out, ok := res.(*mcp.InitializeResult); ok {
				out.Instructions = "For " + hello.ClientInfo.Name
			}
			if refuse {
				return nil, mcp.NewError(-7, "not today")
			}
			return res, err
		}
	})
	l := dial(t, s, v2511, nil)
	params := `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"raw","version":"1"}}`
	if got := l.fails(l.call("initialize", params), -7); got != "not today" {
		t.Errorf("got %q", got)
	}
	l.fails(l.tool("echo", `{"text":"a"}`), mcp.CodeInvalidRequest)
	refuse = false
	if got := string(l.result(l.call("initialize", params))); !strings.Contains(got, `"instructions":"For raw"`) {
		t.Errorf("got %s", got)
	}
	if got := l.text(l.tool("echo", `{"text":"a"}`)); got != "a" {
		t.Errorf("got %q", got)
	}
	s.Add(server.Text("test:a", "a", "A"))
	l.note(mcp.NotifyResourcesListChanged) // one feed, not two
	l.call("ping", "{}")
	if len(l.notes) > 0 {
		t.Errorf("told twice: %v", l.notes)
	}
}

// A session that middleware refuses is none over HTTP either.
func TestMiddlewareRefusesSession(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newServer(nil, echo())
	s.Use(func(next server.Func) server.Func {
		return func(*server.Call) (server.Result, error) { return nil, mcp.NewError(-7, "not today") }
	})
	for _, transportName := range []string{"streamable", "sse", "websocket"} {
		version := v2511
		if transportName == "sse" {
			version = v2024
		}
		_, err := client.Connect(t.Context(), mcptest.Dialer(t, s, transportName), &client.Options{Versions: []string{version}})
		if err == nil || !strings.Contains(err.Error(), "not today") {
			t.Errorf("%s: got %v", transportName, err)
		}
	}
}

// Over HTTP a session has one id, which middleware knows from the handshake on;
// self-contained requests have none.
func TestSessionIDOverHTTP(t *testing.T) {
	var mu sync.Mutex
	ids := make(map[string][]string)
	s := newServer(nil, echo())
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			ids[c.Version()+" "+c.Transport()] = append(ids[c.Version()+" "+c.Transport()], c.Method()+" "+c.SessionID())
			return next(c)
		}
	})
	d := mcptest.Dialer(t, s, "streamable")
	for _, version := range bothEras {
		c, err := client.Connect(t.Context(), d, &client.Options{Versions: []string{version}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Call[string](t.Context(), c, "echo", map[string]string{"text": "a"}); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	old, modern := ids[v2511+" http"], ids[v2607+" http"]
	if len(old) == 0 || !slices.ContainsFunc(old, func(id string) bool { return strings.HasPrefix(id, "tools/call ") }) {
		t.Fatalf("got %v", ids)
	}
	_, first, _ := strings.Cut(old[0], " ")
	if !strings.HasPrefix(old[0], "initialize ") || first == "" {
		t.Errorf("the session has no id from the beginning: %v", old)
	}
	for _, id := range old {
		if _, id, _ = strings.Cut(id, " "); id != first {
			t.Errorf("the session has several ids: %v", old)
		}
	}
	for _, id := range modern {
		if !strings.HasSuffix(id, " ") {
			t.Errorf("a request without session has one: %v", modern)
		}
	}
}

// A panicking is a result that cannot be encoded.
type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("in MarshalJSON") }

// What middleware returns and cannot be sent becomes an error for the caller, who
// is not left waiting; the handshake can be tried again.
func TestResultsThatCannotBeSent(t *testing.T) {
	for name, bad := range map[string]server.Result{
		"nil": nil, "a number": 7, "nil of a type": (*mcp.CallToolResult)(nil), "a channel": make(chan int),
		"a panic": panicking{}, "a panic inside": map[string]any{"a": panicking{}},
	} {
		t.Run(name, func(t *testing.T) {
			replace := false
			s := newServer(nil, echo())
			s.Use(func(next server.Func) server.Func {
				return func(c *server.Call) (server.Result, error) {
					if replace {
						server.OutcomeOf(c, bad, nil)
						return bad, nil
					}
					return next(c)
				}
			})
			l := dial(t, s, v2511, nil)
			hello := `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}`
			replace = true
			l.fails(l.call("initialize", hello), mcp.CodeInternalError)
			replace = false
			l.result(l.call("initialize", hello))
			replace = true
			l.fails(l.tool("echo", `{"text":"a"}`), mcp.CodeInternalError)
			l.version = v2607
			l.fails(l.tool("echo", `{"text":"a"}`), mcp.CodeInternalError)
			replace = false
			if got := l.text(l.tool("echo", `{"text":"a"}`)); got != "a" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// The same over HTTP, with sessions and without.
func TestHandshakeThatCannotBeSent(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newServer(nil, echo())
	s.Use(func(server.Func) server.Func {
		return func(*server.Call) (server.Result, error) { return panicking{}, nil }
	})
	for name, sessionless := range map[string]bool{"sessions": false, "no sessions": true} {
		h := streamable.NewHandler(s, &streamable.Options{Sessionless: sessionless})
		front := httptest.NewServer(h)
		_, err := client.Connect(t.Context(), streamable.URL(front.URL), &client.Options{Versions: []string{v2511}})
		if err == nil || !strings.Contains(err.Error(), "internal error") {
			t.Errorf("%s: got %v", name, err)
		}
		front.Close()
		_ = h.Shutdown(t.Context())
	}
}

// However often middleware derives a context, and whatever it derives it from, the
// request is found and is answered in time.
func TestContextsOfMiddleware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		foreign := make(chan struct{})
		s := newServer(unlimited(), echo(), server.Tool("stuck", "", func(ctx context.Context, _ none) (string, error) {
			select {
			case <-ctx.Done():
				return "", context.Cause(ctx)
			case <-foreign:
				return "let go", nil
			}
		}).With(server.ToolOptions{Timeout: time.Second}))
		s.Use(func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				for i := range 5000 {
					c = c.WithContext(context.WithValue(c, userKey{}, i))
				}
				if c.Value(userKey{}) != 4999 || server.CallFrom(c) != c {
					t.Errorf("the value is %v", c.Value(userKey{}))
				}
				if c.Target() == "stuck" {
					c = c.WithContext(context.WithValue(context.Background(), userKey{}, "foreign"))
				}
				return next(c)
			}
		})
		c := mcptest.Client(t, s)
		if got, err := client.Call[string](t.Context(), c, "echo", map[string]string{"text": "a"}); err != nil || got != "a" {
			t.Errorf("got %q, %v", got, err)
		}
		if _, err := client.Call[string](t.Context(), c, "stuck", nil); err == nil || !strings.Contains(err.Error(), "took too long") {
			t.Errorf("got %v", err)
		}
		close(foreign)
	})
}
