package otelmcp_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	otelmcp "github.com/parley-mcp/parley/contrib/otel"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

type none struct{}

// A record is all that was traced and measured.
type record struct {
	t      *testing.T
	spans  *tracetest.SpanRecorder
	tracer *sdktrace.TracerProvider
	reader *metric.ManualReader
	meter  *metric.MeterProvider
}

func newRecord(t *testing.T) *record {
	r := &record{t: t, spans: tracetest.NewSpanRecorder(), reader: metric.NewManualReader()}
	r.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans))
	r.meter = metric.NewMeterProvider(metric.WithReader(r.reader))
	return r
}

func (r *record) options() *otelmcp.Options {
	return &otelmcp.Options{TracerProvider: r.tracer, MeterProvider: r.meter}
}

// server makes a server that is recorded.
func (r *record) server(features ...server.Feature) *server.Server {
	s := server.New("test", "1", &server.Options{
		Logger: slog.New(slog.DiscardHandler),
		Limits: server.Limits{ToolRate: server.Unlimited, ListRate: server.Unlimited},
	})
	s.Use(otelmcp.Server(r.options()))
	s.Add(features...)
	return s
}

// named returns the spans of this name, in the order of their ends.
func (r *record) named(name string) []sdktrace.ReadOnlySpan {
	var out []sdktrace.ReadOnlySpan
	for _, s := range r.spans.Ended() {
		if s.Name() == name {
			out = append(out, s)
		}
	}
	return out
}

// one returns the only span of this name.
func (r *record) one(name string) sdktrace.ReadOnlySpan {
	r.t.Helper()
	got := r.named(name)
	if len(got) != 1 {
		var all []string
		for _, s := range r.spans.Ended() {
			all = append(all, s.Name())
		}
		r.t.Fatalf("%d spans %q, want 1, among %q", len(got), name, all)
	}
	return got[0]
}

// about are the attributes of a span in words, its status at the end.
func about(s sdktrace.ReadOnlySpan) string {
	return words(s.Attributes()) + " status=" + s.Status().Code.String() + s.Status().Description
}

func words(attributes []attribute.KeyValue) string {
	list := make([]string, 0, len(attributes))
	for _, a := range attributes {
		list = append(list, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// measured returns what was measured under a name.
func (r *record) measured(name string) []metricdata.Metrics {
	r.t.Helper()
	var data metricdata.ResourceMetrics
	if err := r.reader.Collect(context.Background(), &data); err != nil {
		r.t.Fatal(err)
	}
	var out []metricdata.Metrics
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == name {
				out = append(out, m)
			}
		}
	}
	return out
}

// durations are how many operations a histogram has by their attributes.
func (r *record) durations(name string) map[string]uint64 {
	r.t.Helper()
	out := make(map[string]uint64)
	for _, m := range r.measured(name) {
		h, ok := m.Data.(metricdata.Histogram[float64])
		if !ok {
			r.t.Fatalf("%s is a %T", name, m.Data)
		}
		for _, p := range h.DataPoints {
			out[words(p.Attributes.ToSlice())] = p.Count
			if m.Unit != "s" || len(p.Bounds) != 14 || p.Bounds[0] != 0.01 {
				r.t.Errorf("%s has the unit %q and the bounds %v", name, m.Unit, p.Bounds)
			}
		}
	}
	return out
}

// sums are the values of a counter by their attributes.
func (r *record) sums(name string) map[string]uint64 {
	r.t.Helper()
	out := make(map[string]uint64)
	for _, m := range r.measured(name) {
		sum, ok := m.Data.(metricdata.Sum[int64])
		if !ok {
			r.t.Fatalf("%s is a %T", name, m.Data)
		}
		for _, p := range sum.DataPoints {
			out[words(p.Attributes.ToSlice())] = uint64(p.Value) // none is negative here
		}
	}
	return out
}

func sameCounts(t *testing.T, got, want map[string]uint64) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("measured\n%s\nwant\n%s", lines(got), lines(want))
	}
}

func lines(counts map[string]uint64) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprint(counts[key], " ", key))
	}
	return strings.Join(list, "\n")
}

// spanOf is a span that has ended.
type spanOf = sdktrace.ReadOnlySpan

func newProvider(r *tracetest.SpanRecorder) *sdktrace.TracerProvider {
	return sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r))
}

func inProcess(s *server.Server) transport.Dialer { return mem.New(s, nil) }
