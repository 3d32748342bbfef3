package panel

import (
	"errors"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// value is what an edit changes: what was edited before, or what was asked.
func (p *Panel) value() (mcp.RawValue, error) {
	if p.edited != nil {
		return p.edited, nil
	}
	return ui.Editable(p.question)
}

// editButtons are the buttons for editing in the question itself.
func (p *Panel) editButtons(c *ui.Choice) []button {
	if p.edited == nil {
		return []button{p.button(style.EditAnswer, short(c.Label), c.Label, then(p.edit))}
	}
	return []button{
		p.button(style.EditAnswer, "edit on", "edit on", then(p.edit)),
		p.button(style.Undo, "undo", "back to what was asked", then(p.undo)),
	}
}

// listButtons are those of a list of parts or models.
func (p *Panel) listButtons() []button {
	if p.mode == modeModels {
		return []button{p.back(modeChoose)}
	}
	list := []button{p.button(style.Insert, "insert", "insert a value, or put a whole JSON object in the place of all", then(func() { p.editPart(-1) }))}
	if p.opts.Edit != nil {
		list = append(list, p.button(style.Whole, "in your editor", p.opts.Keys.Action(style.Whole).Help, p.openEditor))
	}
	back := p.back(modeChoose)
	if p.edited != nil {
		back.label, back.long = "done", "back to the question, to look at all of it and answer"
	}
	return append(list, back)
}

// edit goes to the list of what can be edited.
func (p *Panel) edit() {
	raw, err := p.value()
	if err != nil {
		p.tell("It cannot be edited: %s.", host.EscapeLine(err.Error()))
		return
	}
	p.form = newForm(raw)
	p.enter(modeParts)
}

// undo forgets what was edited.
func (p *Panel) undo() {
	p.edited = nil
	p.enter(modeChoose)
	p.tell("What was asked counts again.")
}

// longPart is how long values are that are edited in a line, in bytes.
const longPart = 8 << 10

// spelling is how a value is edited on a line: a text without quotes, unless it could then not
// be told from another; all else as JSON.
func spelling(value mcp.RawValue) string {
	var text string
	if value[0] == '"' && strictjson.Unmarshal(value, &text) == nil && text == strings.TrimSpace(text) &&
		!strings.HasPrefix(text, `"`) && oneLine(host.EscapeLine(text)) == text {
		return text
	}
	return oneLine(host.Indent(value))
}

// errQuotes says that a text looks like JSON and is none.
var errQuotes = errors.New(`what begins with a quotation mark must be a JSON text, with \" for quotation marks in it`)

// editPart begins to edit one part on a line; -1 begins to insert one.
func (p *Panel) editPart(i int) {
	if i >= 0 && len(p.form.parts[i].value) > longPart {
		how := "Use " + p.keyOf(style.Whole) + " to edit it in your editor."
		if p.opts.Edit == nil {
			how = "With an editor named in $EDITOR it can be edited whole."
		}
		p.tell("This value has %s bytes, which is too long for a line. %s", number(len(p.form.parts[i].value)), how)
		return
	}
	p.input = input{}
	if i >= 0 {
		p.input.set(spelling(p.form.parts[i].value))
	}
	p.enter(modeValue)
	p.part, p.cursor, p.follow = i, i, true
}

// prompt says what is typed into the line of the mode, escaped; empty: there is none.
func (p *Panel) prompt() string {
	switch {
	case p.mode == modeReason:
		if strings.HasSuffix(p.refusal().Label, "page") {
			return "Your reason, which the page is told (may be empty)"
		}
		return "Your reason, which the model is told (may be empty)"
	case p.mode != modeValue:
		return ""
	case p.part < 0:
		return "NAME=VALUE, /A/B=VALUE for a part of a part, or a whole JSON object"
	}
	return "New value of " + p.form.parts[p.part].label
}

// changeValue takes the line as the new value.
func (p *Panel) changeValue() {
	old, err := p.value()
	var edited mcp.RawValue
	switch text := strings.TrimSpace(p.input.text); {
	case err != nil:
	case p.part >= 0 && strings.HasPrefix(text, `"`) && strictjson.Valid([]byte(text)) != nil:
		err = errQuotes
	case p.part < 0 || p.form.parts[p.part].pointer == "":
		edited, err = ui.Edit(old, p.input.text)
	default:
		edited, err = ui.EditAt(old, p.form.parts[p.part].pointer, p.input.text)
	}
	if err != nil {
		p.tell("Nothing was changed: %s.", host.EscapeLine(err.Error()))
		return
	}
	if p.setEdited(edited) {
		at := p.part
		p.edit()
		p.cursor, p.follow = min(at, len(p.form.parts)-1), true
		p.tell("Changed. Go on, or press %s to look at all of it and answer.", p.keyOf(style.Back))
	}
}

// setEdited puts a value in the place of what was asked, and reports whether it differs
// from what counted before. What is as it was asked is not edited.
func (p *Panel) setEdited(edited mcp.RawValue) bool {
	before, err := p.value()
	if err != nil || strictjson.Equal(before, edited) {
		p.tell("That changes nothing.")
		return false
	}
	p.edited = append(mcp.RawValue{}, edited...)
	if asked, err := ui.Editable(p.question); err == nil && strictjson.Equal(asked, edited) {
		p.edited = nil
	}
	p.form = newForm(edited)
	p.full, p.flipped, p.different, p.seen[stageEdited] = false, false, false, false
	return true
}

// openEditor opens the whole value in the person's editor.
func (p *Panel) openEditor() (Outcome, tea.Cmd) {
	raw, err := p.value()
	if err != nil {
		p.tell("It cannot be edited: %s.", host.EscapeLine(err.Error()))
		return Outcome{}, nil
	}
	p.editing = true
	return Outcome{}, p.opts.Edit(host.Indent(raw) + "\n")
}

// maxError bounds what is shown of an error, in bytes.
const maxError = 600

// takeEdited takes what comes back from the editor, if it was opened for this question.
// Keys that were typed meanwhile are dropped.
func (p *Panel) takeEdited(msg EditedMsg) {
	if !p.editing {
		return
	}
	p.editing = false
	p.Focus()
	if msg.Err != nil {
		text, _ := cut(msg.Err.Error(), maxError)
		p.tell("The editor did not work: %s.", host.EscapeLine(text))
		return
	}
	edited := mcp.RawValue(strings.TrimSpace(msg.Text))
	if _, err := strictjson.ParseObject(edited); err != nil {
		p.tell("Nothing was changed: the text is no JSON object: %s.", host.EscapeLine(err.Error()))
		return
	}
	changed := p.setEdited(edited)
	p.enter(modeChoose)
	if changed {
		p.tell("This is what you edited. Look at it, and answer.")
	} else {
		p.tell("That changes nothing.")
	}
}

// partsBody lists what can be edited.
func (p *Panel) partsBody(b *body) {
	b.sentence(toneTitle, "Go to a value with the arrow keys and change it with Enter:")
	for i := range p.form.parts {
		b.item = int32(i)
		b.part(&p.form.parts[i], shortLimits)
	}
	b.item = noItem
	if p.form.more {
		b.sentence(toneWarning, "There are more values, which can be changed in an editor only.")
	}
}
