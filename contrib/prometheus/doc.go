// Package prommcp gives counts of MCP requests to a Prometheus registry.
package prommcp
