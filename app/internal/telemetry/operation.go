package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Operations returns a function that traces operations on a database within requests that are traced,
// by OpenTelemetry's conventions for databases: those of no request have no span. system is the
// database, such as "postgresql". The name of an operation is one of a small set; neither statements,
// nor values, nor errors, which may hold values, are recorded.
func Operations(provider trace.TracerProvider, system string) func(ctx context.Context, operation string) (context.Context, func(error)) {
	tracer := provider.Tracer("github.com/parley-mcp/parley/app/internal/telemetry")
	return func(ctx context.Context, operation string) (context.Context, func(error)) {
		if !trace.SpanContextFromContext(ctx).IsValid() {
			return ctx, func(error) {}
		}
		ctx, span := tracer.Start(ctx, operation, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.String("db.system.name", system), attribute.String("db.operation.name", operation),
		))
		return ctx, func(err error) {
			if err != nil && !errors.Is(err, context.Canceled) {
				span.SetStatus(codes.Error, "")
			}
			span.End()
		}
	}
}
