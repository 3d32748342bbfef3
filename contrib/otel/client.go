package otelmcp

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// Client is middleware that traces and measures the requests of a client, each
// with all that it takes, and sends the trace context along:
//
//	client.Options{Middleware: []client.Middleware{otelmcp.Client(nil)}}
//
// The span is the parent of what the client's handlers do that answer the
// server's questions.
func Client(o *Options) client.Middleware {
	in := newInstrument(o, "client", "How long requests took the client, until the result was there.")
	return func(next client.Func) client.Func {
		return func(ctx context.Context, r *client.Request) (res client.Result, err error) {
			ctx, op := in.request(ctx, r)
			returned := false
			defer func() {
				if !returned { // a panic of a handler goes on
					op.fail(errorPanic, 0, "")
				} else {
					op.finish(r, res, err)
				}
				op.end(ctx)
			}()
			res, err = next(ctx, r)
			returned = true
			return res, err
		}
	}
}

// request begins the operation of a request, and the context that it is sent in.
func (in *instrument) request(ctx context.Context, r *client.Request) (context.Context, *operation) {
	// The names are the program's own, or its model's.
	about := targetOf(r.Method(), clip(r.Target()), true)
	op := &operation{instrument: in, start: time.Now(), labels: []attribute.KeyValue{keyMethod.String(r.Method())}}
	op.labels = append(op.labels, about.labels...)
	attributes := append(append([]attribute.KeyValue(nil), op.labels...), about.span...)
	ctx, op.span = in.tracer.Start(ctx, spanName(r.Method(), about),
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	var c traceHeaders
	in.propagator.Inject(ctx, &c)
	if c != (traceHeaders{}) { // what the caller gave by itself stays otherwise
		ctx = client.WithTrace(ctx, c.parent, c.state, c.baggage)
	}
	return ctx, op
}

// finish records what is known now, and how the request went.
func (op *operation) finish(r *client.Request, res client.Result, err error) {
	if version := r.Version(); version != "" {
		op.labels = append(op.labels, keyVersion.String(version))
		op.span.SetAttributes(keyVersion.String(version))
	}
	if id := r.ID(); !id.IsZero() {
		op.span.SetAttributes(keyID.String(id.String()))
	}
	if session := transport.SessionRef(r.Session()); session != "" {
		op.span.SetAttributes(keySession.String(session))
	}
	if n := r.Rounds(); n > 0 {
		op.span.SetAttributes(keyRounds.Int(n))
	}
	if n := r.Attempts(); n > 1+r.Rounds() {
		op.span.SetAttributes(keyAttempts.Int(n))
	}
	if err == nil {
		if out, ok := res.(*mcp.CallToolResult); ok && out != nil && out.IsError {
			op.fail(errorTool, 0, "")
		}
		return
	}
	if errors.Is(err, context.Canceled) && !errors.Is(err, client.ErrTimeout) {
		op.span.SetAttributes(keyOutcome.String("cancelled"))
		return // by the caller, so that it is no error
	}
	if answer, ok := errors.AsType[*jsonrpc.Error](err); ok {
		if answer.Code == jsonrpc.CodeInvalidParams { // perhaps there is no such tool
			op.forget()
		}
		op.fail(code(answer.Code), answer.Code, clip(answer.Message))
		return
	}
	op.fail(kindOf(err), 0, "")
}

// forget takes the names of tools and prompts out of the metrics.
func (op *operation) forget() {
	kept := op.labels[:0]
	for _, a := range op.labels {
		if a.Key != keyTool && a.Key != keyPrompt {
			kept = append(kept, a)
		}
	}
	op.labels = kept
}

// kindOf names an error that is no answer of the server.
func kindOf(err error) string {
	for _, k := range []struct {
		err  error
		name string
	}{
		{client.ErrTimeout, errorTimeout},
		{context.DeadlineExceeded, errorTimeout},
		{client.ErrInputRefused, "input_refused"},
		{client.ErrNotCapable, "not_capable"},
		{client.ErrTooManyRounds, "too_many_rounds"},
		{client.ErrMalformed, "malformed_result"},
		{client.ErrResultType, "malformed_result"},
		{transport.ErrDenied, "denied"},
		{transport.ErrInterrupted, "interrupted"},
		{transport.ErrClosed, "connection_closed"},
		{client.ErrClosed, "client_closed"},
	} {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return errorOther
}
