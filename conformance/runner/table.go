package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A quota is what one scenario must give, besides no failure and no
// warning.
type quota struct {
	success, skipped int
}

// A table is what each scenario must give.
type table map[scenario]quota

const header = `# What each scenario of the official conformance suite must give: exactly so many
# checks that succeed and that are skipped. None may fail or warn. Written by
# "go run ./conformance/runner -update"; read every line that changes.
`

// parseTable reads a table as [table.String] writes it.
func parseTable(r io.Reader) (table, error) {
	t := make(table)
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Fields(line)
		if len(f) != 5 {
			return nil, fmt.Errorf("line %d: want leg, revision, scenario, successes, skipped: %q", n, line)
		}
		s := scenario{leg: f[0], revision: f[1], name: f[2]}
		success, err := strconv.Atoi(f[3])
		if err != nil {
			return nil, fmt.Errorf("line %d: successes: %w", n, err)
		}
		skipped, err := strconv.Atoi(f[4])
		if err != nil {
			return nil, fmt.Errorf("line %d: skipped: %w", n, err)
		}
		if !slices.Contains(legs, s.leg) {
			return nil, fmt.Errorf("line %d: the leg is one of %s, not %q", n, strings.Join(legs, ", "), s.leg)
		}
		if success <= 0 {
			return nil, fmt.Errorf("line %d: %s would pass without one success", n, s)
		}
		if _, ok := t[s]; ok {
			return nil, fmt.Errorf("line %d: %s is there twice", n, s)
		}
		t[s] = quota{success: success, skipped: skipped}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the table: %w", err)
	}
	return t, nil
}

// String writes the table, in order, a line for each scenario.
func (t table) String() string {
	rows := [][]string{{"#leg", "revision", "scenario", "success", "skipped"}}
	for _, s := range slices.SortedFunc(maps.Keys(t), order) {
		rows = append(rows, []string{s.leg, s.revision, s.name, strconv.Itoa(t[s].success), strconv.Itoa(t[s].skipped)})
	}
	return header + align(rows)
}

// align writes rows so that their cells stand beneath each other.
func align(rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = io.WriteString(w, strings.Join(row, "\t")+"\n") // a builder takes everything
	}
	_ = w.Flush()
	return b.String()
}

// order is that of the legs, then older revisions first, then names.
func order(a, b scenario) int {
	return cmp.Or(cmp.Compare(slices.Index(legs, a.leg), slices.Index(legs, b.leg)), cmp.Compare(a.revision, b.revision), cmp.Compare(a.name, b.name))
}

// update puts into the table what the planned scenarios gave, and drops those
// that are no longer planned. A scenario that failed, warned, checked nothing
// or did not report keeps the line it had: nothing bad becomes expected.
func (t table) update(planned []scenario, got map[scenario]*result) {
	maps.DeleteFunc(t, func(s scenario, _ quota) bool { return !slices.Contains(planned, s) })
	for _, s := range planned {
		if r := got[s]; r != nil && r.failure == 0 && r.warning == 0 && r.success > 0 {
			t[s] = quota{success: r.success, skipped: r.skipped}
		}
	}
}
