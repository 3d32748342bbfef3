package tui

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

// Bounds of what is pasted into the message as it is; longer texts have a mark in it.
const (
	pastedBytes = 2000
	pastedLines = 20
)

// mostLines is how high the message may become.
const mostLines = 8

// An editor is where a message is written.
type editor struct {
	area   textarea.Model
	pastes []paste
	// history are the messages of before, oldest first; at is the one that is shown, its
	// length for the draft.
	history []string
	at      int
	draft   string
}

// A paste is a text for which a mark stands in the message.
type paste struct{ mark, text string }

func newEditor(theme *style.Theme, keys *style.Keys) editor {
	area := textarea.New()
	area.ShowLineNumbers = false
	area.Prompt = "› "
	area.SetPromptFunc(2, func(info textarea.PromptInfo) string {
		if info.LineNumber == 0 {
			return "› "
		}
		return "  "
	})
	area.Placeholder = "Write a message; " + keys.Key(style.Help) + " lists the keys"
	area.DynamicHeight, area.MinHeight, area.MaxHeight = true, 1, mostLines
	area.CharLimit = 0
	area.MaxContentHeight = 10_000
	area.SetVirtualCursor(false)
	area.KeyMap.InsertNewline = key.NewBinding(key.WithKeys(keys.Action(style.NewLine).Keys...))
	area.KeyMap.Paste.SetEnabled(false) // the terminal pastes
	area.KeyMap.CopySelection.SetEnabled(false)
	e := editor{area: area}
	e.setTheme(theme)
	e.area.Focus()
	return e
}

// setTheme changes the colours.
func (e *editor) setTheme(theme *style.Theme) {
	plain := lipgloss.NewStyle()
	state := textarea.StyleState{
		Base: plain, Text: theme.Text, CursorLine: plain, EndOfBuffer: plain, Placeholder: theme.Dim, Prompt: theme.You,
		Selection: theme.Selected,
	}
	s := e.area.Styles()
	s.Focused, s.Blurred, s.Cursor.Blink, s.Cursor.Color = state, state, false, nil // the terminal's own cursor
	e.area.SetStyles(s)
}

// resize changes the width, and the height to which it may grow.
func (e *editor) resize(width, height int) {
	e.area.MaxHeight = max(1, min(mostLines, height/3))
	e.area.SetWidth(max(width, leastColumns))
}

// update takes a message of the terminal.
func (e *editor) update(msg tea.Msg) tea.Cmd {
	if p, ok := msg.(tea.PasteMsg); ok {
		e.paste(p.Content)
		return nil
	}
	var cmd tea.Cmd
	e.area, cmd = e.area.Update(msg)
	return cmd
}

// paste inserts a text: as it is if it is short and can be shown as it is, else a mark
// that stands for it.
func (e *editor) paste(text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	plain := len(text) <= pastedBytes && strings.Count(text, "\n") < pastedLines &&
		!strings.Contains(text, "\t") && host.Escape(text) == text
	if plain {
		e.area.InsertString(text)
		return
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	n := int64(utf8.RuneCountInString(text))
	what := "characters"
	if n == 1 {
		what = "character"
	}
	mark := fmt.Sprintf("[pasted %s %s]", ui.Grouped(n), what)
	same := func(p paste) bool { return p.mark == mark }
	for i := 2; slices.ContainsFunc(e.pastes, same); i++ {
		mark = fmt.Sprintf("[pasted %s %s, %d]", ui.Grouped(n), what, i)
	}
	e.pastes = append(e.pastes, paste{mark, text})
	e.area.InsertString(mark)
}

// text is the message, with what was pasted in the place of its marks.
func (e *editor) text() string {
	text := e.area.Value()
	if len(e.pastes) == 0 {
		return text
	}
	pairs := make([]string, 0, 2*len(e.pastes))
	for _, p := range e.pastes {
		pairs = append(pairs, p.mark, p.text)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// take returns the message and empties the editor.
func (e *editor) take() string {
	text := e.text()
	e.set("")
	e.at = len(e.history)
	return text
}

// set puts a text in the place of the message. A long one has a mark.
func (e *editor) set(text string) {
	e.area.Reset()
	e.pastes = nil
	if text != "" {
		e.paste(text)
	}
}

// remember takes messages that can be brought back.
func (e *editor) remember(list []string) {
	e.history = list
	e.at = len(list)
}

// step shows the message before or after the one that is shown, and reports whether there
// is one.
func (e *editor) step(by int) bool {
	to := e.at + by
	if to < 0 || to > len(e.history) {
		return false
	}
	if e.at == len(e.history) {
		e.draft = e.text()
	}
	e.at = to
	text := e.draft
	if to < len(e.history) {
		text = e.history[to]
	}
	e.set(text)
	return true
}

// firstLine and lastLine report whether the cursor is there.
func (e *editor) firstLine() bool { return e.area.Line() == 0 && e.area.LineInfo().RowOffset == 0 }

func (e *editor) lastLine() bool {
	info := e.area.LineInfo()
	return e.area.Line() == e.area.LineCount()-1 && info.RowOffset >= info.Height-1
}

// remove takes a text out of the message, where it stands first.
func (e *editor) remove(text string) {
	e.area.SetValue(strings.TrimSpace(strings.Replace(e.area.Value(), text, "", 1)))
}

// before is the line up to the cursor, if the cursor is on the only line.
func (e *editor) before() (text string, ok bool) {
	if e.area.LineCount() != 1 {
		return "", false
	}
	runes := []rune(e.area.Value())
	return string(runes[:min(e.area.Column(), len(runes))]), true
}

// replaceWord puts a text in the place of the last bytes before the cursor.
func (e *editor) replaceWord(bytes int, text string) {
	before, ok := e.before()
	if !ok || bytes > len(before) {
		return
	}
	rest := e.area.Value()[len(before):]
	head := before[:len(before)-bytes] + text
	e.area.SetValue(head + rest)
	e.area.SetCursorColumn(utf8.RuneCountInString(head))
}

// view draws it. cursor is nil without the focus.
func (e *editor) view() (lines []string, cursor *tea.Cursor) {
	return strings.Split(e.area.View(), "\n"), e.area.Cursor()
}
