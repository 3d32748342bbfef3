package panel

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

// A button is something that can be done now, by its key or with the focus on it.
type button struct {
	// action is the one whose keys press it, of app/internal/chat/tui/style, or empty.
	action string
	// key is what the button shows as its key, or empty. Without an action, it is the key.
	key string
	// label says in a few words what it does, and long in full.
	label, long string
	press       func() (Outcome, tea.Cmd)
}

// short is the beginning of a label: up to the first comma, colon or semicolon.
func short(label string) string {
	if i := strings.IndexAny(label, ",:;"); i > 0 {
		return label[:i]
	}
	return label
}

// then makes a press of something that decides nothing.
func then(do func()) func() (Outcome, tea.Cmd) {
	return func() (Outcome, tea.Cmd) {
		do()
		return Outcome{}, nil
	}
}

// buttons are what can be done now, in the order to show them.
func (p *Panel) buttons() []button {
	switch p.mode {
	case modeChoose:
		return p.choices()
	case modeOffers:
		return p.offerButtons()
	case modeReason:
		c := p.refusal()
		return []button{
			p.button(style.Press, short(c.Label), c.Label, p.refuse(c)),
			p.back(modeChoose),
		}
	case modeModels, modeParts:
		return p.listButtons()
	case modeValue:
		return []button{p.button(style.Press, "change it", "put this value in the place of the old one", then(p.changeValue)), p.back(modeParts)}
	case modeForm:
		list := []button{p.button("", "review", "look at what would be sent, and send it", then(p.review))}
		return append(append(list, p.refusals()...), p.back(modeChoose))
	case modeReview:
		send := p.button(style.Approve, "send", "send this to the server", func() (Outcome, tea.Cmd) {
			if !p.mayApprove() {
				return Outcome{}, nil
			}
			return p.decide(host.Answer{Action: host.Approve, Values: p.values}), nil
		})
		return append(append([]button{send}, p.refusals()...), p.back(modeForm))
	}
	return nil
}

// button makes a button of an action.
func (p *Panel) button(action, label, long string, press func() (Outcome, tea.Cmd)) button {
	b := button{action: action, label: label, long: long, press: press}
	if action != "" {
		b.key = p.keyOf(action)
	}
	return b
}

// back is the button to another mode.
func (p *Panel) back(to mode) button {
	return p.button(style.Back, "back", "go back without deciding anything", then(func() { p.enter(to) }))
}

// refusal is the choice that says no.
func (p *Panel) refusal() *ui.Choice {
	for i := range p.words.Choices {
		if p.words.Choices[i].Answer.Action == host.Refuse {
			return &p.words.Choices[i]
		}
	}
	return &ui.Choice{Label: "no", Answer: host.Answer{Action: host.Refuse}}
}

// offered are the choices that are grants.
func (p *Panel) offered() []ui.Choice {
	var list []ui.Choice
	for _, c := range p.words.Choices {
		if c.Answer.Offer > 0 {
			list = append(list, c)
		}
	}
	return list
}

// choices are the buttons of the question itself.
func (p *Panel) choices() []button {
	var list []button
	remember := false
	for i := range p.words.Choices {
		c := &p.words.Choices[i]
		switch {
		case c.Answer.Offer > 0:
			if !remember && p.edited == nil { // what was edited is for this time only
				list = append(list, p.button(style.Remember, "remember", p.opts.Keys.Action(style.Remember).Help, then(p.remember)))
			}
			remember = true
		case c.Needs == ui.NeedEdit:
			list = append(list, p.editButtons(c)...)
		case c.Needs == ui.NeedModel:
			list = append(list, p.button(style.ChooseModel, short(c.Label), c.Label, then(func() { p.enter(modeModels) })))
		case c.Answer.Action == host.Approve:
			list = append(list, p.approval(c))
		case c.Answer.Action == host.Each:
			list = append(list, p.button(style.Each, short(c.Label), c.Label, p.answers(c.Answer)))
		}
	}
	if p.question.Kind == host.QuestionRoots {
		list = append(list, p.button(style.All, "all", "pick all directories, or none", then(p.pickAll)))
	}
	toggle := func(on bool, more, less string) string {
		if on {
			return less
		}
		return more
	}
	if p.hasDifference() {
		list = append(list, p.button(style.Difference, toggle(p.different, "difference", "question"), p.opts.Keys.Action(style.Difference).Help, then(p.showDifference)))
	}
	if p.hasValues() {
		list = append(list, p.button(style.Raw, toggle(p.raw(), "JSON", "form"), p.opts.Keys.Action(style.Raw).Help, then(p.showRaw)))
	}
	if p.cut || p.hasValues() {
		list = append(list, p.button(style.Full, toggle(p.full, "full", "less"), p.opts.Keys.Action(style.Full).Help, then(p.showFull)))
	}
	return append(list, p.refusals()...)
}

