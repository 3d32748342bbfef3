package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/servers/git"
	"github.com/parley-mcp/parley/client"
)

// state is all that a repository has: HEAD, the index, the working tree.
func state(t testing.TB, dir string) string {
	t.Helper()
	head, err := tryGit(dir, nil, "rev-parse", "HEAD")
	if err != nil {
		head = "none\n"
	}
	text := head + gitIn(t, dir, "ls-files", "-s") + gitIn(t, dir, "status", "--porcelain=v1", "--branch", "--untracked-files=all")
	return text + gitIn(t, dir, "diff") + gitIn(t, dir, "for-each-ref")
}

// Proves: PART-REF. What the writing tools make of a repository is what git makes of a copy of it.
func TestJudgeWriting(t *testing.T) {
	needGitProgram(t)
	c := serve(t, nil)
	for seed := range cases(t) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) { compareWriting(t, c, uint64(seed)+500) })
	}
}

// The same with the git program.
func TestJudgeWritingProgram(t *testing.T) {
	c := serve(t, &git.Options{Program: needGitProgram(t)})
	for seed := range 1 + cases(t)/6 {
		t.Run(strconv.Itoa(seed), func(t *testing.T) { compareWriting(t, c, uint64(seed)+600) })
	}
}

func compareWriting(t *testing.T, c *client.Client, seed uint64) {
	m := newMaker(t, seed)
	m.history(3 + m.IntN(10))
	m.disturb()
	theirs := copyOf(t, m.dir)
	same := func(what string) {
		t.Helper()
		if d := cmp.Diff(state(t, theirs), state(t, m.dir)); d != "" {
			t.Fatalf("after %s the repositories differ (-git +ours):\n%s", what, d)
		}
	}
	both := func(tool string, args map[string]any, theirArgs ...string) {
		t.Helper()
		args["repo_path"] = m.dir
		text, failed := call(t, c, tool, args)
		out, err := tryGit(theirs, nil, theirArgs...)
		if failed != (err != nil) {
			t.Fatalf("%s %v: failed %t: %s\nof git: %v %s", tool, args, failed, text, err, out)
		}
		same(fmt.Sprintf("%s %v (%s)", tool, args, text))
	}
	list := m.tracked()
	for range 2 {
		paths := [][]string{{"."}, {list[m.IntN(len(list))]}, {"dir"}, {"*.txt"}, {"new.txt", "fresh"}, {"nothing-there"}, {"ignored.log"}}[m.IntN(7)]
		both("git_add", map[string]any{"files": paths}, append([]string{"add", "--"}, paths...)...)
	}
	both("git_checkout", map[string]any{"branch_name": "feature"}, "checkout", "-q", "feature")
	both("git_commit", map[string]any{"message": "it's done\n\nwith a body\n"}, "commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", "it's done\n\nwith a body\n")
	both("git_create_branch", map[string]any{"branch_name": "topic/one"}, "branch", "topic/one")
	both("git_create_branch", map[string]any{"branch_name": "topic/two", "base_branch": "v1"}, "branch", "topic/two", "v1")
	both("git_create_branch", map[string]any{"branch_name": "topic"}, "branch", "topic")
	m.disturb()
	syncTrees(t, m.dir, theirs)
	both("git_add", map[string]any{"files": []string{"."}}, "add", ".")
	both("git_reset", map[string]any{}, "reset", "-q")
	for _, rev := range []string{"topic/two", "main", "v1", "old/one", "HEAD~1", "main"} {
		both("git_checkout", map[string]any{"branch_name": rev}, "checkout", "-q", rev, "--")
	}
	if _, err := tryGit(m.dir, nil, "fsck", "--strict"); err != nil {
		t.Errorf("git fsck: %v", err)
	}
	if d := cmp.Diff(gitIn(t, theirs, "status"), gitIn(t, m.dir, "status")); d != "" { // with what the reflog says of HEAD
		t.Errorf("git status of both: %s", d)
	}
}

