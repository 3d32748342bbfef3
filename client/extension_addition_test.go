package client_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// adds adds a member to calls of the tool "t", and has later/get settle them.
func adds(members map[string]mcp.RawValue) client.Extension {
	every := client.AllRevisions
	return client.Extension{
		ID: laterID, Revisions: every,
		Methods: []client.ExtensionMethod{{Name: "later/get", Revisions: every, Asks: true}},
		Additions: []client.Addition{{
			Methods: []string{mcp.MethodToolsCall}, Revisions: every,
			Members: func(ctx context.Context, r *client.Request) (map[string]mcp.RawValue, error) {
				if r.Target() != "t" {
					return nil, nil
				}
				return members, r.Client().Ping(ctx)
			},
			Settle: func(ctx context.Context, r *client.Request, result mcp.RawValue) (mcp.RawValue, error) {
				if !strings.Contains(string(result), `"first"`) {
					return nil, errors.New("not the answer: " + string(result))
				}
				return client.CallMethod[mcp.RawValue](ctx, r.Client(), "later/get", nil, &client.CallOptions{NoTimeout: true})
			},
		}},
	}
}

// addScript answers calls with members with "first", and later/get with "last".
func addScript(versions []string) *script {
	content := func(text string) (any, error) { return raw(`{"content":[{"type":"text","text":"` + text + `"}]}`), nil }
	return &script{versions: versions, caps: `{"tools":{},"extensions":{"com.example/later":{}}}`, on: map[string]func(*req) (any, error){
		mcp.MethodToolsCall: func(r *req) (any, error) {
			if text(r.in, "later") == `{"a":1}` && text(r.in, "name") != "" && text(r.in, "arguments") == `{"b":2}` {
				return content("first")
			}
			return content("plain")
		},
		"later/get": func(*req) (any, error) { return content("last") },
	}}
}

// Extensions add members to the params of requests, and make the final result of their
// answers, for typed calls and raw ones, with middleware around; others are as before.
func TestAddition(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		s := addScript(versions)
		e := adds(map[string]mcp.RawValue{"later": raw(`{"a":1}`)})
		if versions[0] == modern { // which has no ping
			e.Additions[0].Members = func(_ context.Context, r *client.Request) (map[string]mcp.RawValue, error) {
				if r.Target() != "t" {
					return nil, nil
				}
				return map[string]mcp.RawValue{"later": raw(`{"a":1}`)}, nil
			}
		}
		for _, oneAtATime := range []bool{false, true} {
			seen := ""
			c := connect(t, s, &client.Options{OneAtATime: oneAtATime, Extensions: []client.Extension{e}, Middleware: []client.Middleware{func(next client.Func) client.Func {
				return func(ctx context.Context, r *client.Request) (client.Result, error) {
					result, err := next(ctx, r)
					if r, ok := result.(*mcp.CallToolResult); ok {
						seen = r.Content[0].(*mcp.TextContent).Text
					}
					return result, err
				}
			}}})
			for tool, want := range map[string]string{"t": "last", "u": "plain"} {
				got, err := client.Call[string](t.Context(), c, tool, map[string]int{"b": 2})
				if err != nil || got != want || seen != want {
					t.Errorf("%s gave %q and middleware saw %q, %v, want %q", tool, got, seen, err, want)
				}
				var whole mcp.CallToolResult
				err = c.Request(t.Context(), mcp.MethodToolsCall, map[string]any{"name": tool, "arguments": map[string]int{"b": 2}}, &whole, nil)
				if err != nil || whole.Content[0].(*mcp.TextContent).Text != want {
					t.Errorf("%s gave %+v, %v, want %q", tool, whole, err, want)
				}
			}
		}
	})
}

// What cannot be added is not sent, and an error of the server is that of the call.
func TestAdditionFails(t *testing.T) {
	for want, members := range map[string]map[string]mcp.RawValue{
		`"name" of params`:      {"name": raw(`"x"`)},
		`"arguments" of params`: {"arguments": raw(`{}`)},
		`"_meta" of params`:     {"_meta": raw(`{}`)},
		`"later" of params`:     {"later": raw(`{`)},
		"no such thing":         {"later": raw(`{}`)},
		"not the answer":        {"later": raw(`{"a":2}`)},
	} {
		s := addScript([]string{newest})
		if want == "no such thing" {
			s.on[mcp.MethodToolsCall] = func(*req) (any, error) { return nil, jsonrpc.NewError(-32050, "no such thing") }
		}
		c := connect(t, s, &client.Options{Extensions: []client.Extension{adds(members)}})
		_, err := c.CallTool(t.Context(), "t", map[string]int{"b": 2}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one with %q", err, want)
		}
		if n := len(s.got(mcp.MethodToolsCall)); strings.Contains(want, "of params") != (n == 0) {
			t.Errorf("%s: %d calls were sent", want, n)
		}
	}
	own := adds(nil)
	for i, change := range []func(*client.Addition){
		func(a *client.Addition) { a.Methods = nil },
		func(a *client.Addition) { a.Methods = []string{"later/get"} },
		func(a *client.Addition) { a.Members = nil },
		func(a *client.Addition) { a.Settle = nil },
	} {
		e, a := own, own.Additions[0]
		change(&a)
		e.Additions = []client.Addition{a}
		if _, err := newExtended(t, e); err == nil {
			t.Errorf("%d: no error", i)
		}
	}
	other := own
	other.ID, other.Methods = "com.example/b", nil
	if _, err := newExtended(t, own, other); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("two additions to one method: %v", err)
	}
}

