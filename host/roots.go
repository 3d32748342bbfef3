package host

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/mcp"
)

// ErrRoot is what every refusal of a root is, for errors.Is.
var ErrRoot = errors.New("not a root to give to servers")

// tooWide are directories that hold the system or the files of all users.
var tooWide = []string{"/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/opt", "/proc", "/root", "/run", "/sbin", "/sys", "/usr", "/var", "/Users", "/System", "/Library", "/private"}

// Root makes a root of a directory that the person named. It must exist; links
// are resolved. A directory that holds far more than a project is refused: the
// file system's root, a system directory, the home directory and what it is in.
func Root(dir string) (mcp.Root, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return mcp.Root{}, fmt.Errorf("root %q: %w", dir, err)
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return mcp.Root{}, fmt.Errorf("root %q: %w", dir, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return mcp.Root{}, fmt.Errorf("root %q: %w", dir, err)
	}
	if !info.IsDir() {
		return mcp.Root{}, fmt.Errorf("root %q: %w: it is no directory", dir, ErrRoot)
	}
	if path == filepath.VolumeName(path)+string(filepath.Separator) || slices.Contains(tooWide, filepath.ToSlash(path)) {
		return mcp.Root{}, fmt.Errorf("root %q: %w: it is a system directory; name the one that the work is in", dir, ErrRoot)
	}
	if holdsHome(path) {
		return mcp.Root{}, fmt.Errorf("root %q: %w: it holds the whole home directory; name the one that the work is in", dir, ErrRoot)
	}
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") { // C:/work
		slashed = "/" + slashed
	}
	u := url.URL{Scheme: "file", Path: slashed}
	return mcp.Root{URI: u.String(), Name: filepath.Base(path)}, nil
}

// holdsHome reports whether path is the home directory or a parent of it.
func holdsHome(path string) bool {
	home, err := os.UserHomeDir()
	if err != nil {
		return false
	}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	rel, err := filepath.Rel(path, home)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
