package server_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/uritemplate"
)

func user(text string) *mcp.GetPromptResult {
	return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{{Role: mcp.RoleUser, Content: mcp.Text(text)}}}
}

func contents(text string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{Text: text}}}
}

// What a gateway knows of a feature is its definition: that is what it serves,
// with completion, under the names of its own server also when it is mounted.
func TestRawFeatures(t *testing.T) {
	complete := func(_ context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
		return &mcp.CompleteResult{Completion: mcp.Completion{
			Values: []string{p.Ref.Name + p.Ref.URI + " " + p.Argument.Name + " " + p.Argument.Value}, Total: new(int64(700)), HasMore: true,
		}}, nil
	}
	child := newServer(nil,
		server.RawPrompt(mcp.Prompt{
			Name: "review", Title: "Review", Description: "Reviews.", Meta: mcp.Meta{"com.example/a": mcp.RawValue("1")},
			Arguments: []mcp.PromptArgument{{Name: "code", Title: "Code", Required: true}, {Name: "style"}},
		}, func(_ context.Context, arguments map[string]string) (*mcp.GetPromptResult, error) {
			return user(arguments["code"] + "/" + arguments["style"]), nil
		}).With(server.PromptOptions{CompleteRaw: complete, Complete: map[string]server.Completer{"style": server.Choices("terse")}}),
		server.RawResource(mcp.Resource{URI: "test:a", Name: "a", Title: "A", MIMEType: "text/x"}, func(_ context.Context, uri string) (*mcp.ReadResourceResult, error) {
			return contents("read " + uri), nil
		}),
		server.RawTemplate(mcp.ResourceTemplate{URITemplate: "test:of/{id}", Name: "of", Title: "Of"}, func(_ context.Context, uri string, v uritemplate.Values) (*mcp.ReadResourceResult, error) {
			return contents(uri + " is " + v.Get("id")), nil
		}).With(server.TemplateOptions{CompleteRaw: complete, Description: "more"}),
	)
	top := newServer(nil)
	top.Mount("gh", child)
	for _, at := range []struct {
		s            *server.Server
		name, scheme string
	}{{child, "", ""}, {top, "gh_", "gh+"}} {
		each(t, bothEras, func(t *testing.T, version string) {
			l := join(t, at.s, version)
			for _, try := range []struct{ method, params, want string }{
				{"prompts/list", `{}`, `{"name":"` + at.name + `review","title":"Review","description":"Reviews.","arguments":[{"name":"code","title":"Code","required":true},{"name":"style"}],"_meta":{"com.example/a":1}}`},
				{"prompts/get", `{"name":"` + at.name + `review","arguments":{"code":"f()","style":"terse"}}`, `"text":"f()/terse"`},
				{"resources/list", `{}`, `"title":"A"`},
				{"resources/read", `{"uri":"` + at.scheme + `test:a"}`, `"mimeType":"text/x","text":"read test:a"`},
				{"resources/templates/list", `{}`, `"title":"Of","description":"more"`},
				{"resources/read", `{"uri":"` + at.scheme + `test:of/7"}`, `"text":"test:of/7 is 7"`},
				{"completion/complete", `{"ref":{"type":"ref/prompt","name":"` + at.name + `review"},"argument":{"name":"code","value":"x"}}`, `"values":["review code x"],"total":700,"hasMore":true`},
				{"completion/complete", `{"ref":{"type":"ref/prompt","name":"` + at.name + `review"},"argument":{"name":"style","value":"t"}}`, `"values":["terse"],"total":1`},
				{"completion/complete", `{"ref":{"type":"ref/resource","uri":"` + at.scheme + `test:of/{id}"},"argument":{"name":"id","value":"x"}}`, `"values":["test:of/{id} id x"]`},
			} {
				if got := string(l.result(l.call(try.method, try.params))); !strings.Contains(got, try.want) {
					t.Errorf("%s %s:\ngot %s\nwant %s", try.method, try.params, got, try.want)
				}
			}
			if text := l.fails(l.call("prompts/get", `{"name":"`+at.name+`review","arguments":{"style":"x"}}`), mcp.CodeInvalidParams); !strings.Contains(text, `"code" is missing`) {
				t.Errorf("got %q", text)
			}
			if text := l.fails(l.call("prompts/get", `{"name":"`+at.name+`review","arguments":{"code":"","x":"x"}}`), mcp.CodeInvalidParams); !strings.Contains(text, `unknown argument "x"`) {
				t.Errorf("got %q", text)
			}
		})
	}
}

