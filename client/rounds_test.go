package client_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

const (
	form    = `{"method":"elicitation/create","params":{"mode":"form","message":"sure?","requestedSchema":{"type":"object","properties":{"sure":{"type":"boolean"},"why":{"type":"string","default":"because","maxLength":10}},"required":["sure"]}}}`
	page    = `{"method":"elicitation/create","params":{"mode":"url","message":"log in","url":"https://xn--e1awd7f.example/login"}}`
	sample  = `{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":10}}`
	roots   = `{"method":"roots/list"}`
	sampled = `{"role":"assistant","content":{"type":"text","text":"hello"},"model":"m"}`
)

// answering are options whose handlers answer everything.
func answering() *client.Options {
	return &client.Options{
		OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return client.Accept(map[string]any{"sure": true})
		},
		OnElicitURL: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return client.Accept(nil)
		},
		OnSample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Content: mcp.Contents{mcp.Text("hello")}, Model: "m"}, nil
		},
		OnRoots: func(context.Context) ([]mcp.Root, error) {
			return []mcp.Root{{URI: "file:///srv"}}, nil
		},
	}
}

// asking is a server whose tool asks once with the given input_required
// result, then gives "done".
func asking(first string) *script {
	var n atomic.Int32
	return &script{on: map[string]func(*req) (any, error){mcp.MethodToolsCall: func(*req) (any, error) {
		if n.Add(1) == 1 {
			return raw(first), nil
		}
		return raw(`{"resultType":"complete","content":[{"type":"text","text":"done"}]}`), nil
	}}}
}

func required(requests, state string) string {
	var members []string
	if requests != "" {
		members = append(members, `"inputRequests":{`+requests+`}`)
	}
	if state != "" {
		members = append(members, `"requestState":`+state)
	}
	return `{"resultType":"input_required",` + strings.Join(members, ",") + `}`
}

// Proves: FLOW-ELICIT-P, FLOW-SAMPLE-P, FLOW-ROOTS-P. Rulings 19 and 20: all
// questions of a round are asked at once; the retry has another id, the exact
// state or none, defaults filled in, and the same params.
func TestRounds(t *testing.T) {
	for name, state := range map[string]string{
		"state": `"s\u0000\"é"`, "empty state": `""`, "no state": "",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := asking(required(`"a":`+form+`,"b":`+sample+`,"c":`+roots+`,"d":`+page, state))
				c := connect(t, s, answering())
				out, err := client.Call[string](t.Context(), c, "drop", map[string]any{"table": "t"})
				if err != nil || out != "done" {
					t.Fatalf("%q, %v", out, err)
				}
				calls := s.got(mcp.MethodToolsCall)
				if len(calls) != 2 || calls[0].ID == calls[1].ID {
					t.Fatalf("%d calls with ids %v", len(calls), calls)
				}
				for _, m := range []string{"name", "arguments"} {
					if text(calls[0], m) != text(calls[1], m) {
						t.Errorf("%s was %s and became %s", m, text(calls[0], m), text(calls[1], m))
					}
				}
				if got := text(calls[0], "requestState") + text(calls[0], "inputResponses"); got != "" {
					t.Errorf("the first request carries %s", got)
				}
				if got := text(calls[1], "requestState"); got != state && !wire.Equal(raw(got), raw(state)) {
					t.Errorf("state %s, want %s", got, state)
				}
				want := `{"a":{"action":"accept","content":{"sure":true,"why":"because"}},"b":` + sampled +
					`,"c":{"roots":[{"uri":"file:///srv"}]},"d":{"action":"accept"}}`
				if got := text(calls[1], "inputResponses"); !wire.Equal(raw(got), raw(want)) {
					t.Errorf("answers\n%s, want\n%s", got, want)
				}
			})
		})
	}
}

