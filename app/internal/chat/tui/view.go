package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
)

// leastConversation is how many lines of the conversation stay visible over a panel,
// where there is room.
const leastConversation = 3

// View draws what is visible. While the terminal has not taken the last frame it is that one:
// on a slow line frames are left out, and do not wait in line.
func (m *screen) View() tea.View {
	if m.shown.Content != "" && m.lineBusy() {
		return m.shown
	}
	lines, cursor := m.draw()
	for i, line := range lines {
		if ansi.StringWidth(line) > m.width {
			lines[i] = ansi.Truncate(line, m.width, "")
		}
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	v.KeyboardEnhancements.ReportEventTypes = true // a key that is held down decides nothing
	if m.opts.Mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	v.Cursor = cursor
	m.shown = v
	return v
}

// draw makes exactly as many lines as the terminal has.
func (m *screen) draw() (lines []string, cursor *tea.Cursor) {
	height := m.height
	switch {
	case m.overlay != nil:
		lines, cursor = m.overlay.view(m, m.width, height-1)
		lines = atHeight(lines, height-1)
	case m.inPanel:
		lines = m.panelLines(height - 1)
	default:
		lines, cursor = m.chatLines(height - 1)
	}
	if height > 1 || len(lines) == 0 {
		lines = append(lines, m.status(m.width))
	}
	if cursor != nil && (cursor.Y < 0 || cursor.Y >= height || cursor.X < 0 || cursor.X >= m.width) {
		cursor = nil // on a line that is not visible
	}
	return atHeight(lines, height), cursor
}

// atHeight cuts or fills lines to a height.
func atHeight(lines []string, height int) []string {
	for len(lines) < height {
		lines = append(lines, "")
	}
	return lines[:max(height, 0)]
}

// panelLines draws the panel, and the end of the conversation over it.
func (m *screen) panelLines(height int) []string {
	most := height
	if height-leastConversation >= 10 {
		most = height - leastConversation
	}
	shown := strings.Split(strings.TrimRight(m.panel.View(m.width, most), "\n"), "\n")
	if len(shown) > most {
		shown = shown[:most]
	}
	return append(m.conv.view(m.painter, m.width, height-len(shown)), shown...)
}

// chatLines draws the conversation, and the message under it.
func (m *screen) chatLines(height int) (lines []string, cursor *tea.Cursor) {
	var below []string
	if banner := m.banner(m.width); banner != "" {
		below = append(below, banner)
	}
	if m.search != nil {
		input, at := m.search.view(m.theme, m.width)
		below = append(below, input)
		if len(below) > height {
			below = below[len(below)-height:]
		}
		lines = append(m.conv.view(m.painter, m.width, height-len(below)), below...)
		return lines, tea.NewCursor(at, len(lines)-1)
	}
	message, cursor := m.editor.view()
	if room := max(height-len(below)-1, 1); len(message) > room {
		if cursor != nil {
			from := min(max(cursor.Y-room+1, 0), len(message)-room)
			message, cursor.Y = message[from:from+room], cursor.Y-from
		}
		message = message[:min(room, len(message))]
	}
	if list := m.completionView(m.width); len(below)+len(list)+len(message)+1 <= height {
		below = append(below, list...)
	}
	offer := m.offerView(m.width)
	m.offerShown = offer != "" && len(below)+len(message)+1 <= height
	if m.offerShown {
		below = append(below, offer)
	}
	if height >= 10 {
		below = append(below, m.theme.Border.Render(strings.Repeat("─", m.width)))
	}
	before := len(below)
	below = append(below, message...)
	if over := len(below) - height; over > 0 {
		below, before = below[over:], before-over
	}
	lines = append(m.conv.view(m.painter, m.width, height-len(below)), below...)
	if cursor != nil {
		cursor.Y += len(lines) - len(below) + before
		cursor.X = min(cursor.X, m.width-1)
	}
	return lines, cursor
}

// frameTitle draws the title of a view, and the key that closes it.
func (m *screen) frameTitle(title string, width int) string {
	hint := m.keys.Key(style.Close) + " closes"
	text := style.Fit(title, width)
	if left := width - style.Width(text) - style.Width(hint); left > 1 {
		return m.theme.Title.Render(text) + strings.Repeat(" ", left) + m.theme.Dim.Render(hint)
	}
	return m.theme.Title.Render(text)
}
