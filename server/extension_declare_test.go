package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
)

// slow is a tool whose label says how an extension may run it.
func slow(name string, labels ...string) server.Feature {
	return server.Tool(name, "", func(context.Context, none) (string, error) { return name, nil }).With(server.ToolOptions{Labels: labels})
}

// declaring is an extension that was part of the core in some revisions.
func declaring() server.Extension {
	return server.Extension{
		ID:           "com.example/later",
		Capabilities: []server.Capability{{Name: "later", Value: map[string]any{"cancel": map[string]any{}}, Revisions: server.CoreTasks}},
		ToolMembers: func(it server.Item, def *mcp.Tool, in server.Revisions) map[string]any {
			if in&server.CoreTasks == 0 || !slices.Contains(it.Labels, "long") {
				return nil
			}
			return map[string]any{"execution": map[string]string{"laterSupport": "required " + it.Name + " " + def.Name}}
		},
	}
}

// An extension is declared in its revisions, and what was part of the core where it was.
func TestExtensionDeclared(t *testing.T) {
	s := newServer(nil, echo())
	s.Extend(declaring())
	s.Extend(server.Extension{ID: "com.example/old", Revisions: server.Handshake})
	s.Extend(server.Extension{ID: "com.example/all", Revisions: server.AllRevisions})
	for _, version := range versions {
		var got string
		switch l := dial(t, s, version, nil); {
		case l.modern():
			got = string(l.result(l.call("server/discover", emptyBody)))
		default:
			got = string(l.result(l.handshake()))
		}
		for member, want := range map[string]bool{
			`"com.example/later":{}`: version == v2607,
			`"com.example/old":{}`:   version != v2607,
			`"com.example/all":{}`:   true,
			`"later":{"cancel":{}}`:  version == v2511,
		} {
			if strings.Contains(got, member) != want {
				t.Errorf("%s: %s: want %t, got %s", version, member, want, got)
			}
		}
	}
	for _, name := range []string{"", "tools", "extensions"} {
		panics(t, "is no name for a capability", func() {
			newServer(nil).Extend(server.Extension{ID: "com.example/x", Capabilities: []server.Capability{{Name: name}}})
		})
	}
	panics(t, "not a JSON object", func() {
		newServer(nil).Extend(server.Extension{ID: "com.example/x", Capabilities: []server.Capability{{Name: "x", Value: 7}}})
	})
}

// Entries of tools have the members of an extension in the revisions that it says,
// also those of mounted servers and with a variant.
func TestToolMembers(t *testing.T) {
	inner := newServer(nil, slow("deep", "long"))
	s := newServer(nil, slow("plain"), slow("heavy", "long"),
		server.Tool("varied", "", func(context.Context, none) (string, error) { return "", nil }).With(server.ToolOptions{
			Labels: []string{"long"}, Variant: func(_ context.Context, def mcp.Tool) mcp.Tool { return def },
		}))
	s.Mount("in", inner)
	s.Extend(declaring())
	for _, version := range versions {
		l := join(t, s, version)
		for range 2 { // the second is from the cache
			got := string(l.result(l.call("tools/list", emptyBody)))
			for _, name := range []string{"heavy", "varied", "in_deep"} {
				member := fmt.Sprintf(`"execution":{"laterSupport":"required %s %s"}`, name, name)
				if strings.Contains(got, member) != (version == v2511) {
					t.Errorf("%s: %s in %s", version, member, got)
				}
			}
			if strings.Count(got, "laterSupport") > 3 {
				t.Errorf("%s: %s", version, got)
			}
		}
	}
}

// Members that an entry cannot have are left out, and the tool stays.
func TestToolMembersRefused(t *testing.T) {
	for want, f := range map[string]func() map[string]any{
		`member \"name\" already`:      func() map[string]any { return map[string]any{"name": "other"} },
		"x: ":                          func() map[string]any { return map[string]any{"x": func() {}} },
		"background function panicked": func() map[string]any { panic("broken") },
	} {
		var lines logtest.Log
		o := quiet()
		o.Logger = slog.New(slog.NewTextHandler(&lines, nil))
		s := newServer(o, echo())
		s.Extend(server.Extension{ID: "com.example/x", ToolMembers: func(server.Item, *mcp.Tool, server.Revisions) map[string]any { return f() }})
		l := join(t, s, v2607)
		if got := string(l.result(l.call("tools/list", emptyBody))); strings.Count(got, `"name":"echo"`) != 1 || strings.Contains(got, "other") {
			t.Errorf("got %s", got)
		}
		if !strings.Contains(lines.String(), want) {
			t.Errorf("log has no %s: %s", want, lines.String())
		}
	}
}

// A tool that needs an extension does not exist for clients without it.
func TestExtensionVisible(t *testing.T) {
	s := newServer(nil, slow("plain"), slow("heavy", "long"))
	s.Extend(server.Extension{ID: jobsID, Visible: func(c *server.Call, it server.Item) bool {
		return !slices.Contains(it.Labels, "long") || c.HasExtension(jobsID)
	}})
	s.Visible(func(_ context.Context, it server.Item) bool { return it.Name != "hidden" }) // both hold
	s.Add(slow("hidden"))
	without, with := join(t, s, v2607), joinJobs(t, s)
	if got := string(without.result(without.call("tools/list", emptyBody))); strings.Contains(got, "heavy") || !strings.Contains(got, "plain") {
		t.Errorf("without: %s", got)
	}
	without.fails(without.tool("heavy", emptyBody), mcp.CodeInvalidParams)
	got := string(with.result(with.call("tools/list", emptyBody)))
	if !strings.Contains(got, "heavy") || strings.Contains(got, "hidden") || !strings.Contains(got, `"cacheScope":"private"`) {
		t.Errorf("with: %s", got)
	}
	if text := with.text(with.tool("heavy", emptyBody)); text != "heavy" {
		t.Errorf("got %s", text)
	}
}

