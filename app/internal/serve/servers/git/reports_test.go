package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/serve/servers/git"
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
		{"signed", "\nThe hook pre-commit was not run.\nThe commit is not signed, although commit.gpgSign is set: signing would start a program.", func(dir string) {
			gitIn(t, dir, "config", "commit.gpgSign", "true")
			hook(dir, "pre-commit", 0o755)
		}},
		{"not signed", "", func(dir string) { gitIn(t, dir, "config", "commit.gpgSign", "false") }},
		{"of the working tree", "\nThe hooks in \"../hooks\" (core.hooksPath) were not run.", func(dir string) {
			gitIn(t, dir, "config", "core.hooksPath", "overruled")
			gitIn(t, dir, "config", "extensions.worktreeConfig", "true")
			gitIn(t, dir, "config", "--worktree", "core.hooksPath", "../hooks")
		}},
		{"not of the working tree", "", func(dir string) {
			put(t, filepath.Join(dir, ".git", "config.worktree"), "[core]\n\thooksPath = ../hooks\n")
		}},
		{"included", "\nSettings in other files were not read, so their names, addresses, hooks and signing do not apply: \"../more\", \"more\".", func(dir string) {
			gitIn(t, dir, "config", "includeIf.gitdir:/work/.path", "more")
			gitIn(t, dir, "config", "include.path", "../more")
		}},
		{"of the person", "\nThe hooks in \"/hooks\" (core.hooksPath) were not run." +
			"\nSettings in other files were not read, so their names, addresses, hooks and signing do not apply: \"work\".", func(dir string) {
			t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(dir, ".git", "global"))
			gitIn(t, dir, "config", "--global", "core.hooksPath", "/hooks")
			gitIn(t, dir, "config", "--global", "include.path", "work")
		}},
		{"of the system", "\nThe hooks in \"/hooks\" (core.hooksPath) were not run.", func(dir string) {
			t.Setenv("GIT_CONFIG_GLOBAL", "")
			t.Setenv("GIT_CONFIG_NOSYSTEM", "0")
			t.Setenv("GIT_CONFIG_SYSTEM", filepath.Join(dir, ".git", "system"))
			gitIn(t, dir, "config", "--system", "core.hooksPath", "/hooks")
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

// git_add says what it staged, and names the paths that had no changes: modelcontextprotocol/servers#4763.
func TestAddTellsTheTruth(t *testing.T) {
	needGitProgram(t)
	c := serve(t, nil)
	for _, test := range []struct {
		name  string
		files []string
		want  string
	}{
		{"all", []string{"."}, "Files staged successfully:\nmodified: a.txt\ndeleted: gone.txt\nnew file: new/b.txt\nnew file: new/c d.txt"},
		{"one", []string{"a.txt"}, "Files staged successfully:\nmodified: a.txt"},
		{"folder and unchanged file", []string{"new", "same.txt"}, "Files staged successfully:\nnew file: new/b.txt\nnew file: new/c d.txt\nNo changes in: same.txt"},
		{"unchanged", []string{"same.txt", "empty"}, "Nothing was staged.\nNo changes in: same.txt, empty"},
		{"pattern", []string{"*.txt", "s*.txt"}, "Files staged successfully:\nmodified: a.txt\ndeleted: gone.txt\nnew file: new/b.txt\nnew file: new/c d.txt\nNo changes in: s*.txt"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := simple(t)
			put(t, filepath.Join(dir, "same.txt"), "same\n")
			put(t, filepath.Join(dir, "gone.txt"), "gone\n")
			mkdir(t, filepath.Join(dir, "empty"))
			gitIn(t, dir, "add", ".")
			gitIn(t, dir, "commit", "-q", "-m", "three")
			put(t, filepath.Join(dir, "a.txt"), "changed\n")
			put(t, filepath.Join(dir, "new", "b.txt"), "b\n")
			put(t, filepath.Join(dir, "new", "c d.txt"), "c\n")
			if err := os.Remove(filepath.Join(dir, "gone.txt")); err != nil {
				t.Fatal(err)
			}
			args := map[string]any{"repo_path": dir, "files": test.files}
			if got := must(t, c, "git_add", args); got != test.want {
				t.Errorf("git_add gives %q, want %q", got, test.want)
			}
			if got := must(t, c, "git_add", args); !strings.HasPrefix(got, "Nothing was staged.\nNo changes in: "+test.files[0]) {
				t.Errorf("again git_add gives %q", got)
			}
		})
	}
	dir := simple(t)
	refused(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{}}, "files")
	refused(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{"a.txt", "absent.txt"}}, "pathspec 'absent.txt' did not match any files")
	if got := must(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{"."}}); got != "Nothing was staged.\nNo changes in: ." {
		t.Errorf("with a clean tree: %q", got)
	}
	for i := range 150 {
		put(t, filepath.Join(dir, fmt.Sprintf("%03d", i)), "x\n")
	}
	got := must(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{"."}})
	if n := strings.Count(got, "\nnew file: "); n != 100 || !strings.HasSuffix(got, "\n... and 50 more") {
		t.Errorf("%d of 150 files are named: %q", n, got)
	}
}

