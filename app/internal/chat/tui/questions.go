package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/panel"
	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

// answeredMsg says whether an answer counts.
type answeredMsg struct {
	question *host.Question
	answer   host.Answer
	err      error
}

// A waitingTitle is the title of the question that waits.
type waitingTitle struct {
	question *host.Question
	text     string
}

// releaseTime is how long a key is not there until it counts as released. It is longer than
// the usual delays before a key that is held down is repeated.
const releaseTime = 700 * time.Millisecond

// A heldKey is the key that gave the last answer, or changed something last. Most
// terminals do not tell whether a key comes from a second press.
type heldKey struct {
	name string
	last time.Time
}

// holds reports whether msg may come from the press of before.
func (h *heldKey) holds(msg tea.Msg, now time.Time) bool {
	k, ok := msg.(tea.KeyPressMsg)
	if !ok || k.String() != h.name || now.Sub(h.last) >= releaseTime {
		if ok {
			h.name = ""
		}
		return false
	}
	h.last = now
	return true
}

// goToPanel shows the first question that waits, and gives it the keys.
func (m *screen) goToPanel() {
	q := m.questions[0]
	if m.panel == nil || m.panel.Question() != q {
		m.panel = panel.New(q, &panel.Options{
			Theme: m.theme, Keys: m.keys, Now: m.opts.Now, Edit: m.panelEditor(), Face: m.opts.Face,
			Last: m.log.approved[toolName{q.Server, q.Name}],
		})
	}
	m.inPanel = true
	m.completion.choices = nil
	m.editor.area.Blur()
	m.panel.Focus()
}

// leavePanel gives the keys back to the message.
func (m *screen) leavePanel() {
	m.inPanel = false
	m.editor.area.Focus()
}

// toPanel gives a message to the panel.
func (m *screen) toPanel(msg tea.Msg) {
	q := m.panel.Question()
	if m.held.holds(msg, m.opts.Now()) || m.answering == q.ID {
		return // or its answer is under way
	}
	outcome, cmd := m.panel.Update(msg)
	m.do(cmd)
	switch {
	case outcome.Aside:
		m.leavePanel()
	case outcome.Answer != nil:
		answer := *outcome.Answer
		answer.Face = m.opts.Face
		m.answering = q.ID
		if k, ok := msg.(tea.KeyPressMsg); ok {
			m.held = heldKey{k.String(), m.opts.Now()}
		}
		session := m.session
		m.run(func(ctx context.Context) any { return answeredMsg{q, answer, session.Answer(ctx, q.ID, answer)} })
	}
}

// answered takes whether an answer counts.
func (m *screen) answered(msg answeredMsg) {
	q := msg.question
	if m.answering == q.ID {
		m.answering = ""
	}
	switch {
	case msg.err == nil:
		m.visit(q, msg.answer)
		m.settled(q.ID)
	case errors.Is(msg.err, host.ErrSettled), errors.Is(msg.err, host.ErrNoQuestion):
		m.settled(q.ID) // its record says by what
	case m.panel != nil && m.panel.Question() == q:
		m.panel.Reject(msg.err)
	default:
		m.complain("That answer does not count: " + host.EscapeLine(msg.err.Error()) + ".")
	}
}

// visit leads the person to a page to which they agreed.
//
// spec 2026-07-28, client/elicitation: clients "MUST NOT automatically pre-fetch the URL",
// "MUST NOT open the URL without explicit consent".
func (m *screen) visit(q *host.Question, a host.Answer) {
	if q.Kind != host.QuestionPage || q.Page == nil || a.Action != host.Approve {
		return
	}
	address := q.Page.URL
	m.conv.add(&told{[]ui.Entry{{Kind: ui.EntryBlock, Label: "Visit this page", Text: host.EscapeLine(address)}}}, false)
	if m.opts.Open == nil {
		return
	}
	m.run(func(ctx context.Context) any {
		if err := m.opts.Open(ctx, address); err != nil {
			return noteMsg("No browser was opened: " + err.Error() + ". Copy the address into yours.")
		}
		return noteMsg("The page was opened in your browser.")
	})
}

// settled notes that a question needs no answer any more. The person who was in its panel
// comes to that of the next one, if one waits.
func (m *screen) settled(id string) {
	m.questions = slices.DeleteFunc(m.questions, func(q *host.Question) bool { return q.ID == id })
	delete(m.open, id)
	if m.panel == nil || m.panel.Question().ID != id {
		return
	}
	was := m.inPanel
	m.panel = nil
	if !was {
		return
	}
	if len(m.questions) > 0 {
		m.goToPanel()
		return
	}
	m.leavePanel()
}

// banner tells that a question waits, on one line, or is empty.
func (m *screen) banner(width int) string {
	if m.inPanel || len(m.questions) == 0 {
		return ""
	}
	q := m.questions[0]
	if m.title.question != q {
		m.title = waitingTitle{q, ui.NewWording(q).Title}
	}
	text := fmt.Sprintf(" %s: a question waits. %s", m.keys.Key(style.Question), m.title.text)
	if n := len(m.questions); n > 1 {
		text = fmt.Sprintf(" %s: %d questions wait. %s", m.keys.Key(style.Question), n, m.title.text)
	}
	return m.theme.Banner.Render(style.Pad(text, width))
}