// A question that comes in the answer to a method that asks belongs to the call which is
// settled, whose time the person does not use up; without a transport that tells, with
// OneAtATime.
func TestAdditionAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := addScript([]string{newest})
		s.on["later/get"] = func(r *req) (any, error) {
			time.Sleep(8 * time.Minute) // more than a call may be silent
			if _, err := r.conn.ask(r.ctx, mcp.MethodElicit, `{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}`); err != nil {
				return nil, err
			}
			return raw(`{"content":[]}`), nil
		}
		asked := ""
		c := connect(t, s, &client.Options{
			OneAtATime: true, Extensions: []client.Extension{adds(map[string]mcp.RawValue{"later": raw(`{"a":1}`)})},
			OnElicit: func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
				asked = r.Method + " " + r.Target + " " + client.RequestFrom(ctx).Target()
				time.Sleep(time.Hour)
				return client.Accept(map[string]string{})
			},
		})
		if _, err := c.CallTool(t.Context(), "t", map[string]int{"b": 2}, nil); err != nil || asked != "tools/call t t" {
			t.Errorf("%v; asked by %q", err, asked)
		}
		s.on["later/get"] = func(*req) (any, error) { return nil, errSilent }
		began := time.Now()
		if _, err := c.CallTool(t.Context(), "t", map[string]int{"b": 2}, nil); !errors.Is(err, client.ErrTimeout) || time.Since(began) != 10*time.Minute {
			t.Errorf("a method without end: %v after %v", err, time.Since(began))
		}
	})
}

// Where the transport does not tell, a question says by a member of _meta to what it belongs.
// What names nothing that is asked for belongs to no call, as ever. The answer has the same
// member of _meta.
func TestAdditionRelated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const key = "com.example/related"
		questions := map[string]string{
			`{"com.example/related":{"id":"a"}}`: "t", `{"com.example/related":{"id":"b"}}`: "",
			`{"com.example/related":{"id":7}}`: "", `{"com.example/related":{"ID":"a"}}`: "", `{"com.example/related":"a"}`: "",
			`{"com.example/other":{"id":"a"}}`: "", `{}`: "",
		}
		s := addScript([]string{newest})
		s.on["later/get"] = func(r *req) (any, error) {
			for meta := range questions {
				params := `{"message":"` + strings.ReplaceAll(meta, `"`, `'`) + `","requestedSchema":{"type":"object","properties":{}},"_meta":` + meta + `}`
				answer, err := r.conn.ask(r.ctx, mcp.MethodElicit, params)
				if err != nil {
					return nil, err
				}
				text := string(answer.Result.Raw())
				says := strings.Contains(text, `"_meta":{"com.example/related":{`)
				if strings.HasPrefix(meta, `{"com.example/related":{`) != says || says && !strings.Contains(text, `"_meta":`+meta) {
					t.Errorf("the answer to the question of %s: %s", meta, text)
				}
			}
			return raw(`{"content":[]}`), nil
		}
		e := adds(map[string]mcp.RawValue{"later": raw(`{"a":1}`)})
		e.Methods = []client.ExtensionMethod{{Name: "later/get", Target: "id", Revisions: client.Handshake, Asks: true, Related: key}}
		e.Additions[0].Settle = func(ctx context.Context, r *client.Request, _ mcp.RawValue) (mcp.RawValue, error) {
			return client.CallMethod[mcp.RawValue](ctx, r.Client(), "later/get", map[string]string{"id": "a"})
		}
		got := make(map[string]string)
		c := connect(t, s, &client.Options{
			Extensions: []client.Extension{e},
			OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
				got[strings.ReplaceAll(r.Params.Message, `'`, `"`)] = r.Target
				return client.Accept(map[string]string{})
			},
		})
		if _, err := c.CallTool(t.Context(), "t", map[string]int{"b": 2}, nil); err != nil || !maps.Equal(got, questions) {
			t.Errorf("%v; asked by %q", err, got)
		}
		for _, m := range []client.ExtensionMethod{{Name: "later/get", Related: key, Asks: true}, {Name: "later/get", Related: key, Target: "id"}} {
			if _, err := newExtended(t, client.Extension{ID: laterID, Methods: []client.ExtensionMethod{m}}); err == nil {
				t.Errorf("%+v: no error", m)
			}
		}
	})
}

// Sets of revisions and the version in use.
func TestRevisionsHas(t *testing.T) {
	for version, want := range map[string]bool{modern: false, newest: true, "2025-06-18": false, "": false, "x": false} {
		if client.CoreTasks.Has(version) != want {
			t.Errorf("%q: %v", version, !want)
		}
	}
	if !client.Revisions(0).Has(modern) || client.Revisions(0).Has(newest) {
		t.Error("the zero value is Stateless")
	}
}
