package filesystem

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/parley-mcp/parley/app/servers/filesystem/diff"
	"github.com/parley-mcp/parley/mcp"
)

type edit struct {
	OldText string `json:"oldText" desc:"What is replaced; whole lines are found in spite of other space around them."`
	NewText string `json:"newText" desc:"What comes in its place."`
}

// applyEdits makes the edits one after the other and shows what changed. name is the file
// in the diff. Ends of lines that no edit touches stay as they are; what comes in has those
// that most lines of the file have.
func applyEdits(ctx context.Context, data []byte, edits []edit, name string) (changed []byte, shown string, err error) {
	if !utf8.Valid(data) {
		return nil, "", mcp.Errorf("the file is not text in UTF-8, so an edit would damage it")
	}
	old := string(data)
	windows := 2*strings.Count(old, "\r\n") > strings.Count(old, "\n")
	now := old
	for _, e := range edits {
		if ctx.Err() != nil {
			return nil, "", context.Cause(ctx)
		}
		var ok bool
		if now, ok = e.apply(now, windows); !ok {
			return nil, "", mcp.Errorf("Could not find exact match for edit:\n%s", e.OldText)
		}
	}
	text := diff.Unified(name, unixLines(old), unixLines(now))
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return []byte(now), fence + "diff\n" + text + fence + "\n\n", nil
}

func unixLines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// apply makes one edit in a text, whose lines end with "\r\n" or "\n".
func (e edit) apply(text string, windows bool) (string, bool) {
	content := unixLines(text)
	begin, end, next, ok := e.find(content)
	if !ok {
		return "", false
	}
	if windows {
		next = strings.ReplaceAll(next, "\n", "\r\n")
	}
	if len(content) < len(text) {
		begin, end = offset(text, begin), offset(text, end)
	}
	return text[:begin] + next + text[end:], true
}

// offset is where the place of unixLines(text) is in text.
func offset(text string, place int) int {
	at := 0
	for {
		i := strings.Index(text[at:], "\r\n")
		if i < 0 || place <= i {
			return at + place
		}
		at, place = at+i+2, place-i-1
	}
}

// find finds what the edit replaces and what comes in its place: the first place that is
// its old text, else the first lines that are it but for space around them, which keep
// their indentation.
func (e edit) find(content string) (begin, end int, next string, ok bool) {
	old, next := unixLines(e.OldText), unixLines(e.NewText)
	if i := strings.Index(content, old); i >= 0 {
		return i, i + len(old), next, true
	}
	oldLines := strings.Split(old, "\n")
	begin, end, ok = findLines(content, oldLines)
	if !ok {
		return 0, 0, "", false
	}
	first, _, _ := strings.Cut(content[begin:], "\n")
	return begin, end, strings.Join(indented(strings.Split(next, "\n"), oldLines, indent(first)), "\n"), true
}

// findLines finds the first lines of content that differ from those wanted in nothing but
// space around them. It compares each line with about two (Knuth, Morris and Pratt, 1977):
// the time does not grow with the product of both, whatever they are.
func findLines(content string, wanted []string) (begin, end int, ok bool) {
	lines := make([]string, len(wanted))
	for i, line := range wanted {
		lines[i] = strings.TrimFunc(line, isSpace)
	}
	back := make([]int, len(lines)) // how many lines before the end of lines[:i+1] are its beginning, too
	same := 0
	for i := 1; i < len(lines); i++ {
		same = further(lines, back, same, lines[i])
		back[i] = same
	}
	same = 0
	for at := 0; at <= len(content); {
		line, _, _ := strings.Cut(content[at:], "\n")
		end = at + len(line)
		if same = further(lines, back, same, strings.TrimFunc(line, isSpace)); same == len(lines) {
			begin = end
			for range lines {
				begin = strings.LastIndexByte(content[:max(begin, 0)], '\n')
			}
			return begin + 1, end, true
		}
		at = end + 1
	}
	return 0, 0, false
}

// further is how many lines are the last ones after one more, if so many were before it.
func further(lines []string, back []int, same int, line string) int {
	for same > 0 && lines[same] != line {
		same = back[same-1]
	}
	if lines[same] == line {
		same++
	}
	return same
}

// indented gives the new lines the indentation of the place: the first line has it, and
// the others what they have more than the old lines.
func indented(next, old []string, at string) []string {
	out := make([]string, len(next))
	for i, line := range next {
		bare := strings.TrimLeftFunc(line, isSpace)
		was := ""
		if i < len(old) {
			was = indent(old[i])
		}
		is := indent(line)
		switch {
		case i == 0:
			out[i] = at + bare
		case was != "" && is != "":
			out[i] = at + strings.Repeat(" ", max(0, width(is)-width(was))) + bare
		default:
			out[i] = line
		}
	}
	return out
}

// indent is the space at the beginning of a line.
func indent(line string) string {
	return line[:len(line)-len(strings.TrimLeftFunc(line, isSpace))]
}

func width(s string) int { return len(utf16.Encode([]rune(s))) }

// isSpace is what JavaScript takes for space.
func isSpace(r rune) bool {
	return r == '\ufeff' || r != '\u0085' && unicode.IsSpace(r)
}
