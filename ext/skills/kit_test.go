package skills_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// doc is a SKILL.md.
func doc(name string) string {
	return "---\nname: " + name + "\ndescription: What " + name + " is for.\n---\n# " + name + "\n"
}

// some are files of three skills, one nested in another.
func some() fstest.MapFS {
	return files(map[string]string{
		"README.md":                            "of no skill",
		"pdf/SKILL.md":                         doc("pdf"),
		"pdf/references/FORMS.md":              "forms",
		"pdf/references/a b#.txt":              "odd",
		"pdf/assets/logo.bin":                  "\x00\xff\xfe",
		"pdf/.secret":                          "hidden",
		"acme/billing/refunds/SKILL.md":        "\xef\xbb\xbf---\r\nname: refunds\r\ndescription: Refunds.\r\nsince: 2026-07-28\r\nmetadata:\r\n  version: 1.0\r\n---\r\nText.\r\n",
		"acme/billing/refunds/parts/SKILL.md":  doc("parts"),
		"acme/billing/refunds/parts/more.json": "{}",
	})
}

func files(texts map[string]string) fstest.MapFS {
	m := make(fstest.MapFS, len(texts))
	for name, text := range texts {
		m[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return m
}

// quiet drops what is logged.
var quiet = slog.New(slog.DiscardHandler)

// enable makes a server with the skills of a source.
func enable(tb testing.TB, source skills.Source, o *skills.Options, so *server.Options) (*server.Server, *skills.Catalog) {
	tb.Helper()
	if o == nil {
		o = &skills.Options{Logger: quiet}
	}
	s := server.New("skills", "1.0.0", so)
	c, err := skills.Enable(s, source, o)
	if err != nil {
		tb.Fatal(err)
	}
	return s, c
}

// with are options of a client that knows skills.
func with() *client.Options {
	return &client.Options{Extensions: []client.Extension{skills.Extension()}, Logger: quiet}
}

// connect connects a client to a server with the skills of a source.
func connect(tb testing.TB, source skills.Source, o *skills.Options) *client.Client {
	tb.Helper()
	s, _ := enable(tb, source, o, nil)
	return mcptest.Client(tb, s, with())
}

// listed are the entries that a server lists, by URI.
func listed(tb testing.TB, c *client.Client) map[string]*skills.Skill {
	tb.Helper()
	all := make(map[string]*skills.Skill)
	for s, err := range skills.List(tb.Context(), c) {
		if err != nil {
			tb.Fatal(err)
		}
		if err := s.Check(); err != nil {
			tb.Error(err)
		}
		all[s.URI] = s
	}
	return all
}

// get has one entry.
func get(tb testing.TB, c *client.Client, uri string) *skills.Skill {
	tb.Helper()
	s, err := skills.Get(tb.Context(), c, uri)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// code is that of an error of the server, or 0.
func code(err error) int64 {
	if answered, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return answered.Code
	}
	return 0
}

// raw asks for a method and returns the result as it came.
func raw(ctx context.Context, c *client.Client, method string, params any) (string, error) {
	got, err := client.CallMethod[mcp.RawValue](ctx, c, method, params)
	return string(got), err
}

// folder writes files into a new folder.
func folder(tb testing.TB, fsys fs.FS) string {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "skills")
	if err := os.CopyFS(dir, fsys); err != nil {
		tb.Fatal(err)
	}
	return dir
}

func write(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}
