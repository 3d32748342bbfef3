package tui

import (
	"strings"
	"time"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A log makes items of records.
type log struct {
	conv   *conversation
	script ui.Transcript
	now    func() time.Time

	turn   *host.TurnRecord
	headed bool // the turn's model was named
	blocks ui.Blocks
	open   *cell // of the block that is not complete
	cards  map[string]*cell
	about  map[string]string // calls by the questions about them

	usage  host.Usage
	labels map[string]bool
	// approved are the arguments of the last call of each tool that was sent.
	approved map[toolName]mcp.RawValue
	said     []string // what the person said, oldest first
}

// A toolName names a tool.
type toolName struct{ server, tool string }

func newLog(conv *conversation, faceName string, now func() time.Time) *log {
	return &log{
		conv: conv, script: ui.Transcript{Face: faceName}, now: now, cards: make(map[string]*cell),
		about: make(map[string]string), labels: make(map[string]bool), approved: make(map[toolName]mcp.RawValue),
	}
}

// past takes a record of before, which is not shown.
func (l *log) past(r *host.Record) {
	l.script.Add(r)
	l.note(r)
}

// note keeps what a record says about now.
func (l *log) note(r *host.Record) {
	switch b := r.Body.(type) {
	case *host.UserRecord:
		if text := textOfUser(b); text != "" && (len(l.said) == 0 || l.said[len(l.said)-1] != text) {
			l.said = append(l.said, text)
		}
	case *host.TurnEndRecord:
		l.addUsage(b.Usage)
	case *host.UsageRecord:
		l.addUsage(b.Usage)
	case *host.LabelRecord:
		for _, label := range b.Labels {
			l.labels[string(label)] = true
		}
	}
}

// textOfUser is what the person typed, or empty for what servers put in.
func textOfUser(b *host.UserRecord) string {
	if b.Server != "" || len(b.Content) == 0 {
		return ""
	}
	if text, ok := b.Content[len(b.Content)-1].(*mcp.TextContent); ok {
		return text.Text
	}
	return ""
}

func (l *log) addUsage(u host.Usage) {
	l.usage.Input += u.Input
	l.usage.Output += u.Output
	l.usage.Cost += u.Cost
}

// add shows a record.
func (l *log) add(r *host.Record) {
	l.note(r)
	if b, ok := r.Body.(*host.TextRecord); ok {
		l.text(b.Text)
		return
	}
	if _, ok := r.Body.(*host.ProgressRecord); !ok {
		l.endText()
	}
	entries := l.script.Add(r)
	switch b := r.Body.(type) {
	case *host.UserRecord:
		l.user(b, entries)
	case *host.TurnRecord:
		l.turn, l.headed = b, false
	case *host.ReasoningRecord:
		if len(entries) > 0 {
			l.conv.add(&shortTold{entries}, false)
		}
	case *host.CallRecord:
		n := l.conv.add(&card{call: b, now: l.now, entries: entries}, false)
		l.cards[b.ID] = n
	case *host.StartRecord:
		l.onCard(b.Call, entries, func(c *card) {
			c.sent, c.started, c.waiting = b, r.Time, false
			l.approved[toolName{c.call.Server, c.call.Tool}] = b.Arguments
		})
	case *host.ProgressRecord:
		l.onCard(b.Call, nil, func(c *card) { c.progress = b })
	case *host.ResultRecord:
		l.onCard(b.Call, entries, func(c *card) { c.result = b })
		delete(l.cards, b.Call)
	case *host.QuestionRecord:
		l.asked(&b.Question)
	case *host.AnswerRecord:
		if call, ok := l.about[b.Question]; ok {
			delete(l.about, b.Question)
			l.onCard(call, entries, func(c *card) { c.waiting = false })
			return
		}
		l.tell(entries)
	case *host.RunEndRecord:
		l.conv.add(&remark{text: strings.TrimRight(entriesText(entries)+" "+ui.EndHint(b), " ")}, false)
	default:
		l.tell(entries)
	}
}

// tell shows entries as they are.
func (l *log) tell(entries []ui.Entry) {
	if len(entries) > 0 {
		l.conv.add(&told{entries}, false)
	}
}

// entriesText is the text of entries that are sentences.
func entriesText(entries []ui.Entry) string {
	texts := make([]string, len(entries))
	for i := range entries {
		texts[i] = entries[i].Text
	}
	return strings.Join(texts, " ")
}

// user shows what the person said, or put in.
func (l *log) user(b *host.UserRecord, entries []ui.Entry) {
	if b.Server == "" && len(entries) > 1 {
		l.conv.add(&userText{entries[1].Text}, false)
		return
	}
	l.tell(entries)
}

// onCard changes the card of a call; entries without a card are shown as they are.
func (l *log) onCard(call string, entries []ui.Entry, change func(c *card)) {
	n := l.cards[call]
	if n == nil {
		l.tell(entries)
		return
	}
	c, _ := n.item.(*card)
	c.entries = append(c.entries, entries...)
	change(c)
	n.changed()
}

// asked notes which call a question is about.
func (l *log) asked(q *host.Question) {
	if q.Call == "" || l.cards[q.Call] == nil {
		return
	}
	l.about[q.ID] = q.Call
	l.onCard(q.Call, nil, func(c *card) { c.waiting = true })
}

// text shows the next part of the model's text.
func (l *log) text(text string) {
	if !l.headed && strings.TrimSpace(text) != "" {
		l.headed = true
		s := &speaker{}
		if l.turn != nil {
			s.name, s.offline = l.turn.Model, l.turn.Offline
		}
		l.conv.add(s, false)
		l.open = nil
	}
	for _, block := range l.blocks.Add(text) {
		if !block.IsBlank() {
			l.setOpen(block)
		}
		l.open = nil
	}
	if rest := l.blocks.Open(); !rest.IsBlank() {
		l.setOpen(rest)
	}
}

// setOpen changes the block that is not complete.
func (l *log) setOpen(block ui.Block) {
	if l.open == nil {
		_, first := l.last().(*speaker)
		l.open = l.conv.add(&modelText{}, first || block.Follows)
	}
	m, _ := l.open.item.(*modelText)
	m.block = block
	l.open.changed()
}

// last is the last item, or nil.
func (l *log) last() item {
	if n := len(l.conv.cells); n > 0 {
		return l.conv.cells[n-1].item
	}
	return nil
}

// endText ends the text of the model.
func (l *log) endText() {
	if rest := l.blocks.Rest(); !rest.IsBlank() {
		l.setOpen(rest)
	}
	l.open = nil
}

// ticked draws the calls that are under way anew: their time goes on.
func (l *log) ticked() {
	for _, n := range l.cards {
		if c, ok := n.item.(*card); ok && c.sent != nil && c.result == nil {
			n.changed()
		}
	}
}

// runs are the calls that are under way.
func (l *log) runs() []*card {
	var list []*card
	for _, n := range l.cards {
		if c, ok := n.item.(*card); ok && c.sent != nil && c.result == nil {
			list = append(list, c)
		}
	}
	return list
}
