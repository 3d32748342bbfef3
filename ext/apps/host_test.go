package apps_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/apps"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/strictjson"
)

// A page of a megabyte on one line arrives as it is, over every transport.
func TestLongLine(t *testing.T) {
	long := "<!doctype html><!--" + strings.Repeat("é", 1<<19) + "-->"
	build := func(_ testing.TB, o *server.Options) *server.Server {
		s := server.New("s", "1", o)
		s.Add(apps.Page(pageURI, long, nil))
		return s
	}
	mcptest.EachEra(t, build, showsPages(), func(t *testing.T, _ mcptest.Era, c *client.Client) {
		doc, err := apps.Fetch(t.Context(), c, pageURI, nil)
		if err != nil || doc.HTML != long {
			t.Errorf("%v", err)
		}
		if _, err := apps.Fetch(t.Context(), c, pageURI, &apps.FetchOptions{MaxSize: 1 << 20}); !errors.Is(err, apps.ErrBadPage) {
			t.Errorf("with a smaller bound: %v", err)
		}
	}, metadata)
}

// What strangers serve as a page is checked: type, size, encoding, URI, declarations.
func TestFetchRefuses(t *testing.T) {
	meta := func(text string) mcp.Meta { return mcp.Meta{"ui": mcp.RawValue(text)} }
	serve := func(listed mcp.Meta, contents ...mcp.ResourceContents) *client.Client {
		s := server.New("s", "1", nil)
		s.Add(server.RawResource(mcp.Resource{URI: pageURI, Name: "p", Meta: listed}, func(context.Context, string) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: contents}, nil
		}))
		return mcptest.Client(t, s, showsPages())
	}
	ok := mcp.ResourceContents{MIMEType: apps.MIMEType, Text: page}
	with := func(change func(c *mcp.ResourceContents)) mcp.ResourceContents {
		own := ok
		change(&own)
		return own
	}
	for _, test := range []struct {
		name     string
		contents []mcp.ResourceContents
		want     string
	}{
		{"another type", []mcp.ResourceContents{with(func(c *mcp.ResourceContents) { c.MIMEType = "text/html" })}, "the type is"},
		{"the type in other letters", []mcp.ResourceContents{with(func(c *mcp.ResourceContents) { c.MIMEType = "text/html; profile=mcp-app" })}, "the type is"},
		{"two contents", []mcp.ResourceContents{ok, ok}, "2 contents"},
		{"another page", []mcp.ResourceContents{with(func(c *mcp.ResourceContents) { c.URI = "ui://other" })}, "those of"},
		{"nothing", []mcp.ResourceContents{with(func(c *mcp.ResourceContents) { c.Text = "" })}, "empty"},
		{"too many bytes", []mcp.ResourceContents{with(func(c *mcp.ResourceContents) { c.Blob = bytes.Repeat([]byte("x"), apps.MaxPage+1) })}, "at most"},
		{"a blob that is no UTF-8", []mcp.ResourceContents{with(func(c *mcp.ResourceContents) { c.Blob = []byte("<p>\xff\xfe") })}, "UTF-8"},
		{"an origin with a directive", []mcp.ResourceContents{with(func(c *mcp.ResourceContents) {
			c.Meta = meta(`{"csp":{"connectDomains":["https://a.example; script-src *"]}}`)
		})}, "change the policy"},
		{"any origin", []mcp.ResourceContents{with(func(c *mcp.ResourceContents) { c.Meta = meta(`{"csp":{"frameDomains":["*"]}}`) })}, "with its scheme"},
		{"settings that are none", []mcp.ResourceContents{with(func(c *mcp.ResourceContents) { c.Meta = meta(`[]`) })}, "_meta.ui"},
		{"a permission that is no object", []mcp.ResourceContents{with(func(c *mcp.ResourceContents) { c.Meta = meta(`{"permissions":{"camera":true}}`) })}, "_meta.ui"},
		{"a list of origins that is none", []mcp.ResourceContents{with(func(c *mcp.ResourceContents) { c.Meta = meta(`{"csp":{"connectDomains":"https://a.example"}}`) })}, "_meta.ui"},
	} {
		doc, err := apps.Fetch(t.Context(), serve(nil, test.contents...), pageURI, nil)
		if doc != nil || !errors.Is(err, apps.ErrBadPage) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %+v, %v", test.name, doc, err)
		}
	}
	if _, err := apps.Fetch(t.Context(), serve(nil, ok), "https://a.example/", nil); !errors.Is(err, apps.ErrBadPage) {
		t.Errorf("a URI of the web: %v", err)
	}
	if _, err := apps.Fetch(t.Context(), serve(nil, ok), "ui://nothing", nil); err == nil || errors.Is(err, apps.ErrBadPage) {
		t.Errorf("a page that is not there: %v", err)
	}

	// The contents win over the list; what is unknown is ignored; bytes are a page too.
	listed := meta(`{"csp":{"connectDomains":["https://listed.example"]},"prefersBorder":true}`)
	fromList, err := apps.Fetch(t.Context(), serve(listed, with(func(c *mcp.ResourceContents) { c.Blob = []byte(page) })), pageURI, nil)
	if err != nil || fromList.HTML != page || fromList.Meta.PrefersBorder == nil || !strings.Contains(fromList.CSP, "connect-src 'self' https://listed.example;") {
		t.Errorf("from the list: %+v, %v", fromList, err)
	}
	own, err := apps.Fetch(t.Context(), serve(listed, with(func(c *mcp.ResourceContents) {
		c.Meta = meta(`{"permissions":{"microphone":{},"usb":{}},"later":1}`)
	})), pageURI, nil)
	if err != nil || own.Meta.CSP != nil || !strings.Contains(own.CSP, "connect-src 'none'") || own.Meta.Permissions.Allow() != "microphone" {
		t.Errorf("from the contents: %+v, %v", own, err)
	}
	given := &mcp.Resource{URI: pageURI, Meta: meta(`{"prefersBorder":false}`)}
	if doc, err := apps.Fetch(t.Context(), serve(listed, ok), pageURI, &apps.FetchOptions{Listed: given}); err != nil || *doc.Meta.PrefersBorder {
		t.Errorf("from the entry given: %+v, %v", doc, err)
	}
	given.URI = "ui://other"
	if doc, err := apps.Fetch(t.Context(), serve(listed, ok), pageURI, &apps.FetchOptions{Listed: given}); doc != nil || err == nil || !strings.Contains(err.Error(), "ui://other") {
		t.Errorf("from the entry of another page: %+v, %v", doc, err)
	}
}

