package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/racetest"
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
	racetest.SkipSerial(t)
	needGitProgram(t)
	c := serve(t, nil)
	for seed := range cases(t) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) { compareWriting(t, c, uint64(seed)+500) })
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
	both("git_commit", map[string]any{"message": "it's done\n\nwith a body\n"}, "commit", "-q", "--cleanup=verbatim", "-m", "it's done\n\nwith a body\n")
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
	needGitProgram(t)
	dir := conflict(t)
	c := serve(t, nil)
	repo := map[string]any{"repo_path": dir}
	status := must(t, c, "git_status", repo)
	for _, want := range []string{"You have unmerged paths.", "Unmerged paths:", "both modified:   a.txt"} {
		if !strings.Contains(status, want) {
			t.Errorf("the status has no %q:\n%s", want, status)
		}
	}
	refused(t, c, "git_commit", map[string]any{"repo_path": dir, "message": "m"}, "a.txt")
	for _, text := range []string{"marks\n", "ours\n", "theirs\n", "one\n"} {
		put(t, filepath.Join(dir, "a.txt"), text)
		for _, target := range []string{"HEAD", "other", "HEAD~1"} {
			want := "Diff with " + target + ":\n" + strings.TrimSuffix(gitIn(t, dir, "diff", target), "\n")
			if got := must(t, c, "git_diff", map[string]any{"repo_path": dir, "target": target}); got != want {
				t.Errorf("git_diff with %s and a file of %q gives\n%s\nwant\n%s", target, text, got, want)
			}
		}
	}
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
	needGitProgram(t)
	c := serve(t, nil)
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q", "-b", "main")
	repo := map[string]any{"repo_path": dir}
	if s := must(t, c, "git_status", repo); !strings.Contains(s, "No commits yet") {
		t.Errorf("status: %s", s)
	}
	refused(t, c, "git_log", repo, "")
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
	if s := must(t, c, "git_log", bared); !strings.Contains(s, "Message: first\n") {
		t.Errorf("log: %s", s)
	}
	refused(t, c, "git_status", bared, "work tree")
	refused(t, c, "git_commit", map[string]any{"repo_path": bare, "message": "m"}, "work tree")
	refused(t, c, "git_add", map[string]any{"repo_path": bare, "files": []string{"x"}}, "work tree")
}

// A checkout loses nothing that git keeps: files that are staged but in no commit, and links and files
// that are not tracked, where the other branch has a folder or a file in their place.
func TestCheckoutKeeps(t *testing.T) {
	racetest.SkipSerial(t)
	needGitProgram(t)
	for name, make := range map[string]func(dir string){
		"staged in a folder": func(dir string) {
			put(t, filepath.Join(dir, "file", "staged.txt"), "mine\n")
			gitIn(t, dir, "add", "file")
		},
		"staged and changed": func(dir string) {
			put(t, filepath.Join(dir, "file", "staged.txt"), "mine\n")
			gitIn(t, dir, "add", "file")
			put(t, filepath.Join(dir, "file", "staged.txt"), "more\n")
		},
		"staged file":          func(dir string) { put(t, filepath.Join(dir, "folder"), "mine\n"); gitIn(t, dir, "add", "folder") },
		"untracked file":       func(dir string) { put(t, filepath.Join(dir, "folder"), "mine\n") },
		"untracked in folder":  func(dir string) { put(t, filepath.Join(dir, "file", "mine.txt"), "mine\n") },
		"untracked repository": func(dir string) { gitIn(t, dir, "init", "-q", "file") },
		"untracked link to folder": func(dir string) {
			put(t, filepath.Join(dir, "elsewhere", "x"), "x\n")
			link(t, "elsewhere", filepath.Join(dir, "folder"))
		},
		"untracked link to nothing": func(dir string) { link(t, "nowhere", filepath.Join(dir, "folder")) },
		"link to git's own":         func(dir string) { link(t, ".git", filepath.Join(dir, "folder")) },
		"link for a file":           func(dir string) { link(t, ".git/config", filepath.Join(dir, "file")) },
		"ignored file": func(dir string) {
			put(t, filepath.Join(dir, ".git", "info", "exclude"), "folder\n")
			put(t, filepath.Join(dir, "folder"), "mine\n")
		},
		"empty folder":  func(dir string) { mkdir(t, filepath.Join(dir, "file")) },
		"empty folders": func(dir string) { mkdir(t, filepath.Join(dir, "file", "a", "b")) },
		"folder for a changed file": func(dir string) {
			drop(t, filepath.Join(dir, "changed"))
			put(t, filepath.Join(dir, "changed", "mine"), "mine\n")
		},
		"empty folder for a changed file": func(dir string) {
			drop(t, filepath.Join(dir, "changed"))
			mkdir(t, filepath.Join(dir, "changed"))
		},
		"folder for a removed file": func(dir string) {
			drop(t, filepath.Join(dir, "removed"))
			put(t, filepath.Join(dir, "removed", "mine"), "mine\n")
		},
		"file for a changed folder": func(dir string) {
			drop(t, filepath.Join(dir, "in"))
			put(t, filepath.Join(dir, "in"), "mine\n")
		},
		"changed and removed files are gone": func(dir string) {
			drop(t, filepath.Join(dir, "changed"))
			drop(t, filepath.Join(dir, "removed"))
			drop(t, filepath.Join(dir, "in"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := simple(t)
			for _, name := range []string{"changed", "removed", "in/changed"} {
				put(t, filepath.Join(dir, name), "ours\n")
			}
			gitIn(t, dir, "add", ".")
			gitIn(t, dir, "commit", "-q", "-m", "ours")
			gitIn(t, dir, "checkout", "-q", "-b", "both")
			drop(t, filepath.Join(dir, "removed"))
			put(t, filepath.Join(dir, "changed"), "theirs\n")
			put(t, filepath.Join(dir, "in", "changed"), "theirs\n")
			put(t, filepath.Join(dir, "file"), "theirs\n")
			put(t, filepath.Join(dir, "folder", "config"), "theirs\n")
			gitIn(t, dir, "add", ".")
			gitIn(t, dir, "commit", "-q", "-m", "both")
			gitIn(t, dir, "checkout", "-q", "main")
			make(dir)
			theirs := copyOf(t, dir)
			text, failed := call(t, serve(t, nil), "git_checkout", map[string]any{"repo_path": dir, "branch_name": "both"})
			_, err := tryGit(theirs, nil, "checkout", "-q", "both")
			if name == "staged in a folder" { // which git loses
				if !failed {
					t.Errorf("git_checkout gives %q", text)
				}
				return
			}
			if failed != (err != nil) {
				t.Errorf("git_checkout gives %q (failed: %t), git %v", text, failed, err)
			}
			if d := cmp.Diff(state(t, theirs), state(t, dir)); d != "" {
				t.Errorf("the repositories differ (-git +ours):\n%s", d)
			}
		})
	}
}

// The folder of a submodule stays when a branch without it is checked out, and is in nobody's way on
// the way back.
func TestCheckoutSubmodule(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	sub := filepath.Join(dir, "sub")
	if err := os.Rename(copyOf(t, simple(t)), sub); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "-c", "advice.addEmbeddedRepo=false", "add", "sub")
	gitIn(t, dir, "commit", "-q", "-m", "sub")
	theirs := copyOf(t, dir)
	c := serve(t, nil)
	for _, branch := range []string{"other", "main"} {
		must(t, c, "git_checkout", map[string]any{"repo_path": dir, "branch_name": branch})
		gitIn(t, theirs, "checkout", "-q", branch)
		if d := cmp.Diff(state(t, theirs), state(t, dir)); d != "" {
			t.Errorf("at %s the repositories differ (-git +ours):\n%s", branch, d)
		}
		put(t, filepath.Join(sub, "mine.txt"), "mine\n")
		put(t, filepath.Join(theirs, "sub", "mine.txt"), "mine\n")
	}
}

