package otelmcp

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// Server is middleware that traces and measures the requests of a server. Added
// first, it sees what other middleware does and refuses.
func Server(o *Options) server.Middleware {
	in := newInstrument(o, "server", "How long the server took for requests, until the result was there.")
	return func(next server.Func) server.Func {
		return func(c *server.Call) (res server.Result, err error) {
			ctx, op := in.serve(c)
			returned := false
			defer func() {
				if !returned { // a panic goes on
					op.fail(errorPanic, mcp.CodeInternalError, "")
				} else {
					op.settle(c, res, err)
				}
				op.end(ctx)
			}()
			res, err = next(c.WithContext(ctx))
			returned = true
			return res, err
		}
	}
}

// serve begins the operation of a request, and the context of its handler.
func (in *instrument) serve(c *server.Call) (context.Context, *operation) {
	about := targetOf(c.Method(), c.Target(), c.Offered())
	op := &operation{instrument: in, start: time.Now()}
	op.labels = append(op.labels, keyMethod.String(c.Method()), keyVersion.String(c.Version()))
	op.labels = append(op.labels, about.labels...)
	op.labels = append(op.labels, network(c.Transport())...)

	attributes := append([]attribute.KeyValue{keyID.String(clip(c.ID().String()))}, op.labels...)
	attributes = append(attributes, about.span...)
	if session := c.SessionRef(); session != "" {
		attributes = append(attributes, keySession.String(session))
	}
	if p := c.Principal(); p != nil && p.Remote != "" {
		attributes = append(attributes, keyClientAddr.String(clip(p.Remote)))
	}
	if round := c.Round(); round > 0 {
		attributes = append(attributes, keyRound.Int(round))
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attributes...)}

	ambient := trace.SpanContextFromContext(c)
	came := server.TraceFrom(c)
	ctx := in.propagator.Extract(c, &traceHeaders{came.Parent, came.State, came.Baggage})
	if parent := trace.SpanContextFromContext(ctx); ambient.IsValid() && !parent.Equal(ambient) {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: ambient}))
	}
	ctx, op.span = in.tracer.Start(ctx, spanName(c.Method(), about), options...)
	return ctx, op
}

func spanName(method string, about target) string {
	if about.name == "" {
		return method
	}
	return method + " " + about.name
}

// settle records how a request went.
func (op *operation) settle(c *server.Call, res server.Result, err error) {
	outcome := server.OutcomeOf(c, res, err)
	if outcome != server.OutcomeOK {
		op.span.SetAttributes(keyOutcome.String(outcome.String()))
	}
	what := errorTool
	switch outcome {
	case server.OutcomeOK, server.OutcomeInputRequired, server.OutcomeCancelled:
		return
	case server.OutcomeTimedOut:
		what = errorTimeout
	default:
	}
	number := server.ErrorCode(c, err)
	if number != 0 {
		what = code(number)
	}
	op.fail(what, number, told(err))
}

// fail records an error: its kind, its code in the answer or 0, and its text.
func (op *operation) fail(what string, number int64, text string) {
	failure := []attribute.KeyValue{keyError.String(what)}
	if number != 0 {
		failure = append(failure, keyCode.String(code(number)))
	}
	op.span.SetAttributes(failure...)
	if number != 0 && !op.codes.takes(number) {
		failure = []attribute.KeyValue{keyError.String(errorOther)}
	}
	op.labels = append(op.labels, failure...)
	op.span.SetStatus(codes.Error, text)
}

// end ends the span and records the duration.
func (op *operation) end(ctx context.Context) {
	op.span.End()
	op.duration.Record(ctx, time.Since(op.start).Seconds(), metric.WithAttributes(op.labels...))
}
