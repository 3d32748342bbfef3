package gogit

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// An ignorePattern is a line of a .gitignore file. It matches a path itself, and not what is beneath it,
// which a walk reaches only if the folder is not ignored.
type ignorePattern struct {
	domain  int      // how many folders the file is below the topmost one
	parts   []string // of the path, for path.Match; "**" is any number of them
	include bool     // it began with '!'
	folders bool     // it ended with '/'
}

// excludes are the patterns of files to ignore that are not in the working tree.
func (r *base) excludes() ([]ignorePattern, error) {
	var out []ignorePattern
	for _, name := range []string{ignoreFile(r.own), filepath.Join(r.place.Common, "info", "exclude")} {
		text, err := readSmall(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		out = append(out, ignorePatterns(text, 0)...)
	}
	return out, nil
}

// ignoredIn adds the patterns of the .gitignore file of a folder of the working tree to those of the folders
// above it.
func (r *base) ignoredIn(dir string, patterns []ignorePattern) ([]ignorePattern, error) {
	file := path.Join(dir, ".gitignore")
	text, err := readSettings(r.tree, file)
	if errors.Is(err, fs.ErrNotExist) {
		return patterns, nil
	}
	return append(slices.Clip(patterns), ignorePatterns(text, strings.Count(file, "/"))...), err
}

// ignorePatterns reads a file of patterns that is so many folders below the topmost one.
func ignorePatterns(text []byte, domain int) []ignorePattern {
	var out []ignorePattern
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\ufeff"))) {
		s := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		for strings.HasSuffix(s, " ") && !strings.HasSuffix(s, `\ `) {
			s = s[:len(s)-1]
		}
		if s == "" || s[0] == '#' {
			continue
		}
		p := ignorePattern{domain: domain}
		s, p.include = strings.CutPrefix(s, "!")
		s, p.folders = strings.CutSuffix(classes(s), "/")
		p.parts = strings.Split(strings.TrimPrefix(s, "/"), "/")
		if !strings.Contains(s, "/") {
			p.parts = []string{"**", s}
		}
		out = append(out, p)
	}
	return out
}

// match reports whether names, the parts of a path, match the parts of a pattern.
func (p *ignorePattern) match(names []string, dir bool) bool {
	if p.folders && !dir || len(names) <= p.domain {
		return false
	}
	names = names[p.domain:]
	at, n := 0, 0
	star, from := -1, 0 // the last "**", and the first name after those that it stands for
	for n < len(names) {
		switch {
		case at < len(p.parts) && p.parts[at] == "**":
			star, from = at, n
			at++
		case at < len(p.parts) && matchName(p.parts[at], names[n]):
			at++
			n++
		case star >= 0:
			from++
			at, n = star+1, from
		default:
			return false
		}
	}
	return at == len(p.parts)
}

func matchName(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// ignores reports whether the last pattern that matches a path says to ignore it.
func (r *base) ignores(patterns []ignorePattern, path []string, dir bool) (bool, error) {
	for i, p := range slices.Backward(patterns) {
		if i%64 == 0 { // there may be many
			if err := r.ended(); err != nil {
				return false, err
			}
		}
		if p.match(path, dir) {
			return !p.include, nil
		}
	}
	return false, nil
}
