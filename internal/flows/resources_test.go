package flows_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

type issue struct {
	Owner string `uri:"owner"`
	ID    int    `uri:"id"`
}

func readIssue(_ context.Context, v issue) (string, error) {
	if v.ID > 100 {
		return "", server.ErrNotFound
	}
	return fmt.Sprintf("issue %d of %q", v.ID, v.Owner), nil
}

// notFound checks ruling 23: an error with the code of the revision and the
// URI, never empty contents.
func notFound(t *testing.T, version, uri string, err error) {
	t.Helper()
	want := int64(mcp.CodeResourceNotFoundLegacy)
	if version == newest {
		want = mcp.CodeInvalidParams
	}
	var e *jsonrpc.Error
	if !errors.As(err, &e) || e.Code != want {
		t.Fatalf("%s: error %v, want code %d", uri, err, want)
	}
	data := message{t, string(e.Data)}
	data.want(string(jsonText(t, uri)), "uri")
	if e.Message != "resource not found" {
		t.Errorf("%s: message %q tells what is there from what is not", uri, e.Message)
	}
}

// Proves: FLOW-RES-P, SEC-RES-2. Ruling 23: the order of lists is stated, and
// what the caller may not see answers like what does not exist.
func TestFLOW_RES_P(t *testing.T) {
	build := func(t testing.TB, o *server.Options) *server.Server {
		o.Limits.PageSize = 10
		s := with(
			server.Resource("x:blob", "blob", func(context.Context) ([]byte, error) { return []byte{0, 1, 254, 255}, nil }),
			server.Text("x:text", "text", "grün"),
			server.Text("x:denied", "denied", "no"),
			server.Template("gh://{owner}/issues/{id}", "issue", readIssue),
			server.Template("gh://{owner}/hidden/{id}", "hidden", readIssue),
			server.Resource("x:broken", "broken", func(context.Context) (string, error) { return "", errors.New("db7 is down") }),
		)(t, o)
		for i := range 25 {
			s.Add(server.Text(fmt.Sprintf("n:%02d", i), "many", "number"))
		}
		s.Visible(func(_ context.Context, it server.Item) bool {
			return it.Name != "x:denied" && !strings.Contains(it.Name, "/hidden/")
		})
		return s
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		var uris []string
		for _, r := range collect(t, c.Resources(t.Context())) {
			uris = append(uris, r.URI)
		}
		if len(uris) != 28 || !slices.IsSorted(uris) || uris[25] != "x:blob" || uris[27] != "x:text" {
			t.Errorf("resources %v", uris)
		}
		templates := collect(t, c.ResourceTemplates(t.Context()))
		if len(templates) != 1 || templates[0].URITemplate != "gh://{owner}/issues/{id}" {
			t.Errorf("templates %+v", templates)
		}
		for uri, want := range map[string]mcp.ResourceContents{
			"x:text":                  {URI: "x:text", MIMEType: "text/plain", Text: "grün"},
			"x:blob":                  {URI: "x:blob", MIMEType: "application/octet-stream", Blob: []byte{0, 1, 254, 255}},
			"n:07":                    {URI: "n:07", MIMEType: "text/plain", Text: "number"},
			"gh://a%20b/issues/7":     {URI: "gh://a%20b/issues/7", MIMEType: "text/plain", Text: `issue 7 of "a b"`},
			"gh://gr%C3%BCn/issues/8": {URI: "gh://gr%C3%BCn/issues/8", MIMEType: "text/plain", Text: `issue 8 of "grün"`},
		} {
			r, err := c.ReadResource(t.Context(), uri, nil)
			if err != nil || len(r.Contents) != 1 {
				t.Errorf("%s: %+v, %v", uri, r, err)
				continue
			}
			got := r.Contents[0]
			if got.URI != want.URI || got.MIMEType != want.MIMEType || got.Text != want.Text || !slices.Equal(got.Blob, want.Blob) {
				t.Errorf("%s: %+v, want %+v", uri, got, want)
			}
		}
		for _, uri := range []string{"x:none", "x:denied", "gh://a/hidden/7", "gh://a/issues/101", "gh://a/b/issues/1", "x:text#a", "no uri", ""} {
			_, err := c.ReadResource(t.Context(), uri, nil)
			notFound(t, era.Version, uri, err)
		}
		_, err := c.ReadResource(t.Context(), "x:broken", nil)
		if code(err) != mcp.CodeInternalError || strings.Contains(err.Error(), "db7") {
			t.Errorf("a broken resource gives %v", err)
		}
		if _, err := c.ReadResource(t.Context(), "gh://a/issues/seven", nil); code(err) != mcp.CodeInvalidParams {
			t.Errorf("a variable of the wrong type gives %v", err)
		}
	})
}

