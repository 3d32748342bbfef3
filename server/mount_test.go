package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// mounted is a server with one of each, mounted twice deep: in → mid → out.
func mounted(t *testing.T) (out, mid, in *server.Server) {
	t.Helper()
	root, _ := tree(t)
	in = newServer(unlimited(), echo(), review().With(server.PromptOptions{Complete: map[string]server.Completer{"code": server.Choices("go")}}),
		server.Text("test:a", "a", "A"), templates()[0], server.Directory("file:///w/", root))
	mid, out = newServer(unlimited(), give("own", "mid")), newServer(unlimited(), give("own", "out"))
	mid.Mount("in", in)
	out.Mount("mid", mid)
	return out, mid, in
}

// All features appear under a prefix, at any depth. Proves: FLOW-TOOL,
// FLOW-RES, FLOW-PROMPT, FLOW-COMPLETE.
func TestMount(t *testing.T) {
	out, _, _ := mounted(t)
	each(t, bothEras, func(t *testing.T, v string) {
		l := join(t, out, v)
		names, _ := l.pages()
		if d := cmp.Diff([]string{"mid_in_echo", "mid_own", "own"}, names); d != "" {
			t.Error(d)
		}
		for name, want := range map[string]string{"mid_in_echo": "hi", "mid_own": "mid", "own": "out"} {
			arguments := emptyBody
			if want == "hi" {
				arguments = `{"text":"hi"}`
			}
			if got := l.text(l.tool(name, arguments)); got != want {
				t.Errorf("%s gives %q", name, got)
			}
		}
		for _, name := range []string{"echo", "in_echo", "mid_echo"} {
			l.fails(l.tool(name, `{"text":"hi"}`), mcp.CodeInvalidParams)
		}
		for uri, want := range map[string]string{
			"mid+in+test:a":               "A",
			"mid+in+gh://ada/engine":      "repo engine of ada",
			"mid+in+file:///w/a.txt":      "A",
			"mid+in+file:///w/sub/b.json": `{"b":1}`,
		} {
			got := decode[readResult](t, l.result(l.read1(uri)))
			if got.Contents[0].Text != want || got.Contents[0].URI != uri {
				t.Errorf("%s: %+v", uri, got)
			}
		}
		for _, uri := range []string{"test:a", "in+test:a", "mid+test:a", "file:///w/a.txt", "mid+in+file:///w/../secret.txt"} {
			if m := l.read1(uri); m.Error == nil {
				t.Errorf("%s gives %s", uri, m.raw)
			}
		}
		if got := files(t, l); !strings.HasPrefix(got[0], "mid+in+file:///w/a.txt ") {
			t.Errorf("listed %v", got)
		}
		l.result(l.prompt("mid_in_review", `{"code":"x"}`))
		m := l.complete(`{"type":"ref/prompt","name":"mid_in_review"}`, "code", "g", "")
		if got := decode[completion](t, l.result(m)); len(got.Completion.Values) != 1 {
			t.Errorf("completion: %s", m.raw)
		}
		l.result(l.complete(`{"type":"ref/resource","uri":"mid+in+gh://{owner}/{name}"}`, "owner", "a", ""))
	})
}

