// Package telemetry sends the program's traces to a collector: OTLP over HTTP,
// encoded as JSON. The exporter of OpenTelemetry itself needs gRPC and Protocol
// Buffers, which a build of the program would have to compile.
package telemetry
