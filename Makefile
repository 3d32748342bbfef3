# Everything that is done often, offline but for tools, conformance, interop
# and the tests of foreign servers. "make help" prints one line for each target.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := all

GO ?= go
FUZZTIME ?= 30s

GOVULNCHECK_VERSION := v1.9.0

# Packages of the modules that change together.
ALL := ./... ./app/... ./conformance/... ./contrib/otel/... ./contrib/prometheus/...
# Modules outside the workspace: they need the SDKs of others, or are tools.
APART := app/interop bench examples release lint
# Flags of the linters; make itself sets LINT to "lint".
LINT :=
# Flags of the tests of interop.
INTEROP :=

.PHONY: all help fmt lint test race race-library race-program fuzz microbench bench instructions guard bench-test examples firstrun picture flake soak release release-test api api-check licences vulnerabilities conformance interop types cross check

all: fmt lint test ## fmt, lint and test (what plain "make" does)

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-20s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

fmt: ## format every Go file
	@cd lint && GOWORK=off $(GO) tool gofumpt -l -w ..

lint: ## check the code of every module; LINT=-deps analyzes dependencies, too
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	(cd lint && GOWORK=off $(GO) build -o "$$dir/lint" .) && "$$dir/lint" $(LINT) $(APART)

test: ## run every test of the workspace
	$(GO) test work

# "make lint" has go vet's checks, so tests other than those of "go test work" are built with -vet=off.
# The race runtime sleeps a second at every exit, which programs that start
# programs would feel.
# Serial tests and those of programs are left to "make soak-race", where programs, which start slowly, are
# killed four times instead of five to twenty. Faults are tried with 3 seeds instead of 20. The C code of
# SQLite and the C library below it, which have locks of their own, are built without the detector: with it,
# they took a third of the time. Debugging data is left out, which makes compiling 8 % faster. The library is
# tested without the workspace, as its users get it.
RACE := GORACE=atexit_sleep_ms=0 $(GO) test -race -vet=off -timeout 60m -gcflags=all=-dwarf=false
UNDETECTED := -race=false -dwarf=false
RACE_APP := -gcflags='modernc.org/sqlite/lib=$(UNDETECTED)' -gcflags='modernc.org/libc=$(UNDETECTED)' \
	./app/internal/cli ./app/... ./contrib/otel/... ./contrib/prometheus/...
race: ## run all tests but serial ones that take long with the race detector, of both parts even if one fails
	@$(MAKE) -k race-library race-program
race-library: ## the tests of the library with the race detector
	GOWORK=off $(RACE) -short ./...
race-program: ## the tests of the program and contrib with the race detector
	PARLEY_TEST_SEEDS=3 $(RACE) -short $(RACE_APP)

quick: ## after an edit: linters and tests of the workspace, but not those that take long
	@$(MAKE) lint APART=
	$(GO) test -vet=off -short work

fuzz: ## run every fuzz target for FUZZTIME (30s)
	FUZZTIME=$(FUZZTIME) .ci/fuzz

microbench: ## run every benchmark of the packages, with allocations
	$(GO) test -run '^$$' -bench . -benchmem $(ALL)

bench: ## measure beside the libraries of others and write docs/benchmarks.md; needs npm and a network, takes ten minutes
	for part in bench/servers/ts bench/clients/ts app/interop/peers; do (cd $$part && npm ci) || exit 1; done
	cd bench && GOWORK=off $(GO) run . -out ../docs

instructions: ## count the instructions of a request by valgrind and write them to docs/benchmarks.md
	cd bench && GOWORK=off $(GO) run . -only '^instructions' -out ../docs

# Allocations, bytes and instructions are the same on every machine; of time only the
# ratio to the floor of the same run is looked at, and generously.
guard: ## fail if a request has become dearer: allocations, bytes, instructions (needs valgrind), CPU beside the floor
	cd bench && GOWORK=off $(GO) run . -guard

bench-test: ## build and test the programs that measure
	cd bench && GOWORK=off $(GO) build ./... && GOWORK=off $(GO) test -vet=off ./...

firstrun: ## build and run the program with empty caches; at most 120 s on two processors
	.ci/firstrun

picture: ## draw the picture of a question in the guide, from a real run in tmux
	.ci/picture

