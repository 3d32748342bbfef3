package flows_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

// Proves: SEC-CAP-1, on the client's side: what the server did not declare is
// not even sent.
func TestSEC_CAP_1(t *testing.T) {
	var calls counted
	build := func(t testing.TB, o *server.Options) *server.Server {
		s := with()(t, o)
		s.Use(calls.wrap)
		return s
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		calls.n = nil
		var tools error
		for _, err := range c.Tools(t.Context()) {
			tools = err
		}
		for what, err := range map[string]error{
			"tools/list": tools, "tools/call": second(c.CallTool(t.Context(), "t", nil, nil)),
			"prompts/get": second(c.GetPrompt(t.Context(), "p", nil, nil)), "resources/read": second(c.ReadResource(t.Context(), "x:a", nil)),
			"subscribe": second(c.Subscribe(t.Context(), "x:a")),
			"complete":  second(c.Complete(t.Context(), &mcp.CompleteParams{Ref: mcp.PromptRef("p")})),
		} {
			if what == "complete" && era.Version == y2024 {
				continue // ruling 5
			}
			if !errors.Is(err, client.ErrNotCapable) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for method, n := range calls.n {
			if method != mcp.MethodDiscover && method != mcp.MethodSetLevel && method != mcp.MethodComplete {
				t.Errorf("%s was sent %d times", method, n)
			}
		}
	})
}

// Proves: SEC-CAP-1, on the server's side: a method of a capability that was
// not declared does not exist; and a client is asked nothing it did not declare.
func TestSEC_CAP_1_Server(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := dial(t, server.New("bare", "1", quiet()), nil)
				params := meta("{}") + ","
				if version != newest {
					params = ""
					l.shake(version, "{}")
				}
				for i, method := range []string{"tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/read", "resources/templates/list", "resources/subscribe", "resources/unsubscribe"} {
					l.ask(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s"name":"x","uri":"x:a"}}`, i, method, params).fails(-32601, fmt.Sprint(i))
				}
				for i, method := range []string{"sampling/createMessage", "roots/list", "elicitation/create", "notifications/initialized", "tasks/get", ""} {
					l.ask(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s"x":1}}`, i, method, params).want(fmt.Sprint(i), "id")
				}
				l.Silent()
			})
		})
	}
	asking := map[string]server.Feature{
		"form": asksFor[struct {
			N int `json:"n"`
		}]("ask"),
		"roots": server.Tool("ask", "Asks.", tellRoots),
		"sample": server.Tool("ask", "Asks.", func(ctx context.Context, _ mcp.None) (string, error) {
			_, err := server.Sample(ctx, &mcp.CreateMessageParams{Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text("?")}}}, MaxTokens: 1})
			return "", err
		}),
		"url": server.Tool("ask", "Asks.", func(ctx context.Context, _ mcp.None) (string, error) {
			_, err := server.ElicitURL(ctx, "https://a.example/", "m", func(context.Context) (bool, error) { return true, nil })
			return "", err
		}),
	}
	for what, feature := range asking {
		for _, version := range versions {
			t.Run(what+"/"+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := dial(t, with(feature)(t, quiet()), nil)
					params := ""
					if version == newest {
						params = "," + meta(`{"experimental":{"x":{}},"tools":{}}`)
					} else {
						l.shake(version, `{"experimental":{"x":{}},"tools":{}}`) // unknown ones are tolerated (ruling 5)
					}
					m := l.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"%s}}`, params)
					if version == newest {
						m.fails(mcp.CodeMissingClientCapability, "1")
					} else {
						m.want("true", "result", "isError")
					}
					l.Silent()
				})
			})
		}
	}
}

