// Package telemetry sends the program's traces to a collector, as OTLP over HTTP
// with JSON encoding. It does not use OpenTelemetry's own exporter, because that
// depends on gRPC and Protocol Buffers.
package telemetry
