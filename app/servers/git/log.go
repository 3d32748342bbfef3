package git

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/parley-mcp/parley/mcp"
)

// A logQuery says which commits are listed: at most so many, -1 being all, and between two times
// as texts, "" being any.
type logQuery struct {
	most         int
	since, until string
	now          time.Time
}

// A branchQuery says which branches are listed.
type branchQuery struct {
	kind                  string // local, remote, all
	contains, notContains string // commits, or ""
}

// dated reports whether commits of a span of time are asked for.
func (q *logQuery) dated() bool { return q.since != "" || q.until != "" }

func (q *logQuery) times() (since, until time.Time, err error) {
	if q.since != "" {
		from, _, ok := parseTime(q.since, q.now)
		if !ok {
			return since, until, badTime("start_timestamp", q.since)
		}
		since = from
	}
	if q.until != "" {
		_, to, ok := parseTime(q.until, q.now)
		if !ok {
			return since, until, badTime("end_timestamp", q.until)
		}
		until = to
	}
	return since, until, nil
}

func badTime(name, value string) error {
	return mcp.Errorf("%s %q is not understood: give a date (2024-01-15), a time (2024-01-15T14:30:25) or how long ago (2 weeks ago); "+
		"other ways to write it need git itself, which the server uses when it is started with --git", name, value)
}

// commitText is a commit as git_log and git_show write it.
func commitText(c *object.Commit) string {
	return fmt.Sprintf("Commit: '%s'\nAuthor: <git.Actor \"%s <%s>\">\nDate: %s\nMessage: %s\n",
		c.Hash, valid(c.Author.Name), valid(c.Author.Email), c.Author.When.Format("2006-01-02 15:04:05-07:00"), pythonString(valid(c.Message)))
}

// datedText is a commit as git_log writes it when it is asked for a span of time.
func datedText(c *object.Commit) string {
	return fmt.Sprintf("Commit: %s\nAuthor: %s\nDate: %s\nMessage: %s\n",
		c.Hash, valid(c.Author.Name), c.Author.When.Format("Mon Jan 2 15:04:05 2006 -0700"), valid(subject(c.Message)))
}

// subject is the first paragraph of a message, on one line.
func subject(message string) string {
	var words []string
	for line := range strings.Lines(strings.TrimLeft(message, "\n")) {
		line = strings.TrimRight(line, " \t\r\n\v\f")
		if line == "" {
			break
		}
		words = append(words, line)
	}
	return strings.Join(words, " ")
}

// valid is a text as it can be sent: what is not UTF-8 is replaced.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// A showWriter turns what git diff writes into what git_show does: for each file its two paths and
// the hunks.
type showWriter struct {
	out   io.Writer
	start string // what comes before all of it
	line  []byte // the beginning of a line that is not yet complete
	head  bool   // in the header of a file
	a, b  string // the paths that it names
}

func (w *showWriter) Write(text []byte) (int, error) {
	if err := w.begin(); err != nil {
		return 0, err
	}
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

func (w *showWriter) begin() error {
	start := w.start
	w.start = ""
	_, err := io.WriteString(w.out, start)
	return err
}

// end writes what is left.
func (w *showWriter) end() error {
	if err := w.begin(); err != nil {
		return err
	}
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
		rest = unquotePath(strings.TrimSuffix(rest, "\t"))
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
		w.a = unquotePath(rest)
	case "rename to ":
		w.b = unquotePath(rest)
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
		return strings.TrimPrefix(unquotePath(s[:half]), "a/"), strings.TrimPrefix(unquotePath(s[half+1:]), "b/")
	}
	a, b, _ = strings.Cut(s, " b/")
	return strings.TrimPrefix(unquotePath(a), "a/"), b
}
