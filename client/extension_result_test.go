package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/strictjson"
)

const (
	laterID   = "com.example/later"
	laterType = "com.example/ticket"
)

// A ticket answers a call whose result comes later.
type ticket struct {
	mcp.ResultBase
	Ticket string `json:"ticket"`
}

// A ticketState is what later/get tells; the result is absent until there is one.
type ticketState struct {
	Result mcp.RawValue `json:"result,omitzero"`
}

// later is the server's side of an extension that gives tickets for calls of tools;
// a result is there when it is asked for the second time.
type later struct {
	mu    sync.Mutex
	asked map[string]int
}

func (l *later) extension() server.Extension {
	return server.Extension{
		ID: laterID,
		Wrap: func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				if c.Method() != mcp.MethodToolsCall || !c.HasExtension(laterID) {
					return next(c)
				}
				return &ticket{mcp.ResultBase{ResultType: laterType}, c.Target()}, nil
			}
		},
		Methods: []*server.ExtensionMethod{
			server.Method("later/get", func(_ *server.Call, p ticket) (ticketState, error) {
				l.mu.Lock()
				defer l.mu.Unlock()
				if l.asked[p.Ticket]++; l.asked[p.Ticket] == 1 {
					return ticketState{}, nil
				}
				return ticketState{mcp.RawValue(`{"content":[{"type":"text","text":"` + p.Ticket + ` done"}]}`)}, nil
			}).With(server.MethodOptions{Target: "ticket", NameHeader: true}),
		},
	}
}

// knowsLater is the client's side, with another way to settle if it is not nil.
func knowsLater(settle func(context.Context, *client.Request, mcp.RawValue) (mcp.RawValue, error)) client.Extension {
	if settle == nil {
		settle = redeem
	}
	return client.Extension{
		ID:      laterID,
		Methods: []client.ExtensionMethod{{Name: "later/get", Target: "ticket", NameHeader: true, Retry: true}},
		Results: []client.ResultType{{Name: laterType, Methods: []string{mcp.MethodToolsCall}, Settle: settle}},
	}
}

// redeem asks until there is a result.
func redeem(ctx context.Context, r *client.Request, result mcp.RawValue) (mcp.RawValue, error) {
	var own ticket
	if err := strictjson.Unmarshal(result, &own); err != nil {
		return nil, err
	}
	for {
		state, err := client.CallMethod[ticketState](ctx, r.Client(), "later/get", map[string]string{"ticket": own.Ticket})
		if err != nil || state.Result != nil {
			return state.Result, err
		}
	}
}

