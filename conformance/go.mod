module github.com/parley-mcp/parley/conformance

go 1.26.0
