package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
)

// scoped is a server of which each feature but "open" needs both scopes, and
// how often any of them ran. Mounted says that they are another server's.
func scoped(t *testing.T, mounted bool) (*server.Server, *atomic.Int32) {
	t.Helper()
	root, _ := tree(t)
	ran := new(atomic.Int32)
	scopes := []string{"files.read", "files.write"}
	complete := map[string]server.Completer{"v": func(context.Context, string, map[string]string) ([]string, error) {
		ran.Add(1)
		return nil, nil
	}}
	s := newServer(unlimited(), give("open", "x"),
		server.Tool("tool", "", func(_ context.Context, in struct {
			V int `json:"v"`
		},
		) (string, error) {
			ran.Add(1)
			return fmt.Sprint(in.V), nil
		}).With(server.ToolOptions{Scopes: scopes}),
		server.Resource("test:text", "s", func(context.Context) (string, error) {
			ran.Add(1)
			return "x", nil
		}).With(server.ResourceOptions{Scopes: scopes}),
		server.Template("test:{v}/t", "s", func(_ context.Context, v struct {
			V string `uri:"v"`
		},
		) (string, error) {
			ran.Add(1)
			return v.V, nil
		}).With(server.TemplateOptions{Scopes: scopes, Complete: complete}),
		server.Prompt("prompt", "", func(context.Context, struct {
			V string `json:"v,omitzero"`
		},
		) (string, error) {
			ran.Add(1)
			return "x", nil
		}).With(server.PromptOptions{Scopes: scopes, Complete: complete}),
		server.Directory("file:///d/", root).With(server.ResourceOptions{Scopes: scopes}),
	)
	if !mounted {
		return s, ran
	}
	outer := newServer(unlimited())
	outer.Mount("m", s)
	return outer, ran
}

// Nothing of a feature runs for who was not granted its scopes, not even the
// check of arguments; the error names all of them. It is listed all the same.
// Proves: SEC-TOOL-2, R7.
func TestScopes(t *testing.T) {
	for _, mounted := range []bool{false, true} {
		s, ran := scoped(t, mounted)
		name, uri := "", ""
		if mounted {
			name, uri = "m_", "m+"
		}
		each(t, versions, func(t *testing.T, v string) {
			half := joinAs(t, s, v, &principal.Principal{Issuer: "i", Subject: "s", Scopes: []string{"files.read", "other"}})
			anonymous := joinAs(t, s, v, &principal.Principal{Remote: "192.0.2.1"})
			full := joinAs(t, s, v, &principal.Principal{Issuer: "i", Subject: "s", Scopes: []string{"files.write", "files.read"}})
			local := joinAs(t, s, v, principal.Local)
			for _, c := range []struct{ method, params string }{
				{"tools/call", `{"name":"` + name + `tool","arguments":{"v":1}}`},
				{"tools/call", `{"name":"` + name + `tool","arguments":{"v":"no number"}}`},
				{"prompts/get", `{"name":"` + name + `prompt"}`},
				{"resources/read", `{"uri":"` + uri + `test:text"}`},
				{"resources/read", `{"uri":"` + uri + `test:1/t"}`},
				{"resources/read", `{"uri":"` + uri + `file:///d/a.txt"}`},
				{"completion/complete", `{"ref":{"type":"ref/prompt","name":"` + name + `prompt"},"argument":{"name":"v","value":""}}`},
				{"completion/complete", `{"ref":{"type":"ref/resource","uri":"` + uri + `test:{v}/t"},"argument":{"name":"v","value":""}}`},
				{"resources/subscribe", `{"uri":"` + uri + `test:text"}`},
				{"resources/subscribe", `{"uri":"` + uri + `test:1/t"}`},
				{"resources/subscribe", `{"uri":"` + uri + `file:///d/a.txt"}`},
			} {
				if c.method == "resources/subscribe" && v == v2607 {
					continue // see TestScopesOfListen
				}
				ran.Store(0)
				for _, l := range []*line{half, anonymous} {
					m := l.call(c.method, c.params)
					if got := l.fails(m, mcp.CodeInsufficientScope); got != "this call needs the scopes files.read, files.write" {
						t.Errorf("%s %s: message %q", c.method, c.params, got)
					}
					if !strings.Contains(m.raw, `"data":{"scopes":["files.read","files.write"]}`) {
						t.Errorf("%s %s: %s", c.method, c.params, m.raw)
					}
				}
				if n := ran.Load(); n != 0 {
					t.Errorf("%s %s: ran %d times", c.method, c.params, n)
				}
				for _, l := range []*line{full, local} {
					if m := l.call(c.method, c.params); m.Error != nil && m.Error.Code != mcp.CodeInvalidParams {
						t.Errorf("%s %s: who was granted it gets %s", c.method, c.params, m.raw)
					}
				}
			}
			for method, want := range map[string]string{
				"tools/list": name + "tool", "prompts/list": name + "prompt", "resources/list": uri + "test:text", "resources/templates/list": uri + "test:{v}/t",
			} {
				if m := anonymous.call(method, `{}`); !strings.Contains(m.raw, `"`+want+`"`) {
					t.Errorf("%s does not have %s: %s", method, want, m.raw)
				}
			}
		})
	}
}