// Those who call a tool get the final result, in whatever form, and know nothing of
// tickets; so does middleware.
func TestSettle(t *testing.T) {
	build := func(_ testing.TB, o *server.Options) *server.Server {
		s := server.New("later", "1", o)
		s.Add(server.Tool("t", "A tool.", func(context.Context, mcp.None) (string, error) { return "t done", nil }))
		return s
	}
	tickets := &later{asked: make(map[string]int)}
	extended := func(tb testing.TB, o *server.Options) *server.Server {
		s := build(tb, o)
		s.Extend(tickets.extension())
		return s
	}
	var mu sync.Mutex
	seen := ""
	o := &client.Options{Extensions: []client.Extension{knowsLater(nil)}, Middleware: []client.Middleware{func(next client.Func) client.Func {
		return func(ctx context.Context, r *client.Request) (client.Result, error) {
			res, err := next(ctx, r)
			if tool, ok := res.(*mcp.CallToolResult); ok && len(tool.Content) == 1 {
				mu.Lock()
				defer mu.Unlock()
				seen = tool.Content[0].(*mcp.TextContent).Text
			}
			return res, err
		}
	}}}
	check := func(t *testing.T, _ mcptest.Era, c *client.Client) {
		t.Helper()
		mu.Lock()
		seen = ""
		mu.Unlock()
		if r, err := c.CallTool(t.Context(), "t", nil, nil); err != nil || len(r.Content) != 1 {
			t.Errorf("CallTool gave %+v, %v", r, err)
		}
		if text, err := client.Call[string](t.Context(), c, "t", nil); err != nil || text != "t done" {
			t.Errorf("Call gave %q, %v", text, err)
		}
		var text mcp.RawValue
		if err := c.Request(t.Context(), mcp.MethodToolsCall, &mcp.CallToolParams{Name: "t"}, &text, nil); err != nil || !strings.Contains(string(text), `"t done"`) {
			t.Errorf("Request gave %s, %v", text, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if seen != "t done" {
			t.Errorf("middleware saw %q", seen)
		}
	}
	mcptest.EachEra(t, extended, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		check(t, era, c)
		if !era.Stateless {
			return
		}
		var own ticket
		if err := c.Request(t.Context(), mcp.MethodToolsCall, &mcp.CallToolParams{Name: "t"}, &own, &client.CallOptions{ResultTypes: []string{laterType}}); err != nil || own.Ticket != "t" {
			t.Errorf("a caller who knows tickets got %+v, %v", own, err)
		}
	})
	if tickets.asked["t"] < 2 {
		t.Error("no ticket was settled")
	}
	mcptest.EachEra(t, build, o, check)
}

// ticketed answers calls with a ticket, and offers caps.
func ticketed(caps string) *script {
	answer := func(*req) (any, error) { return raw(`{"resultType":"com.example/ticket","ticket":"7"}`), nil }
	return &script{caps: caps, on: map[string]func(*req) (any, error){mcp.MethodToolsCall: answer, mcp.MethodPromptsGet: answer}}
}

const laterCaps = `{"tools":{},"prompts":{},"resources":{},"extensions":{"com.example/later":{}}}`

// What an extension cannot settle is the error of the call, which says why. A failure
// that the server would have given is found as one.
func TestSettleFails(t *testing.T) {
	settled := func(result string, err error) client.Extension {
		return knowsLater(func(context.Context, *client.Request, mcp.RawValue) (mcp.RawValue, error) { return raw(result), err })
	}
	failed := errors.New("the ticket is void")
	peer := jsonrpc.NewError(mcp.CodeInvalidParams, "no")
	for name, test := range map[string]struct {
		ext  client.Extension
		caps string
		is   error
		says string
	}{
		"an error":              {settled("", failed), laterCaps, failed, "ticket is void"},
		"an error of the peer":  {settled("", peer), laterCaps, peer, "no"},
		"nothing":               {settled("", nil), laterCaps, client.ErrMalformed, "what it came to"},
		"no object":             {settled(`[1]`, nil), laterCaps, client.ErrMalformed, "what it came to"},
		"a member twice":        {settled(`{"content":[],"content":[]}`, nil), laterCaps, client.ErrMalformed, "what it came to"},
		"no result of a tool":   {settled(`{"Content":[]}`, nil), laterCaps, client.ErrMalformed, `must be written "content"`},
		"the type again":        {settled(`{"resultType":"com.example/ticket"}`, nil), laterCaps, client.ErrResultType, "came to another one"},
		"a question":            {settled(`{"resultType":"input_required"}`, nil), laterCaps, client.ErrResultType, "came to another one"},
		"no type":               {settled(`{"resultType":7}`, nil), laterCaps, client.ErrResultType, "not a string"},
		"an unknown type":       {client.Extension{ID: laterID}, laterCaps, client.ErrResultType, `"com.example/ticket"`},
		"one that is not meant": {settled(`{"content":[]}`, nil), `{"tools":{}}`, client.ErrResultType, "does not offer"},
		"a panic": {knowsLater(func(context.Context, *client.Request, mcp.RawValue) (mcp.RawValue, error) {
			panic("oh")
		}), laterCaps, client.ErrPanicked, laterID},
	} {
		t.Run(name, func(t *testing.T) {
			s := ticketed(test.caps)
			c := connect(t, s, &client.Options{TrustAnnotations: true, Extensions: []client.Extension{test.ext}})
			_, err := c.CallTool(t.Context(), "t", nil, nil)
			if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), `tools/call "t": `) {
				t.Errorf("error is %v, want %v with %q", err, test.is, test.says)
			}
			if n := len(s.got(mcp.MethodToolsCall)); n != 1 {
				t.Errorf("the tool was called %d times", n)
			}
		})
	}
	c := connect(t, ticketed(laterCaps), &client.Options{Extensions: []client.Extension{settled(`{"messages":[]}`, nil)}})
	if _, err := c.GetPrompt(t.Context(), "p", nil, nil); !errors.Is(err, client.ErrResultType) || !strings.Contains(err.Error(), `"com.example/ticket" is no answer to prompts/get`) {
		t.Errorf("in answer to another method: %v", err)
	}
}

