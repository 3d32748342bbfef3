package telemetry

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	sdkresource "go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Service says whose traces they are.
type Service struct {
	// Name and Version are the attributes service.name and service.version.
	// OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES go before them.
	Name, Version string
}

// Provider makes a tracer provider that sends what it traces to an exporter, in
// the background and in batches: at most 2,048 spans wait, further ones are
// dropped. Its Shutdown sends what waits. Which traces are recorded follows
// OTEL_TRACES_SAMPLER; default: what the caller samples, and all without a
// caller.
func Provider(ctx context.Context, e sdktrace.SpanExporter, of Service) (*sdktrace.TracerProvider, error) {
	r, err := sdkresource.New(
		ctx,
		sdkresource.WithAttributes(
			attribute.String("service.name", of.Name),
			attribute.String("service.version", of.Version),
		),
		sdkresource.WithTelemetrySDK(),
		sdkresource.WithFromEnv(),
	)
	if err != nil {
		return nil, fmt.Errorf("telemetry: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(quiet{e}), sdktrace.WithResource(r)), nil
}

// quiet keeps failures from the SDK's error handler, which writes to standard
// error: the exporter has logged them.
type quiet struct{ sdktrace.SpanExporter }

func (q quiet) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	_ = q.SpanExporter.ExportSpans(ctx, spans)
	return nil
}

// ParseHeaders reads the value of OTEL_EXPORTER_OTLP_HEADERS: name=value pairs
// between commas, percent-encoded. The error names no value.
func ParseHeaders(text string) (http.Header, error) {
	h := make(http.Header)
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || !token(name) || strings.ContainsFunc(decoded, control) {
			return nil, fmt.Errorf("write headers as name=value,name=value, percent-encoded (header %d cannot be read)", len(h)+1)
		}
		h.Set(name, decoded)
	}
	return h, nil
}

func control(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// token reports whether s is a token of RFC 9110.
func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	})
}
