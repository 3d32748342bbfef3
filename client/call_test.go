package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

const done = `{"resultType":"complete","content":[{"type":"text","text":"done"}]}`

func tool(f func(r *req) (any, error)) map[string]func(*req) (any, error) {
	return map[string]func(*req) (any, error){mcp.MethodToolsCall: f}
}

// Proves: FLOW-TOOL. Results by type; failures of tools are errors of Call.
func TestCall(t *testing.T) {
	result := `{"content":[]}`
	synctest.Test(t, func(t *testing.T) {
		s := &script{on: tool(func(*req) (any, error) { return raw(result), nil })}
		c := connect(t, s, nil)
		type sum struct {
			Sum int `json:"sum"`
		}
		result = `{"content":[{"type":"text","text":"5"}],"structuredContent":{"sum":5}}`
		if out, err := client.Call[sum](t.Context(), c, "add", map[string]int{"a": 2, "b": 3}); err != nil || out.Sum != 5 {
			t.Errorf("%+v, %v", out, err)
		}
		if got := text(s.await(mcp.MethodToolsCall, 1), "arguments"); !wire.Equal(raw(got), raw(`{"a":2,"b":3}`)) {
			t.Errorf("arguments %s", got)
		}
		result = `{"content":[{"type":"text","text":"{\"sum\":6}"}]}`
		if out, err := client.Call[sum](t.Context(), c, "add", nil); err != nil || out.Sum != 6 {
			t.Errorf("from text: %+v, %v", out, err)
		}
		if got := text(s.await(mcp.MethodToolsCall, 2), "arguments"); got != "" {
			t.Errorf("arguments %s", got)
		}
		if out, err := client.Call[mcp.CallToolResult](t.Context(), c, "add", nil); err != nil || len(out.Content) != 1 {
			t.Errorf("whole: %+v, %v", out, err)
		}
		result = `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`
		if out, err := client.Call[string](t.Context(), c, "add", nil); err != nil || out != "a\nb" {
			t.Errorf("text: %q, %v", out, err)
		}
		if _, err := client.Call[mcp.None](t.Context(), c, "add", nil); err != nil {
			t.Error(err)
		}
		if _, err := client.Call[sum](t.Context(), c, "add", nil); !errors.Is(err, client.ErrOutput) {
			t.Errorf("no JSON: %v", err)
		}
		result = `{"content":[{"type":"text","text":"out of paper"}],"isError":true}`
		var failed *client.ToolError
		if _, err := client.Call[sum](t.Context(), c, "add", nil); !errors.As(err, &failed) || failed.Tool != "add" || !strings.Contains(err.Error(), "out of paper") {
			t.Errorf("failure: %v", err)
		}
		if _, err := c.CallTool(t.Context(), "add", 7, nil); err == nil {
			t.Error("a number was taken for arguments")
		}
		result = `{"content":[{"type":"hologram"}]}`
		if out, err := client.Call[string](t.Context(), c, "add", nil); err != nil || !strings.Contains(out, "hologram") {
			t.Errorf("unknown content: %q, %v", out, err)
		}
	})
}

