// Package otelmcp makes traces and metrics of MCP requests, as OpenTelemetry's
// semantic conventions for MCP and generative AI say.
package otelmcp
