package git_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/client"
)

// swapped are the files of each branch in the folder that is replaced. Some have the names of files of
// git's own, and a link may lead there.
var swapped = map[string][]string{
	"main": {"config", "description", "both.txt", "branches/main.txt"}, "other": {"config", "both.txt", "hooks/post-commit", "new.txt"},
}

// A swapper replaces a folder with a link and puts it back, again and again.
type swapper struct {
	folder  string // in the working tree
	target  string // of the link
	aside   string // a folder for what is not in the working tree now
	links   atomic.Int64
	failed  atomic.Pointer[error]
	stop    chan struct{}
	stopped chan struct{}
}

func swap(t *testing.T, folder, target string) *swapper {
	t.Helper()
	s := &swapper{folder: folder, target: target, aside: t.TempDir(), stop: make(chan struct{}), stopped: make(chan struct{})}
	go func() {
		defer close(s.stopped)
		for n := 0; ; n++ {
			select {
			case <-s.stop:
				return
			default:
			}
			if err := s.once(n); err != nil {
				s.failed.Store(&err)
				return
			}
		}
	}()
	return s
}

// once replaces the folder with a link and puts it back, with the files of a branch, with others, which
// git_add has to read, or with none. What a checkout has made in its place meanwhile is removed.
func (s *swapper) once(n int) error {
	kept := filepath.Join(s.aside, "kept")
	removeMade(kept)
	if err := os.Rename(s.folder, kept); err != nil && !errors.Is(err, fs.ErrNotExist) { // it is the other branch's
		return err
	}
	if os.Symlink(s.target, s.folder) == nil { // else a checkout has made it again
		s.links.Add(1)
		if n%3 == 0 {
			for range 1000 { // long enough for a few steps of a call
				if _, err := os.Lstat(s.folder); err != nil {
					break // a checkout has removed it
				}
			}
		}
	}
	removeMade(s.folder)
	removeMade(kept)
	files := map[string]string{}
	switch n % 4 {
	case 0:
		return nil
	case 1:
		for _, name := range []string{"config", "description", "both.txt"} {
			files[name] = fmt.Sprintf("in the tree %s %d\n", name, n)
		}
	default:
		branch := []string{"main", "other"}[n%2]
		for _, name := range swapped[branch] {
			files[name] = "on " + branch + "\n"
		}
	}
	for name, text := range files {
		path := filepath.Join(kept, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			return err
		}
	}
	if os.Rename(kept, s.folder) != nil { // a checkout has made it again
		removeMade(s.folder)
	}
	return nil
}

// removeMade removes a link, or a folder in which a checkout may make files meanwhile, also after it was
// moved.
func removeMade(path string) {
	for os.RemoveAll(path) != nil {
		runtime.Gosched()
	}
}

func (s *swapper) end(t *testing.T) {
	t.Helper()
	close(s.stop)
	<-s.stopped
	if err := s.failed.Load(); err != nil {
		t.Fatal(*err)
	}
	removeMade(s.folder)
}

// contents are all files of a folder, but those that git and the server write in .git.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name {
		case "objects", "logs", "refs":
			return fs.SkipDir
		case "HEAD", "index":
			return nil
		}
		fmt.Fprintf(&b, "%s %s", name, e.Type())
		if e.Type().IsRegular() && !strings.HasSuffix(name, ".sample") {
			text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", text)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// While a folder of the working tree becomes a link and a folder again, nothing at the other end of the
// link is staged, written or removed: a folder outside of the working tree, or .git. PARLEY_TEST_SWAPS is
// how many calls are made; default 500.
func TestSwappedFolder(t *testing.T) {
	racetest.SkipSerial(t)
	needGitProgram(t)
	for name, inGit := range map[string]bool{"outside": false, "git": true} {
		t.Run(name, func(t *testing.T) { testSwappedFolder(t, inGit) })
	}
}

func testSwappedFolder(t *testing.T, inGit bool) {
	dir := simple(t)
	folder, target := filepath.Join(dir, "d"), t.TempDir()
	index := make(map[string]string)
	for branch, names := range swapped {
		gitIn(t, dir, "checkout", "-q", branch)
		for _, name := range names {
			put(t, filepath.Join(folder, filepath.FromSlash(name)), "on "+branch+"\n")
		}
		gitIn(t, dir, "add", ".")
		gitIn(t, dir, "commit", "-q", "-m", branch)
		text, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
		if err != nil {
			t.Fatal(err)
		}
		index[branch] = string(text)
	}
	if inGit {
		target = filepath.Join(dir, ".git")
	}
	mkdir(t, filepath.Join(target, "hooks"))
	mkdir(t, filepath.Join(target, "branches"))
	for _, name := range []string{"config", "description"} {
		text, err := os.ReadFile(filepath.Join(target, name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		put(t, filepath.Join(target, name), string(text)+"# the secret "+strings.Repeat("s", 100)+"\n")
	}
	before := contents(t, target)
	c := serve(t, nil)
	to, err := filepath.Rel(dir, target) // a link that is not absolute may lead to what is in the tree
	if err != nil {
		t.Fatal(err)
	}
	s := swap(t, folder, to)
	done := callsBesides(t, c, dir, index)
	s.end(t)
	t.Logf("%d swaps; calls that succeeded: %v", s.links.Load(), done)
	if after := contents(t, target); after != before {
		t.Fatalf("what the link leads to was changed:\n%s\nbefore:\n%s", after, before)
	}
	if all := gitIn(t, dir, "cat-file", "--batch-all-objects", "--batch"); strings.Contains(all, "the secret") {
		t.Error("what the link leads to was read into the repository")
	}
	if said := gitIn(t, dir, "fsck", "--strict", "--no-dangling", "--no-progress"); said != "" {
		t.Errorf("git fsck: %s", said)
	}
	must(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{"."}})
	must(t, c, "git_reset", map[string]any{"repo_path": dir})
}

// callsBesides stages files and switches between branches, whose indexes are given, and counts the calls
// that succeed.
func callsBesides(t *testing.T, c *client.Client, dir string, index map[string]string) map[string]int {
	t.Helper()
	done := make(map[string]int)
	branches := []string{"main", "other"}
	for n := range count("PARLEY_TEST_SWAPS", 500) {
		tool, args := "git_add", map[string]any{"repo_path": dir, "files": []string{".", "d/config"}[n/2%2 : n/2%2+1]}
		if n%2 == 1 { // from the files of one branch, whatever is there now, to the other
			from, to := branches[n/2%2], branches[1-n/2%2]
			put(t, filepath.Join(dir, ".git", "index"), index[from])
			put(t, filepath.Join(dir, ".git", "HEAD"), "ref: refs/heads/"+from+"\n")
			tool, args = "git_checkout", map[string]any{"repo_path": dir, "branch_name": to}
		}
		if _, failed := call(t, c, tool, args); !failed {
			done[tool]++
		}
	}
	return done
}
