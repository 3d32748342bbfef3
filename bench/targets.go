package main

import "github.com/parley-mcp/parley/bench/report"

// Units.
const (
	us  = "µs"
	ms  = "ms"
	x   = "x"
	kib = "KiB"
	mib = "MiB"
	mb  = "MB"
	pct = "%"
)

// speed says how fast the machine was beside the one of the targets.
func speed(r *report.Run) string { return r.Speed(httpModernJSON, report.CPU, 15.4) }

// targets are what was set before the work began, row by row.
func targets() []report.Target {
	return append([]report.Target{
		{What: "HTTP, JSON: requests/s to the floor", Scenario: httpModernJSON, Metric: report.Rate, To: report.Floor, Unit: pct, AtLeast: 75, Aim: 88},
		{What: "HTTP, JSON: CPU to the floor", Scenario: httpModernJSON, Metric: report.CPU, To: report.Floor, Unit: x, AtLeast: 1.4, Aim: 1.2, Less: true},
		{What: "HTTP, JSON: allocations", Scenario: httpModernJSON, Metric: report.Allocs, Per: 1, AtLeast: 60, Aim: 45, Less: true},
		{What: "HTTP, JSON: requests/s to go-sdk", Scenario: httpModernJSON, Metric: report.Rate, To: report.GoSDK, Unit: x, AtLeast: 15, Aim: 25},
		{What: "HTTP, JSON: requests/s to mcp-go", Scenario: httpModernJSON, Metric: report.Rate, To: report.MCPGo, Unit: x, AtLeast: 3.5, Aim: 5},
		{What: "HTTP, event stream: requests/s to the floor", Scenario: httpModernSSE, Metric: report.Rate, To: report.Floor, Unit: pct, AtLeast: 65, Aim: 80},
		{What: "HTTP, legacy session: requests/s to the floor", Scenario: httpSession, Metric: report.Rate, To: report.Floor, Unit: pct, AtLeast: 65, Aim: 80},
		{What: "stdio, 64 under way: requests/s to go-sdk", Scenario: stdioMany, Metric: report.Rate, To: report.GoSDK, Unit: x, AtLeast: 12, Aim: 25},
		{What: "stdio, 64 under way: requests/s to mcp-go", Scenario: stdioMany, Metric: report.Rate, To: report.MCPGo, Unit: x, AtLeast: 3, Aim: 5},
		{What: "stdio, 64 under way: CPU seconds of 100,000", Scenario: stdioMany, Metric: report.CPU, Per: 10, Unit: "s", AtLeast: 1, Aim: 0.6, Less: true},
		{What: "stdio, 64 under way: allocations", Scenario: stdioMany, Metric: report.Allocs, Per: 1, AtLeast: 12, Aim: 6, Less: true},
		{What: "stdio, one by one: requests/s to go-sdk", Scenario: stdioOne, Metric: report.Rate, To: report.GoSDK, Unit: x, AtLeast: 2.5, Aim: 3.4},
		{What: "stdio, one by one: requests/s to mcp-go", Scenario: stdioOne, Metric: report.Rate, To: report.MCPGo, Unit: x, AtLeast: 1.5, Aim: 2},
		{What: "tools/list of 1,000: CPU", Scenario: listLong, Metric: report.CPU, Per: 1000, Unit: ms, AtLeast: 0.5, Aim: 0.2, Less: true},
		{What: "echo of 1 MiB: CPU", Scenario: echoLarge, Metric: report.CPU, Per: 1000, Unit: ms, AtLeast: 12, Aim: 8, Less: true},
		{What: "echo of 1 MiB: allocated", Scenario: echoLarge, Metric: report.Bytes, Per: 1e6, Unit: mb, AtLeast: 8, Aim: 4, Less: true},
		{What: "blob of 10 MiB: CPU", Scenario: blobLarge, Metric: report.CPU, Per: 1000, Unit: ms, AtLeast: 25, Aim: 15, Less: true},
		{What: "blob of 10 MiB: peak RSS", Scenario: blobLarge, Metric: report.PeakRSS, Per: 1 << 20, Unit: mib, AtLeast: 60, Aim: 40, Less: true},
		{What: "1,000 notifications: delivered", Scenario: progressMany, Metric: report.Delivered, Per: 1, AtLeast: manyEvents, Aim: manyEvents},
		{What: "1,000 notifications: CPU to the floor", Scenario: progressMany, Metric: report.CPU, To: report.Floor, Unit: x, AtLeast: 1.6, Aim: 1.2, Less: true},
		{What: "idle session", Scenario: idleSession, Metric: report.Memory, Per: 1 << 10, Unit: kib, AtLeast: 2, Aim: 1, Less: true},
		{What: "idle session: goroutines", Scenario: idleSession, Metric: report.Goroutines, Per: 1, Less: true},
		{What: "idle session with stream", Scenario: idleStream, Metric: report.Memory, Per: 1 << 10, Unit: kib, AtLeast: 32, Aim: 29, Less: true},
		{What: "in memory, round trip", Scenario: inMemory, Metric: report.Elapsed, Per: 1, Unit: us, AtLeast: 25, Aim: 12, Less: true},
		{What: "in memory: allocations", Scenario: inMemory, Metric: report.Allocs, Per: 1, AtLeast: 80, Aim: 40, Less: true},
		{What: "client over HTTP: CPU of go-sdk's to ours", Scenario: clientHTTP, Metric: report.CPU, Server: report.GoSDK, To: report.Parley, Unit: x, AtLeast: 3, Aim: 6},
		{What: "load generator over HTTP: calls/s to the Inspector's", Scenario: loadHTTP, Metric: report.Rate, To: inspectorName, Unit: x, AtLeast: 5, Aim: 8},
		{What: "load generator over stdio: calls/s to the Inspector's", Scenario: loadStdio, Metric: report.Rate, To: inspectorName, Unit: x, AtLeast: 5, Aim: 8},
		{What: "bridge --http: CPU to a call over HTTP", Scenario: bridgeOne, Metric: report.CPU, Server: wayBridgeHTTP, To: wayHTTP, Unit: x, AtLeast: 3, Aim: 2, Less: true},
		{What: "bridge --stdio: CPU to a call over HTTP", Scenario: bridgeOne, Metric: report.CPU, Server: wayBridgeStdio, To: wayHTTP, Unit: x, AtLeast: 3, Aim: 2, Less: true},
		{What: "bridge --http: CPU to a call over a pipe", Scenario: bridgeOne, Metric: report.CPU, Server: wayBridgeHTTP, To: wayPipe, Unit: x, AtLeast: 3, Aim: 3, Less: true},
		{What: "bridge --stdio: CPU to a call over a pipe", Scenario: bridgeOne, Metric: report.CPU, Server: wayBridgeStdio, To: wayPipe, Unit: x, AtLeast: 3, Aim: 3, Less: true},
		{What: "client over HTTP: allocations of go-sdk's to ours", Scenario: clientHTTP, Metric: report.Allocs, Server: report.GoSDK, To: report.Parley, Unit: x, AtLeast: 3, Aim: 6},
	}, referenceTargets()...)
}
