package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/transport"
)

// A serverList shows how the servers are, and starts them again.
type serverList struct {
	listView
	tokens     map[string]int64 // of tools, by server
	generation uint64           // of the catalog that they are of
}

// toolTokens are about how many tokens the tools of a server take.
func (l *serverList) toolTokens(m *screen, server string) int64 {
	if c := m.host.Catalog(); l.tokens == nil || c.Generation != l.generation {
		l.tokens, l.generation = ui.ToolTokens(c), c.Generation
	}
	return l.tokens[server]
}

func (l *serverList) view(m *screen, width, height int) ([]string, *tea.Cursor) {
	entries := make([]entry, len(m.servers))
	for i := range m.servers {
		entries[i] = l.server(m, &m.servers[i])
	}
	hints := slices.DeleteFunc([]string{
		m.hint(style.Choose, "details and log"), m.hint(style.Retry, "starts again"), m.signInHint(l.marked(m)),
	}, func(s string) bool { return s == "" })
	out := l.draw(m, "Servers", entries, hints, width, height)
	if len(entries) == 0 && len(out) > 1 {
		out[1] = style.Fit("There are no servers.", width)
	}
	return out, nil
}

// marked is the name of the server that is marked.
func (l *serverList) marked(m *screen) string {
	if l.at < len(m.servers) {
		return m.servers[l.at].Name
	}
	return ""
}

// wantsSignIn reports whether a server wants the person to sign in.
func (m *screen) wantsSignIn(server string) bool {
	return slices.ContainsFunc(m.servers, func(s host.ServerStatus) bool {
		return s.Name == server && errors.Is(s.Err, transport.ErrDenied)
	})
}

// signInHint says how to sign in, if the server wants it.
func (m *screen) signInHint(server string) string {
	if !m.wantsSignIn(server) {
		return ""
	}
	return m.hint(style.SignIn, "signs in")
}

// stateText says how a server is, escaped.
func (l *serverList) stateText(m *screen, s *host.ServerStatus) string {
	text := s.State.String()
	if s.State == host.StateReady {
		text += fmt.Sprintf(", %d tools", s.Tools)
		if n := l.toolTokens(m, s.Name); n > 0 {
			text += fmt.Sprintf(" of about %s tokens", ui.Grouped(n))
		}
		if s.Skills > 0 {
			text += fmt.Sprintf(", %d skills", s.Skills)
		}
	}
	if s.Stale {
		text += ", not listed anew yet"
	}
	if !s.NextTry.IsZero() {
		text += fmt.Sprintf(", tried again in %d s", max(int(s.NextTry.Sub(m.opts.Now()).Seconds()), 0))
	}
	return text
}

// server is the entry of a server.
func (l *serverList) server(m *screen, s *host.ServerStatus) entry {
	e := entry{head: host.EscapeLine(s.Name) + ": " + l.stateText(m, s)}
	detail := ""
	if s.Origin != "" {
		detail = "from " + host.EscapeLine(s.Origin)
	}
	if s.Version != "" {
		detail = strings.TrimPrefix(detail+", revision "+host.EscapeLine(s.Version), ", ")
	}
	if detail != "" {
		e.rest = append(e.rest, style.Span{Text: detail, Style: m.theme.Dim})
	}
	if s.Err != nil {
		e.rest = append(e.rest, style.Span{Text: host.EscapeLine(s.Err.Error()), Style: m.theme.Error})
	}
	if wrong := s.Wrong(); wrong != "" {
		e.rest = append(e.rest, style.Span{Text: host.EscapeLine(wrong), Style: m.theme.Warning})
	}
	return e
}

func (l *serverList) key(m *screen, msg tea.KeyPressMsg) {
	if l.move(m, msg.String()) || l.at >= len(m.servers) {
		return
	}
	name := m.servers[l.at].Name
	if m.isKey(msg, style.Choose) {
		m.overlay = &serverDetails{name: name, list: l}
		return
	}
	m.serverKey(msg, name)
}

// serverKey takes a key that does something about a server.
func (m *screen) serverKey(msg tea.KeyPressMsg, name string) {
	switch {
	case msg.IsRepeat:
	case m.isKey(msg, style.Retry):
		m.commands.Run(m.base(), "retry "+name)
		m.servers = m.host.Status()
	case m.isKey(msg, style.SignIn):
		if !m.wantsSignIn(name) {
			m.tellOverlay("The server does not want you to sign in.")
			return
		}
		m.commands.Run(m.base(), "retry "+name) // asks for a sign-in again
		m.servers = m.host.Status()
	}
}

