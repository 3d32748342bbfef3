package git

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/parley-mcp/parley/mcp"
)

// A place is where the parts of a repository lie. All paths are absolute and without symbolic
// links, and lie within bound.
type place struct {
	bound  string // the folder that nothing of the repository may lie outside of
	work   string // the working tree; "" for a bare repository
	gitDir string
	common string // gitDir, or the one that a linked working tree shares with others
}

// maxSmallFile is the most bytes of a file of settings: .git, config, alternates, .gitignore.
const maxSmallFile = 1 << 20

// realPath resolves a path that a caller gave.
func realPath(path string) (string, error) {
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

// locate finds the repository at path. With allowed folders it has to lie within one of them.
func locate(path string, allowed []string) (*place, error) {
	real, err := realPath(path)
	if err != nil {
		return nil, err
	}
	bound := ""
	for _, dir := range allowed {
		if dir, err := realPath(dir); err == nil && within(real, dir) {
			bound = dir
		}
	}
	switch {
	case bound == "" && len(allowed) > 0:
		return nil, mcp.Errorf("repository path %q is outside the allowed repository %q", path, strings.Join(allowed, `", "`))
	case bound == "":
		bound = real
	}
	if filepath.Base(real) == ".git" {
		return nil, mcp.Errorf("%q is the folder of git's own files; give the folder that has it", path)
	}
	p := &place{bound: bound}
	if err := p.find(real); err != nil {
		return nil, err
	}
	return p, p.check()
}

// find sets the parts of the repository whose folder is dir.
func (p *place) find(dir string) error {
	dot := filepath.Join(dir, ".git")
	info, err := os.Stat(dot)
	switch {
	case err == nil && info.IsDir():
		p.work, p.gitDir = dir, dot
	case err == nil && info.Mode().IsRegular():
		text, err := readSmall(dot)
		if err != nil {
			return err
		}
		to, ok := bytes.CutPrefix(text, []byte("gitdir: "))
		if !ok {
			return mcp.Errorf("%q is not a valid Git repository: its .git file does not say where it is", dir)
		}
		p.work, p.gitDir = dir, joinIn(dir, strings.TrimRight(string(to), "\r\n"))
	case isGitDir(dir):
		p.gitDir = dir
	default:
		return mcp.Errorf("%q is not a valid Git repository", dir)
	}
	if p.gitDir, err = p.inside(p.gitDir, "its .git"); err != nil {
		return err
	}
	p.common = p.gitDir
	text, err := readSmall(filepath.Join(p.gitDir, "commondir"))
	if err == nil {
		p.common, err = p.inside(joinIn(p.gitDir, strings.TrimSpace(string(text))), "its commondir")
		if err != nil {
			return err
		}
	}
	if !isGitDir(p.common) {
		return mcp.Errorf("%q is not a valid Git repository", dir)
	}
	return nil
}

// check looks for parts of the repository that lead out of it.
func (p *place) check() error {
	for _, name := range []string{"HEAD", "config", "config.worktree", "index", "objects", "objects/info", "objects/pack", "refs", "packed-refs", "logs", "info"} {
		for _, dir := range []string{p.gitDir, p.common} {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if _, err := os.Lstat(path); err != nil {
				continue
			}
			if _, err := p.inside(path, ".git/"+name); err != nil {
				return err
			}
		}
	}
	text, err := readSmall(filepath.Join(p.common, "objects", "info", "alternates"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if _, err := p.inside(joinIn(filepath.Join(p.common, "objects"), line), "objects/info/alternates"); err != nil {
			return err
		}
	}
	return nil
}

// alternates reports whether the repository takes objects of another one.
func (p *place) alternates() bool {
	text, err := readSmall(filepath.Join(p.common, "objects", "info", "alternates"))
	return err == nil && len(bytes.TrimSpace(text)) > 0
}

// inside resolves path, which is what of the repository, and refuses it if it lies outside.
func (p *place) inside(path, what string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", mcp.Errorf("the repository is refused: %s leads to something that is not there", what)
	}
	if !within(real, p.bound) {
		return "", mcp.Errorf("the repository is refused: %s leads outside of %q; if it belongs there, "+
			"start the server with --repository and a folder that has both", what, p.bound)
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
	f, err := os.Open(path)
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
