package tui

import (
	"context"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

// A sessionList lists the sessions that are kept.
type sessionList struct {
	listView
	sessions []host.SessionInfo
	problem  string // why they cannot be listed, escaped
	loaded   bool
	about    map[string]string // how long they are and what they have used, by their ids
	removing string            // the one that another key deletes
}

// mostSummaries is how many sessions are read at once to say more about them.
const mostSummaries = 12

// load reads the list, and then what the sessions around the marked one are.
func (l *sessionList) load(m *screen) {
	kept := m.opts.Sessions
	if kept == nil {
		l.loaded, l.problem = true, "No other sessions are kept here."
		return
	}
	m.show(l, func(ctx context.Context) func() {
		sessions, err := kept.List(ctx)
		return func() {
			l.at = markOf(l.at, l.sessions, sessions, func(s *host.SessionInfo) string { return s.ID })
			l.loaded, l.problem, l.sessions = true, "", sessions
			if err != nil {
				l.problem = "The sessions cannot be listed: " + host.EscapeLine(err.Error()) + "."
			}
			l.summarize(m)
		}
	})
}

// summarize reads the sessions around the marked one that were not read yet.
func (l *sessionList) summarize(m *screen) {
	if l.about == nil {
		l.about = make(map[string]string)
	}
	kept, from := m.opts.Sessions, max(l.at-mostSummaries/2, 0)
	var ids []string
	for _, s := range l.sessions[min(from, len(l.sessions)):min(from+mostSummaries, len(l.sessions))] {
		if _, known := l.about[s.ID]; !known {
			l.about[s.ID] = ""
			ids = append(ids, s.ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	m.show(l, func(ctx context.Context) func() {
		texts := make(map[string]string)
		for _, id := range ids {
			records, err := kept.Records(ctx, id)
			if err != nil {
				texts[id] = "it cannot be read: " + host.EscapeLine(err.Error())
				continue
			}
			texts[id] = ui.SummaryText(records)
		}
		return func() {
			for id, text := range texts {
				l.about[id] = text
			}
		}
	})
}

func (l *sessionList) view(m *screen, width, height int) ([]string, *tea.Cursor) {
	entries := make([]entry, len(l.sessions))
	for i := range l.sessions {
		s := &l.sessions[i]
		entries[i].head = ui.SessionText(s, m.opts.Now())
		about := host.EscapeLine(s.ID)
		if s.ID == m.session.ID() {
			about += ", open here"
		}
		if s.Parent != "" {
			about += ", a fork of " + host.EscapeLine(s.Parent)
		}
		if text := l.about[s.ID]; text != "" {
			about += ": " + text
		}
		entries[i].rest = []style.Span{{Text: about, Style: m.theme.Dim}}
	}
	hints := []string{m.hint(style.Choose, "opens"), m.hint(style.ForkIt, "forks"), m.hint(style.Begin, "new"), m.hint(style.Remove, "deletes")}
	hints = slices.DeleteFunc(hints, func(s string) bool { return s == "" })
	out := l.draw(m, "Sessions", entries, hints, width, height)
	if text := l.nothing(); text != "" && len(out) > 1 {
		out[1] = style.Fit(text, width)
	}
	return out, nil
}

// nothing says why there is no list.
func (l *sessionList) nothing() string {
	switch {
	case l.problem != "":
		return l.problem
	case !l.loaded:
		return "Reading the list…"
	case len(l.sessions) == 0:
		return "There are no sessions."
	}
	return ""
}

func (l *sessionList) key(m *screen, msg tea.KeyPressMsg) {
	remove := m.isKey(msg, style.Remove)
	if remove && l.again(m, msg) {
		if l.removing != "" {
			l.tell("A key that is held down deletes nothing; let go of it for a moment first.")
		}
		return
	}
	removing := l.removing
	l.removing = ""
	if m.isKey(msg, style.Begin) && m.opts.Sessions != nil {
		m.leaveFor(func() { m.commands.Run(m.base(), "new") })
		return
	}
	if l.move(m, msg.String()) {
		l.summarize(m)
		return
	}
	if l.at >= len(l.sessions) {
		return
	}
	id := l.sessions[l.at].ID
	switch {
	case m.isKey(msg, style.Choose):
		m.leaveFor(func() { m.commands.Run(m.base(), "open "+id) })
	case m.isKey(msg, style.ForkIt):
		m.leaveFor(func() { m.commands.ForkSession(m.base(), id) })
	case !remove:
	case id == m.session.ID():
		l.tell("This session is open; open another one first.")
	case removing != id:
		l.removing = id
		l.tell(m.keys.Key(style.Remove) + " once more deletes it for good.")
	default:
		m.commands.Run(m.base(), "delete "+id)
	}
}

// leaveFor closes the view and goes elsewhere.
func (m *screen) leaveFor(do func()) {
	m.closeOverlay()
	m.conv.follow = true
	do()
}

// opened shows another session in the place of this one.
func (m *screen) opened(_ context.Context, s ui.Session) {
	info, records := s.Info(), s.Snapshot().Records
	since := ui.LastExchanges(records, ui.ShownExchanges)
	m.conv, m.search = nil, nil
	m.attach(s, since)
	text := "Session " + host.EscapeLine(info.ID)
	if info.Title != "" {
		text += ": " + style.Fit(host.EscapeLine(info.Title), 200)
	}
	if since > 0 {
		text += ". " + ui.Grouped(since) + " earlier records are not shown here; /history shows all"
	}
	m.say(text + ".")
}
