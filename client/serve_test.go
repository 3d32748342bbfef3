package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// asks runs one question of a handshake server and returns the answer.
func asks(t *testing.T, version string, o *client.Options, method, params string) *jsonrpc.Incoming {
	t.Helper()
	s := &script{versions: []string{version}}
	connect(t, s, o)
	answer, err := s.last().ask(t.Context(), method, params)
	var wired *jsonrpc.Error
	if err != nil && !errors.As(err, &wired) {
		t.Fatal(err)
	}
	if wired != nil && (answer == nil || answer.Error == nil) {
		return &jsonrpc.Incoming{Error: wired}
	}
	return answer
}

// Proves: FLOW-SAMPLE-P, FLOW-ELICIT-P, FLOW-ROOTS-P, FLOW-PING, SEC-CAP-1.
// Ruling 17: questions of handshake servers, with the codes of each refusal.
func TestServerRequests(t *testing.T) {
	refuse := &client.Options{
		OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { return nil, client.ErrRefused },
		OnSample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return nil, fmt.Errorf("no: %w", client.ErrRefused)
		},
		OnRoots: func(context.Context) ([]mcp.Root, error) { return nil, client.ErrRefused },
	}
	const formParams = `{"message":"m","requestedSchema":{"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]}}`
	const sampleParams = `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":10}`
	for name, test := range map[string]struct {
		version        string
		o              *client.Options
		method, params string
		want           string // result, or code
	}{
		"ping":                {newest, nil, mcp.MethodPing, `{}`, `{}`},
		"elicit":              {newest, answering(), mcp.MethodElicit, formParams, `{"action":"accept","content":{"sure":true}}`},
		"elicit url":          {newest, answering(), mcp.MethodElicit, `{"mode":"url","message":"m","url":"https://a.example/","elicitationId":"e"}`, `{"action":"accept"}`},
		"sample":              {newest, answering(), mcp.MethodCreateMessage, sampleParams, sampled},
		"roots":               {"2024-11-05", answering(), mcp.MethodRootsList, `{}`, `{"roots":[{"uri":"file:///srv"}]}`},
		"sampling refused":    {newest, refuse, mcp.MethodCreateMessage, sampleParams, "-1 User rejected"},
		"roots refused":       {newest, refuse, mcp.MethodRootsList, `{}`, "-1 User rejected"},
		"elicitation refused": {newest, refuse, mcp.MethodElicit, formParams, "-1 User rejected"},
		"undeclared sampling": {newest, nil, mcp.MethodCreateMessage, sampleParams, "-32601"},
		"undeclared roots":    {newest, nil, mcp.MethodRootsList, `{}`, "-32601"},
		"undeclared elicit":   {newest, nil, mcp.MethodElicit, formParams, "-32601"},
		"undeclared mode":     {newest, refuse, mcp.MethodElicit, `{"mode":"url","message":"m","url":"https://a.example/","elicitationId":"e"}`, "-32602"},
		"undeclared tools":    {newest, answering(), mcp.MethodCreateMessage, `{"messages":[],"maxTokens":1,"tools":[{"name":"t","inputSchema":{}}]}`, "-32602"},
		"malformed":           {newest, answering(), mcp.MethodElicit, `{"message":7}`, "-32602"},
		"malformed form":      {newest, answering(), mcp.MethodElicit, `{"message":"m","requestedSchema":{"type":"array"}}`, "-32602"},
		"unknown":             {newest, answering(), "x/y", `{}`, "-32601"},
		"a client's method":   {newest, answering(), mcp.MethodToolsCall, `{}`, "-32601"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer := asks(t, test.version, test.o, test.method, test.params)
				if answer.Error == nil {
					if !wire.Equal(answer.Result.Raw(), raw(test.want)) {
						t.Errorf("result %s, want %s", answer.Result.Raw(), test.want)
					}
					return
				}
				if got := fmt.Sprintf("%d %s", answer.Error.Code, answer.Error.Message); !strings.HasPrefix(got, test.want) {
					t.Errorf("error %s, want %s", got, test.want)
				}
			})
		})
	}
}

