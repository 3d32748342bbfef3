package issuer

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// auditBurst is how many events of one kind that anybody can cause are told at once, and
	// auditEvery how often one more is; beyond that they are counted.
	auditBurst = 100
	auditEvery = 6 * time.Second
	// auditCounted is how long it takes until a count is told, maxCounted how many kinds are
	// counted apart.
	auditCounted = time.Minute
	maxCounted   = 100
)

// An auditLimit bounds what strangers can have written to an audit log, so that they do not fill a
// disk: each kind of event has a rate limit, and events above it are combined into one with a Count.
// What people and grants do is never counted. It may be used by many goroutines.
type auditLimit struct {
	now func() time.Time

	mu     sync.Mutex
	limits map[auditKind]*rate.Limiter
	over   map[auditKind]int
	since  time.Time // when the first of over was counted
}

// An auditKind is what events have in common that are counted together.
type auditKind struct{ name, outcome, reason string }

func newAuditLimit(now func() time.Time) *auditLimit {
	return &auditLimit{now: now, limits: map[auditKind]*rate.Limiter{}, over: map[auditKind]int{}}
}

// fromAnybody says whether an event needs neither a person nor a grant.
func fromAnybody(e *Event) bool {
	return e.Outcome != "ok" || e.Reason != "" || e.Subject == "" && e.Grant == ""
}

// take says whether an event is told itself, and returns the counts that are due.
func (l *auditLimit) take(e Event) (told bool, counted []Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	counted = l.due(now, false)
	if !fromAnybody(&e) {
		return true, counted
	}
	limited := auditKind{e.Name, e.Outcome, ""}
	if e.Name == "login" {
		limited.reason = e.Reason // attempts that are slowed down hide no wrong passwords
	}
	limiter := l.limits[limited]
	if limiter == nil {
		limiter = rate.NewLimiter(rate.Every(auditEvery), auditBurst)
		l.limits[limited] = limiter
	}
	if limiter.AllowN(now, 1) {
		return true, counted
	}
	kind := auditKind{e.Name, e.Outcome, e.Reason}
	if _, ok := l.over[kind]; !ok && len(l.over) >= maxCounted {
		kind.reason = limited.reason
	}
	if len(l.over) == 0 {
		l.since = now
	}
	l.over[kind]++
	return false, counted
}

// counted returns the counts that are due, or all.
func (l *auditLimit) counted(all bool) []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.due(l.now(), all)
}

func (l *auditLimit) due(now time.Time, all bool) []Event {
	if len(l.over) == 0 || !all && now.Sub(l.since) < auditCounted {
		return nil
	}
	events := make([]Event, 0, len(l.over))
	for kind, n := range l.over {
		events = append(events, Event{Name: kind.name, Outcome: kind.outcome, Reason: kind.reason, Count: n})
	}
	clear(l.over)
	slices.SortFunc(events, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Reason, b.Reason))
	})
	return events
}

// audit tells what happened, as far as auditLimit lets it. Events hold
// identifiers and fixed words alone, never a code, token, secret or handle.
func (s *Server) audit(ctx context.Context, e Event) {
	if s.opts.Observe != nil {
		s.opts.Observe(ctx, e)
	}
	told, counted := s.limit.take(e)
	if told {
		s.tell(ctx, e)
	}
	for _, e := range counted {
		s.tell(ctx, e)
	}
}

// by notes the client of an event; nil is none.
func (e *Event) by(c *Client) {
	if c != nil {
		e.Client, e.ClientName = c.ID, c.Metadata.ClientName
	}
}

// of notes the person of an event.
func (e *Event) of(p *Person) { e.Subject, e.SubjectName = p.Subject, p.Name }

// tellCounted tells of the events that were only counted, at the latest a minute after the first.
func (s *Server) tellCounted(ctx context.Context, all bool) {
	for _, e := range s.limit.counted(all) {
		s.tell(ctx, e)
	}
}

// tell tells Options.Audit of an event, or the logger.
func (s *Server) tell(ctx context.Context, e Event) {
	if s.opts.Audit != nil {
		s.opts.Audit(ctx, e)
		return
	}
	attrs := []slog.Attr{slog.String("outcome", e.Outcome)}
	for _, a := range []struct{ name, value string }{
		{"client", e.Client},
		{"client_name", e.ClientName},
		{"subject", e.Subject},
		{"subject_name", e.SubjectName},
		{"grant", e.Grant},
		{"resource", e.Resource},
		{"grant_type", e.GrantType},
		{"remote", e.Remote},
		{"reason", e.Reason},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.name, a.value))
		}
	}
	if e.Count > 0 {
		attrs = append(attrs, slog.Int("count", e.Count))
	}
	if len(e.Scopes) > 0 {
		attrs = append(attrs, slog.Any("scopes", e.Scopes))
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, e.Name, attrs...)
}