// jungle is a directory with what should be read and what should not.
func jungle(t *testing.T) *os.Root {
	t.Helper()
	base := t.TempDir()
	inside, outside := filepath.Join(base, "in"), filepath.Join(base, "out")
	for name, text := range map[string]string{
		"in/a.txt": "a", "in/sub/b c.md": "# b", "in/.env": "KEY=1", "in/.git/config": "x", "in/big": strings.Repeat("x", 2000),
		"in/%2e%2e": "odd", "out/secret": "s", "in2/near": "n",
	} {
		p := filepath.Join(base, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"leak": outside, "leak.txt": filepath.Join(outside, "secret"), "up": "..", "sub/rel": "../../out/secret", "fine": "a.txt"} {
		if err := os.Symlink(to, filepath.Join(inside, filepath.FromSlash(link))); err != nil {
			t.Skip("no symbolic links here")
		}
	}
	root, err := os.OpenRoot(inside)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// Proves: SEC-RES-1, for file: and for a scheme of one's own.
func TestSEC_RES_1(t *testing.T) {
	root := jungle(t)
	build := func(t testing.TB, o *server.Options) *server.Server {
		return with(server.Directory("file:///srv/", root), server.Directory("docs://all/", root))(t, o)
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		for _, prefix := range []string{"file:///srv/", "docs://all/"} {
			for path, want := range map[string]string{"a.txt": "a", "sub/b%20c.md": "# b", "fine": "a", "%61.txt": "a"} {
				r, err := c.ReadResource(t.Context(), prefix+path, nil)
				if err != nil || r.Contents[0].Text != want {
					t.Errorf("%s: %+v, %v", path, r, err)
				}
			}
			for _, path := range []string{
				"", ".", "..", "../out/secret", "sub/../../out/secret", "sub/../a.txt", "./a.txt", "sub//b%20c.md", "/a.txt",
				"%2e%2e/out/secret", "%2E%2E%2Fout%2Fsecret", "..%2fout%2fsecret", "%252e%252e/out/secret", "..%5cout%5csecret", `..\out\secret`,
				"a.txt%00", "a.txt%00.md", "%00", "leak/secret", "leak.txt", "up/out/secret", "sub/rel", "up",
				"C:%5cwindows", "C:/windows", "a.txt:stream", "․․/out/secret", "．．/out/secret", "..∕out∕secret", "..／out／secret", "%EF%BC%8E%EF%BC%8E/out/secret",
				".env", ".git/config", "%2eenv", "sub/%2e%2e/.env", "a.txt?x", "a.txt#x", "%zz", "sub", "sub/", "../in2/near", "%c0%ae%c0%ae/out/secret", "a.txt\u200b",
				"big/../../out/secret", strings.Repeat("a/", 5000) + "a",
			} {
				_, err := c.ReadResource(t.Context(), prefix+path, nil)
				notFound(t, era.Version, prefix+path, err)
			}
		}
		for _, uri := range []string{"file:///srv", "file:///etc/passwd", "file://localhost/srv/a.txt", "FILE:///srv/a.txt", "file:/srv/a.txt", "docs:///srv/a.txt"} {
			_, err := c.ReadResource(t.Context(), uri, nil)
			notFound(t, era.Version, uri, err)
		}
		for _, r := range collect(t, c.Resources(t.Context())) {
			for _, bad := range []string{".env", ".git", "leak", "secret", "up", "rel"} {
				if strings.Contains(r.URI, bad) {
					t.Errorf("the list holds %s", r.URI)
				}
			}
			if _, err := c.ReadResource(t.Context(), r.URI, nil); err != nil {
				t.Errorf("what is listed cannot be read: %v", err)
			}
		}
	})
}

// Proves: SEC-RES-3: the server's limit, before the bytes are read, and the
// client's own.
func TestSEC_RES_3(t *testing.T) {
	root := jungle(t)
	build := func(t testing.TB, o *server.Options) *server.Server {
		o.Limits.MaxResource = 1999
		return with(
			server.Directory("file:///srv/", root),
			server.Text("x:big", "big", strings.Repeat("x", 2000)),
			server.Text("x:fits", "fits", strings.Repeat("x", 1999)),
		)(t, o)
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		for _, uri := range []string{"file:///srv/big", "x:big"} {
			if _, err := c.ReadResource(t.Context(), uri, nil); code(err) != mcp.CodeTooLarge {
				t.Errorf("%s: error %v, want %d", uri, err, mcp.CodeTooLarge)
			}
		}
		if _, err := c.ReadResource(t.Context(), "x:fits", nil); err != nil {
			t.Error(err)
		}
	})
	t.Run("client", func(t *testing.T) {
		for _, version := range versions {
			synctest.Test(t, func(t *testing.T) {
				s := with(server.Text("x:big", "big", strings.Repeat("x", 200_000)), server.Text("x:fits", "fits", "x"))(t, quiet())
				c, err := client.Connect(t.Context(), mem.New(s, &mem.Options{MaxResponse: 100_000}), &client.Options{Versions: []string{version}})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if r, err := c.ReadResource(t.Context(), "x:big", nil); err == nil {
					t.Errorf("%s: the client took %d bytes", version, len(r.Contents[0].Text))
				}
				if _, err := c.ReadResource(t.Context(), "x:fits", nil); err != nil {
					t.Errorf("%s: afterwards: %v", version, err)
				}
			})
		}
	})
}

