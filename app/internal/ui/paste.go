package ui

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/parley-mcp/parley/host"
)

// maxPastedPath bounds a pasted text that is looked at as a path, in bytes.
const maxPastedPath = 4 << 10

// PastedFile finds the file whose path a pasted text is, as terminals write it when a file is
// dragged there: absolute, in quotes, with backslashes, or as a file URL. It looks at the
// file system. size is that of the file in bytes.
func PastedFile(text string) (path string, size int64, ok bool) {
	for _, path := range pastedPaths(text) {
		full := path
		if rest, home := strings.CutPrefix(path, "~/"); home {
			dir, err := os.UserHomeDir()
			if err != nil {
				continue
			}
			full = filepath.Join(dir, rest)
		}
		if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() {
			return path, info.Size(), true
		}
	}
	return "", 0, false
}

// IsPastedPath reports whether a pasted text could be the path of a file.
func IsPastedPath(text string) bool { return len(pastedPaths(text)) > 0 }

// pastedPaths are the paths that a text may stand for.
func pastedPaths(text string) []string {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > maxPastedPath || host.EscapeLine(text) != text {
		return nil
	}
	candidates := []string{text}
	if n := len(text); n > 1 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
		candidates = []string{text[1 : n-1]}
	} else if strings.HasPrefix(text, "file://") {
		u, err := url.Parse(text)
		if err != nil || u.Host != "" && u.Host != "localhost" {
			return nil
		}
		candidates = []string{filepath.FromSlash(u.Path)}
		if len(u.Path) > 2 && u.Path[2] == ':' { // file:///C:/…
			candidates = append(candidates, filepath.FromSlash(u.Path[1:]))
		}
	} else if plain := unescaped(text); plain != text {
		candidates = append(candidates, plain)
	}
	var paths []string
	for _, c := range candidates {
		// A path of another machine would be asked for over the network.
		remote := strings.HasPrefix(c, `\\`) || strings.HasPrefix(c, "//")
		if (filepath.IsAbs(c) || strings.HasPrefix(c, "~/")) && !remote && host.EscapeLine(c) == c {
			paths = append(paths, c)
		}
	}
	return paths
}

// unescaped takes away the backslashes with which shells write blanks and signs.
func unescaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
