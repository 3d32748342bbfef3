module github.com/parley-mcp/parley/app

go 1.26.0

require (
	github.com/parley-mcp/parley v0.0.0
	github.com/rogpeppe/go-internal v1.16.0
	github.com/spf13/cobra v1.10.2
	golang.org/x/term v0.47.0
)
