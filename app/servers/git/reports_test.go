package git_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A commit that would change nothing, or has no message, is an error and leaves the repository as it was:
// modelcontextprotocol/servers#4762. A merge without a change of its own is a commit, as with git.
func TestNothingToCommit(t *testing.T) {
	needGitProgram(t)
	c := serve(t, nil)
	for _, test := range []struct {
		name, message, words string
		make                 func(dir string)
	}{
		{"clean", "m", "nothing to commit", func(string) {}},
		{"not staged", "m", "git_add", func(dir string) { put(t, filepath.Join(dir, "a.txt"), "three\n") }},
		{"only to be added", "m", "nothing to commit", func(dir string) {
			put(t, filepath.Join(dir, "b.txt"), "b\n")
			gitIn(t, dir, "add", "--intent-to-add", "b.txt")
		}},
		{"before the first commit", "m", "nothing to commit", func(dir string) { gitIn(t, dir, "checkout", "-q", "--orphan", "new"); gitIn(t, dir, "reset", "-q") }},
		{"cherry-pick without a change", "m", "nothing to commit", func(dir string) {
			put(t, filepath.Join(dir, ".git", "CHERRY_PICK_HEAD"), gitIn(t, dir, "rev-parse", "HEAD"))
		}},
		{"no message", "", "message", stageFile(t)},
		{"blank message", " \n\t\n", "message", stageFile(t)},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := simple(t)
			test.make(dir)
			theirs := copyOf(t, dir)
			before := state(t, dir)
			refused(t, c, "git_commit", map[string]any{"repo_path": dir, "message": test.message}, test.words)
			if after := state(t, dir); after != before {
				t.Errorf("the repository was changed:\n%s\n%s", before, after)
			}
			if out, err := tryGit(theirs, nil, "commit", "-m", test.message); err == nil {
				t.Errorf("git commits: %s", out)
			}
		})
	}
	dir := simple(t)
	gitIn(t, dir, "checkout", "-q", "-b", "side", "HEAD~1")
	gitIn(t, dir, "commit", "-q", "--allow-empty", "-m", "empty")
	gitIn(t, dir, "checkout", "-q", "main")
	gitIn(t, dir, "merge", "-q", "--no-commit", "--no-ff", "-s", "ours", "side")
	must(t, c, "git_commit", map[string]any{"repo_path": dir, "message": "merged"})
	if parents := strings.Fields(gitIn(t, dir, "rev-list", "--parents", "-1", "HEAD")); len(parents) != 3 {
		t.Errorf("the merge has the parents %v", parents[1:])
	}
}

func stageFile(t testing.TB) func(dir string) {
	return func(dir string) {
		put(t, filepath.Join(dir, "a.txt"), "three\n")
		gitIn(t, dir, "add", "a.txt")
	}
}

// Hooks are not run, and a commit that one of them would have seen says so.
func TestHooksNamed(t *testing.T) {
	needGitProgram(t)
	if runtime.GOOS == "windows" {
		t.Skip("files have no mode that says whether they are programs")
	}
	hook := func(dir, name string, mode os.FileMode) {
		path := filepath.Join(dir, ".git", "hooks", name)
		put(t, path, "#!/bin/sh\nexit 1\n")
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	const success = "Changes committed successfully with hash "
	for _, test := range []struct {
		name, want string
		make       func(dir string)
	}{
		{"none", "", func(string) {}},
		{"samples and others", "", func(dir string) {
			hook(dir, "pre-commit.sample", 0o755)
			hook(dir, "pre-push", 0o755)
			hook(dir, "pre-commit", 0o644)
		}},
		{"one", "\nThe hook pre-commit was not run.", func(dir string) { hook(dir, "pre-commit", 0o755) }},
		{"several", "\nThe hooks pre-commit, prepare-commit-msg, commit-msg, post-commit were not run.", func(dir string) {
			for _, name := range []string{"post-commit", "commit-msg", "prepare-commit-msg", "pre-commit"} {
				hook(dir, name, 0o755)
			}
		}},
		{"a link", "\nThe hook commit-msg was not run.", func(dir string) {
			link(t, "../../../hooks/commit-msg", filepath.Join(dir, ".git", "hooks", "commit-msg"))
		}},
		{"another folder", "\nThe hooks in \"../hooks\" (core.hooksPath) were not run.", func(dir string) {
			gitIn(t, dir, "config", "core.hooksPath", "../hooks")
			hook(dir, "pre-commit", 0o755)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := simple(t)
			stageFile(t)(dir)
			test.make(dir)
			text := must(t, serve(t, nil), "git_commit", map[string]any{"repo_path": dir, "message": "m"})
			if want := success + strings.TrimSpace(gitIn(t, dir, "rev-parse", "HEAD")) + test.want; text != want {
				t.Errorf("git_commit gives %q, want %q", text, want)
			}
		})
	}
}

// git_reset unstages everything also before the first commit, and ends a merge, as git does.
func TestResetAsGit(t *testing.T) {
	needGitProgram(t)
	c := serve(t, nil)
	for name, make := range map[string]func(dir string){
		"before the first commit": func(dir string) { gitIn(t, dir, "checkout", "-q", "--orphan", "new") },
		"merge": func(dir string) {
			gitIn(t, dir, "checkout", "-q", "-b", "side", "HEAD~1")
			put(t, filepath.Join(dir, "b.txt"), "b\n")
			gitIn(t, dir, "add", ".")
			gitIn(t, dir, "commit", "-q", "-m", "side")
			gitIn(t, dir, "checkout", "-q", "main")
			gitIn(t, dir, "merge", "-q", "--no-commit", "--no-ff", "side")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := simple(t)
			make(dir)
			theirs := copyOf(t, dir)
			must(t, c, "git_reset", map[string]any{"repo_path": dir})
			gitIn(t, theirs, "reset", "-q")
			if d := cmp.Diff(state(t, theirs)+gitIn(t, theirs, "status"), state(t, dir)+gitIn(t, dir, "status")); d != "" {
				t.Errorf("the repositories differ (-git +ours):\n%s", d)
			}
		})
	}
}
