package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A column is how a metric is shown.
type column struct {
	title string
	per   float64 // what the figure is divided by
}

var columns = map[Metric]column{
	Rate:       {"requests/s", 1},
	CPU:        {"CPU µs", 1},
	Allocs:     {"allocations", 1},
	Bytes:      {"bytes allocated", 1},
	P50:        {"p50 µs", 1},
	P99:        {"p99 µs", 1},
	PeakRSS:    {"peak RSS MiB", 1 << 20},
	Size:       {"bytes of answer", 1},
	Delivered:  {"delivered", 1},
	Elapsed:    {"elapsed µs", 1},
	Memory:     {"heap and stack KiB", 1 << 10},
	RSS:        {"RSS KiB", 1 << 10},
	Goroutines: {"goroutines", 1},

	Instructions: {"instructions", 1},
}

// Show formats a figure for people: whole numbers as they are, others with three
// digits, or all before the point.
func Show(v float64) string {
	if abs := math.Abs(v); abs < 0.0005 {
		return "0"
	} else if abs < 100 && v != math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', max(0, 2-int(math.Floor(math.Log10(abs)))), 64)
	}
	s := strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Table is a scenario as a table of Markdown: a row for each server, and for a
// series one for each place.
func (r *Run) Table(s Scenario) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n%s\n\n", s.Title, s.About)
	if s.Axis != "" {
		r.series(&b, s)
		return b.String()
	}
	head := []string{"server"}
	for _, m := range s.Columns {
		head = append(head, columns[m].title)
	}
	row(&b, head)
	rule(&b, len(head))
	for _, result := range r.Of(s.Name) {
		cells := []string{result.Server}
		for _, m := range s.Columns {
			cells = append(cells, cell(result, m))
		}
		row(&b, cells)
	}
	return b.String()
}

// series writes a row for each place, with the servers beside each other.
func (r *Run) series(b *strings.Builder, s Scenario) {
	m := s.Columns[0]
	var servers []string
	var xs []float64
	at := map[string]*Result{}
	key := func(server string, x float64) string { return fmt.Sprint(server, x) }
	for _, result := range r.Of(s.Name) {
		if !slices.Contains(servers, result.Server) {
			servers = append(servers, result.Server)
		}
		if !slices.Contains(xs, result.X) {
			xs = append(xs, result.X)
		}
		at[key(result.Server, result.X)] = result
	}
	head := []string{s.Axis}
	for _, server := range servers {
		head = append(head, server+", "+columns[m].title)
	}
	row(b, head)
	rule(b, len(head))
	for _, x := range xs {
		cells := []string{Show(x)}
		for _, server := range servers {
			if result := at[key(server, x)]; result != nil {
				cells = append(cells, cell(result, m))
			} else {
				cells = append(cells, none)
			}
		}
		row(b, cells)
	}
}

const none = "-"

func cell(r *Result, m Metric) string {
	v, ok := r.Median(m)
	if !ok {
		return none
	}
	return Show(v / columns[m].per)
}

func row(b *strings.Builder, cells []string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func rule(b *strings.Builder, n int) { b.WriteString("|---|" + strings.Repeat("---:|", n-1) + "\n") }

// Marks between which Splice writes.
const (
	begin = "<!-- measured: begin -->"
	end   = "<!-- measured: end -->"
)

// Splice puts text between the marks of a page, whose other words are people's.
// A page without marks gets them at its end.
func Splice(page, text string) (string, error) {
	text = begin + "\n\n" + strings.TrimSpace(text) + "\n\n" + end
	before, rest, ok := strings.Cut(page, begin)
	if !ok {
		if strings.Contains(page, end) {
			return "", fmt.Errorf("%s without %s", end, begin)
		}
		if page != "" {
			page = strings.TrimRight(page, "\n") + "\n\n"
		}
		return page + text + "\n", nil
	}
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("%s without %s", begin, end)
	}
	return before + text + after, nil
}