// syncTrees makes the working tree of one repository that of another.
func syncTrees(t testing.TB, from, to string) {
	t.Helper()
	move := func(git, tree string) {
		if err := os.Rename(git, tree); err != nil {
			t.Fatal(err)
		}
	}
	kept := filepath.Join(t.TempDir(), "git")
	move(filepath.Join(to, ".git"), kept)
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	fresh := copyOf(t, from)
	if err := os.RemoveAll(filepath.Join(fresh, ".git")); err != nil {
		t.Fatal(err)
	}
	move(fresh, to)
	move(kept, filepath.Join(to, ".git"))
}

// A commit during a merge has both parents, and ends the merge.
func TestMerge(t *testing.T) {
	program := needGitProgram(t)
	for name, o := range map[string]*git.Options{"native": {}, "program": {Program: program}} {
		t.Run(name, func(t *testing.T) {
			dir := conflict(t)
			c := serve(t, o)
			repo := map[string]any{"repo_path": dir}
			status := must(t, c, "git_status", repo)
			for _, want := range []string{"You have unmerged paths.", "Unmerged paths:", "both modified:   a.txt"} {
				if !strings.Contains(status, want) {
					t.Errorf("the status has no %q:\n%s", want, status)
				}
			}
			refused(t, c, "git_commit", map[string]any{"repo_path": dir, "message": "m"}, "a.txt")
			if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("both\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			must(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{"a.txt"}})
			if s := must(t, c, "git_status", repo); !strings.Contains(s, "All conflicts fixed but you are still merging.") {
				t.Errorf("status: %s", s)
			}
			must(t, c, "git_commit", map[string]any{"repo_path": dir, "message": "merged"})
			if parents := strings.Fields(gitIn(t, dir, "rev-list", "--parents", "-1", "HEAD")); len(parents) != 3 {
				t.Errorf("the merge has the parents %v", parents[1:])
			}
			if s := gitIn(t, dir, "status"); !strings.Contains(s, "nothing to commit, working tree clean") || strings.Contains(s, "merging") {
				t.Errorf("git status says %s", s)
			}
		})
	}
}

// conflict makes a repository in the middle of a merge with a conflict.
func conflict(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q", "-b", "main")
	commit := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		gitIn(t, dir, "add", ".")
		gitIn(t, dir, "commit", "-q", "-m", text)
	}
	commit("one\n")
	gitIn(t, dir, "checkout", "-q", "-b", "other")
	commit("theirs\n")
	gitIn(t, dir, "checkout", "-q", "main")
	commit("ours\n")
	if out, err := tryGit(dir, nil, "merge", "other"); err == nil {
		t.Fatalf("the merge has no conflict: %s", out)
	}
	return dir
}

// A repository without a commit, or bare, has tools that work and tools that say why not.
func TestEmptyAndBare(t *testing.T) {
	program := needGitProgram(t)
	for name, o := range map[string]*git.Options{"native": {}, "program": {Program: program}} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, o)
			dir := t.TempDir()
			gitIn(t, dir, "init", "-q", "-b", "main")
			repo := map[string]any{"repo_path": dir}
			if s := must(t, c, "git_status", repo); !strings.Contains(s, "No commits yet") {
				t.Errorf("status: %s", s)
			}
			refused(t, c, "git_log", repo, "")
			refused(t, c, "git_reset", repo, "no commits yet")
			if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			must(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{"a.txt"}})
			if s, want := must(t, c, "git_status", repo), strings.TrimSuffix(gitIn(t, dir, "status"), "\n"); s != "Repository status:\n"+want {
				t.Errorf("status: %s\nof git: %s", s, want)
			}
			must(t, c, "git_commit", map[string]any{"repo_path": dir, "message": "first"})
			bare := filepath.Join(t.TempDir(), "bare.git")
			gitIn(t, dir, "clone", "-q", "--bare", dir, bare)
			bared := map[string]any{"repo_path": bare}
			if s := must(t, c, "git_log", bared); !strings.Contains(s, "Message: 'first'") {
				t.Errorf("log: %s", s)
			}
			refused(t, c, "git_status", bared, "work tree")
			refused(t, c, "git_commit", map[string]any{"repo_path": bare, "message": "m"}, "work tree")
			refused(t, c, "git_add", map[string]any{"repo_path": bare, "files": []string{"x"}}, "work tree")
		})
	}
}
