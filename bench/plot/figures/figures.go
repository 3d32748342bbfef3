// Package figures makes pictures of what was measured: bars for each scenario,
// and lines for each series.
package figures

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/bench/plot/svg"
	"github.com/parley-mcp/parley/bench/report"
)

// A Figure is one picture.
type Figure struct {
	File  string // its name, in the folder of all figures
	Title string
	SVG   []byte
}

// Write draws a run into a folder and lists what it drew, in the order of the
// scenarios. A scenario that nobody was measured in has no figure.
func Write(r *report.Run, dir string) ([]Figure, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("figures: %w", err)
	}
	var all []Figure
	for _, s := range r.Scenarios {
		picture := draw(s, r.Of(s.Name))
		if picture == nil {
			continue
		}
		f := Figure{File: File(s), Title: s.Title, SVG: picture}
		if err := os.WriteFile(filepath.Join(dir, f.File), f.SVG, 0o644); err != nil {
			return nil, fmt.Errorf("figures: %w", err)
		}
		all = append(all, f)
	}
	return all, nil
}

// File is the name of the picture of a scenario.
func File(s report.Scenario) string { return s.Name + ".svg" }

// draw is the picture of a scenario, or nil if there is nothing in it.
func draw(s report.Scenario, results []*report.Result) []byte {
	if len(s.Columns) == 0 {
		return nil
	}
	main := s.Columns[0]
	results = slices.DeleteFunc(results, func(r *report.Result) bool {
		_, ok := r.Median(main)
		return !ok
	})
	if len(results) == 0 {
		return nil
	}
	slices.SortStableFunc(results, func(a, b *report.Result) int { return cmp.Compare(kind(a.Server), kind(b.Server)) })
	if s.Axis != "" {
		return series(s, main, results)
	}
	i := slices.IndexFunc(results, func(r *report.Result) bool { return r.Server == report.Floor })
	if i < 0 {
		return absolute(s, main, results)
	}
	return relative(s, main, results, results[i])
}

// kind is the colour and the place of a server, the same in every picture.
func kind(server string) int {
	known := []string{report.Parley, report.Floor, report.GoSDK, report.MCPGo, report.TS}
	if i := slices.Index(known, server); i >= 0 {
		return i
	}
	return len(known)
}

// A quantity says how a figure is written and compared.
type quantity struct {
	name string
	unit svg.Unit
	// share makes percent of the ratio to the floor, so that more is better. Nil
	// where such a comparison says nothing.
	share func(ratio float64) float64
	// of is what the shares are of.
	of string
}

func rising(ratio float64) float64  { return 100 * ratio }
func falling(ratio float64) float64 { return 100 / ratio }

func quantityOf(m report.Metric) quantity {
	switch m {
	case report.Rate:
		return quantity{"requests per second", svg.Count("/s"), rising, "requests per second"}
	case report.CPU:
		return quantity{"processor time per request", svg.Microseconds(), falling, "requests per second of processor time"}
	case report.Elapsed, report.P50, report.P99:
		return quantity{"time per request", svg.Microseconds(), falling, "requests one after the other in a second"}
	case report.Bytes:
		return quantity{"bytes allocated per request", svg.Bytes(), nil, ""}
	case report.Memory, report.RSS:
		return quantity{"memory per session", svg.Bytes(), nil, ""}
	case report.PeakRSS:
		return quantity{"most memory at once", svg.Bytes(), nil, ""}
	case report.Delivered:
		return quantity{"notifications that arrived", svg.Count(""), nil, ""}
	case report.Instructions:
		return quantity{"instructions per request", svg.Count(""), nil, ""}
	case report.Allocs, report.Size, report.Goroutines:
	}
	return quantity{string(m), svg.Count(""), nil, ""}
}

// relative compares with the floor, where that says something: the longer a
// bar, the better.
func relative(s report.Scenario, main report.Metric, results []*report.Result, floor *report.Result) []byte {
	q := quantityOf(main)
	if q.share == nil || outOfSight(main, results, floor) {
		return absolute(s, main, results)
	}
	c := &svg.Bars{
		Title: s.Title, Note: s.About + " Longer is better.", Axis: q.of + ", the floor being 100 %", Unit: svg.Percent(), Mark: 100,
	}
	for _, r := range results {
		v, _ := r.Median(main)
		ratio, ok := r.Ratio(floor, main)
		if !ok || ratio == 0 {
			continue
		}
		share := q.share(ratio)
		c.Bars = append(c.Bars, svg.Bar{
			Name: r.Server, Kind: kind(r.Server), Value: share, Text: svg.Percent().Write(share) + "  (" + q.unit.Write(v) + ")",
		})
	}
	return c.Draw()
}

// outOfSight tells whether the floor costs so little beside all others that their
// bars would be too short to compare.
func outOfSight(main report.Metric, results []*report.Result, floor *report.Result) bool {
	const far = 10
	least := 0.0
	for _, r := range results {
		if v, ok := r.Median(main); ok && r != floor && (least == 0 || v < least) {
			least = v
		}
	}
	f, _ := floor.Median(main)
	return main != report.Rate && least > far*f
}

// absolute shows the figures themselves.
func absolute(s report.Scenario, main report.Metric, results []*report.Result) []byte {
	q := quantityOf(main)
	better := "Shorter is better."
	if main == report.Rate || main == report.Delivered {
		better = "Longer is better."
	}
	c := &svg.Bars{Title: s.Title, Note: s.About + " " + better, Axis: q.name, Unit: q.unit}
	for _, r := range results {
		v, _ := r.Median(main)
		c.Bars = append(c.Bars, svg.Bar{Name: r.Server, Kind: kind(r.Server), Value: v, Text: q.unit.Write(v)})
	}
	return c.Draw()
}

// series draws a line for each server. What one request costs should be the same
// with any number of connections, and in proportion to what there is to do
// otherwise; both lines are drawn to hold the others against.
func series(s report.Scenario, main report.Metric, results []*report.Result) []byte {
	q := quantityOf(main)
	c := &svg.Lines{
		Title: s.Title,
		Note:  s.About + " Both axes are logarithmic: a line that is as steep as the dashed one grows in proportion, a steeper one faster.",
		X:     svg.Axis{Name: s.Axis, Unit: svg.Count("")}, Y: svg.Axis{Name: q.name, Unit: q.unit},
		Log: true, Reference: svg.Proportional, ReferenceName: "in proportion",
	}
	switch {
	case strings.Contains(s.Axis, "connection"):
		c.Log, c.Reference, c.ReferenceName = false, svg.Constant, "the same for each request"
		c.Note = s.About + " What is level, or falls, costs no more for each request however many connections there are."
	case strings.Contains(s.Axis, "byte"), strings.Contains(s.Axis, "payload"):
		c.X.Unit = svg.Bytes()
	}
	for _, r := range results {
		i := slices.IndexFunc(c.Lines, func(l svg.Line) bool { return l.Name == r.Server })
		if i < 0 {
			i = len(c.Lines)
			c.Lines = append(c.Lines, svg.Line{Name: r.Server, Kind: kind(r.Server)})
		}
		y, _ := r.Median(main)
		if r.X > 0 && y > 0 {
			c.Lines[i].Points = append(c.Lines[i].Points, svg.Point{X: r.X, Y: y})
		}
	}
	for _, l := range c.Lines {
		slices.SortFunc(l.Points, func(a, b svg.Point) int { return cmp.Compare(a.X, b.X) })
	}
	return c.Draw()
}
