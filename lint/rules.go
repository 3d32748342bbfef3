package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	dupl "github.com/golangci/dupl/lib"
	"github.com/golangci/misspell"
	"github.com/kisielk/errcheck/errcheck"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/packages"
	"mvdan.cc/gofumpt/format"
)

// uncheckedErrors is errcheck with the name of the function in its text.
var uncheckedErrors = &analysis.Analyzer{
	Name: "errcheck", Doc: "report errors that nobody looks at",
	Run: func(pass *analysis.Pass) (any, error) {
		checker := errcheck.Checker{Exclusions: errcheck.Exclusions{BlankAssignments: true, TypeAssertions: true, Symbols: errcheck.DefaultExcludedSymbols}}
		found := checker.CheckPackage(&packages.Package{Fset: pass.Fset, Syntax: pass.Files, Types: pass.Pkg, TypesInfo: pass.TypesInfo})
		for _, e := range found.Unique().UncheckedErrors {
			name := e.SelectorName
			if name == "" {
				name = e.FuncName
			}
			reportAt(pass, e.Pos, fmt.Sprintf("error returned by %s is not checked", name))
		}
		return nil, nil
	},
}

// reportAt reports a finding at a place in one of the pass's files.
func reportAt(pass *analysis.Pass, at token.Position, text string) {
	pass.Fset.Iterate(func(f *token.File) bool {
		if f.Name() != at.Filename {
			return true
		}
		pass.Report(analysis.Diagnostic{Pos: f.LineStart(at.Line) + token.Pos(max(0, at.Column-1)), Message: text})
		return false
	})
}

// duplicates reports code that a package contains twice.
var duplicates = &analysis.Analyzer{
	Name: "dupl", Doc: "report code that a package contains twice",
	Run: func(pass *analysis.Pass) (any, error) {
		found, err := dupl.Run(names(pass), maxDuplicate)
		if err != nil {
			return nil, err
		}
		for _, d := range found {
			at := token.Position{Filename: d.From.Filename(), Line: d.From.LineStart()}
			reportAt(pass, at, fmt.Sprintf("lines %d to %d are those of %s:%d again", d.From.LineStart(), d.From.LineEnd(), filepath.Base(d.To.Filename()), d.To.LineStart()))
		}
		return nil, nil
	},
}

// names returns the pass's files, without those that the go command generated.
func names(pass *analysis.Pass) []string {
	var list []string
	for _, f := range pass.Files {
		if name := pass.Fset.File(f.FileStart).Name(); strings.HasSuffix(name, ".go") {
			list = append(list, name)
		}
	}
	return list
}

// misspelled reports common misspellings.
var misspelled = &analysis.Analyzer{
	Name: "misspell", Doc: "report common misspellings",
	Run: func(pass *analysis.Pass) (any, error) {
		replacer := misspell.New()
		return nil, eachText(pass, func(f *token.File, text string) {
			_, found := replacer.Replace(text)
			for _, d := range found {
				pass.Reportf(f.LineStart(d.Line)+token.Pos(d.Column), "%q is a misspelling of %q", d.Original, d.Corrected)
			}
		})
	},
}

// eachText calls do with the text of each file.
func eachText(pass *analysis.Pass, do func(f *token.File, text string)) error {
	for _, file := range pass.Files {
		f := pass.Fset.File(file.FileStart)
		text, err := pass.ReadFile(f.Name())
		if err != nil {
			return err
		}
		do(f, string(text))
	}
	return nil
}

// longFiles reports files with too many lines, without blank ones and one for each line of a comment.
var longFiles = &analysis.Analyzer{
	Name: "filelen", Doc: "report long files",
	Run: func(pass *analysis.Pass) (any, error) {
		files := make(map[*token.File]*ast.File)
		for _, file := range pass.Files {
			files[pass.Fset.File(file.FileStart)] = file
		}
		return nil, eachText(pass, func(f *token.File, text string) {
			lines := 0
			for line := range strings.Lines(text) {
				if strings.TrimSpace(line) != "" {
					lines++
				}
			}
			for _, group := range files[f].Comments {
				for _, c := range group.List {
					lines -= 1 + strings.Count(c.Text, "\n")
				}
			}
			if lines > maxFileLines {
				pass.Reportf(files[f].Name.Pos(), "the file has %d lines of code, more than %d", lines, maxFileLines)
			}
		})
	},
}

// formatting reports files that "make fmt" would change.
var formatting = &analysis.Analyzer{
	Name: "gofumpt", Doc: "report files that are not formatted",
	Run: func(pass *analysis.Pass) (any, error) {
		options := format.Options{LangVersion: pass.Pkg.GoVersion()}
		if pass.Module != nil {
			options.ModulePath = pass.Module.Path
		}
		var wrong error
		err := eachText(pass, func(f *token.File, text string) {
			formatted, err := format.Source([]byte(text), options)
			if err != nil {
				wrong = err
			} else if string(formatted) != text {
				pass.Reportf(f.LineStart(1+different(text, string(formatted))), "the file is not formatted; run 'make fmt'")
			}
		})
		if err == nil {
			err = wrong
		}
		return nil, err
	},
}

