package ui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/host"
)

// Sessions are those that are kept, of which the face shows one. Open, Fork and Delete are
// called one at a time, the others by many goroutines at once.
type Sessions interface {
	// List lists them, the one used last first.
	List(ctx context.Context) ([]host.SessionInfo, error)
	// Records are those of one, also of the sessions that it is a fork of.
	Records(ctx context.Context, id string) ([]host.Record, error)
	// Open goes on with one in the place of the one that is shown, which is closed in this
	// process. With an empty id it begins a new one.
	Open(ctx context.Context, id string) (Session, error)
	// Fork is Open with a fork of a session after its last record.
	Fork(ctx context.Context, id string) (Session, error)
	// Delete deletes one that is not shown.
	Delete(ctx context.Context, id string) error
}

// mostListed is how many sessions /sessions shows at once.
const mostListed = 20

// SessionText says in a line what a session is, escaped.
func SessionText(s *host.SessionInfo, now time.Time) string {
	text := claim(s.Title)
	switch {
	case text == "" && !s.Used.After(s.Created):
		text = "(nothing was said yet)"
	case text == "":
		text = "(without a title)"
	}
	return When(s.Used, now) + "  " + text
}

// When is a time in few characters, seen from now: with the date only if it is another day.
func When(t, now time.Time) string {
	t = t.In(now.Location())
	switch {
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return "today " + t.Format("15:04")
	case t.Year() == now.Year():
		return t.Format("2 Jan 15:04")
	}
	return t.Format("2 Jan 2006")
}

// SummaryText says in a line how long a session is, which models took part and what they
// have used, escaped.
func SummaryText(records []host.Record) string {
	var models []string
	var usage host.Usage
	messages := 0
	for i := range records {
		switch b := records[i].Body.(type) {
		case *host.UserRecord:
			if b.Server == "" {
				messages++
			}
		case *host.TurnRecord:
			model := name(b.Model)
			if b.Offline {
				model = "the built-in planner"
			}
			if !slices.Contains(models, model) {
				models = append(models, model)
			}
		case *host.TurnEndRecord:
			add(&usage, b.Usage)
		case *host.UsageRecord:
			add(&usage, b.Usage)
		}
	}
	text := firstOf(count(int64(messages), "message", "messages"), "no messages") + ", " + firstOf(count(int64(len(records)), "record", "records"), "no records")
	if len(models) > 0 {
		text += ", " + strings.Join(models, " and ")
	}
	if usage.Input+usage.Output > 0 {
		text += fmt.Sprintf(", %s tokens in and %s out", Grouped(usage.Input), Grouped(usage.Output))
	}
	if usage.Cost > 0 {
		text += ", " + dollars(usage.Cost)
	}
	return text
}

func add(sum *host.Usage, u host.Usage) {
	sum.Input += u.Input
	sum.Output += u.Output
	sum.Cost += u.Cost
}

// kept says that there are no sessions to choose from, if so.
func (l *Commands) kept() bool {
	if l.Sessions == nil {
		l.say("No other sessions are kept here.")
	}
	return l.Sessions != nil
}

// listSessions lists the sessions whose titles have the words.
func (l *Commands) listSessions(ctx context.Context, rest string) {
	if !l.kept() {
		return
	}
	wanted := strings.Fields(strings.ToLower(rest))
	now, shown := l.Now(), l.Session.ID()
	l.Start(ctx, "listing sessions", func(ctx context.Context) func() {
		list, err := l.Sessions.List(ctx)
		list = slices.DeleteFunc(list, func(s host.SessionInfo) bool { return !hasAll(strings.ToLower(s.ID+" "+s.Title), wanted) })
		var lines []Entry
		for i := range list[:min(len(list), mostListed)] {
			s := &list[i]
			text := fmt.Sprintf("Session %s, %s", name(s.ID), SessionText(s, now))
			if s.Parent != "" {
				text += fmt.Sprintf(", a fork of %s", name(s.Parent))
			}
			if s.ID == shown {
				text += ", the one that is open"
			}
			if records, err := l.Sessions.Records(ctx, s.ID); err == nil {
				text += "; " + SummaryText(records)
			}
			lines = append(lines, said("%s.", text))
		}
		if more := len(list) - len(lines); more > 0 {
			lines = append(lines, said("%s used before; /sessions WORDS finds one by its title.", count(int64(more), "more session was", "more sessions were")))
		}
		return func() {
			if err != nil {
				l.say("The sessions cannot be listed: %s.", claim(err.Error()))
				return
			}
			if len(lines) == 0 {
				lines = []Entry{said("There are no such sessions.")}
			}
			l.print(lines, limits{})
		}
	})
}

// open goes on with another session.
func (l *Commands) open(ctx context.Context, id string) {
	if id == "" {
		l.say("Please write which session, as in /open ABCDEFGHIJ; /sessions lists them.")
		return
	}
	l.change(ctx, id, "opening a session", func(ctx context.Context) (Session, error) { return l.Sessions.Open(ctx, id) })
}

// begin begins a session.
func (l *Commands) begin(ctx context.Context, _ string) {
	l.change(ctx, "", "beginning a session", func(ctx context.Context) (Session, error) { return l.Sessions.Open(ctx, "") })
}

// ForkSession goes on with a fork of a session after its last record.
func (l *Commands) ForkSession(ctx context.Context, id string) {
	l.change(ctx, "", "forking a session", func(ctx context.Context) (Session, error) { return l.Sessions.Fork(ctx, id) })
}

// change has another session shown, unless something is under way in this one, or it is this
// one.
func (l *Commands) change(ctx context.Context, id, what string, open func(ctx context.Context) (Session, error)) {
	switch {
	case !l.kept():
		return
	case l.Running():
		l.say("Something is under way; wait for it or cancel it first.")
		return
	case id == l.Session.ID():
		l.say("Session %s is the one that is open.", name(id))
		return
	}
	l.forking = true
	l.Start(ctx, what, func(taskCtx context.Context) func() {
		s, err := open(taskCtx)
		return func() {
			l.forking = false
			if s == nil {
				l.say("No other session was opened: %s.", claim(err.Error()))
				return
			}
			l.Session, l.named = s, ""
			l.Opened(ctx, s)
			if err != nil {
				l.say("The session before was not closed as it should be: %s.", claim(err.Error()))
			}
			if len(l.attached) > 0 {
				l.attached = nil
				l.say("What was attached to your next message is not attached any more.")
			}
		}
	})
}

// delete deletes a session.
func (l *Commands) delete(ctx context.Context, id string) {
	switch {
	case !l.kept():
		return
	case id == "":
		l.say("Please write which session, as in /delete ABCDEFGHIJ; /sessions lists them.")
		return
	case id == l.Session.ID():
		l.say("Session %s is open; begin or open another one first.", name(id))
		return
	}
	l.Start(ctx, "deleting a session", func(ctx context.Context) func() {
		err := l.Sessions.Delete(ctx, id)
		return func() {
			if err != nil {
				l.say("It was not deleted: %s.", claim(err.Error()))
				return
			}
			l.say("Session %s is deleted.", name(id))
		}
	})
}
