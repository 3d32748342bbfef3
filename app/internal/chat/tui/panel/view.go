package panel

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

// Least sizes that a panel is drawn for.
const (
	leastWidth  = 20
	leastHeight = 5
)

// styleOf is the style of a tone.
func (p *Panel) styleOf(t tone) lipgloss.Style {
	th := p.opts.Theme
	switch t {
	case toneDim:
		return th.Label
	case toneTitle:
		return th.Title
	case toneUntrusted:
		return th.Untrusted
	case toneWarning:
		return th.Warning
	case toneAdded:
		return th.Added
	case toneRemoved:
		return th.Removed
	case toneDomain:
		return th.Domain
	case toneInput:
		return th.Code
	case toneText:
	}
	return th.Text
}

// View draws the panel within a width and height: the title, the middle with what there
// is to know, and the buttons, which are always there. It is at most as high as said. Where
// there is no room for that, it says so, and keys put it aside only.
func (p *Panel) View(width, height int) string {
	if p.small = width < leastWidth || height < leastHeight; p.small {
		lines := sentence("A question needs a larger window.", max(width, 1), "")
		return strings.Join(lines[:min(len(lines), max(height, 1))], "\n")
	}
	buttons := p.buttonRows(width, height)
	if len(buttons) > height-1 {
		buttons = buttons[:height-1]
	}
	typed := p.inputRows(width)
	rest := height - len(buttons) - len(typed)
	var told []string
	if p.message != "" {
		told = sentence(p.message, width, sentenceIndent)
		told = told[:min(len(told), max(rest-1, 0), max(height/4, 1))]
	}
	rest -= len(told)
	title := sentence(p.words.Title, width, sentenceIndent)
	most := max(height/5, 1)
	headless := len(title) > most
	if headless { // it is the beginning of the middle, too
		title = []string{style.Fit(p.words.Title, width)}
	}
	if rest < 2 {
		title = nil
	}
	rest -= len(title)
	b := p.body(width, headless)
	status := p.status(len(b.rows), rest)
	var middle []string
	if rest > 1 && status {
		rest--
	}
	middle = p.middle(b, max(rest, 0))
	p.noteSeen(b)

	if rest > len(middle) {
		middle = append(middle, "")
	}

	th := p.opts.Theme
	var out []string
	for _, line := range title {
		out = append(out, th.Title.Render(line))
	}
	out = append(out, middle...)
	for _, line := range told {
		out = append(out, th.Warning.Render(line))
	}
	if status && len(out)+len(typed)+len(buttons) < height {
		out = append(out, th.Dim.Render(style.Fit(p.statusText(), width)))
	}
	out = append(out, typed...)
	return strings.Join(append(out, buttons...), "\n")
}

// body is the middle for a width, built anew if something has changed.
func (p *Panel) body(columns int, headless bool) *body {
	key := cacheKey{p.mode, columns, p.version, headless}
	if p.cache != nil && p.cacheOf == key {
		return p.cache
	}
	b := newBody(columns - p.gutter())
	switch p.mode {
	case modeChoose, modeReason:
		if headless {
			b.sentence(toneTitle, p.words.Title)
		}
		p.main(b)
	case modeOffers:
		p.offersBody(b)
	case modeModels:
		p.modelsBody(b)
	case modeParts, modeValue:
		p.partsBody(b)
	case modeForm:
		p.formBody(b)
	case modeReview:
		p.reviewBody(b)
	}
	if old := p.cacheOf; p.cache != nil && old.columns != columns && old.mode == p.mode && old.version == p.version {
		p.top = p.top * len(b.rows) / max(len(p.cache.rows), 1) // about where it was
	}
	p.cache, p.cacheOf = b, key
	return b
}

// gutter is how many columns on the left say where the cursor is.
func (p *Panel) gutter() int {
	if p.items() > 0 || p.mode == modeForm || p.mode == modeValue {
		return len(atCursor)
	}
	return 0
}

const (
	atCursor  = "> "
	offCursor = "  "
)