func link(t testing.TB, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Skip(err)
	}
}

func drop(t testing.TB, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
}

// While git holds the index or a branch nothing is changed. What git and the server stage at the same
// time is all there.
func TestLocks(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	put(t, filepath.Join(dir, "new.txt"), "new\n")
	before := state(t, dir)
	c := serve(t, nil)
	repo := map[string]any{"repo_path": dir}
	lock := filepath.Join(dir, ".git", "index.lock")
	put(t, lock, "")
	refused(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{"new.txt"}}, "index.lock")
	refused(t, c, "git_checkout", map[string]any{"repo_path": dir, "branch_name": "other"}, "index.lock")
	refused(t, c, "git_reset", repo, "index.lock")
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	coming := filepath.Join(dir, ".git", "refs", "heads", "coming.lock") // a branch that another program makes
	put(t, coming, "")
	if list := must(t, c, "git_branch", map[string]any{"repo_path": dir, "branch_type": "all"}); strings.Contains(list, "coming") {
		t.Errorf("a lock is listed as a branch: %s", list)
	}
	must(t, c, "git_log", repo)
	if err := os.Remove(coming); err != nil {
		t.Fatal(err)
	}
	lock = filepath.Join(dir, ".git", "refs", "heads", "main.lock")
	put(t, lock, "")
	gitIn(t, dir, "add", "new.txt")
	refused(t, c, "git_commit", map[string]any{"repo_path": dir, "message": "m"}, "main.lock")
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "reset", "-q")
	if s := state(t, dir); s != before {
		t.Errorf("the repository was changed:\n%s\n%s", before, s)
	}
	lock = filepath.Join(dir, ".git", "HEAD.lock")
	put(t, lock, "")
	gitIn(t, dir, "branch", "earlier", "HEAD~1")
	before = state(t, dir)
	refused(t, c, "git_checkout", map[string]any{"repo_path": dir, "branch_name": "earlier"}, "HEAD.lock")
	if s := state(t, dir); s != before {
		t.Errorf("the repository was changed:\n%s\n%s", before, s)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	const files = 40
	for i := range 2 * files {
		put(t, filepath.Join(dir, fmt.Sprintf("%d.txt", i)), "x\n")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; i < files; {
			if _, err := tryGit(dir, nil, "add", fmt.Sprintf("%d.txt", i)); err == nil { // else it is locked
				i++
			}
		}
	}()
	for i := files; i < 2*files; {
		if text, failed := call(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{fmt.Sprintf("%d.txt", i)}}); !failed {
			i++
		} else if !strings.Contains(text, "index.lock") {
			t.Fatal(text)
		}
	}
	<-done
	if n := strings.Count(gitIn(t, dir, "diff", "--cached", "--name-only"), ".txt\n"); n != 2*files {
		t.Errorf("%d of %d files are staged", n, 2*files)
	}
}

// An empty folder is nothing to stage, which is no error, as with git; what is not there is one.
func TestAddEmptyFolder(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	mkdir(t, filepath.Join(dir, "empty"))
	c := serve(t, nil)
	must(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{"empty"}})
	refused(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{"missing"}}, "did not match any files")
}
