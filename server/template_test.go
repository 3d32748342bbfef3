package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/uritemplate"
)

type repo struct {
	Owner string `uri:"owner"`
	Name  string `uri:"name"`
}

type issue struct {
	Owner string `uri:"owner"`
	N     int    `uri:"n"`
}

type file struct {
	Path string `uri:"path"`
}

func templates() []server.Feature {
	return []server.Feature{
		server.Template("gh://{owner}/{name}", "repo", func(_ context.Context, v repo) (string, error) {
			return fmt.Sprintf("repo %s of %s", v.Name, v.Owner), nil
		}).With(server.TemplateOptions{
			MIMEType: "text/x-repo", Title: "Repository",
			Complete: map[string]server.Completer{
				"owner": server.Choices("ada", "adam", "bob"),
				"name": func(_ context.Context, value string, sofar map[string]string) ([]string, error) {
					return []string{sofar["owner"] + "-" + value}, nil
				},
			},
		}),
		server.Template("gh://{owner}/issues/{n}", "issue", func(_ context.Context, v issue) (string, error) {
			return fmt.Sprintf("issue %d of %s", v.N, v.Owner), nil
		}),
		server.Template("tree:///{+path}", "tree", func(_ context.Context, v file) (string, error) { return "at " + v.Path, nil }),
	}
}

// Variables are decoded once, typed, and bounded by the template.
// Proves: SEC-RES-6, SEC-RES-1, FLOW-RES.
func TestTemplateRead(t *testing.T) {
	s := newServer(unlimited(), append(templates(), serving("gh://static/one", "static"))...)
	each(t, bothEras, func(t *testing.T, v string) {
		l := join(t, s, v)
		for uri, want := range map[string]string{
			"gh://ada/engine":        "repo engine of ada",
			"gh://ada/a%20b":         "repo a b of ada",
			"gh://static/one":        "static", // a resource comes before a template
			"gh://ada/issues/7":      "issue 7 of ada",
			"tree:///a/b/c":          "at a/b/c",
			"gh://ada/engine/extra":  "",
			"gh://ada/%2e%2e":        "",
			"gh://ada/..":            "",
			"gh://ada/a%2Fb":         "",
			"gh://ada/a%5Cb":         "",
			"gh://ada/a%00b":         "",
			"gh://ada/a%zz":          "",
			"gh://ada/":              "",
			"gh://ada/issues/seven":  "",
			"gh://ada/issues/7/more": "",
		} {
			m := l.read1(uri)
			if want == "" {
				if m.Error == nil {
					t.Errorf("%s gives %s", uri, m.raw)
				}
				continue
			}
			got := decode[readResult](t, l.result(m))
			if got.Contents[0].Text != want || got.Contents[0].URI != uri {
				t.Errorf("%s gives %s", uri, m.raw)
			}
		}
	})
	l := join(t, s, v2607)
	if got := decode[readResult](t, l.result(l.read1("gh://ada/x"))); got.Contents[0].MIMEType != "text/x-repo" {
		t.Errorf("MIME type is %s", got.Contents[0].MIMEType)
	}
}

// Proves: FLOW-RES.
func TestTemplateList(t *testing.T) {
	s := newServer(nil, templates()...)
	each(t, versions, func(t *testing.T, v string) {
		l := join(t, s, v)
		got := decode[struct {
			ResourceTemplates []struct {
				URITemplate string `json:"uriTemplate"`
				Title       string `json:"title"`
			} `json:"resourceTemplates"`
		}](t, l.result(l.call("resources/templates/list", emptyBody)))
		var list []string
		for _, x := range got.ResourceTemplates {
			list = append(list, strings.TrimSpace(x.URITemplate+" "+x.Title))
		}
		want := []string{"gh://{owner}/issues/{n}", "gh://{owner}/{name} Repository", "tree:///{+path}"}
		if v < v2506 {
			want[1] = "gh://{owner}/{name}"
		}
		if d := cmp.Diff(want, list); d != "" {
			t.Error(d)
		}
	})
}

