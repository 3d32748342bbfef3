package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// serving makes a resource that gives one value.
func serving[Out any](uri string, v Out) *server.ResourceFeature {
	return server.Resource(uri, uri, func(context.Context) (Out, error) { return v, nil })
}

type readResult struct {
	Contents []struct {
		URI      string `json:"uri"`
		MIMEType string `json:"mimeType"`
		Text     string `json:"text"`
		Blob     []byte `json:"blob"`
	} `json:"contents"`
	TTLMs      *int64 `json:"ttlMs"`
	CacheScope string `json:"cacheScope"`
}

func (l *line) read1(uri string) message {
	l.t.Helper()
	return l.call("resources/read", fmt.Sprintf(`{"uri":%q}`, uri))
}

// Each form of contents. Proves: FLOW-RES.
func TestResourceContents(t *testing.T) {
	s := newServer(nil,
		server.Text("test:text", "text", "hello"),
		serving("test:bytes", []byte{0, 1}),
		serving("test:none", []byte(nil)),
		serving("test:one", mcp.ResourceContents{Text: "x", MIMEType: "text/html"}),
		serving("test:many", []mcp.ResourceContents{{Text: "a"}, {URI: "test:other", Blob: []byte("b")}}),
		serving("test:own", &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{Text: "own"}}}),
		serving("test:typed", "x").With(server.ResourceOptions{MIMEType: "text/x-go"}),
	)
	each(t, versions, func(t *testing.T, v string) {
		l := join(t, s, v)
		for uri, want := range map[string]string{
			"test:text":  `[{"uri":"test:text","mimeType":"text/plain","text":"hello"}]`,
			"test:bytes": `[{"uri":"test:bytes","mimeType":"application/octet-stream","blob":"AAE="}]`,
			"test:none":  `[{"uri":"test:none","mimeType":"application/octet-stream","blob":""}]`,
			"test:one":   `[{"uri":"test:one","mimeType":"text/html","text":"x"}]`,
			"test:many":  `[{"uri":"test:many","mimeType":"text/plain","text":"a"},{"uri":"test:other","mimeType":"application/octet-stream","blob":"Yg=="}]`,
			"test:own":   `[{"uri":"test:own","mimeType":"text/plain","text":"own"}]`,
			"test:typed": `[{"uri":"test:typed","mimeType":"text/x-go","text":"x"}]`,
		} {
			got := decode[map[string]any](t, l.result(l.read1(uri)))
			if d := cmp.Diff(decode[any](t, mcp.RawValue(want)), got["contents"]); d != "" {
				t.Errorf("%s: %s", uri, d)
			}
		}
	})
}

// What does not exist is an error with the URI, also when the URI is one that
// careless encoders choke on (G3). Ruling 23. Proves: FLOW-RES.
func TestResourceNotFound(t *testing.T) {
	s := newServer(unlimited(), serving("test:a", "a"), server.Resource("test:gone", "gone", func(context.Context) (string, error) {
		return "", fmt.Errorf("looking: %w", server.ErrNotFound)
	}))
	each(t, versions, func(t *testing.T, v string) {
		l := join(t, s, v)
		code := int64(mcp.CodeResourceNotFoundLegacy)
		if v == v2607 {
			code = mcp.CodeInvalidParams
		}
		for _, uri := range []string{"test:b", "test:gone", "", "no scheme", "test:\u200b", "test:\a\x7f", "test:" + strings.Repeat("x", 9000), "test:a#x", "TEST:a"} {
			quoted := string(mustJSON(t, uri))
			m := l.call("resources/read", `{"uri":`+quoted+`}`)
			l.fails(m, code)
			if got := decode[mcp.ResourceNotFoundData](t, m.Error.Data); got.URI != uri {
				t.Errorf("data.uri is %q, want %q", got.URI, uri)
			}
		}
	})
}

// A resource over the limit is refused; at the limit it is served.
// Proves: SEC-RES-3.
func TestResourceSize(t *testing.T) {
	s := newServer(&server.Options{Limits: server.Limits{MaxResource: 10}}, serving("test:ten", "0123456789"), serving("test:eleven", "0123456789a"),
		serving("test:two", []mcp.ResourceContents{{Text: "012345"}, {Blob: []byte("56789")}}))
	l := join(t, s, v2607)
	l.result(l.read1("test:ten"))
	l.fails(l.read1("test:eleven"), mcp.CodeTooLarge)
	l.fails(l.read1("test:two"), mcp.CodeTooLarge)
}

// A result that a handler keeps is not changed by serving it.
func TestResourceKept(t *testing.T) {
	kept := &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{Text: "x"}}}
	s := newServer(&server.Options{Cache: server.Cache{TTL: time.Minute, Public: true}}, serving("test:kept", kept))
	l := join(t, s, v2607)
	l.result(l.read1("test:kept"))
	want := &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{Text: "x"}}}
	if d := cmp.Diff(want, kept); d != "" {
		t.Error(d)
	}
}

