package filesystem

import (
	"slices"
	"strings"
	"unicode"
)

// An indentation is how the lines of a place in a file are indented, beside the lines that an edit
// gave for them: models often leave indentation out, or write it in another way.
type indentation struct {
	given     []string // the lines that were given
	old, here []string // the indentation these lines and of those in the file, without blank ones
	at        []int    // the numbers of these lines in the edit
	unit      string   // one level in the file
	level     int      // the width of one level in the edit
}

// tabWidth is how wide a tab is, and a level where nothing tells.
const tabWidth = 4

func newIndent(here, old []string, content string) *indentation {
	in := &indentation{given: old}
	for i := range old {
		if strings.TrimSpace(old[i]) != "" {
			in.old, in.here, in.at = append(in.old, indent(old[i])), append(in.here, indent(here[i])), append(in.at, i)
		}
	}
	in.unit = unit(strings.SplitAfterN(content, "\n", maxSteps))
	if joined := strings.Join(in.here, ""); strings.Contains(joined, "\t") {
		in.unit = "\t"
	}
	return in
}

// lines returns lines that replace the old ones, indented as those in the file are.
func (in *indentation) lines(next []string) []string {
	in.level = width(unit(slices.Concat(in.given, next)))
	for i, line := range next {
		if is := indent(line); strings.TrimSpace(line) != "" {
			if len(in.old) > 0 && width(is) < width(in.old[0]) { // it was written without that of the place
				in.old, in.here, in.at = []string{is}, in.here[:1], []int{i}
			}
			break
		}
	}
	out := make([]string, len(next))
	for i, line := range next {
		bare := strings.TrimLeftFunc(line, unicode.IsSpace)
		if bare != "" {
			bare = in.line(i, indent(line)) + bare
		}
		out[i] = bare
	}
	return out
}

// line returns the indentation in the file of line i of the edit, which has the indentation is there.
func (in *indentation) line(i int, is string) string {
	nearest, below, least := -1, -1, -1
	for j, was := range in.old {
		switch {
		case was == is && (nearest < 0 || abs(in.at[j]-i) < abs(in.at[nearest]-i)):
			nearest = j
		case width(was) < width(is) && (below < 0 || width(was) >= width(in.old[below])):
			below = j
		}
		if least < 0 || width(was) < width(in.old[least]) {
			least = j
		}
	}
	switch {
	case nearest >= 0:
		return in.here[nearest]
	case below >= 0: // so much deeper than a line that was given
		return in.here[below] + in.deeper(width(is)-width(in.old[below]))
	case least >= 0: // so much less deep
		here := in.here[least]
		return here[:max(0, len(here)-len(in.deeper(width(in.old[least])-width(is))))]
	}
	return is
}

// deeper returns the indentation in the file of so many columns of the edit.
func (in *indentation) deeper(columns int) string {
	if in.unit != "\t" && in.level == len(in.unit) {
		return strings.Repeat(" ", columns)
	}
	levels, rest := columns/in.level, columns%in.level
	return strings.Repeat(in.unit, levels) + strings.Repeat(" ", rest)
}

// indent is the space at the beginning of a line.
func indent(line string) string {
	return line[:len(line)-len(strings.TrimLeftFunc(line, unicode.IsSpace))]
}

func width(indent string) int { return len(indent) + (tabWidth-1)*strings.Count(indent, "\t") }

func abs(n int) int { return max(n, -n) }

// unit returns one level of indentation of lines: a tab, or the number of spaces by which a line is
// most often deeper than the one before.
func unit(lines []string) string {
	counts := make(map[string]int)
	last, best := "", strings.Repeat(" ", tabWidth)
	for _, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		is := indent(line)
		step, deeper := strings.CutPrefix(is, last)
		last = is
		if strings.HasPrefix(step, "\t") {
			step = "\t"
		}
		if !deeper || step == "" || step == " " { // one space is that of a comment
			continue
		}
		if counts[step]++; counts[step] > counts[best] {
			best = step
		}
	}
	return best
}
