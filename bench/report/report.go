// Package report holds what the measurements found: per scenario and server, a
// few figures of each round, and what is made of them.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
)

// A Metric names a figure.
type Metric string

// Metrics. CPU, allocations and bytes are those of the measured process, for one
// request, call or notification round; the driver's are not in them.
const (
	Rate       Metric = "rate"       // requests per second, driver included
	CPU        Metric = "cpu"        // processor time per request, in microseconds
	Allocs     Metric = "allocs"     // objects allocated per request
	Bytes      Metric = "bytes"      // bytes allocated per request
	P50        Metric = "p50"        // median latency, in microseconds
	P99        Metric = "p99"        // 99th percentile of latency, in microseconds
	PeakRSS    Metric = "peakRSS"    // most memory at once, in bytes
	Size       Metric = "size"       // bytes of a response body, or line
	Delivered  Metric = "delivered"  // notifications that arrived per request
	Elapsed    Metric = "elapsed"    // wall time per call, in microseconds
	Memory     Metric = "memory"     // heap and stacks per idle session, in bytes
	RSS        Metric = "rss"        // resident memory per idle session, in bytes
	Goroutines Metric = "goroutines" // goroutines per idle session

	Instructions Metric = "instructions" // of the processor in user space, per request
)

// Names of the servers and clients that are measured.
const (
	Parley = "parley"
	GoSDK  = "go-sdk"
	MCPGo  = "mcp-go"
	TS     = "ts"
	Floor  = "floor"
	// Original is the server, by others, of which parley contains one like it.
	Original = "original"
)

// Metrics are the figures of one round. What is not there was not measured.
type Metrics map[Metric]float64

// A Result is what one server did in one scenario.
type Result struct {
	Scenario string `json:"scenario"`
	Server   string `json:"server"`
	// X is the place in a series: bytes, tools, connections.
	X float64 `json:"x,omitzero"`
	// Rounds are in order: the same index is the same time in each server.
	Rounds []Metrics `json:"rounds"`
}

// Median is the median of a figure over the rounds that have it.
func (r *Result) Median(m Metric) (float64, bool) {
	var values []float64
	for _, round := range r.Rounds {
		if v, ok := round[m]; ok {
			values = append(values, v)
		}
	}
	return median(values), len(values) > 0
}

// Ratio is the median of the ratios of a figure to that of another server, round
// by round: what the machine did to both in a round does not count.
func (r *Result) Ratio(to *Result, m Metric) (float64, bool) {
	var ratios []float64
	for i := range min(len(r.Rounds), len(to.Rounds)) {
		a, ok := r.Rounds[i][m]
		b, and := to.Rounds[i][m]
		if ok && and && b != 0 {
			ratios = append(ratios, a/b)
		}
	}
	return median(ratios), len(ratios) > 0
}

// median is the middle value, or the mean of the two in the middle; 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	half := len(s) / 2
	if len(s)%2 == 1 {
		return s[half]
	}
	return (s[half-1] + s[half]) / 2
}

// A Scenario is something that servers, or clients, do.
type Scenario struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// About says what is done, in a sentence.
	About string `json:"about"`
	// Columns are the figures worth showing, the main one first.
	Columns []Metric `json:"columns"`
	// Axis says what Result.X counts, for a scenario that is a series: a line
	// for each server, with the first of Columns against it.
	Axis string `json:"axis,omitzero"`
}

// A Run is one run of the whole.
type Run struct {
	Date      string     `json:"date"`
	Machine   []Fact     `json:"machine"`
	Peers     []Fact     `json:"peers"`
	Rounds    int        `json:"rounds"`
	Scenarios []Scenario `json:"scenarios"`
	Results   []Result   `json:"results"`
}

// A Fact is a name and what it is.
type Fact struct {
	Name string `json:"name"`
	Is   string `json:"is"`
}

// Of lists the results of a scenario.
func (r *Run) Of(scenario string) []*Result {
	var of []*Result
	for i := range r.Results {
		if r.Results[i].Scenario == scenario {
			of = append(of, &r.Results[i])
		}
	}
	return of
}

// Find finds what a server did in a scenario, or nil.
func (r *Run) Find(scenario, server string) *Result {
	for _, result := range r.Of(scenario) {
		if result.Server == server {
			return result
		}
	}
	return nil
}

// Merge replaces the scenarios that another run measured and keeps the rest.
func (r *Run) Merge(newer *Run) {
	for _, s := range newer.Scenarios {
		r.Results = slices.DeleteFunc(r.Results, func(x Result) bool { return x.Scenario == s.Name })
		r.Scenarios = slices.DeleteFunc(r.Scenarios, func(x Scenario) bool { return x.Name == s.Name })
	}
	r.Scenarios = append(r.Scenarios, newer.Scenarios...)
	r.Results = append(r.Results, newer.Results...)
	r.Date, r.Machine, r.Peers, r.Rounds = newer.Date, newer.Machine, newer.Peers, newer.Rounds
}

// Sort puts the scenarios in an order; those that are not in it go.
func (r *Run) Sort(order []string) {
	place := func(s Scenario) int { return slices.Index(order, s.Name) }
	r.Scenarios = slices.DeleteFunc(r.Scenarios, func(s Scenario) bool { return place(s) < 0 })
	r.Results = slices.DeleteFunc(r.Results, func(x Result) bool { return !slices.Contains(order, x.Scenario) })
	slices.SortFunc(r.Scenarios, func(a, b Scenario) int { return cmp.Compare(place(a), place(b)) })
	slices.SortStableFunc(r.Results, func(a, b Result) int {
		return cmp.Compare(slices.Index(order, a.Scenario), slices.Index(order, b.Scenario))
	})
}

// Load reads a run that Save wrote.
func Load(file string) (*Run, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r Run
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &r, nil
}

// Save writes a run, its figures rounded to what can mean something.
func (r *Run) Save(file string) error {
	for _, result := range r.Results {
		for _, round := range result.Rounds {
			for m, v := range round {
				round[m] = significant(v)
			}
		}
	}
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// significant rounds to five digits.
func significant(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	scale := math.Pow(10, 4-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}