// Middleware and visibility of every server on the way hold, the outer around
// the inner, and each knows a feature by its name there. Proves: SEC-TOOL-2,
// SEC-RES-2.
func TestMountRules(t *testing.T) {
	out, mid, in := mounted(t)
	var order []string
	for name, s := range map[string]*server.Server{"out": out, "mid": mid, "in": in} {
		s.Use(func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				order = append(order, name)
				return next(c)
			}
		})
	}
	var hide, by string
	rule := func(at string) func(context.Context, server.Item) bool {
		return func(_ context.Context, it server.Item) bool { return by != at || it.Name != hide }
	}
	out.Visible(rule("out"))
	mid.Visible(rule("mid"))
	in.Visible(rule("in"))
	l := join(t, out, v2607)
	l.text(l.tool("mid_in_echo", `{"text":"x"}`))
	if d := cmp.Diff([]string{"out", "mid", "in"}, order); d != "" {
		t.Error(d)
	}
	for _, c := range [][4]string{
		{"out", "mid_in_echo", "tools/call", `{"name":"mid_in_echo","arguments":{"text":"x"}}`},
		{"mid", "in_echo", "tools/call", `{"name":"mid_in_echo","arguments":{"text":"x"}}`},
		{"in", "echo", "tools/call", `{"name":"mid_in_echo","arguments":{"text":"x"}}`},
		{"out", "mid+in+test:a", "resources/read", `{"uri":"mid+in+test:a"}`},
		{"mid", "in+test:a", "resources/read", `{"uri":"mid+in+test:a"}`},
		{"in", "test:a", "resources/read", `{"uri":"mid+in+test:a"}`},
		{"out", "mid+in+gh://ada/x", "resources/read", `{"uri":"mid+in+gh://ada/x"}`},
		{"mid", "in+gh://{owner}/{name}", "resources/read", `{"uri":"mid+in+gh://ada/x"}`},
		{"mid", "in+file:///w/a.txt", "resources/read", `{"uri":"mid+in+file:///w/a.txt"}`},
		{"mid", "in_review", "prompts/get", `{"name":"mid_in_review","arguments":{"code":"x"}}`},
	} {
		by, hide = "", ""
		l.result(l.call(c[2], c[3]))
		by, hide = c[0], c[1]
		l.fails(l.call(c[2], c[3]), mcp.CodeInvalidParams)
	}
	by, hide = "mid", "in_echo"
	if names, _ := l.pages(); len(names) != 2 {
		t.Errorf("listed %v", names)
	}
}

// Changes of a mounted server reach the clients of the one it is mounted in.
// Proves: FLOW-LIST-CHANGED, FLOW-SUB.
func TestMountChanges(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			in, out := newServer(nil, echo(), server.Text("test:a", "a", "")), newServer(nil)
			out.Mount("in", in)
			l := join(t, out, v)
			if l.modern() {
				filter := `{"toolsListChanged":true,"resourceSubscriptions":["in+test:a"]}`
				l.listen(filter, filter)
			} else {
				l.result(l.call("resources/subscribe", `{"uri":"in+test:a"}`))
			}
			in.Add(give("x", "y"))
			l.note("notifications/tools/list_changed")
			if got := l.text(l.tool("in_x", emptyBody)); got != "y" {
				t.Errorf("the new tool gives %q", got)
			}
			in.ResourceUpdated("test:a")
			if m := l.note("notifications/resources/updated"); !strings.Contains(m.raw, `"uri":"in+test:a"`) {
				t.Errorf("got %s", m.raw)
			}
			in.RemoveTools("x")
			l.note("notifications/tools/list_changed")
			l.fails(l.tool("in_x", emptyBody), mcp.CodeInvalidParams)
			out.ResourceUpdated("test:a") // not its name here
			l.Silent()
		})
	})
}

// A tool that asks works mounted too, in both eras. Proves: FLOW-ELICIT-P.
func TestMountAsks(t *testing.T) {
	in, out := newServer(nil, asker("drop", "Drop?")), newServer(nil)
	out.Mount("in", in)
	l := join(t, out, v2607)
	res := l.asked(l.tool("in_drop", emptyBody))
	if got := l.text(l.call("tools/call", with(toolParams("in_drop", emptyBody), res.answers(accepted)))); got != "accept true" {
		t.Errorf("got %q", got)
	}
}

func TestMountPanics(t *testing.T) {
	s := newServer(nil)
	for _, prefix := range []string{"", "a_b", "1a", "-a", "a b", "ä", "a/b", ".a"} {
		panics(t, "prefix", func() { s.Mount(prefix, newServer(nil)) })
	}
	s.Mount("a", newServer(nil))
	panics(t, "two servers", func() { s.Mount("a", newServer(nil)) })
	panics(t, "nil", func() { s.Mount("b", nil) })
	panics(t, "itself", func() { s.Mount("b", s) })
	out, mid, in := mounted(t)
	panics(t, "itself", func() { in.Mount("b", out) })
	panics(t, "itself", func() { mid.Mount("b", out) })
	twice := newServer(nil) // the same server in two places is no circle
	twice.Mount("a", in)
	twice.Mount("b", in)
}