// refusals are the buttons that say no.
func (p *Panel) refusals() []button {
	var list []button
	for i := range p.words.Choices {
		c := &p.words.Choices[i]
		switch {
		case c.Answer.Action == host.Dismiss:
			list = append(list, p.button(style.Dismiss, short(c.Label), c.Label, p.answers(c.Answer)))
		case c.Needs == ui.NeedReason:
			list = append(list, p.button(style.Refuse, short(c.Label), c.Label, then(func() { p.input = input{}; p.enter(modeReason) })))
		case c.Answer.Action == host.Refuse:
			list = append(list, p.button(style.Refuse, short(c.Label), c.Label, p.answers(c.Answer)))
		}
	}
	return list
}

// answers makes a press that decides.
func (p *Panel) answers(a host.Answer) func() (Outcome, tea.Cmd) {
	return func() (Outcome, tea.Cmd) { return p.decide(a), nil }
}

// refuse decides with the reason that was typed.
func (p *Panel) refuse(c *ui.Choice) func() (Outcome, tea.Cmd) {
	return func() (Outcome, tea.Cmd) {
		a := c.Answer
		a.Reason = strings.TrimSpace(p.input.text)
		return p.decide(a), nil
	}
}

// approval is the button that says yes.
func (p *Panel) approval(c *ui.Choice) button {
	b := p.button(style.Approve, short(c.Label), c.Label, nil)
	if c.Needs == ui.NeedRoots {
		b.label, b.long = "tell it", "tell it of the directories that are picked"
	}
	if p.edited != nil {
		b.label, b.long = "yes, as edited", "yes, as you edited it"
	}
	b.press = func() (Outcome, tea.Cmd) {
		if !p.mayApprove() {
			return Outcome{}, nil
		}
		a := c.Answer
		switch c.Needs {
		case ui.NeedValues:
			p.fill()
			return Outcome{}, nil
		case ui.NeedRoots:
			if a.Roots = p.pickedRoots(); a.Roots == nil {
				return Outcome{}, nil
			}
		default:
		}
		return p.decide(a), nil
	}
	return b
}

// mayApprove reports whether the person could see all that is agreed to, up to its end, and
// says what to do if not: nobody agrees to what was not shown.
func (p *Panel) mayApprove() bool {
	if p.seen[p.stage()] {
		return true
	}
	p.tell("Press %s first: not all of it was shown yet.", p.keyOf(style.End))
	return false
}

// tell shows a sentence of the program at the buttons.
func (p *Panel) tell(format string, a ...any) { p.message = fmt.Sprintf(format, a...) }

// showFull shows everything, values as JSON, or goes back to less.
func (p *Panel) showFull() {
	p.full, p.flipped, p.different, p.top, p.message = !p.full, false, false, 0, ""
	p.changed()
}

// showRaw shows values as JSON in the place of a form, or the other way round.
func (p *Panel) showRaw() {
	p.flipped, p.different, p.top, p.message = !p.flipped, false, 0, ""
	p.changed()
}

// raw reports whether values are shown as JSON.
func (p *Panel) raw() bool { return p.full != p.flipped }

// hasValues reports whether there is JSON that can be shown as a form.
func (p *Panel) hasValues() bool {
	return slices.ContainsFunc(p.words.Lines, func(e ui.Entry) bool { return e.Value != nil })
}
