package gogit

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/mcp"
)

// A Place is where the parts of a repository lie. All paths are absolute and without symbolic
// links, and lie within bound.
type Place struct {
	Bound  string // the folder that nothing of the repository may lie outside of
	Work   string // the working tree; "" for a bare repository
	GitDir string
	Common string // gitDir, or the one that a linked working tree shares with others
}

// maxSmallFile is the most bytes of a file of settings: .git, config, alternates, .gitignore.
const maxSmallFile = 1 << 20

// maxPackedRefs is the most bytes of packed-refs, the file of branches and tags that git has packed. It is
// read through to list them. Git has no such limit.
const maxPackedRefs = 64 << 20

// RealPath resolves a path that a caller gave.
func RealPath(path string) (string, error) {
	if path == "" || strings.ContainsRune(path, 0) || len(path) > maxName {
		return "", mcp.Errorf("invalid path %q", path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", mcp.Errorf("invalid path %q", path)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", mcp.Errorf("there is no %q", path)
		}
		return "", mcp.Errorf("invalid path %q", path)
	}
	return real, nil
}

// within reports whether path is dir or beneath it. Both are real paths.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// Locate finds the repository that path is in. It has to lie within one of dirs, or be one of
// repositories; if both are empty, any repository will do.
func Locate(path string, dirs, repositories []string) (*Place, error) {
	real, err := RealPath(path)
	if err != nil {
		return nil, err
	}
	root := Root(real)
	p := &Place{Bound: root}
	if len(dirs)+len(repositories) > 0 && !slices.Contains(repositories, root) {
		p.Bound = holder(root, dirs)
	}
	switch {
	case p.Bound == "" && len(dirs) > 0 && holder(real, dirs) == "":
		return nil, mcp.Errorf("repository path %q is outside the allowed repository %q", path, strings.Join(dirs, `", "`))
	case root == "":
		return nil, mcp.Errorf("%q is not a valid Git repository, and nor is a folder above it", path)
	case p.Bound == "":
		return nil, mcp.Errorf("%q is in the repository %q, which is outside of %q; start the server with --repository %q to allow it",
			path, root, strings.Join(dirs, `", "`), root)
	}
	if len(dirs) == 0 && root != real && Foreign(root) {
		return nil, mcp.Errorf("%q is in the repository %q, which belongs to another user; start the server with --repository %q to allow it",
			path, root, root)
	}
	if rel, err := filepath.Rel(root, real); err != nil || isDotGit(filepath.ToSlash(rel)) {
		return nil, mcp.Errorf("%q is of git's own files; give the folder that has .git", path)
	}
	if err := p.find(root); err != nil {
		return nil, err
	}
	return p, p.check()
}

// holder is the last of dirs that path, a real one, lies within, or "".
func holder(path string, dirs []string) (found string) {
	for _, dir := range dirs {
		if dir, err := RealPath(dir); err == nil && path != "" && within(path, dir) {
			found = dir
		}
	}
	return found
}

// Root is the folder of the repository that dir, a real path, is in, or "".
func Root(dir string) string {
	for {
		_, err := os.Lstat(filepath.Join(dir, ".git"))
		if err == nil || isGitDir(dir) && !isDotGit(filepath.Base(dir)) {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// submodule finds the repository of a submodule, whose parts have to lie within the same bound.
func (p *Place) submodule(name string) (*Place, error) {
	dir := filepath.Join(p.Work, filepath.FromSlash(name))
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
		return nil, err
	}
	sub := &Place{Bound: p.Bound}
	if err := sub.find(dir); err != nil {
		return nil, err
	}
	return sub, sub.check()
}

// needTree refuses what a bare repository cannot do.
func (p *Place) needTree() error {
	if p.Work == "" {
		return mcp.Errorf("this operation must be run in a work tree, and this is a bare repository")
	}
	return nil
}

// find sets the parts of the repository whose folder is dir.
func (p *Place) find(dir string) error {
	dot := filepath.Join(dir, ".git")
	info, err := os.Stat(dot)
	switch {
	case err == nil && info.IsDir():
		p.Work, p.GitDir = dir, dot
	case err == nil && info.Mode().IsRegular():
		text, err := readSmall(dot)
		if err != nil {
			return err
		}
		to, ok := bytes.CutPrefix(text, []byte("gitdir: "))
		if !ok {
			return mcp.Errorf("%q is not a valid Git repository: its .git file does not say where it is", dir)
		}
		p.Work, p.GitDir = dir, joinIn(dir, strings.TrimRight(string(to), "\r\n"))
	case isGitDir(dir):
		p.GitDir = dir
	default:
		return mcp.Errorf("%q is not a valid Git repository", dir)
	}
	if p.GitDir, err = p.inside(p.GitDir, "its .git"); err != nil {
		return err
	}
	p.Common = p.GitDir
	text, err := readSmall(filepath.Join(p.GitDir, "commondir"))
	if err == nil {
		p.Common, err = p.inside(joinIn(p.GitDir, strings.TrimSpace(string(text))), "its commondir")
		if err != nil {
			return err
		}
	}
	if !isGitDir(p.Common) {
		return mcp.Errorf("%q is not a valid Git repository", dir)
	}
	return nil
}

// check looks for parts of the repository that lead out of it.
func (p *Place) check() error {
	for _, name := range []string{"HEAD", "config", "config.worktree", "index", "objects", "objects/info", "objects/pack", "refs", "packed-refs", "logs", "info"} {
		for _, dir := range []string{p.GitDir, p.Common} {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if _, err := os.Lstat(path); err != nil {
				continue
			}
			if _, err := p.inside(path, ".git/"+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// inside resolves path, which is what of the repository, and refuses it if it lies outside.
func (p *Place) inside(path, what string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", mcp.Errorf("the repository is refused: %s leads to something that is not there", what)
	}
	if !within(real, p.Bound) {
		return "", mcp.Errorf("the repository is refused: %s leads outside of %q; if it belongs there, "+
			"start the server with --repository and a folder that has both", what, p.Bound)
	}
	return real, nil
}

// joinIn is path, seen from dir unless it is absolute.
func joinIn(dir, path string) string {
	if path = filepath.FromSlash(path); filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// isGitDir reports whether dir holds the files of a repository.
func isGitDir(dir string) bool {
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	_, err := os.Lstat(filepath.Join(dir, "HEAD"))
	return err == nil
}

// readSmall reads a file of settings, which must not be large.
func readSmall(path string) ([]byte, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // opening a pipe would wait
		return nil, fs.ErrNotExist
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is only read
	text, err := io.ReadAll(io.LimitReader(f, maxSmallFile+1))
	if err == nil && len(text) > maxSmallFile {
		err = mcp.Errorf("%q is larger than %d bytes", path, maxSmallFile)
	}
	return text, err
}
