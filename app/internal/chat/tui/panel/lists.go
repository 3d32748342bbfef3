package panel

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

// A duration is how long what is agreed to holds.
type duration struct {
	minutes int
	text    string
}

// durations are what can be chosen, the usual one first.
var durations = []duration{
	{0, "until you take it back"},
	{60, "for an hour"},
	{8 * 60, "for 8 hours"},
	{24 * 60, "for a day"},
	{7 * 24 * 60, "for a week"},
}

// remember goes to the list of what can be agreed to for longer.
func (p *Panel) remember() {
	if p.mayApprove() {
		p.lasts = 0
		p.enter(modeOffers)
	}
}

// longer goes to the next duration.
func (p *Panel) longer() {
	p.lasts = (p.lasts + 1) % len(durations)
	p.changed()
}

// offerLabel says what an offer grants and for how long.
func (p *Panel) offerLabel(c *ui.Choice) string {
	d := durations[p.lasts]
	if d.minutes == 0 && c.Needs == ui.NeedNothing {
		return c.Label
	}
	return d.text + ": " + host.EscapeLine(p.question.Offers[c.Answer.Offer-1].Text)
}

// offerButtons are the offers by their numbers, and for how long.
func (p *Panel) offerButtons() []button {
	var list []button
	for i, c := range p.offered() {
		list = append(list, button{key: itoa(i + 1), long: p.offerLabel(&c), press: p.grant(&c)})
	}
	next := durations[(p.lasts+1)%len(durations)].text
	return append(list, p.button(style.Longer, "change how long", "agree "+next, then(p.longer)), p.back(modeChoose))
}

// grant decides for longer.
func (p *Panel) grant(c *ui.Choice) func() (Outcome, tea.Cmd) {
	return func() (Outcome, tea.Cmd) {
		a := c.Answer
		a.Minutes = durations[p.lasts].minutes
		if c.Needs == ui.NeedRoots {
			if a.Roots = p.pickedRoots(); a.Roots == nil {
				return Outcome{}, nil
			}
		}
		return p.decide(a), nil
	}
}

// offersBody lists the offers with the rule that each would be.
func (p *Panel) offersBody(b *body) {
	b.sentence(toneTitle, "You agree now, and are not asked again for what you choose by its number:")
	for i, c := range p.offered() {
		b.item = int32(i)
		b.sentence(toneText, itoa(i+1)+"  "+p.offerLabel(&c))
		b.sentence(toneDim, "   "+ui.RuleText(&p.question.Offers[c.Answer.Offer-1].Rule))
	}
	b.item = noItem
}

// modelsBody lists the models.
func (p *Panel) modelsBody(b *body) {
	b.sentence(toneTitle, "Which model? Press its number:")
	for i, m := range p.question.Models {
		b.item = int32(i)
		b.labelled(itoa(i+1)+"  ", toneUntrusted, host.EscapeLine(m))
	}
	b.item = noItem
}

// pickModel chooses a model for the sampling.
func (p *Panel) pickModel(i int) {
	p.model = p.question.Models[i]
	p.enter(modeChoose)
	p.tell("The model is %s now.", host.EscapeLine(p.model))
}

// rootsBody lists the directories with what is picked.
func (p *Panel) rootsBody(b *body) {
	for i := range p.question.Roots {
		r := &p.question.Roots[i]
		b.item = int32(i)
		text := host.EscapeLine(r.URI)
		if r.Name != "" {
			text += " (" + host.EscapeLine(r.Name) + ")"
		}
		box := "[ ] "
		if p.picked[i] {
			box = "[x] "
		}
		b.labelled(box+itoa(i+1)+"  ", toneText, text)
	}
	b.item = noItem
}

// pick picks a directory, or takes that back.
func (p *Panel) pick(i int) {
	p.picked[i] = !p.picked[i]
	p.message = ""
	p.changed()
}

// pickAll picks all directories, or none if all are picked.
func (p *Panel) pickAll() {
	all := !slices.Contains(p.picked, false)
	for i := range p.picked {
		p.picked[i] = !all
	}
	p.message = ""
	p.changed()
}

// pickedRoots are the directories of an answer; nil, with a sentence, if none is picked.
func (p *Panel) pickedRoots() []string {
	var list []string
	for i, yes := range p.picked {
		if yes {
			list = append(list, p.question.Roots[i].URI)
		}
	}
	if list == nil {
		p.enter(modeChoose)
		p.tell("No directory is picked. Go to one with the arrow keys and pick it with the space key, or press %s for none.", p.keyOf(style.Refuse))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// items is how long the list of the mode is; 0 where there is none.
func (p *Panel) items() int {
	switch p.mode {
	case modeOffers:
		return len(p.offered())
	case modeModels:
		return len(p.question.Models)
	case modeParts:
		return len(p.form.parts)
	case modeChoose:
		if !p.full && !p.different {
			return len(p.question.Roots)
		}
	default:
	}
	return 0
}

// chooseItem does what the list of the mode is for.
func (p *Panel) chooseItem(i int) (Outcome, tea.Cmd) {
	switch p.mode {
	case modeOffers:
		list := p.offered()
		return p.grant(&list[i])()
	case modeModels:
		p.pickModel(i)
	case modeParts:
		p.editPart(i)
	case modeChoose:
		p.pick(i)
	default:
	}
	return Outcome{}, nil
}