// Content can be had without a type of the tool's, and an error says what came
// in the place of what was wanted.
func TestCallContent(t *testing.T) {
	result := ""
	synctest.Test(t, func(t *testing.T) {
		s := &script{on: tool(func(*req) (any, error) { return raw(result), nil })}
		c := connect(t, s, nil)
		const picture = `{"type":"image","mimeType":"image/png","data":"cG5n"}`
		fails := func(err error, want string) {
			t.Helper()
			if !errors.Is(err, client.ErrOutput) || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
		result = `{"content":[` + picture + `]}`
		if out, err := client.Call[mcp.Content](t.Context(), c, "draw", nil); err != nil || string(out.(*mcp.ImageContent).Data) != "png" {
			t.Errorf("one block: %+v, %v", out, err)
		}
		if out, err := client.Call[*mcp.ImageContent](t.Context(), c, "draw", nil); err != nil || string(out.Data) != "png" {
			t.Errorf("its type: %+v, %v", out, err)
		}
		if out, err := client.Call[mcp.ImageContent](t.Context(), c, "draw", nil); err != nil || string(out.Data) != "png" {
			t.Errorf("its value: %+v, %v", out, err)
		}
		_, err := client.Call[*mcp.AudioContent](t.Context(), c, "draw", nil)
		fails(err, "it is not one mcp.AudioContent, but mcp.ImageContent")
		_, err = client.Call[string](t.Context(), c, "draw", nil)
		fails(err, "there is no text in it, but mcp.ImageContent")
		_, err = client.Call[int](t.Context(), c, "draw", nil)
		fails(err, "it has neither structured content nor JSON as text, but mcp.ImageContent")

		result = `{"content":[{"type":"text","text":"look"},` + picture + `],"structuredContent":{"n":1}}`
		if out, err := client.Call[*mcp.CallToolResult](t.Context(), c, "draw", nil); err != nil || len(out.Content) != 2 || out.StructuredContent == nil {
			t.Errorf("everything: %+v, %v", out, err)
		}
		if out, err := client.Call[mcp.Contents](t.Context(), c, "draw", nil); err != nil || len(out) != 2 {
			t.Errorf("content: %+v, %v", out, err)
		}
		if out, err := client.Call[[]mcp.Content](t.Context(), c, "draw", nil); err != nil || len(out) != 2 {
			t.Errorf("content as a slice: %+v, %v", out, err)
		}
		_, err = client.Call[mcp.Content](t.Context(), c, "draw", nil)
		fails(err, "it is not one mcp.Content, but mcp.TextContent, mcp.ImageContent, structured content; mcp.CallToolResult takes everything")

		result = `{"content":[],"structuredContent":{"n":1}}`
		_, err = client.Call[string](t.Context(), c, "draw", nil)
		fails(err, "there is no text in it, but structured content")
		result = `{"content":[]}`
		_, err = client.Call[string](t.Context(), c, "draw", nil)
		fails(err, "there is no text in it, but nothing")
		result = `{"content":[{"type":"text","text":""}]}`
		if out, err := client.Call[string](t.Context(), c, "draw", nil); err != nil || out != "" {
			t.Errorf("empty text: %q, %v", out, err)
		}
		result = `{"content":[` + strings.Repeat(picture+",", 8) + picture + `]}`
		_, err = client.Call[string](t.Context(), c, "draw", nil)
		fails(err, "mcp.ImageContent, more")
	})
}

// Proves: SEC-CAP-1: what the server did not declare is not even sent. Of a server that declares nothing
// at all, tools, prompts and resources are asked for.
func TestNotCapable(t *testing.T) {
	for caps, presumed := range map[string]bool{`{}`: true, `{"experimental":{"x":{}}}`: false, `{"logging":{}}`: false} {
		t.Run(caps, func(t *testing.T) {
			eras(t, func(t *testing.T, versions []string) {
				synctest.Test(t, func(t *testing.T) {
					unknown := func(r *req) (any, error) {
						return nil, &jsonrpc.Error{Code: mcp.CodeMethodNotFound, Message: r.in.Method}
					}
					asked := []string{
						mcp.MethodToolsCall, mcp.MethodResourcesRead, mcp.MethodPromptsGet, mcp.MethodToolsList,
						mcp.MethodPromptsList, mcp.MethodResourcesList, mcp.MethodResourcesTemplates,
					}
					s := &script{versions: versions, caps: caps, on: make(map[string]func(*req) (any, error))}
					for _, method := range asked {
						s.on[method] = unknown
					}
					c := connect(t, s, nil)
					synctest.Wait()
					before := len(s.methods())
					ctx := t.Context()
					var errs []error
					_, err := c.CallTool(ctx, "t", nil, nil)
					errs = append(errs, err)
					_, err = c.ReadResource(ctx, "a:b", nil)
					errs = append(errs, err)
					_, err = c.GetPrompt(ctx, "p", nil, nil)
					errs = append(errs, err)
					for _, err := range c.Tools(ctx) {
						errs = append(errs, err)
					}
					for _, err := range c.Prompts(ctx) {
						errs = append(errs, err)
					}
					for _, err := range c.Resources(ctx) {
						errs = append(errs, err)
					}
					for _, err := range c.ResourceTemplates(ctx) {
						errs = append(errs, err)
					}
					if !presumed {
						asked = nil
					}
					_, err = c.Complete(ctx, &mcp.CompleteParams{})
					errs = append(errs, err)
					_, err = c.Subscribe(ctx, "a:b")
					errs = append(errs, err, c.RootsChanged(ctx), c.Request(ctx, mcp.MethodRootsList, nil, nil, nil))
					if caps != `{"logging":{}}` {
						errs = append(errs, c.SetLogLevel(ctx, mcp.LogDebug))
					}
					for i, err := range errs {
						if !errors.Is(err, client.ErrNotCapable) {
							t.Errorf("%d: error %v", i, err)
						}
					}
					var sent []string
					for _, method := range s.methods()[before:] {
						if method != mcp.MethodDiscover || versions[0] != modern { // which may offer more than before
							sent = append(sent, method)
						}
					}
					if !slices.Equal(sent, asked) {
						t.Errorf("sent %q, want %q", sent, asked)
					}
					if err := c.Ping(ctx); err != nil {
						t.Errorf("ping: %v", err)
					}
				})
			})
		})
	}
}

// Ruling 5: 2024-11-05 has no capability for completion and serves it without.
func TestCompletionWithoutCapability(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{versions: []string{"2024-11-05"}, caps: `{}`, on: map[string]func(*req) (any, error){
			mcp.MethodComplete: func(*req) (any, error) { return raw(`{"completion":{"values":["x"]}}`), nil },
		}}
		got, err := connect(t, s, nil).Complete(t.Context(), &mcp.CompleteParams{Ref: mcp.PromptRef("p"), Argument: mcp.CompletionArgument{Name: "a"}})
		if err != nil || !slices.Equal(got.Values, []string{"x"}) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// Proves: FLOW-PROGRESS, SEC-PROG-1. Progress comes in order, before the
// result; other tokens, steps back and latecomers are dropped.
func TestProgress(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			s := &script{versions: versions, on: tool(func(r *req) (any, error) {
				token := meta(r.in, mcp.MetaProgressToken)
				_ = r.tell(mcp.NotifyProgress, `{"progressToken":"other","progress":9}`)
				for i := range 200 {
					_ = r.tell(mcp.NotifyProgress, fmt.Sprintf(`{"progressToken":%s,"progress":%d,"total":200,"message":"m"}`, token, i))
					_ = r.tell(mcp.NotifyProgress, fmt.Sprintf(`{"progressToken":%s,"progress":%d}`, token, i-5))
				}
				return raw(done), nil
			})}
			c := connect(t, s, nil)
			var got []float64
			_, err := c.CallTool(t.Context(), "t", nil, &client.CallOptions{OnProgress: func(progress, total float64, message string) {
				if total != 200 || message != "m" {
					t.Errorf("total %v, message %q", total, message)
				}
				got = append(got, progress)
			}})
			late := meta(s.await(mcp.MethodToolsCall, 1), mcp.MetaProgressToken)
			_ = s.last().tell(t.Context(), mcp.NotifyProgress, `{"progressToken":`+late+`,"progress":999}`)
			synctest.Wait()
			if err != nil || len(got) != 200 || !slices.IsSorted(got) {
				t.Errorf("%v, %v", got, err)
			}
			if _, err := c.CallTool(t.Context(), "t", nil, &client.CallOptions{NoTimeout: true}); err != nil {
				t.Error(err)
			}
			if token := meta(s.await(mcp.MethodToolsCall, 2), mcp.MetaProgressToken); token != "" {
				t.Errorf("progress asked for with %s, though it is of no use", token)
			}
		})
	})
}

