package server_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// Every URI that a result of a mounted server names leads a client of the outer
// server to the resource, over two mounts as over one; URIs of others stay.
func TestMountRenamesURIs(t *testing.T) {
	shared := mcp.Contents{
		&mcp.ResourceLink{Resource: mcp.Resource{URI: "test:a", Name: "a"}},
		&mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "test:of/7", Text: "seven"}},
		&mcp.ResourceLink{Resource: mcp.Resource{URI: "https://example.com/x", Name: "x"}},
		mcp.Text("test:a"),
	}
	root, _ := tree(t)
	child := newServer(nil,
		server.Text("test:a", "a", "A"),
		server.Template("test:of/{id}", "of", func(_ context.Context, v struct {
			ID string `uri:"id"`
		},
		) (mcp.ResourceContents, error) {
			return mcp.ResourceContents{URI: "test:of/" + v.ID, Text: "of " + v.ID}, nil
		}),
		server.Directory("file:///d/", root),
		server.Tool("links", "", func(context.Context, none) (mcp.Contents, error) { return shared, nil }),
		server.Prompt("links", "", func(context.Context, mcp.None) ([]mcp.PromptMessage, error) {
			return []mcp.PromptMessage{{Role: mcp.RoleUser, Content: shared[0]}, {Role: mcp.RoleUser, Content: &mcp.ResourceLink{Resource: mcp.Resource{URI: "file:///d/a.txt", Name: "f"}}}}, nil
		}),
	)
	mid := newServer(nil, server.Text("test:mid", "mid", "M"))
	mid.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			res, err := next(c)
			if out, ok := res.(*mcp.CallToolResult); ok {
				out.Content = append(out.Content, &mcp.ResourceLink{Resource: mcp.Resource{URI: "test:mid", Name: "mid"}})
			}
			return res, err
		}
	})
	mid.Mount("in", child)
	top := newServer(nil)
	top.Mount("out", mid)
	uris := regexp.MustCompile(`"uri":"([^"]*)"`)
	find := func(l *line, m message) (list []string) {
		for _, found := range uris.FindAllStringSubmatch(string(l.result(m)), -1) {
			list = append(list, found[1])
		}
		return list
	}
	for _, at := range []struct {
		s                  *server.Server
		name, scheme, more string
	}{{child, "", "", ""}, {mid, "in_", "in+", ""}, {top, "out_in_", "out+in+", " out+test:mid"}} {
		l := join(t, at.s, v2607)
		want := at.scheme + "test:a " + at.scheme + "test:of/7 https://example.com/x" + at.more
		got := find(l, l.tool(at.name+"links", emptyBody))
		if at.s == mid {
			want += " test:mid"
		}
		if strings.Join(got, " ") != want {
			t.Errorf("the tool names %v, want %s", got, want)
		}
		got = append(got, find(l, l.call("prompts/get", `{"name":"`+at.name+`links"}`))...)
		for _, uri := range got {
			if strings.HasPrefix(uri, "https:") {
				continue
			}
			if read := find(l, l.call("resources/read", `{"uri":"`+uri+`"}`)); len(read) != 1 || read[0] != uri {
				t.Errorf("reading %s gives %v", uri, read)
			}
		}
	}
	if link := shared[0].(*mcp.ResourceLink); link.URI != "test:a" {
		t.Errorf("the author's own link became %s", link.URI)
	}
}

// Pages keep their scheme in front under every mount, whatever offers them: what a
// list shows and a tool names can be read and watched.
func TestMountedPages(t *testing.T) {
	root, _ := tree(t)
	child := newServer(nil,
		server.Text("ui://text/a", "a", "A"),
		server.Directory("ui://dir/", root),
		server.Template("ui://of/{id}", "of", func(_ context.Context, v struct {
			ID string `uri:"id"`
		},
		) (string, error) {
			return "of " + v.ID, nil
		}).With(server.TemplateOptions{List: func(context.Context) ([]mcp.Resource, error) {
			return []mcp.Resource{{URI: "ui://of/7", Name: "seven"}}, nil
		}}),
		server.Tool("show", "", func(context.Context, none) (string, error) { return "", nil }).With(server.ToolOptions{
			Meta: mcp.Meta{"ui": mcp.RawValue(`{"resourceUri":"ui://dir/a.txt"}`)},
		}),
	)
	mid := newServer(nil)
	mid.Mount("in", child)
	top := newServer(nil)
	top.Mount("out", mid)
	uris := regexp.MustCompile(`"(?:uri|resourceUri)":"([^"]*)"`)
	for prefix, s := range map[string]*server.Server{"": child, "in+": mid, "out+in+": top} {
		l := join(t, s, v2607)
		listed := string(l.result(l.call("resources/list", emptyBody)))
		for _, uri := range []string{"text/a", "dir/a.txt", "of/7"} {
			if !strings.Contains(listed, `"ui://`+prefix+uri+`"`) {
				t.Errorf("%s%s is missing in %s", prefix, uri, listed)
			}
		}
		named := uris.FindAllStringSubmatch(listed+string(l.result(l.call("tools/list", emptyBody))), -1)
		if len(named) < 4 {
			t.Errorf("%d pages are named", len(named))
		}
		for _, uri := range named {
			read := uris.FindStringSubmatch(string(l.result(l.read1(uri[1]))))
			if len(read) != 2 || read[1] != uri[1] {
				t.Errorf("reading %s gives %v", uri[1], read)
			}
		}
	}
}