// MapError of a mounted server is asked about the errors of its features and of
// its middleware, and about no others; that of the outer server about the rest.
func TestMountMapsErrors(t *testing.T) {
	mapping := func(name string) *server.Options {
		o := quiet()
		o.MapError = func(_ context.Context, err error) error {
			if !errors.Is(err, errSecret) {
				return nil
			}
			return mcp.Errorf("mapped by %s", name)
		}
		return o
	}
	inner := newServer(mapping("inner"), failing(func() error { return errSecret })...)
	inner.Add(echo())
	early := false
	inner.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			if early {
				return nil, errSecret
			}
			return next(c)
		}
	})
	outer := newServer(mapping("outer"), server.Tool("own", "", func(context.Context, none) (string, error) { return "", errSecret }))
	outer.Mount("m", inner)
	each(t, bothEras, func(t *testing.T, v string) {
		l := join(t, outer, v)
		for _, early = range []bool{false, true} {
			if got := l.isError(l.tool("m_f", emptyBody)); got != "mapped by inner" {
				t.Errorf("tool: %q", got)
			}
			if got := l.fails(l.prompt("m_f", emptyBody), mcp.CodeInternalError); got != "mapped by inner" {
				t.Errorf("prompt: %q", got)
			}
			if got := l.fails(l.read1("m+test:f"), mcp.CodeInternalError); got != "mapped by inner" {
				t.Errorf("resource: %q", got)
			}
		}
		early = false
		if got := l.isError(l.tool("own", emptyBody)); got != "mapped by outer" {
			t.Errorf("own tool: %q", got)
		}
		if got := l.isError(l.tool("m_echo", emptyBody)); !strings.HasPrefix(got, "invalid arguments") {
			t.Errorf("arguments: %q", got)
		}
	})
}

// asker makes a tool that asks one question.
func asker(name, question string) server.Feature {
	return server.Tool(name, "Asks.", func(ctx context.Context, _ none) (string, error) {
		a, err := server.Elicit[sure](ctx, question)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s %v", a.Action, a.Value.Sure), nil
	})
}

// A mounted tool has a name of at most 128 characters, by which it is called and
// asked about; others that begin the same stay apart. Spec, server/tools, Tool
// Names.
func TestMountLongNames(t *testing.T) {
	long := strings.Repeat("n", 127)
	foreign, err := server.ForeignTool(mcp.Tool{Name: strings.Repeat("ä", 100), InputSchema: mcp.RawValue(`{"type":"object"}`)},
		func(context.Context, mcp.RawValue) (*mcp.CallToolResult, error) { return &mcp.CallToolResult{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	in := newServer(unlimited(), give(long+"1", "one"), give(long+"2", "two"), give(strings.Repeat("s", 120), "short"), foreign)
	mid, out := newServer(unlimited()), newServer(unlimited())
	mid.Mount("mid", in)
	out.Mount("out", mid)
	var mu sync.Mutex
	asked := make(map[string]bool)
	out.Visible(func(_ context.Context, it server.Item) bool {
		mu.Lock()
		defer mu.Unlock()
		asked[it.Name] = true
		return true
	})
	for prefix, s := range map[string]*server.Server{"mid_": mid, "out_mid_": out} {
		l := join(t, s, v2607)
		names, _ := l.pages()
		if len(names) != 4 {
			t.Fatalf("%d tools", len(names))
		}
		told := make(map[string]string)
		for _, name := range names {
			if len(name) > 128 || !utf8.ValidString(name) || !strings.HasPrefix(name, prefix) {
				t.Errorf("a tool has the name %q of %d bytes", name, len(name))
			}
			if strings.Contains(name, "ä") {
				l.result(l.tool(name, emptyBody))
				continue
			}
			told[l.text(l.tool(name, emptyBody))] = name
		}
		if len(told) != 3 || told["one"] == told["two"] {
			t.Errorf("the tools are %v", told)
		}
		if s == mid && told["short"] != "mid_"+strings.Repeat("s", 120) {
			t.Errorf("a name that is short enough is %s", told["short"])
		}
		for _, name := range names {
			if mu.Lock(); s == out && !asked[name] {
				t.Errorf("Visible was not asked about %s, but about %v", name, asked)
			}
			mu.Unlock()
		}
	}
}