flake: ## run the tests of FLAKE_PACKAGES (all) FLAKE_COUNT times (20) while all processors are busy
	.ci/flake

# Each part of soak takes at most an hour on two processors.
SOAK := soak-flake-cli soak-flake-host soak-flake-interop soak-flake-transport soak-kills soak-kills-git soak-rounds \
	soak-chaos soak-load soak-builtins soak-servers soak-race soak-fuzz-library soak-fuzz-program \
	soak-release soak-lint soak-cross
.PHONY: quick soak $(SOAK)
soak: $(SOAK) ## what takes hours, in parts of at most one hour

soak-flake-cli: ## the tests of the program 4 times on a busy machine
	FLAKE_COUNT=4 FLAKE_PACKAGES=./app/internal/cli .ci/flake
soak-flake-host: ## the tests of all packages of the program but cli, and of host, on a busy machine
	FLAKE_COUNT=4 FLAKE_PACKAGES="$$($(GO) list ./host ./app/... | grep -v '/app/internal/cli$$' | tr '\n' ' ')" .ci/flake
soak-flake-interop: ## the tests with the SDKs of others 3 times on a busy machine; needs npm and a network
	FLAKE_COUNT=3 FLAKE_PACKAGES=app/interop/... .ci/flake
soak-flake-transport: ## the tests of the library 10 times on a busy machine
	FLAKE_COUNT=10 FLAKE_PACKAGES=./... .ci/flake

soak-kills: ## processes that are killed hundreds of times
	PARLEY_TEST_KILLS=200 $(GO) test -count=1 -timeout 40m -run '^Test(KillLosesNothing|KilledServers)$$' ./app/internal/store/tasks ./app/internal/store/local
	PARLEY_TEST_KILLS=50 $(GO) test -count=1 -timeout 40m -run '^TestKilled(Run|Chat)$$' ./app/internal/cli
	PARLEY_TEST_KILLS=100 $(GO) test -count=1 -timeout 40m -run '^TestKilled(Refresh|Audit)$$' ./app/internal/cli
	PARLEY_TEST_KILLS=1000 $(GO) test -count=1 -timeout 20m -run '^TestKilled$$' ./app/internal/serve/servers/memory
	PARLEY_TEST_KILLS=400 $(GO) test -count=1 -timeout 20m -run '^TestKilled$$' ./app/internal/audit
soak-kills-git: ## kills, swapped folders and repositories of the git server
	PARLEY_TEST_KILLS=200 $(GO) test -count=1 -timeout 40m -run '^TestKilled$$' ./app/internal/serve/servers/git
	PARLEY_TEST_SWAPS=10000 $(GO) test -count=1 -timeout 40m -run '^TestSwappedFolder$$' ./app/internal/serve/servers/git
	PARLEY_TEST_GIT_CASES=50 $(GO) test -count=1 -timeout 40m -run '^TestJudge' ./app/internal/serve/servers/git
soak-rounds: ## a million steps of a model of sessions, and hosts and screens that begin and end a hundred times
	PARLEY_TEST_STEPS=1000000 $(GO) test -count=1 -run '^TestModel$$' ./transport/streamable
	PARLEY_TEST_MEASURE=1 $(GO) test -v -count=1 -timeout 20m -run '^TestMeasureSize$$' ./app/internal/authserver/admin
	PARLEY_TEST_ROUNDS=100 $(GO) test -count=1 -timeout 40m -run '^Test(RoundsOf.*|EndsOfScreen)$$' ./host ./app/internal/cli
soak-chaos: ## faults of connections with hundreds of seeds; needs npm for the SDKs of others
	PARLEY_TEST_SEEDS=200 $(GO) test -count=1 -timeout 40m -run '^TestClientOver' ./app/internal/tester/inspect/chaos
	PARLEY_TEST_SEEDS=20 $(GO) test -count=1 -timeout 60m -run '^TestBuiltinsBehindChaos$$' ./app/internal/cli
	if [ -d app/interop/peers/node_modules ]; then cd app/interop && PARLEY_TEST_SEEDS=200 PARLEY_TEST_PEERS=1 GOWORK=off $(GO) test -count=1 -timeout 90m -run '^TestChaos' .; fi
soak-load: ## keys that change under load
	PARLEY_TEST_LOAD=1m $(GO) test -count=1 -timeout 20m -run '^TestKeysUnderLoad$$' ./app/internal/authserver/admin