// A call does not wait for longer than its context while another one negotiates
// for both.
func TestOwnTimeWhileNegotiating(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		s.on = map[string]func(*req) (any, error){
			mcp.MethodToolsCall: func(*req) (any, error) {
				return nil, jsonrpc.NewError(mcp.CodeUnsupportedVersion, "not any more").With(raw(`{"supported":["` + newest + `"],"requested":"` + modern + `"}`))
			},
			mcp.MethodInitialize: func(*req) (any, error) { return nil, errSilent },
		}
		c := connect(t, s, nil)
		first := make(chan error, 1)
		go func() {
			_, err := c.CallTool(t.Context(), "t", nil, nil)
			first <- err
		}()
		s.await(mcp.MethodInitialize, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := c.CallTool(ctx, "t", nil, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("error %v after %v, want the end of its context after 1 s", err, time.Since(start))
		}
		if err := <-first; !errors.Is(err, client.ErrTimeout) {
			t.Errorf("the call that negotiates: %v", err)
		}
	})
}

// Proves: FLOW-CANCEL. Timeouts: silence, progress, the hard cap; the server is
// told each time.
func TestTimeouts(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		for name, test := range map[string]struct {
			opts *client.CallOptions
			step time.Duration // between steps of progress; 0: none
			want time.Duration
		}{
			"silence":        {nil, 0, time.Minute},
			"own":            {&client.CallOptions{Timeout: 3 * time.Second}, 0, 3 * time.Second},
			"longer":         {&client.CallOptions{Timeout: time.Hour}, 0, time.Hour},
			"nobody listens": {nil, 59 * time.Second, 10 * time.Minute},
			"progress, hard": {&client.CallOptions{OnProgress: func(float64, float64, string) {}}, 59 * time.Second, 10 * time.Minute},
			"slow progress":  {&client.CallOptions{OnProgress: func(float64, float64, string) {}}, 61 * time.Second, time.Minute},
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &script{versions: versions, on: tool(func(r *req) (any, error) {
						for i := 0; test.step > 0; i++ {
							select {
							case <-time.After(test.step):
							case <-r.ctx.Done():
								return nil, errSilent
							}
							_ = r.tell(mcp.NotifyProgress, fmt.Sprintf(`{"progressToken":%s,"progress":%d}`, meta(r.in, mcp.MetaProgressToken), i))
						}
						return nil, errSilent
					})}
					c := connect(t, s, nil)
					start := time.Now()
					_, err := c.CallTool(t.Context(), "t", nil, test.opts)
					if !errors.Is(err, client.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != test.want {
						t.Errorf("error %v after %v, want %v", err, time.Since(start), test.want)
					}
					synctest.Wait()
					told := s.got(mcp.NotifyCancelled)
					if len(told) != 1 || text(told[0], "requestId") != s.await(mcp.MethodToolsCall, 1).ID.String() {
						t.Errorf("the server was told %v", told)
					}
				})
			})
		}
	})
}

