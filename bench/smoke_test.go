package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/bench/report"
)

// Every scenario works with Parley and the floor, and finds what can be. What the
// figures are is no matter of tests.
func TestScenarios(t *testing.T) {
	b := &bench{dir: ".", bin: t.TempDir(), rounds: 2, time: 30 * time.Millisecond, sessions: 20, less: 20}
	if err := b.compile(t.Context(), "servers", "./servers/parley", "./servers/floor"); err != nil {
		t.Fatal(err)
	}
	if err := b.compile(t.Context(), "clients", "./clients/parley", "./clients/floor", "./clients/target"); err != nil {
		t.Fatal(err)
	}
	if err := b.compileProgram(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, s := range scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			if s.peers && (os.Getenv("PARLEY_TEST_PEERS") == "" || !b.hasPeers()) {
				t.Skip("set PARLEY_TEST_PEERS=1 to run peers from npm, which \"npm ci\" in app/interop/peers installs")
			}
			s.servers = slices.DeleteFunc(slices.Clone(s.servers), func(server string) bool {
				peer := slices.Contains([]string{report.GoSDK, report.MCPGo, report.TS, inspectorName}, server)
				return peer || server == report.Original && !b.hasPeers()
			})
			if len(s.xs) > 2 {
				s.xs = s.xs[:2]
			}
			results, err := s.measure(t.Context(), b)
			if errors.Is(err, errNoValgrind) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := len(s.servers) * max(len(s.xs), 1); len(results) != want {
				t.Fatalf("%d results, want %d", len(results), want)
			}
			for _, r := range results {
				checkResult(t, s, &r)
			}
		})
	}
}

func checkResult(t *testing.T, s *scenario, r *report.Result) {
	t.Helper()
	rounds := 2
	if s.exact {
		rounds = 1
	}
	if r.Scenario != s.Name || len(r.Rounds) != rounds {
		t.Errorf("%+v", r)
	}
	for _, m := range s.Columns {
		v, ok := r.Median(m)
		if !ok {
			t.Errorf("%s: no %s", r.Server, m)
		}
		// A few sessions may cost less than what the collector finds beside them.
		if v <= 0 && m != report.Memory && m != report.RSS && m != report.Goroutines && m != report.Bytes && m != report.Allocs {
			t.Errorf("%s: %s is %v", r.Server, m, v)
		}
	}
	for m, want := range map[string]report.Metrics{
		progressMany:  {report.Delivered: manyEvents},
		sessionMany:   {report.Delivered: manyEvents},
		httpModernSSE: {report.Delivered: 1},
	}[s.Name] {
		if v, _ := r.Median(m); v != want {
			t.Errorf("%s: %s is %v, want %v", r.Server, m, v, want)
		}
	}
}

// Each target is about something that is measured.
func TestTargetsAreMeasured(t *testing.T) {
	names := order()
	for _, target := range slices.Concat(targets(), ceilings()) {
		if !slices.Contains(names, target.Scenario) {
			t.Errorf("%s: no scenario %q", target.What, target.Scenario)
		}
		if (target.To == "") == (target.Per == 0) {
			t.Errorf("%s: wants a server to compare with, or a unit", target.What)
		}
	}
	for _, target := range targets() {
		if target.Less && target.Aim > target.AtLeast || !target.Less && target.Aim < target.AtLeast {
			t.Errorf("%s: the aim is less than the limit", target.What)
		}
	}
}

func TestText(t *testing.T) {
	for _, size := range []int{0, len(textEnd), 1 << 10, 1 << 20} {
		if got := len(text(size)); got > max(size, len(textEnd)) || got < size-60 {
			t.Errorf("%d bytes for %d", got, size)
		}
	}
}

// A report is written twice: the second run keeps what it did not measure, and
// the words of the page.
func TestWrite(t *testing.T) {
	docs := t.TempDir()
	var printed strings.Builder
	b := &bench{out: &printed}
	of := func(scenario string) *report.Run {
		return &report.Run{
			Date:      "2026-11-21",
			Scenarios: []report.Scenario{{Name: scenario, Title: scenario, Columns: []report.Metric{report.Rate}}},
			Results:   []report.Result{{Scenario: scenario, Server: report.Parley, Rounds: []report.Metrics{{report.Rate: 1}}}},
		}
	}
	page := filepath.Join(docs, "benchmarks.md")
	if err := os.WriteFile(page, []byte("# Words\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, scenario := range []string{stdioOne, httpModernJSON} {
		if err := b.finish(of(scenario), docs); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := report.Load(filepath.Join(docs, "benchmarks", "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Scenarios) != 2 || whole.Scenarios[0].Name != httpModernJSON || len(whole.Results) != 2 {
		t.Errorf("%+v", whole)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# Words\n", "### " + stdioOne, "### " + httpModernJSON, "](benchmarks/" + stdioOne + ".svg)", "| target |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if !strings.Contains(printed.String(), "| target |") {
		t.Errorf("printed: %s", printed.String())
	}
}

func TestMachine(t *testing.T) {
	for _, f := range machine() {
		if f.Name == "" || f.Is == "" {
			t.Errorf("%+v", f)
		}
	}
}

func TestPeers(t *testing.T) {
	facts, err := (&bench{dir: "."}).peers()
	if err != nil || len(facts) < 2 {
		t.Fatalf("%+v, %v", facts, err)
	}
	for _, f := range facts {
		if _, version, ok := strings.Cut(f.Is, " "); !ok || version == "" {
			t.Errorf("no version: %+v", f)
		}
	}
}

func TestContestStops(t *testing.T) {
	stopped := 0
	field := []*contestant{
		{server: "a", round: func(context.Context) (report.Metrics, error) { return report.Metrics{}, nil }},
		{server: "b", round: func(context.Context) (report.Metrics, error) { return nil, context.Canceled }},
	}
	for _, c := range field {
		c.stop = func() error { stopped++; return nil }
	}
	if _, err := contest(t.Context(), "x", 1, field); err == nil || stopped != 2 {
		t.Errorf("%v, %d stopped", err, stopped)
	}
}