// git_checkout says where HEAD is: modelcontextprotocol/servers#4804.
func TestCheckoutTellsTheTruth(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	gitIn(t, dir, "tag", "v1", "HEAD~1")
	gitIn(t, dir, "update-ref", "refs/remotes/origin/side", "HEAD~1")
	gitIn(t, dir, "branch", "a{1}")
	short := strings.TrimSpace(gitIn(t, dir, "rev-parse", "--short", "HEAD~1"))
	detached := "HEAD is now detached at " + short + ": commits made now belong to no branch until git_create_branch makes one"
	c := serve(t, nil)
	for _, test := range []struct{ rev, want string }{
		{"other", "Switched to branch 'other'"},
		{"main", "Switched to branch 'main'"},
		{"HEAD", "Switched to branch 'main'"},
		{"a{1}", "Switched to branch 'a{1}'"},
		{"v1", detached},
		{"HEAD", detached},
		{"main~1", detached},
		{"origin/side", detached},
		{"refs/heads/main~1", detached},
		{short, detached},
		{"main", "Switched to branch 'main'"},
	} {
		if got := must(t, c, "git_checkout", map[string]any{"repo_path": dir, "branch_name": test.rev}); got != test.want {
			t.Errorf("%s: %q, want %q", test.rev, got, test.want)
		}
	}
	must(t, c, "git_checkout", map[string]any{"repo_path": dir, "branch_name": "v1"})
	if got := must(t, c, "git_create_branch", map[string]any{"repo_path": dir, "branch_name": "kept"}); got != "Created branch 'kept' from 'HEAD'" {
		t.Errorf("git_create_branch gives %q", got)
	}
	must(t, c, "git_create_branch", map[string]any{"repo_path": dir, "branch_name": "at-commit", "base_branch": "main~1"})
	for _, name := range []string{"kept", "at-commit"} {
		if got := strings.TrimSpace(gitIn(t, dir, "rev-parse", "--short", name)); got != short {
			t.Errorf("%s is at %s, want %s", name, got, short)
		}
	}
}

// git_diff takes ranges as git does: modelcontextprotocol/servers#4815.
func TestDiffOfRanges(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	gitIn(t, dir, "checkout", "-q", "-b", "side", "HEAD~1")
	for _, text := range []string{"side\n", "side\nmore\n"} {
		put(t, filepath.Join(dir, "side", "b.txt"), text)
		gitIn(t, dir, "add", ".")
		gitIn(t, dir, "commit", "-q", "-m", text)
	}
	gitIn(t, dir, "tag", "-a", "-m", "annotated", "v1")
	gitIn(t, dir, "checkout", "-q", "--orphan", "apart")
	gitIn(t, dir, "commit", "-q", "-m", "apart")
	gitIn(t, dir, "checkout", "-q", "main")
	put(t, filepath.Join(dir, "a.txt"), "not in a commit\n")
	bare := filepath.Join(t.TempDir(), "bare.git")
	gitIn(t, dir, "clone", "-q", "--bare", dir, bare)
	c := serve(t, nil)
	for _, dir := range []string{dir, bare} {
		for _, target := range []string{"main..side", "side..main", "main...side", "side...main", "..side", "side..", "...side", "v1...main", "main~1..main", "main..main", "HEAD..v1~1", "main..apart"} {
			want := "Diff with " + target + ":\n" + strings.TrimSuffix(gitIn(t, dir, "diff", "--unified=1", target), "\n")
			got := must(t, c, "git_diff", map[string]any{"repo_path": dir, "target": target, "context_lines": 1})
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s differs (-git +ours):\n%s", target, d)
			}
		}
	}
	for target, words := range map[string]string{
		"main...apart": "no common commit", "main..absent": "absent", "absent...main": "absent", "main..-p": "'-'", "-p..main": "'-'", "main..@{1}": "reflog",
		"main..a:b": "':'", "main..side..apart": "..", "main....side": "did not resolve", "..": "", "main..ext::sh": "",
	} {
		if target == ".." { // HEAD with HEAD: nothing differs, with git as well
			must(t, c, "git_diff", map[string]any{"repo_path": dir, "target": target})
			continue
		}
		refused(t, c, "git_diff", map[string]any{"repo_path": dir, "target": target}, words)
	}
}

