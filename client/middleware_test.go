package client_test

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
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/streamable"
)

// Middleware sees each request once, whatever it takes, with what it is about,
// what it is answered with, and the revision.
func TestMiddleware(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			var seen diary
			s := subscribing(versions)
			refusals := 2
			s.on[mcp.MethodToolsList] = func(*req) (any, error) {
				return raw(`{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"}}],"ttlMs":60000,"cacheScope":"public"}`), nil
			}
			s.on[mcp.MethodToolsCall] = func(*req) (any, error) {
				if refusals--; refusals >= 0 {
					return nil, jsonrpc.NewError(mcp.CodeRateLimited, "too many")
				}
				return raw(done), nil
			}
			s.on[mcp.MethodResourcesRead] = func(*req) (any, error) { return raw(`{"resultType":"complete","contents":[]}`), nil }
			s.on[mcp.MethodPromptsGet] = func(*req) (any, error) { return nil, jsonrpc.NewError(-32602, "no such prompt") }
			s.on[mcp.MethodComplete] = func(*req) (any, error) { return raw(`{"resultType":"complete","completion":{"values":["v"]}}`), nil }
			s.on["com.example/x"] = func(*req) (any, error) { return raw(`{"resultType":"complete","x":1}`), nil }
			watch := func(next client.Func) client.Func {
				return func(ctx context.Context, r *client.Request) (client.Result, error) {
					if r.Attempts() != 0 || !r.ID().IsZero() {
						t.Errorf("%s: %d attempts before the first", r.Method(), r.Attempts())
					}
					seen.Addf("> %s %s %T", r.Method(), r.Target(), r.Params())
					result, err := next(ctx, r)
					seen.Addf("< %s %T %d %v", r.Method(), result, r.Attempts(), err != nil)
					return result, err
				}
			}
			c := connect(t, s, &client.Options{Middleware: []client.Middleware{watch}, OnResourceUpdated: func(context.Context, string) {}})
			ctx := t.Context()
			for range 2 { // the second list is from the cache
				if _, err := c.Tool(ctx, "t"); err != nil {
					t.Error(err)
				}
			}
			if r, err := c.CallTool(ctx, "t", map[string]int{"a": 1}, nil); err != nil || len(r.Content) != 1 {
				t.Errorf("%+v, %v", r, err)
			}
			_, err := c.ReadResource(ctx, "a:b", nil)
			_, failed := c.GetPrompt(ctx, "p", nil, nil)
			v, complete := c.Complete(ctx, &mcp.CompleteParams{Ref: mcp.PromptRef("p")})
			var x extended
			request := c.Request(ctx, "com.example/x", map[string]int{"y": 2}, &x, nil)
			if err != nil || failed == nil || complete != nil || len(v.Values) != 1 || request != nil || x.X != 1 {
				t.Errorf("%v, %v, %v %+v, %v %+v", err, failed, complete, v, request, x)
			}
			if err := c.Ping(ctx); err != nil {
				t.Error(err)
			}
			sub, err := c.Subscribe(ctx, "a:1")
			if err != nil {
				t.Fatal(err)
			}
			_ = sub.Close()
			synctest.Wait()
			got := seen.read()
			want := []string{
				"> tools/list  *mcp.ListParams", "< tools/list *mcp.ListToolsResult 1 false",
				"> tools/call t *mcp.CallToolParams", "< tools/call *mcp.CallToolResult 3 false",
				"> resources/read a:b *mcp.ReadResourceParams", "< resources/read *mcp.ReadResourceResult 1 false",
				"> prompts/get p *mcp.GetPromptParams", "< prompts/get <nil> 1 true",
				"> completion/complete  *mcp.CompleteParams", "< completion/complete *mcp.CompleteResult 1 false",
				"> com.example/x  json.RawMessage", "< com.example/x *client_test.extended 1 false",
			}
			if c.Modern() {
				want = slices.Concat([]string{"> server/discover  <nil>", "< server/discover *mcp.DiscoverResult 1 false"}, want, []string{
					"> server/discover  <nil>", "< server/discover <nil> 1 false", // the ping
					"> subscriptions/listen  *mcp.ListenParams", "< subscriptions/listen <nil> 1 true",
				})
			} else {
				want = slices.Concat([]string{"> server/discover  <nil>", "< server/discover <nil> 1 true", "> initialize  *mcp.InitializeParams", "< initialize json.RawMessage 1 false"}, want, []string{
					"> ping  <nil>", "< ping <nil> 1 false",
					"> resources/subscribe  *mcp.SubscribeParams", "< resources/subscribe json.RawMessage 1 false",
					"> resources/unsubscribe  *mcp.UnsubscribeParams", "< resources/unsubscribe json.RawMessage 1 false",
				})
			}
			if !slices.Equal(got, want) {
				t.Errorf("seen:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	})
}

// extended is a result of an extension.
type extended struct {
	X int `json:"x"`
}

// Middleware may add to a request, change its result, answer it, repeat it, or
// refuse it.
func TestMiddlewareActs(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
	own := errors.New("not today")
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			s := &script{versions: versions, on: tool(func(*req) (any, error) { return raw(done), nil })}
			stamp := func(next client.Func) client.Func {
				return func(ctx context.Context, r *client.Request) (client.Result, error) {
					if err := r.SetMeta("com.example/stamp", 7); err != nil {
						return nil, err
					}
					if err := r.SetMeta(mcp.MetaTraceParent, parent); err == nil {
						t.Error("a key of the protocol was taken")
					}
					return next(client.WithTrace(ctx, parent, "", ""), r)
				}
			}
			act := func(next client.Func) client.Func {
				return func(ctx context.Context, r *client.Request) (client.Result, error) {
					switch r.Target() {
					case "refuse":
						return nil, own
					case "answer":
						return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("mine")}}, nil
					case "twice":
						if _, err := next(ctx, r); err != nil {
							return nil, err
						}
					case "wrong":
						return &mcp.GetPromptResult{}, nil
					case "nothing":
						return nil, nil // it is what is tested
					}
					return next(ctx, r)
				}
			}
			c := connect(t, s, &client.Options{Middleware: []client.Middleware{stamp, act}})
			given := map[string]mcp.RawValue{"com.example/given": raw("1")}
			if _, err := c.CallTool(t.Context(), "t", nil, &client.CallOptions{Meta: given}); err != nil || len(given) != 1 {
				t.Errorf("error %v, the caller's own _meta %s", err, given)
			}
			synctest.Wait()
			for _, m := range s.heard {
				if m.Kind == jsonrpc.Request && (meta(m, "com.example/stamp") != "7" || meta(m, mcp.MetaTraceParent) != `"`+parent+`"`) {
					t.Errorf("%s without what was added: %s", m.Method, m.Params.Raw())
				}
			}
			if got := meta(s.await(mcp.MethodToolsCall, 1), "com.example/given"); got != "1" {
				t.Errorf("_meta of the caller: %q", got)
			}
			if _, err := c.CallTool(t.Context(), "refuse", nil, nil); !errors.Is(err, own) {
				t.Errorf("refused: %v", err)
			}
			if out, err := client.Call[string](t.Context(), c, "answer", nil); err != nil || out != "mine" {
				t.Errorf("answered: %q, %v", out, err)
			}
			if r, err := c.CallTool(t.Context(), "twice", nil, nil); err != nil || len(r.Content) != 1 {
				t.Errorf("twice: %+v, %v", r, err)
			}
			for _, name := range []string{"wrong", "nothing"} {
				if _, err := c.CallTool(t.Context(), name, nil, nil); err == nil || !strings.Contains(err.Error(), "middleware returned") {
					t.Errorf("%s: %v", name, err)
				}
			}
			if n := len(s.got(mcp.MethodToolsCall)); n != 3 {
				t.Errorf("%d calls were sent, want 3", n)
			}
		})
	})
}

