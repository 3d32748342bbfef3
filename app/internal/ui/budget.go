package ui

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/host"
)

// A BudgetLine says what is used and left of one thing that a run is bounded by.
type BudgetLine struct {
	// Name is what /budget calls it.
	Name string
	// Text says it in words.
	Text string
}

// BudgetLines words a budget.
func BudgetLines(b host.Budget) []BudgetLine {
	u, l := b.Used, b.Limit
	left := func(used, limit int) string {
		return fmt.Sprintf("%s of %s, %s left", Grouped(int64(used)), Grouped(int64(limit)), Grouped(int64(max(limit-used, 0))))
	}
	tokens, money := Grouped(u.Tokens)+" used, no limit", fmt.Sprintf("%s used, no limit", dollars(u.Cost))
	if l.Tokens > 0 {
		tokens = left(int(u.Tokens), int(l.Tokens))
	}
	if u.Cost == 0 {
		money = "nothing that is known is used, no limit"
	}
	if l.Cost > 0 {
		money = fmt.Sprintf("%s of %s, %s left", dollars(u.Cost), dollars(l.Cost), dollars(max(l.Cost-u.Cost, 0)))
	}
	return []BudgetLine{
		{"steps", left(u.Steps, l.Steps)},
		{"calls", left(u.Calls, l.Calls)},
		{"tokens", tokens},
		{"time", fmt.Sprintf("%s of %s, %s left", took(u.Time), took(l.Time), took(max(l.Time-u.Time, 0)))},
		{"money", money},
	}
}

// dollars is an amount of money.
func dollars(d float64) string {
	if d > 0 && d < 1 {
		return fmt.Sprintf("$%.4f", d)
	}
	return fmt.Sprintf("$%.2f", d)
}

// took is a time in words that leave out what is nothing: 1h30m, 10m, 5s.
func took(d time.Duration) string {
	text := d.Truncate(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Grouped writes a number with commas.
func Grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// withLimit is a limit with another value for a name of BudgetLines.
func withLimit(a host.Amount, name, value string) (host.Amount, error) {
	var err error
	switch name {
	case "steps":
		a.Steps, err = strconv.Atoi(value)
	case "calls":
		a.Calls, err = strconv.Atoi(value)
	case "tokens":
		a.Tokens, err = strconv.ParseInt(value, 10, 64)
	case "time":
		if a.Time, err = time.ParseDuration(value); err != nil {
			return a, fmt.Errorf("time: %q is no time: write it as 30s, 10m or 1h30m", value)
		}
	case "money":
		a.Cost, err = strconv.ParseFloat(strings.TrimPrefix(value, "$"), 64)
		if a.Cost != a.Cost || a.Cost > 1e12 { // not a number
			err = strconv.ErrRange
		}
	default:
		return a, fmt.Errorf("%q is none of steps, calls, tokens, time and money", name)
	}
	if err != nil {
		return a, fmt.Errorf("%s: %q is no number that can be used", name, value)
	}
	return a, nil
}

// Doubled is a limit with twice as much of what a name of BudgetLines stands for, and
// whether there is a limit to double.
func Doubled(a host.Amount, name string) (host.Amount, bool) {
	const most = 1 << 40
	switch {
	case name == "steps" && a.Steps < most:
		a.Steps *= 2
	case name == "calls" && a.Calls < most:
		a.Calls *= 2
	case name == "tokens" && a.Tokens > 0 && a.Tokens < most:
		a.Tokens *= 2
	case name == "time" && a.Time < 1000*time.Hour:
		a.Time *= 2
	case name == "money" && a.Cost > 0 && a.Cost < most:
		a.Cost *= 2
	default:
		return a, false
	}
	return a, true
}

// budget shows the budget of a run, or changes its limits.
func (l *Commands) budget(_ context.Context, rest string) {
	if rest == "" {
		l.showBudget()
		return
	}
	limit := l.Session.Budget().Limit
	pairs, err := Pairs(rest)
	for _, known := range BudgetLines(host.Budget{}) {
		if value, ok := pairs[known.Name]; ok && err == nil {
			limit, err = withLimit(limit, known.Name, value)
			delete(pairs, known.Name)
		}
	}
	for other := range pairs {
		if err == nil {
			_, err = withLimit(limit, other, "")
		}
	}
	if err == nil {
		err = l.Session.SetLimit(limit)
	}
	if err != nil {
		l.say("The limits stay: %s.", host.EscapeLine(err.Error()))
		return
	}
	l.showBudget()
}

// showBudget says what is used and left.
func (l *Commands) showBudget() {
	when := "The last run"
	if l.Session.Snapshot().Busy {
		when = "This run"
	}
	lines := []Entry{said("%s, of what a run may use:", when)}
	for _, b := range BudgetLines(l.Session.Budget()) {
		lines = append(lines, said("  %s: %s.", b.Name, b.Text))
	}
	lines = append(lines, said("%s", UsageText(l.Session.Snapshot().Usage)), said("/budget steps=40 changes a limit for this session; 0 tokens or money is no limit."))
	l.print(lines, limits{})
}

// EndHint says what can be done about the end of a run, or is empty.
func EndHint(r *host.RunEndRecord) string {
	if !strings.HasPrefix(r.Why, "the budget of ") {
		return ""
	}
	return "/budget says what is used, and raises a limit; then ask it to go on."
}

// UsageText says what the models of a session have used.
func UsageText(u host.Usage) string {
	if u.Input+u.Output == 0 {
		return "The whole session has used no tokens that were told."
	}
	text := fmt.Sprintf("The whole session has used %s tokens in and %s out", Grouped(u.Input), Grouped(u.Output))
	if u.CacheRead > 0 {
		text += fmt.Sprintf(", %s of them from a cache", Grouped(u.CacheRead))
	}
	if u.Cost > 0 {
		text += ", " + dollars(u.Cost)
	}
	return text + "."
}