// Handlers' errors reach the server only if they are meant to.
func TestHandlerErrors(t *testing.T) {
	for want, err := range map[string]error{
		"-32603 internal error": errors.New("password is hunter2"),
		"-31001 slow down":      mcp.NewError(mcp.CodeRateLimited, "slow down"),
		"-32603 told":           mcp.Errorf("told"),
	} {
		synctest.Test(t, func(t *testing.T) {
			o := &client.Options{OnRoots: func(context.Context) ([]mcp.Root, error) { return nil, err }}
			e := asks(t, newest, o, mcp.MethodRootsList, `{}`).Error
			if got := fmt.Sprintf("%d %s", e.Code, e.Message); got != want {
				t.Errorf("error %s, want %s", got, want)
			}
		})
	}
}

// An answer that cannot be encoded, or not in the server's revision, is an error
// of the handler: the server does not wait for it, and the process lives.
func TestAnswerThatIsNone(t *testing.T) {
	for name, r := range map[string]*mcp.CreateMessageResult{
		"no JSON": {Model: "m", Role: mcp.RoleAssistant, Content: mcp.Contents{mcp.Text("x")}, Meta: mcp.Meta{"com.example/x": raw("{bad")}},
		"nil":     {Model: "m", Role: mcp.RoleAssistant, Content: mcp.Contents{(*mcp.TextContent)(nil)}},
	} {
		for _, version := range []string{newest, "2025-06-18", "2025-03-26", "2024-11-05"} {
			t.Run(name+"/"+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := &client.Options{OnSample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) { return r, nil }}
					start := time.Now()
					answer := asks(t, version, o, mcp.MethodCreateMessage, `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":10}`)
					if answer.Error == nil || answer.Error.Code != mcp.CodeInternalError || answer.Error.Message != "internal error" || time.Since(start) > 0 {
						t.Errorf("the server is told %s, %v after %v", answer.Result.Raw(), answer.Error, time.Since(start))
					}
				})
			})
		}
	}
}

// OnQuestion without a result leaves the context of the handler what it was.
func TestOnQuestionWithoutContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logtest.Log
		o := answering()
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		o.OnQuestion = func(context.Context, string) context.Context { return nil }
		answer := asks(t, newest, o, mcp.MethodRootsList, `{}`)
		if answer.Error != nil || !wire.Equal(answer.Result.Raw(), raw(`{"roots":[{"uri":"file:///srv"}]}`)) {
			t.Errorf("the server is told %s, %v", answer.Result.Raw(), answer.Error)
		}
		if !strings.Contains(log.String(), "OnQuestion returned no context") {
			t.Errorf("the log does not say why: %s", &log)
		}
	})
}

// Why a question of a handshake server got no answer is in the client's log,
// also where the server is told less; values of a form are not.
func TestHandlerErrorsAreLogged(t *testing.T) {
	boom := errors.New("no roots today")
	elicit := func(answer func() (*mcp.ElicitResult, error)) *client.Options {
		return &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { return answer() }}
	}
	const form = `{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{"age":{"type":"integer"}},"required":["age"]}}`
	for name, test := range map[string]struct {
		opts           *client.Options
		method, params string
		want           string // of the log
		code           int64
	}{
		"roots":   {&client.Options{OnRoots: func(context.Context) ([]mcp.Root, error) { return nil, boom }}, mcp.MethodRootsList, `{}`, `err="no roots today"`, -32603},
		"sample":  {&client.Options{OnSample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) { return nil, boom }}, mcp.MethodCreateMessage, `{"messages":[],"maxTokens":1}`, `err="no roots today"`, -32603},
		"elicit":  {elicit(func() (*mcp.ElicitResult, error) { return nil, boom }), mcp.MethodElicit, form, `err="no roots today"`, -32603},
		"nothing": {elicit(func() (*mcp.ElicitResult, error) { return nil, nil }), mcp.MethodElicit, form, "the handler gave no answer", -32603},
		"refused": {elicit(func() (*mcp.ElicitResult, error) { return nil, fmt.Errorf("%w: never ask", client.ErrRefused) }), mcp.MethodElicit, form, "never ask", -1},
		"unfit":   {elicit(func() (*mcp.ElicitResult, error) { return client.Accept(map[string]string{"age": "hunter2"}) }), mcp.MethodElicit, form, "the answer does not fit the form: /age: expected integer", -32603},
		"decline": {elicit(client.Decline), mcp.MethodElicit, form, "", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			test.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
			e := asks(t, newest, test.opts, test.method, test.params).Error
			if e == nil && test.code != 0 || e != nil && e.Code != test.code {
				t.Errorf("%s: the server is told %v", name, e)
			}
			text := log.String()
			if test.want == "" && text != "" || !strings.Contains(text, test.want) || strings.Contains(text, "hunter2") ||
				test.want != "" && (!strings.Contains(text, "level=WARN") || !strings.Contains(text, "method="+test.method) || strings.Count(text, "\n") != 1) {
				t.Errorf("%s: the log is %q, want one warning with %q", name, text, test.want)
			}
		})
	}
}