// curious is a server with a tool that asks for everything there is.
func curious() *server.Server {
	s := server.New("curious", "1", &server.Options{})
	s.Add(server.Tool("ask", "Asks.", func(ctx context.Context, in struct {
		N int `json:"n"`
	},
	) (string, error) {
		type reply struct {
			N int `json:"n"`
		}
		a, err := server.Elicit[reply](ctx, fmt.Sprint(in.N))
		if err != nil {
			return "", err
		}
		r, err := server.Sample(ctx, &mcp.CreateMessageParams{
			Messages:  []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text(fmt.Sprint(in.N))}}},
			MaxTokens: 1,
		})
		if err != nil {
			return "", err
		}
		roots, err := server.Roots(ctx)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(a.Value.N, r.Model, roots[0].URI), nil
	}))
	return s
}

type numberKey struct{}

// The context of a handler has the values of the context of the call that the
// server asks during, wherever that is known; and so has the question.
func TestQuestionsOfCalls(t *testing.T) {
	endpoint := httptest.NewServer(streamable.NewHandler(curious(), nil))
	defer endpoint.Close()
	for name, test := range map[string]struct {
		version string
		dialer  transport.Dialer
		single  bool
		unknown bool
	}{
		"stateless, pipe":               {version: modern, dialer: mem.New(curious(), nil)},
		"stateless, HTTP":               {version: modern, dialer: streamable.URL(endpoint.URL)},
		"handshake, HTTP":               {version: newest, dialer: streamable.URL(endpoint.URL)},
		"handshake, one at a time":      {version: newest, dialer: mem.New(curious(), nil), single: true},
		"handshake, many in one pipe":   {version: newest, dialer: mem.New(curious(), nil), unknown: true},
		"one at a time changes no more": {version: modern, dialer: mem.New(curious(), nil), single: true},
	} {
		t.Run(name, func(t *testing.T) {
			number := func(ctx context.Context, who string) int {
				n, ok := ctx.Value(numberKey{}).(int)
				r := client.RequestFrom(ctx)
				if ok == test.unknown || (r == nil) != test.unknown {
					t.Errorf("%s: number %d (%v), request %v", who, n, ok, r)
				}
				if r != nil && (r.Method() != mcp.MethodToolsCall || r.Target() != "ask" || r.ID().IsZero() || r.Attempts() == 0 ||
					r.Version() != test.version || r.Context().Value(numberKey{}) != n || r.Client() == nil) {
					t.Errorf("%s: request %s %s %s %d %s", who, r.Method(), r.Target(), r.ID(), r.Attempts(), r.Version())
				}
				return n
			}
			c := dial(t, test.dialer, &client.Options{
				Versions: []string{test.version}, OneAtATime: test.single,
				OnElicit: func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
					n := number(ctx, "elicit")
					if r.Call != client.RequestFrom(ctx) || !test.unknown && (r.Params.Message != fmt.Sprint(n) || r.Target != "ask") {
						t.Errorf("question %s of call %d, %v", r.Params.Message, n, r.Call)
					}
					return client.Accept(map[string]int{"n": n})
				},
				OnSample: func(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
					n := number(ctx, "sample")
					return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Content: mcp.Contents{mcp.Text("x")}, Model: fmt.Sprint("m", n)}, nil
				},
				OnRoots: func(ctx context.Context) ([]mcp.Root, error) {
					return []mcp.Root{{URI: fmt.Sprint("file:///", number(ctx, "roots"))}}, nil
				},
			})
			var wg sync.WaitGroup
			for n := 1; n <= 8; n++ {
				wg.Go(func() {
					ctx := context.WithValue(t.Context(), numberKey{}, n)
					got, err := client.Call[string](ctx, c, "ask", map[string]int{"n": n})
					want := fmt.Sprint(n, "m", n, "file:///", n)
					want = strings.ReplaceAll(want, " ", "")
					if got = strings.ReplaceAll(got, " ", ""); err != nil || !test.unknown && got != want {
						t.Errorf("call %d gave %s, want %s; %v", n, got, want, err)
					}
				})
			}
			wg.Wait()
			if id := c.Session(); (id != "") != (name == "handshake, HTTP") {
				t.Errorf("session %q", id)
			}
		})
	}
}

