package filesystem

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/app/internal/serve/servers/linediff"
	"github.com/parley-mcp/parley/mcp"
)

// maxShown is the most places or names that an error lists.
const maxShown = 10

type edit struct {
	OldText string `json:"oldText" desc:"The text to replace, which must occur once; whole lines are found in spite of other space around them."`
	NewText string `json:"newText" desc:"The text to put there."`
}

// applyEdits makes the edits one after the other and shows what changed. name is the file
// in the diff. Lines keep their ends, "\n" or "\r\n". Indentation does not make the text longer than most
// bytes.
func applyEdits(ctx context.Context, data []byte, edits []edit, name string, most int64) (changed []byte, shown string, err error) {
	if !utf8.Valid(data) {
		return nil, "", mcp.Errorf("the file is not text in UTF-8, so an edit would damage it; nothing was changed")
	}
	old := string(data)
	now := old
	for i, e := range edits {
		if err := servers.Ended(ctx); err != nil {
			return nil, "", err
		}
		now, err = e.apply(ctx, now, most)
		if ctx.Err() != nil {
			return nil, "", context.Cause(ctx)
		}
		if err != nil && len(edits) > 1 {
			err = mcp.Errorf("edit %d of %d: %w (lines are counted after the edits before it)", i+1, len(edits), err)
		}
		if err != nil {
			return nil, "", mcp.Errorf("%w\nNothing was changed.", err)
		}
	}
	text, err := unified(ctx, name, old, now)
	if err != nil {
		return nil, "", err
	}
	fence := fence(text)
	return []byte(now), fence + "diff\n" + text + fence + "\n\n", nil
}

// fence returns backticks that enclose a text: three, or one more than it has in a row.
func fence(text string) string {
	longest, run := 2, 0
	for i := range len(text) {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return strings.Repeat("`", longest+1)
}

// unixLines returns a text whose lines end with "\n".
func unixLines(steps *servers.Steps, s string) (string, error) {
	if !strings.Contains(s, "\r\n") {
		return s, steps.Add(len(s))
	}
	var out strings.Builder
	out.Grow(len(s))
	for {
		line, rest, more := strings.Cut(s, "\r\n")
		out.WriteString(line)
		if !more {
			return out.String(), nil
		}
		out.WriteByte('\n')
		if err := steps.Add(len(line)); err != nil {
			return "", err
		}
		s = rest
	}
}

// unified returns the unified diff of two texts, with name in its head for both.
func unified(ctx context.Context, name, old, now string) (string, error) {
	steps := servers.NewSteps(ctx)
	old, err := unixLines(steps, old)
	if err != nil {
		return "", err
	}
	if now, err = unixLines(steps, now); err != nil {
		return "", err
	}
	a := linediff.Lines([]byte(old))
	if err := servers.Ended(ctx); err != nil {
		return "", err
	}
	b := linediff.Lines([]byte(now))
	d, err := linediff.Compare(ctx, a, b)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "Index: %s\n%s\n--- %s\toriginal\n+++ %s\tmodified\n", name, strings.Repeat("=", 67), name, name)
	const around = 4
	for _, h := range d.Hunks(around) {
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", span(h.A0, h.A1), span(h.B0, h.B1))
		d.WriteLines(&out, h, a, b)
	}
	return out.String(), nil
}

// span returns lines as the head of a hunk has them: the first one, which is the one before if there
// are none, and how many.
func span(from, to int) string {
	count := to - from
	if count > 0 {
		from++
	}
	return fmt.Sprintf("%d,%d", from, count)
}

// apply makes one edit in a text, whose lines end with "\r\n" or "\n".
func (e edit) apply(ctx context.Context, text string, most int64) (string, error) {
	if e.OldText == "" {
		return "", mcp.Errorf("oldText is empty: give the text to replace. To insert text, give the lines beside the place as oldText, and the same lines with the new ones as newText; to fill an empty file use write_file")
	}
	steps := servers.NewSteps(ctx)
	content, err := unixLines(steps, text)
	if err != nil {
		return "", err
	}
	begin, end, next, err := e.find(ctx, content, most)
	if err != nil {
		return "", err
	}
	if len(content) < len(text) {
		if begin, err = offset(steps, text, begin); err != nil {
			return "", err
		}
		if end, err = offset(steps, text, end); err != nil {
			return "", err
		}
		next = withEnds(next, text, begin, end)
	}
	return text[:begin] + next + text[end:], nil
}

// offset is where the place of unixLines(text) is in text.
func offset(steps *servers.Steps, text string, place int) (int, error) {
	at := 0
	for {
		i := strings.Index(text[at:], "\r\n")
		if i < 0 || place <= i {
			return at + place, nil
		}
		if err := steps.Add(i); err != nil {
			return 0, err
		}
		at, place = at+i+2, place-i-1
	}
}

// withEnds gives lines that replace text[begin:end] their ends: that of the line that each of them
// replaces, or of the last one before it, else of the line that they come into.
func withEnds(next, text string, begin, end int) string {
	lineEnd := func(i int) string { // of the line feed at i
		if i > 0 && text[i-1] == '\r' {
			return "\r\n"
		}
		return "\n"
	}
	eol := "\n"
	if i := strings.IndexByte(text[begin:], '\n'); i >= 0 {
		eol = lineEnd(begin + i)
	} else if i := strings.LastIndexByte(text[:begin], '\n'); i >= 0 {
		eol = lineEnd(i)
	}
	var out strings.Builder
	at, more := begin, true
	for line := range strings.Lines(next) {
		bare, ended := strings.CutSuffix(line, "\n")
		out.WriteString(bare)
		if !ended {
			break
		}
		if more {
			i := strings.IndexByte(text[at:end], '\n')
			if more = i >= 0; more {
				eol, at = lineEnd(at+i), at+i+1
			}
		}
		out.WriteString(eol)
	}
	return out.String()
}

