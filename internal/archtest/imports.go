package archtest

import (
	"strconv"
	"strings"
)

// matches says whether a package is among names: exact ones, and patterns
// that end in "/...".
func matches(names, pkg string) bool {
	for name := range strings.FieldsSeq(names) {
		if base, ok := strings.CutSuffix(name, "/..."); ok && within(base, pkg) {
			return true
		}
		if name == pkg {
			return true
		}
	}
	return false
}

// within says whether a package or import path is base or lies beneath it.
func within(base, pkg string) bool {
	rest, ok := strings.CutPrefix(pkg, base)
	return ok && (rest == "" || rest[0] == '/')
}

// internal says whether a package is for the library alone.
func internal(pkg string) bool {
	return !within("app", pkg) && (within("internal", pkg) || strings.Contains(pkg, "/internal/") || strings.HasSuffix(pkg, "/internal"))
}

// public says whether a package belongs to the library and to everyone.
func public(pkg string) bool {
	return !internal(pkg) && !matches("app/... conformance/... contrib/... bench/... app/interop/... examples/...", pkg)
}

// rowOf returns the row of a package.
func rowOf(pkg string) (row, bool) {
	for _, r := range rows {
		if matches(r.packages, pkg) {
			return r, true
		}
	}
	return row{}, false
}

// allows says whether the packages of r may import pkg.
func (r row) allows(pkg string) bool {
	may := false
	for name := range strings.FieldsSeq(r.may) {
		not, taken := strings.CutPrefix(name, "!")
		switch {
		case taken && matches(not, pkg):
			return false
		case name == "public":
			may = may || public(pkg)
		default:
			may = may || matches(name, pkg)
		}
	}
	return may
}

// own gives an import path of the repository as a package of the tree.
func own(path string) (pkg string, ok bool) {
	if path == modulePath {
		return ".", true
	}
	return strings.CutPrefix(path, modulePath+"/")
}

// Imports reports imports against the direction of the table, packages
// without a row, and foreign packages outside the importers that they are kept for. Tests
// may import what they like, but those outside the library never its internal
// packages: Go's own rule goes by path and would let them in.
func (t *Tree) Imports() []Problem {
	var found []Problem
	rowless := map[string]bool{}
	for _, src := range t.sources {
		r, ok := rowOf(src.pkg)
		if !ok && !src.test && !rowless[src.pkg] {
			rowless[src.pkg] = true
			found = append(found, Problem{File: src.name, Text: "package " + src.pkg + " has no row in the import table of internal/archtest"})
		}
		for _, spec := range src.file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue // the compiler says it better
			}
			if text := breach(src, r, path); text != "" {
				found = append(found, t.at(spec.Pos(), "%s", text))
			}
		}
	}
	return found
}

// breach says what is wrong with an import, or nothing. The row is the zero
// one if the package has none, which allows nothing.
func breach(src source, r row, path string) string {
	pkg, ours := own(path)
	switch {
	case src.test:
		if ours && internal(pkg) && !public(src.pkg) && !internal(src.pkg) {
			return "a test of " + src.pkg + " must not import " + path + ", which is for the library alone"
		}
		return ""
	case ours:
		if !r.allows(pkg) {
			return src.pkg + " must not import " + path + ": see the import table in internal/archtest/table.go"
		}
		return ""
	}
	for _, kept := range reservations {
		if within(kept.path, path) && !matches(kept.importers, src.pkg) {
			return src.pkg + " must not import " + path + ": " + kept.why
		}
	}
	return ""
}
