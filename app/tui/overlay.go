package tui

import (
	"fmt"
	"reflect"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/tui/style"
	"github.com/parley-mcp/parley/host"
)

// An overlay is a view that covers the conversation.
type overlay interface {
	// view draws it within a width and height.
	view(m *screen, width, height int) (lines []string, cursor *tea.Cursor)
	// key takes a key. What has been chosen is carried out by the screen.
	key(m *screen, msg tea.KeyPressMsg)
	paste(text string)
}

// toggle shows a view, or closes it if it is the one that is shown.
func (m *screen) toggle(o overlay) {
	if m.overlay != nil && reflect.TypeOf(m.overlay) == reflect.TypeOf(o) {
		m.closeOverlay()
		return
	}
	m.endSearch()
	m.overlay = o
}

// overlayKey gives a key to the view, or closes it.
func (m *screen) overlayKey(msg tea.KeyPressMsg) {
	if m.keys.Is(msg.String(), style.Close) {
		m.closeOverlay()
		return
	}
	m.overlay.key(m, msg)
}

// closeOverlay goes back to what was before; the panel does not take keys that were meant
// for the view.
func (m *screen) closeOverlay() {
	m.overlay = nil
	if m.inPanel {
		m.panel.Focus()
	}
}

// A page is a text that is scrolled.
type page struct {
	title string
	make  func(m *screen, width int) []string
	top   int
	lines int // of the last view
	shown int
}

func (p *page) view(m *screen, width, height int) ([]string, *tea.Cursor) {
	all := p.make(m, width)
	p.lines, p.shown = len(all), max(height-1, 1)
	p.top = min(p.top, max(p.lines-p.shown, 0))
	title := p.title
	if p.lines > p.shown {
		title += fmt.Sprintf(" (%d to %d of %d lines)", p.top+1, min(p.top+p.shown, p.lines), p.lines)
	}
	out := []string{m.frameTitle(title, width)}
	return append(out, all[p.top:min(p.top+p.shown, p.lines)]...), nil
}

func (p *page) key(m *screen, msg tea.KeyPressMsg) {
	k := msg.String()
	switch {
	case m.keys.Is(k, style.Up):
		p.top--
	case m.keys.Is(k, style.Down):
		p.top++
	case m.keys.Is(k, style.PageUp):
		p.top -= p.shown - 1
	case m.keys.Is(k, style.PageDown):
		p.top += p.shown - 1
	}
	p.top = max(0, min(p.top, p.lines-p.shown))
}

func (*page) paste(string) {}

// help lists all keys.
type help struct{ page }

func newHelp(*screen) *help { return &help{page{title: "Keys", make: helpLines}} }

// helpLines are all keys by where they count.
func helpLines(m *screen, width int) []string {
	var out []string
	for _, g := range []struct {
		group style.Group
		title string
	}{
		{style.GroupAlways, "Everywhere"},
		{style.GroupChat, "While you write a message"},
		{style.GroupPanel, "In the panel of a question"},
		{style.GroupView, "In lists and views"},
	} {
		if len(out) > 0 {
			out = append(out, "")
		}
		out = append(out, m.theme.Heading.Render(style.Fit(g.title, width)))
		for _, a := range m.keys.Group(g.group) {
			keys := make([]string, len(a.Keys))
			for i, k := range a.Keys {
				keys[i] = style.Show(k)
			}
			name := strings.Join(keys, ", ")
			if name == "" {
				name = "no key"
			}
			column := min(max(30, style.Width(name)), max(width/2, leastColumns))
			lines := style.Wrap(a.Help, max(width-column-3, leastColumns))
			head := "  " + m.theme.Key.Render(style.Pad(name, column)) + " "
			out = append(out, prefixed(lines, strings.Repeat(" ", column+3), head)...)
		}
	}
	out = append(out, "", m.theme.Heading.Render(style.Fit("In a message", width)))
	for _, text := range []string{
		"@SERVER:URI attaches a resource of a server.",
		"/SERVER:PROMPT uses a prompt of a server; /help lists all commands.",
	} {
		out = append(out, style.Wrap("  "+text, width)...)
	}
	return out
}

// A serverList shows how the servers are, and starts them again.
type serverList struct{ at int }

func (l *serverList) view(m *screen, width, height int) ([]string, *tea.Cursor) {
	out := []string{m.frameTitle("Servers ("+m.keys.Key(style.Retry)+" starts one again)", width)}
	if len(m.servers) == 0 {
		return append(out, "There are no servers."), nil
	}
	l.at = min(l.at, len(m.servers)-1)
	var lines []string
	first, last := 0, 0
	for i := range m.servers {
		if i == l.at {
			first = len(lines)
		}
		lines = append(lines, l.server(m, i, width)...)
		if i == l.at {
			last = len(lines)
		}
	}
	room := max(height-1, 1)
	top := max(0, min(first, len(lines)-room))
	if last <= room {
		top = 0
	}
	return append(out, lines[top:min(top+room, len(lines))]...), nil
}

// server draws a server.
func (l *serverList) server(m *screen, i, width int) []string {
	s := &m.servers[i]
	mark, st := "  ", m.theme.Title
	if i == l.at {
		mark, st = "▸ ", m.theme.Selected
	}
	text := fmt.Sprintf("%s%s: %s", mark, host.EscapeLine(s.Name), s.State)
	if s.State == host.StateReady {
		text += fmt.Sprintf(", %d tools", s.Tools)
		if s.Skills > 0 {
			text += fmt.Sprintf(", %d skills", s.Skills)
		}
	}
	if s.Stale {
		text += ", not listed anew yet"
	}
	out := []string{st.Render(style.Fit(text, width))}
	detail := ""
	if s.Origin != "" {
		detail = "from " + host.EscapeLine(s.Origin)
	}
	if s.Version != "" {
		detail = strings.TrimPrefix(detail+", revision "+host.EscapeLine(s.Version), ", ")
	}
	if !s.NextTry.IsZero() {
		detail += fmt.Sprintf(", tried again in %d s", max(int(s.NextTry.Sub(m.opts.Now()).Seconds()), 0))
	}
	if detail != "" {
		out = append(out, m.theme.Dim.Render(style.Fit("    "+detail, width)))
	}
	if s.Err != nil {
		spans := []style.Span{{Text: host.EscapeLine(s.Err.Error()), Style: m.theme.Error}}
		lines := style.WrapSpans(spans, max(width-4, leastColumns))
		out = append(out, prefixed(lines[:min(len(lines), 4)], "    ", "")...)
	}
	return out
}

func (l *serverList) key(m *screen, msg tea.KeyPressMsg) {
	k := msg.String()
	switch {
	case m.keys.Is(k, style.Up):
		l.at = max(l.at-1, 0)
	case m.keys.Is(k, style.Down):
		l.at = min(l.at+1, max(len(m.servers)-1, 0))
	case m.keys.Is(k, style.Retry), m.keys.Is(k, style.Choose):
		if l.at >= len(m.servers) {
			return
		}
		name := m.servers[l.at].Name
		if err := m.host.Retry(name); err != nil {
			m.closeOverlay()
			m.complain("Server " + host.EscapeLine(name) + " was not started: " + host.EscapeLine(err.Error()) + ".")
			return
		}
		m.servers = m.host.Status()
	}
}

func (*serverList) paste(string) {}
