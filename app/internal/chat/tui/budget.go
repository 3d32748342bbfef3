package tui

import (
	"context"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

// A budgetList says what a run has used and what is left, and raises limits.
type budgetList struct {
	listView
	raising bool // a limit is being written down
}

func (l *budgetList) view(m *screen, width, height int) ([]string, *tea.Cursor) {
	lines := ui.BudgetLines(m.session.Budget())
	entries := make([]entry, len(lines))
	for i, b := range lines {
		entries[i].head = style.Pad(b.Name, 8) + b.Text
	}
	title := "Budget of a run (the last one)"
	if m.running {
		title = "Budget of a run (this one)"
	}
	hints := slices.DeleteFunc([]string{
		m.hint(style.Raise, "doubles the marked limit for this session"), "/budget steps=40 sets one",
	}, func(s string) bool { return s == "" })
	out := l.draw(m, title, entries, hints, width, height)
	usage := style.Wrap(ui.UsageText(m.session.Snapshot().Usage), width)
	if at := len(entries) + 2; at+len(usage) <= len(out)-len(m.hints(hints, width, height)) {
		copy(out[at:], usage)
	}
	return out, nil
}

func (l *budgetList) key(m *screen, msg tea.KeyPressMsg) {
	if l.move(m, msg.String()) || !m.isKey(msg, style.Raise) || l.again(m, msg) || l.raising {
		return
	}
	session, budget := m.session, m.session.Budget()
	name := ui.BudgetLines(budget)[l.at].Name
	limit, ok := ui.Doubled(budget.Limit, name)
	if !ok {
		l.tell("There is no limit of " + name + " to raise.")
		return
	}
	l.raising = true
	m.show(l, func(context.Context) func() { // it is written down
		err := session.SetLimit(limit)
		return func() {
			l.raising = false
			if err != nil {
				l.tell("The limit stays: " + host.EscapeLine(err.Error()) + ".")
				return
			}
			l.tell("The limit of " + name + " is twice as high now.")
		}
	})
}