// The time of persons does not count, in either era.
func TestHumanTime(t *testing.T) {
	slow := &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		time.Sleep(time.Hour) // of fake time
		return client.Accept(map[string]any{"sure": true})
	}}
	t.Run("modern", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			out, err := client.Call[string](t.Context(), connect(t, asking(required(`"a":`+form, "")), slow), "t", nil)
			if err != nil || out != "done" {
				t.Errorf("%q, %v", out, err)
			}
		})
	})
	t.Run("handshake", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &script{versions: []string{newest}, on: tool(func(r *req) (any, error) {
				answer, err := r.conn.ask(r.ctx, mcp.MethodElicit, `{"message":"sure?","requestedSchema":{"type":"object","properties":{"sure":{"type":"boolean"}}}}`)
				if err != nil || answer.Error != nil {
					return nil, fmt.Errorf("asking: %w %v", err, answer)
				}
				return raw(done), nil
			})}
			out, err := client.Call[string](t.Context(), connect(t, s, slow), "t", nil)
			if err != nil || out != "done" {
				t.Errorf("%q, %v", out, err)
			}
		})
	})
}

// Proves: FLOW-CANCEL. The caller's context ends the call at once, with its
// cause, and tells the server; initialize is never cancelled.
func TestCancel(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			s := &script{versions: versions, on: tool(func(*req) (any, error) { return nil, errSilent })}
			c := connect(t, s, nil)
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("the user pressed a key")
			go func() {
				s.await(mcp.MethodToolsCall, 1)
				cancel(why)
			}()
			if _, err := c.CallTool(ctx, "t", nil, nil); !errors.Is(err, why) {
				t.Errorf("error %v", err)
			}
			synctest.Wait()
			if got := s.got(mcp.NotifyCancelled); len(got) != 1 {
				t.Errorf("told %v", got)
			}
			if _, err := c.CallTool(ctx, "t", nil, nil); !errors.Is(err, why) || len(s.got(mcp.MethodToolsCall)) != 1 {
				t.Errorf("a call without time: %v, %v", err, s.methods())
			}
		})
	})
	synctest.Test(t, func(t *testing.T) {
		s := &script{versions: []string{newest}, on: map[string]func(*req) (any, error){mcp.MethodInitialize: func(*req) (any, error) { return nil, errSilent }}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := client.Connect(ctx, mem.New(s, nil), &client.Options{Versions: []string{newest}}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if got := s.got(mcp.NotifyCancelled); len(got) > 0 {
			t.Errorf("initialize was cancelled: %v", got)
		}
	})
}

// A call that is cancelled because another connection ended, such as that of a caller
// of a proxy, leaves the connection to the server alone, and what is under way on it.
func TestCancelByAnotherConnection(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			s := &script{versions: versions, on: tool(func(*req) (any, error) { return nil, errSilent })}
			c := connect(t, s, nil)
			ctx, cancel := context.WithCancelCause(t.Context())
			other, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			done := make(chan error)
			go func() {
				_, err := c.CallTool(other, "t", nil, nil)
				done <- err
			}()
			go func() {
				s.await(mcp.MethodToolsCall, 2)
				cancel(fmt.Errorf("%w: the caller has gone", transport.ErrClosed))
			}()
			if _, err := c.CallTool(ctx, "t", nil, nil); !errors.Is(err, transport.ErrClosed) {
				t.Errorf("error %v", err)
			}
			_ = c.Notify(ctx, "notifications/x", nil) // sent or not, the connection stays
			if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the other call: %v", err)
			}
			if !c.Connected() {
				t.Error("the connection has ended")
			}
		})
	})
}

