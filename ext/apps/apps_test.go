package apps_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/apps"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

const (
	page    = "<!doctype html><title>Weather</title><p id=now></p>"
	pageURI = "ui://weather/view.html"
)

type city struct {
	City string `json:"city"`
}

type weather struct {
	Degrees int `json:"degrees"`
}

func tellWeather(context.Context, city) (weather, error) { return weather{21}, nil }

var settings = &apps.PageOptions{
	Title:         "Weather",
	CSP:           &apps.Domains{Connect: []string{"https://api.example.com"}},
	Permissions:   apps.Permissions{Geolocation: true, ClipboardWrite: true},
	Domain:        "weather.example.com",
	PrefersBorder: new(true),
}

// build makes a server with a page, a tool that has it, one that only the page calls,
// and one that only the model does.
func build(_ testing.TB, o *server.Options) *server.Server {
	s := server.New("weather", "1.0.0", o)
	apps.Enable(s)
	s.Add(
		apps.Tool(server.Tool("weather", "Tells the weather.", tellWeather), pageURI, nil),
		apps.Tool(server.Tool("refresh", "Tells it anew.", tellWeather), pageURI, &apps.ToolOptions{Visibility: []apps.Caller{apps.App}}),
		apps.Tool(server.Tool("report", "Reports it.", tellWeather), pageURI, &apps.ToolOptions{Visibility: []apps.Caller{apps.Model}}),
		apps.Tool(server.Tool("tick", "Says how late it is.", tellWeather), "", &apps.ToolOptions{Visibility: []apps.Caller{apps.App}}),
		server.Tool("plain", "Has no page.", func(ctx context.Context, _ city) (bool, error) { return apps.Supported(ctx), nil }),
		apps.Page(pageURI, page, settings),
	)
	return s
}

// mounted is that server within another one.
func mounted(tb testing.TB, o *server.Options) *server.Server {
	s := server.New("outer", "1.0.0", o)
	apps.Enable(s)
	s.Mount("w", build(tb, o))
	return s
}

func showsPages() *client.Options {
	return &client.Options{Extensions: []client.Extension{apps.Extension()}}
}

// metadata keeps the revisions in which tools have `_meta`.
func metadata(era mcptest.Era) bool { return era.Version >= "2025-06-18" }

// older keeps the others.
func older(era mcptest.Era) bool { return !metadata(era) }

func tools(t *testing.T, c *client.Client) map[string]*mcp.Tool {
	t.Helper()
	list := make(map[string]*mcp.Tool)
	for tool, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		list[tool.Name] = tool
	}
	return list
}

// SEP-1865, Resource Discovery: a host finds the page of a tool, fetches it, and knows
// which caller may use which tool; in every revision that has `_meta`, over every
// transport.
func TestHost(t *testing.T) {
	mcptest.EachEra(t, build, showsPages(), func(t *testing.T, _ mcptest.Era, c *client.Client) {
		if raw, ok := c.Capabilities().Extensions[apps.ID]; !ok || string(raw) != "{}" {
			t.Errorf("the server declares %q", raw)
		}
		testHost(t, c, "", pageURI)
	}, metadata)
}

// The same of a server that is mounted in another one.
func TestMounted(t *testing.T) {
	mcptest.EachEra(t, mounted, showsPages(), func(t *testing.T, _ mcptest.Era, c *client.Client) {
		testHost(t, c, "w_", "ui://w+weather/view.html")
	}, metadata, mcptest.Over("mem", "streamable"))
}

