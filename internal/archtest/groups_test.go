package archtest_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The program compiles without any one of its groups of commands.
func TestProgramWithoutGroup(t *testing.T) {
	t.Parallel()
	const name = "../../app/internal/cli/groups.go"
	source, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	work, err := filepath.Abs("../../go.work")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		list := groupList(t, file)
		if len(list.Elts) != 5 {
			t.Fatalf("%d groups, not 5", len(list.Elts))
		}
		left := importOf(list.Elts[i])
		list.Elts = append(list.Elts[:i:i], list.Elts[i+1:]...)
		dropImport(file, left)
		var b bytes.Buffer
		if err := format.Node(&b, fset, file); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		changed, overlay := filepath.Join(dir, filepath.Base(name)), filepath.Join(dir, "overlay.json")
		full, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(map[string]any{"Replace": map[string]string{full: changed}})
		if err != nil {
			t.Fatal(err)
		}
		for path, content := range map[string][]byte{changed: b.Bytes(), overlay: raw} {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, ".")
		build.Dir = filepath.Dir(full)
		build.Env = append(os.Environ(), "GOWORK="+work)
		if out, err := build.CombinedOutput(); err != nil {
			t.Errorf("without %s: %v\n%s", left, err, out)
		}
	}
}

// groupList is the value of groups in the source.
func groupList(t *testing.T, file *ast.File) *ast.CompositeLit {
	var list *ast.CompositeLit
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && v.Names[0].Name == "groups" {
			list, _ = v.Values[0].(*ast.CompositeLit)
		}
		return true
	})
	if list == nil {
		t.Fatal("there is no list of groups")
	}
	return list
}

// importOf is the name of the package whose Register an expression calls.
func importOf(e ast.Expr) (name string) {
	ast.Inspect(e, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Register" {
			if x, ok := s.X.(*ast.Ident); ok {
				name = x.Name
			}
		}
		return true
	})
	return name
}

// dropImport removes the import of a package from a file.
func dropImport(file *ast.File, name string) {
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.IMPORT {
			continue
		}
		for i, spec := range g.Specs {
			if s, ok := spec.(*ast.ImportSpec); ok {
				if path, _ := strconv.Unquote(s.Path.Value); strings.HasSuffix(path, "/"+name) {
					g.Specs = append(g.Specs[:i:i], g.Specs[i+1:]...)
					return
				}
			}
		}
	}
}
