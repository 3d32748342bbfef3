package filesystem

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
)

// largest makes a tree for calls that take long: many entries, long files, a deep directory.
func largest(t *testing.T, dir string) (paths []string) {
	t.Helper()
	deep := filepath.Join(dir, strings.Repeat("d/", 200))
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1_000 {
		path := filepath.Join(dir, fmt.Sprintf("%04d", i))
		if i%100 == 0 {
			path += strings.Repeat("a", 200)
		}
		write(path, "x")
		paths = append(paths, path)
	}
	write(filepath.Join(dir, "lines"), strings.Repeat("a line\n", 20_000))
	write(filepath.Join(dir, "crlf"), strings.Repeat("a line\r\n", 20_000)+"the end")
	write(filepath.Join(dir, "broken"), strings.Repeat("\xff", 64<<10))
	write(filepath.Join(dir, "media.png"), strings.Repeat("x", 4<<20))
	if err := os.Symlink("lines", filepath.Join(dir, "link")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	return paths
}

// Each tool, and each request for resources, ends at the next look at its context when it is
// cancelled, with the largest arguments that its schema allows. It looks often.
func TestCancelledAnywhere(t *testing.T) {
	s, d, dir := inside(t, nil)
	paths := largest(t, dir)
	in := func(name string) string { return filepath.Join(dir, name) }
	exclude := append([]string{strings.Repeat("*(a|", 20) + "b" + strings.Repeat(")", 20)}, slices.Repeat([]string{"**/*b*{c,d,e}"}, 99)...)
	edits := slices.Repeat([]edit{{"a line  \n  a lime", "x"}}, 1_000)
	inOrder := []edit{}
	for i := range 1_000 {
		inOrder = append(inOrder, edit{fmt.Sprint("step ", i, ";"), fmt.Sprint("step ", i+1, ";")})
	}
	if err := os.WriteFile(in("steps"), []byte("step 0;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const entries = 1_000 // of the tree, and somewhat more
	uri := func(name string) string { return strings.TrimPrefix(filepath.ToSlash(in(name)), "/") }
	text := func(_ string, err error) error { return err }
	noted := func(_, _ string, err error) error { return err }
	tools := map[string]struct {
		looks int // how many there are at least
		call  func(ctx context.Context) error
	}{
		"read_text_file": {1, func(ctx context.Context) error {
			return text(s.readText(ctx, d, readIn{Path: in("lines"), Head: 19_999}))
		}},
		"read_text_file, broken": {16, func(ctx context.Context) error {
			return text(s.readText(ctx, d, readIn{Path: in("broken")}))
		}},
		"read_file": {2, func(ctx context.Context) error {
			return text(s.readText(ctx, d, readIn{Path: in("lines"), Tail: 19_999}))
		}},
		"read_multiple_files":       {2_000, func(ctx context.Context) error { return text(s.readMany(ctx, d, readManyIn{Paths: paths})) }},
		"read_media_file":           {4, func(ctx context.Context) error { _, err := s.readMedia(ctx, mediaIn{in("media.png")}); return err }},
		"list_directory":            {2, func(ctx context.Context) error { return noted(s.list(ctx, d, pathIn{dir})) }},
		"list_directory_with_sizes": {entries, func(ctx context.Context) error { return noted(s.listSizes(ctx, d, sizesIn{Path: dir})) }},
		"directory_tree":            {2*entries + 200, func(ctx context.Context) error { return noted(s.tree(ctx, d, treeIn{dir, exclude})) }},
		"search_files":              {2*entries + 200, func(ctx context.Context) error { return noted(s.search(ctx, d, searchIn{dir, "**/*", exclude})) }},
		"get_file_info":             {200, func(ctx context.Context) error { return text(s.info(ctx, d, infoIn{in(strings.Repeat("d/", 200))})) }},
		"list_allowed_directories":  {0, nil}, // it has no arguments and looks at nothing
		"write_file": {200, func(ctx context.Context) error {
			return text(s.write(ctx, d, writeIn{in(strings.Repeat("d/", 200) + "x"), "x"}))
		}},
		"create_directory": {200, func(ctx context.Context) error {
			return text(s.makeDirectory(ctx, d, makeIn{in(strings.Repeat("d/", 200) + "new")}))
		}},
		"move_file": {200, func(ctx context.Context) error {
			return noted(s.move(ctx, d, moveIn{in("link"), in(strings.Repeat("d/", 200) + "none/to")}))
		}},
		"edit_file": {1_000, func(ctx context.Context) error {
			return text(s.edit(ctx, d, editIn{Path: in("steps"), Edits: inOrder, DryRun: true}))
		}},
		"edit_file, CRLF": {35, func(ctx context.Context) error {
			return text(s.edit(ctx, d, editIn{Path: in("crlf"), Edits: []edit{{"the end", "x"}}, DryRun: true}))
		}},
		"edit_file, no match": {15, func(ctx context.Context) error { return text(s.edit(ctx, d, editIn{Path: in("lines"), Edits: edits})) }},
		"resources/list":      {entries, func(ctx context.Context) error { _, err := s.listResources(ctx); return err }},
		"resources/read":      {4, func(ctx context.Context) error { _, err := s.readResource(ctx, fileIn{uri("media.png")}); return err }},
		"completion/complete": {entries, func(ctx context.Context) error { _, err := s.complete(ctx, uri("")+"/", nil); return err }},
	}
	for tool, err := range mcptest.Client(t, s.server).Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if _, known := tools[tool.Name]; !known {
			t.Errorf("%s is not tested", tool.Name)
		}
	}
	cause := errors.New("no longer wanted")
	for name, tool := range tools {
		if tool.call == nil {
			continue
		}
		whole := &meddler{Context: t.Context(), meddle: func() {}}
		var refusal *mcp.Error
		if err := tool.call(whole); err != nil && !errors.As(err, &refusal) {
			t.Errorf("%s: %v", name, err)
		}
		looks := -whole.left
		if looks < tool.looks {
			t.Errorf("%s: looks %d times at its context, want at least %d", name, looks, tool.looks)
		}
		for _, k := range []int{1, 2, looks / 4, looks / 2, looks * 3 / 4, looks} {
			ctx, cancel := context.WithCancelCause(t.Context())
			m := &meddler{ctx, max(1, k), func() { cancel(cause) }}
			err := tool.call(m)
			cancel(nil)
			if !errors.Is(err, cause) && k < looks {
				t.Errorf("%s, cancelled at look %d of %d: %v", name, k, looks, err)
			}
			if m.left < -10 {
				t.Errorf("%s, cancelled at look %d of %d: looks %d times after that", name, k, looks, -m.left)
			}
		}
	}
}