// Proves: SEC-PAGE-1. Ruling 21: cursors are opaque and sealed; "" is one; a
// bad one is -32602, and our client starts again.
func TestSEC_PAGE_1(t *testing.T) {
	build := func(t testing.TB, o *server.Options) *server.Server {
		o.Limits.PageSize = 2
		s := with()(t, o)
		for i := range 5 {
			s.Add(server.Text(fmt.Sprintf("x:%d", i), "same name", "X"), server.Tool(fmt.Sprintf("t%d", i), "T.", sum))
		}
		return s
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := build(t, quiet())
				l := dial(t, s, nil)
				params := ""
				if version == newest {
					params = meta("{}") + ","
				} else {
					l.shake(version, "{}")
				}
				list := func(method, cursor string) message {
					t.Helper()
					return l.ask(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"cursor":%s}}`, method, params, cursor)
				}
				first := l.ask(`{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{%s"x":1}}`, params)
				next := first.at("result", "nextCursor")
				if strings.Contains(next, "x:") || next == "" {
					t.Errorf("cursor %s", next)
				}
				third := list("resources/list", list("resources/list", next).at("result", "nextCursor"))
				third.want("", "result", "nextCursor")
				if !strings.Contains(third.text, `"x:4"`) || strings.Contains(third.text, `"x:3"`) {
					t.Errorf("third page %s", third.text)
				}
				tampered := []byte(next)
				tampered[len(tampered)/2] ^= 1
				for _, bad := range []string{`""`, `"2"`, `"eDox"`, string(tampered), `"` + strings.Repeat("A", 5000) + `"`} {
					list("resources/list", bad).fails(-32602, "1")
				}
				list("tools/list", next).fails(-32602, "1") // of another list
				list("resources/list", `7`).fails(-32602, "1")
				s.Add(server.Text("x:new", "n", "N"))
				l.silentBut(mcp.NotifyResourcesListChanged)
				list("resources/list", next).fails(-32602, "1") // the list has changed
			})
		})
	}
	// The list changes between two pages: the client begins anew.
	bubbles(t, build, func(t *testing.T, _ mcptest.Era, join joiner) {
		s, c := join(nil)
		n, seen := 0, map[string]int{}
		for r, err := range c.Resources(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 2 {
				s.Add(server.Text("x:9", "n", "N"))
			}
			seen[r.URI]++
		}
		for _, uri := range []string{"x:0", "x:1", "x:2", "x:3", "x:4", "x:9"} {
			if seen[uri] == 0 {
				t.Errorf("%s was left out", uri)
			}
		}
	})
}

// silentBut is silent, but for notifications of a method.
func (l *lines) silentBut(method string) {
	l.t.Helper()
	synctest.Wait()
	for {
		select {
		case line := <-l.Lines():
			message{l.t, line}.want(`"`+method+`"`, "method")
		default:
			return
		}
	}
}

// Proves: SEC-DOS-1: size, depth, number in flight, rate and time are bounded,
// each with a clear error, and the connection lives on.
func TestSEC_DOS_1(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := quiet()
				o.Limits.MaxInFlight = 3
				o.Limits.CallTimeout = 10 * time.Second
				o.Limits.ToolRate = 0.9 // a burst of 9
				s := with(
					server.Tool("sum", "Adds.", sum),
					server.Tool("wait", "Waits.", func(ctx context.Context, _ mcp.None) (string, error) {
						<-ctx.Done()
						return "", context.Cause(ctx)
					}),
				)(t, o)
				l := dial(t, s, &stdio.Options{MaxMessage: 10_000, Principal: ada})
				params := ""
				if version == newest {
					params = meta("{}") + ","
				} else {
					l.shake(version, "{}")
				}
				call := func(id int, tool, args string) {
					l.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s"name":%q,"arguments":%s}}`, id, params, tool, args)
				}
				alive := func() {
					t.Helper()
					call(99, "sum", `{"a":1,"b":2}`)
					l.next().want("99", "id")
				}
				call(1, "sum", `{"a":1,"b":2,"pad":"`+strings.Repeat("x", 10_000)+`"}`)
				l.next().fails(-32700, "1")
				alive()
				call(2, "sum", strings.Repeat(`{"a":`, 70)+"1"+strings.Repeat("}", 70))
				l.next().fails(-32700, "2")
				alive()
				for i := range 3 {
					call(10+i, "wait", "{}")
				}
				synctest.Wait()
				call(20, "wait", "{}")
				m := l.next()
				m.fails(mcp.CodeTooManyInFlight, "20")
				if m.at("error", "data", "retryAfterMs") == "" {
					t.Errorf("nothing says when to try again: %s", m.text)
				}
				for range 3 {
					l.next().want(fmt.Sprint(mcp.CodeTimeout), "error", "code")
				}
				synctest.Wait() // a handler keeps its place until it returns
				alive()
				begun := time.Now()
				codes := make(map[string]int)
				for range 100 {
					call(30, "sum", `{"a":1,"b":2}`)
					codes[l.next().code()]++
				}
				if refused := codes[fmt.Sprint(mcp.CodeRateLimited)]; refused != 92 { // a burst of 9, of which one was spent above
					t.Errorf("%d of 100 calls at once were refused, want 92: %v in %v", refused, codes, time.Since(begun))
				}
				time.Sleep(2 * time.Second)
				alive()
				l.Silent()
			})
		})
	}
}
