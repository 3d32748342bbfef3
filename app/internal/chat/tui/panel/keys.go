package panel

import (
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
)

// keyName is the name of a key, or empty for several characters at once, which are a text.
func keyName(msg tea.KeyPressMsg) string {
	if utf8.RuneCountInString(msg.Text) > 1 {
		return ""
	}
	return msg.String()
}

// isText reports whether a key types a character.
func isText(key string) bool { return key == "space" || utf8.RuneCountInString(key) == 1 }

// typing reports whether keys go into a line of text.
func (p *Panel) typing() bool {
	switch p.mode {
	case modeReason, modeValue:
		return p.focus < 0
	case modeForm:
		return p.focus < 0 && p.cursor >= 0 && p.fields[p.cursor].typed()
	default:
		return false
	}
}

// inOptions reports whether keys are for a field with options.
func (p *Panel) inOptions() bool {
	return p.mode == modeForm && p.focus < 0 && p.cursor >= 0 && !p.fields[p.cursor].typed()
}

// takesLetters reports whether letters are for a line or a field: they press no button then.
func (p *Panel) takesLetters() bool { return p.typing() || p.inOptions() }

// line is the line that is typed into.
func (p *Panel) line() *input {
	if p.mode == modeForm {
		return &p.fields[p.cursor].input
	}
	return &p.input
}

// keyOf is the key of an action as it is shown. Where letters are typed, it is one that
// types none, if there is one.
func (p *Panel) keyOf(action string) string {
	for _, key := range p.opts.Keys.Action(action).Keys {
		if !p.takesLetters() || !isText(key) {
			return style.Show(key)
		}
	}
	return ""
}

// key takes a key. Those of a text come first while one is typed.
func (p *Panel) key(msg tea.KeyPressMsg) (Outcome, tea.Cmd) {
	name := keyName(msg)
	typing, letters := p.typing(), p.takesLetters()
	is := func(action string) bool {
		return name != "" && (!letters || !isText(name)) && p.opts.Keys.Is(name, action)
	}
	switch {
	case is(style.Aside):
		return Outcome{Aside: true}, nil
	case is(style.NextField):
		p.move(1)
	case is(style.PrevField):
		p.move(-1)
	case is(style.PageUp):
		p.scroll(-max(p.page-1, 1))
	case is(style.PageDown):
		p.scroll(max(p.page-1, 1))
	case is(style.Top):
		p.scroll(-p.length)
	case is(style.Bottom):
		p.toEnd()
	case is(style.Up):
		p.vertical(-1)
	case is(style.Down):
		p.vertical(1)
	case typing && msg.Text != "":
		p.typed(msg.Text)
	case is(style.Press):
		return p.pressed(msg.IsRepeat)
	case typing && p.line().key(msg):
		p.message = ""
		p.changed()
	case msg.IsRepeat: // a key that is held down decides nothing
	default:
		return p.shortcut(name)
	}
	return Outcome{}, nil
}

// shortcut takes the key of a button, of an entry of a list, or an arrow between buttons.
func (p *Panel) shortcut(name string) (Outcome, tea.Cmd) {
	if p.inOptions() && isText(name) {
		p.fields[p.cursor].letter(name)
		p.changed()
		return Outcome{}, nil
	}
	if name == "" || p.typing() && isText(name) {
		return Outcome{}, nil
	}
	list := p.buttons()
	for _, key := range []string{name, strings.ToLower(name)} { // capitals are taken as small letters
		i := slices.IndexFunc(list, func(b button) bool {
			if b.action == "" {
				return b.key != "" && b.key == key
			}
			return b.action != style.Press && p.opts.Keys.Is(key, b.action)
		})
		if i >= 0 {
			p.message = ""
			return list[i].press()
		}
	}
	switch {
	case name == "home":
		p.scroll(-p.length)
	case p.opts.Keys.Is(name, style.End):
		p.toEnd()
	case name == "left":
		p.moveButton(-1, len(list))
	case name == "right":
		p.moveButton(1, len(list))
	case name == "space" && p.cursor >= 0 && p.focus < 0 && p.mode == modeChoose && p.items() > 0:
		p.pick(p.cursor)
	case len(name) == 1 && name[0] >= '1' && int(name[0]-'0') <= p.items() && name[0] <= '9' && p.mode != modeOffers:
		p.cursor, p.focus, p.follow = int(name[0]-'1'), -1, true
		return p.chooseItem(p.cursor)
	}
	return Outcome{}, nil
}

// pressed takes the key that presses what has the focus. With the focus on nothing,
// nothing happens.
func (p *Panel) pressed(repeated bool) (Outcome, tea.Cmd) {
	if repeated {
		return Outcome{}, nil
	}
	list := p.buttons()
	switch {
	case p.focus >= 0 && p.focus < len(list):
		p.message = ""
		return list[p.focus].press()
	case p.mode == modeForm:
		if p.cursor >= 0 && p.leave() {
			p.cursor = min(p.cursor+1, len(p.fields)-1)
			p.follow = true
			p.changed()
		}
	case p.typing():
		return list[0].press()
	case p.cursor >= 0 && p.cursor < p.items():
		return p.chooseItem(p.cursor)
	}
	return Outcome{}, nil
}

// typed adds text to the line.
func (p *Panel) typed(text string) {
	p.message = ""
	if !p.line().insert(text) {
		p.tell("The line is full: it holds at most %s bytes.", number(maxInput))
	}
	if p.mode == modeForm {
		p.fields[p.cursor].problem = ""
	}
	p.changed()
}

// paste takes a pasted text: it goes into a line, and never answers.
func (p *Panel) paste(text string) {
	if p.typing() {
		p.typed(text)
		return
	}
	p.tell("What you pasted is not taken for an answer. Press a key.")
}

// move goes to the next field or button, or the one before.
func (p *Panel) move(by int) {
	list := p.buttons()
	if p.mode == modeForm && p.focus < 0 {
		p.leave()
		if next := p.cursor + by; next >= 0 && next < len(p.fields) {
			p.cursor, p.follow = next, true
			p.changed()
			return
		}
	}
	from := p.focus
	p.moveButton(by, len(list))
	if p.mode == modeForm && len(p.fields) > 0 && (by > 0 && from == len(list)-1 || by < 0 && from == 0) {
		p.focus, p.cursor, p.follow = -1, 0, true
		if by < 0 {
			p.cursor = len(p.fields) - 1
		}
	}
	p.changed()
}

// moveButton moves the focus among the buttons.
func (p *Panel) moveButton(by, n int) {
	switch {
	case n == 0:
		return
	case p.focus < 0 && by < 0:
		p.focus = n - 1
	case p.prompt() != "" && (p.focus == 0 && by < 0 || p.focus == n-1 && by > 0):
		p.focus = -1 // back to the line that is typed
	default:
		p.focus = (p.focus + by + n) % n
	}
	p.cursor = -1
	p.message = ""
}

// vertical moves in the list of the mode, or scrolls where there is none.
func (p *Panel) vertical(by int) {
	switch n := p.items(); {
	case p.mode == modeForm:
		p.verticalForm(by)
	case n > 0:
		if p.cursor < 0 && by < 0 {
			p.cursor = n
		}
		p.cursor = min(max(p.cursor+by, 0), n-1)
		p.focus, p.follow, p.message = -1, true, ""
	default:
		p.scroll(by)
	}
}