// Middleware may look at the client while that connects: nothing is known yet.
func TestMiddlewareLooksAtClient(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		var seen []string
		look := func(next client.Func) client.Func {
			return func(ctx context.Context, r *client.Request) (client.Result, error) {
				c := r.Client()
				seen = append(seen, fmt.Sprintf("%s %v %v %q %q %v %q %v", r.Method(), c.Server() != nil, c.Capabilities().Tools != nil, c.Instructions(), c.Version(), c.Modern(), c.Session(), c.Connected()))
				return next(ctx, r)
			}
		}
		c := connect(t, &script{versions: versions}, &client.Options{Middleware: []client.Middleware{look}, Eras: client.NewEraMemory()})
		if len(seen) == 0 || seen[0] != `server/discover false false "" "" false "" false` {
			t.Errorf("seen %q", seen)
		}
		if c.Server() == nil || c.Capabilities().Tools == nil || c.Version() != versions[0] || c.Modern() != (versions[0] == modern) {
			t.Errorf("known %v %v %s", c.Server(), c.Capabilities(), c.Version())
		}
	})
}

// With OneAtATime, a handler may call the server in its own context; others
// wait for their turn and do not lose time for it.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := 0
		s := &script{versions: []string{newest}}
		s.on = tool(func(r *req) (any, error) {
			if text(r.in, "name") == `"innermost"` {
				return raw(done), nil
			}
			if text(r.in, "name") == `"inner"` {
				_, err := r.conn.ask(r.ctx, mcp.MethodElicit, `{"message":"?","requestedSchema":{"type":"object","properties":{}}}`)
				return raw(done), err
			}
			if under++; under > 1 {
				t.Error("two at once")
			}
			answer, err := r.conn.ask(r.ctx, mcp.MethodRootsList, `{}`)
			if err == nil && answer.Error != nil {
				err = answer.Error
			}
			time.Sleep(40 * time.Second) // of fake time
			under--
			return raw(done), err
		})
		var c *client.Client
		c = connect(t, s, &client.Options{OneAtATime: true, OnRoots: func(ctx context.Context) ([]mcp.Root, error) {
			return nil, second(c.CallTool(ctx, "inner", nil, nil))
		}, OnElicit: func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
			if err := second(c.CallTool(ctx, "innermost", nil, nil)); err != nil {
				return nil, err
			}
			return client.Decline()
		}})
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, err := c.CallTool(t.Context(), "outer", nil, nil); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.CallTool(ctx, "outer", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that waits for its turn: %v", err)
		}
		wg.Wait()
	})
}

