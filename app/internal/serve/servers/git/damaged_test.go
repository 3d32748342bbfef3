package git_test

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ownFiles are git's own files in a repository but objects, with their contents.
func ownFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	root := filepath.Join(dir, ".git")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "objects" {
			return skipOr(err)
		}
		if !d.IsDir() {
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			files[name] = string(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func skipOr(err error) error {
	if err != nil {
		return err
	}
	return fs.SkipDir
}

// A commit in a repository that is damaged, or made to do harm, is refused and changes none of git's files.
func TestCommitRefusesDamage(t *testing.T) {
	for name, test := range map[string]struct{ file, text, says string }{
		"HEAD that leaves refs":        {"HEAD", "ref: refs/../packed-refs\n", "HEAD is damaged"},
		"HEAD with an empty part":      {"HEAD", "ref: refs/heads//main\n", "HEAD is damaged"},
		"HEAD with a dot":              {"HEAD", "ref: refs/heads/./main\n", "HEAD is damaged"},
		"HEAD of a lock":               {"HEAD", "ref: refs/heads/main.lock\n", "HEAD is damaged"},
		"MERGE_HEAD of NULs":           {"MERGE_HEAD", strings.Repeat("\x00", 41), "MERGE_HEAD is damaged"},
		"MERGE_HEAD of nothing":        {"MERGE_HEAD", strings.Repeat("1", 40) + "\n", "MERGE_HEAD is damaged"},
		"a folder where a log belongs": {"logs/HEAD/x", "", "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := simple(t)
			gitIn(t, dir, "pack-refs", "--all")
			stageFile(t)(dir)
			file := filepath.Join(dir, ".git", filepath.FromSlash(test.file))
			if err := os.Remove(filepath.Dir(file)); err != nil && strings.HasPrefix(test.file, "logs/") {
				t.Fatal(err)
			}
			put(t, file, test.text)
			before := ownFiles(t, dir)
			refused(t, serve(t, nil), "git_commit", map[string]any{"repo_path": dir, "message": "m"}, test.says)
			after := ownFiles(t, dir)
			log := filepath.Join(dir, ".git", "logs", "refs", "heads", "main") // is written before the one of HEAD
			delete(before, log)
			delete(after, log)
			if d := cmp.Diff(before, after); d != "" {
				t.Errorf("git's files changed:\n%s", d)
			}
		})
	}
}

// A checkout that would bring attributes that cannot be read changes nothing.
func TestCheckoutRefusesLongAttributes(t *testing.T) {
	for name, text := range map[string]string{
		"bytes": "#" + strings.Repeat("x", 1<<20) + "\n", "lines": strings.Repeat("*.a text\n", 50_001),
	} {
		t.Run(name, func(t *testing.T) {
			dir := simple(t)
			gitIn(t, dir, "checkout", "-q", "-b", "long")
			put(t, filepath.Join(dir, ".gitattributes"), text)
			put(t, filepath.Join(dir, "z.txt"), "z\n")
			gitIn(t, dir, "rm", "-q", "a.txt")
			gitIn(t, dir, "add", ".")
			gitIn(t, dir, "commit", "-q", "-m", "long")
			gitIn(t, dir, "checkout", "-q", "main")
			before := history(t, dir)
			c := serve(t, nil)
			refused(t, c, "git_checkout", map[string]any{"repo_path": dir, "branch_name": "long"}, ".gitattributes\" cannot be checked out")
			if d := cmp.Diff(before, history(t, dir)); d != "" {
				t.Errorf("the repository changed:\n%s", d)
			}
			if text, failed := call(t, c, "git_status", map[string]any{"repo_path": dir}); failed {
				t.Errorf("git_status then gives %q", text)
			}
		})
	}
}

// The names of an index in version 4, each of which begins like the one before it, have a bound.
func TestIndexOfLongNames(t *testing.T) {
	dir := simple(t)
	const count = 8000
	var b bytes.Buffer
	b.WriteString("DIRC\x00\x00\x00\x04")
	_ = binary.Write(&b, binary.BigEndian, uint32(count))
	for i := range count {
		b.Write(append(make([]byte, 26), 0x81, 0xa4)) // times and numbers, and the mode of a file
		b.Write(make([]byte, 62-28))
		b.WriteByte(0) // nothing of the name before it goes
		fmt.Fprintf(&b, "%0450d\x00", i)
	}
	sum := sha1.Sum(b.Bytes())
	put(t, filepath.Join(dir, ".git", "index"), b.String()+string(sum[:]))
	refused(t, serve(t, nil), "git_status", map[string]any{"repo_path": dir}, "its paths are longer than this server reads")
}

// What is staged during a merge leaves the stages of conflicts in order, however many files there are.
func TestConflictsStayInOrder(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	change := func(text string, conflicts bool) {
		for i := range 40 {
			if conflicts == (i%7 == 3) {
				put(t, filepath.Join(dir, fmt.Sprintf("f%02d", i)), text)
			}
		}
		gitIn(t, dir, "add", ".")
		gitIn(t, dir, "commit", "-q", "-m", text)
	}
	change("base\n", false)
	change("base\n", true)
	gitIn(t, dir, "checkout", "-q", "-b", "side")
	change("side\n", true)
	gitIn(t, dir, "checkout", "-q", "main")
	change("main\n", true)
	if out, err := tryGit(dir, nil, "merge", "-q", "side"); err == nil {
		t.Fatalf("the merge has no conflict: %s", out)
	}
	before := gitIn(t, dir, "ls-files", "-u")
	c := serve(t, nil)
	for i := range 40 {
		name := fmt.Sprintf("f%02d", i)
		if i%7 == 3 {
			continue
		}
		put(t, filepath.Join(dir, name), "staged\n")
		if text, failed := call(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{name}}); failed {
			t.Fatal(text)
		}
		if d := cmp.Diff(before, gitIn(t, dir, "ls-files", "-u")); d != "" {
			t.Fatalf("after %s:\n%s", name, d)
		}
	}
	gitIn(t, dir, "fsck", "--strict")
}

// A branch that another working tree has checked out, by its name or through a symbolic one, is marked in the
// list and not checked out twice.
func TestBranchesElsewhere(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	gitIn(t, dir, "symbolic-ref", "refs/heads/link", "refs/heads/other")
	gitIn(t, dir, "symbolic-ref", "refs/heads/far", "refs/heads/link")
	gitIn(t, dir, "worktree", "add", "-q", filepath.Join(t.TempDir(), "tree"), "link")
	c := serve(t, nil)
	text, _ := call(t, c, "git_branch", map[string]any{"repo_path": dir, "branch_type": "local"})
	if want := gitIn(t, dir, "branch"); strings.TrimSpace(text) != strings.TrimSpace(want) {
		t.Errorf("git_branch gives\n%s\nand git\n%s", text, want)
	}
	for _, name := range []string{"other", "link", "far"} {
		refused(t, c, "git_checkout", map[string]any{"repo_path": dir, "branch_name": name}, "'"+name+"' is already checked out at")
	}
}