// serverDetails are all about one server, and the end of its log.
type serverDetails struct {
	page
	name string
	list *serverList
	told string
}

func (d *serverDetails) tell(text string) { d.told = text }

// leastLog is how many lines of the log are drawn at least, if there are so many.
const leastLog = 5

func (d *serverDetails) view(m *screen, width, height int) ([]string, *tea.Cursor) {
	foot := m.hints(slices.DeleteFunc([]string{
		m.hint(style.Retry, "starts again"), m.signInHint(d.name), m.hint(style.PageDown, "down"),
	}, func(s string) bool { return s == "" }), width, height)
	if d.told != "" {
		foot = append(foot, m.theme.Warning.Render(style.Fit(d.told, width)))
	}
	d.title = "Server " + host.EscapeLine(d.name)
	d.make = func(m *screen, width int) []string { return d.lines(m, width, height-1-len(foot)) }
	out, _ := d.page.view(m, width, height-len(foot))
	return append(atHeight(out, height-len(foot)), foot...), nil
}

// lines are the facts, and what there is room for of the end of the log.
func (d *serverDetails) lines(m *screen, width, room int) []string {
	i := slices.IndexFunc(m.servers, func(s host.ServerStatus) bool { return s.Name == d.name })
	if i < 0 {
		return []string{style.Fit("It was removed.", width)}
	}
	s := &m.servers[i]
	var out []string
	fact := func(label, text string) {
		if text != "" {
			out = append(out, m.painter.labelled(label+": ", text, false, width)...)
		}
	}
	fact("state", d.list.stateText(m, s)+since(m, s))
	if s.Err != nil {
		out = append(out, m.painter.labelled("reason (untrusted): ", host.EscapeLine(s.Err.Error()), true, width)...)
	}
	if wrong := s.Wrong(); wrong != "" {
		out = append(out, m.painter.labelled("wrong (untrusted): ", host.EscapeLine(wrong), true, width)...)
	}
	if m.wantsSignIn(s.Name) {
		fact("sign-in", "the server wants you to sign in")
	}
	fact("from", host.EscapeLine(s.Origin))
	fact("revision", host.EscapeLine(s.Version))
	if s.SkillsErr != nil {
		out = append(out, m.painter.labelled("skills (untrusted): ", host.EscapeLine(s.SkillsErr.Error()), true, width)...)
	}
	if s.Starts > 1 {
		fact("started", fmt.Sprintf("%d times", s.Starts))
	}
	return append(out, d.log(m, width, room-len(out))...)
}

// since says since when a server is in its state.
func since(m *screen, s *host.ServerStatus) string {
	if s.Since.IsZero() {
		return ""
	}
	return ", since " + ui.When(s.Since, m.opts.Now())
}

// log is the end of the log, as much as there is room for.
func (d *serverDetails) log(m *screen, width, room int) []string {
	if m.opts.Logs == nil {
		return nil
	}
	kept := m.opts.Logs(d.name)
	if len(kept) == 0 {
		return []string{m.theme.Dim.Render(style.Fit("It has logged nothing that is kept.", width))}
	}
	room = max(room-2, leastLog)
	// Lines may be long: no more are broken than are drawn.
	var lines []string
	shown := 0
	for _, line := range slices.Backward(kept) {
		broken := style.WrapSpans([]style.Span{{Text: style.Fit(host.EscapeLine(line), 4*width), Style: m.theme.Untrusted}}, max(width-2, leastColumns))
		if len(lines)+len(broken) > room && shown > 0 {
			break
		}
		lines = append(broken, lines...)
		shown++
	}
	title := "Log (untrusted):"
	if shown < len(kept) {
		title = fmt.Sprintf("Log (untrusted), the last %d of %d lines; /log shows all:", shown, len(kept))
	}
	out := []string{"", m.theme.Label.Render(style.Fit(title, width))}
	return append(out, prefixed(lines, m.theme.Border.Render("│ "), "")...)
}

func (d *serverDetails) key(m *screen, msg tea.KeyPressMsg) {
	d.told = ""
	d.page.key(m, msg)
	m.serverKey(msg, d.name)
}
