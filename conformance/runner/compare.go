package main

import (
	"fmt"
	"slices"
	"strings"
)

// A problem is a way in which a scenario did not give what it must.
type problem struct {
	scenario scenario
	// what is wrong, in a few words.
	what string
	// details are the checks that failed or warned.
	details []string
}

// compare holds what was got to the table: the planned scenarios, and no
// others, must be in the table, must have reported, without failure or
// warning, and with exactly the counts expected. The problems come in the
// order of the table.
func compare(t table, planned []scenario, got map[scenario]*result) []problem {
	var problems []problem
	add := func(s scenario, details []string, format string, args ...any) {
		problems = append(problems, problem{scenario: s, what: fmt.Sprintf(format, args...), details: details})
	}
	for s := range t {
		if !slices.Contains(planned, s) {
			add(s, nil, "is expected, but the suite does not list it")
		}
	}
	for _, s := range planned {
		r := got[s]
		if r == nil {
			add(s, nil, "did not report")
			continue
		}
		if r.failure > 0 || r.warning > 0 {
			add(s, r.complaints, "%d failed, %d warned", r.failure, r.warning)
		}
		want, ok := t[s]
		if !ok {
			add(s, nil, "is not in the table; it gave %d successes, %d skipped", r.success, r.skipped)
			continue
		}
		if r.success != want.success {
			add(s, nil, "%d successes, want %d", r.success, want.success)
		}
		if r.skipped != want.skipped {
			add(s, nil, "%d skipped, want %d", r.skipped, want.skipped)
		}
	}
	slices.SortStableFunc(problems, func(a, b problem) int { return order(a.scenario, b.scenario) })
	return problems
}

// report writes problems as a table, and beneath it the details.
func report(problems []problem) string {
	var rows [][]string
	var details strings.Builder
	for _, p := range problems {
		rows = append(rows, []string{p.scenario.leg, p.scenario.revision, p.scenario.name, p.what})
		for _, d := range p.details {
			fmt.Fprintf(&details, "%s: %s\n", p.scenario, d)
		}
	}
	return align(rows) + details.String()
}