// G15: the caller's own params are never written to. Requests that carry
// answers already begin with them.
func TestParamsUntouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := asking(required(`"a":`+form, `"x"`))
		c := connect(t, s, answering())
		state := "mine"
		p := &mcp.CallToolParams{Name: "t", Arguments: raw(`{"a":1}`), InputBase: mcp.InputBase{
			RequestState: &state, InputResponses: mcp.InputResponses{"old": raw(`{"action":"cancel"}`)},
		}}
		p.Meta.Extra = map[string]mcp.RawValue{"com.example/k": raw(`1`)}
		before, _ := wire.Marshal(p)
		var r mcp.CallToolResult
		if err := c.Request(t.Context(), mcp.MethodToolsCall, p, &r, nil); err != nil {
			t.Fatal(err)
		}
		if after, _ := wire.Marshal(p); !reflect.DeepEqual(before, after) {
			t.Errorf("params became %s", after)
		}
		calls := s.got(mcp.MethodToolsCall)
		if got := text(calls[0], "requestState") + text(calls[0], "inputResponses"); got != `"mine"{"old":{"action":"cancel"}}` {
			t.Errorf("first request: %s", got)
		}
		if got := text(calls[1], "requestState"); got != `"x"` || strings.Contains(text(calls[1], "inputResponses"), "old") {
			t.Errorf("retry: %s %s", got, text(calls[1], "inputResponses"))
		}
		if meta(calls[1], "com.example/k") != "1" {
			t.Errorf("retry lost _meta: %s", calls[1].Params.Raw())
		}
	})
}

// G2, ruling 19: a state without questions is retried after a pause, at once
// never, and its result is the call's.
func TestStateOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		s := &script{on: map[string]func(*req) (any, error){mcp.MethodToolsCall: func(*req) (any, error) {
			if n.Add(1) <= 4 {
				return raw(required("", fmt.Sprintf(`"%d"`, n.Load()))), nil
			}
			return raw(`{"resultType":"complete","content":[{"type":"text","text":"done"}]}`), nil
		}}}
		c := connect(t, s, nil)
		start := time.Now()
		out, err := client.Call[string](t.Context(), c, "t", nil)
		if err != nil || out != "done" {
			t.Fatalf("%q, %v", out, err)
		}
		if took := time.Since(start); took != 1500*time.Millisecond { // 100 + 200 + 400 + 800
			t.Errorf("took %v", took)
		}
		calls := s.got(mcp.MethodToolsCall)
		if text(calls[4], "requestState") != `"4"` || text(calls[4], "inputResponses") != "" {
			t.Errorf("last retry %s", calls[4].Params.Raw())
		}
	})
}

// Proves: SEC-CAP-1. G5: what was not declared is an error, and nobody is
// asked anything of that round. Malformed questions are errors too.
func TestBadRounds(t *testing.T) {
	asked := false
	only := &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		asked = true
		return client.Decline()
	}}
	for name, test := range map[string]struct {
		result string
		want   error
	}{
		"undeclared sampling":    {required(`"a":`+form+`,"b":`+sample, ""), client.ErrNotCapable},
		"undeclared roots":       {required(`"b":`+roots, ""), client.ErrNotCapable},
		"undeclared mode":        {required(`"b":`+page, ""), client.ErrNotCapable},
		"unknown method":         {required(`"a":`+form+`,"b":{"method":"tools/call"}`, ""), client.ErrNotCapable},
		"neither":                {`{"resultType":"input_required"}`, client.ErrResultType},
		"null member":            {required(`"a":null`, ""), client.ErrResultType},
		"null state":             {required("", "null"), client.ErrResultType},
		"questions are a list":   {`{"resultType":"input_required","inputRequests":[]}`, client.ErrResultType},
		"unknown result type":    {`{"resultType":"telepathy","content":[]}`, client.ErrResultType},
		"result type is no text": {`{"resultType":7,"content":[]}`, client.ErrResultType},
		"no form":                {required(`"a":{"method":"elicitation/create","params":{"message":"m"}}`, ""), nil},
		"form of an array":       {required(`"a":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"array"}}}`, ""), nil},
		"twin in a field":        {required(`"a":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"x":{"type":"string","Type":"object"}}}}}`, ""), nil},
		"twin member":            {required(`"a":{"method":"elicitation/create","params":{"message":"m","Message":"n","requestedSchema":{"type":"object","properties":{}}}}`, ""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked = false
				s := asking(test.result)
				c := connect(t, s, only)
				_, err := c.CallTool(t.Context(), "t", nil, nil)
				if err == nil || test.want != nil && !errors.Is(err, test.want) {
					t.Errorf("error %v, want %v", err, test.want)
				}
				if asked {
					t.Error("the person was asked")
				}
				if n := len(s.got(mcp.MethodToolsCall)); n != 1 {
					t.Errorf("%d calls", n)
				}
			})
		})
	}
}

// Spec 2026-07-28, basic/patterns/mrtr: servers MUST NOT ask in answer to other
// requests.
func TestInputElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{on: map[string]func(*req) (any, error){mcp.MethodComplete: func(*req) (any, error) {
			return raw(required(`"a":`+form, "")), nil
		}}}
		c := connect(t, s, answering())
		_, err := c.Complete(t.Context(), &mcp.CompleteParams{Ref: mcp.PromptRef("p")})
		if !errors.Is(err, client.ErrResultType) {
			t.Errorf("error %v", err)
		}
	})
}