// A subscription is refused before it is acknowledged, with the scopes of all
// that it asks for, so that the client can get them at once. Proves: R7.
func TestScopesOfListen(t *testing.T) {
	s := newServer(unlimited(),
		server.Text("test:open", "o", ""),
		server.Text("test:a", "a", "").With(server.ResourceOptions{Scopes: []string{"z", "a"}}),
		server.Text("test:b", "b", "").With(server.ResourceOptions{Scopes: []string{"a", "b"}}),
	)
	who := &principal.Principal{Issuer: "i", Subject: "s", Scopes: []string{"a", "z"}}
	l := joinAs(t, s, v2607, who)
	m := l.call("subscriptions/listen", `{"notifications":{"resourceSubscriptions":["test:open","test:a","test:b"]}}`)
	l.fails(m, mcp.CodeInsufficientScope)
	if !strings.Contains(m.raw, `"scopes":["a","b","z"]`) || len(l.notes) != 0 {
		t.Errorf("refused with %s, after %v", m.raw, l.notes)
	}
	l.listen(`{"resourceSubscriptions":["test:open","test:a"]}`, `{"resourceSubscriptions":["test:open","test:a"]}`)
}

// Handlers and middleware refuse by the arguments, for tools too with an error
// of the protocol, in each revision; who owns the pipe has every scope.
// Proves: SEC-TOOL-2.
func TestNeedScopes(t *testing.T) {
	s := newServer(unlimited(), server.Tool("edit", "", func(ctx context.Context, in struct {
		File string `json:"file"`
	},
	) (string, error) {
		if in.File == "secret" && !server.Caller(ctx).Has("files.secret") {
			return "", fmt.Errorf("opening the file: %w", server.NeedScopes("files.secret"))
		}
		return "x", nil
	}), server.Text("test:a", "a", ""))
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			if c.Target() == "test:a" && !c.Principal().Has("read") {
				return nil, server.NeedScopes("read")
			}
			return next(c)
		}
	})
	each(t, versions, func(t *testing.T, v string) {
		l, local := joinAs(t, s, v, ada), joinAs(t, s, v, nil)
		m := l.tool("edit", `{"file":"secret"}`)
		l.fails(m, mcp.CodeInsufficientScope)
		if !strings.Contains(m.raw, `"message":"this call needs the scope files.secret","data":{"scopes":["files.secret"]}`) {
			t.Errorf("refused with %s", m.raw)
		}
		l.fails(l.call("resources/read", `{"uri":"test:a"}`), mcp.CodeInsufficientScope)
		l.text(l.tool("edit", `{"file":"open"}`))
		local.text(local.tool("edit", `{"file":"secret"}`))
		local.result(local.call("resources/read", `{"uri":"test:a"}`))
	})
	if m := mcp.Code(server.NeedScopes()); m != mcp.CodeInsufficientScope {
		t.Errorf("without scopes the code is %d", m)
	}
}

