package host_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/apps"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

const (
	viewURI = "ui://view/main.html"
	view    = "<!doctype html><title>View</title>"
)

// The tools of pages in tests: one for both callers, one for each.
var (
	forPages = &apps.ToolOptions{Visibility: []apps.Caller{apps.App}}
	forModel = &apps.ToolOptions{Visibility: []apps.Caller{apps.Model}}
)

// withPage makes a server with a page, and tools that have it.
func withPage(t *testing.T, ran *int, more ...server.Feature) *server.Server {
	t.Helper()
	s := serverOf(t)
	apps.Enable(s)
	s.Add(append(more, apps.Page(viewURI, view, &apps.PageOptions{CSP: &apps.Domains{Connect: []string{"https://api.example.com"}}}),
		apps.Tool(echo("both", ran), viewURI, nil), apps.Tool(echo("refresh", ran), viewURI, forPages), apps.Tool(echo("report", ran), viewURI, forModel))...)
	return s
}

// pageOptions are those of a host that shows pages.
func pageOptions(o host.Options) *host.Options {
	o.Extensions, o.Pages = []client.Extension{apps.Extension()}, apps.Loader{}
	return &o
}

// showing begins a session that shows the page of the server "one".
func showing(t *testing.T, h *host.Host, m host.Model) *host.Session {
	t.Helper()
	s := begin(t, h, m)
	if _, err := s.Page(t.Context(), "one", viewURI); err != nil {
		t.Fatal(err)
	}
	return s
}

func textOf(r *mcp.CallToolResult) string {
	if r == nil || len(r.Content) == 0 {
		return ""
	}
	return host.ContentText(r.Content[0])
}

// SEP-1865, Resource Discovery and Host Behavior: a page is fetched with resources/read,
// comes with its policy, and the log says under which policy it is shown.
func TestPageShown(t *testing.T) {
	ran := 0
	store := new(host.Memory)
	h := newHost(t, pageOptions(host.Options{Policy: allowing(t, "app:one/*"), Store: store}), map[string]transport.Handler{"one": withPage(t, &ran)})
	s := begin(t, h, &scripted{})
	page, err := s.Page(t.Context(), "one", viewURI)
	if err != nil {
		t.Fatal(err)
	}
	if page.HTML != view || page.Server != "one" || page.URI != viewURI || !strings.Contains(page.CSP, "connect-src 'self' https://api.example.com") ||
		!strings.Contains(string(page.Meta), "connectDomains") {
		t.Errorf("the page is %+v", page)
	}
	rec := bodies[*host.PageRecord](s)[0]
	if rec.Server != "one" || rec.URI != viewURI || rec.CSP != page.CSP || rec.Size != len(view) || len(rec.Digest) != 64 || !strings.Contains(rec.Why, "app:one/*") {
		t.Errorf("the log has %+v", rec)
	}
	if log := store.AuditLog(); len(log) == 0 || log[0].Kind != policy.KindApp || log[0].Event != "allowed" || log[0].Name != viewURI {
		t.Errorf("the audit log has %+v", log)
	}
	if kinds(s) != "page" || s.Snapshot().Busy {
		t.Errorf("the records are %s", kinds(s))
	}
}

// Without a rule the person is asked, and warned of the origins that the page reaches. A
// grant holds until the page changes.
func TestPageAsks(t *testing.T) {
	ran := 0
	one := withPage(t, &ran)
	h := newHost(t, pageOptions(host.Options{Attended: true}), map[string]transport.Handler{"one": one})
	s := begin(t, h, &scripted{})
	refuse := true
	who := attend(t, s, func(q *host.Question) host.Answer {
		if refuse {
			return host.Answer{}
		}
		return host.Answer{Action: host.Approve, Offer: 1}
	})
	var refused *host.ConsentError
	if _, err := s.Page(t.Context(), "one", viewURI); !errors.As(err, &refused) || !refused.Refused || refused.Kind != policy.KindApp {
		t.Fatalf("refused: %v", err)
	}
	q := who.one(t)
	if q.Kind != host.QuestionApp || q.Name != viewURI || len(q.Warnings) != 1 || !strings.Contains(q.Warnings[0], "https://api.example.com") || len(q.Offers) != 1 {
		t.Errorf("asked %+v", q)
	}
	if n := len(bodies[*host.PageRecord](s)); n != 0 {
		t.Errorf("%d pages were shown", n)
	}
	refuse = false
	for i, want := range []int{2, 2, 3} {
		if i == 2 {
			one.Add(apps.Page(viewURI, view+"<p>", nil))
		}
		if _, err := s.Page(t.Context(), "one", viewURI); err != nil || len(who.questions()) != want {
			t.Errorf("step %d: asked %d times, want %d; %v", i+1, len(who.questions()), want, err)
		}
	}
}

