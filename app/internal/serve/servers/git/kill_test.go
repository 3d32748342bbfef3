package git_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/serve/servers/git"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport/mem"
)

// writerVar has the seed and the repository of a process of this test that writes until it is killed.
const writerVar = "PARLEY_TEST_GIT_WRITER"

// count is how often a test does something: what a variable of the environment says, or the default.
func count(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// A writer changes a repository by chance, the same for the same seed.
type writer struct {
	*rand.Rand

	c        *client.Client
	dir      string
	branches []string
	name     string // begins the names of new branches
}

// writeUntilKilled changes a repository without end. It prints a line for each call that begins, and for
// each commit that was made.
func writeUntilKilled(seedAndDir string) error {
	text, dir, _ := strings.Cut(seedAndDir, " ")
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return err
	}
	s, err := git.New("1.0.0", &git.Options{Now: func() time.Time { return testTime }})
	if err != nil {
		return err
	}
	c, err := client.Connect(context.Background(), mem.New(s, nil), nil)
	if err != nil {
		return err
	}
	w := &writer{Rand: rand.New(rand.NewPCG(seed, 3)), c: c, dir: dir, name: "b" + text}
	list, err := w.call("git_branch", map[string]any{"branch_type": "local"})
	if err != nil {
		return err
	}
	for line := range strings.Lines(list) {
		if name := strings.TrimSpace(strings.TrimPrefix(line, "*")); !strings.HasPrefix(name, "(") {
			w.branches = append(w.branches, name)
		}
	}
	for {
		if err := w.work(); err != nil {
			return err
		}
	}
}

// work commits all changes, makes a branch, stages and unstages something, and switches to a branch.
func (w *writer) work() error {
	if err := w.change(); err != nil {
		return err
	}
	all := map[string]any{"files": []string{"."}}
	if _, err := w.call("git_add", all); err != nil {
		return err
	}
	if _, err := w.call("git_reset", nil); err != nil {
		return err
	}
	if _, err := w.call("git_add", all); err != nil {
		return err
	}
	made, err := w.call("git_commit", map[string]any{"message": fmt.Sprintf("change %d", w.Uint32())})
	if err != nil {
		return err
	}
	fmt.Println("commit", made[strings.LastIndexByte(made, ' ')+1:])
	branch := w.name + "-" + strconv.Itoa(len(w.branches))
	if _, err := w.call("git_create_branch", map[string]any{"branch_name": branch}); err != nil {
		return err
	}
	w.branches = append(w.branches, branch)
	_, err = w.call("git_checkout", map[string]any{"branch_name": w.branches[w.IntN(len(w.branches))]})
	return err
}

