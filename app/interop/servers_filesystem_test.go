package interop_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Clients of others use 'parley serve filesystem'.
func TestServersFilesystemClients(t *testing.T) {
	useBuiltin(t, func(t *testing.T) useCase {
		dir := t.TempDir()
		writeText(t, filepath.Join(dir, "notes.txt"), "one\ntwo\nthree\n")
		return useCase{
			args: []string{"filesystem", dir},
			tools: []string{
				"create_directory", "directory_tree", "edit_file", "get_file_info", "list_allowed_directories", "list_directory",
				"list_directory_with_sizes", "move_file", "read_file", "read_media_file", "read_multiple_files", "read_text_file",
				"search_files", "write_file",
			},
			calls: []useCall{
				{tool: "read_text_file", args: map[string]any{"path": "notes.txt", "head": 2}, want: "one\ntwo"},
				{tool: "write_file", args: map[string]any{"path": filepath.Join(dir, "new.txt"), "content": "new"}, want: "Successfully wrote"},
				{tool: "list_directory", args: map[string]any{"path": dir}, want: "[FILE] new.txt\n[FILE] notes.txt"},
				{tool: "read_text_file", args: map[string]any{"path": "/etc/passwd"}, want: "Access denied", failed: true},
			},
			read: fileURI(filepath.Join(dir, "notes.txt")), readWant: "three",
		}
	})
}

func fileURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return "file://" + path
}