// find finds what the edit replaces and what comes in its place: the one place that is its old text,
// else the one place whose lines are it but for space around them, which keep their indentation.
func (e edit) find(ctx context.Context, content string, most int64) (begin, end int, next string, err error) {
	steps := servers.NewSteps(ctx)
	old, err := unixLines(steps, e.OldText)
	if err != nil {
		return 0, 0, "", err
	}
	if next, err = unixLines(steps, e.NewText); err != nil {
		return 0, 0, "", err
	}
	var places []int
	for at := 0; len(places) <= maxShown; {
		i := strings.Index(content[at:], old)
		if i < 0 {
			break
		}
		places, at = append(places, at+i), at+i+1
	}
	if len(places) == 0 {
		return e.findLines(ctx, content, old, next, most)
	}
	if len(places) > 1 {
		return 0, 0, "", ambiguous(content, places)
	}
	return places[0], places[0] + len(old), next, nil
}

// ambiguous is the error about a text that occurs at several places.
func ambiguous(content string, places []int) error {
	var lines []string
	for _, at := range places[:min(len(places), maxShown)] {
		lines = append(lines, fmt.Sprint(lineOf(content, at)))
	}
	times := fmt.Sprint(len(places))
	if len(places) > maxShown {
		times, lines = fmt.Sprint("more than ", maxShown), append(lines, "...")
	}
	return mcp.Errorf("oldText occurs %s times, in lines %s; add lines before or after it so that it names one place", times, strings.Join(lines, ", "))
}

// lineOf is the number of the line that a place is in.
func lineOf(content string, at int) int { return 1 + strings.Count(content[:at], "\n") }

// findLines finds the one place whose lines differ from those of old in nothing but space around them.
func (e edit) findLines(ctx context.Context, content, old, next string, most int64) (begin, end int, indentedNext string, err error) {
	steps := servers.NewSteps(ctx)
	oldLines, err := splitLines(steps, old)
	if err != nil {
		return 0, 0, "", err
	}
	nextLines, err := splitLines(steps, next)
	if err != nil {
		return 0, 0, "", err
	}
	places, err := findLines(ctx, content, oldLines)
	switch {
	case err != nil:
		return 0, 0, "", err
	case len(places) == 0:
		return 0, 0, "", e.notFound(ctx, content, oldLines)
	case len(places) > 1:
		return 0, 0, "", ambiguous(content, places)
	}
	begin = places[0]
	end = begin
	here := make([]string, 0, len(oldLines))
	for range oldLines {
		line, _, _ := strings.Cut(content[end:], "\n")
		here = append(here, line)
		end += len(line) + 1
	}
	end-- // the last line keeps its end
	nextLines, err = newIndent(here, oldLines, content).lines(ctx, nextLines, int64(len(content)-(end-begin)), most)
	if err != nil {
		return 0, 0, "", err
	}
	next = strings.Join(nextLines, "\n")
	atEnd := end == len(content) && strings.HasSuffix(content, "\n") // the last one is what is after the last line end
	switch oldEnds, nextEnds := strings.HasSuffix(old, "\n"), strings.HasSuffix(e.NewText, "\n"); {
	case oldEnds && nextEnds && atEnd && next != "" && !strings.HasSuffix(next, "\n"):
		next += "\n"
	case oldEnds && !nextEnds && end < len(content):
		end++
	case !oldEnds && nextEnds:
		next += "\n"
	}
	return begin, end, next, nil
}

// splitLines splits a text into lines. A line end at its end begins none.
func splitLines(steps *servers.Steps, s string) ([]string, error) {
	s = strings.TrimSuffix(s, "\n")
	lines := make([]string, 0, 1+strings.Count(s, "\n"))
	for more := true; more; {
		var line string
		line, s, more = strings.Cut(s, "\n")
		if err := steps.Add(len(line)); err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// findLines finds the first lines of content that differ from those wanted in nothing but space
// around them, and more such places, up to one more than an error lists. It compares each line with
// about two (Knuth, Morris and Pratt, 1977): the time does not grow with the product of both,
// whatever they are.
func findLines(ctx context.Context, content string, wanted []string) (places []int, err error) {
	steps := servers.NewSteps(ctx)
	lines := make([]string, len(wanted))
	for i, line := range wanted {
		if err := steps.Add(len(line)); err != nil {
			return nil, err
		}
		lines[i] = strings.TrimFunc(line, unicode.IsSpace)
	}
	back := make([]int, len(lines)) // how many lines before the end of lines[:i+1] are its beginning, too
	same := 0
	for i := 1; i < len(lines); i++ {
		if err := steps.Add(len(lines[i])); err != nil {
			return nil, err
		}
		same = further(lines, back, same, lines[i])
		back[i] = same
	}
	same = 0
	begins := make([]int, 0, 1+strings.Count(content, "\n")) // of the lines so far
	for at := 0; at <= len(content) && len(places) <= maxShown; {
		begins = append(begins, at)
		line, _, _ := strings.Cut(content[at:], "\n")
		if err := steps.Add(2 * len(line)); err != nil {
			return nil, err
		}
		if same = further(lines, back, same, strings.TrimFunc(line, unicode.IsSpace)); same == len(lines) {
			places = append(places, begins[len(begins)-same])
			same = back[same-1]
		}
		at += len(line) + 1
	}
	return places, nil
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
