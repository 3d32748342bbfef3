package otelmcp

import (
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-mcp/parley/mcp"
)

// scopeName is the instrumentation scope of spans and metrics.
const scopeName = "github.com/parley-mcp/parley/contrib/otel"

// Options are what is not required. A nil *Options, and each zero field, means
// the default that is told.
type Options struct {
	// TracerProvider and MeterProvider take traces and metrics. Default: the
	// global ones of package otel.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// Propagator writes and reads the trace context of requests. The protocol
	// has a place for traceparent, tracestate and baggage, other fields are
	// dropped. Default: W3C Trace Context and W3C Baggage, since a program that
	// forgot to set the global propagator would have broken traces.
	Propagator propagation.TextMapPropagator
}

// An instrument is what both sides record with.
type instrument struct {
	tracer     trace.Tracer
	duration   metric.Float64Histogram
	propagator propagation.TextMapPropagator
	codes      codeLabels
}

// codeLabels are the codes of errors that metrics have labels for: those of
// package mcp, and the first others, since the peer may make up any number.
type codeLabels struct {
	mu    sync.Mutex
	known map[int64]bool
}

// maxCodes is how many codes have labels that package mcp does not name.
const maxCodes = 32

// takes reports whether a code has a label, a new one if there is room.
func (l *codeLabels) takes(code int64) bool {
	if mcp.CodeName(code) != "" {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known[code] || len(l.known) >= maxCodes {
		return l.known[code]
	}
	if l.known == nil {
		l.known = make(map[int64]bool)
	}
	l.known[code] = true
	return true
}

// filled returns a copy of o, which may be nil, with its gaps filled.
func (o *Options) filled() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.TracerProvider == nil {
		opts.TracerProvider = otel.GetTracerProvider()
	}
	if opts.MeterProvider == nil {
		opts.MeterProvider = otel.GetMeterProvider()
	}
	if opts.Propagator == nil {
		opts.Propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	}
	return opts
}

func (o *Options) meter() metric.Meter { return o.MeterProvider.Meter(scopeName) }

// histogram makes a histogram of durations with the buckets of the conventions.
func (o *Options) histogram(name, description string) metric.Float64Histogram {
	h, err := o.meter().Float64Histogram(
		name,
		metric.WithUnit("s"),
		metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300),
	)
	if err != nil {
		otel.Handle(err)
		return noop.Float64Histogram{}
	}
	return h
}

// newInstrument makes the instruments of a side: "server" or "client".
func newInstrument(o *Options, side, description string) *instrument {
	opts := o.filled()
	return &instrument{
		tracer:     opts.TracerProvider.Tracer(scopeName),
		duration:   opts.histogram("mcp."+side+".operation.duration", description),
		propagator: opts.Propagator,
	}
}

// An operation is one request that is being recorded.
type operation struct {
	*instrument
	span  trace.Span
	start time.Time
	// labels are the attributes that metrics have too.
	labels []attribute.KeyValue
}