// Proves: SEC-RES-2, SEC-PROMPT-2, SEC-COMP-1, FLOW-TOOL-P: each caller sees
// what it may, in lists and by name; nothing tells the rest from what does not
// exist.
func TestSEC_RES_2(t *testing.T) {
	build := func(t testing.TB, o *server.Options) *server.Server {
		s := with(
			server.Text("x:ann", "ann", "A").With(server.ResourceOptions{Labels: []string{"ann"}}),
			server.Text("x:all", "all", "B"),
			server.Template("t://{owner}/{id}", "t", readIssue).With(server.TemplateOptions{Labels: []string{"ann"}, Complete: map[string]server.Completer{"owner": server.Choices("ann")}}),
			server.Tool("ann", "Ann's.", whoAsks).With(server.ToolOptions{Labels: []string{"ann"}}),
			server.Tool("all", "All's.", whoAsks),
			server.Prompt("ann", "Ann's.", func(context.Context, mcp.None) (string, error) { return "hi", nil }).With(server.PromptOptions{Labels: []string{"ann"}}),
			server.Prompt("all", "All's.", func(context.Context, mcp.None) (string, error) { return "hi", nil }),
		)(t, o)
		s.Visible(func(ctx context.Context, it server.Item) bool {
			for _, label := range it.Labels {
				if server.Caller(ctx).Subject != label {
					return false
				}
			}
			return true
		})
		return s
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := build(t, quiet())
				for _, who := range []string{"ann", "bob"} {
					seesAll(t, s, version, who, who == "ann")
				}
			})
		})
	}
}

