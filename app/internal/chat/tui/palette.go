package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

// A lineInput is one line that is typed.
type lineInput struct{ text string }

// insert adds text, as one line that can be shown.
func (l *lineInput) insert(text string) {
	l.text += host.EscapeLine(strings.Join(strings.Fields(" "+text+" "), " "))
}

// key takes a key, and reports whether it changed the line.
func (l *lineInput) key(msg tea.KeyPressMsg) bool {
	switch k := msg.String(); {
	case k == "backspace":
		runes := []rune(l.text)
		l.text = string(runes[:max(len(runes)-1, 0)])
	case k == "ctrl+u":
		l.text = ""
	case msg.Text != "":
		l.text += host.EscapeLine(msg.Text)
	default:
		return false
	}
	return true
}

// An entry of the palette is something that can be done.
type paletteEntry struct {
	name, help string
	do         func(m *screen)
}

// A palette lists everything by name.
type palette struct {
	lineInput
	all   []paletteEntry
	found []int
	at    int
}

// newPalette lists what can be done now.
func newPalette(m *screen) *palette {
	p := &palette{}
	for _, g := range []style.Group{style.GroupAlways, style.GroupChat} {
		for _, a := range m.keys.Group(g) {
			if a.Name == style.Send || a.Name == style.Complete || a.Name == style.NewLine || a.Name == style.Palette || len(a.Keys) == 0 {
				continue
			}
			p.all = append(p.all, paletteEntry{a.Help, style.Show(a.Keys[0]), func(m *screen) { m.perform(a.Name) }})
		}
	}
	for _, c := range ui.CommandList() {
		name, rest, _ := strings.Cut(c.Usage, " ")
		if name != strings.ToLower(name) {
			continue
		}
		p.all = append(p.all, paletteEntry{"/" + c.Usage, c.Help, func(m *screen) {
			if rest == "" || strings.HasPrefix(rest, "[") && name != "title" && name != "cancel" {
				m.conv.follow = true
				m.commands.Run(m.base(), name)
				return
			}
			m.write("/" + name + " ")
		}})
	}
	for _, s := range m.commands.Servers() {
		p.all = append(p.all, paletteEntry{"/" + host.EscapeLine(s) + ":", "the prompts of the server", func(m *screen) { m.write("/" + s + ":") }})
		p.all = append(p.all, paletteEntry{"@" + host.EscapeLine(s) + ":", "the resources of the server", func(m *screen) { m.write("@" + s + ":") }})
	}
	p.filter()
	return p
}

// write begins a message, if none is begun; else it goes on with it.
func (m *screen) write(text string) {
	if strings.HasPrefix(text, "/") && strings.TrimSpace(m.editor.text()) != "" {
		m.complain("A message is begun. Send it, or take it away, before you type " + host.EscapeLine(text) + ".")
		return
	}
	m.editor.area.InsertString(text)
	m.complete()
}

// perform carries out an action by its name.
func (m *screen) perform(action string) {
	keys := m.keys.Action(action).Keys
	if len(keys) == 0 {
		return
	}
	switch action {
	case style.Quit:
		m.interrupt()
	case style.Question:
		if len(m.questions) == 0 {
			m.say("No question waits.")
			return
		}
		m.goToPanel()
	case style.Image:
		m.commands.Run(m.base(), "image")
	case style.EditorKey:
		m.externalEditor()
	case style.Fold:
		m.conv.fold(m.painter)
	case style.Previous:
		m.conv.markNext(m.painter, -1)
	case style.Next:
		m.conv.markNext(m.painter, 1)
	case style.Older:
		m.editor.step(-1)
	case style.Newer:
		m.editor.step(1)
	default:
		if !m.always(keys[0]) {
			m.scrollKey(keys[0])
		}
	}
}

// filter finds the entries that have all the words.
func (p *palette) filter() {
	words := strings.Fields(strings.ToLower(p.text))
	p.found = p.found[:0]
	for i, e := range p.all {
		text := strings.ToLower(e.name + " " + e.help)
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			p.found = append(p.found, i)
		}
	}
	p.at = 0
}

func (p *palette) view(m *screen, width, height int) ([]string, *tea.Cursor) {
	label := "Find: "
	out := []string{
		m.frameTitle(fmt.Sprintf("Everything by name (%d of %d)", len(p.found), len(p.all)), width),
		m.theme.Label.Render(label) + style.Fit(p.text, width-len(label)),
	}
	if len(p.found) == 0 {
		out = append(out, style.Fit("Nothing has these words.", width))
	}
	room := max(height-len(out), 1)
	from := max(0, min(p.at-room/2, len(p.found)-room))
	for i := from; i < min(from+room, len(p.found)); i++ {
		e := p.all[p.found[i]]
		line := style.Fit("  "+e.name, width)
		if left := width - style.Width(line) - 2; left >= leastColumns {
			line += "  " + style.Fit(e.help, left)
		}
		if i == p.at {
			out = append(out, m.theme.Selected.Render(style.Pad("▸"+line[1:], width)))
			continue
		}
		out = append(out, m.theme.Text.Render(line))
	}
	return out, tea.NewCursor(min(len(label)+style.Width(p.text), width-1), 1)
}

func (p *palette) key(m *screen, msg tea.KeyPressMsg) {
	k := msg.String()
	switch {
	case m.keys.Is(k, style.Up):
		p.at = max(p.at-1, 0)
	case m.keys.Is(k, style.Down):
		p.at = min(p.at+1, max(len(p.found)-1, 0))
	case m.keys.Is(k, style.Choose):
		if p.at < len(p.found) {
			do := p.all[p.found[p.at]].do
			m.closeOverlay()
			do(m)
		}
	case p.lineInput.key(msg):
		p.filter()
	}
}

func (p *palette) scroll(by int) { p.at = max(0, min(p.at+by, len(p.found)-1)) }

func (p *palette) paste(text string) {
	p.insert(text)
	p.filter()
}
