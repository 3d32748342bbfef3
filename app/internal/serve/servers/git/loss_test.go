package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/serve/servers/git"
	"github.com/parley-mcp/parley/app/internal/serve/servers/git/gogit"
)

// asGit calls a tool in one repository and git in a copy. It compares whether they fail, and what they
// leave.
func asGit(t *testing.T, dir, tool string, args map[string]any, command ...string) string {
	t.Helper()
	theirs := copyOf(t, dir)
	if args == nil {
		args = make(map[string]any)
	}
	args["repo_path"] = dir
	text, failed := call(t, serve(t, nil), tool, args)
	said, err := tryGit(theirs, nil, command...)
	if failed != (err != nil) {
		t.Errorf("%s gives %q (failed: %t), git %v: %s", tool, text, failed, err, said)
	}
	if d := cmp.Diff(history(t, theirs), history(t, dir)); d != "" {
		t.Errorf("the repositories differ (-git +ours):\n%s", d)
	}
	return text
}

// history is the state of a repository with its branches and what its reflogs say.
func history(t testing.TB, dir string) string {
	t.Helper()
	return state(t, dir) + gitIn(t, dir, "status") + gitIn(t, dir, "branch", "-a") + gitIn(t, dir, "log", "--walk-reflogs", "--all", "--grep-reflog=^[^r]", "--format=%gs %H") // git reset notes that HEAD stays where it is
}

// A name that both a branch and a tag have means the branch, for HEAD and for the files. A branch that is a
// symbolic reference stays one: what is written goes to the branch that it leads to.
func TestBranchesAsGit(t *testing.T) {
	needGitProgram(t)
	symbolic := func(t *testing.T, dir, name, to string) {
		t.Helper()
		gitIn(t, dir, "symbolic-ref", "refs/heads/"+name, "refs/heads/"+to)
	}
	for _, test := range []struct {
		name    string
		make    func(t *testing.T, dir string)
		tool    string
		args    map[string]any
		command []string
	}{
		{
			"a tag of the same name", func(t *testing.T, dir string) { gitIn(t, dir, "tag", "other", "HEAD~1") },
			"git_checkout",
			map[string]any{"branch_name": "other"},
			[]string{"checkout", "-q", "other"},
		},
		{
			"to a symbolic one", func(t *testing.T, dir string) { symbolic(t, dir, "link", "other") },
			"git_checkout",
			map[string]any{"branch_name": "link"},
			[]string{"checkout", "-q", "link"},
		},
		{
			"from a symbolic one", func(t *testing.T, dir string) {
				symbolic(t, dir, "link", "other")
				gitIn(t, dir, "checkout", "-q", "link")
			},
			"git_checkout",
			map[string]any{"branch_name": "main"},
			[]string{"checkout", "-q", "main"},
		},
		{
			"HEAD of a symbolic one", func(t *testing.T, dir string) {
				symbolic(t, dir, "link", "other")
				gitIn(t, dir, "checkout", "-q", "link")
			},
			"git_checkout",
			map[string]any{"branch_name": "HEAD"},
			[]string{"checkout", "-q", "HEAD"},
		},
		{"commit on a symbolic one", func(t *testing.T, dir string) {
			symbolic(t, dir, "far", "other")
			symbolic(t, dir, "link", "far")
			gitIn(t, dir, "checkout", "-q", "link")
			stageFile(t)(dir)
		}, "git_commit", map[string]any{"message": "m\n"}, []string{"commit", "-q", "-m", "m"}},
		{"commit where a symbolic one has none", func(t *testing.T, dir string) {
			symbolic(t, dir, "link", "deep/new")
			gitIn(t, dir, "symbolic-ref", "HEAD", "refs/heads/link")
		}, "git_commit", map[string]any{"message": "m\n"}, []string{"commit", "-q", "-m", "m"}},
		{"commit of what was picked", func(t *testing.T, dir string) {
			gitIn(t, dir, "checkout", "-q", "other")
			stageFile(t)(dir)
			gitIn(t, dir, "commit", "-q", "-m", "picked", "--author", "Bob <bob@example.com>", "--date", "1600000000 -0330")
			gitIn(t, dir, "checkout", "-q", "main")
			gitIn(t, dir, "cherry-pick", "--no-commit", "other")
			put(t, filepath.Join(dir, ".git", "CHERRY_PICK_HEAD"), gitIn(t, dir, "rev-parse", "other"))
		}, "git_commit", map[string]any{"message": "m\n"}, []string{"commit", "-q", "-m", "m"}},
		{"commit with all logs", func(t *testing.T, dir string) {
			gitIn(t, dir, "config", "core.logAllRefUpdates", "always")
			stageFile(t)(dir)
		}, "git_commit", map[string]any{"message": "m\n"}, []string{"commit", "-q", "-m", "m"}},
		{"commit without new logs", func(t *testing.T, dir string) {
			gitIn(t, dir, "config", "core.logAllRefUpdates", "false")
			stageFile(t)(dir)
		}, "git_commit", map[string]any{"message": "m\n"}, []string{"commit", "-q", "-m", "m"}},
		{
			"create over a symbolic one to nothing", func(t *testing.T, dir string) { symbolic(t, dir, "link", "new") },
			"git_create_branch",
			map[string]any{"branch_name": "link"},
			[]string{"branch", "link"},
		},
		{
			"create over a symbolic one below a branch", func(t *testing.T, dir string) { symbolic(t, dir, "link", "other/new") },
			"git_create_branch",
			map[string]any{"branch_name": "link"},
			[]string{"branch", "link"},
		},
		{
			"create over a symbolic one", func(t *testing.T, dir string) { symbolic(t, dir, "link", "other") },
			"git_create_branch",
			map[string]any{"branch_name": "link"},
			[]string{"branch", "link"},
		},
		{
			"create over a circle", func(t *testing.T, dir string) { symbolic(t, dir, "link", "far"); symbolic(t, dir, "far", "link") },
			"git_create_branch",
			map[string]any{"branch_name": "link"},
			[]string{"branch", "link"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := simple(t)
			test.make(t, dir)
			asGit(t, dir, test.tool, test.args, test.command...)
		})
	}
	dir := simple(t)
	put(t, filepath.Join(dir, ".git", "refs", "heads", "link"), "ref: refs/../hooks/pre-commit\n")
	refused(t, serve(t, nil), "git_create_branch", map[string]any{"repo_path": dir, "branch_name": "link"}, "refs/../hooks/pre-commit")
}