// What a rule denies is not fetched, nor what is no page; nobody can be asked by a host
// without a person, and a host without a loader shows no pages.
func TestPageRefused(t *testing.T) {
	ran, reads := 0, new(atomic.Int32)
	one := withPage(t, &ran, server.Resource("ui://view/other", "other", func(context.Context) (string, error) { return view, nil }))
	one.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			if c.Method() == mcp.MethodResourcesRead {
				reads.Add(1)
			}
			return next(c)
		}
	})
	servers := map[string]transport.Handler{"one": one}
	for name, test := range map[string]struct {
		o     *host.Options
		uri   string
		want  error
		reads int32
	}{
		"denied":     {pageOptions(host.Options{Attended: true, Policy: policyOf(t, "deny", "app:one/*")}), viewURI, host.ErrConsent, 0},
		"unattended": {pageOptions(host.Options{}), viewURI, host.ErrConsent, 1},
		"no loader":  {&host.Options{Policy: allowing(t, "app:*")}, viewURI, host.ErrNoPages, 0},
		"no page":    {pageOptions(host.Options{Policy: allowing(t, "app:*")}), "https://view.example/", nil, 0},
		"odd":        {pageOptions(host.Options{Policy: allowing(t, "app:*")}), "ui://view/\xff", nil, 0},
		"other type": {pageOptions(host.Options{Policy: allowing(t, "app:*")}), "ui://view/other", apps.ErrBadPage, 1},
		"no server":  {pageOptions(host.Options{Policy: allowing(t, "app:*")}), "ui://view/none", nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			reads.Store(0)
			s := begin(t, newHost(t, test.o, servers), &scripted{})
			_, err := s.Page(t.Context(), "one", test.uri)
			if err == nil || test.want != nil && !errors.Is(err, test.want) || reads.Load() != test.reads {
				t.Errorf("%v after %d reads", err, reads.Load())
			}
			if n := len(bodies[*host.PageRecord](s)); n != 0 {
				t.Errorf("%d pages were shown", n)
			}
			if _, err := s.CallForPage(t.Context(), "one", test.uri, "both", nil); !errors.Is(err, host.ErrPageNotShown) {
				t.Errorf("a page calls that is not shown: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Page(t.Context(), "one", viewURI); !errors.Is(err, host.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}

// SEP-1865, Visibility: tools without "model" are not in the model's list, in no form, and
// are not found by a search; the model cannot call them. What cannot be read is for nobody.
func TestVisibilityOfTools(t *testing.T) {
	ran := 0
	with := func(name, ui string) *server.ToolFeature {
		meta := mcp.Meta{"ui/resourceUri": mcp.RawValue(`"ui://x"`)}
		if ui != "" {
			meta["ui"] = mcp.RawValue(ui)
		}
		return echo(name, &ran).With(server.ToolOptions{Meta: meta})
	}
	features := []server.Feature{
		with("model_flat", ""), with("model_null", `null`), with("model_default", `{}`), with("model_default_null", `{"visibility":null}`),
		with("model_both", `{"visibility":["app","model"]}`), with("model_alone", `{"visibility":["model","other"]}`),
		with("app_alone", `{"visibility":["app"]}`), with("app_unknown", `{"visibility":["app","Model"]}`), with("none_empty", `{"visibility":[]}`),
		with("none_text", `{"visibility":"model"}`), with("none_numbers", `{"visibility":[1,"model"]}`), with("none_ui", `"ui://x"`),
		with("none_twins", `{"visibility":["app"],"Visibility":["model"]}`),
	}
	all := []string{"model_alone", "model_both", "model_default", "model_default_null", "model_flat", "model_null"}
	for _, budget := range []int{0, 1} { // all tools at once, and a search
		m := &scripted{turns: []turn{use("find_tools", `{"query":"echoes app none model"}`, "one__app_alone", `{"text":""}`, "one__none_text", `{"text":""}`)}}
		h := newHost(t, &host.Options{Policy: allowing(t, "*"), MaxToolTokens: budget}, map[string]transport.Handler{"one": serverOf(t, features...)})
		if _, _, err := begin(t, h, m).Ask(t.Context(), "please"); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range m.requests()[0].Tools {
			names = append(names, strings.TrimPrefix(s.Name, "one__"))
		}
		want := all
		if budget > 0 {
			want = []string{"find_tools"}
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Error(diff)
		}
		got := m.results()
		if strings.Contains(got[0], "__app") || strings.Contains(got[0], "__none") || !strings.Contains(got[0], "one__model") ||
			!strings.Contains(got[1]+got[2], "there is no tool") || ran != 0 {
			t.Errorf("found %q, ran %d times", got, ran)
		}
	}
}

// Calls of pages go to the tools for pages in what cannot be read of visibility, too: none.
func TestVisibilityForPages(t *testing.T) {
	ran := 0
	with := func(name, ui string) *server.ToolFeature {
		return echo(name, &ran).With(server.ToolOptions{Meta: mcp.Meta{"ui": mcp.RawValue(ui)}})
	}
	h := newHost(t, pageOptions(host.Options{Policy: allowing(t, "*", "app:*")}), map[string]transport.Handler{"one": withPage(t, &ran,
		with("text", `{"visibility":"app"}`), with("empty", `{"visibility":[]}`), with("fine", `{"visibility":["app"]}`), echo("plain", &ran))})
	s := showing(t, h, &scripted{})
	for tool, want := range map[string]error{
		"text": host.ErrNotForPages, "empty": host.ErrNotForPages, "report": host.ErrNotForPages, "fine": nil, "plain": nil, "refresh": nil, "both": nil,
	} {
		if _, err := s.CallForPage(t.Context(), "one", viewURI, tool, mcp.RawValue(`{"text":"x"}`)); !errors.Is(err, want) {
			t.Errorf("%s: %v", tool, err)
		}
	}
	if ran != 4 {
		t.Errorf("ran %d times", ran)
	}
}

// A page of one server reaches no tool of another one, and nothing in its name.
func TestPageStaysAtItsServer(t *testing.T) {
	ran, other := 0, 0
	h := newHost(t, pageOptions(host.Options{Policy: allowing(t, "*", "app:*")}), nil)
	for name, s := range map[string]*server.Server{"one": withPage(t, &ran), "two": withPage(t, &other, echo("secret", &other))} {
		if err := h.Add(host.Server{Name: name, Dialer: mem.New(s, nil)}); err != nil {
			t.Fatal(err)
		}
	}
	s := showing(t, h, &scripted{})
	args := mcp.RawValue(`{"text":"x"}`)
	if _, err := s.CallForPage(t.Context(), "two", viewURI, "both", args); !errors.Is(err, host.ErrPageNotShown) {
		t.Errorf("as the page of another server: %v", err)
	}
	for _, tool := range []string{"secret", "two__secret", "two/secret"} {
		if _, err := s.CallForPage(t.Context(), "one", viewURI, tool, args); err == nil || !strings.Contains(err.Error(), "has no tool") {
			t.Errorf("%s: %v", tool, err)
		}
	}
	if err := s.UpdateContext(t.Context(), host.PageInput{Server: "two", URI: viewURI, Content: mcp.Contents{mcp.Text("x")}}); !errors.Is(err, host.ErrPageNotShown) {
		t.Errorf("context in the name of another server: %v", err)
	}
	if ran+other != 0 {
		t.Errorf("ran %d and %d times", ran, other)
	}
}
