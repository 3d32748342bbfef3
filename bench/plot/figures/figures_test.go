package figures_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/bench/plot/figures"
	"github.com/parley-mcp/parley/bench/report"
)

func measured(m report.Metric, values ...float64) []report.Metrics {
	var rounds []report.Metrics
	for _, v := range values {
		rounds = append(rounds, report.Metrics{m: v})
	}
	return rounds
}

func TestWrite(t *testing.T) {
	cpu := []report.Metric{report.CPU}
	run := &report.Run{
		Scenarios: []report.Scenario{
			{Name: "fast", Title: "Fast", About: "Something.", Columns: []report.Metric{report.Rate}},
			{Name: "cheap", Title: "Cheap", About: "Something.", Columns: cpu},
			{Name: "far", Title: "Far", About: "Something.", Columns: cpu},
			{Name: "alone", Title: "Alone", About: "Something.", Columns: cpu},
			{Name: "small", Title: "Small", About: "Something.", Columns: []report.Metric{report.Memory}},
			{Name: "payload", Title: "Payload", Columns: cpu, Axis: "bytes of text"},
			{Name: "connections", Title: "Connections", Columns: cpu, Axis: "connections"},
			{Name: "unmeasured", Columns: cpu},
		},
		Results: []report.Result{
			{Scenario: "fast", Server: report.Parley, Rounds: measured(report.Rate, 80, 45, 90)}, // half, once in a bad moment of both
			{Scenario: "fast", Server: report.Floor, Rounds: measured(report.Rate, 160, 90, 180)},
			{Scenario: "fast", Server: report.TS},
			{Scenario: "cheap", Server: report.Parley, Rounds: measured(report.CPU, 40)},
			{Scenario: "cheap", Server: report.Floor, Rounds: measured(report.CPU, 10)},
			{Scenario: "far", Server: report.Floor, Rounds: measured(report.CPU, 1)},
			{Scenario: "far", Server: report.Parley, Rounds: measured(report.CPU, 30)},
			{Scenario: "alone", Server: report.Parley, Rounds: measured(report.CPU, 1500)},
			{Scenario: "small", Server: report.Parley, Rounds: measured(report.Memory, 2048)},
			{Scenario: "small", Server: report.Floor, Rounds: measured(report.Memory, 0)},
			{Scenario: "payload", Server: report.Parley, X: 4096, Rounds: measured(report.CPU, 40)},
			{Scenario: "payload", Server: report.Parley, X: 1024, Rounds: measured(report.CPU, 10)},
			{Scenario: "connections", Server: report.Parley, X: 1, Rounds: measured(report.CPU, 40)},
			{Scenario: "connections", Server: report.Parley, X: 8, Rounds: measured(report.CPU, 20)},
		},
	}
	dir := filepath.Join(t.TempDir(), "new", "folder")
	all, err := figures.Write(run, dir)
	if err != nil {
		t.Fatal(err)
	}
	says := map[string][]string{
		"fast.svg":        {">parley<", "50 %  (80/s)", "100 %  (160/s)", "Longer is better"},
		"cheap.svg":       {"25 %  (40 µs)", "100 %  (10 µs)", "requests per second of processor time"},
		"far.svg":         {"30 µs", "1 µs", "Shorter is better"},
		"alone.svg":       {"1.5 ms", "Shorter is better"},
		"small.svg":       {"2 KiB", "0 B", "Shorter is better"},
		"payload.svg":     {"in proportion", "1 KiB", "bytes of text", "processor time per request"},
		"connections.svg": {"the same for each request"},
	}
	var files []string
	for _, f := range all {
		files = append(files, f.File)
		data, err := os.ReadFile(filepath.Join(dir, f.File))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range says[f.File] {
			if !strings.Contains(string(data), text) {
				t.Errorf("%s does not say %q", f.File, text)
			}
		}
	}
	want := []string{"fast.svg", "cheap.svg", "far.svg", "alone.svg", "small.svg", "payload.svg", "connections.svg"}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(string(all[0].SVG), ">ts<") {
		t.Error("a server that was not measured has a bar")
	}
}