// Proves: SEC-RES-6.
func TestTemplateRegistration(t *testing.T) {
	read := func(context.Context, repo) (string, error) { return "", nil }
	panics(t, "template", func() { server.Template("gh://{owner", "x", read) })
	panics(t, "template", func() { server.Template("gh://{owner}", "x", read) })            // name is missing
	panics(t, "template", func() { server.Template("gh://{owner}/{name}/{x}", "x", read) }) // x has no field
	panics(t, "is no contents", func() {
		server.Template("gh://{owner}/{name}", "x", func(context.Context, repo) (int, error) { return 0, nil })
	})
	panics(t, "no variable of it", func() {
		newServer(nil, server.Template("gh://{owner}/{name}", "x", read).With(server.TemplateOptions{Complete: map[string]server.Completer{"nme": server.Choices()}}))
	})
}

type completion struct {
	Completion struct {
		Values  []string `json:"values"`
		Total   *int     `json:"total"`
		HasMore bool     `json:"hasMore"`
	} `json:"completion"`
}

func (l *line) complete(ref, name, value, rest string) message {
	l.t.Helper()
	return l.call("completion/complete", fmt.Sprintf(`{"ref":%s,"argument":{"name":%q,"value":%q}%s}`, ref, name, value, rest))
}

// Proves: FLOW-COMPLETE, SEC-COMP-1.
func TestComplete(t *testing.T) {
	var many []string
	for i := range 150 {
		many = append(many, fmt.Sprintf("v%03d", i))
	}
	o := unlimited()
	o.Limits.MaxArgument = 20
	s := newServer(o, append(templates(), server.Prompt("review", "", func(context.Context, struct {
		Lang  string `json:"lang"`
		Other string `json:"other"`
	},
	) (string, error) {
		return "", nil
	}).With(server.PromptOptions{Complete: map[string]server.Completer{"lang": server.Choices(many...)}}))...)
	const tpl, pr = `{"type":"ref/resource","uri":"gh://{owner}/{name}"}`, `{"type":"ref/prompt","name":"review"}`
	each(t, versions, func(t *testing.T, v string) {
		l := join(t, s, v)
		for _, c := range []struct {
			ref, name, value, rest string
			want                   []string
		}{
			{tpl, "owner", "ad", "", []string{"ada", "adam"}},
			{tpl, "owner", "zz", "", []string{}},
			{tpl, "name", "x", `,"context":{"arguments":{"owner":"bob"}}`, []string{"bob-x"}},
			{pr, "lang", "v00", "", many[:10]},
			{pr, "lang", "", "", many[:100]},
			{pr, "other", "", "", []string{}},
		} {
			if c.rest != "" && v < v2506 {
				continue // the revision has no context
			}
			got := decode[completion](t, l.result(l.complete(c.ref, c.name, c.value, c.rest)))
			if d := cmp.Diff(c.want, got.Completion.Values); d != "" {
				t.Errorf("%s %q: %s", c.name, c.value, d)
			}
			if more := c.name == "lang" && c.value == ""; got.Completion.HasMore != more || more && *got.Completion.Total != 150 {
				t.Errorf("%s: hasMore %v, total %v", c.name, got.Completion.HasMore, got.Completion.Total)
			}
		}
		for _, c := range [][3]string{
			{tpl, "nosuch", ""},
			{`{"type":"ref/resource","uri":"gh://nosuch"}`, "owner", ""},
			{`{"type":"ref/prompt","name":"nosuch"}`, "lang", ""},
			{`{"type":"ref/tool","name":"review"}`, "lang", ""},
			{tpl, "owner", strings.Repeat("x", 21)},
		} {
			l.fails(l.complete(c[0], c[1], c[2], ""), mcp.CodeInvalidParams)
		}
	})
}