// change writes and removes some files.
func (w *writer) change() error {
	for range 1 + w.IntN(8) {
		path := filepath.Join(w.dir, fmt.Sprintf("d%d", w.IntN(4)), fmt.Sprintf("f%d.txt", w.IntN(10)))
		if w.IntN(4) == 0 {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(strings.Repeat(fmt.Sprintln(w.Uint64()), 1+w.IntN(500))), 0o666); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) call(tool string, args map[string]any) (string, error) {
	fmt.Println(tool)
	with := map[string]any{"repo_path": w.dir}
	for name, value := range args {
		with[name] = value
	}
	res, err := w.c.CallTool(context.Background(), tool, with, nil)
	if err != nil {
		return "", err
	}
	text, ok := res.Content[0].(*mcp.TextContent)
	if !ok || res.IsError {
		return "", fmt.Errorf("%s fails: %v", tool, res.Content[0])
	}
	return text.Text, nil
}

// A process that is killed at any moment leaves a repository that git finds nothing wrong with, which has
// all commits that it told of. At most locks are left, and the error that they cause says what to do.
// PARLEY_TEST_KILLS is how often it is killed; default 10.
func TestKilled(t *testing.T) {
	racetest.SkipSerial(t)
	needGitProgram(t)
	dir := simple(t)
	r := rand.New(rand.NewPCG(1, 2))
	c := serve(t, nil)
	known := make(map[string]bool)
	left := make(map[string]int)
	for round := range count("PARLEY_TEST_KILLS", 10) {
		for _, commit := range killed(t, dir, round, r) {
			known[commit] = true
		}
		for _, name := range locks(t, dir) {
			left[filepath.Base(name)]++
			needsLock(t, c, dir, name)
		}
		checkRepository(t, dir, known)
		for _, name := range locks(t, dir) { // or the next process could do nothing
			if err := os.Remove(filepath.Join(dir, ".git", filepath.FromSlash(name))); err != nil {
				t.Fatal(err)
			}
		}
		if t.Failed() {
			t.Fatalf("after round %d", round)
		}
	}
	t.Logf("%d commits were told of; left locks: %v", len(known), left)
}

// killed starts a process that writes, kills it in the middle of a call, and returns the commits that it
// has told of.
func killed(t *testing.T, dir string, seed int, r *rand.Rand) (commits []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", writerVar, seed, dir))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	after, read := 2+r.IntN(40), 0
	moment := time.Duration(r.IntN(5000)) * time.Microsecond // within a call or a few
	kill := func() { _ = cmd.Process.Kill() }                // it has not ended
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if commit, ok := strings.CutPrefix(lines.Text(), "commit "); ok {
			commits = append(commits, commit)
		}
		if read++; read == after {
			defer time.AfterFunc(moment, kill).Stop()
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() == writerFailed || read < after {
		t.Fatalf("the process ended by itself after %d lines: %v", read, err)
	}
	return commits
}

// writerFailed is the exit code of a process that writes and ends by itself.
const writerFailed = 3

// locks lists the locks of a repository, seen from its folder .git.
func locks(t *testing.T, dir string) (names []string) {
	t.Helper()
	top := filepath.Join(dir, ".git")
	err := filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".lock" {
			name, relErr := filepath.Rel(top, path)
			names, err = append(names, filepath.ToSlash(name)), relErr
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// needsLock makes a call that needs a lock that was left. Its error says which file is to be removed, and
// when.
func needsLock(t *testing.T, c *client.Client, dir, lock string) {
	t.Helper()
	tool, args := "git_reset", map[string]any{"repo_path": dir}
	switch held := locks(t, dir); {
	case lock == "index.lock":
	case len(held) > 1:
		return // a call would find the other lock, of the index, first
	case lock == "HEAD.lock":
		// To the branch where it is: what the killed process wrote for another one is in no way then.
		tool, args["branch_name"] = "git_checkout", strings.TrimPrefix(strings.TrimSpace(gitIn(t, dir, "symbolic-ref", "HEAD")), "refs/heads/")
	case strings.TrimSpace(gitIn(t, dir, "symbolic-ref", "HEAD"))+".lock" == lock:
		tool, args["message"] = "git_commit", "not made"
	default:
		tool, args["branch_name"] = "git_create_branch", strings.TrimSuffix(strings.TrimPrefix(lock, "refs/heads/"), ".lock")
	}
	refused(t, c, tool, args, ".git/"+lock+" exists; if no git process is running, remove that file")
}

// checkRepository has git look for damage, and for the commits.
func checkRepository(t *testing.T, dir string, commits map[string]bool) {
	t.Helper()
	if said := gitIn(t, dir, "fsck", "--strict", "--no-dangling", "--no-progress"); said != "" {
		t.Errorf("git fsck: %s", said)
	}
	gitIn(t, dir, "ls-files", "--stage")
	gitIn(t, dir, "status", "--porcelain")
	gitIn(t, dir, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	gitIn(t, dir, "for-each-ref", "--format=%(objecttype) %(refname)")
	there := make(map[string]bool)
	for line := range strings.Lines(gitIn(t, dir, "rev-list", "--all", "--reflog")) {
		there[strings.TrimSpace(line)] = true
	}
	for commit := range commits {
		if !there[commit] {
			t.Errorf("the commit %s was lost", commit)
		}
	}
}
