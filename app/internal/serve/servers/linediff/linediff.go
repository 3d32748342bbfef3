// Package linediff finds the lines that differ between two texts, and chooses among possible diffs as git does.
package linediff

import (
	"bytes"
	"context"
	"math"
)

// Diff tells which lines of two texts differ, by the algorithm of Myers with the choices of
// git: lines that the other text has nowhere are set aside first, and where a group of lines can
// stand in several places, the place is the one that reads best.
type Diff struct {
	a, b    []int  // each line as a number; equal lines have the same
	Removed []bool // of the lines of the first text
	Added   []bool // of the lines of the second
}

// Compare compares two texts line by line. Once ctx ends, it returns the cause.
func Compare(ctx context.Context, a, b [][]byte) (*Diff, error) {
	ids := make(map[string]int, len(a))
	number := func(lines [][]byte) []int {
		out := make([]int, len(lines))
		for i, l := range lines {
			if i%poll == 0 && ctx.Err() != nil {
				break
			}
			id, ok := ids[string(l)]
			if !ok {
				id = len(ids)
				ids[string(l)] = id
			}
			out[i] = id
		}
		return out
	}
	d := &Diff{a: number(a), b: number(b)}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	d.Removed, d.Added = make([]bool, len(a)), make([]bool, len(b))
	start := 0
	for start < len(a) && start < len(b) && d.a[start] == d.b[start] {
		start++
	}
	endA, endB := len(a), len(b)
	for endA > start && endB > start && d.a[endA-1] == d.b[endB-1] {
		endA--
		endB--
	}
	m := &myers{ctx: ctx, diff: d}
	m.a = keepers(ctx, d.a, d.b, len(ids), start, endA, d.Removed)
	m.b = keepers(ctx, d.b, d.a, len(ids), start, endB, d.Added)
	m.run()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	settle(ctx, d.a, d.Removed, d.Added, a)
	settle(ctx, d.b, d.Added, d.Removed, b)
	return d, context.Cause(ctx)
}

// poll is how many lines are looked at before the context is asked again.
const poll = 4096

// keepers returns the lines of own, by index, that are worth comparing. The others, which the
// other text has nowhere, are marked as changed, and so are frequent lines among these. Lines are numbers
// below kinds. It stops early when ctx ends.
func keepers(ctx context.Context, own, other []int, kinds, start, end int, changed []bool) []int {
	counts := make([]int, kinds)
	for _, id := range other {
		counts[id]++
	}
	limit := min(squareRoot(len(own)), 1024)
	class := make([]uint8, end)
	for i := start; i < end; i++ {
		switch n := counts[own[i]]; {
		case n == 0:
			class[i] = none
		case n < limit:
			class[i] = some
		default:
			class[i] = many
		}
	}
	var kept []int
	for i := start; i < end && (i%poll != 0 || ctx.Err() == nil); i++ {
		if class[i] == some || class[i] == many && !lost(class, i, start) {
			kept = append(kept, i)
		} else {
			changed[i] = true
		}
	}
	return kept
}

// How often a line is in the other text.
const none, some, many uint8 = 0, 1, 2

// lost reports whether the frequent line i stands among lines without any match.
func lost(class []uint8, i, start int) bool {
	const window = 100
	lonely, crowd := 0, 0
	for _, step := range []int{-1, 1} {
		found := 0
		crowd++
		for j := i + step; j >= max(start, i-window) && j < min(len(class), i+window+1) && class[j] != some; j += step {
			if class[j] == none {
				found++
			} else {
				crowd++
			}
		}
		if found == 0 {
			return false
		}
		lonely += found
	}
	return crowd*4 < crowd+lonely
}

// squareRoot is a cheap upper bound of the square root.
func squareRoot(n int) int {
	r := 1
	for ; n > 0; n >>= 2 {
		r <<= 1
	}
	return r
}

// myers finds a short edit script between the lines a and b of the diff.
type myers struct {
	ctx  context.Context //nolint:containedctx // of the one comparison
	diff *Diff
	a, b []int
	// forward and backward are how far a path got on each diagonal, shifted by offset.
	forward, backward []int
	offset            int
	most              int // the cost at which a path that is good enough is taken
}