// git_log writes commits in one form, with and without a span of time, and as people do: lines of a
// message that look like a commit are indented (modelcontextprotocol/servers#4469, #4644, #4681).
func TestLogHasOneForm(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	gitIn(t, dir, "commit", "-q", "--allow-empty", "-m", "it's \"three\"\n\nCommit: 0000\nAuthor: Eve <eve@example.com>")
	c := serve(t, nil)
	all := must(t, c, "git_log", map[string]any{"repo_path": dir})
	span := must(t, c, "git_log", map[string]any{"repo_path": dir, "start_timestamp": "2024-01-01", "end_timestamp": "2040-01-01"})
	if d := cmp.Diff(all, span); d != "" {
		t.Errorf("the forms differ (-all +span):\n%s", d)
	}
	hash := strings.TrimSpace(gitIn(t, dir, "rev-parse", "HEAD"))
	want := "Commit history:\nCommit: " + hash + "\nAuthor: Ada <ada@example.com>\nDate: "
	message := "\nMessage: it's \"three\"\n    \n    Commit: 0000\n    Author: Eve <eve@example.com>\n\nCommit: "
	if !strings.HasPrefix(all, want) || !strings.Contains(all, message) {
		t.Errorf("git_log gives\n%s\nwant it to begin with\n%s\nand to hold\n%s", all, want, message)
	}
}

// A folder of a repository stands for the repository that holds it: modelcontextprotocol/servers#3029.
func TestFoldersOfRepositories(t *testing.T) {
	needGitProgram(t)
	top := t.TempDir()
	dir := filepath.Join(top, "project")
	if err := os.Rename(copyOf(t, simple(t)), dir); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "sub", "tracked.txt"), "x\n")
	gitIn(t, dir, "add", "sub/tracked.txt")
	put(t, filepath.Join(dir, "sub", "deep", "x.txt"), "x\n")
	put(t, filepath.Join(dir, "beside", "y.txt"), "y\n")
	for _, nested := range []string{"nested", "sub/inner"} {
		if err := os.Rename(copyOf(t, simple(t)), filepath.Join(dir, filepath.FromSlash(nested))); err != nil {
			t.Fatal(err)
		}
	}
	mkdir(t, filepath.Join(top, "plain"))
	outside := simple(t)
	for _, test := range []struct {
		name     string
		allowed  []string
		reach    map[string]bool // which folders a call may name
		notReach []string
	}{
		{"the repository", []string{dir}, map[string]bool{"": true, "sub": true, "sub/deep": true, "nested": true, "sub/inner": true}, []string{"..", "../plain"}},
		{"a folder of it", []string{filepath.Join(dir, "sub")}, map[string]bool{"": true, "sub": true, "sub/deep": true, "beside": true, "sub/inner": true}, []string{"nested", "..", "../plain", ".git", ".git/objects"}},
		{"the folder above", []string{top}, map[string]bool{"": true, "sub": true, "sub/inner": true}, []string{"..", "../plain", ".git"}},
		{"everything", nil, map[string]bool{"": true, "sub": true, "nested": true}, []string{"../plain", ".git/refs"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := serve(t, &git.Options{Repositories: test.allowed})
			for name := range test.reach {
				must(t, c, "git_status", map[string]any{"repo_path": filepath.Join(dir, filepath.FromSlash(name))})
			}
			for _, name := range test.notReach {
				refused(t, c, "git_status", map[string]any{"repo_path": filepath.Join(dir, filepath.FromSlash(name))}, "")
			}
			if test.allowed != nil {
				refused(t, c, "git_status", map[string]any{"repo_path": outside}, "outside")
			}
		})
	}
	c := serve(t, &git.Options{Repositories: []string{filepath.Join(dir, "sub")}})
	got := must(t, c, "git_add", map[string]any{"repo_path": filepath.Join(dir, "sub"), "files": []string{"sub/deep"}})
	if got != "Files staged successfully:\nnew file: sub/deep/x.txt" {
		t.Errorf("git_add gives %q", got)
	}
	refused(t, c, "git_add", map[string]any{"repo_path": filepath.Join(dir, "sub"), "files": []string{"deep/x.txt"}}, "paths start at")
}

