package report_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/bench/report"
)

func rounds(m report.Metric, values ...float64) []report.Metrics {
	var list []report.Metrics
	for _, v := range values {
		list = append(list, report.Metrics{m: v})
	}
	return list
}

func TestMedian(t *testing.T) {
	for name, test := range map[string]struct {
		rounds []report.Metrics
		want   float64
		ok     bool
	}{
		"odd":      {rounds(report.CPU, 9, 1, 5), 5, true},
		"even":     {rounds(report.CPU, 4, 1, 3, 100), 3.5, true},
		"one":      {rounds(report.CPU, 7), 7, true},
		"none":     {nil, 0, false},
		"missing":  {rounds(report.Rate, 1, 2), 0, false},
		"in a few": {append(rounds(report.Rate, 1), rounds(report.CPU, 2, 6)...), 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := report.Result{Rounds: test.rounds}
			got, ok := r.Median(report.CPU)
			if got != test.want || ok != test.ok {
				t.Errorf("%v, %v, want %v, %v", got, ok, test.want, test.ok)
			}
		})
	}
}

// The machine is slow in the second round for both: the ratio does not see it.
func TestRatio(t *testing.T) {
	a := report.Result{Rounds: rounds(report.CPU, 10, 100, 12)}
	b := report.Result{Rounds: rounds(report.CPU, 5, 50, 4)}
	if got, ok := a.Ratio(&b, report.CPU); got != 2 || !ok {
		t.Errorf("%v, %v, want the median of 2, 2 and 3", got, ok)
	}
	if _, ok := a.Ratio(&b, report.Rate); ok {
		t.Error("a ratio of what was not measured")
	}
	zero := report.Result{Rounds: rounds(report.CPU, 0, 50)}
	if got, ok := a.Ratio(&zero, report.CPU); got != 2 || !ok {
		t.Errorf("%v, %v, want the ratio of the second round alone", got, ok)
	}
}