// Visible is asked with the scopes, also of what is mounted; what it hides does
// not say what it would need. Proves: SEC-TOOL-2.
func TestScopesHidden(t *testing.T) {
	s, _ := scoped(t, true)
	s.Visible(func(ctx context.Context, it server.Item) bool {
		return it.Kind == server.KindTemplate || !slices.ContainsFunc(it.Scopes, func(scope string) bool { return !server.Caller(ctx).Has(scope) })
	})
	each(t, bothEras, func(t *testing.T, v string) {
		l := joinAs(t, s, v, ada)
		l.fails(l.tool("m_tool", `{"v":1}`), mcp.CodeInvalidParams)
		if got := l.call("tools/list", `{}`); strings.Contains(got.raw, "m_tool") || !strings.Contains(got.raw, "m_open") {
			t.Errorf("listed are %s", got.raw)
		}
		for _, uri := range []string{"m+test:text", "m+test:1/t", "m+file:///d/a.txt"} {
			if m := l.call("resources/read", `{"uri":"`+uri+`"}`); m.Error == nil || m.Error.Code == mcp.CodeInsufficientScope {
				t.Errorf("%s: %s", uri, m.raw)
			}
		}
	})
}

// An extension that takes requests over does not get those that lack scopes:
// the refusal would come too late to be one. Proves: SEC-TOOL-2.
func TestScopesBeforeExtensions(t *testing.T) {
	s, _ := scoped(t, false)
	var taken []string
	s.Extend(server.Extension{ID: "com.example/takes", Wrap: func(server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			taken = append(taken, c.Target())
			return map[string]string{}, nil
		}
	}})
	l := joinAs(t, s, v2607, ada)
	l.fails(l.tool("tool", `{"v":1}`), mcp.CodeInsufficientScope)
	l.fails(l.call("prompts/get", `{"name":"prompt"}`), mcp.CodeInsufficientScope)
	l.fails(l.call("resources/read", `{"uri":"test:1/t"}`), mcp.CodeInsufficientScope)
	l.result(l.tool("open", `{}`))
	l.result(l.call("tools/list", `{}`))
	if d := cmp.Diff([]string{"open", ""}, taken); d != "" {
		t.Errorf("taken: %s", d)
	}
}

// What was read with scopes is nobody else's. Ruling 22.
func TestScopedContentsArePrivate(t *testing.T) {
	public := &server.Cache{Public: true}
	s := newServer(unlimited(),
		server.Text("test:open", "o", "").With(server.ResourceOptions{Cache: public}),
		server.Text("test:scoped", "s", "").With(server.ResourceOptions{Cache: public, Scopes: []string{"read"}}),
	)
	l := joinAs(t, s, v2607, &principal.Principal{Subject: "s", Scopes: []string{"read"}})
	for uri, want := range map[string]string{"test:open": "public", "test:scoped": "private"} {
		if m := l.call("resources/read", `{"uri":"`+uri+`"}`); !strings.Contains(m.raw, `"cacheScope":"`+want+`"`) {
			t.Errorf("%s: want %s: %s", uri, want, m.raw)
		}
	}
}

// What no token can grant is a mistake in the program.
func TestScopesThatAreNone(t *testing.T) {
	root, _ := tree(t)
	for _, scope := range []string{"", "a b", `a"b`, `a\b`, "a\n", "ä"} {
		scopes := []string{"good", scope}
		for _, f := range []server.Feature{
			server.Tool("a", "", func(context.Context, none) (string, error) { return "", nil }).With(server.ToolOptions{Scopes: scopes}),
			server.Text("test:a", "a", "").With(server.ResourceOptions{Scopes: scopes}),
			server.Template("test:{v}", "a", func(context.Context, struct {
				V string `uri:"v"`
			},
			) (string, error) {
				return "", nil
			}).With(server.TemplateOptions{Scopes: scopes}),
			server.Prompt("a", "", func(context.Context, mcp.None) (string, error) { return "", nil }).With(server.PromptOptions{Scopes: scopes}),
			server.Directory("file:///d/", root).With(server.ResourceOptions{Scopes: scopes}),
		} {
			panics(t, "scope", func() { newServer(nil, f) })
		}
	}
}