// Hints of the server and of the resource; never shared by default; never
// shared where visibility depends on the caller (G9). Ruling 22.
// Proves: FLOW-CACHE.
func TestCacheHints(t *testing.T) {
	features := func() []server.Feature {
		return []server.Feature{
			serving("test:plain", "x"),
			serving("test:hinted", "x").With(server.ResourceOptions{Cache: &server.Cache{TTL: 2 * time.Second, Public: true}}),
			serving("test:own", &mcp.ReadResourceResult{Cacheable: mcp.Cacheable{TTLMs: new(int64(7))}, Contents: []mcp.ResourceContents{{Text: "x"}}}),
			server.Template("test:t/{v}", "t", func(context.Context, struct {
				V string `uri:"v"`
			},
			) (string, error) {
				return "x", nil
			}).With(server.TemplateOptions{Cache: &server.Cache{TTL: time.Hour}}),
			echo(),
			server.Prompt("p", "", func(context.Context, none) (string, error) { return "", nil }),
		}
	}
	for _, c := range []struct {
		name    string
		opts    server.Options
		visible bool
		want    map[string]string // what is asked for → ttl and scope
	}{
		{"default", server.Options{}, false, map[string]string{
			"test:plain": "0 private", "test:hinted": "2000 public", "test:own": "7 private", "test:t/1": "3600000 private",
			"tools/list": "0 private", "prompts/list": "0 private", "resources/list": "0 private", "resources/templates/list": "0 private", "server/discover": "0 private",
		}},
		{"public", server.Options{Cache: server.Cache{TTL: time.Minute, Public: true}}, false, map[string]string{
			"test:plain": "60000 public", "test:hinted": "2000 public", "test:own": "7 public",
			"tools/list": "60000 public", "server/discover": "60000 public",
		}},
		{"visible", server.Options{Cache: server.Cache{TTL: time.Minute, Public: true}}, true, map[string]string{
			"test:plain": "60000 private", "test:hinted": "2000 private", "test:own": "7 private",
			"tools/list": "60000 private", "resources/list": "60000 private", "server/discover": "60000 private",
		}},
		{"negative", server.Options{Cache: server.Cache{TTL: -time.Minute}}, false, map[string]string{"tools/list": "0 private"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(&c.opts, features()...)
			if c.visible {
				s.Visible(func(context.Context, server.Item) bool { return true })
			}
			l, old := join(t, s, v2607), join(t, s, v2511)
			for what, want := range c.want {
				method, params := "resources/read", fmt.Sprintf(`{"uri":%q}`, what)
				if !strings.HasPrefix(what, "test:") {
					method, params = what, emptyBody
				}
				got := decode[readResult](t, l.result(l.call(method, params)))
				if got.TTLMs == nil || fmt.Sprintf("%d %s", *got.TTLMs, got.CacheScope) != want {
					t.Errorf("%s: %v %s, want %s", what, got.TTLMs, got.CacheScope, want)
				}
				if method != "server/discover" {
					if m := old.call(method, params); strings.Contains(m.raw, "ttlMs") || strings.Contains(m.raw, "cacheScope") {
						t.Errorf("hints for a revision that has none: %s", m.raw)
					}
				}
			}
		})
	}
}

// A result that took answers is its caller's alone, and "input required" has
// no hints. Rulings 19 and 22.
func TestCacheOfAsked(t *testing.T) {
	s := newServer(&server.Options{Cache: server.Cache{TTL: time.Minute, Public: true}}, server.Resource("test:asks", "asks", func(ctx context.Context) (string, error) {
		a, err := server.Elicit[sure](ctx, "Read?")
		return fmt.Sprint(a.Value.Sure), err
	}))
	l := join(t, s, v2607)
	m := l.read1("test:asks")
	res := l.asked(m)
	if strings.Contains(m.raw, "ttlMs") || strings.Contains(m.raw, "cacheScope") {
		t.Errorf("hints on input_required: %s", m.raw)
	}
	m = l.call("resources/read", with(`{"uri":"test:asks"}`, res.answers(accepted)))
	got := decode[readResult](t, l.result(m))
	if got.Contents[0].Text != "true" || *got.TTLMs != 0 || got.CacheScope != "private" {
		t.Errorf("got %s", m.raw)
	}
}

// Proves: SEC-RES-1.
func TestResourceRegistration(t *testing.T) {
	s := newServer(nil)
	for _, uri := range []string{"", "relative", "test:a b", "test:\n", "test:\u200e", "te\\st:x", "test:\xff"} {
		panics(t, "resource", func() { serving(uri, "x") })
	}
	panics(t, "is no contents", func() { serving("test:x", 5) })
	panics(t, "reserved", func() {
		s.Add(serving("test:x", "").With(server.ResourceOptions{Meta: mcp.Meta{"dev.mcp/x": mcp.RawValue("1")}}))
	})
}

// Proves: FLOW-RES, in every revision, through the client.
func TestResourceEachEra(t *testing.T) {
	build := func(_ testing.TB, o *server.Options) *server.Server {
		s := server.New("eras", "1", o)
		s.Add(
			serving("test:a", "A").With(server.ResourceOptions{Title: "The A", Description: "First.", Size: new(int64(1))}),
			serving("test:b", []byte("B")),
			server.Resource("test:broken", "broken", func(context.Context) (string, error) { return "", errors.New("secret") }),
		)
		return s
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		var names []string
		for r, err := range c.Resources(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, r.URI)
		}
		if d := cmp.Diff([]string{"test:a", "test:b", "test:broken"}, names); d != "" {
			t.Error(d)
		}
		res, err := c.ReadResource(t.Context(), "test:a", nil)
		if err != nil || res.Contents[0].Text != "A" {
			t.Errorf("got %+v, %v", res, err)
		}
		_, err = c.ReadResource(t.Context(), "test:broken", nil)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v", err)
		}
	})
}