func (m *myers) run() {
	diagonals := len(m.a) + len(m.b) + 3
	m.forward, m.backward = make([]int, diagonals+1), make([]int, diagonals+1)
	m.offset = len(m.b) + 1
	m.most = max(squareRoot(diagonals), 256)
	m.compare(0, len(m.a), 0, len(m.b))
}

func (m *myers) equal(i, j int) bool { return m.diff.a[m.a[i]] == m.diff.b[m.b[j]] }

// compare marks what differs between a[a0:a1] and b[b0:b1]. It stops early when ctx ends.
func (m *myers) compare(a0, a1, b0, b1 int) {
	for {
		for a0 < a1 && b0 < b1 && m.equal(a0, b0) {
			a0++
			b0++
		}
		for a0 < a1 && b0 < b1 && m.equal(a1-1, b1-1) {
			a1--
			b1--
		}
		if a0 == a1 || b0 == b1 || m.ctx.Err() != nil {
			break
		}
		i, j := m.middle(a0, a1, b0, b1)
		m.compare(a0, i, b0, j)
		a0, b0 = i, j
	}
	for _, i := range m.a[a0:a1] {
		m.diff.Removed[i] = true
	}
	for _, j := range m.b[b0:b1] {
		m.diff.Added[j] = true
	}
}

// A front is the range of diagonals that one direction has reached.
type front struct{ low, high int }

// widen takes in one more diagonal on each side, as far as the box goes.
func (f *front) widen(lowest, highest, outside int, reach []int, offset int) {
	if f.low > lowest {
		f.low--
		reach[f.low-1+offset] = outside
	} else {
		f.low++
	}
	if f.high < highest {
		f.high++
		reach[f.high+1+offset] = outside
	} else {
		f.high--
	}
}

// middle finds a point that a shortest path, or a good one, goes through.
func (m *myers) middle(a0, a1, b0, b1 int) (i, j int) {
	lowest, highest := a0-b1, a1-b0
	start, end := a0-b0, a1-b1
	odd := (start-end)%2 != 0
	f, b := front{start, start}, front{end, end}
	fw, bw, o := m.forward, m.backward, m.offset
	fw[start+o], bw[end+o] = a0, a1
	for cost := 1; ; cost++ {
		f.widen(lowest, highest, -1, fw, o)
		for d := f.high; d >= f.low; d -= 2 {
			i := m.slideDown(max(fw[d+1+o], fw[d-1+o]+1), d, a1, b1)
			fw[d+o] = i
			if odd && b.low <= d && d <= b.high && bw[d+o] <= i {
				return i, i - d
			}
		}
		b.widen(lowest, highest, math.MaxInt, bw, o)
		for d := b.high; d >= b.low; d -= 2 {
			i := m.slideUp(min(bw[d-1+o], bw[d+1+o]-1), d, a0, b0)
			bw[d+o] = i
			if !odd && f.low <= d && d <= f.high && i <= fw[d+o] {
				return i, i - d
			}
		}
		if m.ctx.Err() != nil {
			return a1, b1
		}
		if cost >= m.most {
			return m.furthest(f, b, a0, a1, b0, b1)
		}
	}
}

// slideDown follows equal lines from line i of a on diagonal d.
func (m *myers) slideDown(i, d, a1, b1 int) int {
	for i < a1 && i-d < b1 && m.equal(i, i-d) {
		i++
	}
	return i
}

// slideUp follows them backwards.
func (m *myers) slideUp(i, d, a0, b0 int) int {
	for i > a0 && i-d > b0 && m.equal(i-1, i-d-1) {
		i--
	}
	return i
}