// A checkout, a commit and a reset end a merge, a cherry-pick or a revert: the next commit has one parent.
// What git merge --autostash set aside is kept in the stash.
func TestCheckoutEndsMerge(t *testing.T) {
	needGitProgram(t)
	kept := "\nWhat git merge --autostash had set aside is in the stash: 'git stash pop' brings it back."
	for name, test := range map[string]struct {
		start []string
		tool  string
		args  map[string]any
		git   []string
		note  string
	}{
		"merge":             {start: []string{"merge", "--no-commit", "other"}},
		"cherry-pick":       {start: []string{"cherry-pick", "other"}},
		"revert":            {start: []string{"revert", "HEAD~1"}},
		"last of several":   {start: []string{"cherry-pick", "fine", "other"}},
		"first of several":  {start: []string{"cherry-pick", "other", "fine"}},
		"autostash":         {start: []string{"merge", "--autostash", "other"}, note: kept},
		"autostash, reset":  {start: []string{"merge", "--autostash", "other"}, tool: "git_reset", git: []string{"reset", "-q"}, note: kept},
		"autostash, commit": {start: []string{"merge", "--autostash", "other"}, tool: "git_commit", args: map[string]any{"message": "m"}, note: kept},
	} {
		t.Run(name, func(t *testing.T) {
			dir := conflict(t)
			gitIn(t, dir, "merge", "--abort")
			gitIn(t, dir, "config", "rerere.enabled", "true")
			gitIn(t, dir, "checkout", "-q", "-b", "fine", "main~1")
			put(t, filepath.Join(dir, "c.txt"), "c\n")
			gitIn(t, dir, "add", ".")
			gitIn(t, dir, "commit", "-q", "-m", "fine")
			gitIn(t, dir, "checkout", "-q", "main")
			if test.note != "" {
				put(t, filepath.Join(dir, "b.txt"), "set aside\n")
				gitIn(t, dir, "add", "b.txt")
				gitIn(t, dir, "stash", "push", "-q")
				put(t, filepath.Join(dir, "b.txt"), "set aside too\n")
				gitIn(t, dir, "add", "b.txt")
			}
			if out, err := tryGit(dir, nil, test.start...); err == nil {
				t.Fatalf("git %v has no conflict: %s", test.start, out)
			}
			put(t, filepath.Join(dir, "a.txt"), "ours\n")
			gitIn(t, dir, "add", "a.txt")
			tool, args, git := "git_checkout", map[string]any{"branch_name": "other"}, []string{"checkout", "-q", "other"}
			if test.tool != "" {
				tool, args, git = test.tool, test.args, test.git
			}
			var text string
			if tool == "git_commit" { // git brings back what it set aside
				text = must(t, serve(t, nil), tool, map[string]any{"repo_path": dir, "message": "m"})
			} else {
				text = asGit(t, dir, tool, args, git...)
			}
			if !strings.HasSuffix(text, test.note) || strings.Count(text, "\n") != strings.Count(test.note, "\n") {
				t.Errorf("%s gives %q, want it to end with %q", tool, text, test.note)
			}
			if list := strings.Count(gitIn(t, dir, "stash", "list"), "autostash"); (list == 1) != (test.note != "") {
				t.Errorf("%d autostashes are kept", list)
			}
			left := []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "MERGE_MSG", "MERGE_RR", "MERGE_AUTOSTASH"}
			if name != "first of several" {
				left = append(left, "sequencer")
			}
			for _, name := range left {
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
		c := serve(t, &git.Options{Limits: gogit.Limits{Object: 5000}})
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
