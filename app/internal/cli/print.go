package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// print writes a result. On a terminal a stranger's control characters are
// escaped; into a pipe or file everything goes as it is.
func (p *program) print(text string) error {
	if p.streams.OutTerminal {
		text = host.Escape(text)
	}
	if _, err := fmt.Fprint(p.streams.Out, text); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// println writes a result that ends its line.
func (p *program) println(text string) error {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return p.print(text)
}

// printJSON writes a value as JSON: laid out on a terminal, else in one line.
func (p *program) printJSON(v any) error {
	raw, err := jsonrpc.JSON(v).AppendJSON(nil)
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return p.printIndented(raw)
}

// printMaskedJSON is printJSON without the secrets of this run.
func (p *program) printMaskedJSON(v any) error {
	raw, err := jsonrpc.JSON(v).AppendJSON(nil)
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return p.printIndented(p.maskedJSON(raw))
}

// printIndented writes JSON: laid out on a terminal, else in one line.
func (p *program) printIndented(raw []byte) error {
	if p.streams.OutTerminal {
		return p.println(host.Indent(raw))
	}
	return p.println(string(raw))
}

// printJSONLines writes lines of JSON as they are, but for what escapeJSON escapes on a terminal.
func (p *program) printJSONLines(lines string) error {
	if p.streams.OutTerminal {
		lines = escapeJSON(lines)
	}
	return p.println(lines)
}

// escapeJSON writes the characters in JSON that host.Escape would escape as JSON escapes, so that
// the values stay the same.
func escapeJSON(text string) string {
	if host.Escape(text) == text {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if c := string(r); host.Escape(c) == c {
			b.WriteString(c)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// note writes a line to standard error.
func (p *program) note(format string, args ...any) {
	_, _ = fmt.Fprintf(p.streams.Err, format+"\n", args...) // closed: nothing is lost
}

// notePart writes to standard error what the person goes on after.
func (p *program) notePart(format string, args ...any) {
	_, _ = fmt.Fprintf(p.streams.Err, format, args...) // closed: nothing is lost
}

// errOf is standard error for what a server writes on its own: escaped at a terminal, as print does.
func (p *program) errOf() io.Writer {
	if p.streams.ErrTerminal {
		return &escaping{w: p.streams.Err, escape: host.Escape}
	}
	return p.streams.Err
}

// jsonOut is standard output for lines of JSON: escaped at a terminal, as printJSONLines does.
func (p *program) jsonOut() io.Writer {
	if p.streams.OutTerminal {
		return &escaping{w: p.streams.Out, escape: escapeJSON}
	}
	return p.streams.Out
}

// An escaping writer escapes control characters of what is written. It has one caller at a time.
type escaping struct {
	w      io.Writer
	escape func(string) string
	part   []byte // the beginning of a letter whose other bytes come with the next Write
}

// Write writes p, but for a letter at its end that is not complete.
func (e *escaping) Write(p []byte) (int, error) {
	text := append(e.part, p...)
	whole := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				whole -= n
			}
			break
		}
	}
	e.part = slices.Clone(text[whole:])
	if _, err := io.WriteString(e.w, e.escape(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// contents is the text of several blocks of content.
func contents(list []mcp.Content) string {
	lines := make([]string, 0, len(list))
	for _, c := range list {
		lines = append(lines, host.ContentText(c))
	}
	return strings.Join(lines, "\n")
}

// A table is lines of a name and what it is.
type table struct{ rows [][2]string }

func (t *table) add(name, about string) {
	about, _, _ = strings.Cut(strings.TrimSpace(about), "\n")
	t.rows = append(t.rows, [2]string{host.EscapeLine(name), host.EscapeLine(about)})
}

// String lays the table out. What is very long pushes only its own line.
func (t *table) String() string {
	const widest = 40
	width := 0
	for _, r := range t.rows {
		if n := len([]rune(r[0])); n <= widest {
			width = max(width, n)
		}
	}
	var b strings.Builder
	for _, r := range t.rows {
		line := r[0]
		if r[1] != "" {
			line = fmt.Sprintf("%-*s  %s", width, r[0], r[1])
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