// furthest is the point of either direction that has got furthest.
func (m *myers) furthest(f, b front, a0, a1, b0, b1 int) (i, j int) {
	ahead, aheadA := -1, -1
	for d := f.high; d >= f.low; d -= 2 {
		i := min(m.forward[d+m.offset], a1)
		if i-d > b1 {
			i = b1 + d
		}
		if ahead < 2*i-d {
			ahead, aheadA = 2*i-d, i
		}
	}
	back, backA := math.MaxInt, math.MaxInt
	for d := b.high; d >= b.low; d -= 2 {
		i := max(m.backward[d+m.offset], a0)
		if i-d < b0 {
			i = b0 + d
		}
		if 2*i-d < back {
			back, backA = 2*i-d, i
		}
	}
	if a1+b1-back < ahead-(a0+b0) {
		return aheadA, ahead - aheadA
	}
	return backA, back - backA
}

// A group is a run of changed lines, which may be empty, between two unchanged ones.
type group struct {
	changed    []bool
	start, end int
}

func firstGroup(changed []bool) *group {
	g := &group{changed: changed}
	g.grow()
	return g
}

func (g *group) grow() {
	for g.end < len(g.changed) && g.changed[g.end] {
		g.end++
	}
}

// next goes to the group after the next unchanged line.
func (g *group) next() bool {
	if g.end == len(g.changed) {
		return false
	}
	g.start = g.end + 1
	g.end = g.start
	g.grow()
	return true
}

// previous goes to the group before the unchanged line before it.
func (g *group) previous() {
	if g.start == 0 {
		return
	}
	g.end = g.start - 1
	g.start = g.end
	for g.start > 0 && g.changed[g.start-1] {
		g.start--
	}
}

// up moves the group up by a line, if the lines allow it, and merges it with what it meets.
func (g *group) up(lines []int) bool {
	if g.start == 0 || lines[g.start-1] != lines[g.end-1] {
		return false
	}
	g.start--
	g.end--
	g.changed[g.start], g.changed[g.end] = true, false
	for g.start > 0 && g.changed[g.start-1] {
		g.start--
	}
	return true
}

// down moves it down likewise.
func (g *group) down(lines []int) bool {
	if g.end == len(lines) || lines[g.start] != lines[g.end] {
		return false
	}
	g.changed[g.start], g.changed[g.end] = false, true
	g.start++
	g.end++
	g.grow()
	return true
}

// settle moves each group of changed lines to where it reads best: beside a change of the other
// text, else where the indentation says that something begins or ends.
func settle(ctx context.Context, lines []int, changed, changedOther []bool, text [][]byte) {
	g, other := firstGroup(changed), firstGroup(changedOther)
	for {
		if g.end != g.start && ctx.Err() == nil {
			settleGroup(g, other, lines, text)
		}
		if !g.next() {
			return
		}
		other.next()
	}
}

func settleGroup(g, other *group, lines []int, text [][]byte) {
	var size, earliest, matching int
	for {
		size, matching = g.end-g.start, -1
		for g.up(lines) {
			other.previous()
		}
		earliest = g.end
		if other.end > other.start {
			matching = g.end
		}
		for g.down(lines) {
			other.next()
			if other.end > other.start {
				matching = g.end
			}
		}
		if size == g.end-g.start {
			break
		}
	}
	switch {
	case g.end == earliest:
	case matching != -1:
		for other.end == other.start {
			g.up(lines)
			other.previous()
		}
	default:
		for best := bestEnd(g, earliest, size, text); g.end > best; {
			g.up(lines)
			other.previous()
		}
	}
}

// bestEnd is the end of the group's best place.
func bestEnd(g *group, earliest, size int, text [][]byte) int {
	const far = 100
	best, bestIndent, bestPenalty := -1, 0, 0
	for end := max(earliest, g.end-size-1, g.end-far); end <= g.end; end++ {
		i1, p1 := splitCost(text, end)
		i2, p2 := splitCost(text, end-size)
		indent, penalty := i1+i2, p1+p2
		if best != -1 {
			side := 0
			if indent > bestIndent {
				side = 1
			} else if indent < bestIndent {
				side = -1
			}
			if 60*side+penalty-bestPenalty > 0 {
				continue
			}
		}
		best, bestIndent, bestPenalty = end, indent, penalty
	}
	return best
}