// What is made while a program runs fails with an error that says what is wrong,
// and in the author's terms.
func TestConstructorErrors(t *testing.T) {
	tool := func(def mcp.Tool) error {
		_, err := server.NewRawTool(def, nil)
		return err
	}
	_, typed := server.NewTool("get user", "", func(context.Context, none) (string, error) { return "", nil })
	_, in := server.NewTool("a", "", func(context.Context, chan int) (string, error) { return "", nil })
	_, prompt := server.NewPrompt("p", "", func(context.Context, none) (int, error) { return 0, nil })
	_, twice := server.NewRawPrompt(mcp.Prompt{Name: "p", Arguments: []mcp.PromptArgument{{Name: "a"}, {Name: "a"}}}, nil)
	_, resource := server.NewResource("a b", "a", func(context.Context) (string, error) { return "", nil })
	_, raw := server.NewRawResource(mcp.Resource{URI: "nothing"}, nil)
	_, template := server.NewTemplate("test:{x", "a", func(context.Context, none) (string, error) { return "", nil })
	_, rawTemplate := server.NewRawTemplate(mcp.ResourceTemplate{URITemplate: "test:{"}, nil)
	reserved := mcp.Meta{"io.modelcontextprotocol/x": mcp.RawValue("1")}
	_, meta := server.NewRawResource(mcp.Resource{URI: "test:a", Meta: reserved}, nil)
	object := mcp.RawValue(`{"type":"object"}`)
	s := newServer(nil)
	for _, try := range []struct {
		err  error
		want string
	}{
		{typed, `tool name "get user"`},
		{in, `tool "a": arguments`},
		{tool(mcp.Tool{Name: "get user", InputSchema: object}), "LegalName"},
		{tool(mcp.Tool{Name: "a"}), `the definition has no InputSchema; {"type":"object"}`},
		{tool(mcp.Tool{Name: "a", InputSchema: mcp.RawValue(`{"type":"array"}`)}), `must be "object"`},
		{tool(mcp.Tool{Name: "a", InputSchema: mcp.RawValue(`{"type":"object","properties":{"a":{"type":"text"}}}`)}), `tool "a": inputSchema`},
		{tool(mcp.Tool{Name: "a", InputSchema: mcp.RawValue(`{"type":"object","properties":{"a":{"$ref":"#/nowhere"}}}`)}), `tool "a": inputSchema`},
		{tool(mcp.Tool{Name: "a", InputSchema: object, OutputSchema: mcp.RawValue(`7`)}), "outputSchema"},
		{tool(mcp.Tool{Name: "a", InputSchema: object, Meta: reserved}), "reserved"},
		{prompt, "is no message"},
		{twice, "twice"},
		{resource, "U+0020"},
		{raw, "no scheme"},
		{template, "template"},
		{rawTemplate, "template"},
		{meta, "reserved"},
		{s.TryAdd(echo(), server.Text("test:a", "a", "").With(server.ResourceOptions{Meta: reserved})), "reserved"},
	} {
		if try.err == nil || !strings.Contains(try.err.Error(), try.want) || strings.Contains(try.err.Error(), "parley:") {
			t.Errorf("got %v, want %q", try.err, try.want)
		}
	}
	l := join(t, s, v2607)
	l.fails(l.call("tools/list", emptyBody), mcp.CodeMethodNotFound) // nothing was added
	if err := s.TryAdd(echo()); err != nil {
		t.Errorf("adding: %v", err)
	}
}