// Proves: Ruling 44. A later With keeps the scopes of an earlier one, and other scopes are refused.
func TestScopesOfSeveralWiths(t *testing.T) {
	root, _ := tree(t)
	tool := func() *server.ToolFeature {
		return server.Tool("a", "", func(context.Context, none) (string, error) { return "ran", nil })
	}
	prompt := func() *server.PromptFeature {
		return server.Prompt("a", "", func(context.Context, mcp.None) (string, error) { return "ran", nil })
	}
	template := func() *server.TemplateFeature {
		return server.Template("test:{v}/t", "a", func(context.Context, struct {
			V string `uri:"v"`
		},
		) (string, error) {
			return "ran", nil
		})
	}
	one, other := []string{"one"}, []string{"other"}
	s := newServer(unlimited(),
		tool().With(server.ToolOptions{Scopes: one}).With(server.ToolOptions{Title: "A"}),
		prompt().With(server.PromptOptions{Scopes: one}).With(server.PromptOptions{Title: "A"}),
		template().With(server.TemplateOptions{Scopes: one}).With(server.TemplateOptions{Title: "A"}),
		server.Text("test:a", "a", "read").With(server.ResourceOptions{Scopes: one}).With(server.ResourceOptions{Title: "A"}),
		server.Directory("file:///d/", root).With(server.ResourceOptions{Scopes: one}).With(server.ResourceOptions{MIMEType: "text/plain"}),
	)
	each(t, versions, func(t *testing.T, v string) {
		l := joinAs(t, s, v, &principal.Principal{Remote: "192.0.2.1"})
		for _, c := range [][2]string{
			{"tools/call", `{"name":"a"}`},
			{"prompts/get", `{"name":"a"}`},
			{"resources/read", `{"uri":"test:x/t"}`},
			{"resources/read", `{"uri":"test:a"}`},
			{"resources/read", `{"uri":"file:///d/a.txt"}`},
		} {
			l.fails(l.call(c[0], c[1]), mcp.CodeInsufficientScope)
		}
	})
	for _, f := range []server.Feature{
		tool().With(server.ToolOptions{Scopes: one}).With(server.ToolOptions{Scopes: other}),
		prompt().With(server.PromptOptions{Scopes: one}).With(server.PromptOptions{Scopes: other}),
		template().With(server.TemplateOptions{Scopes: one}).With(server.TemplateOptions{Scopes: other}),
		server.Text("test:a", "a", "").With(server.ResourceOptions{Scopes: one}).With(server.ResourceOptions{Scopes: other}),
		server.Directory("file:///d/", root).With(server.ResourceOptions{Scopes: one}).With(server.ResourceOptions{Scopes: other}),
	} {
		panics(t, "Scopes is set twice", func() { newServer(nil, f) })
	}
	method := server.Method("example/a", func(*server.Call, none) (mcp.None, error) { return mcp.None{}, nil }).
		With(server.MethodOptions{Revisions: server.Handshake}).With(server.MethodOptions{Revisions: server.Stateless})
	panics(t, "Revisions is set twice", func() {
		newServer(nil).Extend(server.Extension{ID: "com.example/a", Methods: []*server.ExtensionMethod{method}})
	})
}

func ExampleNeedScopes() {
	s := server.New("files", "1", nil)
	type args struct {
		Path string `json:"path"`
	}
	s.Add(server.Tool("delete", "Deletes a file.", func(ctx context.Context, in args) (string, error) {
		if strings.HasPrefix(in.Path, "/etc/") && !server.Caller(ctx).Has("files.system") {
			return "", server.NeedScopes("files.write", "files.system")
		}
		return "deleted", nil
	}).With(server.ToolOptions{Scopes: []string{"files.write"}}))
	fmt.Println(server.NeedScopes("files.write", "files.system"))
	// Output: this call needs the scopes files.write, files.system
}
