package filesystem

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/mcp"
)

// maxQuoted is the most bytes of a text of the caller or of a line that an error repeats.
const maxQuoted = 400

// notFound is the error about an edit whose old text is nowhere: it shows the lines that are most
// like it, and how they differ.
func (e edit) notFound(ctx context.Context, content string, old []string) error {
	steps := servers.NewSteps(ctx)
	lines, err := splitLines(steps, content)
	if err != nil {
		return err
	}
	at, err := nearest(ctx, lines, old)
	if err != nil {
		return err
	}
	hint := "No line of the file is like it: read the file again."
	if at >= 0 {
		if hint, err = compare(steps, lines, old, at); err != nil {
			return err
		}
	}
	return mcp.Errorf("Could not find exact match for edit:\n%s\n%s", cut(e.OldText, 10*maxQuoted), hint)
}

// nearest returns the line at which most lines are those of old but for the differences that are
// known, or -1. If no line is, it is the one that has the most in common with the first line of old.
func nearest(ctx context.Context, lines, old []string) (int, error) {
	of, err := places(ctx, old)
	if err != nil {
		return 0, err
	}
	first, wanted := 0, ""
	for i, line := range old {
		if wanted = likeness(line); wanted != "" {
			first = i
			break
		}
	}
	votes := make(map[int]int)
	best, like, most := -1, -1, len(wanted)/2
	steps := servers.NewSteps(ctx)
	for i, line := range lines {
		if err := steps.Add(lineCost(line)); err != nil {
			return 0, err
		}
		key := likeness(line)
		if j, found := of[key]; found && i >= j {
			if votes[i-j]++; best < 0 || votes[i-j] > votes[best] {
				best = i - j
			}
		}
		if n := common(key, wanted); n > most {
			like, most = max(0, i-first), n
		}
	}
	if best < 0 {
		best = like
	}
	return best, nil
}

// maxLikeness is the most bytes of a line that are compared to find the nearest one.
const maxLikeness = 4 << 10

// likeness returns the same for lines whose beginnings differ only in the known ways.
func likeness(line string) string { return alike(line[:min(len(line), maxLikeness)]) }

// lineCost is the cost of the likeness of a line, which reads and writes it several times.
func lineCost(line string) int { return 16 * min(len(line), maxLikeness) }

// places returns the first of the lines that is like each key.
func places(ctx context.Context, lines []string) (map[string]int, error) {
	of := make(map[string]int, len(lines))
	steps := servers.NewSteps(ctx)
	for i, line := range lines {
		if err := steps.Add(lineCost(line)); err != nil {
			return nil, err
		}
		key := likeness(line)
		if _, known := of[key]; !known && key != "" {
			of[key] = i
		}
	}
	return of, nil
}

// common is how many bytes two lines have in common at their beginnings and ends.
func common(a, b string) int {
	n := min(len(a), len(b))
	head := 0
	for head < n && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < n-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head + tail
}

// compare shows the lines of a file from at on, and the first one that differs from old by more than
// space around it.
func compare(steps *servers.Steps, lines, old []string, at int) (string, error) {
	var b strings.Builder
	last := min(at+len(old), len(lines))
	fmt.Fprintf(&b, "The nearest lines are %d to %d:\n", at+1, last)
	const few = 5
	for i := at; i < min(last, at+few); i++ {
		fmt.Fprintf(&b, "%d: %s\n", i+1, cut(lines[i], maxQuoted))
	}
	if last > at+few {
		b.WriteString("...\n")
	}
	for i, want := range old {
		if err := steps.Add(2 * len(want)); err != nil {
			return "", err
		}
		if at+i >= len(lines) {
			fmt.Fprintf(&b, "The file ends there, and oldText has %d more lines.", len(old)-i)
			break
		}
		if is := lines[at+i]; strings.TrimSpace(is) != strings.TrimSpace(want) {
			b.WriteString(difference(at+i+1, is, want))
			break
		}
	}
	return b.String(), nil
}

// difference tells how a line of a file differs from one of oldText. How lines differ that are longer than
// maxLikeness is not looked for: it shows where.
func difference(number int, is, want string) string {
	if len(is) <= maxLikeness && len(want) <= maxLikeness {
		ascii := plainName(is) == plainName(want)
		return fmt.Sprintf("Line %d differs%s: the file has %s, and oldText has %s.", number, reason(is, want), quote(is, ascii), quote(want, ascii))
	}
	is, want = strings.TrimSpace(is), strings.TrimSpace(want)
	at := 0
	for at < min(len(is), len(want)) && is[at] == want[at] {
		at++
	}
	for at > 0 && at < len(is) && !utf8.RuneStart(is[at]) {
		at--
	}
	return fmt.Sprintf("Line %d differs after %d bytes (indentation is not counted): the file has %s there, and oldText has %s.",
		number, at, quote(is[at:], true), quote(want[at:], true))
}

// differences are the ways in which two lines can differ and look the same, and the functions that
// take them away.
var differences = []struct {
	name   string
	ascii  bool // there are some within ASCII
	remove func(string) string
}{
	{"tabs and spaces", true, strings.NewReplacer("\t", " ").Replace},
	{"white space", true, func(s string) string { return strings.Join(words(s), " ") }},
	{"white space", true, func(s string) string { return strings.Join(words(s), "") }},
	{"a carriage return", true, strings.NewReplacer("\r", "").Replace},
	{"the Unicode form of letters, or the kind of spaces", false, plainName},
	{"characters that look alike, such as quotes and dashes", false, lookalikes},
	{"characters that are not seen", false, unseen.Replace},
	{"upper and lower case", true, strings.ToLower},
}

func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\t' })
}

var unseen = strings.NewReplacer("\u200b", "", "\u200c", "", "\u200d", "", "\u2060", "", "\ufeff", "", "\u00ad", "")

var alikes = strings.NewReplacer("\u2018", "'", "\u2019", "'", "\u201c", `"`, "\u201d", `"`, "\u2010", "-", "\u2011", "-", "\u2013", "-", "\u2014", "-", "\u2212", "-", "\u2026", "...")

func lookalikes(s string) string { return alikes.Replace(norm.NFKC.String(s)) }

// alike returns the same for lines that differ only in the known ways.
func alike(s string) string {
	ascii := !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
	for _, d := range differences {
		if d.ascii || !ascii {
			s = d.remove(s)
		}
	}
	return strings.Join(words(s), "") // some spaces are blanks now
}

// reason says in which of the known ways two lines differ, if these are all.
func reason(a, b string) string {
	a, b = strings.TrimSpace(a), strings.TrimSpace(b)
	for _, d := range differences {
		if d.remove(a) == d.remove(b) {
			return " only in " + d.name
		}
	}
	if alike(a) == alike(b) {
		return " only in white space, letter case and the form of characters"
	}
	return ""
}

// quote shows a line with its characters that are not seen, and all beyond ASCII if ascii is true.
func quote(line string, ascii bool) string {
	if ascii {
		return fmt.Sprintf("%+q", cut(line, maxQuoted))
	}
	return fmt.Sprintf("%q", cut(line, maxQuoted))
}

// cut returns the beginning of a text that is longer than most bytes.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