soak-builtins: ## ten minutes of load on each built-in server
	PARLEY_TEST_LOAD=10m $(GO) test -count=1 -timeout 90m -parallel 4 -run '^TestBuiltinsForLong$$' ./app/internal/cli
soak-servers: ## the servers from npm that people use; needs npm and a network
	cd app/interop/peers && npm ci
	cd app/interop/peers/servers && npm ci
	cd app/interop && PARLEY_TEST_PEERS=1 PARLEY_TEST_NPX=all GOWORK=off $(GO) test -v -count=1 -timeout 50m -run '^TestNPMServers$$' .
soak-race: ## every test of the library and the program with the race detector
	GOWORK=off $(RACE) ./...
	PARLEY_TEST_KILLS=4 PARLEY_TEST_SEEDS=3 $(RACE) $(RACE_APP)
# A count, not a time: at the end of a time the fuzzing engine may report its own deadline as a
# failure (golang/go#75804, mended in Go 1.27).
soak-fuzz-library: ## every fuzz target of the library with 100,000 inputs
	FUZZ_WITHOUT=app FUZZTIME=100000x .ci/fuzz
soak-fuzz-program: ## every fuzz target of the program with 100,000 inputs
	FUZZ_FOLDER=app FUZZTIME=100000x .ci/fuzz
soak-release: ## a release that is compiled twice
	$(MAKE) release-test RELEASE_TEST=whole
soak-lint: ## linters that analyze dependencies, too
	$(MAKE) lint LINT=-deps
soak-cross: cross ## vet and a build for other systems

release: ## make the release VERSION in dist; the commit and tags stay in a copy unless APPLY=1
	cd release && GOWORK=off $(GO) run . new -version "$(VERSION)" -out "$(CURDIR)/dist" $(if $(APPLY),-apply)

RELEASE_TEST ?= 1
release-test: ## make a release of the last commit in a temporary folder, and use it as people do; RELEASE_TEST=whole compiles all twice
	cd release && PARLEY_TEST_RELEASE=$(RELEASE_TEST) GOWORK=off $(GO) test -vet=off -count=1 -timeout 30m ./...

api: ## write the public names to api/
	cd release && GOWORK=off $(GO) run . api

api-check: ## show how the public names differ from api/, and fail if they do
	cd release && GOWORK=off $(GO) run . api -check

licences: ## list the licences of what the program contains; fail if one is not known
	cd release && GOWORK=off $(GO) run . licences

# The database is on the network. Where it cannot be reached nothing is known.
vulnerabilities: ## look for known vulnerabilities in what the program and the library call
	@if ! curl -fsS -m 20 -o /dev/null https://vuln.go.dev/index/db.json; then \
		echo "the database of vulnerabilities cannot be reached: nothing was checked"; \
	else \
		GOFLAGS= $(GO) run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) ./... ./app/cmd/parley ./contrib/otel ./contrib/prometheus/...; \
	fi

conformance: ## hold the library to the official conformance suite; needs npm, and a network the first time
	$(GO) run ./conformance/runner
	$(GO) run ./conformance/runner -new

# -count=1: Go's cache of results does not see what node reads.
interop: ## talk to the SDKs of others, in both directions; needs npm and a network; INTEROP=-short asks less
	cd app/interop/peers && npm ci
	cd app/interop && PARLEY_TEST_PEERS=1 GOWORK=off $(GO) test -vet=off -count=1 -timeout 60m $(INTEROP) ./...

examples: ## build the programs of examples and try what the guide shows
	cd examples && GOWORK=off $(GO) test -vet=off -count=1 ./...

types: ## check the types of everything, tests too, as on Windows and macOS
	cd release && GOWORK=off $(GO) run . types -platforms windows/amd64,darwin/arm64

# Vet checks the types of every test; what its linking could find beyond that is not worth
# the minutes that it takes.
cross: ## go vet of everything, tests too, and a build of the program, for Windows and macOS
	@for target in windows/amd64 darwin/arm64; do \
		echo "vet and builds for $$target"; \
		export GOOS=$${target%/*} GOARCH=$${target#*/} CGO_ENABLED=0; \
		$(GO) vet work && $(GO) build -o /dev/null ./app/cmd/parley || exit 1; \
	done

check: lint test race ## all that must pass before a change is done