// A feature without a function would fail at its first use.
func TestNilFunctions(t *testing.T) {
	object := mcp.RawValue(`{"type":"object"}`)
	for _, err := range []error{
		second(server.NewTool[none, string]("a", "", nil)),
		second(server.NewRawTool(mcp.Tool{Name: "a", InputSchema: object}, nil)),
		second(server.NewUncheckedTool(mcp.Tool{Name: "a", InputSchema: object}, nil)),
		second(server.NewPrompt[none, string]("a", "", nil)),
		second(server.NewRawPrompt(mcp.Prompt{Name: "a"}, nil)),
		second(server.NewResource[string]("test:a", "a", nil)),
		second(server.NewRawResource(mcp.Resource{URI: "test:a"}, nil)),
		second(server.NewTemplate[none, string]("test:a", "a", nil)),
		second(server.NewRawTemplate(mcp.ResourceTemplate{URITemplate: "test:{a}"}, nil)),
	} {
		if err == nil || !strings.Contains(err.Error(), "its function is nil") || strings.Contains(err.Error(), "beside") {
			t.Errorf("got %v", err)
		}
	}
}

// second is the error, with which there is no feature.
func second[F any](f *F, err error) error {
	if err != nil && f != nil {
		return fmt.Errorf("a feature beside the error %w", err)
	}
	return err
}

func TestLegalName(t *testing.T) {
	seen := make(map[string]string)
	for _, text := range []string{"get user", "get-user.v2", "", "  ", "获取用户", "删除用户", "ü", "__", strings.Repeat("x", 128), strings.Repeat("x", 129), strings.Repeat("x", 130), "a\x00/b"} {
		name := server.LegalName(text)
		if _, err := server.NewTool(name, "", func(context.Context, none) (string, error) { return "", nil }); err != nil {
			t.Errorf("%q becomes %q: %v", text, name, err)
		}
		if old, ok := seen[name]; ok {
			t.Errorf("%q and %q are both %q", old, text, name)
		}
		seen[name] = text
	}
	for _, name := range []string{"users__create", "_private", "a_", "-x."} {
		if got := server.LegalName(name); got != name {
			t.Errorf("%q, which is legal, becomes %q", name, got)
		}
	}
	if server.LegalName("get user") != "get_user" || server.LegalName("get-user.v2") != "get-user.v2" || server.LegalName("a\x00/b") != "a_b" {
		t.Errorf("got %v", seen)
	}
}

// Each caller is shown the definition that is meant for it, and nobody the one
// of somebody else: not from a cache, not from a page.
func TestToolVariant(t *testing.T) {
	child := newServer(&server.Options{Cache: server.Cache{Public: true}}, echo(), server.Tool("report", "Reports.", func(context.Context, struct {
		Team string `json:"team,omitzero"`
	},
	) (string, error) {
		return "done", nil
	}).With(server.ToolOptions{Variant: func(ctx context.Context, def mcp.Tool) mcp.Tool {
		who := server.Caller(ctx)
		if who.Subject != "ada" {
			def.InputSchema = mcp.RawValue(`{"type":"object"}`)
		}
		def.Name, def.Description = "other", "For "+who.Subject+"."
		return def
	}}))
	top := newServer(&server.Options{Cache: server.Cache{Public: true}})
	top.Mount("gh", child)
	for name, s := range map[string]*server.Server{"": child, "gh_": top} {
		each(t, bothEras, func(t *testing.T, version string) {
			for _, who := range []*principal.Principal{ada, bob, ada} {
				l := joinAs(t, s, version, who)
				got := string(l.result(l.call("tools/list", emptyBody)))
				if !strings.Contains(got, `"name":"`+name+`report","description":"For `+who.Subject+`."`) || strings.Contains(got, "team") != (who == ada) {
					t.Errorf("%s is shown %s", who.Subject, got)
				}
				if l.modern() && !strings.Contains(got, `"cacheScope":"private"`) {
					t.Errorf("the list may be shared: %s", got)
				}
				if text := l.text(l.tool(name+"report", emptyBody)); text != "done" {
					t.Errorf("got %q", text)
				}
			}
		})
	}
}

