package tui

import (
	"context"
	"strings"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

// A pastedFile is a file whose path was pasted into the message. It is offered as an
// attachment; nothing of it is read before the person says so.
type pastedFile struct {
	text string // that was pasted
	path string
	size int64
}

// pastedMsg says that a pasted text is the path of a file.
type pastedMsg struct{ file *pastedFile }

// lookAtPaste finds out beside the screen whether a pasted text is the path of a file.
func (m *screen) lookAtPaste(text string) {
	m.pasted = nil
	if text == "" && m.opts.Image != nil { // so some terminals paste what is no text
		m.say("Nothing that is text was pasted. " + m.keys.Key(style.Image) + " attaches the image of the clipboard, if there is one.")
	}
	if !ui.IsPastedPath(text) {
		return
	}
	m.run(func(context.Context) any {
		path, size, ok := ui.PastedFile(text)
		if !ok {
			return pastedMsg{}
		}
		return pastedMsg{&pastedFile{strings.TrimSpace(text), path, size}}
	})
}

// offered is the file that can be attached: its path still stands in the message. None is
// while a question waits: the key is the one that goes to the question.
func (m *screen) offered() *pastedFile {
	if f := m.pasted; f != nil && !strings.Contains(m.editor.area.Value(), f.text) {
		m.pasted = nil
	}
	if len(m.questions) > 0 {
		return nil
	}
	return m.pasted
}

// offerKey takes a key for the file that is offered.
func (m *screen) offerKey(k string) bool {
	f := m.offered()
	switch {
	case f == nil || !m.offerShown:
		return false
	case m.keys.Is(k, style.Complete):
		m.pasted = nil
		m.editor.remove(f.text)
		m.commands.AttachFile(m.base(), f.path)
	case m.keys.Is(k, style.Close):
		m.pasted = nil
	default:
		return false
	}
	return true
}

// offerView says what can be done with the file, on one line, or is empty.
func (m *screen) offerView(width int) string {
	f := m.offered()
	if f == nil {
		return ""
	}
	name := f.path[strings.LastIndexAny(f.path, `/\`)+1:]
	text := m.keys.Key(style.Complete) + " attaches the file " + host.EscapeLine(name) + ", " + size(int(f.size)) +
		"; " + m.keys.Key(style.Close) + " leaves its path as text"
	return m.theme.Selected.Render(style.Pad(style.Fit(text, width), width))
}
