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
		"malformed form":      {newest, answering(), mcp.MethodElicit, `{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"array"}}}}`, "-32602"},
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
