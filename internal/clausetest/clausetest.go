// Package clausetest compares a table of what a specification requires with the tests that
// a package has, and with the page of the guide for what is left to a host.
package clausetest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A Side is what a clause binds.
type Side string

// The sides.
const (
	// Server is a server and the library that it is made with.
	Server Side = "server"
	// Client is the library of a host.
	Client Side = "client"
	// Host is the program around that library.
	Host Side = "host"
)

// A Clause is one requirement of a specification. It has tests, or a place in the guide if
// it is one for a program and not for the library.
type Clause struct {
	// Text is the section of the specification, a colon, and the clause in our words.
	Text string
	// Side is what it binds.
	Side Side
	// Tests are the names of the tests that fail when it is broken.
	Tests []string
	// Heading is that of a section of the guide, and Says are words of it.
	Heading, Says string
}

// Check fails a test with each of [Problems] of the test's own folder.
func Check(t *testing.T, guide string, clauses []Clause) {
	t.Helper()
	problems, err := Problems(".", guide, clauses)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// Problems tells what is wrong with a table: a clause without a test or with one that the
// test files of the folder do not have, a clause of which the guide says nothing, a clause
// that is there twice.
func Problems(folder, guide string, clauses []Clause) ([]string, error) {
	have, err := tests(folder)
	if err != nil {
		return nil, err
	}
	page, err := os.ReadFile(guide) // the name is in a test
	if err != nil {
		return nil, fmt.Errorf("clausetest: %w", err)
	}
	var found []string
	seen := make(map[string]bool)
	for _, c := range clauses {
		add := func(format string, args ...any) {
			found = append(found, c.Text+": "+fmt.Sprintf(format, args...))
		}
		if where, what, ok := strings.Cut(c.Text, ": "); !ok || where == "" || what == "" || seen[c.Text] {
			add("write the section, a colon and the clause, and each clause once")
		}
		seen[c.Text] = true
		for _, name := range c.Tests {
			if !have[name] {
				add("there is no test %s", name)
			}
		}
		said, ok := section(string(page), c.Heading)
		switch {
		case c.Side != Server && c.Side != Client && c.Side != Host:
			add("the side %q is none", c.Side)
		case len(c.Tests) > 0 && c.Heading == "" && c.Says == "":
		case c.Side == Client || c.Heading == "":
			add("it has no test")
		case len(c.Tests) > 0 || c.Says == "":
			add("what the guide says has words of it, and no test")
		case !ok || !strings.Contains(said, c.Says):
			add("%s does not say %q below %q", guide, c.Says, c.Heading)
		}
	}
	return found, nil
}

// tests are the names of the tests of a folder, those of every platform.
func tests(folder string) (map[string]bool, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, fmt.Errorf("clausetest: %w", err)
	}
	have := make(map[string]bool)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("clausetest: %w", err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && isTest(f) {
				have[f.Name.Name] = true
			}
		}
	}
	return have, nil
}

// isTest reports whether go test runs a function as a test.
func isTest(f *ast.FuncDecl) bool {
	if f.Recv != nil || f.Body == nil || len(f.Body.List) == 0 || !strings.HasPrefix(f.Name.Name, "Test") {
		return false
	}
	params := f.Type.Params.List
	if len(params) != 1 {
		return false
	}
	star, ok := params[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	t, ok := star.X.(*ast.SelectorExpr)
	return ok && t.Sel.Name == "T"
}

// section is the text below a heading of a page, its white space as single spaces.
func section(page, heading string) (text string, ok bool) {
	_, rest, ok := strings.Cut("\n"+page, "\n## "+heading+"\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	return strings.Join(strings.Fields(rest), " "), ok
}