// A question whose call has ended is answered with an error, and its handler's
// context ends.
func TestQuestionOutlivesCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answered := make(chan *jsonrpc.Incoming, 1)
		s := &script{versions: []string{newest}}
		s.on = tool(func(r *req) (any, error) {
			go func() {
				answer, _ := r.conn.ask(context.Background(), mcp.MethodRootsList, `{}`)
				answered <- answer
			}()
			time.Sleep(time.Second) // of fake time
			return raw(done), nil
		})
		c := connect(t, s, &client.Options{OneAtATime: true, OnRoots: func(ctx context.Context) ([]mcp.Root, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}})
		if _, err := c.CallTool(t.Context(), "t", nil, nil); err != nil {
			t.Error(err)
		}
		if m := <-answered; m == nil || m.Error == nil || !strings.Contains(m.Error.Message, "has ended") {
			t.Errorf("answered %+v", m)
		}
	})
}

// The methods of a request may be called while it is sent, and sent again.
func TestRequestWhileSent(t *testing.T) {
	s := &script{on: tool(func(*req) (any, error) { return raw(done), nil })}
	twice := func(next client.Func) client.Func {
		return func(ctx context.Context, r *client.Request) (client.Result, error) {
			if r.Method() != mcp.MethodToolsCall {
				return next(ctx, r)
			}
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					if r.Method() != mcp.MethodToolsCall || r.Target() != "t" || r.Context() == nil || r.Version() != modern || r.Meta() != nil || r.Attempts() > 2 || r.Rounds() != 0 {
						t.Errorf("the request is %s %q now, sent %d times", r.Method(), r.Target(), r.Attempts())
					}
					_, _, _ = r.ID(), r.Session(), r.Params()
					select {
					case <-stop:
						return
					default:
					}
				}
			}()
			_, err := next(ctx, r)
			if err != nil {
				t.Error(err)
			}
			result, err := next(ctx, r)
			close(stop)
			<-stopped
			return result, err
		}
	}
	c := connect(t, s, &client.Options{Middleware: []client.Middleware{twice}})
	for range 20 {
		if _, err := c.CallTool(t.Context(), "t", nil, nil); err != nil {
			t.Error(err)
		}
	}
}

// What a result cannot be decoded into is an error, with middleware and without.
func TestResultIntoNoPointer(t *testing.T) {
	type answer struct{ A int }
	for name, list := range map[string][]client.Middleware{"without": nil, "with": {func(next client.Func) client.Func { return next }}} {
		for kind, into := range map[string]any{"struct": answer{}, "nil pointer": (*answer)(nil), "map": map[string]int{}, "number": 1} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				s := &script{on: map[string]func(*req) (any, error){"x/y": func(*req) (any, error) { return raw(`{"A":1}`), nil }}}
				c := connect(t, s, &client.Options{Middleware: list})
				if err := c.Request(t.Context(), "x/y", nil, into, nil); err == nil {
					t.Errorf("decoded into %#v", into)
				}
			})
		}
	}
}