// MaxRounds: a server that always asks is left.
func TestMaxRounds(t *testing.T) {
	for name, result := range map[string]string{"questions": required(`"a":`+form, `"s"`), "waits": required("", `"s"`)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{on: map[string]func(*req) (any, error){mcp.MethodToolsCall: func(*req) (any, error) { return raw(result), nil }}}
				c := connect(t, s, answering())
				_, err := c.CallTool(t.Context(), "t", nil, &client.CallOptions{NoTimeout: true})
				if !errors.Is(err, client.ErrTooManyRounds) {
					t.Errorf("error %v", err)
				}
				if n := len(s.got(mcp.MethodToolsCall)); name == "questions" && n != 9 {
					t.Errorf("%d calls, want 9", n)
				}
			})
		})
	}
}

// Ruling 17: in the modern era a refusal ends the call here; the other
// questions of the round end too, and nothing is retried.
func TestRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := answering()
		var ended error
		o.OnElicit = func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
			<-ctx.Done()
			ended = ctx.Err()
			return client.CancelElicit()
		}
		o.OnSample = func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return nil, fmt.Errorf("not today: %w", client.ErrRefused)
		}
		s := asking(required(`"a":`+form+`,"b":`+sample, ""))
		c := connect(t, s, o)
		_, err := c.CallTool(t.Context(), "t", nil, nil)
		if !errors.Is(err, client.ErrInputRefused) || !errors.Is(err, client.ErrRefused) {
			t.Errorf("error %v", err)
		}
		if ended == nil || len(s.got(mcp.MethodToolsCall)) != 1 {
			t.Errorf("other question ended with %v after %v", ended, s.methods())
		}
	})
}

