package repo

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/mcp"
)

// CleanPaths resolves the paths that a caller wants to stage, relative to the working tree. Those
// that lie outside are refused, also where links lead there.
func (p *Place) CleanPaths(files []string) ([]string, error) {
	if err := p.NeedTree(); err != nil {
		return nil, err
	}
	out := make([]string, 0, len(files))
	for _, name := range files {
		if name == "" || len(name) > MaxName || strings.ContainsRune(name, 0) {
			return nil, mcp.Errorf("Invalid path: %q", name)
		}
		full := JoinIn(p.Work, name)
		rel, err := filepath.Rel(p.Work, full)
		if err != nil || !filepath.IsLocal(rel) {
			return nil, p.outside(name)
		}
		real, err := filepath.EvalSymlinks(full)
		if err == nil && !Within(real, p.Work) {
			return nil, p.outside(name)
		}
		if parent, err := filepath.EvalSymlinks(filepath.Dir(full)); err == nil && rel != "." && !Within(parent, p.Work) {
			return nil, p.outside(name)
		}
		rel = filepath.ToSlash(rel)
		if slices.ContainsFunc(strings.Split(rel, "/"), IsDotGit) {
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
	plain := true
	for i := range len(path) {
		if c := path[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			plain = false
			break
		}
	}
	if plain {
		return path
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		switch c := path[i]; c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\a', '\b', '\t', '\n', '\v', '\f', '\r':
			b.WriteByte('\\')
			b.WriteByte("abtnvfr"[c-'\a'])
		default:
			if c < 0x20 || c >= 0x7f {
				fmt.Fprintf(&b, `\%03o`, c)
			} else {
				b.WriteByte(c)
			}
		}
	}
	b.WriteByte('"')
	return b.String()
}

// UnquotePath reads what QuotePath wrote.
func UnquotePath(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	s = s[1 : len(s)-1]
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if at := strings.IndexByte("abtnvfr", s[i]); at >= 0 {
			b.WriteByte('\a' + byte(at))
		} else if i+2 < len(s) && s[i] >= '0' && s[i] <= '3' {
			b.WriteByte((s[i]-'0')<<6 | (s[i+1]-'0')<<3 | (s[i+2] - '0'))
			i += 2
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// ValidPath reports whether a path is one that the index and trees may have.
func ValidPath(name string) bool {
	return filepath.IsLocal(filepath.FromSlash(name)) && !slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return !ValidName(part) })
}

// ValidName reports whether a name is one that a tree may have: it leads nowhere else when it is written.
func ValidName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00") && !IsDotGit(name)
}

// IsDotGit reports whether some file system takes name for .git.
func IsDotGit(name string) bool {
	plain := strings.Map(func(r rune) rune {
		switch { // characters that HFS+ ignores
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, strings.ToLower(name))
	plain, _, _ = strings.Cut(plain, ":")
	plain = strings.TrimRight(plain, " .")
	return plain == ".git" || plain == "git~1"
}