// And of one behind a proxy whose client shows pages.
func TestProxied(t *testing.T) {
	p, err := proxy.Connect(t.Context(), mem.New(build(t, nil), nil), &proxy.Options{Client: *showsPages()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	testHost(t, mcptest.Client(t, p.Server(), showsPages()), "", pageURI)
}

func testHost(t *testing.T, c *client.Client, prefix, uri string) {
	t.Helper()
	list := tools(t, c)
	for name, want := range map[string]struct {
		uri        string
		model, app bool
	}{
		"weather": {uri, true, true}, "refresh": {uri, false, true}, "report": {uri, true, false},
		"tick": {"", false, true}, "plain": {"none", true, true},
	} {
		tool := list[prefix+name]
		if tool == nil {
			t.Errorf("%s is not listed: %v", name, list)
			continue
		}
		ui, err := apps.Of(tool)
		if err != nil || (ui == nil) != (want.uri == "none") || ui != nil && ui.URI != want.uri {
			t.Errorf("%s: page %+v, %v", name, ui, err)
		}
		if old := string(tool.Meta["ui/resourceUri"]); strings.HasPrefix(want.uri, "ui:") && old != `"`+want.uri+`"` {
			t.Errorf("%s: the older key is %s", name, old)
		}
		if m, a := apps.Visible(tool, apps.Model), apps.Visible(tool, apps.App); m != want.model || a != want.app {
			t.Errorf("%s: visible to the model %t, to pages %t", name, m, a)
		}
		res, err := apps.CallForPage(t.Context(), c, prefix+name, city{"Oslo"}, nil)
		if want.app && (err != nil || res.IsError) || !want.app && !errors.Is(err, apps.ErrNotForPages) {
			t.Errorf("%s for a page: %+v, %v", name, res, err)
		}
	}
	doc, err := apps.Fetch(t.Context(), c, uri, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &apps.Document{URI: uri, HTML: page, Meta: apps.PageMeta{
		CSP: settings.CSP, Permissions: settings.Permissions, Domain: settings.Domain, PrefersBorder: settings.PrefersBorder,
	}}
	if want.CSP, err = apps.CSP(settings.CSP); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, doc); diff != "" {
		t.Error(diff)
	}
	if got := doc.Meta.Permissions.Allow(); got != "geolocation; clipboard-write" {
		t.Errorf("allow=%q", got)
	}
	for r, err := range c.Resources(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if r.URI == uri && (r.MIMEType != apps.MIMEType || r.Title != "Weather" || r.Meta["ui"] == nil) {
			t.Errorf("the list has %+v", r)
		}
	}
}

// SEP-1865, Graceful Degradation: a client without the extension has an ordinary tool
// with a text, and does not know of tools for pages alone. So has a client that
// declares it in a revision that cannot say it.
func TestWithoutExtension(t *testing.T) {
	body := func(t *testing.T, _ mcptest.Era, c *client.Client) {
		list := tools(t, c)
		if len(list) != 3 || list["weather"] == nil || list["report"] == nil || list["plain"] == nil {
			t.Errorf("listed: %v", list)
		}
		res, err := c.CallTool(t.Context(), "weather", city{"Oslo"}, nil)
		if err != nil || len(res.Content) != 1 || res.Content[0].(*mcp.TextContent).Text != `{"degrees":21}` {
			t.Errorf("weather: %+v, %v", res, err)
		}
		if res, err := c.CallTool(t.Context(), "refresh", city{"Oslo"}, nil); err == nil {
			t.Errorf("a tool for pages was called: %+v", res)
		}
		if shown, err := client.Call[bool](t.Context(), c, "plain", city{"Oslo"}); err != nil || shown {
			t.Errorf("the server takes the client for one with pages: %t, %v", shown, err)
		}
	}
	mcptest.EachEra(t, build, nil, body)
	mcptest.EachEra(t, build, showsPages(), body, older)
	otherTypes := client.Extension{ID: apps.ID, Revisions: client.AllRevisions, Settings: map[string]any{"mimeTypes": []string{"text/uri-list"}}}
	mcptest.EachEra(t, build, &client.Options{Extensions: []client.Extension{otherTypes}}, body, mcptest.Over("mem"))
}

// SEP-1865: "Tools MUST return meaningful content array even when UI is available".
func TestText(t *testing.T) {
	var log bytes.Buffer
	result := func(res *mcp.CallToolResult) server.Feature {
		def := mcp.Tool{Name: "t", InputSchema: mcp.RawValue(`{"type":"object"}`)}
		return apps.Tool(server.RawTool(def, func(context.Context, mcp.RawValue) (*mcp.CallToolResult, error) { return res, nil }), pageURI, nil)
	}
	s := server.New("s", "1", &server.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	s.Add(apps.Page(pageURI, page, nil), result(&mcp.CallToolResult{}))
	c := mcptest.Client(t, s)
	for _, test := range []struct {
		name string
		res  mcp.CallToolResult
		want string // the first text, "" for an internal error
	}{
		{"a text", mcp.CallToolResult{Content: mcp.Contents{mcp.Text("21 degrees")}}, "21 degrees"},
		{"structured alone", mcp.CallToolResult{StructuredContent: mcp.RawValue(`{"degrees":21}`)}, `{"degrees":21}`},
		{"a picture and structure", mcp.CallToolResult{Content: mcp.Contents{mcp.Image([]byte("x"), "image/png")}, StructuredContent: mcp.RawValue(`{}`)}, "{}"},
		{"nothing", mcp.CallToolResult{}, ""},
		{"a picture", mcp.CallToolResult{Content: mcp.Contents{mcp.Image([]byte("x"), "image/png")}}, ""},
		{"a blank text", mcp.CallToolResult{Content: mcp.Contents{mcp.Text(" \n")}}, ""},
	} {
		s.Add(result(&test.res))
		log.Reset()
		res, err := c.CallTool(t.Context(), "t", nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		text, _ := res.Content[0].(*mcp.TextContent)
		switch {
		case test.want == "" && (!res.IsError || !strings.Contains(log.String(), "the result has no text")):
			t.Errorf("%s: %+v; the log says %q", test.name, res, log.String())
		case test.want != "" && (res.IsError || text == nil || text.Text != test.want):
			t.Errorf("%s: %+v", test.name, res)
		}
	}
}

// What a program declares wrongly is refused where it is declared.
func TestConstructorsRefuse(t *testing.T) {
	tool := func() *server.ToolFeature { return server.Tool("weather", "", tellWeather) }
	visible := func(list ...apps.Caller) *apps.ToolOptions { return &apps.ToolOptions{Visibility: list} }
	s := server.New("s", "1", nil)
	s.Add(server.Text("ui://text", "text", page))
	add := func(f ...server.Feature) func() error { return func() error { return s.TryAdd(f...) } }
	newTool := func(uri string, o *apps.ToolOptions) func() error {
		return func() error { _, err := apps.NewTool(tool(), uri, o); return err }
	}
	newPage := func(uri, html string, o *apps.PageOptions) func() error {
		return func() error { _, err := apps.NewPage(uri, html, o); return err }
	}
	for _, test := range []struct {
		name string
		do   func() error
		want string
	}{
		{"a tool whose page is missing", add(apps.Tool(tool(), pageURI, nil)), "does not have; add it before the tool"},
		{"a tool whose page is a text", add(apps.Tool(tool(), "ui://text", nil)), "it must be \"text/html;profile=mcp-app\""},
		{"two declarations", add(apps.Page(pageURI, page, nil), apps.Tool(apps.Tool(tool(), pageURI, nil), pageURI, nil)), "set twice"},
		{"a URI of the web", newTool("https://a.example/", nil), "does not begin with ui://"},
		{"an empty URI", newTool("ui://", nil), "does not begin with ui://"},
		{"a URI with a space", newTool("ui://a b", nil), "space"},
		{"no page and both callers", newTool("", nil), "for App alone"},
		{"no caller", newTool(pageURI, &apps.ToolOptions{Visibility: []apps.Caller{}}), "for nobody"},
		{"an unknown caller", newTool(pageURI, visible("everybody")), "everybody"},
		{"a caller twice", newTool(pageURI, visible(apps.App, apps.App)), "twice"},
		{"no tool", func() error { _, err := apps.NewTool(nil, pageURI, nil); return err }, "nil"},
		{"a page of the web", newPage("https://a.example/", page, nil), "does not begin with ui://"},
		{"an empty page", newPage(pageURI, " ", nil), "empty"},
		{"a page not in UTF-8", newPage(pageURI, page+"\xff", nil), "UTF-8"},
		{"a page that is too long", newPage(pageURI, page+strings.Repeat("x", apps.MaxPage), nil), "at most 4194304"},
		{"a fragment", newPage(pageURI, "<p>hello", nil), "<!doctype html>"},
		{"another doctype", newPage(pageURI, "<!doctype htmlx>", nil), "<!doctype html>"},
		{"an open comment", newPage(pageURI, "<!-- "+page, nil), "no end"},
		{"a domain with a line break", newPage(pageURI, page, &apps.PageOptions{Domain: "a\nb"}), "domain"},
	} {
		err := test.do()
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	for _, html := range []string{"\ufeff<!-- a --> <!DOCTYPE HTML>\n<p>", "<!doctype html system 'about:legacy-compat'>"} {
		if _, err := apps.NewPage(pageURI, html, nil); err != nil {
			t.Errorf("%q: %v", html, err)
		}
	}
	defer func() {
		if v := recover(); v == nil || !strings.Contains(v.(string), "apps: page") {
			t.Errorf("Page panicked with %v", v)
		}
	}()
	apps.Page(pageURI, "", nil)
}
