package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// Limits reports types with too many methods or fields of state, which are unexported fields of a struct that
// has methods, and packages of the program with too many files or lines. Tests are exempt. A row of large that
// is not needed any more is a problem, too.
func (t *Tree) Limits() []Problem {
	counts, places := t.counts()
	var found []Problem
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		what, name, _ := strings.Cut(key, " of ")
		n, most := counts[key], limits[what]
		if what == "fields" && counts["methods of "+name] == 0 {
			continue
		}
		if allowed, ok := large[key]; ok {
			if n < allowed {
				found = append(found, Problem{File: places[key], Text: fmt.Sprintf("%s are %d: lower the row in internal/archtest/table.go, or remove it", key, n)})
			}
			most = allowed
		}
		if n > most {
			found = append(found, Problem{File: places[key], Text: fmt.Sprintf("%s are %d, more than %d: are they several subjects?", key, n, most)})
		}
	}
	return found
}

// counts returns numbers such as "methods of host.Session", and the file of each.
func (t *Tree) counts() (counts map[string]int, places map[string]string) {
	counts, places = map[string]int{}, map[string]string{}
	for _, src := range t.sources {
		program := strings.HasPrefix(src.pkg, "app/internal/")
		if src.test || !program && !public(src.pkg) && !internal(src.pkg) {
			continue
		}
		count := func(key string, n int) {
			counts[key] += n
			if places[key] == "" {
				places[key] = src.name
			}
		}
		if program {
			count("files of "+src.pkg, 1)
			count("lines of "+src.pkg, src.size)
		}
		for n := range ast.Preorder(src.file) {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil {
					count("methods of "+src.pkg+"."+receiver(n), 1)
				}
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					count("fields of "+src.pkg+"."+n.Name.Name, state(s))
				}
			}
		}
	}
	return counts, places
}

// receiver returns the name of the type that a method belongs to.
func receiver(f *ast.FuncDecl) string {
	for n := range ast.Preorder(f.Recv.List[0].Type) {
		if id, ok := n.(*ast.Ident); ok {
			return id.Name
		}
	}
	return ""
}

// state counts the unexported fields of a struct.
func state(s *ast.StructType) int {
	n := 0
	for _, f := range s.Fields.List {
		for _, id := range f.Names {
			if !id.IsExported() {
				n++
			}
		}
	}
	return n
}