// splitCost says how badly the text is divided before line at: by the indentation of that line,
// and by a penalty. The weights are git's.
func splitCost(text [][]byte, at int) (indent, penalty int) {
	own := -1
	if at < len(text) {
		own = indentOf(text[at])
	} else {
		penalty += 21
	}
	before, blankBefore := indentFrom(text, at-1, -1)
	after, blankAfter := indentFrom(text, at+1, 1)
	if before == -1 && blankBefore == 0 {
		penalty++
	}
	if own == -1 {
		blankAfter++
	} else {
		blankAfter = 0
	}
	blank := blankBefore + blankAfter
	penalty += 6*blankAfter - 30*blank
	if own == -1 {
		own = after
	}
	with := func(blanks, none int) int {
		if blank != 0 {
			return blanks
		}
		return none
	}
	switch {
	case own == -1 || before == -1 || own == before:
	case own > before:
		penalty += with(10, -4)
	case after != -1 && after > own:
		penalty += with(17, 24)
	default:
		penalty += with(17, 23)
	}
	return own, penalty
}

// indentFrom is the indentation of the next line that is not blank, and how many are between.
func indentFrom(text [][]byte, i, step int) (indent, blank int) {
	const most = 20
	for ; i >= 0 && i < len(text); i += step {
		if indent := indentOf(text[i]); indent != -1 {
			return indent, blank
		}
		if blank++; blank == most {
			return 0, blank
		}
	}
	return -1, blank
}

// indentOf is the width of the white space that a line begins with; -1 is a blank line.
func indentOf(line []byte) int {
	const most = 200
	width := 0
	for _, c := range line {
		switch c {
		case ' ':
			width++
		case '\t':
			width += 8 - width%8
		case '\n', '\r', '\v', '\f':
		default:
			return width
		}
		if width >= most {
			return most
		}
	}
	return -1
}

// Lines cuts a text after each line feed.
func Lines(text []byte) [][]byte {
	lines := make([][]byte, 0, 1+bytes.Count(text, []byte("\n"))) // growing takes longer than counting
	for line := range bytes.Lines(text) {
		lines = append(lines, line)
	}
	return lines
}

// A Hunk is a part of two texts: lines a[A0:A1] become b[B0:B1].
type Hunk struct{ A0, A1, B0, B1 int }

// Hunks gives the parts that differ, each with context lines around it.
func (d *Diff) Hunks(context int) []Hunk {
	var out []Hunk
	i, j := 0, 0
	for i < len(d.a) || j < len(d.b) {
		if i < len(d.a) && !d.Removed[i] && j < len(d.b) && !d.Added[j] {
			i++
			j++
			continue
		}
		h := Hunk{A0: i, B0: j}
		for i < len(d.a) && d.Removed[i] {
			i++
		}
		for j < len(d.b) && d.Added[j] {
			j++
		}
		h.A1, h.B1 = i, j
		if last := len(out) - 1; last >= 0 && h.A0-out[last].A1 <= 2*context {
			out[last].A1, out[last].B1 = h.A1, h.B1
		} else {
			out = append(out, h)
		}
	}
	for k := range out {
		h := &out[k]
		above := min(context, h.A0, h.B0)
		below := min(context, len(d.a)-h.A1, len(d.b)-h.B1)
		*h = Hunk{h.A0 - above, h.A1 + below, h.B0 - above, h.B1 + below}
	}
	return out
}

// WriteLines writes the lines of a hunk of the texts a and b as unified diffs have them, each after its
// sign. A last line without a line end is followed by a line that says so.
func (d *Diff) WriteLines(out *bytes.Buffer, h Hunk, a, b [][]byte) {
	write := func(sign byte, line []byte) {
		out.WriteByte(sign)
		out.Write(line)
		if !bytes.HasSuffix(line, []byte("\n")) {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
	for i, j := h.A0, h.B0; i < h.A1 || j < h.B1; {
		switch {
		case i < h.A1 && d.Removed[i]:
			write('-', a[i])
			i++
		case j < h.B1 && d.Added[j]:
			write('+', b[j])
			j++
		default:
			write(' ', a[i])
			i, j = i+1, j+1
		}
	}
}
