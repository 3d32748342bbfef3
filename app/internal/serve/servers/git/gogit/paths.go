package gogit

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/parley-mcp/parley/mcp"
)

// cleanPaths resolves the paths that a caller wants to stage, relative to the working tree. Those
// that lie outside are refused, also where links lead there.
func (p *Place) cleanPaths(ctx context.Context, files []string) ([]string, error) {
	if err := p.needTree(); err != nil {
		return nil, err
	}
	out := make([]string, 0, len(files))
	for _, name := range files {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if name == "" || len(name) > maxName || strings.ContainsRune(name, 0) {
			return nil, mcp.Errorf("Invalid path: %.100q: a path has 1 to %d bytes, and no NUL", name, maxName)
		}
		if strings.HasPrefix(name, ":") {
			return nil, unsupported("the path %q, which begins with ':',", name)
		}
		full := joinIn(p.Work, name)
		rel, err := filepath.Rel(p.Work, full)
		if err != nil || !filepath.IsLocal(rel) {
			return nil, p.outside(name)
		}
		real, err := filepath.EvalSymlinks(full)
		if err == nil && !within(real, p.Work) {
			return nil, p.outside(name)
		}
		if parent, err := filepath.EvalSymlinks(filepath.Dir(full)); err == nil && rel != "." && !within(parent, p.Work) {
			return nil, p.outside(name)
		}
		rel = filepath.ToSlash(rel)
		if isDotGit(rel) {
			return nil, mcp.Errorf("Invalid path: %q is of git's own files", name)
		}
		out = append(out, rel)
	}
	return out, nil
}

func (p *Place) outside(name string) error {
	return mcp.Errorf("Path '%s' is outside the repository '%s'", name, p.Work)
}

// QuotePath writes a path as git does: in quotes if it has bytes that are not plain.
func QuotePath(path string) string {
	var b strings.Builder
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case c >= '\a' && c <= '\r':
			b.WriteString(`\` + "abtnvfr"[c-'\a':c-'\a'+1])
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	if b.Len() == len(path) {
		return path
	}
	return `"` + b.String() + `"`
}

// validPath reports whether a path is one that the index may have, and a file of the working tree.
func validPath(name string) bool {
	return !slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return !ValidName(part, runtime.GOOS == "windows") })
}

// ValidName reports whether a name is one that a tree may have: it leads nowhere else when it is written.
// For windows, it also has to be the name of a file there.
func ValidName(name string, windows bool) bool {
	if windows && (strings.ContainsAny(name, `\<>:"|?*`) || strings.ContainsFunc(name, unicode.IsControl) ||
		strings.TrimRight(name, " .") != name || !filepath.IsLocal(name)) {
		return false // such as a path, a stream of a file, or a device
	}
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00") && !isDotGit(name)
}

// isDotGit reports whether some file system takes name, or a part of it, for .git.
func isDotGit(name string) bool {
	return slices.ContainsFunc(parts(name), func(part string) bool {
		plain := plainName(part)
		return plain == ".git" || plain == "git~1"
	})
}

// parts are what lies between the slashes of a path, and the backslashes, which Windows takes for slashes.
func parts(path string) []string { return strings.Split(strings.ReplaceAll(path, `\`, "/"), "/") }

// checkFile refuses what git neither stages nor writes: on Windows a path that means something else there,
// and a symbolic link in the place of .gitmodules, by any name that some file system takes for it. With such
// a link the settings of submodules would come from elsewhere.
func checkFile(name string, mode filemode.FileMode) error {
	if !validPath(name) {
		return mcp.Errorf("%q is refused: no file can have this path here", name)
	}
	if mode == filemode.Symlink && slices.ContainsFunc(parts(name), isDotGitmodules) {
		return mcp.Errorf("%q is a symbolic link, and git takes no link for .gitmodules; replace it with a file", name)
	}
	return nil
}

// isDotGitmodules reports whether some file system takes name for .gitmodules. Windows has a short
// name too, made of the first letters, or where these are taken of a checksum.
func isDotGitmodules(name string) bool {
	plain := plainName(name)
	letters, number, short := strings.Cut(plain, "~")
	if !short {
		return plain == ".gitmodules"
	}
	if letters == "gitmod" {
		return len(number) == 1 && number >= "1" && number <= "4"
	}
	const length = 8
	return len(plain) == length && strings.HasPrefix("gi7eba", letters) && number[0] != '0' && strings.Trim(number, "0123456789") == ""
}

// plainName is a name without the differences that file systems pass over.
func plainName(name string) string {
	plain := strings.Map(func(r rune) rune {
		switch { // characters that HFS+ ignores
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, strings.ToLower(name))
	plain, _, _ = strings.Cut(plain, ":")
	return strings.TrimRight(plain, " .")
}