// Proves: SEC-CANCEL-1, SEC-DOS-1. Questions are answered at once, up to a
// bound, and can be withdrawn; a withdrawn one is not answered.
func TestQuestionsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		withdrawn := make(chan error, 3)
		s := &script{versions: []string{newest}}
		connect(t, s, &client.Options{MaxInFlight: 2, OnRoots: func(ctx context.Context) ([]mcp.Root, error) {
			<-ctx.Done()
			withdrawn <- context.Cause(ctx)
			return nil, nil
		}})
		p := s.last()
		for id := range 3 {
			_ = p.conn.Send(t.Context(), &jsonrpc.Outgoing{ID: mcp.IntID(int64(100 + id)), Method: mcp.MethodRootsList})
		}
		synctest.Wait()
		if len(withdrawn) > 0 {
			t.Error("something was withdrawn")
		}
		_ = p.tell(t.Context(), mcp.NotifyCancelled, `{"requestId":100}`)
		_ = p.tell(t.Context(), mcp.NotifyCancelled, `{"requestId":77}`)
		synctest.Wait()
		if len(withdrawn) != 1 {
			t.Errorf("%d questions withdrawn, want 1", len(withdrawn))
		}
		if len(s.told) != 1 || s.told[0].Error == nil || s.told[0].Error.Code != mcp.CodeTooManyInFlight || s.told[0].ID != mcp.IntID(102) {
			t.Errorf("answers %+v, want one refusal", s.told)
		}
	})
}

// Spec 2026-07-28, basic/transports/stdio: servers of this era send no
// requests, and clients no responses.
func TestModernServerRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		asked := false
		connect(t, s, &client.Options{OnRoots: func(context.Context) ([]mcp.Root, error) {
			asked = true
			return nil, nil
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if m, err := s.last().ask(ctx, mcp.MethodRootsList, `{}`); err == nil || asked {
			t.Errorf("answered %+v, asked %v", m, asked)
		}
	})
}

// A server may ping before the handshake is over.
func TestEarlyPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{versions: []string{newest}}
		inner := &script{versions: s.versions}
		s.on = map[string]func(*req) (any, error){mcp.MethodInitialize: func(r *req) (any, error) {
			if m, err := r.conn.ask(r.ctx, mcp.MethodPing, `{}`); err != nil || m.Error != nil {
				t.Errorf("ping: %+v, %v", m, err)
			}
			return inner.handle(r)
		}}
		connect(t, s, nil)
	})
}

