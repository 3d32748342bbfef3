module github.com/parley-mcp/parley/contrib/prometheus

go 1.26.0

require (
	github.com/parley-mcp/parley v0.0.0
	github.com/prometheus/client_golang v1.25.0
	github.com/prometheus/common v0.72.0
)
