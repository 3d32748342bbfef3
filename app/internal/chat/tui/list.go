package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
)

// A listView is a view of entries, of which one is marked.
type listView struct {
	at   int
	n    int    // entries of the last view
	told string // what has come of a key, on one line
	held heldKey

	// An entry that is higher than the view is scrolled: its first line that is shown, its
	// height, and that of the view.
	top, high, room int
}

// markOf is where the mark is once a list was read again: on the entry that it was on, or,
// where that is gone, where it was.
func markOf[T any](at int, before, after []T, id func(*T) string) int {
	if at >= len(before) {
		return at
	}
	for i := range after {
		if id(&after[i]) == id(&before[at]) {
			return i
		}
	}
	return at
}

// tell shows what has come of a key.
func (l *listView) tell(text string) { l.told = text }

func (l *listView) scroll(by int) {
	if by != 0 {
		l.top = 0
	}
	l.at = max(0, min(l.at+by, l.n-1))
}

// step goes to what follows of an entry that is too high, or to the next entry.
func (l *listView) step(by int) {
	page := by * max(l.room-1, 1)
	if to := max(0, min(l.top+page, l.high-l.room)); l.high > l.room && to != l.top {
		l.top = to
		return
	}
	l.scroll(by)
}

func (*listView) paste(string) {}

// move takes a key that marks another entry.
func (l *listView) move(m *screen, k string) bool {
	switch {
	case m.keys.Is(k, style.Up):
		l.step(-1)
	case m.keys.Is(k, style.Down):
		l.step(1)
	case m.keys.Is(k, style.PageUp):
		l.scroll(-listPage)
	case m.keys.Is(k, style.PageDown):
		l.scroll(listPage)
	case m.keys.Is(k, style.Top):
		l.scroll(-l.n)
	case m.keys.Is(k, style.Bottom):
		l.scroll(l.n)
	default:
		return false
	}
	l.told, l.held = "", heldKey{}
	return true
}

// again reports whether a key that changes something may come from the press before, of a key
// that is held down.
func (l *listView) again(m *screen, msg tea.KeyPressMsg) bool {
	if now := m.opts.Now(); !msg.IsRepeat && !l.held.holds(msg, now) {
		l.held = heldKey{msg.String(), now}
		return false
	}
	return true
}

// listPage is how many entries a page is.
const listPage = 8

// An entry is what it is, and what there is to know about it: each on one line, and whole
// where it is marked.
type entry struct {
	head string
	rest []style.Span
}

// lines draws an entry.
func (e *entry) lines(m *screen, marked bool, width int) []string {
	var out []string
	room := max(width-4, leastColumns)
	if !marked {
		out = append(out, m.theme.Title.Render(style.Fit("  "+e.head, width)))
		for _, s := range e.rest {
			out = append(out, "    "+s.Style.Render(style.Fit(s.Text, room)))
		}
		return out
	}
	for i, line := range style.Wrap(e.head, max(width-2, leastColumns)) {
		sign := "▸ "
		if i > 0 {
			sign = "  "
		}
		out = append(out, m.theme.Selected.Render(style.Pad(style.Fit(sign+line, width), width)))
	}
	for _, s := range e.rest {
		out = append(out, prefixed(style.WrapSpans([]style.Span{s}, room), "    ", "")...)
	}
	return out
}

// draw draws the entries around the one that is marked, and under them what keys do.
func (l *listView) draw(m *screen, title string, entries []entry, hints []string, width, height int) []string {
	l.n = len(entries)
	l.scroll(0)
	foot := m.hints(hints, width, height)
	if l.told != "" {
		foot = append(foot, m.theme.Warning.Render(style.Fit(l.told, width)))
	}
	var lines []string
	first, last := 0, 0
	for i := range entries {
		if i == l.at {
			first = len(lines)
		}
		lines = append(lines, entries[i].lines(m, i == l.at, width)...)
		if i == l.at {
			last = len(lines)
		}
	}
	room := max(height-1-len(foot), 1)
	l.high, l.room = last-first, room
	l.top = max(0, min(l.top, l.high-room))
	top := max(0, min(first, len(lines)-room))
	switch {
	case last <= room:
		top = 0
	case l.high > room:
		top = first + l.top
	}
	out := append([]string{m.frameTitle(title, width)}, lines[top:min(top+room, len(lines))]...)
	return append(atHeight(out, height-len(foot)), foot...)
}

// hints says what keys do, on at most two lines.
func (m *screen) hints(list []string, width, height int) []string {
	if height < 6 {
		return nil
	}
	lines := style.Wrap(strings.Join(list, " · "), width)
	most := 2
	if height < 12 {
		most = 1
	}
	if len(lines) > most {
		lines = lines[:most]
		lines[most-1] = style.Fit(lines[most-1]+"…", width)
	}
	for i := range lines {
		lines[i] = m.theme.Dim.Render(lines[i])
	}
	return lines
}

// hint names a key and what it does; empty without a key.
func (m *screen) hint(action, does string) string {
	if key := m.keys.Key(action); key != "" {
		return key + " " + does
	}
	return ""
}

// toggleList shows a list, or closes it if it is shown.
func (m *screen) toggleList(o interface {
	overlay
	load(m *screen)
},
) {
	m.toggle(o)
	if m.overlay == o {
		o.load(m)
	}
}

// refresh has the list that is shown read again what may have changed.
func (m *screen) refresh() {
	if o, ok := m.overlay.(interface{ load(m *screen) }); ok {
		o.load(m)
	}
}

// tellOverlay tells the view that is shown what a command has said.
func (m *screen) tellOverlay(text string) {
	if o, ok := m.overlay.(interface{ tell(text string) }); ok {
		o.tell(text)
	}
}

// isKey reports whether a key is one of an action.
func (m *screen) isKey(msg tea.KeyPressMsg, action string) bool {
	return m.keys.Is(msg.String(), action)
}
