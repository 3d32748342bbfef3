package git_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/serve/servers/git"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
)

// Files that git leaves alone, because they are outside of a sparse checkout or marked, are not staged.
func TestAddLeavesSkipped(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	put(t, filepath.Join(dir, "secret.conf"), "none\n")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-q", "-m", "conf")
	put(t, filepath.Join(dir, "secret.conf"), "default\n")
	gitIn(t, dir, "commit", "-q", "-a", "-m", "conf")
	gitIn(t, dir, "update-index", "--skip-worktree", "secret.conf")
	put(t, filepath.Join(dir, "secret.conf"), "mine\n")
	c := serve(t, nil)
	for _, name := range []string{".", "*", "*.txt"} {
		must(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{name}})
	}
	for _, name := range []string{"secret.conf", "*.conf"} {
		refused(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{"a.txt", name}}, "skip-worktree")
	}
	if s := gitIn(t, dir, "diff", "--cached", "--name-only"); s != "" {
		t.Errorf("staged: %s", s)
	}
	gitIn(t, dir, "reset", "-q", "--soft", "HEAD~1")
	must(t, c, "git_reset", map[string]any{"repo_path": dir})
	if s := gitIn(t, dir, "ls-files", "-v"); s != "H a.txt\nS secret.conf\n" {
		t.Errorf("the marks are %q", s)
	}
}

// Staging in a sparse checkout does not stage that the other files are deleted.
func TestAddSparse(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	put(t, filepath.Join(dir, "in", "x"), "x\n")
	put(t, filepath.Join(dir, "out", "y"), "y\n")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-q", "-m", "folders")
	gitIn(t, dir, "sparse-checkout", "set", "in")
	put(t, filepath.Join(dir, "in", "x"), "changed\n")
	asGit(t, dir, "git_add", map[string]any{"files": []string{"."}}, "add", ".")
	asGit(t, dir, "git_add", map[string]any{"files": []string{"out"}}, "add", "out")
	asGit(t, dir, "git_add", map[string]any{"files": []string{"out/y"}}, "add", "out/y")
}

// A mark of git that the server cannot keep in the index is an error before anything changes.
func TestAssumeUnchanged(t *testing.T) {
	needGitProgram(t)
	for _, version := range []string{"2", "3", "4"} {
		dir := simple(t)
		put(t, filepath.Join(dir, "new.txt"), "x\n")
		put(t, filepath.Join(dir, "other.txt"), "x\n")
		gitIn(t, dir, "add", "-N", "other.txt")
		gitIn(t, dir, "update-index", "--assume-unchanged", "a.txt")
		gitIn(t, dir, "update-index", "--index-version", version)
		before := state(t, dir)
		c := serve(t, nil)
		in := func(more map[string]any) map[string]any { more["repo_path"] = dir; return more }
		must(t, c, "git_status", in(map[string]any{}))
		words := "git update-index --no-assume-unchanged a.txt"
		refused(t, c, "git_add", in(map[string]any{"files": []string{"new.txt"}}), words)
		refused(t, c, "git_reset", in(map[string]any{}), words)
		refused(t, c, "git_checkout", in(map[string]any{"branch_name": "other"}), words)
		if d := cmp.Diff(before, state(t, dir)); d != "" {
			t.Errorf("index version %s: the repository was changed:\n%s", version, d)
		}
		if s := gitIn(t, dir, "ls-files", "-v"); !strings.Contains(s, "h a.txt\n") {
			t.Errorf("index version %s: the marks are %q", version, s)
		}
		gitIn(t, dir, "update-index", "--no-assume-unchanged", "a.txt")
		must(t, c, "git_add", in(map[string]any{"files": []string{"new.txt"}}))
	}
}

// Patterns that are given many times take the memory of one.
func TestAddManyPaths(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	blob := strings.TrimSpace(gitIn(t, dir, "rev-parse", "HEAD:a.txt"))
	var list strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&list, "100644 %s\tfiles/%d\n", blob, i)
	}
	if out, err := tryGit(dir, []byte(list.String()), "update-index", "--index-info"); err != nil {
		t.Fatal(out)
	}
	gitIn(t, dir, "commit", "-q", "-m", "many")
	gitIn(t, dir, "checkout", "-q", "--", "files")
	args := map[string]any{"repo_path": dir, "files": slices.Repeat([]string{"*"}, 10_000)}
	c := serve(t, nil)
	var text string
	if used := allocated(func() { text = must(t, c, "git_add", args) }); used > 100<<20 {
		t.Errorf("%d bytes were used", used)
	}
	if !strings.HasPrefix(text, "Nothing was staged.\nNo changes in: *, *, ") || !strings.HasSuffix(text, "... and 9900 more") {
		t.Errorf("git_add gives %q", text)
	}
}

// A reset that asks first works in a repository that is large enough for progress.
func TestConfirmManyFiles(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	blob := strings.TrimSpace(gitIn(t, dir, "rev-parse", "HEAD:a.txt"))
	var list strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&list, "100644 %s\tfiles/%d\n", blob, i)
	}
	if out, err := tryGit(dir, []byte(list.String()), "update-index", "--index-info"); err != nil {
		t.Fatal(out)
	}
	c := serve(t, &git.Options{Confirm: true}, &client.Options{
		OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return client.Accept(map[string]any{"sure": true})
		},
	})
	must(t, c, "git_reset", map[string]any{"repo_path": dir})
	if s := gitIn(t, dir, "diff", "--cached", "--name-only"); s != "" {
		t.Errorf("%d lines are still staged", strings.Count(s, "\n"))
	}
}
