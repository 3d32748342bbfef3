package main

import (
	"errors"
	"slices"
	"strconv"

	"codeberg.org/polyfloyd/go-errorlint/errorlint"
	"github.com/gordonklaus/ineffassign/pkg/ineffassign"
	"github.com/gostaticanalysis/nilerr"
	"github.com/karamaru-alpha/copyloopvar"
	"github.com/ldez/usetesting"
	"github.com/nishanths/exhaustive/passes/exhaustive"
	"github.com/sivchari/containedctx"
	"github.com/sonatard/noctx"
	"github.com/timakin/bodyclose/passes/bodyclose"
	"github.com/ultraware/funlen"
	"github.com/uudashr/gocognit"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/appends"
	"golang.org/x/tools/go/analysis/passes/assign"
	"golang.org/x/tools/go/analysis/passes/atomic"
	"golang.org/x/tools/go/analysis/passes/bools"
	"golang.org/x/tools/go/analysis/passes/buildtag"
	"golang.org/x/tools/go/analysis/passes/composite"
	"golang.org/x/tools/go/analysis/passes/copylock"
	"golang.org/x/tools/go/analysis/passes/defers"
	"golang.org/x/tools/go/analysis/passes/directive"
	"golang.org/x/tools/go/analysis/passes/errorsas"
	"golang.org/x/tools/go/analysis/passes/hostport"
	"golang.org/x/tools/go/analysis/passes/httpresponse"
	"golang.org/x/tools/go/analysis/passes/ifaceassert"
	"golang.org/x/tools/go/analysis/passes/inline"
	"golang.org/x/tools/go/analysis/passes/lostcancel"
	"golang.org/x/tools/go/analysis/passes/nilfunc"
	"golang.org/x/tools/go/analysis/passes/printf"
	"golang.org/x/tools/go/analysis/passes/shift"
	"golang.org/x/tools/go/analysis/passes/sigchanyzer"
	"golang.org/x/tools/go/analysis/passes/slog"
	"golang.org/x/tools/go/analysis/passes/stdmethods"
	"golang.org/x/tools/go/analysis/passes/stdversion"
	"golang.org/x/tools/go/analysis/passes/stringintconv"
	"golang.org/x/tools/go/analysis/passes/structtag"
	"golang.org/x/tools/go/analysis/passes/testinggoroutine"
	"golang.org/x/tools/go/analysis/passes/tests"
	"golang.org/x/tools/go/analysis/passes/timeformat"
	"golang.org/x/tools/go/analysis/passes/unmarshal"
	"golang.org/x/tools/go/analysis/passes/unreachable"
	"golang.org/x/tools/go/analysis/passes/unsafeptr"
	"golang.org/x/tools/go/analysis/passes/unusedresult"
	"golang.org/x/tools/go/analysis/passes/waitgroup"
	"honnef.co/go/tools/analysis/lint"
	"honnef.co/go/tools/quickfix"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"
)

const (
	maxFunctionLines      = 80
	maxFunctionStatements = 50
	maxComplexity         = 25
	maxFileLines          = 600
	maxDuplicate          = 100 // tokens
)

// A linter is a few analyzers under the name that nolint comments use.
type linter struct {
	name      string
	analyzers []*analysis.Analyzer
}

