package panel

import (
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// fill goes to the fields of a form, or on to the review if it has none.
func (p *Panel) fill() {
	if len(p.fields) == 0 {
		p.review()
		return
	}
	p.enter(modeForm)
	p.cursor, p.follow = 0, true
}

// leave checks the field at the cursor, if something is in it, and reports whether it fits.
func (p *Panel) leave() bool {
	if p.cursor < 0 || p.cursor >= len(p.fields) {
		return true
	}
	f := &p.fields[p.cursor]
	f.problem = ""
	if f.typed() && strings.TrimSpace(f.input.text) == "" {
		return true
	}
	p.changed()
	_, err := f.value()
	f.problem = problemOf(err)
	return err == nil
}

func problemOf(err error) string {
	if err == nil {
		return ""
	}
	return host.EscapeLine(err.Error())
}

// review checks all fields and goes to what would be sent, or to the first field that does
// not fit.
func (p *Panel) review() {
	p.seen[stageReview] = false
	values := make(map[string]mcp.RawValue)
	wrong, first := 0, -1
	for i := range p.fields {
		f := &p.fields[i]
		value, err := f.value()
		if f.problem = problemOf(err); err != nil {
			if wrong++; first < 0 {
				first = i
			}
			continue
		}
		if value != nil {
			values[f.field.Name] = value
		}
	}
	p.changed()
	if wrong > 0 {
		p.enter(modeForm)
		p.cursor, p.follow = first, true
		p.tell("%s", map[bool]string{true: "One field needs another value.", false: number(wrong) + " fields need another value."}[wrong == 1])
		return
	}
	if err := p.words.Form.Check(values); err != nil {
		p.tell("%s.", host.EscapeLine(err.Error()))
		return
	}
	p.values = values
	p.enter(modeReview)
}

// verticalForm moves between options, and between fields at the ends of a list of options.
func (p *Panel) verticalForm(by int) {
	if p.cursor < 0 { // the focus is on a button
		if by < 0 {
			p.focus, p.cursor, p.follow = -1, len(p.fields)-1, true
			p.changed()
		}
		return
	}
	f := &p.fields[p.cursor]
	if next := f.option + by; !f.typed() && next >= 0 && next < len(f.options) {
		f.option, p.follow = next, true
		p.changed()
		return
	}
	p.leave()
	p.cursor, p.follow = min(max(p.cursor+by, 0), len(p.fields)-1), true
	p.changed()
}

// preview lists the fields of a form in the question itself.
func (p *Panel) preview(b *body) {
	for i := range p.fields {
		text := p.fields[i].field.Label
		if p.fields[i].field.Required {
			text += " (required)"
		}
		b.labelled(untrusted(fmt.Sprintf("field %d of %d", i+1, len(p.fields)))+": ", toneUntrusted, text)
	}
}

// formBody shows the fields with what is filled in.
func (p *Panel) formBody(b *body) {
	for i := range p.fields {
		f := &p.fields[i]
		b.item = int32(i)
		here := p.cursor == i && p.focus < 0
		label := fmt.Sprintf("field %d of %d", i+1, len(p.fields))
		if f.field.Required {
			label += ", required"
		}
		b.labelled(untrusted(label)+": ", toneUntrusted, f.field.Label)
		if f.field.Help != "" {
			b.labelled(untrusted("what to fill in")+": ", toneUntrusted, f.field.Help)
		}
		if hint := hintOf(f); hint != "" {
			b.sentence(toneDim, hint)
		}
		if f.field.Secret {
			b.sentence(toneWarning, "WARNING: this looks like a secret; no server should ask for one here")
		}
		if f.typed() {
			b.typedField(f, here)
		} else {
			b.optionsField(f, here)
		}
		if f.problem != "" {
			b.sentence(toneWarning, "Wrong: "+f.problem)
		}
	}
	b.item = noItem
}

// hintOf says what fits a field, and what happens if it is left as it is.
func hintOf(f *fieldState) string {
	var parts []string
	if fits := f.field.Fits(); fits != "" {
		parts = append(parts, fits)
	}
	switch {
	case f.typed() && f.field.Default != nil:
		parts = append(parts, "empty for "+f.field.DefaultText())
	case !f.field.Required:
		parts = append(parts, "may be left out")
	}
	return strings.Join(parts, "; ")
}

// typedField shows a line with what was typed.
func (b *body) typedField(f *fieldState, here bool) {
	const begin = "> "
	room := b.columns - len(begin)
	if here {
		b.add(row{head: begin, text: f.input.view(room), textTone: toneInput})
		return
	}
	b.add(row{head: begin, text: head(host.EscapeLine(f.input.text), room), textTone: toneInput})
}

// shownOptions is how many options of the field with the focus are shown at once.
const shownOptions = 9

// optionsField shows options: those near the cursor, or the chosen ones.
func (b *body) optionsField(f *fieldState, here bool) {
	if !here {
		var names []string
		for i, yes := range f.chosen {
			if yes {
				names = append(names, f.options[i].Title)
			}
		}
		text := "nothing is chosen"
		if len(names) > 0 {
			text = strings.Join(names, ", ")
		}
		b.labelled("> ", toneInput, text)
		return
	}
	from := min(max(f.option-shownOptions/2, 0), max(len(f.options)-shownOptions, 0))
	to := min(from+shownOptions, len(f.options))
	open, closed := "(", ")"
	if f.field.Kind == ui.KindChoices {
		open, closed = "[", "]"
	}
	for i := from; i < to; i++ {
		at, chosen := "  ", " "
		if i == f.option {
			at = "> "
		}
		if f.chosen[i] {
			chosen = "x"
		}
		b.labelled(at+open+chosen+closed+" ", toneUntrusted, f.options[i].Title)
	}
	if to-from < len(f.options) {
		b.sentence(toneDim, fmt.Sprintf("options %s-%s of %s", number(from+1), number(to), number(len(f.options))))
	}
}

// reviewBody shows what would be sent.
//
// spec 2026-07-28, client/elicitation: clients SHOULD "allow users to review and modify
// their responses before sending".
func (p *Panel) reviewBody(b *body) {
	b.sentence(toneTitle, "This would be sent to the server:")
	for i := range p.fields {
		f := p.fields[i].field
		value, given := p.values[f.Name]
		if !given {
			b.labelled(partLabel("/"+pointerEscaper.Replace(f.Name))+": ", toneDim, "left out")
			continue
		}
		b.labelled(partLabel("/"+pointerEscaper.Replace(f.Name))+": ", toneInput, jsonText(value))
	}
}
