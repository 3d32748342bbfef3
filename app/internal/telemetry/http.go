package telemetry

import (
	"net/http"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Handler traces the requests of an HTTP server that speaks no MCP, by
// OpenTelemetry's conventions for HTTP. route names what a request is for, from a
// small set, such as "token"; "" is none of it. Neither queries, nor paths, nor
// headers, in which secrets travel, are recorded.
func Handler(next http.Handler, provider trace.TracerProvider, route func(r *http.Request) string) http.Handler {
	tracer := provider.Tracer("github.com/parley-mcp/parley/app/internal/telemetry")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method, at := Method(r), route(r)
		attributes := []attribute.KeyValue{attribute.String("http.request.method", method)}
		name := method
		if at != "" {
			name += " " + at
			attributes = append(attributes, attribute.String("http.route", at))
		}
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attributes...))
		s := &Status{ResponseWriter: w}
		defer func() {
			span.SetAttributes(attribute.Int("http.response.status_code", s.Code()))
			if s.Code() >= http.StatusInternalServerError {
				span.SetStatus(codes.Error, "")
			}
			span.End()
		}()
		next.ServeHTTP(s, r.WithContext(ctx))
	})
}

// Method is the method of a request as the conventions write it: "_OTHER" for
// one that HTTP does not know, since clients may make it up.
func Method(r *http.Request) string {
	if slices.Contains([]string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace,
	}, r.Method) {
		return r.Method
	}
	return "_OTHER"
}

// Status is a ResponseWriter that keeps the status of the response.
type Status struct {
	http.ResponseWriter
	code int
}

// WriteHeader keeps the status and writes it.
func (s *Status) WriteHeader(code int) {
	if s.code < http.StatusOK { // what came before was informational
		s.code = code
	}
	s.ResponseWriter.WriteHeader(code)
}

// Code is the status, 200 if none was written.
func (s *Status) Code() int {
	if s.code == 0 {
		return http.StatusOK
	}
	return s.code
}

// Unwrap is for http.ResponseController.
func (s *Status) Unwrap() http.ResponseWriter { return s.ResponseWriter }