// Ruling 20: the person's answer is checked here as well; decline and cancel
// are answers like others.
func TestElicitAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		answer func() (*mcp.ElicitResult, error)
		want   string // "" is an error
	}{
		"fits":       {func() (*mcp.ElicitResult, error) { return client.Accept(raw(`{"sure":false,"why":"x"}`)) }, `{"action":"accept","content":{"sure":false,"why":"x"}}`},
		"wrong type": {func() (*mcp.ElicitResult, error) { return client.Accept(map[string]any{"sure": "yes"}) }, ""},
		"too long": {func() (*mcp.ElicitResult, error) {
			return client.Accept(map[string]any{"sure": true, "why": "01234567890"})
		}, ""},
		"missing":    {func() (*mcp.ElicitResult, error) { return client.Accept(map[string]any{}) }, ""},
		"extra":      {func() (*mcp.ElicitResult, error) { return client.Accept(map[string]any{"sure": true, "x": 1}) }, ""},
		"no object":  {func() (*mcp.ElicitResult, error) { return client.Accept(7) }, ""},
		"decline":    {client.Decline, `{"action":"decline"}`},
		"cancel":     {client.CancelElicit, `{"action":"cancel"}`},
		"nothing":    {func() (*mcp.ElicitResult, error) { return nil, nil }, ""},
		"odd action": {func() (*mcp.ElicitResult, error) { return &mcp.ElicitResult{Action: "shrug"}, nil }, ""},
		"declined, but with content": {func() (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: mcp.ElicitDecline, Content: map[string]mcp.RawValue{"sure": raw(`true`)}}, nil
		}, `{"action":"decline"}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := asking(required(`"a":`+form, ""))
				c := connect(t, s, &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { return test.answer() }})
				_, err := c.CallTool(t.Context(), "t", nil, nil)
				if test.want == "" {
					if !errors.Is(err, client.ErrInputRefused) {
						t.Errorf("error %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := text(s.await(mcp.MethodToolsCall, 2), "inputResponses"); !wire.Equal(raw(got), raw(`{"a":`+test.want+`}`)) {
					t.Errorf("answer %s, want %s", got, test.want)
				}
			})
		})
	}
}

// Ruling 18: pages are shown whole, with what is suspicious about them; what is
// no page is never shown.
func TestElicitPage(t *testing.T) {
	for address, want := range map[string]string{
		"https://example.com/a?b=c":        "example.com",
		"http://localhost:8080/":           "localhost:8080",
		"http://127.0.0.1/":                "127.0.0.1",
		"http://example.com/":              "example.com not encrypted",
		"https://xn--e1awd7f.example/":     "xn--e1awd7f.example Punycode",
		"https://пример.example/":          "пример.example not ASCII",
		"https://bank.example@evil.test/x": "evil.test user name",
		"https://10.1.2.3/":                "10.1.2.3 number",
		"https://2130706433/":              "2130706433 number",
		"https://0x7f000001:8080/":         "0x7f000001:8080 number",
		"https://192.168.1./":              "192.168.1. number",
		"https://[2001:db8::1]/":           "[2001:db8::1] number",
		"https://4.example/1":              "4.example",
		"https://a.example/\u202egpj.exe":  "",
		"https://a.example/\u200b":         "",
		"https://a.example/\u0085":         "",
		"https://a.example/\u3000b":        "",
		"javascript:alert(1)":              "",
		"file:///etc/passwd":               "",
		"data:text/html,x":                 "",
		"/relative":                        "",
		"https://a.example/ b":             "",
		"":                                 "",

		"https://" + strings.Repeat("a", 9000) + ".example/": "",
	} {
		t.Run(address[:min(len(address), 40)], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, _ := wire.Marshal(map[string]any{"method": "elicitation/create", "params": map[string]any{"mode": "url", "message": "m", "url": address}})
				s := asking(required(`"a":`+string(q), ""))
				var shown *client.ElicitRequest
				c := connect(t, s, &client.Options{OnElicitURL: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
					shown = r
					return client.Accept(nil)
				}})
				_, err := c.CallTool(t.Context(), "t", nil, nil)
				if want == "" {
					if err == nil || shown != nil {
						t.Errorf("shown %+v, error %v", shown, err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				host, warning, _ := strings.Cut(want, " ")
				all := strings.Join(shown.Page.Warnings, "; ")
				if shown.Page.URL != address || shown.Page.Host != host || (warning == "") != (all == "") || !strings.Contains(all, warning) {
					t.Errorf("page %+v, want %s", shown.Page, want)
				}
				if shown.Form() != nil || shown.Method != mcp.MethodToolsCall || shown.Target != "t" || shown.Server.Name != "script" {
					t.Errorf("request %+v", shown)
				}
			})
		})
	}
}

// Ruling 18: -32042 of 2025-11-25 has the pages visited, waits for the server's
// word, and tries again. In other revisions it is an error like others.
func TestURLRequired(t *testing.T) {
	const refusal = `{"elicitations":[{"mode":"url","message":"m","url":"https://a.example/1","elicitationId":"e1"},{"mode":"url","message":"m","url":"https://a.example/2","elicitationId":"e2"}]}`
	server := func(versions ...string) *script {
		var n atomic.Int32
		return &script{versions: versions, on: map[string]func(*req) (any, error){mcp.MethodToolsCall: func(*req) (any, error) {
			if n.Add(1) == 1 {
				return nil, jsonrpc.NewError(mcp.CodeURLElicitationRequired, "visit").With(raw(refusal))
			}
			return raw(`{"content":[{"type":"text","text":"done"}]}`), nil
		}}}
	}
	t.Run("visited", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := server(newest)
			o := answering()
			var visited, complete []string
			o.OnElicitURL = func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
				visited = append(visited, r.Page.URL)
				id := r.Params.ElicitationID
				go func() {
					time.Sleep(50 * time.Second)
					_ = s.last().tell(context.WithoutCancel(ctx), mcp.NotifyElicitationComplete, `{"elicitationId":"`+id+`"}`)
				}()
				time.Sleep(45 * time.Second) // twice: longer than CallTimeout
				return client.Accept(nil)
			}
			o.OnElicitationComplete = func(_ context.Context, id string) { complete = append(complete, id) }
			c := connect(t, s, o)
			start := time.Now()
			out, err := client.Call[string](t.Context(), c, "t", nil)
			if err != nil || out != "done" || time.Since(start) != 95*time.Second {
				t.Errorf("%q, %v after %v", out, err, time.Since(start))
			}
			synctest.Wait()
			if len(visited) != 2 || !slices.Equal(complete, []string{"e1", "e2"}) {
				t.Errorf("visited %v, complete %v", visited, complete)
			}
			if p := s.await(mcp.MethodToolsCall, 2).Params; strings.Contains(string(p.Raw()), "input") {
				t.Errorf("retry %s", p.Raw())
			}
		})
	})
	t.Run("silent server", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := connect(t, server(newest), answering())
			start := time.Now()
			out, err := client.Call[string](t.Context(), c, "t", nil)
			if err != nil || out != "done" || time.Since(start) != time.Minute {
				t.Errorf("%q, %v after %v", out, err, time.Since(start))
			}
		})
	})
	t.Run("declined", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := answering()
			o.OnElicitURL = func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { return client.Decline() }
			_, err := connect(t, server(newest), o).CallTool(t.Context(), "t", nil, nil)
			if !errors.Is(err, client.ErrInputRefused) {
				t.Errorf("error %v", err)
			}
		})
	})
	for _, version := range []string{modern, "2025-06-18"} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := connect(t, server(version), answering()).CallTool(t.Context(), "t", nil, nil)
				var refusal *jsonrpc.Error
				if !errors.As(err, &refusal) || refusal.Code != mcp.CodeURLElicitationRequired {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// Answer is the door for extensions that carry questions of their own.
func TestAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, &script{}, answering())
		got, err := c.Answer(t.Context(), mcp.InputRequests{"r": {Method: mcp.MethodRootsList}})
		if err != nil || string(got["r"]) != `{"roots":[{"uri":"file:///srv"}]}` {
			t.Errorf("%s, %v", got["r"], err)
		}
	})
}

// Proves: SEC-ROOTS-1 (the protocol's part): only file: URIs leave.
func TestRootsScheme(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, asking(required(`"r":`+roots, "")), &client.Options{OnRoots: func(context.Context) ([]mcp.Root, error) {
			return []mcp.Root{{URI: "https://a.example/"}}, nil
		}})
		if _, err := c.CallTool(t.Context(), "t", nil, nil); !errors.Is(err, client.ErrInputRefused) {
			t.Errorf("error %v", err)
		}
	})
}

// A form with a pattern that cannot be judged here is asked, and so is one for a pattern: the
// server judges the answer.
// Proves: Ruling 38.
func TestFormsWithUnjudgedPatterns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := asking(required(`"a":{"method":"elicitation/create","params":{"message":"which?","requestedSchema":{"type":"object","properties":{`+
			`"name":{"type":"string","pattern":"^(?!x)a"},"find":{"type":"string","format":"regex"}}}}}`, ""))
		o := answering()
		o.OnElicit = func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return client.Accept(map[string]any{"name": "xa", "find": "(?=b)"})
		}
		c := connect(t, s, o)
		if _, err := c.CallTool(t.Context(), "ask", nil, nil); err != nil {
			t.Error(err)
		}
	})
}

// A form is asked also if two of its fields define one address.
//
// Proves: Ruling 38.
func TestFormsWithOneAddressTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := asking(required(`"a":{"method":"elicitation/create","params":{"message":"which?","requestedSchema":{"type":"object","properties":{`+
			`"from":{"$id":"urn:place","type":"object"},"to":{"$id":"urn:place","type":"object"},"n":{"type":"integer"}}}}}`, ""))
		o := answering()
		n := 1.5
		o.OnElicit = func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return client.Accept(map[string]any{"from": map[string]int{"x": 1}, "to": map[string]int{}, "n": n})
		}
		c := connect(t, s, o)
		if _, err := c.CallTool(t.Context(), "ask", nil, nil); err == nil || !strings.Contains(err.Error(), "/n") {
			t.Errorf("the other field is not checked: %v", err)
		}
		n = 1
		if _, err := c.CallTool(t.Context(), "ask", nil, nil); err != nil {
			t.Error(err)
		}
	})
}

// A field of no kind that forms have is asked for as JSON. Its value is checked by its schema, as far as
// that can be used.
// Proves: Ruling 38.
func TestFormsWithOtherFields(t *testing.T) {
	for name, test := range map[string]struct {
		field, value string
		kind         mcp.FieldKind
		fits         bool
	}{
		"object":             {`{"type":"object","properties":{"n":{"type":"integer"}}}`, `{"n":1}`, mcp.FieldUnknown, true},
		"wrong object":       {`{"type":"object","properties":{"n":{"type":"integer"}}}`, `{"n":"1"}`, mcp.FieldUnknown, false},
		"list of texts":      {`{"type":"array","items":{"type":"string"}}`, `["a","b"]`, mcp.FieldUnknown, true},
		"wrong list":         {`{"type":"array","items":{"type":"string"}}`, `["a",2]`, mcp.FieldUnknown, false},
		"array of anything":  {`{"type":"array"}`, `[1]`, mcp.FieldUnknown, true},
		"two types":          {`{"type":["string","null"],"title":"T"}`, `null`, mcp.FieldUnknown, true},
		"optional, Pydantic": {`{"anyOf":[{"type":"string"},{"type":"null"}],"default":null,"title":"T"}`, `"x"`, mcp.FieldUnknown, true},
		"numbers to choose":  {`{"type":"integer","enum":[1,2]}`, `2`, mcp.FieldUnknown, true},
		"no such number":     {`{"type":"integer","enum":[1,2]}`, `3`, mcp.FieldUnknown, false},
		"no type":            {`{"description":"anything"}`, `[{}]`, mcp.FieldUnknown, true},
		"true":               {`true`, `{"a":[]}`, mcp.FieldUnknown, true},
		"no schema":          {`5`, `{"a":[]}`, mcp.FieldUnknown, true},
		"unknown type":       {`{"type":"int"}`, `"x"`, mcp.FieldUnknown, true},
		"bound of text":      {`{"type":"string","minLength":"3"}`, `"x"`, mcp.FieldUnknown, true},
		"dangling reference": {`{"$ref":"#/$defs/Colour"}`, `"red"`, mcp.FieldUnknown, true},
		"own definitions":    {`{"$defs":{"c":{"enum":["red"]}},"$ref":"#/$defs/c"}`, `"red"`, mcp.FieldUnknown, true},
		"title of a number":  {`{"type":"string","title":7}`, `"x"`, mcp.FieldUnknown, true},
		"another dialect":    {`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"n":{"minimum":3,"exclusiveMinimum":true}}}`, `{"n":4}`, mcp.FieldUnknown, true},
		"choices":            {`{"type":"array","items":{"type":"string","enum":["a"]}}`, `["a"]`, mcp.FieldChoices, true},
		"usual":              {`{"type":"string","maxLength":1}`, `"x"`, mcp.FieldString, true},
	} {
		t.Run(name, func(t *testing.T) {
			params := `{"message":"?","requestedSchema":{"type":"object","properties":{"sure":{"type":"boolean"},"x":` + test.field + `},"required":["x"]}}`
			var asked []*mcp.PrimitiveSchema
			o := &client.Options{OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
				s, _ := r.Form().Properties.Lookup("x")
				asked = append(asked, s)
				return client.Accept(map[string]mcp.RawValue{"sure": raw(`true`), "x": raw(test.value)})
			}}
			synctest.Test(t, func(t *testing.T) {
				c := connect(t, asking(required(`"a":{"method":"elicitation/create","params":`+params+`}`, "")), o)
				if _, err := c.CallTool(t.Context(), "ask", nil, nil); (err == nil) != test.fits {
					t.Error(err)
				}
			})
			for _, version := range []string{"2025-06-18", newest} {
				synctest.Test(t, func(t *testing.T) {
					answer := asks(t, version, o, mcp.MethodElicit, params)
					if want := raw(`{"action":"accept","content":{"sure":true,"x":` + test.value + `}}`); (answer.Error == nil) != test.fits || test.fits && !wire.Equal(answer.Result.Raw(), want) {
						t.Errorf("%s: answer %s, %v", version, answer.Result.Raw(), answer.Error)
					}
				})
			}
			if len(asked) != 3 {
				t.Fatalf("asked %d times", len(asked))
			}
			for _, s := range asked {
				if s.Kind() != test.kind || s.Kind() == mcp.FieldUnknown && string(s.Other) != test.field {
					t.Errorf("kind %s, schema %s", s.Kind(), s.Other)
				}
			}
		})
	}
}

// A form with very many fields is refused before its fields are looked at, and of very large fields not
// all are looked at.
func TestFormsAreBounded(t *testing.T) {
	const large = 2000
	for _, test := range []struct {
		fields  int
		field   string
		refusal string
	}{
		{200_000, `1`, "10000 fields"},
		{large, `{"enum":["` + strings.Repeat("a", 500) + `"]}`, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var fields strings.Builder
			for i := range test.fields {
				fmt.Fprintf(&fields, `,"f%d":%s`, i, test.field)
			}
			o := &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
				return client.Accept(map[string]any{fmt.Sprintf("f%d", large-1): 7}) // fits no schema that is used
			}}
			answer := asks(t, newest, o, mcp.MethodElicit, `{"message":"?","requestedSchema":{"type":"object","properties":{`+fields.String()[1:]+`}}}`)
			refused := answer.Error != nil
			if refused != (test.refusal != "") || refused && !strings.Contains(answer.Error.Message, test.refusal) {
				t.Errorf("%d fields: %v", test.fields, answer.Error)
			}
		})
	}
}
