//go:build unix

package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe in the place of a file, which waits for its other end, keeps no call waiting.
func TestPipes(t *testing.T) {
	needGitProgram(t)
	good := simple(t)
	put(t, filepath.Join(good, ".gitattributes"), "*.bin -text\n")
	put(t, filepath.Join(good, ".gitignore"), "*.log\n")
	gitIn(t, good, "add", ".")
	gitIn(t, good, "commit", "-q", "-m", "settings")
	head := strings.TrimSpace(gitIn(t, good, "rev-parse", "HEAD"))
	c := serve(t, nil)
	for _, name := range []string{
		".git/index", ".git/HEAD", ".git/config", ".git/packed-refs", ".git/refs/heads/main", ".git/refs/heads/pipe", ".git/logs/HEAD", ".git/logs/refs/heads/main",
		".git/objects/" + head[:2] + "/" + head[2:], ".git/objects/info/alternates", ".git/objects/pack/pack-" + head + ".idx", ".git/info/exclude", ".git/info/attributes",
		".git/shallow", ".git/MERGE_HEAD", ".git/commondir", ".gitignore", ".gitattributes", "a.txt", "new.txt", "dir/.gitignore",
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyOf(t, good)
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(path, 0o666); err != nil {
				t.Skip(err)
			}
			useAll(t, c, dir) // each call ends
			if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeNamedPipe == 0 && strings.HasPrefix(name, ".git/logs") {
				t.Errorf("%s is %v now", name, info.Mode())
			}
		})
	}
}
