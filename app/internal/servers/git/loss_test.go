package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/servers/git"
	"github.com/parley-mcp/parley/app/internal/servers/git/repo"
)

// asGit calls a tool in one repository and git in a copy. It compares whether they fail, and what they
// leave.
func asGit(t *testing.T, dir, tool string, args map[string]any, command ...string) {
	t.Helper()
	theirs := copyOf(t, dir)
	args["repo_path"] = dir
	text, failed := call(t, serve(t, nil), tool, args)
	said, err := tryGit(theirs, nil, command...)
	if failed != (err != nil) {
		t.Errorf("%s gives %q (failed: %t), git %v: %s", tool, text, failed, err, said)
	}
	if d := cmp.Diff(state(t, theirs), state(t, dir)); d != "" {
		t.Errorf("the repositories differ (-git +ours):\n%s", d)
	}
}

// A name that both a branch and a tag have means the branch, for HEAD and for the files.
func TestCheckoutPrefersBranch(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	gitIn(t, dir, "tag", "other", "HEAD~1")
	asGit(t, dir, "git_checkout", map[string]any{"branch_name": "other"}, "checkout", "-q", "other")
}

// A checkout ends a merge, a cherry-pick or a revert: the next commit has one parent.
func TestCheckoutEndsMerge(t *testing.T) {
	needGitProgram(t)
	for name, start := range map[string][]string{
		"merge":       {"merge", "--no-commit", "other"},
		"cherry-pick": {"cherry-pick", "other"},
		"revert":      {"revert", "HEAD~1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := conflict(t)
			gitIn(t, dir, "merge", "--abort")
			if out, err := tryGit(dir, nil, start...); err == nil {
				t.Fatalf("git %v has no conflict: %s", start, out)
			}
			put(t, filepath.Join(dir, "a.txt"), "ours\n")
			gitIn(t, dir, "add", "a.txt")
			asGit(t, dir, "git_checkout", map[string]any{"branch_name": "other"}, "checkout", "-q", "other")
			for _, name := range []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "MERGE_MSG"} {
				if _, err := os.Lstat(filepath.Join(dir, ".git", name)); err == nil {
					t.Errorf("%s is left", name)
				}
			}
		})
	}
}

// If a file of the other branch cannot be read, a checkout changes nothing.
func TestCheckoutReadsFirst(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	put(t, filepath.Join(dir, "z.txt"), "small\n")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-q", "-m", "small")
	gitIn(t, dir, "checkout", "-q", "-b", "large")
	put(t, filepath.Join(dir, "a.txt"), "theirs\n")
	put(t, filepath.Join(dir, "z.txt"), strings.Repeat("large\n", 1000))
	gitIn(t, dir, "commit", "-q", "-a", "-m", "large")
	blob := strings.TrimSpace(gitIn(t, dir, "rev-parse", "large:z.txt"))
	packed := copyOf(t, dir)
	gitIn(t, packed, "gc", "-q")
	for _, dir := range []string{dir, packed} {
		gitIn(t, dir, "checkout", "-q", "main")
		before := state(t, dir)
		c := serve(t, &git.Options{Limits: repo.Limits{Object: 5000}})
		refused(t, c, "git_checkout", map[string]any{"repo_path": dir, "branch_name": "large"}, "5000")
		if d := cmp.Diff(before, state(t, dir)); d != "" {
			t.Errorf("the repository was changed:\n%s", d)
		}
	}
	if err := os.Remove(filepath.Join(dir, ".git", "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	refused(t, serve(t, nil), "git_checkout", map[string]any{"repo_path": dir, "branch_name": "large"}, blob)
	if s := gitIn(t, dir, "status", "--porcelain"); s != "" {
		t.Errorf("the working tree was changed: %s", s)
	}
}

// A branch file that cannot be understood is an error that names it. It is not a branch without commits,
// whose history the next commit would replace.
func TestDamagedBranch(t *testing.T) {
	needGitProgram(t)
	for name, damage := range map[string]struct {
		text string
		pack bool
	}{
		"empty": {}, "zeros": {text: strings.Repeat("\x00", 41)}, "words": {text: "ref to main\n"}, "packed": {pack: true},
		"short": {text: "1234567\n"}, "loop": {text: "ref: refs/heads/main\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := simple(t)
			if damage.pack {
				gitIn(t, dir, "pack-refs", "--all")
			}
			file := filepath.Join(dir, ".git", "refs", "heads", "main")
			put(t, file, damage.text)
			c := serve(t, nil)
			in := func(more map[string]any) map[string]any { more["repo_path"] = dir; return more }
			refused(t, c, "git_commit", in(map[string]any{"message": "m"}), "refs/heads/main")
			refused(t, c, "git_log", in(map[string]any{}), "refs/heads/main")
			refused(t, c, "git_status", in(map[string]any{}), "refs/heads/main")
			refused(t, c, "git_reset", in(map[string]any{}), "refs/heads/main")
			refused(t, c, "git_create_branch", in(map[string]any{"branch_name": "main", "base_branch": "other"}), "refs/heads/main")
			list := must(t, c, "git_branch", in(map[string]any{"branch_type": "local"}))
			if !strings.Contains(list, "  other\n") || !strings.Contains(list, "ignoring broken ref refs/heads/main") {
				t.Errorf("git_branch gives %q", list)
			}
			if now, err := os.ReadFile(file); err != nil || string(now) != damage.text {
				t.Errorf("the branch was written: %q %v", now, err)
			}
			refused(t, c, "git_checkout", in(map[string]any{"branch_name": "other"}), "refs/heads/main")
		})
	}
}
