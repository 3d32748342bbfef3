package filesystem

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/mcp"
)

// An indentation is how the lines of a place in a file are indented, next to the lines that an edit
// gave for them: models often leave indentation out, or write it in another way.
type indentation struct {
	given     []string // the lines that were given
	old, here []string // the indentation of these lines and of those in the file, without blank ones
	at        []int    // the numbers of these lines in the edit
	unit      string   // one level in the file
	level     int      // the width of one level in the edit

	kinds  []*kind           // the different ones of old
	others map[string]string // what those are in the file that old has not, as far as they were asked for
}

// A kind is one indentation of the old lines of an edit.
type kind struct {
	indent string
	width  int
	lines  []int // in old and here
}

const (
	// tabWidth is how wide a tab is, and a level where nothing tells.
	tabWidth = 4
	// maxLevel is the widest level of indentation. What is deeper by more is aligned.
	maxLevel = 16
	// maxLines is how many lines of a file show how it is indented.
	maxLines = 1_000
)

func newIndent(here, old []string, content string) *indentation {
	in := &indentation{given: old, others: make(map[string]string)}
	tabs := false
	for i := range old {
		if strings.TrimSpace(old[i]) != "" {
			is := indent(here[i])
			tabs = tabs || strings.Contains(is, "\t")
			in.old, in.here, in.at = append(in.old, indent(old[i])), append(in.here, is), append(in.at, i)
		}
	}
	file := newLevels()
	file.add("", strings.SplitAfterN(content, "\n", maxLines))
	in.unit = file.most
	if tabs {
		in.unit = "\t"
	}
	return in
}

// lines returns lines that replace the old ones, indented as those in the file are. The file has so
// many bytes without them, and may have most.
func (in *indentation) lines(ctx context.Context, next []string, size, most int64) ([]string, error) {
	in.level = level(in.given, next)
	in.leftOut(next)
	byIndent := in.sort()
	out := make([]string, len(next))
	steps := servers.NewSteps(ctx)
	for i, line := range next {
		bare := strings.TrimLeftFunc(line, unicode.IsSpace)
		if bare != "" {
			is := indent(line)
			if k := byIndent[is]; k != nil {
				bare = in.here[in.nearest(k, i)] + bare
			} else {
				bare = in.other(is) + bare
			}
		}
		out[i] = bare
		if size += int64(len(bare)) + 1; size > most+1 { // the last line need not have an end
			return nil, mcp.Errorf("the new lines, indented as those in the file, would make the file larger than %s, which is the most that is edited; give oldText as it is in the file", formatSize(most))
		}
		if err := steps.Add(len(bare)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// leftOut deals with new lines that were written without the indentation of the place: the first one gets
// that of the first old line. If the old lines are indented as in the file, the new ones are meant so.
func (in *indentation) leftOut(next []string) {
	if len(in.old) == 0 || in.old[0] == "" || slices.Equal(in.old, in.here) {
		return
	}
	for i, line := range next {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if indent(line) == "" {
			in.old, in.here, in.at = []string{""}, in.here[:1], []int{i}
		}
		return
	}
}

// sort finds the kinds of indentation of the old lines.
func (in *indentation) sort() map[string]*kind {
	byIndent := make(map[string]*kind)
	for j, is := range in.old {
		k := byIndent[is]
		if k == nil {
			k = &kind{indent: is, width: width(is)}
			byIndent[is] = k
			in.kinds = append(in.kinds, k)
		}
		k.lines = append(k.lines, j)
	}
	return byIndent
}

// nearest returns the one of the old lines of a kind that is nearest to line i of the edit.
func (in *indentation) nearest(k *kind, i int) int {
	after, _ := slices.BinarySearchFunc(k.lines, i, func(j, i int) int { return in.at[j] - i })
	switch {
	case after == len(k.lines), after > 0 && i-in.at[k.lines[after-1]] <= in.at[k.lines[after]]-i:
		return k.lines[after-1]
	}
	return k.lines[after]
}

// other returns the indentation in the file of a line of the edit that is indented as none of the old ones.
func (in *indentation) other(is string) string {
	if here, known := in.others[is]; known {
		return here
	}
	wide := width(is)
	var below, least *kind
	for _, k := range in.kinds {
		if k.width < wide && (below == nil || k.width > below.width || k.width == below.width && k.last() > below.last()) {
			below = k
		}
		if least == nil || k.width < least.width {
			least = k
		}
	}
	here := is
	switch {
	case below != nil: // so much deeper than a line that was given
		here = in.here[below.last()] + in.deeper(wide-below.width)
	case least != nil: // so much less deep
		here = without(in.here[least.lines[0]], width(in.deeper(least.width-wide)))
	}
	in.others[is] = here
	return here
}

func (k *kind) last() int { return k.lines[len(k.lines)-1] }

// deeper returns the indentation in the file of so many columns of the edit.
func (in *indentation) deeper(columns int) string {
	if in.unit != "\t" && in.level == width(in.unit) {
		return strings.Repeat(" ", columns)
	}
	levels, rest := columns/in.level, columns%in.level
	return strings.Repeat(in.unit, levels) + strings.Repeat(" ", rest)
}

// without returns an indentation without so many columns at its end.
func without(indent string, columns int) string {
	for columns > 0 && indent != "" {
		r, n := utf8.DecodeLastRuneInString(indent)
		indent = indent[:len(indent)-n]
		columns -= width(string(r))
	}
	return indent
}

// indent is the space at the beginning of a line.
func indent(line string) string {
	return line[:len(line)-len(strings.TrimLeftFunc(line, unicode.IsSpace))]
}

func width(indent string) int {
	return utf8.RuneCountInString(indent) + (tabWidth-1)*strings.Count(indent, "\t")
}

// levels counts by how much lines are deeper than those before them.
type levels struct {
	counts map[string]int
	most   string // the one that is most often, or else a level of tabWidth
}

func newLevels() *levels {
	return &levels{counts: make(map[string]int), most: strings.Repeat(" ", tabWidth)}
}

// add counts lines, of which the one before has the indentation last.
func (l *levels) add(last string, lines []string) {
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
		if !deeper || step == "" || step == " " || width(step) > maxLevel { // one space is that of a comment
			continue
		}
		if l.counts[step]++; l.counts[step] > l.counts[l.most] {
			l.most = step
		}
	}
}

// level returns the width of one level of indentation in an edit. If no line is deeper than the one before,
// it is by how much the new lines are indented differently, if that is less than usual.
func level(old, next []string) int {
	was, is := first(old), first(next)
	l := newLevels()
	l.add(was, old)
	l.add(is, next)
	if by := max(width(was)-width(is), width(is)-width(was)); len(l.counts) == 0 && by > 1 && is != "" {
		return min(by, tabWidth)
	}
	return width(l.most)
}

// first returns the indentation of the first of some lines that is not blank.
func first(lines []string) string {
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			return indent(line)
		}
	}
	return ""
}
