//go:build unix

package skills_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/server"
)

// Symbolic links and special files are refused wherever they are, even within the folder.
func TestSymlinks(t *testing.T) {
	for name, make := range map[string]func(dir string) error{
		"pdf/link.md": func(dir string) error { return os.Symlink("SKILL.md", filepath.Join(dir, "pdf", "link.md")) },
		"pdf/outside": func(dir string) error { return os.Symlink("/etc", filepath.Join(dir, "pdf", "outside")) },
		"linked":      func(dir string) error { return os.Symlink("pdf", filepath.Join(dir, "linked")) },
		"other/SKILL.md": func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "other"), 0o755), os.Symlink("../pdf/SKILL.md", filepath.Join(dir, "other", "SKILL.md")))
		},
		"pdf/pipe": func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "pdf", "pipe"), 0o600) },
	} {
		dir := folder(t, some())
		if err := make(dir); err != nil {
			t.Skip(err)
		}
		_, err := skills.Enable(server.New("skills", "1.0.0", nil), skills.Dir(dir), nil)
		bad, ok := errors.AsType[*skills.FileError](err)
		if !ok || !strings.HasSuffix(name, bad.Path) || !strings.Contains(err.Error(), "symbolic link") && !strings.Contains(err.Error(), "no ordinary file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