// linters are all of them, each with its reason.
var linters = []linter{
	{"bodyclose", one(bodyclose.Analyzer)},                                             // an open response body keeps its connection
	{"containedctx", one(containedctx.Analyzer)},                                       // a context belongs to a call, not to a struct
	{"copyloopvar", one(copyloopvar.NewAnalyzer())},                                    // the copy is a leftover from before Go 1.22
	{"dupl", one(duplicates)},                                                          // two places never know the same thing
	{"errcheck", one(uncheckedErrors)},                                                 // an error is handled, or visibly ignored
	{"errorlint", one(errorlint.NewAnalyzer())},                                        // errors.Is and errors.As find wrapped errors
	{"exhaustive", one(exhaustive.Analyzer)},                                           // a switch over a closed set has every member, or a default
	{"exported", one(exported)},                                                        // exported names are documented
	{"filelen", one(longFiles)},                                                        // files stay short
	{"forbidden", one(forbidden)},                                                      // a library neither prints, logs globally nor exits
	{"funlen", one(funlen.NewAnalyzer(maxFunctionLines, maxFunctionStatements, true))}, // a function fits on a screen
	{"gocognit", one(gocognit.Analyzer)},                                               // and in a head
	{"gofumpt", one(formatting)},                                                       // one format for all
	{"govet", vet},                                                                     // wrong, though it compiles
	{"ineffassign", one(ineffassign.Analyzer)},                                         // an assignment that is never read hides a mistake
	{"misspell", one(misspelled)},                                                      // names and comments are for reading
	{"nilerr", one(nilerr.Analyzer)},                                                   // a non-nil error does not become nil
	{"noctx", one(noctx.Analyzer)},                                                     // every request can be cancelled
	{"staticcheck", checks(staticcheck.Analyzers, simple.Analyzers, stylecheck.Analyzers, quickfix.Analyzers)}, // as govet
	{"unused", one(unused.Analyzer.Analyzer)},     // dead code misleads
	{"usetesting", one(usetesting.NewAnalyzer())}, // testing.T cleans up contexts and folders
}

// vet is what go vet does, without passes for assembly, cgo, and loops of Go before 1.22.
var vet = []*analysis.Analyzer{
	appends.Analyzer, assign.Analyzer, atomic.Analyzer, bools.Analyzer, buildtag.Analyzer, composite.Analyzer,
	copylock.Analyzer, defers.Analyzer, directive.Analyzer, errorsas.Analyzer, hostport.Analyzer, httpresponse.Analyzer,
	ifaceassert.Analyzer, inline.Analyzer, lostcancel.Analyzer, nilfunc.Analyzer, printf.Analyzer, shift.Analyzer,
	sigchanyzer.Analyzer, slog.Analyzer, stdmethods.Analyzer, stdversion.Analyzer, stringintconv.Analyzer,
	structtag.Analyzer, testinggoroutine.Analyzer, tests.Analyzer, timeformat.Analyzer, unmarshal.Analyzer,
	unreachable.Analyzer, unsafeptr.Analyzer, unusedresult.Analyzer, waitgroup.Analyzer,
}

// factual are the analyzers that need to know of imported packages: which functions are like Printf, and
// which types are closed sets.
var factual = append(slices.Clone(vet), exhaustive.Analyzer)

// analyzers returns the analyzers of all linters, with their settings, and the name of the linter of each.
func analyzers() ([]*analysis.Analyzer, map[*analysis.Analyzer]string, error) {
	names := make(map[*analysis.Analyzer]string)
	var all []*analysis.Analyzer
	for _, l := range linters {
		for _, a := range l.analyzers {
			all = append(all, a)
			names[a] = l.name
		}
	}
	var err error
	for _, a := range all {
		for flag, value := range settings[names[a]] {
			err = errors.Join(err, a.Flags.Set(flag, value))
		}
	}
	return all, names, err
}

// settings are flags of analyzers, by the names of their linters.
var settings = map[string]map[string]string{
	"errorlint":  {"errorf": "true"}, // an error in another one is wrapped
	"exhaustive": {"d": "true"},      // a default makes a switch complete
	"gocognit":   {"over": strconv.Itoa(maxComplexity)},
	"usetesting": {"ossetenv": "true"},
}

func one(a *analysis.Analyzer) []*analysis.Analyzer { return []*analysis.Analyzer{a} }

// checks returns the analyzers of staticcheck.
func checks(groups ...[]*lint.Analyzer) []*analysis.Analyzer {
	var all []*analysis.Analyzer
	for _, a := range slices.Concat(groups...) {
		all = append(all, a.Analyzer)
	}
	return all
}
