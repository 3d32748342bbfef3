package clients_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/bench/clients"
	"github.com/parley-mcp/parley/bench/report"
)

// Every client makes its calls in every scenario, each answered as expected, and
// comes out with figures.
func TestRun(t *testing.T) {
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := clients.Build(t.Context(), dir, bin); err != nil {
		t.Fatal(err)
	}
	told := 0
	results, err := clients.Run(t.Context(), clients.Options{
		Dir: dir, Bin: bin, Rounds: 2, Time: 2 * time.Millisecond,
		Done: func(report.Scenario, report.Result) { told++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	if told != len(results) {
		t.Errorf("told of %d results, %d were returned", told, len(results))
	}
	got := map[string][]string{}
	want := map[string][]string{}
	for _, s := range clients.Scenarios() {
		want[s.Name] = []string{report.Parley, report.GoSDK, report.MCPGo, report.Floor}
	}
	for _, r := range results {
		if len(r.Rounds) != 2 {
			t.Errorf("%s, %s: %d rounds", r.Scenario, r.Server, len(r.Rounds))
		}
		for _, m := range []report.Metric{report.CPU, report.Rate, report.Elapsed, report.PeakRSS} {
			if v, ok := r.Median(m); !ok || v <= 0 {
				t.Errorf("%s, %s: %s is %g", r.Scenario, r.Server, m, v)
			}
		}
		if r.Server != report.TS { // installed or not
			got[r.Scenario] = append(got[r.Scenario], r.Server)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results of (-want +got):\n%s", diff)
	}
}