// Proves: FLOW-SHUTDOWN. Close ends what is under way with ErrClosed, wherever
// it waits, and leaves nothing behind.
func TestClose(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			o := answering()
			asked := make(chan struct{})
			o.OnElicit = func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
				close(asked)
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			o.OnToolsChanged = func(context.Context) {}
			s := &script{versions: versions, on: tool(func(r *req) (any, error) {
				if versions[0] == modern && member[string](r.in.Params, "name") == "asks" {
					return raw(required(`"a":`+form, "")), nil
				}
				if member[string](r.in.Params, "name") == "asks" {
					_, err := r.conn.ask(r.ctx, mcp.MethodElicit, `{"message":"m","requestedSchema":{"type":"object","properties":{}}}`)
					return nil, err
				}
				return nil, errSilent
			})}
			c := connect(t, s, o)
			ended := make(chan error, 2)
			for _, name := range []string{"silent", "asks"} {
				go func() {
					_, err := c.CallTool(context.Background(), name, nil, &client.CallOptions{NoTimeout: true})
					ended <- err
				}()
			}
			<-asked
			synctest.Wait()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			for range 2 {
				if err := <-ended; !errors.Is(err, client.ErrClosed) {
					t.Errorf("call ended with %v", err)
				}
			}
			if _, err := c.CallTool(t.Context(), "t", nil, nil); !errors.Is(err, client.ErrClosed) {
				t.Errorf("late call: %v", err)
			}
			if err := c.Notify(t.Context(), "x/y", nil); !errors.Is(err, client.ErrClosed) {
				t.Errorf("late notification: %v", err)
			}
		})
	})
}

// Close leaves no goroutine behind outside of a bubble either.
func TestCloseLeaks(t *testing.T) {
	mcptest.NoLeaks(t)
	c, err := client.Connect(t.Context(), mem.New(&script{on: tool(func(*req) (any, error) { return raw(done), nil })}, nil), answering())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CallTool(t.Context(), "t", nil, nil); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// Errors of the server keep their code and data.
func TestServerError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{on: map[string]func(*req) (any, error){mcp.MethodResourcesRead: func(*req) (any, error) {
			return nil, jsonrpc.NewError(mcp.CodeInvalidParams, "no such resource").With(raw(`{"uri":"a:b"}`))
		}}}
		_, err := connect(t, s, nil).ReadResource(t.Context(), "a:b", nil)
		var e *jsonrpc.Error
		if !errors.As(err, &e) || e.Code != mcp.CodeInvalidParams || string(e.Data) != `{"uri":"a:b"}` || !strings.Contains(err.Error(), `resources/read "a:b"`) {
			t.Errorf("error %v", err)
		}
	})
}