// Without completers the capability is missing; the oldest revision has none
// to declare. Ruling 5. Proves: SEC-CAP-1.
func TestCompleteCapability(t *testing.T) {
	s := newServer(nil, server.Prompt("p", "", func(context.Context, struct {
		A string `json:"a"`
	},
	) (string, error) {
		return "", nil
	}))
	for _, v := range versions {
		l := join(t, s, v)
		m := l.complete(`{"type":"ref/prompt","name":"p"}`, "a", "", "")
		if v == v2024 {
			l.result(m)
			continue
		}
		l.fails(m, mcp.CodeMethodNotFound)
	}
}

// Templates list what exists, for each caller what is theirs, here and where the
// server is mounted; what does not fit stays out.
func TestTemplateListsResources(t *testing.T) {
	var text logtest.Log
	child := newServer(&server.Options{Logger: text.Logger(), Cache: server.Cache{Public: true}}, server.Text("note:of/static", "fixed", "F"),
		server.Template("note:of/{id}", "notes", func(_ context.Context, v struct {
			ID string `uri:"id"`
		},
		) (string, error) {
			return "note " + v.ID, nil
		}).With(server.TemplateOptions{MIMEType: "text/x-note", List: func(ctx context.Context) ([]mcp.Resource, error) {
			who := server.Caller(ctx).Subject
			if who == "bob" {
				return nil, mcp.Errorf("no notes for %s", who)
			}
			return []mcp.Resource{{URI: "note:of/" + who, Name: who}, {URI: "note:of/static", Name: "taken"}, {URI: "else:x", Name: "x"}}, nil
		}}))
	top := newServer(nil)
	top.Mount("n", child)
	for prefix, s := range map[string]*server.Server{"": child, "n+": top} {
		l := joinAs(t, s, v2607, ada)
		got := string(l.result(l.call("resources/list", emptyBody)))
		want := `"resources":[{"uri":"` + prefix + `note:of/ada","name":"ada","mimeType":"text/x-note"},{"uri":"` + prefix + `note:of/static","name":"fixed"}]`
		if !strings.Contains(got, want) || !strings.Contains(got, `"cacheScope":"private"`) {
			t.Errorf("got %s", got)
		}
		if got := string(l.result(l.call("resources/read", `{"uri":"`+prefix+`note:of/ada"}`))); !strings.Contains(got, "note ada") {
			t.Errorf("got %s", got)
		}
		l = joinAs(t, s, v2607, bob)
		l.fails(l.call("resources/list", emptyBody), mcp.CodeInternalError)
	}
	if !strings.Contains(text.String(), "does not fit its template") || !strings.Contains(text.String(), "else:x") {
		t.Errorf("no warning: %s", text.String())
	}
	l := join(t, child, v2511)
	child.ResourcesChanged()
	l.note(mcp.NotifyResourcesListChanged)
}

// A resource that two templates list is that of the first in order, each time.
func TestListedTwice(t *testing.T) {
	lists := func(name string) server.TemplateOptions {
		return server.TemplateOptions{List: func(context.Context) ([]mcp.Resource, error) {
			return []mcp.Resource{{URI: "test://a/b", Name: name}}, nil
		}}
	}
	read := func(context.Context, string, uritemplate.Values) (*mcp.ReadResourceResult, error) { return nil, nil }
	var features []server.Feature
	for _, name := range []string{"b", "a", "d", "c"} {
		features = append(features, server.RawTemplate(mcp.ResourceTemplate{URITemplate: "test://a/{" + name + "}", Name: name}, read).With(lists(name)))
	}
	l := join(t, newServer(unlimited(), features...), v2607)
	for range 20 {
		if list := decode[mcp.ListResourcesResult](t, l.call("resources/list", "{}").Result); len(list.Resources) != 1 || list.Resources[0].Name != "a" {
			t.Fatalf("listed %+v", list.Resources)
		}
	}
}