func writeText(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// homes are two equal home directories, with a tree of files in each, for two servers.
type homes struct{ ours, theirs string }

// newHomes fills the tree of each home in the same way.
func newHomes(t *testing.T, fill func(t *testing.T, tree string)) homes {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the trees have symbolic links")
	}
	p := homes{}
	for _, home := range []*string{&p.ours, &p.theirs} {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		*home = dir
		writeText(t, filepath.Join(dir, "outside", "secret.txt"), "secret\n")
		fill(t, filepath.Join(dir, "tree"))
	}
	return p
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

// differential compares the servers on the trees.
func (p homes) differential(t *testing.T, seed uint64, next func(r *rand.Rand, i int) toolCall) *differential {
	t.Helper()
	env := func(home string) []string { return []string{"HOME=" + home, "TZ=UTC"} }
	return &differential{
		theirs: originalDialer(t, env(p.theirs), filesystemJS, filepath.Join(p.theirs, "tree")),
		ours:   builtinDialer(t, env(p.ours), "filesystem", filepath.Join(p.ours, "tree")),
		seed:   seed, next: next,
		normalize: func(_ toolCall, a *toolReply) {
			for i := range a.Content {
				a.Content[i] = p.normal(a.Content[i])
			}
			a.Structured = p.normal(a.Structured)
		},
	}
}

var times = regexp.MustCompile(`(?m)^(created|modified|accessed): [A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d{4} \d\d:\d\d:\d\d GMT\+0000 \(Coordinated Universal Time\)$`)

// normal is a value without what differs between the homes.
func (p homes) normal(v any) any {
	switch v := v.(type) {
	case string:
		v = strings.ReplaceAll(strings.ReplaceAll(v, p.ours, "HOME"), p.theirs, "HOME")
		return times.ReplaceAllString(v, "$1: a time")
	case []any:
		for i := range v {
			v[i] = p.normal(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = p.normal(v[k])
		}
	}
	return v
}

// checkTrees compares the trees: names, kinds, permissions, contents and targets of links.
func (p homes) checkTrees(t *testing.T) {
	t.Helper()
	if diff := cmp.Diff(p.snapshot(t, p.theirs), p.snapshot(t, p.ours)); diff != "" {
		t.Errorf("the trees differ (-theirs +ours):\n%s", diff)
	}
}

func (p homes) snapshot(t *testing.T, home string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(home, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what += " " + target
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += " " + string(data)
		}
		rel, err := filepath.Rel(home, path)
		all[rel], _ = p.normal(what).(string)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// follow makes their tree the same as ours, after a difference that is meant.
func (p homes) follow(t *testing.T) {
	t.Helper()
	tree := filepath.Join(p.theirs, "tree")
	entries, err := os.ReadDir(tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(tree, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	from := filepath.Join(p.ours, "tree")
	err = filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == from {
			return err
		}
		to := strings.Replace(path, p.ours, p.theirs, 1)
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch {
		case e.IsDir():
			return os.Mkdir(to, info.Mode().Perm())
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(strings.Replace(target, p.ours, p.theirs, 1), to)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return errors.Join(os.WriteFile(to, data, info.Mode().Perm()), os.Chmod(to, info.Mode().Perm()))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// fillFiles makes a tree with each kind of file.
func fillFiles(t *testing.T, tree string) {
	t.Helper()
	var long strings.Builder
	for i := range 400 {
		fmt.Fprintf(&long, "line %d of a lóng file\n", i)
	}
	for name, text := range map[string]string{
		"a.txt": "alpha\n  beta\n\tgamma\n\ndelta", "B.md": "# Title\n\nSome ```code```.\n", "empty.txt": "", "long.txt": long.String(),
		"sp ace.txt": "one\n", "ünï.txt": "\ufeffünï\n", ".hidden": "h", "broken.bin": "a\xe2\x82b\xffc\xf0\x9f\x98\n", "crlf.txt": "x\r\ny\r\nz",
		"sound.WAV": "RIFF", "picture.png": "\x89PNG", "vector.svg": "<svg/>", "percent%.bin": "\x00\x01",
		"dir1/c.txt": "c\n", "dir1/sub/d.go": "package d\n\nfunc main() {\n\tprintln(1)\n}\n", "dir2/x-1.log": "1", "dir2/x_1.log": "12", "dir2/X.log": strings.Repeat("x", 1152),
		"node_modules/m/index.js": "m",
	} {
		writeText(t, filepath.Join(tree, name), text)
	}
	if err := os.Mkdir(filepath.Join(tree, "nothing"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(tree, "B.md"), 0o640); err != nil {
		t.Fatal(err)
	}
	link(t, "a.txt", filepath.Join(tree, "link.txt"))
	link(t, filepath.Join(tree, "dir1"), filepath.Join(tree, "dirlink"))
	link(t, "../outside", filepath.Join(tree, "out"))
	link(t, "missing", filepath.Join(tree, "dangling"))
	link(t, "loop", filepath.Join(tree, "loop"))
}

// A generator makes calls for a tree.
type generator struct {
	r    *rand.Rand
	tree string // ours, to find lines in
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// path is one of the paths of the tree, or one that is not, in several spellings.
func (g *generator) path() string {
	name := pick(g.r,
		"a.txt", "a.txt", "B.md", "empty.txt", "long.txt", "sp ace.txt", "ünï.txt", ".hidden", "broken.bin", "crlf.txt", "percent%.bin",
		"dir1", "dir1/c.txt", "dir1/sub", "dir1/sub/d.go", "dir2", "dir2/X.log", "nothing", "node_modules", ".", "", "new.txt", "new/deep/n.txt",
		"link.txt", "dirlink", "dirlink/c.txt", "dirlink/sub/d.go", "out", "out/secret.txt", "dangling", "loop", "missing.txt", "missing/x.txt",
		"a.txt/x", "../outside/secret.txt", "../tree/a.txt", "dir1/../a.txt", "dir1/./c.txt", "../../..", "nul\x00.txt", "sound.WAV", "picture.png", "vector.svg")
	switch g.r.IntN(12) {
	case 0:
		return name + "/"
	case 1, 2:
		return "~/tree/" + name
	case 3, 4:
		return pick(g.r, "./", "dir1/../", "~/outside/../tree/", "~/tree//") + name
	}
	return name
}

func (g *generator) file() string {
	return pick(g.r, "a.txt", "B.md", "long.txt", "dir1/sub/d.go", "dir1/c.txt", "ünï.txt", "link.txt", "empty.txt", g.path())
}

// text is one to six lines.
func (g *generator) text() string {
	var b strings.Builder
	for range 1 + g.r.IntN(6) {
		b.WriteString(pick(g.r, "", "  ", "\t") + pick(g.r, "alpha", "beta", "x = 1", "```", "ü😀", "}", "") + pick(g.r, "\n", "\n", "\n", ""))
	}
	return b.String()
}

// edits change lines that are in the file, mostly.
func (g *generator) edits(file string) []any {
	var edits []any
	data, err := os.ReadFile(filepath.Join(g.tree, filepath.FromSlash(strings.ReplaceAll(file, "\x00", ""))))
	lines := strings.Split(string(data), "\n")
	for range 1 + g.r.IntN(3) {
		old := g.text()
		if err == nil && g.r.IntN(6) > 0 {
			from := g.r.IntN(len(lines))
			old = strings.Join(lines[from:min(len(lines), from+1+g.r.IntN(3))], "\n")
			if g.r.IntN(2) == 0 { // other space around it
				old = pick(g.r, " ", "    ", "") + strings.ReplaceAll(strings.TrimSpace(old), "\n", "\n"+pick(g.r, "  ", "\t", ""))
			}
		}
		edits = append(edits, map[string]any{"oldText": old, "newText": g.text()})
	}
	return edits
}

func (g *generator) call() toolCall {
	with := func(tool string, args map[string]any) toolCall {
		if g.r.IntN(60) == 0 {
			args["unknown"] = true
		}
		return toolCall{tool, args}
	}
	switch g.r.IntN(18) {
	case 0, 1, 2:
		args := map[string]any{"path": g.path()}
		if g.r.IntN(2) == 0 {
			args["head"] = pick[any](g.r, 0, 1, 2, 5, 60, 1000, 1.5, "3")
		}
		if g.r.IntN(3) == 0 {
			args["tail"] = pick(g.r, 0, 1, 2, 5, 60, 1000)
		}
		return with(pick(g.r, "read_text_file", "read_file"), args)
	case 3:
		return with("read_media_file", map[string]any{"path": pick(g.r, "sound.WAV", "picture.png", "vector.svg", g.path())})
	case 4:
		paths := make([]any, g.r.IntN(4))
		for i := range paths {
			paths[i] = g.path()
		}
		return with("read_multiple_files", map[string]any{"paths": paths})
	case 5, 6:
		return with("write_file", map[string]any{"path": pick(g.r, g.file(), g.path()), "content": g.text() + g.text()})
	case 7, 8, 9:
		file := g.file()
		return with("edit_file", map[string]any{"path": file, "edits": g.edits(file), "dryRun": g.r.IntN(3) == 0})
	case 10:
		return with("create_directory", map[string]any{"path": pick(g.r, "made", "made/deep/er", "nothing", g.path())})
	case 11, 12:
		return with(pick(g.r, "list_directory", "directory_tree"), map[string]any{"path": g.path()})
	case 13:
		return with("list_directory_with_sizes", map[string]any{"path": pick(g.r, "dir1", "dir2", g.path()), "sortBy": pick[any](g.r, "name", "size", "date")})
	case 14:
		return with("move_file", map[string]any{"source": g.path(), "destination": pick(g.r, "moved.txt", "made/moved", g.path())})
	case 15:
		return with("search_files", map[string]any{"path": g.path(), "pattern": pick(g.r, "**/*.txt", "*", "**", "dir1/**", "*.{md,log}")})
	case 16:
		return with("list_allowed_directories", map[string]any{})
	}
	return with("get_file_info", map[string]any{"path": g.path()})
}

// has reports whether a value of a call is one of these.
func has(in toolCall, member string, values ...any) bool {
	return slices.Contains(values, in.args[member])
}

// The same 500 calls give the same results from 'parley serve filesystem' and its original, on two
// equal trees, which stay equal but for the differences that are meant.
func TestServersFilesystemDiffers(t *testing.T) {
	peersDir(t)
	p := newHomes(t, fillFiles)
	g := &generator{tree: filepath.Join(p.ours, "tree")}
	d := p.differential(t, 80, func(r *rand.Rand, i int) toolCall {
		g.r = r
		if i == 7 {
			return toolCall{"move_file", map[string]any{"source": "link.txt", "destination": "moved link.txt"}}
		}
		return g.call()
	})
	differed := false // what the last call changed may differ
	differs := func(is bool) bool {
		differed = differed || is
		return is
	}
	d.allowed = []knownDifference{
		{"unknown members", func(in toolCall, ours, _ *toolReply) bool { return has(in, "unknown", true) && ours.Refused }},
		{"fractions of lines", func(in toolCall, ours, theirs *toolReply) bool {
			return has(in, "head", 1.5) && ours.Refused && !theirs.Refused
		}},
		{"no lines", func(in toolCall, ours, theirs *toolReply) bool {
			return (has(in, "head", 0) || has(in, "tail", 0)) && ours.Refused && !theirs.Refused
		}},
		{"the words about a link that leads to nothing", func(in toolCall, ours, theirs *toolReply) bool {
			return in.tool == "read_multiple_files" && strings.Contains(fmt.Sprint(ours.Content), "ENOENT: the symbolic link") && strings.Contains(fmt.Sprint(theirs.Content), "Parent directory does not exist")
		}},
		{"lines of head and tail", func(in toolCall, ours, theirs *toolReply) bool {
			_, head := in.args["head"]
			_, tail := in.args["tail"]
			return (head || tail) && !ours.Refused && !theirs.Refused && !cmp.Equal(ours, theirs)
		}},
		{"media once", func(in toolCall, ours, theirs *toolReply) bool {
			return in.tool == "read_media_file" && !ours.Refused && ours.Structured == nil && cmp.Equal(ours.Content, theirs.Content)
		}},
		{"edits that name several places, or none", func(in toolCall, ours, theirs *toolReply) bool {
			return differs(in.tool == "edit_file" && ours.Refused && !theirs.Refused)
		}},
		{"indentation, line ends and the diff of edits", func(in toolCall, ours, theirs *toolReply) bool {
			return differs(in.tool == "edit_file" && !ours.Refused && !cmp.Equal(ours, theirs))
		}},
		{"links are moved themselves", func(in toolCall, ours, theirs *toolReply) bool {
			source := fmt.Sprint(in.args["source"])
			return differs(in.tool == "move_file" && (strings.Contains(source, "link") || strings.HasSuffix(source, "dangling")) && !ours.Refused)
		}},
	}
	calls := 0
	d.each = func(t *testing.T, in toolCall) {
		t.Helper()
		if differed || strings.Contains(fmt.Sprint(in.args["path"], in.args["source"]), "crlf") {
			p.follow(t)
			differed = false
		}
		if calls++; calls%25 == 0 {
			p.checkTrees(t)
		}
	}
	d.run(t)
	p.checkTrees(t)
}

// pattern is a pattern of the language of minimatch.
func pattern(r *rand.Rand, depth int) string {
	var b strings.Builder
	for range 1 + r.IntN(4) {
		switch n := r.IntN(22); {
		case n < 5:
			b.WriteString(pick(r, "a", "b", "dir", "x", ".txt", "1", ".", "c", "-"))
		case n < 8:
			b.WriteString("*")
		case n < 9:
			b.WriteString("**")
		case n < 12:
			b.WriteString(pick(r, "/", "/**/", "**/", "/*/", "//"))
		case n < 13:
			b.WriteString("?")
		case n < 15:
			b.WriteString(pick(r, "[a-c]", "[!a]", "[^b]", "[[:alpha:]]", "[]", "[a", "[]x]", "[z-a]", "[a-", "[\\]]", "[-x]", "[[:digit:]_]", "[a-c1-2]"))
		case n < 17 && depth > 0:
			b.WriteString(pick(r, "@", "?", "*", "+", "!") + "(" + pattern(r, depth-1) + pick(r, "|"+pattern(r, depth-1), "|", "") + pick(r, ")", ")", ")", ""))
		case n < 19 && depth > 0:
			b.WriteString("{" + pattern(r, depth-1) + pick(r, ","+pattern(r, depth-1), ",", "") + pick(r, "}", "}", "}", ""))
		case n < 20:
			b.WriteString(pick(r, "{1..3}", "{a..c}", "{01..3}", "{c..a..2}", "{}", "${a,b}", "{a}", "{1,2}x}"))
		case n < 21:
			b.WriteString(pick(r, "\\*", "\\a", "\\{", "\\", "!", "#", "..", "(", ")", "|"))
		}
	}
	return b.String()
}

// The same patterns find the same files.
func TestServersFilesystemPatterns(t *testing.T) {
	peersDir(t)
	p := newHomes(t, func(t *testing.T, tree string) {
		for _, name := range []string{
			"a", "b", "c", "ab", "abc", "aab", "ba", "x", "1", "2", "3", "01", "02", ".a", ".txt", "a.txt", "b.txt", "a-c", "[a", "!a", "#a", "(a)", "{a}", "$a", "a*", "x]",
			"dir/a", "dir/b.txt", "dir/x/a.txt", "dir/x/1/c", "dir/.h/a", "c1/a/b/c", "c1/b/a", "é",
		} {
			writeText(t, filepath.Join(tree, name), name)
		}
	})
	d := p.differential(t, 81, func(r *rand.Rand, i int) toolCall {
		text := pattern(r, 2)
		switch i % 4 {
		case 0:
			return toolCall{"directory_tree", map[string]any{"path": "~/tree", "excludePatterns": []any{text, pattern(r, 1)}}}
		case 1:
			return toolCall{"search_files", map[string]any{"path": ".", "pattern": "**", "excludePatterns": []any{text}}}
		}
		return toolCall{"search_files", map[string]any{"path": ".", "pattern": text}}
	})
	d.allowed = []knownDifference{
		// It makes a regular expression of them that is none: it fails, or in a search finds nothing.
		{"patterns that the original cannot read", func(in toolCall, ours, theirs *toolReply) bool {
			found, _ := theirs.Structured.(map[string]any)
			return !ours.Refused && !cmp.Equal(ours, theirs) && (theirs.Refused || strings.Contains(fmt.Sprint(in.args), "[[:") && found["content"] == "No matches found")
		}},
	}
	d.run(t)
}