// One variant that is faulty leaves its tool out, and nothing else: the list is
// whole for others, calls of it are refused, and the log says why, once.
func TestFaultyVariant(t *testing.T) {
	for name, test := range map[string]struct {
		variant func(def mcp.Tool) mcp.Tool
		why     string
	}{
		"panics":               {func(mcp.Tool) mcp.Tool { panic("swordfish") }, "swordfish"},
		"no schema":            {func(def mcp.Tool) mcp.Tool { def.InputSchema = nil; return def }, "input schema"},
		"no JSON":              {func(def mcp.Tool) mcp.Tool { def.InputSchema = mcp.RawValue("{"); return def }, "input schema"},
		"schema of no object":  {func(def mcp.Tool) mcp.Tool { def.InputSchema = mcp.RawValue(`{"type":"string"}`); return def }, "must be"},
		"no JSON for a result": {func(def mcp.Tool) mcp.Tool { def.OutputSchema = mcp.RawValue("{"); return def }, "output schema"},
		"_meta that is none": {func(def mcp.Tool) mcp.Tool {
			def.Meta = mcp.Meta{"example.com/x": mcp.RawValue("{")}
			return def
		}, "left out"},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, bothEras, func(t *testing.T, version string) {
				var text logtest.Log
				child := newServer(&server.Options{Logger: text.Logger()}, echo(), give("fine", "fine").With(server.ToolOptions{
					Variant: func(ctx context.Context, def mcp.Tool) mcp.Tool {
						if server.Caller(ctx).Subject == "ada" {
							return def
						}
						return test.variant(def)
					},
				}))
				top := newServer(&server.Options{Logger: text.Logger()})
				top.Mount("gh", child)
				for prefix, s := range map[string]*server.Server{"": child, "gh_": top} {
					whole := joinAs(t, s, version, ada)
					if names, _ := whole.pages(); !slices.Equal(names, []string{prefix + "echo", prefix + "fine"}) {
						t.Errorf("ada is shown %q", names)
					}
					if got := whole.text(whole.tool(prefix+"fine", emptyBody)); got != "fine" {
						t.Errorf("got %q", got)
					}
					l := joinAs(t, s, version, bob)
					for range 3 {
						if names, _ := l.pages(); !slices.Equal(names, []string{prefix + "echo"}) {
							t.Errorf("bob is shown %q", names)
						}
					}
					if got := l.fails(l.tool(prefix+"fine", emptyBody), mcp.CodeInternalError); !strings.Contains(got, "no usable definition") || strings.Contains(got, "swordfish") {
						t.Errorf("the call fails with %s", got)
					}
					if got := l.text(l.tool(prefix+"echo", `{"text":"still here"}`)); got != "still here" {
						t.Errorf("got %q", got)
					}
				}
				if got := text.String(); strings.Count(got, "tool left out") != 1 || !strings.Contains(got, test.why) {
					t.Errorf("the log says %s", got)
				}
			})
		})
	}
}

// A context that the middleware of a mounted server derives reaches its features.
func TestMountedMiddlewareContext(t *testing.T) {
	child := newServer(nil,
		server.Tool("who", "", func(ctx context.Context, _ none) (string, error) { return ctx.Value(userKey{}).(string), nil }),
		server.Resource("test:who", "who", func(ctx context.Context) (string, error) { return ctx.Value(userKey{}).(string), nil }),
		server.Prompt("who", "", func(ctx context.Context, _ mcp.None) (string, error) {
			if ctx.Value(userKey{}) == nil {
				return "", errors.New("nobody")
			}
			return ctx.Value(userKey{}).(string), nil
		}),
	)
	child.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			return next(c.WithContext(context.WithValue(c, userKey{}, "inner")))
		}
	})
	top := newServer(nil)
	top.Mount("gh", child)
	l := join(t, top, v2607)
	for _, m := range []message{l.tool("gh_who", emptyBody), l.call("resources/read", `{"uri":"gh+test:who"}`), l.call("prompts/get", `{"name":"gh_who"}`)} {
		if got := string(l.result(m)); !strings.Contains(got, `"inner"`) {
			t.Errorf("got %s", got)
		}
	}
}