// A call may be silent while it is settled, but it does not last longer than
// MaxCallTime, without the time that persons take, nor than its context.
func TestSettleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := time.Duration(0)
		asks := false
		o := &client.Options{
			CallTimeout: time.Minute, MaxCallTime: time.Hour,
			OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
				if r.Call == nil || r.Call.Target() != "t" {
					t.Errorf("the question is of the call %v", r.Call)
				}
				time.Sleep(3 * time.Hour)
				return client.Decline()
			},
		}
		o.Extensions = []client.Extension{knowsLater(func(ctx context.Context, r *client.Request, _ mcp.RawValue) (mcp.RawValue, error) {
			if asks {
				params := mcp.RawValue(`{"mode":"form","message":"Sure?","requestedSchema":{"type":"object","properties":{}}}`)
				if _, err := r.Client().Answer(ctx, mcp.InputRequests{"q": {Method: mcp.MethodElicit, Params: params}}); err != nil {
					return nil, err
				}
			}
			select {
			case <-time.After(wait):
				return raw(`{"content":[]}`), nil
			case <-ctx.Done():
				return nil, errors.New("out of time")
			}
		})}
		c := connect(t, ticketed(laterCaps), o)
		for _, test := range []struct {
			wait, limit time.Duration
			asks        bool
			want        error
		}{
			{wait: 59 * time.Minute},
			{wait: 59 * time.Minute, asks: true},
			{wait: 61 * time.Minute, want: client.ErrTimeout},
			{wait: 61 * time.Minute, asks: true, want: client.ErrTimeout},
			{wait: 59 * time.Minute, limit: time.Second, want: context.DeadlineExceeded},
		} {
			wait, asks = test.wait, test.asks
			ctx, cancel := t.Context(), func() {}
			if test.limit > 0 {
				ctx, cancel = context.WithTimeout(ctx, test.limit)
			}
			if _, err := c.CallTool(ctx, "t", nil, nil); !errors.Is(err, test.want) {
				t.Errorf("%+v: error is %v", test, err)
			}
			cancel()
		}
	})
}

