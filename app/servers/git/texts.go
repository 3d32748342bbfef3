package git

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/parley-mcp/parley/app/servers/git/repo"
)

// commitText is a commit as git_log and git_show write it.
func commitText(c *repo.Commit) string {
	return fmt.Sprintf("Commit: '%s'\nAuthor: <git.Actor \"%s <%s>\">\nDate: %s\nMessage: %s\n",
		c.Hash, valid(c.Author.Name), valid(c.Author.Email), c.Author.When.Format("2006-01-02 15:04:05-07:00"), pythonString(valid(c.Message)))
}

// datedText is a commit as git_log writes it when it is asked for a span of time.
func datedText(c *repo.Commit) string {
	return fmt.Sprintf("Commit: %s\nAuthor: %s\nDate: %s\nMessage: %s\n",
		c.Hash, valid(c.Author.Name), c.Author.When.Format("Mon Jan 2 15:04:05 2006 -0700"), valid(repo.Subject(c.Message)))
}

// valid is a text as it can be sent: what is not UTF-8 is replaced.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// A showWriter turns what git diff writes into what git_show does: for each file its two paths and
// the hunks.
type showWriter struct {
	out  io.Writer
	line []byte // the beginning of a line that is not yet complete
	head bool   // in the header of a file
	a, b string // the paths that it names
}

func (w *showWriter) Write(text []byte) (int, error) {
	n := len(text)
	for {
		i := strings.IndexByte(string(text), '\n')
		if i < 0 {
			w.line = append(w.line, text...)
			return n, nil
		}
		w.line = append(w.line, text[:i+1]...)
		if err := w.take(string(w.line)); err != nil {
			return 0, err
		}
		w.line, text = w.line[:0], text[i+1:]
	}
}

// end writes what is left.
func (w *showWriter) end() error {
	if len(w.line) > 0 {
		if err := w.take(string(w.line)); err != nil {
			return err
		}
		w.line = nil
	}
	return w.endHead()
}

// headLines are what the lines of a header begin with.
var headLines = []string{
	"old mode ", "new mode ", "similarity index ", "rename from ", "rename to ", "new file mode ",
	"deleted file mode ", "copy from ", "copy to ", "index ", "--- ", "+++ ",
}

func (w *showWriter) take(line string) error {
	if names, ok := strings.CutPrefix(line, "diff --git "); ok {
		if err := w.endHead(); err != nil {
			return err
		}
		w.head = true
		w.a, w.b = splitNames(strings.TrimSuffix(names, "\n"))
		return nil
	}
	if w.head {
		for _, prefix := range headLines {
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				w.header(prefix, strings.TrimSuffix(rest, "\n"))
				return nil
			}
		}
		if err := w.endHead(); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w.out, line)
	return err
}

// header takes a path out of a line of the header. The original calls the path of a file that is
// not there None.
func (w *showWriter) header(prefix, rest string) {
	path := func(letter string) string {
		rest = repo.UnquotePath(strings.TrimSuffix(rest, "\t"))
		if rest == "/dev/null" {
			return "None"
		}
		return strings.TrimPrefix(rest, letter)
	}
	switch prefix {
	case "--- ":
		w.a = path("a/")
	case "+++ ":
		w.b = path("b/")
	case "rename from ":
		w.a = repo.UnquotePath(rest)
	case "rename to ":
		w.b = repo.UnquotePath(rest)
	}
}

func (w *showWriter) endHead() error {
	if !w.head {
		return nil
	}
	w.head = false
	_, err := fmt.Fprintf(w.out, "\n--- %s\n+++ %s\n", w.a, w.b)
	return err
}

// splitNames takes the two names of a header apart. They are the same, or the header has others.
func splitNames(s string) (a, b string) {
	half := len(s) / 2
	if len(s)%2 == 1 && s[half] == ' ' {
		return strings.TrimPrefix(repo.UnquotePath(s[:half]), "a/"), strings.TrimPrefix(repo.UnquotePath(s[half+1:]), "b/")
	}
	a, b, _ = strings.Cut(s, " b/")
	return strings.TrimPrefix(repo.UnquotePath(a), "a/"), b
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
