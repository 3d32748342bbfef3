package git

import (
	"bytes"
	"fmt"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-mcp/parley/mcp"
)

// linesOf yields the lines of a text with their line feeds.
func linesOf(text []byte) iter.Seq[[]byte] {
	return bytes.Lines(text)
}

// maxName is the most bytes of a revision, a branch or a path.
const maxName = 4096

// checkText refuses what no name may have: it is what the argument called what holds.
func checkText(what, text string) error {
	switch {
	case text == "":
		return mcp.Errorf("%s is empty", what)
	case len(text) > maxName:
		return mcp.Errorf("%s is longer than %d bytes", what, maxName)
	case strings.HasPrefix(text, "-"):
		return mcp.Errorf("invalid %s %q: it cannot start with '-'", what, text)
	case !utf8.ValidString(text):
		return mcp.Errorf("invalid %s %q: it is not UTF-8", what, text)
	case strings.ContainsFunc(text, unicode.IsControl):
		return mcp.Errorf("invalid %s %q: it has a control character, such as a line break or NUL", what, text)
	}
	return nil
}

// checkRevision refuses what is no revision of one object, before anything looks it up.
func checkRevision(what, rev string) error {
	if err := checkText(what, rev); err != nil {
		return err
	}
	switch {
	case strings.Contains(rev, "::"):
		return mcp.Errorf("invalid %s %q: remote addresses are not fetched", what, rev)
	case strings.Contains(rev, ".."):
		return mcp.Errorf("invalid %s %q: ranges are not supported; give one branch, tag or commit", what, rev)
	case strings.Contains(rev, "@{"):
		return mcp.Errorf("invalid %s %q: the reflog is not looked up; give a branch, tag or commit", what, rev)
	case strings.Contains(rev, ":"):
		return mcp.Errorf("invalid %s %q: give a branch, tag or commit, without ':'", what, rev)
	case strings.Contains(strings.NewReplacer("^{commit}", "", "^{}", "").Replace(rev), "{"):
		return mcp.Errorf("invalid %s %q: of what can stand after '^' in braces, only 'commit' and nothing are understood", what, rev)
	case strings.ContainsAny(rev, "?*[\\ "):
		return mcp.Errorf("invalid %s %q: it has a character that no revision has", what, rev)
	}
	return nil
}

// checkBranchName holds a new branch to the rules of git-check-ref-format.
func checkBranchName(name string) error {
	if err := checkText("branch name", name); err != nil {
		return err
	}
	bad := func(why string) error { return mcp.Errorf("invalid branch name %q: %s", name, why) }
	switch {
	case name == "HEAD" || name == "@":
		return bad("it means the current commit")
	case strings.ContainsAny(name, " ~^:?*[\\\x7f"):
		return bad(`it must have no space and none of ~ ^ : ? * [ \`)
	case strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.Contains(name, "//"):
		return bad("it must not have '..', '@{' or '//'")
	case strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || strings.HasSuffix(name, "."):
		return bad("it must not start or end with '/', or end with '.'")
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return bad("no part of it may start with '.' or end with '.lock'")
		}
	}
	return nil
}

// quotePath writes a path as git does: in quotes if it has bytes that are not plain.
func quotePath(path string) string {
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

// unquotePath reads what quotePath wrote.
func unquotePath(s string) string {
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

// pythonString writes a text as Python shows it, which is how the original server shows messages.
func pythonString(s string) string {
	quote := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range s {
		switch {
		case r == quote || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteRune(quote)
	return b.String()
}