// What an extension of a mounted server hides stays hidden where the server is
// mounted, at any depth: in lists, for calls and for the check of headers.
func TestExtensionVisibleMounted(t *testing.T) {
	inner := newServer(nil, slow("heavy"), server.Prompt("ask", "", func(context.Context, none) (string, error) { return "x", nil }),
		server.Text("test:a", "a", "A"),
		server.Tool("route", "", func(context.Context, routed) (string, error) { return "x", nil }))
	inner.Extend(server.Extension{ID: jobsID, Visible: func(c *server.Call, it server.Item) bool {
		if strings.Contains(it.Name, "mid") {
			t.Errorf("the inner server is asked about %s", it.Name)
		}
		return c.HasExtension(jobsID)
	}})
	mid, outer := newServer(nil), newServer(nil)
	mid.Mount("in", inner)
	outer.Mount("mid", mid)
	each(t, bothEras, func(t *testing.T, version string) {
		l, with := join(t, outer, version), dial(t, outer, version, nil)
		if with.caps = jobCaps; !with.modern() {
			with.handshake()
		}
		for method, name := range map[string]string{"tools/list": "mid_in_heavy", "prompts/list": "mid_in_ask", "resources/list": "mid+in+test:a"} {
			if got := string(l.result(l.call(method, emptyBody))); strings.Contains(got, name) {
				t.Errorf("listed: %s", got)
			}
			if got := string(with.result(with.call(method, emptyBody))); !strings.Contains(got, name) {
				t.Errorf("with the extension: %s", got)
			}
		}
		l.fails(l.tool("mid_in_heavy", emptyBody), mcp.CodeInvalidParams)
		l.fails(l.prompt("mid_in_ask", emptyBody), mcp.CodeInvalidParams)
		if m := l.read1("mid+in+test:a"); m.Error == nil {
			t.Errorf("read: %s", m.raw)
		}
		if got := with.text(with.tool("mid_in_heavy", emptyBody)); got != "heavy" {
			t.Errorf("got %s", got)
		}
	})
	r := transport.Route{Carried: true, Version: v2607, Method: mcp.MethodToolsCall, Name: "mid_in_route"}
	params := `{"name":"mid_in_route","arguments":{"region":"eu"},` + newestMeta + `}`
	if a := carry(t, outer, r, mcp.MethodToolsCall, params); a.answer.Error == nil || a.answer.Error.Code != mcp.CodeInvalidParams {
		t.Errorf("the header check tells that the tool is there: %+v", a.answer.Error)
	}
}

// Without sessions nothing of an extension is declared, neither itself nor its
// capabilities.
func TestExtensionUndeclaredWithoutSession(t *testing.T) {
	s := newServer(nil, echo())
	e := declaring()
	e.Revisions = server.AllRevisions
	s.Extend(e)
	in, err := jsonrpc.Parse(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`, v2511), jsonrpc.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	a := new(alone)
	s.Serve(t.Context(), &transport.Exchange{In: in, Version: v2511, Principal: principal.Local, Out: a})
	if a.answer == nil || a.answer.Error != nil {
		t.Fatalf("got %+v", a.answer)
	}
	got, err := a.answer.Result.AppendJSON(nil)
	if err != nil || strings.Contains(string(got), "later") || !strings.Contains(string(got), `"tools":{}`) {
		t.Errorf("got %s, %v", got, err)
	}
}

// An extension that is about resources has the capability declared before there is one,
// in its revisions.
func TestExtensionResources(t *testing.T) {
	s := newServer(nil, echo())
	s.Extend(server.Extension{ID: "com.example/files", Resources: true})
	for _, version := range versions {
		l, got := dial(t, s, version, nil), ""
		if l.modern() {
			got = string(l.result(l.call("server/discover", emptyBody)))
		} else {
			got = string(l.result(l.handshake()))
		}
		if strings.Contains(got, `"resources":{`) != (version == v2607) {
			t.Errorf("%s: %s", version, got)
		}
	}
}

// A method of an extension can tell which resources its caller has.
func TestCanRead(t *testing.T) {
	s := newServer(nil, server.Text("test:open", "o", "x"), server.Text("test:secret", "s", "x"))
	s.Visible(func(ctx context.Context, it server.Item) bool {
		return it.Name != "test:secret" || server.Caller(ctx).Has("admin")
	})
	s.Extend(server.Extension{ID: shelfID, Methods: []*server.ExtensionMethod{
		server.Method("shelf/has", func(c *server.Call, p bookParams) (map[string]bool, error) {
			return map[string]bool{"has": c.CanRead(p.Title)}, nil
		}).With(server.MethodOptions{Anyone: true}),
	}})
	admin := &principal.Principal{Subject: "root", Scopes: []string{"admin"}}
	for _, c := range []struct {
		who  *principal.Principal
		uri  string
		want bool
	}{{bob, "test:open", true}, {bob, "test:secret", false}, {admin, "test:secret", true}, {admin, "test:other", false}, {admin, "", false}} {
		l := dial(t, s, v2607, c.who)
		if got := string(l.result(l.call("shelf/has", `{"title":"`+c.uri+`"}`))); strings.Contains(got, `"has":true`) != c.want {
			t.Errorf("%s, %q: %s", c.who.Subject, c.uri, got)
		}
	}
}
