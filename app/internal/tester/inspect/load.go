package inspect

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/load"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
)

// DefaultLoadConcurrency is how many calls Load has under way, as in the MCP Inspector.
const DefaultLoadConcurrency = 10

// A LoadSummary says how a load of one tool went. Its members are those of the MCP Inspector; times
// are milliseconds, right to three digits.
type LoadSummary struct {
	Tool string `json:"tool"`
	// Concurrency, DurationMs, RequestLimit and Rate are what was asked for.
	Concurrency  int     `json:"concurrency"`
	DurationMs   float64 `json:"durationMs,omitzero"`
	RequestLimit int64   `json:"requestLimit,omitzero"`
	Rate         float64 `json:"rate,omitzero"`
	// Requests is how many calls ended: OK without error, ToolErrors with a result that has
	// isError, and Errors without a result.
	Requests   int64   `json:"requests"`
	OK         int64   `json:"ok"`
	ToolErrors int64   `json:"toolErrors"`
	Errors     int64   `json:"errors"`
	ErrorRate  float64 `json:"errorRate"` // of 1
	// ElapsedMs is the time from the first call to the end of the last, Throughput how many
	// calls ended in a second of it.
	ElapsedMs  float64 `json:"elapsedMs"`
	Throughput float64 `json:"throughput"`
	// Latency are the times of all calls that ended; nil if none did.
	Latency *LoadLatency `json:"latencyMs"`
	// ErrorMessages are the errors by kind, the most frequent first, up to load.MaxKinds of
	// them and all others together.
	ErrorMessages []LoadError `json:"errorMessages"`
	// NotSent is how many calls were due with the rate and not sent, because all were under way.
	NotSent int64 `json:"notSent,omitzero"`
	// Interrupted says that the load was ended before its time.
	Interrupted bool `json:"interrupted,omitzero"`
}

// A LoadLatency is how long calls took, in milliseconds.
type LoadLatency struct {
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// A LoadError is one kind of errors.
type LoadError struct {
	Message string `json:"message"`
	Count   int64  `json:"count"`
}

// Load calls a tool that the server lists again and again over one connection, with o.Clients calls
// under way at once, and measures that. Of the options it takes Clients, Rate, Duration, Requests
// and Kind. A call that the server refuses is not sent again. The end of ctx ends the load; what was
// measured until then is in the summary.
func (t *Target) Load(ctx context.Context, a *Args, o load.Options) (*LoadSummary, error) {
	o.Clients = cmp.Or(o.Clients, DefaultLoadConcurrency)
	if err := o.Check(); err != nil {
		return nil, usage(err.Error())
	}
	if a.Tool == "" {
		return nil, missing(mcp.MethodToolsCall, flagTool)
	}
	target := *t
	target.once = true
	s, err := target.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }() // the measuring is over
	tool, err := s.tool(ctx, a.Tool)
	if err != nil {
		return nil, err
	}
	args, err := a.argumentsOf(ctx, tool)
	if err != nil {
		return nil, err
	}
	if err := t.allows(mcp.MethodToolsCall, map[string]mcp.RawValue{"name": quoted(a.Tool), "arguments": args}); err != nil {
		return nil, err
	}
	conn := &load.Conn{Close: func() error { return nil }, Call: func(ctx context.Context) error {
		result, err := s.client.CallTool(ctx, a.Tool, args, &client.CallOptions{Meta: a.ToolMeta, NoCache: true})
		if err == nil && result.IsError {
			return load.ErrFailed
		}
		return err
	}}
	o.Connect = func(context.Context) (*load.Conn, error) { return conn, nil }
	o.TimeAll = true
	r, err := load.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	return summarize(a.Tool, &o, r), nil
}

// summarize makes a summary of a report.
func summarize(tool string, o *load.Options, r *load.Report) *LoadSummary {
	s := &LoadSummary{
		Tool: tool, Concurrency: r.Clients, DurationMs: milliseconds(o.Duration), RequestLimit: o.Requests, Rate: r.Rate,
		OK: r.OK, ToolErrors: r.Failed, ErrorMessages: []LoadError{},
		ElapsedMs: rounded(r.Seconds*1000, 2), NotSent: r.NotSent, Interrupted: r.Interrupted,
	}
	for kind, n := range r.Errors {
		s.Errors += n
		s.ErrorMessages = append(s.ErrorMessages, LoadError{kind, n})
	}
	slices.SortFunc(s.ErrorMessages, func(a, b LoadError) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Message, b.Message))
	})
	s.Requests = s.OK + s.ToolErrors + s.Errors
	if s.Requests > 0 {
		s.ErrorRate = rounded(float64(s.ToolErrors+s.Errors)/float64(s.Requests), 4)
	}
	if r.Seconds > 0 {
		s.Throughput = rounded(float64(s.Requests)/r.Seconds, 2)
	}
	if l := r.Latency; l != nil {
		s.Latency = &LoadLatency{
			Min: rounded(l.Min, 2), Mean: rounded(l.Mean, 2), P50: rounded(l.P50, 2),
			P90: rounded(l.P90, 2), P99: rounded(l.P99, 2), Max: rounded(l.Max, 2),
		}
	}
	return s
}

// milliseconds is a duration in ms.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// rounded has so many digits after the point.
func rounded(n float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(n*scale) / scale
}
