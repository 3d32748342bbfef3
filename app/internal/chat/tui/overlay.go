package tui

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
)

// An overlay is a view that covers the conversation.
type overlay interface {
	// view draws it within a width and height.
	view(m *screen, width, height int) (lines []string, cursor *tea.Cursor)
	// key takes a key. What has been chosen is carried out by the screen.
	key(m *screen, msg tea.KeyPressMsg)
	paste(text string)
	// scroll moves by lines or entries, upwards if they are negative.
	scroll(by int)
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
	if !m.keys.Is(msg.String(), style.Close) {
		m.overlay.key(m, msg)
		return
	}
	if d, ok := m.overlay.(*serverDetails); ok {
		m.overlay = d.list
		return
	}
	m.closeOverlay()
}

// An overlayMsg brings a view what it waits for, if it is still shown.
type overlayMsg struct {
	of  overlay
	set func()
}

// show runs f beside the screen, for a view; what f returns is then done in the screen.
func (m *screen) show(o overlay, f func(ctx context.Context) (set func())) {
	m.run(func(ctx context.Context) any { return overlayMsg{o, f(ctx)} })
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
		p.scroll(-1)
	case m.keys.Is(k, style.Down):
		p.scroll(1)
	case m.keys.Is(k, style.PageUp):
		p.scroll(1 - p.shown)
	case m.keys.Is(k, style.PageDown):
		p.scroll(p.shown - 1)
	case m.keys.Is(k, style.Top):
		p.scroll(-p.lines)
	case m.keys.Is(k, style.Bottom), m.keys.Is(k, style.End):
		p.scroll(p.lines)
	}
}

func (p *page) scroll(by int) { p.top = max(0, min(p.top+by, p.lines-p.shown)) }

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