// What is settled is not kept in the cache.
func TestSettledNotCached(t *testing.T) {
	s := &script{caps: laterCaps, on: map[string]func(*req) (any, error){mcp.MethodResourcesRead: func(*req) (any, error) {
		return raw(`{"resultType":"com.example/ticket","ttlMs":60000,"cacheScope":"private"}`), nil
	}}}
	e := knowsLater(func(context.Context, *client.Request, mcp.RawValue) (mcp.RawValue, error) {
		return raw(`{"contents":[],"ttlMs":60000,"cacheScope":"private"}`), nil
	})
	e.Results[0].Methods = []string{mcp.MethodResourcesRead}
	c := connect(t, s, &client.Options{Extensions: []client.Extension{e}})
	for range 2 {
		if _, err := c.ReadResource(t.Context(), "a:b", nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.got(mcp.MethodResourcesRead)); n != 2 {
		t.Errorf("the resource was read %d times, want 2", n)
	}
}

// What comes after the answer of a request is told as if it came within it: questions
// belong to the request, its caller hears of progress, and a result is decoded as Call
// decodes it.
func TestLaterThanTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		about := make(chan string, 2)
		o := &client.Options{
			Extensions: []client.Extension{knowsLater(func(_ context.Context, r *client.Request, _ mcp.RawValue) (mcp.RawValue, error) {
				r.Progress("first")
				r.Progress(strings.Repeat("é", 40<<10))
				return raw(`{"content":[{"type":"text","text":"7"}]}`), nil
			})},
			OnElicit: func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
				about <- r.Method + " " + r.Target
				if from := client.RequestFrom(ctx); from != r.Call || from.Context() == nil {
					t.Error("the request is another one")
				}
				return client.Decline()
			},
		}
		c := connect(t, ticketed(laterCaps), o)
		var steps []float64
		var texts []string
		n, err := client.Call[int](t.Context(), c, "t", nil, &client.CallOptions{OnProgress: func(progress, total float64, message string) {
			steps, texts = append(steps, progress, total), append(texts, message)
		}})
		if err != nil || n != 7 || !slices.Equal(steps, []float64{1, 0, 2, 0}) || texts[0] != "first" || len(texts[1]) > 65<<10 {
			t.Errorf("%d, %v, steps %v", n, err, steps)
		}
		if _, err := c.CallTool(t.Context(), "t", nil, nil); err != nil { // nobody wants progress
			t.Error(err)
		}

		ctx, err := client.WithRequest(t.Context(), c, mcp.MethodToolsCall, &mcp.CallToolParams{Name: "drop"})
		if err != nil {
			t.Fatal(err)
		}
		ask := mcp.InputRequests{"a": {Method: mcp.MethodElicit, Params: raw(`{"message":"m","requestedSchema":{"type":"object","properties":{}}}`)}}
		if answers, err := c.Answer(ctx, ask); err != nil || string(answers["a"]) != `{"action":"decline"}` {
			t.Errorf("%s, %v", answers, err)
		}
		if got := <-about; got != "tools/call drop" {
			t.Errorf("the question is of %q", got)
		}
		if _, err := client.WithRequest(t.Context(), c, mcp.MethodToolsCall, 7); err == nil {
			t.Error("params that are no object")
		}
	})
}

// A result that came in another way is checked as that of a call is.
func TestDecodeResult(t *testing.T) {
	s := &script{on: map[string]func(*req) (any, error){mcp.MethodToolsList: func(*req) (any, error) {
		return raw(`{"tools":[{"name":"sum","inputSchema":{"type":"object"},"outputSchema":{"type":"object","required":["sum"]}}]}`), nil
	}}}
	c := connect(t, s, nil)
	for _, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	type sum struct{ Sum int }
	if out, err := client.DecodeResult[map[string]int](c, "sum", raw(`{"content":[],"structuredContent":{"sum":5}}`)); err != nil || out["sum"] != 5 {
		t.Errorf("%v, %v", out, err)
	}
	var failed *client.ToolError
	if _, err := client.DecodeResult[sum](c, "sum", raw(`{"content":[],"isError":true,"resultType":"complete"}`)); !errors.As(err, &failed) || failed.Tool != "sum" {
		t.Errorf("a failure: %v", err)
	}
	for text, want := range map[string]error{
		`{"content":[],"structuredContent":{}}`:                                    client.ErrOutput,
		`{"content":[{"type":"text","text":"x"}],"structuredContent":{"sum":"x"}}`: nil,
		`{"Content":[]}`:                     client.ErrMalformed,
		`[]`:                                 client.ErrMalformed,
		`{"content":[],"content":[]}`:        client.ErrMalformed,
		`{"resultType":"task","content":[]}`: client.ErrResultType,
		`{"resultType":7}`:                   client.ErrResultType,
	} {
		if _, err := client.DecodeResult[map[string]any](c, "sum", raw(text)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}
