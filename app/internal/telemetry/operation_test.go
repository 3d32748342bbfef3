package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/parley-mcp/parley/app/internal/telemetry"
)

// An operation is the child of its request's span, and says nothing of its values.
func TestOperations(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	observe := telemetry.Operations(provider, "sqlite")
	_, ended := observe(t.Context(), "sweep") // of no request
	ended(nil)
	ctx, request := provider.Tracer("test").Start(t.Context(), "POST token")
	for _, err := range []error{nil, errors.New("swordfish"), context.Canceled} {
		inner, ended := observe(ctx, "read grant")
		if inner == ctx {
			t.Error("the operation has the context of the request")
		}
		ended(err)
	}
	request.End()
	got := ""
	for _, s := range spans.Ended()[:3] {
		if s.Parent().SpanID() != request.SpanContext().SpanID() || len(s.Events()) > 0 || s.Status().Description != "" {
			t.Errorf("%+v", s)
		}
		got += fmt.Sprintln(s.Name(), s.SpanKind(), s.Attributes()[0].Value.AsString(), s.Attributes()[1].Value.AsString(), s.Status().Code)
	}
	want := "read grant client sqlite read grant Unset\nread grant client sqlite read grant Error\nread grant client sqlite read grant Unset\n"
	if got != want || len(spans.Ended()) != 4 {
		t.Errorf("%d spans\n%s\nwant\n%s", len(spans.Ended()), got, want)
	}
}
