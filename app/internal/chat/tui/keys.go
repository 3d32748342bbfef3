package tui

import (
	"errors"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/panel"
	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/host"
)

// key takes a key: those that count everywhere first, then those of what is visible.
func (m *screen) key(msg tea.KeyPressMsg) {
	k := msg.String()
	if m.keys.Is(k, style.Quit) {
		m.interrupt()
		return
	}
	m.warned = false
	switch {
	case m.always(k):
	case m.overlay != nil:
		m.overlayKey(msg)
	case m.search != nil:
		m.searchKey(msg)
	case m.inPanel:
		m.toPanel(msg)
	default:
		m.chatKey(msg)
	}
}

// always carries out a key that counts everywhere.
func (m *screen) always(k string) bool {
	switch {
	case m.keys.Is(k, style.Help):
		m.toggle(newHelp(m))
	case m.keys.Is(k, style.Palette):
		m.toggle(newPalette(m))
	case m.keys.Is(k, style.Servers):
		m.servers = m.host.Status()
		m.toggle(&serverList{})
	case m.keys.Is(k, style.Sessions):
		m.toggleList(&sessionList{})
	case m.keys.Is(k, style.Budget):
		m.toggle(&budgetList{})
	case m.keys.Is(k, style.Grants):
		m.toggleList(&grantList{})
	case m.keys.Is(k, style.Search):
		m.overlay = nil
		m.beginSearch()
	case m.keys.Is(k, style.Redraw):
		m.conv.allChanged()
		m.do(tea.ClearScreen)
	case m.keys.Is(k, style.Suspend):
		m.do(func() tea.Msg { return outsideMsg{func() tea.Msg { return suspendedMsg{suspend()} }} })
	default:
		return false
	}
	return true
}

// chatKey takes a key while a message is written.
func (m *screen) chatKey(msg tea.KeyPressMsg) {
	k := msg.String()
	is := func(action string) bool { return m.keys.Is(k, action) }
	switch {
	case m.choosing(k), m.offerKey(k):
	case is(style.Question) && len(m.questions) > 0:
		m.goToPanel()
	case is(style.Complete):
		m.completion.closed = ""
		m.complete()
	case is(style.Send):
		m.submit()
	case is(style.Fold):
		if !m.conv.fold(m.painter) {
			m.say("There is nothing to open or fold yet.")
		}
	case is(style.Previous):
		m.conv.markNext(m.painter, -1)
	case is(style.Next):
		m.conv.markNext(m.painter, 1)
	case is(style.Image):
		m.commands.Run(m.base(), "image")
	case is(style.EditorKey):
		m.externalEditor()
	case is(style.Older) && m.editor.firstLine():
		m.editor.step(-1)
	case is(style.Newer) && m.editor.lastLine():
		m.editor.step(1)
	case m.scrollKey(k):
	default:
		m.do(m.editor.update(msg))
		m.complete()
	}
}

// scrollKey moves in the conversation.
func (m *screen) scrollKey(k string) bool {
	page := max(m.conv.height-2, 1)
	switch {
	case m.keys.Is(k, style.PageUp):
		m.conv.scroll(m.painter, -page)
	case m.keys.Is(k, style.PageDown):
		m.conv.scroll(m.painter, page)
	case m.keys.Is(k, style.Top):
		m.conv.begin()
	case m.keys.Is(k, style.Bottom):
		m.conv.setMark(-1)
		m.conv.follow = true
	default:
		return false
	}
	return true
}

// choosing takes a key for the list of completions, if there is one.
func (m *screen) choosing(k string) bool {
	c := &m.completion
	if len(c.choices) == 0 {
		return false
	}
	switch {
	case m.keys.Is(k, style.Complete):
		m.accept()
	case m.keys.Is(k, style.Up):
		c.at = (c.at + len(c.choices) - 1) % len(c.choices)
	case m.keys.Is(k, style.Down):
		c.at = (c.at + 1) % len(c.choices)
	case m.keys.Is(k, style.Close):
		c.closed, _ = m.editor.before()
		c.choices = nil
	default:
		return false
	}
	return true
}

// paste takes what was pasted.
func (m *screen) paste(msg tea.PasteMsg) {
	switch {
	case m.overlay != nil:
		m.overlay.paste(msg.Content)
	case m.search != nil:
		m.search.insert(msg.Content)
	case m.inPanel:
		m.toPanel(msg)
	default:
		m.do(m.editor.update(msg))
		m.complete()
		m.lookAtPaste(msg.Content)
	}
}

// submit sends the message, or carries out the command.
func (m *screen) submit() {
	text := m.editor.text()
	if strings.TrimSpace(text) == "" {
		return
	}
	command, isCommand := strings.CutPrefix(text, "/")
	isCommand = isCommand && !strings.HasPrefix(command, "/")
	if m.task != nil && !isCommand {
		m.complain("This is still under way: " + m.task.what + ". The message is not sent yet.")
		return
	}
	m.drafted = m.editor.take()
	m.completion.choices, m.completion.closed = nil, ""
	m.conv.follow = true
	ctx := m.base()
	if isCommand {
		m.conv.add(&remark{text: "/" + host.EscapeLine(style.Fit(command, 200))}, false)
		m.commands.Run(ctx, command)
		return
	}
	m.commands.Message(ctx, text)
}

// errNoEditor says that there is no editor.
var errNoEditor = errors.New("no editor is configured: set EDITOR or VISUAL")

// An outsideMsg asks for something that has the terminal: the screen is left, and shown again
// afterwards. It takes the message that comes of it.
type outsideMsg struct{ run func() tea.Msg }

// editorEnd is how long after the end of an editor an interrupt may be the one that ended it.
const editorEnd = 100 * time.Millisecond

// inEditor opens a text in the person's editor.
func (m *screen) inEditor(text string, done func(text string, err error) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		if m.opts.Edit == nil {
			return done("", errNoEditor)
		}
		return outsideMsg{func() tea.Msg { return done(m.opts.Edit(m.base(), text)) }}
	}
}

// runOutside runs that for which the screen was left.
func (m *screen) runOutside() {
	m.away.Store(true)
	msg := m.outside.run()
	m.returned = m.opts.Now()
	m.away.Store(false)
	m.outside, m.spinner = nil, false
	_, m.resume = m.Update(msg)
}

// externalEditor opens the message in the person's editor.
func (m *screen) externalEditor() {
	m.do(m.inEditor(m.editor.text(), func(text string, err error) tea.Msg { return draftMsg{text, err} }))
}

// edited takes the message from the person's editor.
func (m *screen) edited(msg draftMsg) {
	if msg.err != nil {
		m.complain("The message was not edited: " + host.EscapeLine(msg.err.Error()) + ".")
		return
	}
	m.editor.set(strings.TrimRight(msg.text, "\n"))
}

// panelEditor opens a text of the panel in the person's editor.
func (m *screen) panelEditor() func(text string) tea.Cmd {
	if m.opts.Edit == nil {
		return nil
	}
	return func(text string) tea.Cmd {
		return m.inEditor(text, func(text string, err error) tea.Msg { return panel.EditedMsg{Text: text, Err: err} })
	}
}
