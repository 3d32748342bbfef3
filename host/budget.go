package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/parley-mcp/parley/internal/pausetimer"
)

// A BudgetError says that a run was ended because a budget was spent.
type BudgetError struct {
	// What is the budget: "steps", "calls", "time", "tokens", "money",
	// "samples", "questions".
	What string
	// Limit is the budget as a text, for example "16 steps".
	Limit string
}

// Error names the budget.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("the budget of %s is spent", e.Limit)
}

// limit ends ctx with a BudgetError after most, without the time in which a
// person is asked, until the function that it returns is called.
func (h *Host) limit(ctx context.Context, most time.Duration) (context.Context, func()) {
	ctx, cancel := pausetimer.WithTimeout(ctx, most, &BudgetError{"time", most.String()})
	remove := h.limits.add(ctx)
	return ctx, func() {
		remove()
		cancel()
	}
}

// An Amount is how much of each thing that a run is bounded by.
type Amount struct {
	// Steps are turns of the model, Calls those of tools.
	Steps int `json:"steps"`
	Calls int `json:"calls"`
	// Tokens and Cost, in dollars, are what models use, for servers too. As a limit, 0 is none.
	Tokens int64   `json:"tokens"`
	Cost   float64 `json:"cost"`
	// Time is without that in which a person is asked.
	Time time.Duration `json:"time"`
}

// A Budget is what the run under way, or the last one, has used, and what bounds a run of
// the session.
type Budget struct {
	Used  Amount
	Limit Amount
}

// limitOf are the limits of the options.
func limitOf(o *Options) Amount {
	return Amount{Steps: o.MaxSteps, Calls: o.MaxRunCalls, Tokens: o.MaxTokens, Cost: o.MaxCost, Time: o.MaxTime}
}

// Budget returns what is used, and the limits. The time that is used is that of the log.
func (s *Session) Budget() Budget {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := Budget{Limit: s.limit}
	count := RunEndRecord{}
	end := time.Now()
	switch {
	case s.current != nil:
		count = s.current.count
	default:
		for i := len(s.records) - 1; i >= 0; i-- {
			if last, ok := s.records[i].Body.(*RunEndRecord); ok {
				count, end = *last, s.records[i].Time
				break
			}
		}
	}
	b.Used = Amount{
		Steps: count.Steps, Calls: count.Calls, Tokens: s.state.runUsage.Input + s.state.runUsage.Output, Cost: s.state.runUsage.Cost,
	}
	if first := s.state.runFirst; first > 0 {
		b.Used.Time = workTime(s.records[first-1:], end)
	}
	return b
}

// workTime is the time from the first record to an end in which no question was open.
func workTime(records []Record, end time.Time) time.Duration {
	var worked time.Duration
	open := make(map[string]bool)
	since := records[0].Time
	for i := range records {
		r := &records[i]
		if r.Time.After(end) {
			break
		}
		if len(open) == 0 {
			worked += r.Time.Sub(since)
		}
		since = r.Time
		switch b := r.Body.(type) {
		case *QuestionRecord:
			open[b.ID] = true
		case *AnswerRecord:
			delete(open, b.Question)
		}
	}
	if len(open) == 0 && end.After(since) {
		worked += end.Sub(since)
	}
	return max(worked, 0)
}

// SetLimit changes what bounds a run of this session in this process, for the person: the log
// has a notice of it. A run that is under way is bound by it at once, but by its time from
// the next run on. Limits of the other sessions stay.
func (s *Session) SetLimit(limit Amount) error {
	switch {
	case limit.Steps < 1 || limit.Calls < 1:
		return errors.New("a run needs at least one step and one call")
	case limit.Time <= 0:
		return errors.New("the time of a run must be more than nothing")
	case limit.Tokens < 0 || limit.Cost < 0:
		return errors.New("a limit cannot be negative; 0 is none")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := limit.since(s.limit)
	if len(changes) == 0 {
		return nil
	}
	if _, err := s.appendLocked(&NoticeRecord{Text: "The person changed the limits of a run: " + strings.Join(changes, ", ")}); err != nil {
		return err
	}
	s.limit = limit
	return nil
}

// since says what differs from the limits before.
func (a Amount) since(before Amount) []string {
	var list []string
	add := func(differs bool, now, was string) {
		if differs {
			list = append(list, now+" (before: "+was+")")
		}
	}
	tokens := func(n int64) string {
		if n == 0 {
			return "any number of tokens"
		}
		return fmt.Sprintf("%d tokens", n)
	}
	cost := func(c float64) string {
		if c == 0 {
			return "any cost"
		}
		return fmt.Sprintf("%.2f dollars", c)
	}
	add(a.Steps != before.Steps, fmt.Sprintf("%d steps", a.Steps), fmt.Sprint(before.Steps))
	add(a.Calls != before.Calls, fmt.Sprintf("%d calls", a.Calls), fmt.Sprint(before.Calls))
	add(a.Tokens != before.Tokens, tokens(a.Tokens), tokens(before.Tokens))
	add(a.Cost != before.Cost, cost(a.Cost), cost(before.Cost))
	add(a.Time != before.Time, a.Time.String(), before.Time.String())
	return list
}

// limits are those of a run now.
func (s *Session) limits() Amount {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limit
}
