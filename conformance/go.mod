module github.com/parley-mcp/parley/conformance

go 1.26.0

require github.com/parley-mcp/parley v0.0.0
