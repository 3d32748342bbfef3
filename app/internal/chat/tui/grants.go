package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

// A grantList lists what the person agreed to for longer than once, and takes it back.
type grantList struct {
	listView
	grants  []host.Grant
	problem string
	loaded  bool
	given   map[string]string // by which question, by the ids of grants
}

// load reads the grants that hold.
func (l *grantList) load(m *screen) {
	now := m.opts.Now()
	m.show(l, func(ctx context.Context) func() {
		grants, err := m.host.Grants(ctx)
		grants = slices.DeleteFunc(slices.Clone(grants), func(g host.Grant) bool { return g.Over(now) != "" })
		slices.Reverse(grants) // the newest first
		return func() {
			l.at = markOf(l.at, l.grants, grants, func(g *host.Grant) string { return g.ID })
			l.loaded, l.grants, l.problem = true, grants, ""
			if err != nil {
				l.problem = "The grants cannot be read: " + host.EscapeLine(err.Error()) + "."
			}
			l.origin(m)
		}
	})
}

// origin finds the question by which the marked grant was given.
func (l *grantList) origin(m *screen) {
	if l.given == nil {
		l.given = make(map[string]string)
	}
	if l.at >= len(l.grants) {
		return
	}
	g := l.grants[l.at]
	if _, known := l.given[g.ID]; known || g.Session == "" {
		return
	}
	l.given[g.ID] = ""
	session, kept, here := m.session, m.opts.Sessions, m.session.ID() == g.Session
	if !here && kept == nil {
		return
	}
	m.show(l, func(ctx context.Context) func() {
		var records []host.Record
		if here {
			records = session.Snapshot().Records
		} else if found, err := kept.Records(ctx, g.Session); err == nil {
			records = found
		}
		title, n := ui.GivenBy(records, g.ID)
		return func() {
			if n > 0 {
				l.given[g.ID] = fmt.Sprintf("record %d: %s", n, title)
			}
		}
	})
}

func (l *grantList) view(m *screen, width, height int) ([]string, *tea.Cursor) {
	entries := make([]entry, len(l.grants))
	for i := range l.grants {
		g := &l.grants[i]
		entries[i].head = ui.RuleText(&g.Rule)
		// The rule stands above.
		text := strings.Replace(ui.GrantText(g, m.opts.Now()), ui.RuleText(&g.Rule)+"; ", "", 1)
		given := "agreed to " + ui.When(g.Created, m.opts.Now())
		if g.Session != "" {
			given += " in session " + host.EscapeLine(g.Session)
		}
		if by := l.given[g.ID]; by != "" {
			given += ", " + by
		}
		entries[i].rest = []style.Span{{Text: text, Style: m.theme.Dim}, {Text: given, Style: m.theme.Dim}}
	}
	hints := slices.DeleteFunc([]string{m.hint(style.Remove, "takes the marked one back, at once and for all sessions")}, func(s string) bool { return s == "" })
	out := l.draw(m, "What you agreed to for longer", entries, hints, width, height)
	text := ""
	switch {
	case l.problem != "":
		text = l.problem
	case !l.loaded:
		text = "Reading the grants…"
	case len(l.grants) == 0:
		text = "There are no grants: every call is asked about, unless a rule says otherwise."
	}
	if text != "" && len(out) > 1 {
		out = append(append(out[:1:1], style.Wrap(text, width)...), out[2:]...)
	}
	return out, nil
}

func (l *grantList) key(m *screen, msg tea.KeyPressMsg) {
	switch {
	case l.move(m, msg.String()):
		l.origin(m)
	case m.isKey(msg, style.Remove) && l.at < len(l.grants) && !l.again(m, msg):
		m.commands.Run(m.base(), "revoke "+l.grants[l.at].ID)
		l.load(m)
	}
}
