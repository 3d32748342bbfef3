package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/slogtest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// attributesOf are those of the lines with this message, without its time.
func attributesOf(t *testing.T, text, message string) []map[string]any {
	t.Helper()
	var found []map[string]any
	for line := range strings.Lines(text) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if m["msg"] == message {
			delete(m, "time")
			delete(m, "level")
			delete(m, "msg")
			found = append(found, m)
		}
	}
	return found
}

// What a handler and the server log about a request says which request it was,
// outside of the groups that the handler opened, and once.
func TestRequestLogs(t *testing.T) {
	var text bytes.Buffer
	out := slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})
	log := slog.New(server.RequestLogs(server.RequestLogs(out)))
	o := unlimited()
	o.Logger = slog.New(out)
	s := newServer(o, server.Tool("work", "", func(ctx context.Context, _ none) (string, error) {
		log.InfoContext(ctx, "plain", "id", "mine")
		log.With("a", 1).WithGroup("g").With("b", 2).WithGroup("h").InfoContext(ctx, "groups", "c", 3)
		log.With().WithGroup("").Info("no request")
		return "", errors.New("broken")
	}))
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			if c.Method() == mcp.MethodToolsCall {
				slog.New(s.LogHandler("", out)).WarnContext(c, "to the client too")
			}
			return next(c)
		}
	})
	each(t, versions, func(t *testing.T, v string) {
		for _, who := range []struct {
			p    *principal.Principal
			want map[string]any
		}{
			{principal.Local, map[string]any{"principal": "local"}},
			{&principal.Principal{Remote: "192.0.2.1"}, map[string]any{"principal": "@192.0.2.1"}},
			{&principal.Principal{Issuer: "https://as.example", Subject: "ada", Client: "cli"}, map[string]any{"principal": "ada", "client": "cli"}},
		} {
			text.Reset()
			l := joinAs(t, s, v, who.p)
			m := l.tool("work", emptyBody)
			request := map[string]any{"method": "tools/call", "target": "work", "revision": v, "transport": "stdio", "id": strings.Trim(string(mustJSON(t, m.ID)), `"`)}
			for key, value := range who.want {
				request[key] = value
			}
			for message, want := range map[string]map[string]any{
				"plain":             {"id": "mine", "mcp": request},
				"groups":            {"a": 1.0, "mcp": request, "g": map[string]any{"b": 2.0, "h": map[string]any{"c": 3.0}}},
				"no request":        {},
				"to the client too": {"mcp": request},
			} {
				if diff := cmp.Diff([]map[string]any{want}, attributesOf(t, text.String(), message)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", message, diff)
				}
			}
			if got := attributesOf(t, text.String(), "handler error"); len(got) != 1 || !cmp.Equal(got[0]["mcp"], any(request)) {
				t.Errorf("the server's own line: %v", got)
			}
			if n := strings.Count(text.String(), `"mcp":`); n != 4 {
				t.Errorf("%d lines with a request, want 4:\n%s", n, text.String())
			}
		}
	})
}

// Outside of requests it is a handler like any other.
func TestRequestLogsIsAHandler(t *testing.T) {
	var text bytes.Buffer
	err := slogtest.TestHandler(server.RequestLogs(slog.NewJSONHandler(&text, nil)), func() []map[string]any {
		var all []map[string]any
		for line := range strings.Lines(text.String()) {
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err)
			}
			all = append(all, m)
		}
		return all
	})
	if err != nil {
		t.Error(err)
	}
}

// Middleware learns whether the name in a request is one of the server's, and
// the code that its caller gets for an error.
func TestOfferedAndErrorCode(t *testing.T) {
	type seen struct {
		offered bool
		code    int64
	}
	var last seen
	s := newServer(
		unlimited(), echo(),
		server.Tool("coded", "", func(context.Context, none) (string, error) { return "", mcp.NewError(-7, "coded") }),
		server.Prompt("p", "", func(context.Context, mcp.None) (string, error) { return "", errors.New("hidden") }),
		server.Resource("x://a", "a", func(context.Context) (string, error) { return "", server.ErrNotFound }),
	)
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			res, err := next(c)
			last = seen{c.Offered(), server.ErrorCode(c, err)}
			return res, err
		}
	})
	each(t, versions, func(t *testing.T, v string) {
		l := join(t, s, v)
		for _, test := range []struct {
			method, params string
			want           seen
		}{
			{"tools/call", `{"name":"echo","arguments":{"text":"a"}}`, seen{true, 0}},
			{"tools/call", `{"name":"coded"}`, seen{true, -7}},
			{"tools/call", `{"name":"no such"}`, seen{false, mcp.CodeInvalidParams}},
			{"prompts/get", `{"name":"p"}`, seen{true, mcp.CodeInternalError}},
			{"prompts/get", `{"name":"echo"}`, seen{false, mcp.CodeInvalidParams}},
			{"resources/read", `{"uri":"x://a"}`, seen{}},
			{"tools/list", `{}`, seen{}},
		} {
			m := l.call(test.method, test.params)
			want := test.want
			if m.Error != nil {
				want.code = m.Error.Code // the one that the caller gets
				if test.want.code != 0 && test.want.code != m.Error.Code {
					t.Errorf("%s %s: the caller got %d, want %d", test.method, test.params, m.Error.Code, test.want.code)
				}
			}
			if last != want {
				t.Errorf("%s %s: middleware saw %+v, want %+v", test.method, test.params, last, want)
			}
		}
	})
}

type loan struct {
	Title string `json:"title"`
}

func ExampleRequestLogs() {
	log := slog.New(server.RequestLogs(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || len(groups) > 0 && a.Key != "method" && a.Key != "target" {
				return slog.Attr{} // for an output that is always the same
			}
			return a
		},
	})))
	s := server.New("books", "1.0.0", nil)
	s.Add(server.Tool("lend", "Lends a book.", func(ctx context.Context, in loan) (string, error) {
		log.InfoContext(ctx, "lent", "title", in.Title)
		return "enjoy", nil
	}))
	ctx := context.Background()
	c, err := client.Connect(ctx, mem.New(s, nil), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	fmt.Println(client.Call[string](ctx, c, "lend", map[string]string{"title": "Emma"}))
	// Output:
	// level=INFO msg=lent title=Emma mcp.method=tools/call mcp.target=lend
	// enjoy <nil>
}
