package filesystem

import (
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
// in the diff.
func applyEdits(data []byte, edits []edit, name string) (changed []byte, shown string, err error) {
	if !utf8.Valid(data) {
		return nil, "", mcp.Errorf("the file is not text in UTF-8, so an edit would damage it")
	}
	windows, lines := strings.Count(string(data), "\r\n"), strings.Count(string(data), "\n")
	old := unixLines(string(data))
	now := old
	for _, e := range edits {
		var ok bool
		if now, ok = e.apply(now); !ok {
			return nil, "", mcp.Errorf("Could not find exact match for edit:\n%s", e.OldText)
		}
	}
	text := diff.Unified(name, old, now)
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	shown = fence + "diff\n" + text + fence + "\n\n"
	if windows > 0 && windows == lines { // the file keeps its ends of lines
		now = strings.ReplaceAll(now, "\n", "\r\n")
	}
	return []byte(now), shown, nil
}

func unixLines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// apply makes one edit: at the first place that is its old text, else at the first lines
// that are it but for space around them, which keep their indentation.
func (e edit) apply(content string) (string, bool) {
	old, next := unixLines(e.OldText), unixLines(e.NewText)
	if i := strings.Index(content, old); i >= 0 {
		return content[:i] + next + content[i+len(old):], true
	}
	oldLines, lines := strings.Split(old, "\n"), strings.Split(content, "\n")
	trimmed := make([]string, len(oldLines))
	for i, line := range oldLines {
		trimmed[i] = strings.TrimFunc(line, isSpace)
	}
	for i := 0; i+len(oldLines) <= len(lines); i++ {
		if !sameLines(lines[i:i+len(oldLines)], trimmed) {
			continue
		}
		all := append([]string{}, lines[:i]...)
		all = append(all, indented(strings.Split(next, "\n"), oldLines, indent(lines[i]))...)
		return strings.Join(append(all, lines[i+len(oldLines):]...), "\n"), true
	}
	return "", false
}

func sameLines(lines, trimmed []string) bool {
	for i, line := range lines {
		if strings.TrimFunc(line, isSpace) != trimmed[i] {
			return false
		}
	}
	return true
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
