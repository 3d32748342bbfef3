package archtest

import (
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Sizes reports files of code that are longer than 600 lines. Tests are
// exempt.
func (t *Tree) Sizes() []Problem {
	var found []Problem
	for _, src := range t.sources {
		if !src.test && src.size > maxLines {
			found = append(found, t.at(src.file.Package, "%d lines, more than %d: is it one subject?", src.size, maxLines))
		}
	}
	for i := range found {
		found[i].Line = 0 // it is the file that is too long
	}
	return found
}

// Docs reports packages without a package comment, or with more than one, and
// comments that do not begin with the package's name.
func (t *Tree) Docs() []Problem {
	commented := map[string][]source{}
	first := map[string]source{}
	for _, src := range t.sources {
		if src.test {
			continue
		}
		if _, seen := first[src.pkg]; !seen {
			first[src.pkg] = src
		}
		if src.file.Doc.Text() != "" {
			commented[src.pkg] = append(commented[src.pkg], src)
		}
	}
	var found []Problem
	for _, pkg := range slices.Sorted(maps.Keys(first)) {
		docs := commented[pkg]
		if len(docs) == 0 {
			found = append(found, Problem{File: first[pkg].name, Text: "package " + pkg + " has no package comment"})
			continue
		}
		for _, extra := range docs[1:] {
			found = append(found, t.at(extra.file.Package, "a second package comment; the first is in %s", docs[0].name))
		}
		name := docs[0].file.Name.Name
		if name != "main" && !strings.HasPrefix(docs[0].file.Doc.Text(), "Package "+name+" ") {
			found = append(found, t.at(docs[0].file.Package, "the package comment must begin with \"Package %s \"", name))
		}
	}
	return found
}

var date = regexp.MustCompile(`20\d\d-\d\d-\d\d`)

// Dates reports string literals that hold the date of a protocol revision
// outside internal/revision. Which dates these are is read from the literals
// of that package; others, such as a provider's version header or the date of
// a foreign schema, may stand anywhere. Comments may name revisions, and so may
// tests.
func (t *Tree) Dates() []Problem {
	revisions := map[string]bool{}
	for _, src := range t.sources {
		if !src.test && src.pkg == revisionPackage {
			for _, lit := range literals(src.file) {
				for _, d := range date.FindAllString(lit.Value, -1) {
					revisions[d] = true
				}
			}
		}
	}
	var found []Problem
	for _, src := range t.sources {
		if src.test || matches(datePackages, src.pkg) {
			continue
		}
		for _, lit := range literals(src.file) {
			for _, d := range date.FindAllString(lit.Value, -1) {
				if revisions[d] {
					found = append(found, t.at(lit.Pos(), "the date %s outside internal/revision: ask for the fact, not the date", d))
				}
			}
		}
	}
	return found
}

// literals returns the string literals of a file.
func literals(f *ast.File) []*ast.BasicLit {
	var found []*ast.BasicLit
	for n := range ast.Preorder(f) {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			found = append(found, lit)
		}
	}
	return found
}
