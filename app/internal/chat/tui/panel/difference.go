package panel

import (
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

// hasDifference reports whether there is something to compare with, or to say that there
// is not.
func (p *Panel) hasDifference() bool {
	return len(p.question.Changes) > 0 || p.question.Kind == host.QuestionCall || p.edited != nil
}

// showDifference shows the differences, or what was shown before them.
func (p *Panel) showDifference() {
	p.different, p.top, p.message = !p.different, 0, ""
	p.changed()
}

// differences shows what the definition, the arguments and an edit have changed.
func (p *Panel) differences(b *body) {
	for i := range p.question.Changes {
		c := &p.question.Changes[i]
		b.difference(host.EscapeLine(c.Path), host.Escape(c.Before), host.Escape(c.After), c.Kind == host.ChangeAdded, c.Kind == host.ChangeRemoved)
	}
	if p.question.Kind == host.QuestionCall {
		p.sinceLast(b)
	}
	if p.edited == nil {
		return
	}
	old, err := ui.Editable(p.question)
	if err != nil {
		return // what cannot be written as JSON was not edited
	}
	b.sentence(toneTitle, "What you edited:")
	b.values(ui.Differences(old, p.edited))
}

// sinceLast shows how the arguments differ from the last ones that were approved.
func (p *Panel) sinceLast(b *body) {
	if p.opts.Last == nil {
		b.sentence(toneText, "This tool was not called before in this session, so that there is no call to compare with.")
		return
	}
	list := ui.Differences(p.opts.Last, p.question.Arguments)
	if len(list) == 0 {
		b.sentence(toneText, "The arguments are the same as those of the last call that was approved.")
		return
	}
	b.sentence(toneTitle, "The difference to the last call that was approved:")
	b.values(list)
}

// values adds the differences of JSON.
func (b *body) values(list []ui.Difference) {
	for i := range list {
		d := &list[i]
		b.difference(partLabel(d.Pointer), valueText(d.Old), valueText(d.New), d.Old == nil, d.New == nil)
	}
}

// valueText is a value as it is compared: texts by their lines, the rest as JSON.
func valueText(raw []byte) string {
	if raw == nil {
		return ""
	}
	if text, ok := textOf(raw); ok {
		return text
	}
	return jsonText(raw)
}

// difference adds two texts line by line. Lines that both begin or end with are told by
// their number, but for the nearest.
func (b *body) difference(label, before, after string, isNew, isGone bool) {
	switch {
	case isNew:
		b.sentence(toneDim, untrusted(label+" is new")+":")
	case isGone:
		b.sentence(toneDim, untrusted(label+" is gone")+":")
	default:
		b.sentence(toneDim, untrusted(label+" has changed")+":")
	}
	old, now := linesOf(before, isNew), linesOf(after, isGone)
	begin, end := same(old, now)
	b.unchanged(old[:begin], false)
	for _, line := range old[begin : len(old)-end] {
		b.marked("- ", toneRemoved, line)
	}
	for _, line := range now[begin : len(now)-end] {
		b.marked("+ ", toneAdded, line)
	}
	b.unchanged(old[len(old)-end:], true)
}

func linesOf(text string, missing bool) []string {
	if missing {
		return nil
	}
	return strings.Split(strings.ReplaceAll(text, "\t", tab), "\n")
}

// same is how many lines two texts begin and end with in common.
func same(old, now []string) (begin, end int) {
	least := min(len(old), len(now))
	for begin < least && old[begin] == now[begin] {
		begin++
	}
	for end < least-begin && old[len(old)-1-end] == now[len(now)-1-end] {
		end++
	}
	return begin, end
}

// contextLines are those of unchanged lines that are shown beside a change.
const contextLines = 2

// unchanged adds the lines before or after a change.
func (b *body) unchanged(lines []string, after bool) {
	hidden := max(len(lines)-contextLines, 0)
	if hidden == 1 { // its number would take the same room
		hidden = 0
	}
	told := fmt.Sprintf("%s lines are the same", number(hidden))
	shown := lines[hidden:]
	if after {
		shown = lines[:len(lines)-hidden]
	}
	if hidden > 0 && !after {
		b.sentence(toneDim, told)
	}
	for _, line := range shown {
		b.marked(mark, toneUntrusted, line)
	}
	if hidden > 0 && after {
		b.sentence(toneDim, told)
	}
}
