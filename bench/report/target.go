package report

import (
	"fmt"
	"strings"
)

// A Target is what Parley is to reach: one figure, or its ratio to that of
// another server.
type Target struct {
	What     string
	Scenario string
	Metric   Metric
	// To is the server that the figure is divided by. None: Per is.
	To  string
	Per float64
	// Unit follows the number: %, x, µs.
	Unit string
	// AtLeast is the limit, Aim what is hoped for. Less says that less is better.
	AtLeast, Aim float64
	Less         bool
	// Server is the one whose target it is. Default: Parley.
	Server string
}

// reached is the figure of the target in a run.
func (t Target) reached(r *Run) (float64, bool) {
	server := t.Server
	if server == "" {
		server = Parley
	}
	own := r.Find(t.Scenario, server)
	if own == nil {
		return 0, false
	}
	if t.To == "" {
		v, ok := own.Median(t.Metric)
		return v / t.Per, ok
	}
	other := r.Find(t.Scenario, t.To)
	if other == nil {
		return 0, false
	}
	v, ok := own.Ratio(other, t.Metric)
	if t.Unit == "%" {
		v *= 100
	}
	return v, ok
}

// verdict says how a figure stands to the target.
func (t Target) verdict(v float64) string {
	switch {
	case t.meets(v, t.Aim):
		return "aim"
	case t.meets(v, t.AtLeast):
		return "yes"
	}
	return "**no**"
}

func (t Target) meets(v, limit float64) bool {
	if t.Less {
		return v <= limit
	}
	return v >= limit
}

// Holds says in words what a run reached, and whether it is within the limit.
func (t Target) Holds(r *Run) (text string, ok bool) {
	v, measured := t.reached(r)
	if !measured {
		return t.What + ": not measured", false
	}
	word := "at least"
	if t.Less {
		word = "at most"
	}
	ok = t.meets(v, t.AtLeast)
	text = fmt.Sprintf("%s: %s, %s %s", t.What, strings.TrimSpace(Show(v)+" "+t.Unit), word, Show(t.AtLeast))
	if !ok {
		text += ": broken"
	}
	return text, ok
}

// Targets is the table of targets and what a run reached.
func (r *Run) Targets(targets []Target) string {
	var b strings.Builder
	row(&b, []string{"target", "reached", "limit", "aim", "met"})
	b.WriteString("|---|---:|---:|---:|---|\n")
	for _, t := range targets {
		show := func(v float64) string { return strings.TrimSpace(fmt.Sprintf("%s %s", Show(v), t.Unit)) }
		reached, verdict := none, none
		if v, ok := t.reached(r); ok {
			reached, verdict = show(v), t.verdict(v)
		}
		row(&b, []string{t.What, reached, show(t.AtLeast), show(t.Aim), verdict})
	}
	return b.String()
}

// Speed says how fast the machine was beside the one that limits in units of time
// were set on: by a figure of the floor, there and here.
func (r *Run) Speed(scenario string, m Metric, there float64) string {
	floor := r.Find(scenario, Floor)
	if floor == nil {
		return ""
	}
	here, ok := floor.Median(m)
	if !ok {
		return ""
	}
	return fmt.Sprintf("Limits in seconds and parts of them were set on a machine, or at an hour, where the floor of %s took %s µs of CPU; here it took %s, %s times that.\n",
		scenario, Show(there), Show(here), Show(here/there))
}

// Page is what a run has to say, to be spliced into a page.
func (r *Run) Page(targets []Target, speed string, pictures func(Scenario) string) string {
	var b strings.Builder
	rounds := 0
	for _, result := range r.Results {
		rounds = max(rounds, len(result.Rounds))
	}
	fmt.Fprintf(&b, "Measured %s, medians of %d rounds; series of fewer.\n\n", r.Date, rounds)
	for _, f := range append(r.Machine[:len(r.Machine):len(r.Machine)], r.Peers...) {
		fmt.Fprintf(&b, "- %s: %s\n", f.Name, f.Is)
	}
	b.WriteString("\n## Targets\n\n" + r.Targets(targets) + "\n" + speed + "\n## Measurements\n\n")
	for _, s := range r.Scenarios {
		b.WriteString(r.Table(s) + "\n")
		if p := pictures(s); p != "" {
			b.WriteString(p + "\n\n")
		}
	}
	return b.String()
}
