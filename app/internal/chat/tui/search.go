package tui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
)

// A search looks for a text in the conversation.
type search struct {
	lineInput
	at     [2]int // the cell and line of the last match
	result string
}

// beginSearch asks for a text; if one is asked for already, it looks for it further up.
func (m *screen) beginSearch() {
	if m.search != nil {
		m.find(-1)
		return
	}
	if m.inPanel {
		m.leavePanel()
	}
	m.search = &search{at: [2]int{len(m.conv.cells), 0}, result: "type a text; Enter and Up go up, Down goes down, Esc closes"}
}

// searchKey takes a key while a text is looked for.
func (m *screen) searchKey(msg tea.KeyPressMsg) {
	k := msg.String()
	switch {
	case m.keys.Is(k, style.Close):
		m.endSearch()
	case m.keys.Is(k, style.Choose), m.keys.Is(k, style.Up):
		m.find(-1)
	case m.keys.Is(k, style.Down):
		m.find(1)
	case m.search.key(msg):
		m.search.at = [2]int{len(m.conv.cells), 0}
		m.search.result, m.conv.finding = "", false
	}
}

// endSearch goes back to the message, and leaves the conversation where it is.
func (m *screen) endSearch() { m.search, m.conv.finding = nil, false }

// find goes to the next match in a direction.
func (m *screen) find(step int) {
	s := m.search
	at, ok := m.conv.find(m.painter, s.text, s.at, step)
	switch {
	case s.text == "":
		s.result = "type a text first"
	case !ok:
		s.result = "not found"
	default:
		s.at, s.result = at, ""
	}
}

// view draws what is typed, and says what came of it. at is the column of the cursor.
func (s *search) view(t *style.Theme, width int) (line string, at int) {
	const label = "Search: "
	text := style.Fit(s.text, max(width-len(label), 1))
	line = t.Label.Render(label) + text
	at = min(len(label)+style.Width(text), width-1)
	if left := width - len(label) - style.Width(text) - 2; left >= leastColumns && s.result != "" {
		line += "  " + t.Dim.Render(style.Fit(s.result, left))
	}
	return line, at
}
