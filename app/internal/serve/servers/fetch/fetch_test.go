package fetch_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/serve/servers/fetch"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

const article = `<html><head><title>Bridges</title></head><body><nav><a href="/">Home</a></nav>
<article><h1>Bridges</h1><p>A bridge spans a river, a road, or a valley. See <a href="more">more</a>.</p></article></body></html>`

// The server works in every revision and over every transport.
func TestEachEra(t *testing.T) {
	s := newSite(t, pages(map[string][2]string{"/p": {"text/html", article}}))
	build := func(_ testing.TB, so *server.Options) *server.Server {
		return fetch.New("1.0.0", s.options(func(o *fetch.Options) { o.Server = so }))
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		text := fetched(t, c, s.url+"/p")
		if want := "Contents of " + s.url + "/p:\n"; !strings.HasPrefix(text, want) || !strings.Contains(text, "See [more]("+s.url+"/more).") {
			t.Errorf("got %q", text)
		}
		prompt, err := c.GetPrompt(t.Context(), "fetch", map[string]string{"url": s.url + "/p"}, nil)
		if err != nil || len(prompt.Messages) != 1 {
			t.Errorf("prompt: %v, %v", prompt, err)
		}
	})
}

// Programs find what they may want to know in the metadata of a result.
func TestFacts(t *testing.T) {
	s := newSite(t, pages(map[string][2]string{"/p": {"text/html", article}}))
	res := result(t, s.join(t), map[string]any{"url": s.url + "/p", "max_length": 10})
	var got fetch.Facts
	if err := json.Unmarshal(res.Meta.Extra["dev.parley/fetch"], &got); err != nil {
		t.Fatal(err)
	}
	want := fetch.Facts{URL: s.url + "/p", Status: 200, ContentType: "text/html", Encoding: "utf-8", Title: "Bridges", NextIndex: 10}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	if res.StructuredContent != nil {
		t.Error("there is structured content, which some hosts show in the place of the page")
	}
}

// The parts of a page are those of one page, though it changes, and the site is asked for
// it once; the first part is always fetched.
func TestPartsOfOnePage(t *testing.T) {
	var asked atomic.Int64
	s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		n := asked.Add(1)
		_, _ = w.Write([]byte(strings.Repeat(fmt.Sprint(n), 30)))
	}))
	c := s.join(t, func(o *fetch.Options) { o.IgnoreRobots = true })
	part := func(start int) string {
		text, _ := call(t, c, map[string]any{"url": s.url, "max_length": 10, "start_index": start})
		_, text, _ = strings.Cut(text, "/:\n")
		return text[:10]
	}
	got := []string{part(0), part(10), part(20), part(0), part(10)}
	want := []string{"1111111111", "1111111111", "1111111111", "2222222222", "2222222222"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// robots.txt is asked once in a while, by the user agent of the tool; the prompt has its own.
func TestUserAgents(t *testing.T) {
	s := newSite(t, pages(map[string][2]string{"/a": {"text/plain", "a"}, "/b": {"text/plain", "b"}}))
	c := s.join(t)
	fetched(t, c, s.url+"/a")
	fetched(t, c, s.url+"/b")
	if _, err := c.GetPrompt(t.Context(), "fetch", map[string]string{"url": s.url + "/a"}, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := s.seen(), []string{"/robots.txt", "/a", "/b", "/a"}; !slices.Equal(got, want) {
		t.Errorf("asked for %v, want %v", got, want)
	}
	var kinds []string
	for _, agent := range s.headers("User-Agent") {
		kind, _, _ := strings.Cut(strings.TrimPrefix(agent, "ModelContextProtocol/1.0 ("), ";")
		kinds = append(kinds, kind)
	}
	if want := []string{"Autonomous", "Autonomous", "Autonomous", "User-Specified"}; !slices.Equal(kinds, want) {
		t.Errorf("got user agents %v, want %v", kinds, want)
	}
}

// A site that wants its cookie back gets it, in one chain of redirects and no longer.
func TestCookiesOfRedirects(t *testing.T) {
	s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie("seen"); err != nil {
			http.SetCookie(w, &http.Cookie{Name: "seen", Value: "1", Path: "/"})
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
			return
		}
		_, _ = w.Write([]byte("welcome"))
	}))
	c := s.join(t, func(o *fetch.Options) { o.IgnoreRobots = true })
	for range 2 {
		if text := fetched(t, c, s.url); !strings.HasSuffix(text, "\nwelcome") {
			t.Errorf("got %q", text)
		}
	}
	if got := len(s.seen()); got != 4 {
		t.Errorf("the site was asked %d times, want 4: cookies are forgotten", got)
	}
}

