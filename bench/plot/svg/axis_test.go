package svg_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-mcp/parley/bench/plot/svg"
)

func near() cmp.Option { return cmpopts.EquateApprox(1e-9, 0) }

func TestLinearTicks(t *testing.T) {
	for _, c := range []struct {
		name string
		most float64
		n    int
		unit svg.Unit
		want []float64
	}{
		{"hundred", 100, 5, svg.Percent(), []float64{0, 20, 40, 60, 80, 100}},
		{"just above", 100.1, 5, svg.Percent(), []float64{0, 50, 100, 150}},
		{"small", 0.3, 3, svg.Count(""), []float64{0, 0.1, 0.2, 0.3}},
		{"KiB", 11 << 10, 5, svg.Bytes(), []float64{0, 5 << 10, 10 << 10, 15 << 10}},
		{"MiB", 3 << 20, 3, svg.Bytes(), []float64{0, 1 << 20, 2 << 20, 3 << 20}},
		{"nothing", 0, 2, svg.Count(""), []float64{0, 0.5, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, svg.LinearTicks(c.most, c.n, c.unit), near()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLogTicks(t *testing.T) {
	for _, c := range []struct {
		name        string
		least, most float64
		n           int
		want        []float64
	}{
		{"one decade", 10, 100, 9, []float64{10, 20, 50, 100}},
		{"between", 30, 700, 9, []float64{20, 50, 100, 200, 500, 1000}},
		{"below one", 0.04, 0.3, 9, []float64{0.02, 0.05, 0.1, 0.2, 0.5}},
		{"many", 11, 400_000, 9, []float64{10, 100, 1000, 10_000, 100_000, 1_000_000}},
		{"a point", 10, 10, 9, []float64{10, 20}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, svg.LogTicks(c.least, c.most, c.n), near()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		unit svg.Unit
		v    float64
		want string
	}{
		{svg.Percent(), 88.04, "88 %"},
		{svg.Percent(), 3.264, "3.26 %"},
		{svg.Count(""), 0, "0"},
		{svg.Count(""), 12.5, "12.5"},
		{svg.Count("/s"), 999.6, "1000/s"},
		{svg.Count("/s"), 61_983.4, "61,983/s"},
		{svg.Count(""), 1_234_567, "1,234,567"},
		{svg.Bytes(), 900, "900 B"},
		{svg.Bytes(), 1536, "1.5 KiB"},
		{svg.Bytes(), 40 << 20, "40 MiB"},
		{svg.Microseconds(), 12.25, "12.2 µs"},
		{svg.Microseconds(), 5020, "5.02 ms"},
		{svg.Microseconds(), 2e6, "2 s"},
	} {
		if got := c.unit.Write(c.v); got != c.want {
			t.Errorf("%g is written %q, want %q", c.v, got, c.want)
		}
	}
}