// Proves: FLOW-LOG. Levels: a request in the handshake era, _meta in the other.
// Logs of servers that declared none are dropped.
func TestLogs(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			var got []string
			s := &script{versions: versions, on: tool(func(r *req) (any, error) {
				for i := range 3 {
					_ = r.tell(mcp.NotifyMessage, fmt.Sprintf(`{"level":"error","data":%d}`, i))
				}
				return raw(done), nil
			})}
			c := connect(t, s, &client.Options{LogLevel: mcp.LogWarning, OnLog: func(_ context.Context, p *mcp.LogParams) {
				got = append(got, string(p.Level)+string(p.Data))
			}})
			if err := c.SetLogLevel(t.Context(), mcp.LogError); err != nil {
				t.Error(err)
			}
			if _, err := c.CallTool(t.Context(), "t", nil, nil); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if !slices.Equal(got, []string{"error0", "error1", "error2"}) {
				t.Errorf("logs %v", got)
			}
			levels := s.got(mcp.MethodSetLevel)
			level := meta(s.await(mcp.MethodToolsCall, 1), mcp.MetaLogLevel)
			if c.Modern() && (level != `"error"` || len(levels) > 0) {
				t.Errorf("_meta level %s, %d requests", level, len(levels))
			}
			if !c.Modern() && (level != "" || len(levels) != 2 || text(levels[0], "level") != `"warning"` || text(levels[1], "level") != `"error"`) {
				t.Errorf("_meta level %s, requests %v", level, levels)
			}
			if err := c.SetLogLevel(t.Context(), "loud"); err == nil {
				t.Error("a level that is none was taken")
			}
		})
	})
	synctest.Test(t, func(t *testing.T) {
		s := &script{caps: `{}`}
		connect(t, s, &client.Options{OnLog: func(context.Context, *mcp.LogParams) { t.Error("a log that was not declared") }})
		_ = s.last().tell(t.Context(), mcp.NotifyMessage, `{"level":"error","data":1}`)
		synctest.Wait()
	})
}

// A handler of logs may call the client, however many more logs wait: nothing of
// them is lost, and the answer does not wait behind them.
func TestLogHandlerCalls(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			const count = 600
			s := &script{versions: versions, on: tool(func(r *req) (any, error) {
				for i := range count {
					_ = r.tell(mcp.NotifyMessage, fmt.Sprintf(`{"level":"error","data":%d}`, i))
				}
				return raw(done), nil
			})}
			s.on[mcp.MethodPromptsList] = func(*req) (any, error) { return raw(`{"prompts":[]}`), nil }
			var c *client.Client
			n := 0
			c = connect(t, s, &client.Options{OnLog: func(ctx context.Context, p *mcp.LogParams) {
				if string(p.Data) != fmt.Sprint(n) {
					t.Errorf("log %d is %s", n, p.Data)
				}
				n++
				for _, err := range c.Prompts(ctx) {
					t.Errorf("a call in the handler: %v", err)
				}
			}})
			if _, err := c.CallTool(t.Context(), "t", nil, nil); err != nil {
				t.Error(err)
			}
			if err := c.Drain(t.Context()); err != nil || n != count {
				t.Errorf("%d logs, %v", n, err)
			}
		})
	})
}

// Logs that came before an answer reach the handler, also if the client is closed
// as soon as it has the answer.
func TestLogsBeforeClose(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			const count = 100
			s := &script{versions: versions, on: tool(func(r *req) (any, error) {
				for range count {
					_ = r.tell(mcp.NotifyMessage, `{"level":"error","data":1}`)
				}
				return raw(done), nil
			})}
			n := 0
			c := connect(t, s, &client.Options{OnLog: func(context.Context, *mcp.LogParams) {
				time.Sleep(time.Millisecond)
				n++
			}})
			if _, err := c.CallTool(t.Context(), "t", nil, nil); err != nil {
				t.Error(err)
			}
			if err := c.Close(); err != nil || n != count {
				t.Errorf("%d logs of %d, %v", n, count, err)
			}
		})
	})
}

// FLOW-ROOTS-P: the change of roots is told where the revision has words for it.
func TestRootsChanged(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			s := &script{versions: versions}
			c := connect(t, s, answering())
			if err := c.RootsChanged(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n := len(s.got(mcp.NotifyRootsListChanged)); (n == 1) == c.Modern() {
				t.Errorf("told %d times", n)
			}
		})
	})
}