func TestProgress(t *testing.T) {
	s := newSite(t, pages(map[string][2]string{"/p": {"text/plain", strings.Repeat("a", 300_000)}}))
	c := s.join(t, func(o *fetch.Options) { o.ProgressEvery = time.Nanosecond })
	var got []string
	_, err := c.CallTool(t.Context(), "fetch", map[string]any{"url": s.url + "/p"}, &client.CallOptions{
		OnProgress: func(progress, _ float64, message string) { got = append(got, fmt.Sprint(progress, " ", message)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) < 2 {
		t.Fatalf("got %d messages of progress, want more", len(got))
	}
	if want := "300000 read 300000 bytes"; got[len(got)-1] != want {
		t.Errorf("the last progress is %q, want %q", got[len(got)-1], want)
	}
}

// A page that takes long becomes a task, for clients that know them.
func TestTask(t *testing.T) {
	started := make(chan struct{})
	s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-started:
		case <-r.Context().Done():
		}
		_, _ = w.Write([]byte("at last"))
	}))
	c := mcptest.Client(t, fetch.New("1.0.0", s.options(func(o *fetch.Options) { o.TaskAfter, o.IgnoreRobots = time.Millisecond, true })),
		&client.Options{Extensions: []client.Extension{tasks.Client(nil)}})
	task, err := tasks.Start[string](t.Context(), c, "fetch", map[string]any{"url": s.url}, nil)
	if err != nil {
		t.Fatal(err)
	}
	close(started)
	text, err := task.Wait(t.Context())
	if err != nil || !strings.HasSuffix(text, "\nat last") {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestPromptTruncates(t *testing.T) {
	s := newSite(t, pages(map[string][2]string{"/p": {"text/plain", strings.Repeat("ä", 100)}}))
	c := s.join(t, func(o *fetch.Options) { o.MaxPrompt = 10 })
	res, err := c.GetPrompt(t.Context(), "fetch", map[string]string{"url": s.url + "/p"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(res.Messages[0].Content)
	if want := strings.Repeat("ä", 10) + "\n\n<error>Content truncated after 10 characters."; !strings.Contains(text, want) {
		t.Errorf("got %q, want %q", text, want)
	}
	if _, err := c.GetPrompt(t.Context(), "fetch", nil, nil); err == nil || !strings.Contains(err.Error(), "url") {
		t.Errorf("a prompt without a URL: got %v", err)
	}
}

// The definition of the tool has the arguments of the official server, with their bounds.
func TestDefinition(t *testing.T) {
	c := nothing(t).join(t)
	for tool, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		var schema struct {
			Properties map[string]map[string]any
			Required   []string
		}
		if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
			t.Fatal(err)
		}
		for _, p := range schema.Properties {
			delete(p, "description")
		}
		want := map[string]map[string]any{
			"url":         {"type": "string", "minLength": 1.0, "maxLength": 8192.0},
			"max_length":  {"type": "integer", "default": 5000.0, "minimum": 1.0, "maximum": 999999.0},
			"start_index": {"type": "integer", "default": 0.0, "minimum": 0.0},
			"raw":         {"type": "boolean", "default": false},
		}
		if diff := cmp.Diff(want, schema.Properties); diff != "" || !slices.Equal(schema.Required, []string{"url"}) {
			t.Errorf("required %v, arguments (-want +got):\n%s", schema.Required, diff)
		}
		if a := tool.Annotations; a == nil || a.ReadOnlyHint == nil || !*a.ReadOnlyHint || a.OpenWorldHint == nil || !*a.OpenWorldHint {
			t.Errorf("annotations are %v", a)
		}
	}
}

// Sites get to choose: no type but markdown is preferred, so that an API answers as it does without a
// browser. A site that has nothing of what it is asked for is asked for anything, once. robots.txt is
// asked for as it is.
func TestAccept(t *testing.T) {
	for name, test := range map[string]struct {
		status func(accept string) int
		want   []string
		failed bool
	}{
		"a site":                    {func(string) int { return 200 }, []string{"*/*", "text/markdown, */*;q=0.9"}, false},
		"one without markdown":      {func(a string) int { return map[bool]int{true: 200, false: 406}[a == "*/*"] }, []string{"*/*", "text/markdown, */*;q=0.9", "*/*"}, false},
		"one without anything":      {func(string) int { return 406 }, []string{"*/*", "text/markdown, */*;q=0.9", "*/*"}, true},
		"one that is not available": {func(string) int { return 404 }, []string{"*/*", "text/markdown, */*;q=0.9"}, true},
	} {
		s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(test.status(r.Header.Get("Accept")))
			_, _ = w.Write([]byte(`{"a":1}`))
		}))
		var deadlines []time.Time // of the requests for the page, which has one time limit
		c := s.join(t, func(o *fetch.Options) {
			o.Proxy = func(r *http.Request) (*url.URL, error) {
				if at, _ := r.Context().Deadline(); r.URL.Path != "/robots.txt" && !slices.Contains(deadlines, at) {
					deadlines = append(deadlines, at)
				}
				return nil, nil // no proxy
			}
		})
		text, failed := call(t, c, map[string]any{"url": s.url})
		if len(deadlines) != 1 || deadlines[0].IsZero() {
			t.Errorf("%s: the deadlines are %v", name, deadlines)
		}
		if got := s.headers("Accept"); !slices.Equal(got, test.want) || failed != test.failed || !failed && !strings.Contains(text, `{"a":1}`) {
			t.Errorf("%s: asked for %q, want %q; %s", name, got, test.want, text)
		}
	}
}
