module github.com/parley-mcp/parley/lint

go 1.26.0

tool mvdan.cc/gofumpt

require (
	codeberg.org/polyfloyd/go-errorlint v1.9.0
	github.com/golangci/dupl v0.0.0-20260401084720-c99c5cf5c202
	github.com/golangci/misspell v0.8.0
	github.com/google/go-cmp v0.7.0
	github.com/gordonklaus/ineffassign v0.2.0
	github.com/gostaticanalysis/nilerr v0.1.2
	github.com/karamaru-alpha/copyloopvar v1.2.2
	github.com/kisielk/errcheck v1.30.0
	github.com/ldez/usetesting v0.5.0
	github.com/nishanths/exhaustive v0.15.0
	github.com/sivchari/containedctx v1.0.3
	github.com/sonatard/noctx v0.5.1
	github.com/timakin/bodyclose v0.0.0-20260723120731-857993a2939c
	github.com/ultraware/funlen v0.2.0
	github.com/uudashr/gocognit v1.3.0
	golang.org/x/sync v0.24.0
	golang.org/x/tools v0.52.0
	honnef.co/go/tools v0.8.2
	mvdan.cc/gofumpt v0.12.0
)

require (
	github.com/BurntSushi/toml v1.4.1-0.20240526193622-a339e1f7089c // indirect
	github.com/gostaticanalysis/analysisutil v0.7.1 // indirect
	github.com/gostaticanalysis/comment v1.5.0 // indirect
	golang.org/x/exp/typeparams v0.0.0-20231108232855-2478ac86f678 // indirect
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/tools/go/packages/packagestest v0.1.1-deprecated // indirect
)