// SEP-1865: the nested key is read first, then the deprecated one.
func TestOf(t *testing.T) {
	for _, test := range []struct {
		meta string
		want *apps.UI // nil is none
		fail string
	}{
		{`{}`, nil, ""},
		{`{"ui":{"resourceUri":"ui://a"}}`, &apps.UI{URI: "ui://a"}, ""},
		{`{"ui/resourceUri":"ui://b"}`, &apps.UI{URI: "ui://b"}, ""},
		{`{"ui":{"resourceUri":"ui://a"},"ui/resourceUri":"ui://b"}`, &apps.UI{URI: "ui://a"}, ""},
		{`{"ui":{"visibility":["app"]},"ui/resourceUri":"ui://b"}`, &apps.UI{URI: "ui://b", Visibility: []apps.Caller{apps.App}}, ""},
		{`{"ui":{"visibility":["app"],"csp":5}}`, &apps.UI{Visibility: []apps.Caller{apps.App}}, ""},
		{`{"ui":{"visibility":["later"]}}`, &apps.UI{Visibility: []apps.Caller{"later"}}, ""},
		{`{"ui":{"visibility":[]}}`, nil, "visibility is empty"},
		{`{"ui":{"visibility":"app"}}`, nil, "_meta.ui"},
		{`{"ui":{"resourceUri":"https://a.example"}}`, nil, "ui://"},
		{`{"ui":{"resourceUri":""}}`, nil, "ui://"},
		{`{"ui":{"resourceUri":5}}`, nil, "_meta.ui"},
		{`{"ui":"ui://a"}`, nil, "_meta.ui"},
		{`{"ui/resourceUri":"javascript:alert(1)"}`, nil, "ui://"},
		{`{"ui/resourceUri":{}}`, nil, "ui/resourceUri"},
	} {
		tool := &mcp.Tool{Name: "t"}
		if err := strictjson.Unmarshal([]byte(test.meta), &tool.Meta); err != nil {
			t.Fatal(err)
		}
		got, err := apps.Of(tool)
		if diff := cmp.Diff(test.want, got); diff != "" || (err != nil) != (test.fail != "") || err != nil && !strings.Contains(err.Error(), test.fail) {
			t.Errorf("%s: %v\n%s", test.meta, err, diff)
		}
		if err != nil && (apps.Visible(tool, apps.Model) || apps.Visible(tool, apps.App)) {
			t.Errorf("%s: it cannot be read, and is visible", test.meta)
		}
	}
}

// Whatever a server writes there: a page has a URI of pages, or there is an error.
func FuzzOf(f *testing.F) {
	f.Add([]byte(`{"ui":{"resourceUri":"ui://a","visibility":["app"]},"ui/resourceUri":"ui://b"}`))
	f.Add([]byte(`{"ui":{"resourceUri":null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tool := &mcp.Tool{Name: "t"}
		if strictjson.Unmarshal(data, &tool.Meta) != nil {
			return
		}
		ui, err := apps.Of(tool)
		if ui != nil && err != nil {
			t.Errorf("both %+v and %v", ui, err)
		}
		if ui != nil && ui.URI != "" && (!strings.HasPrefix(ui.URI, "ui://") || strings.ContainsAny(ui.URI, " \r\n\x00")) {
			t.Errorf("the page is %q", ui.URI)
		}
		if err != nil && apps.Visible(tool, apps.Model) {
			t.Errorf("visible in spite of %v", err)
		}
	})
}
