package otelmcp

import (
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
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
}

// newInstrument makes the instruments of a side: "server" or "client".
func newInstrument(o *Options, side, description string) *instrument {
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
	duration, err := opts.MeterProvider.Meter(scopeName).Float64Histogram(
		"mcp."+side+".operation.duration",
		metric.WithUnit("s"),
		metric.WithDescription(description),
		// Of the conventions.
		metric.WithExplicitBucketBoundaries(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300),
	)
	if err != nil {
		otel.Handle(err)
		duration = noop.Float64Histogram{}
	}
	return &instrument{opts.TracerProvider.Tracer(scopeName), duration, opts.Propagator}
}

// An operation is one request that is being recorded.
type operation struct {
	*instrument
	span  trace.Span
	start time.Time
	// labels are the attributes that metrics have too.
	labels []attribute.KeyValue
}