// middle draws the rows that are visible.
func (p *Panel) middle(b *body, height int) []string {
	p.length, p.page = len(b.rows), height
	if p.follow {
		p.reveal(b, height)
	}
	p.top = max(min(p.top, p.length-height), 0)
	gutter := p.gutter()
	visible := b.rows[p.top:min(p.top+height, p.length)]
	out := make([]string, len(visible))
	for i := range visible {
		r := &visible[i]
		if gutter > 0 {
			out[i] = offCursor
			if r.item >= 0 && int(r.item) == p.cursor && (i == 0 || visible[i-1].item != r.item) {
				out[i] = p.opts.Theme.Key.Render(atCursor)
			}
		}
		out[i] += p.rowText(r)
	}
	return out
}

func (p *Panel) rowText(r *row) string {
	if r.spans == nil {
		return p.render(r.headTone, r.head) + p.render(r.textTone, r.text)
	}
	var b strings.Builder
	for _, s := range r.spans {
		b.WriteString(p.render(s.tone, s.text))
	}
	return b.String()
}

func (p *Panel) render(t tone, text string) string {
	if text == "" {
		return ""
	}
	return p.styleOf(t).Render(text)
}

// reveal scrolls to the rows of the entry at the cursor.
func (p *Panel) reveal(b *body, height int) {
	p.follow = false
	first, last := -1, -1
	for i := range b.rows {
		if int(b.rows[i].item) == p.cursor && p.cursor >= 0 {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return
	}
	if last >= p.top+height {
		p.top = last - height + 1
	}
	if first < p.top || last-first >= height {
		p.top = first
		if p.mode == modeForm && last-first >= height {
			p.top = last - height + 1 // the line that is typed into
		}
	}
}

// status reports whether there is something to say about the middle or the focus.
func (p *Panel) status(length, room int) bool { return length > room || p.focus >= 0 }

// statusText says which rows are shown, and what the button with the focus does.
func (p *Panel) statusText() string {
	var parts []string
	if p.length > p.page {
		parts = append(parts, fmt.Sprintf("lines %s-%s of %s", number(p.top+1), number(min(p.top+p.page, p.length)), number(p.length)))
	}
	if list := p.buttons(); p.focus >= 0 && p.focus < len(list) {
		parts = append(parts, list[p.focus].long)
	} else if p.top+p.page < p.length {
		parts = append(parts, p.more())
	}
	return strings.Join(parts, "; ")
}

// more says how to see what is below, and that nothing is agreed to before its end was shown.
func (p *Panel) more() string {
	end := p.keyOf(style.End)
	if (p.mode == modeChoose || p.mode == modeReview) && !p.seen[p.stage()] && !p.different && end != "" {
		return fmt.Sprintf("%s counts once the end was shown: %s", p.keyOf(style.Approve), end)
	}
	return p.opts.Keys.Key(style.PageDown) + " for more"
}

// inputRows are the line that is typed into, outside of forms.
func (p *Panel) inputRows(columns int) []string {
	prompt := p.prompt()
	if prompt == "" {
		return nil
	}
	const begin = "> "
	line := p.input.view(columns - len(begin))
	if !p.typing() {
		line = head(host.EscapeLine(p.input.text), columns-len(begin))
	}
	return []string{
		p.opts.Theme.Label.Render(style.Fit(prompt+":", columns)),
		p.opts.Theme.Key.Render(begin) + p.render(toneInput, line),
	}
}

// buttonRows are the buttons, with as much of their labels as there is room for.
func (p *Panel) buttonRows(columns, height int) []string {
	list := p.buttons()
	labels := []func(*button) string{
		func(b *button) string { return b.label },
		func(b *button) string {
			word, _, _ := strings.Cut(b.label, " ")
			return word
		},
		func(b *button) string {
			if b.key != "" {
				return ""
			}
			return b.label
		},
	}
	most := max(height/4, 2)
	var rows []string
	for _, label := range labels {
		if rows = p.flow(list, label, columns); len(rows) <= most {
			break
		}
	}
	return rows
}

// flow puts buttons next to each other, and on more rows where there is no room.
func (p *Panel) flow(list []button, label func(*button) string, columns int) []string {
	var rows []string
	var b strings.Builder
	at := 0
	for i := range list {
		// The mark tells the focus without colours, too.
		focus, st := " ", p.opts.Theme.Button
		if i == p.focus {
			focus, st = ">", p.opts.Theme.ButtonFocused
		}
		key := ""
		if list[i].key != "" {
			key = "[" + list[i].key + "]"
		}
		text := strings.TrimSpace(key + " " + label(&list[i]))
		if key == "" {
			text = "[" + text + "]"
		}
		text = style.Fit(focus+text, columns)
		w := width(text)
		if at > 0 && at+w > columns {
			rows, at = append(rows, b.String()), 0
			b.Reset()
		}
		b.WriteString(st.Render(text))
		if at += w; at < columns {
			b.WriteByte(' ')
			at++
		}
	}
	return append(rows, b.String())
}

// main shows the question itself.
func (p *Panel) main(b *body) {
	if p.different {
		p.differences(b)
		return
	}
	if p.model != "" {
		b.labelled("model you chose: ", toneText, host.EscapeLine(p.model))
	}
	if p.edited != nil {
		p.editedBody(b)
		b.must = len(b.rows)
	}
	if p.edited != nil && p.question.Kind != host.QuestionCall {
		b.sentence(toneTitle, "What was asked:")
	}
	l := shortLimits
	if p.full {
		l = limits{}
	}
	roots := p.question.Kind == host.QuestionRoots && !p.full
	for i := range p.words.Lines {
		e := &p.words.Lines[i]
		switch {
		case e.Value != nil && p.edited != nil: // what was edited takes its place
		case roots && e.Kind == ui.EntryFact && strings.HasPrefix(e.Label, "directory "):
		case p.words.Page != nil && e.Kind == ui.EntryBlock && e.Label == "whole address":
			b.address(e.Label, p.words.Page)
		default:
			f := p.forms[i]
			if p.raw() {
				f = nil
			}
			b.entry(e, f, l)
		}
	}
	if roots {
		b.sentence(toneTitle, "Go to a directory with the arrow keys and pick it with the space key:")
		p.rootsBody(b)
	}
	p.preview(b)
}

// editedBody shows what the person wrote: what differs, all of it, and secrets in it.
func (p *Panel) editedBody(b *body) {
	if old, err := ui.Editable(p.question); err == nil {
		b.values(ui.Differences(old, p.edited))
	}
	const label = "as you edited it"
	if p.form.more || p.raw() { // all of it is shown, as it would be sent
		b.sentence(toneTitle, label+":")
		b.marked(mark, toneInput, host.Indent(p.edited))
	} else {
		b.form(label, &p.form, limits{})
	}
	for _, s := range host.ArgumentSecrets(p.edited) {
		b.sentence(toneWarning, fmt.Sprintf("WARNING: %s may hold a secret: %s", host.EscapeLine(s.Pointer), host.EscapeLine(s.Why)))
	}
}

// address shows the address of a page with its domain marked.
func (b *body) address(label string, a *ui.Address) {
	b.sentence(toneDim, untrusted(label)+":")
	all := a.Before + a.Domain + a.After
	from, to := len(a.Before), len(a.Before)+len(a.Domain)
	room := max(b.columns-width(mark), 1)
	for at := 0; at < len(all); {
		end := at + fit(all[at:], room)
		r := row{spans: []span{{toneUntrusted, mark}}}
		for _, s := range []struct {
			tone     tone
			from, to int
		}{{toneUntrusted, at, min(end, from)}, {toneDomain, max(at, from), min(end, to)}, {toneUntrusted, max(at, to), end}} {
			if s.from < s.to {
				r.spans = append(r.spans, span{s.tone, all[s.from:s.to]})
			}
		}
		if end < len(all) {
			r.spans = append(r.spans, span{toneUntrusted, goesOn})
		}
		b.add(r)
		at = end
	}
}

// Help lists what keys do now, for the help of the screen.
func (p *Panel) Help() []style.Action {
	var list []style.Action
	for _, b := range p.buttons() {
		if b.action == "" {
			if b.key != "" {
				list = append(list, style.Action{Group: style.GroupPanel, Keys: []string{b.key}, Help: b.long})
			}
			continue
		}
		a := p.opts.Keys.Action(b.action)
		a.Help = b.long
		list = append(list, a)
	}
	for _, name := range []string{style.NextField, style.PrevField, style.Press, style.Aside} {
		list = append(list, p.opts.Keys.Action(name))
	}
	return list
}