// seesAll checks that a caller sees all of a server, or only what is for all.
func seesAll(t *testing.T, s *server.Server, version, who string, all bool) {
	t.Helper()
	c, err := client.Connect(t.Context(), mem.New(s, &mem.Options{Principal: &principal.Principal{Issuer: "https://as.example", Subject: who}}),
		&client.Options{Versions: []string{version}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := map[bool]int{true: 2, false: 1}[all]
	lists := map[string]int{
		"tools": len(collect(t, c.Tools(t.Context()))), "prompts": len(collect(t, c.Prompts(t.Context()))),
		"resources": len(collect(t, c.Resources(t.Context()))), "templates": 1 + len(collect(t, c.ResourceTemplates(t.Context()))),
	}
	for list, n := range lists {
		if n != want {
			t.Errorf("%s sees %d %s, want %d", who, n, list, want)
		}
	}
	_, tool := c.CallTool(t.Context(), "ann", nil, nil)
	_, prompt := c.GetPrompt(t.Context(), "ann", nil, nil)
	_, resource := c.ReadResource(t.Context(), "x:ann", nil)
	_, template := c.ReadResource(t.Context(), "t://o/1", nil)
	_, completion := c.Complete(t.Context(), &mcp.CompleteParams{Ref: mcp.ResourceRef("t://{owner}/{id}"), Argument: mcp.CompletionArgument{Name: "owner"}})
	for what, err := range map[string]error{"tool": tool, "prompt": prompt, "resource": resource, "template": template, "completion": completion} {
		if (err == nil) != all {
			t.Errorf("%s, %s: %v", who, what, err)
		}
	}
	if all {
		return
	}
	for name, err := range map[string]error{"ann": tool, "nobody": second(c.CallTool(t.Context(), "nobody", nil, nil))} {
		var e *jsonrpc.Error
		if !errors.As(err, &e) || e.Code != mcp.CodeInvalidParams || e.Message != fmt.Sprintf("unknown tool %q", name) {
			t.Errorf("tool %s: %v", name, err)
		}
	}
	notFound(t, version, "x:ann", resource)
	notFound(t, version, "t://o/1", template)
	if _, err := c.Subscribe(t.Context(), "x:ann"); err == nil {
		t.Errorf("%s may subscribe to what it may not read", who)
	}
}

func second[T any](_ T, err error) error { return err }

// Proves: SEC-RES-6: values of templates are decoded once, and hold nothing
// that leads elsewhere.
func TestSEC_RES_6(t *testing.T) {
	type file struct {
		Path string `uri:"path"`
	}
	var got []string
	echo := func(_ context.Context, v file) (string, error) {
		got = append(got, v.Path)
		return v.Path, nil
	}
	build := with(server.Template("one://{path}", "one", echo), server.Template("many://{+path}", "many", echo))
	mcptest.EachEra(t, build, nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		for uri, want := range map[string]string{"one://a%2525": "a%25", "one://gr%C3%BCn": "grün", "many://a/b/c": "a/b/c"} {
			r, err := c.ReadResource(t.Context(), uri, nil)
			if err != nil || r.Contents[0].Text != want {
				t.Errorf("%s: %+v, %v; want %q", uri, r, err, want)
			}
		}
		got = nil
		for _, uri := range []string{
			"one://a/b", "one://a%2Fb", "one://..", "one://%2e%2e", "one://a%5Cb", "one://a%00", "one://%", "one://%ff",
			"many://../b", "many://a/../b", "many://%2e%2e/b", "many://a%00", `many://a\b`, "many://a%5C..%5Cb",
		} {
			if _, err := c.ReadResource(t.Context(), uri, nil); err == nil {
				t.Errorf("%s was read", uri)
			}
		}
		if len(got) > 0 {
			t.Errorf("the handler saw %q", got)
		}
	})
}
