package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// An item is something in the conversation.
type item interface {
	// lines makes its lines for a width. folds says that there is more, or less, to see
	// when it is opened or folded.
	lines(p *painter, width int, open, marked bool) (lines []string, folds bool)
}

// A cell is an item, with its lines for the width for which they were made last.
type cell struct {
	item
	// joined says that no blank line stands before it.
	joined bool
	open   bool
	marked bool

	made  []string
	width int // 0: made is out of date
	folds bool
}

// A conversation is a list of items, and the part of it that is visible. An item is drawn
// when it becomes visible, and again only when it, or the width, has changed.
type conversation struct {
	cells []*cell
	width int
	// follow says that the end is visible and stays so; else the top line is the line off
	// of the cell top.
	follow   bool
	top, off int
	mark     int    // the cell that is marked, -1 for none
	drawn    int    // how many cells were drawn, for tests
	height   int    // of the last view
	found    [2]int // the cell and line that a search has found
	finding  bool   // a search shows what it has found
}

func newConversation() *conversation {
	return &conversation{follow: true, mark: -1, width: usualWidth, height: 1}
}

// add adds an item.
func (c *conversation) add(it item, joined bool) *cell {
	n := &cell{item: it, joined: joined}
	c.cells = append(c.cells, n)
	return n
}

// changed notes that an item is drawn anew.
func (n *cell) changed() { n.width = 0 }

// allChanged notes that everything is drawn anew.
func (c *conversation) allChanged() {
	for _, n := range c.cells {
		n.changed()
	}
}

// lines are the lines of a cell.
func (c *conversation) lines(p *painter, i int) []string {
	n := c.cells[i]
	if n.width == c.width {
		return n.made
	}
	c.drawn++
	lines, folds := n.lines(p, c.width, n.open, n.marked)
	if i > 0 && !n.joined && len(lines) > 0 {
		lines = append([]string{""}, lines...)
	}
	n.made, n.folds, n.width = lines, folds, c.width
	return lines
}

// view returns exactly height lines.
func (c *conversation) view(p *painter, width, height int) []string {
	c.width, c.height = max(width, 1), height
	var out []string
	if !c.follow {
		out = c.from(p, height)
		if len(out) < height && c.atEnd(p) {
			c.follow = true
		}
	}
	if c.follow {
		c.top, c.off = c.endTop(p, height)
		out = c.from(p, height)
	}
	for len(out) < height {
		out = append(out, "")
	}
	return out
}

// from are at most height lines from the top line on.
func (c *conversation) from(p *painter, height int) []string {
	out := make([]string, 0, height)
	off := c.off
	for i := c.top; i < len(c.cells) && len(out) < height; i++ {
		lines := c.lines(p, i)
		off = min(off, len(lines))
		before := len(out)
		out = append(out, lines[off:min(len(lines), off+height-len(out))]...)
		if at := before + c.found[1] - off; c.finding && c.found[0] == i && at >= before && at < len(out) {
			out[at] = p.theme.Match.Render(ansi.Strip(out[at]))
		}
		off = 0
	}
	return out
}

// endTop is the top line at which the end is at the bottom.
func (c *conversation) endTop(p *painter, height int) (top, off int) {
	left := height
	for i := len(c.cells) - 1; i >= 0; i-- {
		n := len(c.lines(p, i))
		if n >= left {
			return i, n - left
		}
		left -= n
	}
	return 0, 0
}

// atEnd reports whether the end is visible, or above.
func (c *conversation) atEnd(p *painter) bool {
	top, off := c.endTop(p, c.height)
	return c.top > top || c.top == top && c.off >= off
}

// scroll moves by lines, upwards if they are negative.
func (c *conversation) scroll(p *painter, by int) {
	if len(c.cells) == 0 {
		return
	}
	if c.follow {
		c.top, c.off = c.endTop(p, c.height)
	}
	c.follow = false
	c.top = min(c.top, len(c.cells)-1)
	c.off += by
	for c.off < 0 && c.top > 0 {
		c.top--
		c.off += len(c.lines(p, c.top))
	}
	c.off = max(c.off, 0)
	for c.top < len(c.cells)-1 && c.off >= len(c.lines(p, c.top)) {
		c.off -= len(c.lines(p, c.top))
		c.top++
	}
	if by > 0 && c.atEnd(p) {
		c.follow = true
	}
}

// begin goes to the beginning.
func (c *conversation) begin() { c.follow, c.top, c.off = false, 0, 0 }

// show makes a line of a cell visible.
func (c *conversation) show(p *painter, i, line int) {
	c.follow, c.top, c.off = false, i, line
	c.scroll(p, -min(c.height/3, line+c.height))
}

// markNext marks the next cell that is a card, in a direction.
func (c *conversation) markNext(p *painter, step int) {
	at := c.mark
	if at < 0 {
		at = len(c.cells)
		if step > 0 {
			return
		}
	}
	for i := at + step; i >= 0 && i < len(c.cells); i += step {
		if _, ok := c.cells[i].item.(*card); ok {
			c.setMark(i)
			c.show(p, i, 0)
			return
		}
	}
	if step > 0 { // after the last one
		c.setMark(-1)
		c.follow = true
	}
}

// setMark marks a cell, or none.
func (c *conversation) setMark(i int) {
	for _, at := range []int{c.mark, i} {
		if at >= 0 && at < len(c.cells) {
			c.cells[at].marked = at == i
			c.cells[at].changed()
		}
	}
	c.mark = i
}

// fold opens or folds the cell that is marked, or the last visible one that folds.
func (c *conversation) fold(p *painter) bool {
	i := c.mark
	if i < 0 {
		last := len(c.cells) - 1
		if !c.follow {
			last = min(c.top+c.height, last)
		}
		for i = last; i >= 0; i-- {
			c.lines(p, i)
			if c.cells[i].folds {
				break
			}
		}
	}
	if i < 0 || i >= len(c.cells) {
		return false
	}
	n := c.cells[i]
	n.open = !n.open
	n.changed()
	if n.open && len(c.lines(p, i)) > c.height { // its beginning is what to read first
		c.follow, c.top, c.off = false, i, 0
	}
	return true
}

// find looks for a text from a place on, in a direction, and shows it. at is the cell and
// line of the last match.
func (c *conversation) find(p *painter, text string, at [2]int, step int) (found [2]int, ok bool) {
	text = strings.ToLower(text)
	if text == "" {
		return at, false
	}
	i, line := at[0], at[1]+step
	if line < 0 {
		i--
	}
	for n := 0; n <= len(c.cells) && len(c.cells) > 0; n++ {
		switch {
		case i < 0:
			i, line = len(c.cells)-1, -1
		case i >= len(c.cells):
			i, line = 0, 0
		}
		lines := c.lines(p, i)
		if line < 0 && step < 0 {
			line = len(lines) - 1
		}
		for ; line >= 0 && line < len(lines); line += step {
			if strings.Contains(strings.ToLower(ansi.Strip(lines[line])), text) {
				c.show(p, i, line)
				c.found, c.finding = [2]int{i, line}, true
				return c.found, true
			}
		}
		i += step
		line = -1
		if step > 0 {
			line = 0
		}
	}
	return at, false
}
