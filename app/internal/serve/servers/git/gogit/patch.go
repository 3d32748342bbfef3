package gogit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/parley-mcp/parley/app/internal/serve/servers/linediff"
)

// A patcher writes changes as git diff does.
type patcher struct {
	*Repository

	out     io.Writer
	context int  // lines around each change
	show    bool // as git_show: of the header of a file only its paths
	rules   *conversion
}

// writeAll writes changes, of which some are renames.
func (p *patcher) writeAll(list []*change) error {
	list, err := findRenames(p.ctx, list)
	if err != nil {
		return err
	}
	for _, c := range list {
		if err := p.step("writing a diff"); err != nil {
			return err
		}
		if c.from != nil && c.to != nil && kind(c.from.mode) != kind(c.to.mode) {
			// A file that became a link, say, goes and comes.
			if err := p.write(&change{from: c.from}); err != nil {
				return err
			}
			c = &change{to: c.to}
		}
		if err := p.write(c); err != nil {
			return err
		}
	}
	return nil
}

// kind is what a mode is of: a file, a link or a submodule.
func kind(m filemode.FileMode) filemode.FileMode {
	if m == filemode.Symlink || m == filemode.Submodule {
		return m
	}
	return filemode.Regular
}

// write writes one change.
func (p *patcher) write(c *change) error {
	a, b := c.from, c.to
	if a == nil {
		a = &side{path: b.path}
	}
	if b == nil {
		b = &side{path: a.path}
	}
	if !p.show {
		if _, err := io.WriteString(p.out, p.header(c, a, b)); err != nil {
			return err
		}
	}
	if a.hash == b.hash && !a.hash.IsZero() {
		return p.note(a.path, b.path, "")
	}
	labelA, labelB := sideLabel("a/", c.from), sideLabel("b/", c.to)
	old, err := contentOf(c.from)
	var now []byte
	if err == nil {
		now, err = contentOf(c.to)
	}
	var large *tooLargeError
	switch {
	case errors.As(err, &large):
		return p.note(a.path, b.path, fmt.Sprintf("Files %s and %s are not compared: %v\n", labelA, labelB, large))
	case err != nil:
		return err
	case p.binary(b.path, old, now):
		return p.note(a.path, b.path, fmt.Sprintf("Binary files %s and %s differ\n", labelA, labelB))
	case bytes.Equal(old, now):
		return p.note(a.path, b.path, "")
	}
	head := fmt.Sprintf("--- %s%s\n+++ %s%s\n", labelA, tab(labelA), labelB, tab(labelB))
	if p.show {
		head = fmt.Sprintf("\n--- %s\n+++ %s\n", sideLabel("", c.from), sideLabel("", c.to))
	}
	return p.hunks(head, linediff.Lines(old), linediff.Lines(now))
}

// header is the header of a file: what happened to it beside its contents.
func (p *patcher) header(c *change, a, b *side) string {
	var head strings.Builder
	fmt.Fprintf(&head, "diff --git %s %s\n", QuotePath("a/"+a.path), QuotePath("b/"+b.path))
	switch {
	case c.from == nil:
		fmt.Fprintf(&head, "new file mode %06o\n", uint32(b.mode))
	case c.to == nil:
		fmt.Fprintf(&head, "deleted file mode %06o\n", uint32(a.mode))
	case a.mode != b.mode:
		fmt.Fprintf(&head, "old mode %06o\nnew mode %06o\n", uint32(a.mode), uint32(b.mode))
	}
	if a.path != b.path {
		fmt.Fprintf(&head, "similarity index %d%%\nrename from %s\nrename to %s\n", c.score, QuotePath(a.path), QuotePath(b.path))
	}
	if a.hash != b.hash || c.from == nil || c.to == nil {
		fmt.Fprintf(&head, "index %s..%s", p.shorten(a.hash), p.shorten(b.hash))
		if a.mode == b.mode { // a file that is missing has none
			fmt.Fprintf(&head, " %06o", uint32(a.mode))
		}
		head.WriteByte('\n')
	}
	return head.String()
}

// sideLabel is the path of a side after a prefix, as git writes it.
func sideLabel(prefix string, s *side) string {
	if s == nil {
		return "/dev/null"
	}
	return QuotePath(prefix + s.path)
}

// note writes what there is instead of hunks: for git_show the paths of the file, and then a line.
func (p *patcher) note(a, b, line string) error {
	if p.show {
		line = fmt.Sprintf("\n--- %s\n+++ %s\n", QuotePath(a), QuotePath(b)) + line
	}
	_, err := io.WriteString(p.out, line)
	return err
}

func contentOf(s *side) ([]byte, error) {
	if s == nil {
		return nil, nil
	}
	return s.read()
}

// binary reports whether a file is not to be shown as text.
func (p *patcher) binary(name string, contents ...[]byte) bool {
	if p.rules != nil {
		switch p.rules.attribute(name, "diff") {
		case "unset":
			return true
		case "set":
			return false
		}
	}
	return slices.ContainsFunc(contents, IsBinary)
}

// hunks writes the parts of two texts that differ, after a header.
func (p *patcher) hunks(head string, a, b [][]byte) error {
	d, err := linediff.Compare(p.ctx, a, b)
	if err != nil {
		return err
	}
	out := bytes.NewBufferString(head)
	function, looked := "", 0
	for _, h := range d.Hunks(p.context) {
		if err := p.ended(); err != nil {
			return err
		}
		fmt.Fprintf(out, "@@ -%s +%s @@", span(h.A0, h.A1), span(h.B0, h.B1))
		for i := h.A0 - 1; i >= looked; i-- {
			if f, ok := functionLine(a[i]); ok {
				function = f
				break
			}
		}
		looked = h.A0
		if function != "" {
			out.WriteString(" " + function)
		}
		out.WriteByte('\n')
		d.WriteLines(out, h, a, b)
		if _, err := out.WriteTo(p.out); err != nil {
			return err
		}
	}
	return nil
}

// tab follows a name with a space, so that what reads the patch knows its end.
func tab(label string) string {
	if strings.Contains(label, " ") {
		return "\t"
	}
	return ""
}

// span writes lines start to end, which are counted from 0, as a hunk names them.
func span(start, end int) string {
	switch end - start {
	case 0:
		return fmt.Sprintf("%d,0", start)
	case 1:
		return fmt.Sprint(start + 1)
	}
	return fmt.Sprintf("%d,%d", start+1, end-start)
}

// functionLine is a line that tells where in a file one is: it begins with a letter, '_' or '$'.
func functionLine(line []byte) (string, bool) {
	const longest = 80
	if len(line) == 0 {
		return "", false
	}
	if c := line[0]; c != '_' && c != '$' && (c|0x20 < 'a' || c|0x20 > 'z') {
		return "", false
	}
	line = line[:min(len(line), longest)]
	return string(bytes.TrimRight(line, " \t\n\v\f\r")), true
}
