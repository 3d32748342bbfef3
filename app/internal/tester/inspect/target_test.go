package inspect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/tester/inspect"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// byHand serves the handshake era over HTTP: each method is answered with the text of a
// result.
func byHand(t *testing.T, answer func(method string, params string) string) *inspect.Target {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID             json.RawMessage
			Method, Result string
			Params         json.RawMessage
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || json.Unmarshal(body, &m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		result := answer(m.Method, string(m.Params))
		switch {
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
			return
		case m.Method == mcp.MethodInitialize:
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"extra":{"a":1}},"serverInfo":{"name":"by hand","version":"1","more":true}}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(s.Close)
	return &inspect.Target{Dialer: streamable.URL(s.URL), Legacy: []string{"2025-11-25"}}
}

// ask runs a method.
func ask(t *testing.T, target *inspect.Target, method string, a *inspect.Args) (*inspect.Outcome, error) {
	t.Helper()
	m, ok := inspect.Lookup(method)
	if !ok {
		t.Fatalf("no method %s", method)
	}
	return m.Run(t.Context(), target, a)
}

// What the protocol does not know is in the results, as it came.
func TestResultsAreAsTheyCame(t *testing.T) {
	t.Parallel()
	target := byHand(t, func(method, _ string) string {
		switch method {
		case mcp.MethodToolsList:
			return `{"tools":[{"name":"a","inputSchema":{"type":"object"},"description":7,"x":[1.0,1e3]}]}`
		case mcp.MethodToolsCall:
			return `{"content":[{"type":"hologram","data":1}],"x":{"b":1,"a":2},"_meta":{"k":null}}`
		}
		return `{}`
	})
	for method, want := range map[string]string{
		"initialize": `{"serverInfo":{"name":"by hand","version":"1","more":true},"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"extra":{"a":1}}}`,
		"tools/list": `{"tools":[{"name":"a","inputSchema":{"type":"object"},"description":7,"x":[1.0,1e3]}]}`,
		"tools/call": `{"content":[{"type":"hologram","data":1}],"x":{"b":1,"a":2},"_meta":{"k":null}}`,
	} {
		o, err := ask(t, target, method, &inspect.Args{Tool: "a"})
		if err != nil || string(o.Result) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", method, err, o.Result, want)
		}
	}
	if o, err := ask(t, target, "resources/list", &inspect.Args{}); err != nil || string(o.Result) != `{"resources":[]}` {
		t.Errorf("a list that is not offered: %v, %v", o, err)
	}
}

// Lists that never end, and what is none, are errors in bounded time and memory.
func TestBadLists(t *testing.T) {
	t.Parallel()
	var n int
	many := strings.TrimSuffix(strings.Repeat(`{"name":"a"},`, 999), ",")
	for name, test := range map[string]struct {
		answer func(params string) string
		is     error
	}{
		"endless":        {func(string) string { n++; return fmt.Sprintf(`{"tools":[%s],"nextCursor":"%d"}`, many, n) }, client.ErrPages},
		"round":          {func(string) string { return `{"tools":[{"name":"a"}],"nextCursor":""}` }, nil},
		"no array":       {func(string) string { return `{"tools":7}` }, client.ErrMalformed},
		"no list":        {func(string) string { return `{}` }, client.ErrMalformed},
		"cursor":         {func(string) string { return `{"tools":[],"nextCursor":7}` }, client.ErrMalformed},
		"two pages":      {func(params string) string { return paged(params) }, nil},
		"null is no end": {func(string) string { return `{"tools":[],"nextCursor":null}` }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := byHand(t, func(_, params string) string { return test.answer(params) })
			o, err := ask(t, target, mcp.MethodToolsList, &inspect.Args{})
			if !errors.Is(err, test.is) {
				t.Errorf("%v, want %v", err, test.is)
			}
			if name == "round" && string(o.Result) != `{"tools":[{"name":"a"}]}` || name == "two pages" && string(o.Result) != `{"tools":[1,2]}` {
				t.Errorf("%s", o.Result)
			}
			if err != nil && inspect.Classify(err).Exit != inspect.ExitUsage {
				t.Errorf("exit code %d", inspect.Classify(err).Exit)
			}
		})
	}
}

func paged(params string) string {
	if strings.Contains(params, `"cursor":"2"`) {
		return `{"tools":[2]}`
	}
	return `{"tools":[1],"nextCursor":"2"}`
}

// Every method runs in every revision over every transport, or says why it does not.
func TestEachEra(t *testing.T) {
	t.Parallel()
	build := func(_ testing.TB, o *server.Options) *server.Server {
		s := server.New("era", "1", o)
		s.Add(
			server.Tool("greet", "Greets.", func(_ context.Context, in struct {
				Name string `json:"name"`
			},
			) (string, error) {
				return "hello " + in.Name, nil
			}),
			server.Text("test://text", "text", "a text"),
		)
		return s
	}
	for _, era := range mcptest.Eras(t, build) {
		if era.Fresh {
			continue
		}
		t.Run(era.String(), func(t *testing.T) {
			t.Parallel()
			target := &inspect.Target{Dialer: mcptest.Dialer(t, build(t, nil), era.Transport), Legacy: []string{era.Version}}
			if era.Stateless {
				target.Legacy, target.Modern = nil, target.Legacy
			}
			args := &inspect.Args{Tool: "greet", Pairs: []inspect.Pair{{Name: "name", Value: "Ada"}}, URI: "test://text"}
			for method, want := range map[string]string{
				mcp.MethodInitialize:    `"protocolVersion":"` + era.Version + `"`,
				mcp.MethodDiscover:      `"result":{`,
				mcp.MethodToolsList:     `{"tools":[{"name":"greet",`,
				mcp.MethodToolsCall:     `"hello Ada"`,
				mcp.MethodResourcesRead: `"a text"`,
				mcp.MethodPing:          `{}`,
			} {
				o, err := ask(t, target, method, args)
				if err != nil || !strings.Contains(string(o.Result), want) {
					t.Errorf("%s: %v, %v", method, o, err)
				}
			}
		})
	}
}

// The table is whole, and has no row twice.
func TestMethods(t *testing.T) {
	t.Parallel()
	for _, m := range inspect.Methods() {
		same, ok := inspect.Lookup(m.Name)
		if m.Name == "" || m.About == "" || !ok || same.Name != m.Name {
			t.Errorf("%+v", m)
		}
	}
	if _, ok := inspect.Lookup("nope"); ok {
		t.Error("a method that does not exist")
	}
	if m, ok := inspect.Lookup("prompts/complete"); !ok || m.Name != mcp.MethodComplete {
		t.Error("the Inspector's name of completion is not known")
	}
}