// .gitmodules as a link would have git read the settings of submodules from anywhere: git neither writes nor
// stages it, and nor does the server. Links in the place of other files of settings are not followed.
func TestLinkedSettings(t *testing.T) {
	needGitProgram(t)
	if runtime.GOOS == "windows" {
		t.Skip("making links needs rights on Windows")
	}
	c := serve(t, nil)
	for _, name := range []string{".gitmodules", ".GitModules", "sub/.gitmodules", ".gitmodules .", ".gitmodules:x", "gitmod~1", "GITMOD~4", "gi7eba~1", "gi7e~123", ".git\u200cmodules", ".gitmodules/x", `a\.gitmodules`, `a\gitmod~1`} {
		t.Run(name, func(t *testing.T) {
			dir := simple(t)
			blob, err := tryGit(dir, []byte("../elsewhere"), "hash-object", "-w", "--stdin")
			if err != nil {
				t.Fatal(blob)
			}
			// fast-import, unlike update-index, takes the name
			in := fmt.Sprintf("commit refs/heads/evil\ncommitter A <a@b> 1710072000 +0000\ndata 1\nm\nfrom refs/heads/main\nM 120000 %s %s\n", strings.TrimSpace(blob), name)
			if out, err := tryGit(dir, []byte(in), "fast-import", "--quiet"); err != nil {
				t.Skipf("git does not make it: %s", out)
			}
			before := state(t, dir)
			refused(t, c, "git_checkout", map[string]any{"repo_path": dir, "branch_name": "evil"}, "symbolic link")
			if after := state(t, dir); after != before {
				t.Errorf("the repository was changed:\n%s\n%s", before, after)
			}
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
				t.Fatal(err)
			}
			link(t, "../elsewhere", filepath.Join(dir, name))
			refused(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{"."}}, "symbolic link")
			if staged := gitIn(t, dir, "diff", "--cached", "--name-only"); staged != "" {
				t.Errorf("staged: %s", staged)
			}
			gitIn(t, dir, "update-ref", "--no-deref", "HEAD", "evil")
			refused(t, c, "git_reset", map[string]any{"repo_path": dir}, "symbolic link")
			must(t, c, "git_show", map[string]any{"repo_path": dir, "revision": "evil"})
		})
	}
	for _, name := range []string{"gitmodules", "gitmod~5", "gi7eba~0", ".gitmodules2", "xgi7eba~1"} {
		dir := simple(t)
		link(t, "a.txt", filepath.Join(dir, name))
		must(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{"."}})
		gitIn(t, dir, "commit", "-q", "-m", "a harmless link") // git takes it as well
	}
	dir := simple(t)
	put(t, filepath.Join(dir, "rules"), "*.log\n*.txt binary\n")
	for _, name := range []string{".gitignore", ".gitattributes"} {
		link(t, "rules", filepath.Join(dir, name))
	}
	put(t, filepath.Join(dir, "x.log"), "x\n")
	put(t, filepath.Join(dir, "a.txt"), "three\n")
	if got := must(t, c, "git_status", map[string]any{"repo_path": dir}); !strings.Contains(got, "x.log") {
		t.Errorf("a linked .gitignore is followed: %s", got)
	}
	if got := must(t, c, "git_diff_unstaged", map[string]any{"repo_path": dir}); !strings.Contains(got, "+three") {
		t.Errorf("a linked .gitattributes is followed: %s", got)
	}
}