// different returns how many lines two texts have in common at their beginning.
func different(a, b string) int {
	n := 0
	for {
		first, restA, more := strings.Cut(a, "\n")
		second, restB, _ := strings.Cut(b, "\n")
		if first != second || !more {
			return n
		}
		a, b, n = restA, restB, n+1
	}
}

// forbidden reports what only programs do: print, log with the log package, and exit.
var forbidden = &analysis.Analyzer{
	Name: "forbidden", Doc: "report what only a program may do",
	Run: func(pass *analysis.Pass) (any, error) {
		for id, used := range pass.TypesInfo.Uses {
			if used.Pkg() == nil || used.Parent() != used.Pkg().Scope() {
				continue
			}
			switch path, name := used.Pkg().Path(), used.Name(); {
			case path == "fmt" && strings.HasPrefix(name, "Print"):
				pass.Reportf(id.Pos(), "a library does not print")
			case path == "os" && name == "Exit":
				pass.Reportf(id.Pos(), "only main exits")
			case strings.HasSuffix(path, "/app/internal/authserver/userauth") && name == "CheapHashes":
				pass.Reportf(id.Pos(), "only tests make hashes cheap")
			case path == "log":
				pass.Reportf(id.Pos(), "use a *slog.Logger")
			}
		}
		return nil, nil
	},
}

// exported reports exported names without a comment, and those that repeat the name of their package.
// Staticcheck (ST1020 to ST1022) looks at how comments begin.
var exported = &analysis.Analyzer{
	Name: "exported", Doc: "report exported names without a comment",
	Run: func(pass *analysis.Pass) (any, error) {
		for _, file := range pass.Files {
			for _, decl := range file.Decls {
				switch d := decl.(type) {
				case *ast.FuncDecl:
					if d.Name.IsExported() && d.Doc == nil && !ofUnexported(d) && !wellKnown[d.Name.Name] {
						pass.Reportf(d.Name.Pos(), "%s is exported and has no comment", d.Name.Name)
					}
					if d.Recv == nil {
						stuttering(pass, d.Name)
					}
				case *ast.GenDecl:
					undocumented(pass, d)
				}
			}
		}
		return nil, nil
	},
}

// stuttering reports an exported name that begins with the name of its package.
func stuttering(pass *analysis.Pass, id *ast.Ident) {
	name, rest := pass.Pkg.Name(), id.Name
	if name == "main" || !id.IsExported() || len(rest) <= len(name) || !strings.EqualFold(rest[:len(name)], name) {
		return
	}
	if next, _ := utf8.DecodeRuneInString(rest[len(name):]); next == '_' || unicode.IsUpper(next) {
		pass.Reportf(id.Pos(), "others write %s.%s, which says %s twice", name, rest, name)
	}
}

// wellKnown are methods whose interface says what they do.
var wellKnown = map[string]bool{
	"Error": true, "Unwrap": true, "String": true, "Read": true, "Write": true, "ServeHTTP": true, "Len": true, "Less": true, "Swap": true,
}

// ofUnexported reports whether a function is a method of an unexported type.
func ofUnexported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return false
	}
	typ := d.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return !t.IsExported()
		default:
			return false
		}
	}
}

// undocumented reports types, variables and constants without a comment of their own or of their block.
func undocumented(pass *analysis.Pass, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc == nil && d.Doc == nil {
				pass.Reportf(s.Name.Pos(), "%s is exported and has no comment", s.Name.Name)
			}
			stuttering(pass, s.Name)
		case *ast.ValueSpec:
			if s.Names[0].IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
				pass.Reportf(s.Names[0].Pos(), "%s is exported, and neither it nor its block has a comment", s.Names[0].Name)
			}
		}
	}
}

// Analyzers that follow the flow of control learn from the source code of packages which functions never
// return. These are the ones of the standard library, whose source code is not loaded.
func init() {
	run := ctrlflow.Analyzer.Run
	ctrlflow.Analyzer.Run = func(pass *analysis.Pass) (any, error) {
		known := *pass
		known.ImportObjectFact = func(obj types.Object, fact analysis.Fact) bool {
			return pass.ImportObjectFact(obj, fact) || neverReturns(obj)
		}
		return run(&known)
	}
}

// neverReturns reports whether a function of the standard library ends its goroutine or the program.
func neverReturns(obj types.Object) bool {
	f, ok := obj.(*types.Func)
	if !ok || f.Pkg() == nil {
		return false
	}
	switch f.Pkg().Path() {
	case "os", "syscall":
		return f.Name() == "Exit"
	case "runtime":
		return f.Name() == "Goexit"
	case "log":
		return strings.HasPrefix(f.Name(), "Fatal") || strings.HasPrefix(f.Name(), "Panic")
	case "testing":
		return strings.HasPrefix(f.Name(), "Fatal") || f.Name() == "FailNow" || strings.HasPrefix(f.Name(), "Skip") && f.Name() != "Skipped"
	}
	return false
}

// relative returns a file as seen from the root, with slashes.
func relative(root, name string) string {
	if rel, err := filepath.Rel(root, name); err == nil && !strings.HasPrefix(rel, "..") {
		return filepath.ToSlash(rel)
	}
	return name
}