// Extensions: own methods, own types of results, own notifications.
func TestExtensionSeams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{on: map[string]func(*req) (any, error){
			"x/ask":             func(r *req) (any, error) { return raw(`{"got":` + text(r.in, "a") + `}`), nil },
			mcp.MethodToolsCall: func(*req) (any, error) { return raw(`{"resultType":"task","taskId":"7"}`), nil },
		}}
		heard := make(chan string, 1)
		c := connect(t, s, &client.Options{OnNotification: func(_ context.Context, method string, params mcp.RawValue) { heard <- method + string(params) }})
		var out struct {
			Got int `json:"got"`
		}
		if err := c.Request(t.Context(), "x/ask", map[string]int{"a": 4}, &out, nil); err != nil || out.Got != 4 {
			t.Errorf("%+v, %v", out, err)
		}
		var result mcp.RawValue
		o := &client.CallOptions{ResultTypes: []string{"task"}}
		if err := c.Request(t.Context(), mcp.MethodToolsCall, &mcp.CallToolParams{Name: "t"}, &result, o); err != nil || !strings.Contains(string(result), `"7"`) {
			t.Errorf("%s, %v", result, err)
		}
		if err := c.Notify(t.Context(), "x/note", map[string]int{"b": 1}); err != nil {
			t.Error(err)
		}
		if got := s.await("x/note", 1); string(got.Params.Raw()) != `{"b":1}` {
			t.Errorf("note %s", got.Params.Raw())
		}
		_ = s.last().tell(t.Context(), "notifications/x", `{"c":1}`)
		if got := <-heard; got != `notifications/x{"c":1}` {
			t.Errorf("heard %s", got)
		}
		for _, method := range []string{mcp.NotifyToolsListChanged, mcp.NotifyRootsListChanged} {
			if err := c.Notify(t.Context(), method, nil); !errors.Is(err, client.ErrNotCapable) {
				t.Errorf("%s: %v", method, err)
			}
		}
		if err := c.Request(t.Context(), "x/ask", map[string]any{"_meta": map[string]int{mcp.MetaLogLevel: 1}}, nil, nil); err == nil {
			t.Error("a core key of _meta was taken")
		}
	})
}

// Proves: FLOW-COMPLETE, SEC-COMP-1 (the client's part): at most a hundred
// values are taken.
func TestComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{on: map[string]func(*req) (any, error){mcp.MethodComplete: func(*req) (any, error) {
			return raw(`{"completion":{"values":["v"` + strings.Repeat(`,"v"`, 149) + `],"total":150}}`), nil
		}}}
		p := &mcp.CompleteParams{
			Ref: mcp.ResourceRef("a:{b}"), Argument: mcp.CompletionArgument{Name: "b", Value: "x"},
			Context: &mcp.CompletionContext{Arguments: map[string]string{"c": "d"}},
		}
		got, err := connect(t, s, nil).Complete(t.Context(), p)
		if err != nil || len(got.Values) != 100 || !got.HasMore || *got.Total != 150 {
			t.Errorf("%+v, %v", got, err)
		}
		m := s.await(mcp.MethodComplete, 1)
		if text(m, "ref") != `{"type":"ref/resource","uri":"a:{b}"}` || text(m, "context") != `{"arguments":{"c":"d"}}` {
			t.Errorf("params %s", m.Params.Raw())
		}
	})
}

// A tool whose name is no text is not asked for under another name.
func TestNameNoText(t *testing.T) {
	s := &script{versions: []string{modern}, on: tool(func(*req) (any, error) { return raw(done), nil })}
	c, err := client.Connect(t.Context(), mem.New(s, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.CallTool(t.Context(), "t\xff", nil, nil); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("error is %v, want that the name is not valid UTF-8", err)
	}
}
