package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/serve/servers/git"
)

// Proves: PART-REF. A repository in a format that is not supported is refused, with an error that
// names the format and the server to use instead.
func TestUnsupportedFormats(t *testing.T) {
	needGitProgram(t)
	config := func(text string) func(testing.TB, string) {
		return func(t testing.TB, dir string) { put(t, filepath.Join(dir, ".git", "config"), text) }
	}
	run := func(args ...string) func(testing.TB, string) {
		return func(t testing.TB, dir string) { gitIn(t, dir, args...) }
	}
	for _, test := range []struct {
		name   string
		change func(t testing.TB, dir string)
		tool   string
		words  string
	}{
		{"sha256", func(t testing.TB, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
			gitIn(t, dir, "init", "-q", "--object-format=sha256")
		}, "git_status", "object names of sha256"},
		{"reftable", config("[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = reftable\n"), "git_status", "the extension refstorage"},
		{"newer", config("[core]\n\trepositoryformatversion = 9\n"), "git_status", `format version "9"`},
		{"alternates", func(t testing.TB, dir string) {
			from := filepath.Join(filepath.Dir(dir), "from")
			if err := os.Rename(dir, from); err != nil {
				t.Fatal(err)
			}
			gitIn(t, from, "clone", "-q", "--shared", from, dir)
		}, "git_log", "objects/info/alternates"},
		{"alternates elsewhere", func(t testing.TB, dir string) {
			put(t, filepath.Join(dir, ".git", "objects", "info", "alternates"), filepath.Join(simple(t), ".git", "objects")+"\n")
		}, "git_log", "objects/info/alternates"},
		{"split index", run("update-index", "--split-index"), "git_status", "an index that is split"},
		{"sparse index", run("sparse-checkout", "set", "--cone", "--sparse-index", "in"), "git_status", "sparse"},
		{"sparse working tree", run("sparse-checkout", "set", "--cone", "--no-sparse-index", "in"), "git_checkout", "a sparse working tree"},
		{"index without checksum", func(t testing.TB, dir string) {
			path := filepath.Join(dir, ".git", "index")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			clear(text[len(text)-20:])
			put(t, path, string(text))
		}, "git_status", "index.skipHash"},
	} {
		t.Run(test.name, func(t *testing.T) {
			top := t.TempDir()
			dir := filepath.Join(top, "repository")
			if err := os.Rename(simple(t), dir); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"in/x.txt", "out/y.txt"} {
				put(t, filepath.Join(dir, filepath.FromSlash(name)), "text\n")
			}
			gitIn(t, dir, "add", ".")
			gitIn(t, dir, "commit", "-q", "-m", "folders")
			test.change(t, dir)
			args := map[string]any{"repo_path": dir}
			if test.tool == "git_checkout" {
				args["branch_name"] = "other"
			}
			text, failed := call(t, serve(t, &git.Options{Repositories: []string{top}}), test.tool, args)
			if !failed || !strings.Contains(text, test.words) || !strings.Contains(text, "mcp-server-git") {
				t.Errorf("%s gives %q (failed: %t), want an error with %q that names mcp-server-git", test.tool, text, failed, test.words)
			}
		})
	}
}
