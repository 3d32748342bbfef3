module github.com/parley-mcp/parley/release

go 1.26.0

require (
	golang.org/x/crypto/x509roots/fallback v0.0.0-20261030153154-30a33513ff6d
	golang.org/x/mod v0.42.0
	golang.org/x/text v0.43.0
)

require (
	github.com/google/go-cmp v0.7.0 // indirect
	golang.org/x/net v0.62.0 // indirect
)

require (
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/tools v0.52.0
)