func TestShow(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.0004: "0", 0.012: "0.0120", 0.5: "0.500", 3: "3", 75: "75", 1.234: "1.23", 12.34: "12.3", 99.96: "100.0", 100: "100", 123.4: "123", 1234.5: "1,235",
		1048576: "1,048,576", -1234: "-1,234",
	} {
		if got := report.Show(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

func run() *report.Run {
	return &report.Run{
		Date: "2026-11-21", Rounds: 3,
		Machine: []report.Fact{{Name: "processor", Is: "slow"}},
		Peers:   []report.Fact{{Name: "go-sdk", Is: "v1"}},
		Scenarios: []report.Scenario{
			{Name: "echo", Title: "Echo", About: "Calls.", Columns: []report.Metric{report.Rate, report.PeakRSS}},
			{Name: "grow", Title: "Growth", About: "More.", Columns: []report.Metric{report.CPU}, Axis: "bytes"},
		},
		Results: []report.Result{
			{Scenario: "echo", Server: report.Floor, Rounds: []report.Metrics{{report.Rate: 1000, report.PeakRSS: 3 << 20}}},
			{Scenario: "echo", Server: report.Parley, Rounds: []report.Metrics{{report.Rate: 800}}},
			{Scenario: "grow", Server: report.Floor, X: 10, Rounds: rounds(report.CPU, 1)},
			{Scenario: "grow", Server: report.Floor, X: 2000, Rounds: rounds(report.CPU, 2)},
			{Scenario: "grow", Server: report.Parley, X: 2000, Rounds: rounds(report.CPU, 3)},
		},
	}
}

func TestTable(t *testing.T) {
	r := run()
	want := `### Echo

Calls.

| server | requests/s | peak RSS MiB |
|---|---:|---:|
| floor | 1,000 | 3 |
| parley | 800 | - |
`
	if diff := cmp.Diff(want, r.Table(r.Scenarios[0])); diff != "" {
		t.Error(diff)
	}
	want = `### Growth

More.

| bytes | floor, CPU µs | parley, CPU µs |
|---|---:|---:|
| 10 | 1 | - |
| 2,000 | 2 | 3 |
`
	if diff := cmp.Diff(want, r.Table(r.Scenarios[1])); diff != "" {
		t.Error(diff)
	}
}

func TestTargets(t *testing.T) {
	target := func(at, aim float64) report.Target {
		return report.Target{What: "rate", Scenario: "echo", Metric: report.Rate, To: report.Floor, Unit: "%", AtLeast: at, Aim: aim}
	}
	less := report.Target{What: "rate", Scenario: "echo", Metric: report.Rate, Per: 100, AtLeast: 8, Aim: 2, Less: true}
	for name, test := range map[string]struct {
		target report.Target
		want   string
	}{
		"the aim":       {target(70, 80), "| rate | 80 % | 70 % | 80 % | aim |"},
		"the limit":     {target(80, 90), "| rate | 80 % | 80 % | 90 % | yes |"},
		"nothing":       {target(81, 90), "| rate | 80 % | 81 % | 90 % | **no** |"},
		"less, limit":   {less, "| rate | 8 | 8 | 2 | yes |"},
		"not measured":  {report.Target{What: "rate", Scenario: "other", Metric: report.Rate, Per: 1, AtLeast: 1, Aim: 1}, "| rate | - | 1 | 1 | - |"},
		"nobody beside": {report.Target{What: "rate", Scenario: "echo", Metric: report.Rate, To: report.TS, AtLeast: 1, Aim: 1}, "| rate | - | 1 | 1 | - |"},
		"another's": {
			report.Target{What: "rate", Scenario: "echo", Metric: report.Rate, Server: report.Floor, To: report.Parley, Unit: "x", AtLeast: 1, Aim: 2},
			"| rate | 1.25 x | 1 x | 2 x | yes |",
		},
	} {
		t.Run(name, func(t *testing.T) {
			lines := strings.Split(run().Targets([]report.Target{test.target}), "\n")
			if diff := cmp.Diff(test.want, lines[2]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHolds(t *testing.T) {
	limit := func(most float64) report.Target {
		return report.Target{What: "rate", Scenario: "echo", Metric: report.Rate, Per: 100, Unit: "h", AtLeast: most, Less: true}
	}
	for name, test := range map[string]struct {
		target report.Target
		want   string
		ok     bool
	}{
		"at the ceiling": {limit(8), "rate: 8 h, at most 8", true},
		"above it":       {limit(7.9), "rate: 8 h, at most 7.90: broken", false},
		"too little":     {report.Target{What: "rate", Scenario: "echo", Metric: report.Rate, To: report.Floor, Unit: "%", AtLeast: 81}, "rate: 80 %, at least 81: broken", false},
		"not measured":   {report.Target{What: "rate", Scenario: "other", Metric: report.Rate, Per: 1, AtLeast: 1}, "rate: not measured", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := test.target.Holds(run())
			if got != test.want || ok != test.ok {
				t.Errorf("%q, %v; want %q, %v", got, ok, test.want, test.ok)
			}
		})
	}
}

func TestPage(t *testing.T) {
	page := run().Page(nil, "It was slow.", func(s report.Scenario) string { return "picture of " + s.Name })
	at := 0
	for _, want := range []string{
		"2026-11-21", "processor: slow", "go-sdk: v1", "## Targets", "It was slow.", "## Measurements", "### Echo", "picture of echo", "### Growth", "picture of grow",
	} {
		i := strings.Index(page[at:], want)
		if i < 0 {
			t.Fatalf("no %q after byte %d of:\n%s", want, at, page)
		}
		at += i
	}
}

func TestSpeed(t *testing.T) {
	const want = "the floor of grow took 0.500 µs of CPU; here it took 1, 2 times that"
	if got := run().Speed("grow", report.CPU, 0.5); !strings.Contains(got, want) {
		t.Errorf("no %q in %q", want, got)
	}
	if got := run().Speed("other", report.CPU, 0.5) + run().Speed("grow", report.Rate, 1); got != "" {
		t.Errorf("of what was not measured: %q", got)
	}
}

func TestSplice(t *testing.T) {
	const begin, end = "<!-- measured: begin -->", "<!-- measured: end -->"
	for name, test := range map[string]struct{ page, want string }{
		"empty":    {"", begin + "\n\nnew\n\n" + end + "\n"},
		"no marks": {"# Words\n", "# Words\n\n" + begin + "\n\nnew\n\n" + end + "\n"},
		"between":  {"# Words\n\n" + begin + "\nold\n" + end + "\n\nMore words.\n", "# Words\n\n" + begin + "\n\nnew\n\n" + end + "\n\nMore words.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := report.Splice(test.page, "\nnew\n")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			again, err := report.Splice(got, "new")
			if err != nil || again != got {
				t.Errorf("a second time: %v\n%s", err, cmp.Diff(got, again))
			}
		})
	}
	for _, page := range []string{begin, "words " + end} {
		if got, err := report.Splice(page, "new"); err == nil {
			t.Errorf("%q became %q", page, got)
		}
	}
}

func TestMerge(t *testing.T) {
	old, newer := run(), &report.Run{
		Date: "2026-11-22", Rounds: 5,
		Scenarios: []report.Scenario{{Name: "echo", Title: "New echo"}},
		Results:   []report.Result{{Scenario: "echo", Server: report.TS}},
	}
	old.Merge(newer)
	old.Sort([]string{"echo", "grow"})
	if old.Date != newer.Date || old.Rounds != 5 || old.Scenarios[0].Title != "New echo" || len(old.Scenarios) != 2 {
		t.Errorf("%+v", old)
	}
	if of := old.Of("echo"); len(of) != 1 || of[0].Server != report.TS {
		t.Errorf("echo: %+v", of)
	}
	if of := old.Of("grow"); len(of) != 3 || of[1].X != 2000 {
		t.Errorf("grow: %+v", of)
	}
	old.Sort([]string{"grow"})
	if len(old.Scenarios) != 1 || len(old.Results) != 3 {
		t.Errorf("what is not in the order stays: %+v", old)
	}
}

func TestSave(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.json")
	r := run()
	r.Results[0].Rounds[0][report.Rate] = 12345.678
	if err := r.Save(file); err != nil {
		t.Fatal(err)
	}
	got, err := report.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	want := run()
	want.Results[0].Rounds[0] = report.Metrics{report.Rate: 12346, report.PeakRSS: 3145700} // five digits
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
