// Package diff shows how a text was changed, as a unified diff. It finds the same changes
// as the package diff of npm.
package diff

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// context is how many lines are shown around a change.
	context = 4
	// MaxChanges is the most lines added and removed for which the shortest way from one
	// text to the other is looked for. Beyond it all lines between the first and the last
	// that differ are shown as removed and added: the search takes time with the square.
	MaxChanges = 2000
)

// A run is a number of lines that are all kept, added or removed.
type run struct {
	kind  byte // ' ', '+' or '-'
	count int
	prev  *run
}

// Unified is the diff of two texts whose lines end with "\n", with name in its head for
// both.
func Unified(name, old, now string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Index: %s\n%s\n--- %s\toriginal\n+++ %s\tmodified\n", name, strings.Repeat("=", 67), name, name)
	a, z := lines(old), lines(now)
	for _, h := range hunks(changes(a, z), a, z) {
		h.write(&b)
	}
	return b.String()
}

// lines splits a text after each end of line.
func lines(s string) []string {
	if s == "" {
		return nil
	}
	list := strings.SplitAfter(s, "\n")
	if list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// changes is the shortest way from a to z.
func changes(a, z []string) []run {
	last := shortest(a, z)
	if last == nil {
		return coarse(a, z)
	}
	var list []run
	for ; last != nil; last = last.prev {
		if last.count > 0 {
			list = append(list, *last)
		}
	}
	slices.Reverse(list)
	return list
}

// coarse is a way from a to z that is found at once.
func coarse(a, z []string) []run {
	head := 0
	for head < min(len(a), len(z)) && a[head] == z[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(z))-head && a[len(a)-1-tail] == z[len(z)-1-tail] {
		tail++
	}
	list := []run{
		{kind: ' ', count: head},
		{kind: '-', count: len(a) - head - tail},
		{kind: '+', count: len(z) - head - tail},
		{kind: ' ', count: tail},
	}
	return slices.DeleteFunc(list, func(r run) bool { return r.count == 0 })
}

// A path is the way to a point of the edit graph: so many lines of the old text are
// behind it, and on diagonal k so many less k of the new one.
type path struct {
	old  int
	last *run
}

func (p *path) step(kind byte, old int) *path {
	if p.last != nil && p.last.kind == kind {
		return &path{p.old + old, &run{kind, p.last.count + 1, p.last.prev}}
	}
	return &path{p.old + old, &run{kind, 1, p.last}}
}

// keep goes on as long as the lines are the same, and returns how many of the new text are
// behind it then.
func (p *path) keep(a, z []string, diagonal int) int {
	now, count := p.old-diagonal, 0
	for now < len(z) && p.old < len(a) && a[p.old] == z[now] {
		now, p.old, count = now+1, p.old+1, count+1
	}
	if count > 0 {
		p.last = &run{' ', count, p.last}
	}
	return now
}

// shortest searches the edit graph as Myers describes it (An O(ND) Difference Algorithm
// and Its Variations, 1986): with each round one more line is added or removed on the way
// to the farthest point of each diagonal. Of two ways to a point the one is taken whose
// last step adds a line, if it is farther, else the one that removes one; so removed lines
// come before added ones. It is nil if there are more than MaxChanges.
func shortest(a, z []string) *run {
	most := min(len(a)+len(z), MaxChanges)
	paths := make([]*path, 2*most+3)
	at := func(diagonal int) **path { return &paths[diagonal+most+1] }
	first := &path{}
	if now := first.keep(a, z, 0); first.old == len(a) && now == len(z) {
		return orEmpty(first.last)
	}
	*at(0) = first
	low, high := -most-1, most+1 // diagonals beyond them are at an edge of the graph
	for n := 1; n <= most; n++ {
		for k := max(low, -n); k <= min(high, n); k += 2 {
			remove, add := *at(k - 1), *at(k + 1)
			*at(k - 1) = nil // nobody else needs it
			canAdd := add != nil && add.old-k > 0 && add.old-k <= len(z)
			canRemove := remove != nil && remove.old < len(a)
			var p *path
			switch {
			case !canAdd && !canRemove:
				*at(k) = nil
				continue
			case !canRemove || canAdd && remove.old < add.old:
				p = add.step('+', 0)
			default:
				p = remove.step('-', 1)
			}
			now := p.keep(a, z, k)
			if p.old >= len(a) && now >= len(z) {
				return p.last
			}
			*at(k) = p
			if p.old >= len(a) {
				high = min(high, k-1)
			}
			if now >= len(z) {
				low = max(low, k+1)
			}
		}
	}
	return nil
}

func orEmpty(r *run) *run {
	if r == nil {
		return &run{kind: ' '}
	}
	return r
}

// A hunk is changes that are near to each other, with the lines around them.
type hunk struct {
	oldStart, oldCount, newStart, newCount int
	lines                                  []string // each with its sign
}

func (h *hunk) add(sign byte, list []string) {
	for _, line := range list {
		h.lines = append(h.lines, string(sign)+line)
	}
	if sign != '+' {
		h.oldCount += len(list)
	}
	if sign != '-' {
		h.newCount += len(list)
	}
}

func (h *hunk) write(b *strings.Builder) {
	if h.oldCount == 0 {
		h.oldStart-- // the format wants the line before
	}
	if h.newCount == 0 {
		h.newStart--
	}
	fmt.Fprintf(b, "@@ -%d,%d +%d,%d @@\n", h.oldStart, h.oldCount, h.newStart, h.newCount)
	for _, line := range h.lines {
		b.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// hunks puts changes together.
func hunks(runs []run, a, z []string) []*hunk {
	var list []*hunk
	var h *hunk // the one that is open
	old, now := 0, 0
	for i, r := range runs {
		switch r.kind {
		case ' ':
			kept := a[old : old+r.count]
			switch {
			case h == nil:
			case i < len(runs)-1 && r.count <= 2*context: // the next change is near
				h.add(' ', kept)
			default:
				h.add(' ', kept[:min(context, len(kept))])
				h = nil
			}
			old, now = old+r.count, now+r.count
			continue
		}
		if h == nil {
			around := 0
			if i > 0 {
				around = min(context, runs[i-1].count)
			}
			h = &hunk{oldStart: old - around + 1, newStart: now - around + 1}
			h.add(' ', a[old-around:old])
			list = append(list, h)
		}
		if r.kind == '+' {
			h.add('+', z[now:now+r.count])
			now += r.count
		} else {
			h.add('-', a[old:old+r.count])
			old += r.count
		}
	}
	return list
}
