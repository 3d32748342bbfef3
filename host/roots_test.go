package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/host"
)

// Proves: SEC-ROOTS-1. What holds more than a project is refused, also behind a link.
func TestRootRefuses(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home", "ada")
	work := filepath.Join(home, "work place")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/", link); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"/", "/etc", "/usr", link, home, filepath.Dir(home), file} {
		if r, err := host.Root(bad); !errors.Is(err, host.ErrRoot) {
			t.Errorf("%s: got %v, %v", bad, r, err)
		}
	}
	if _, err := host.Root(filepath.Join(dir, "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	r, err := host.Root(work)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(r.URI, "file:///") || !strings.HasSuffix(r.URI, "/home/ada/work%20place") || r.Name != "work place" {
		t.Errorf("the root is %+v", r)
	}
}
