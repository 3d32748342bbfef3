package main

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// published are the modules that people import.
var published = []string{"", "contrib/otel", "contrib/prometheus"}

// publicNames writes what the published packages export to api/PACKAGE.txt, one
// file for each package. With check it prints how the files differ, and fails if
// they do: a change of the public surface is seen in review.
func publicNames(ctx context.Context, repo string, check bool) error {
	dir := filepath.Join(repo, "api")
	want := make(map[string]string)
	for _, folder := range published {
		if err := surface(ctx, filepath.Join(repo, folder), want); err != nil {
			return err
		}
	}
	there, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return err
	}
	if !check {
		return writeNames(dir, there, want)
	}
	changed := false
	for _, name := range there {
		if _, ok := want[filepath.Base(name)]; !ok {
			want[filepath.Base(name)] = ""
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, line := range differences(string(text), want[name]) {
			changed = true
			fmt.Printf("%s: %s\n", name, line)
		}
	}
	if changed {
		return errors.New(`the public names are not those of api/: if that is meant, run "make api" and commit it`)
	}
	return nil
}

// writeNames replaces the files of names.
func writeNames(dir string, old []string, files map[string]string) error {
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// surface adds the packages of a module to files, by the name of their file.
func surface(ctx context.Context, dir string, files map[string]string) error {
	list, err := packages.Load(&packages.Config{
		Context: ctx, Dir: dir,
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedDeps | packages.NeedTypesInfo | packages.NeedSyntax,
		// The files are the same on every machine.
		Env: append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", inWorkspace),
	}, "./...")
	if err != nil {
		return err
	}
	for _, p := range list {
		if len(p.Errors) > 0 {
			return p.Errors[0]
		}
		if slices.Contains(strings.Split(p.PkgPath, "/"), "internal") || p.Name == "main" {
			continue
		}
		if lines := exported(p.Types); len(lines) > 0 {
			name := strings.Trim(strings.ReplaceAll(strings.TrimPrefix(p.PkgPath, home), "/", "."), ".")
			files[name+".txt"] = strings.Join(lines, "\n") + "\n"
		}
	}
	return nil
}

// exported describes what a package exports, a line for each name, field and method.
func exported(p *types.Package) []string {
	of := types.RelativeTo(p)
	var lines []string
	for _, name := range p.Scope().Names() {
		object := p.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		switch o := object.(type) {
		case *types.Const:
			lines = append(lines, fmt.Sprintf("%s = %s", types.ObjectString(o, of), o.Val().ExactString()))
		case *types.TypeName:
			lines = append(lines, exportedType(o, of)...)
		default:
			lines = append(lines, types.ObjectString(o, of))
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

func exportedType(o *types.TypeName, of types.Qualifier) []string {
	if o.IsAlias() {
		return []string{types.ObjectString(o, of)}
	}
	var lines []string
	head := types.TypeString(o.Type(), of)
	switch t := o.Type().Underlying().(type) {
	case *types.Struct:
		lines = append(lines, "type "+head+" struct")
		for i := range t.NumFields() {
			if f := t.Field(i); f.Exported() {
				line := fmt.Sprintf("type %s struct, %s %s", head, f.Name(), types.TypeString(f.Type(), of))
				if tag := t.Tag(i); tag != "" {
					line += " `" + tag + "`"
				}
				lines = append(lines, line)
			}
		}
	case *types.Interface:
		lines = append(lines, "type "+head+" interface")
		for i := range t.NumEmbeddeds() {
			lines = append(lines, fmt.Sprintf("type %s interface, %s", head, types.TypeString(t.EmbeddedType(i), of)))
		}
		for i := range t.NumExplicitMethods() {
			m := t.ExplicitMethod(i)
			lines = append(lines, fmt.Sprintf("type %s interface, %s", head, signature(m, of)))
		}
		return lines
	default:
		lines = append(lines, "type "+head+" "+types.TypeString(t, of))
	}
	own := types.NewMethodSet(o.Type())
	set := types.NewMethodSet(types.NewPointer(o.Type()))
	for i := range set.Len() {
		m := set.At(i).Obj()
		if !token.IsExported(m.Name()) {
			continue
		}
		receiver := "*" + head
		if own.Lookup(m.Pkg(), m.Name()) != nil {
			receiver = head
		}
		lines = append(lines, fmt.Sprintf("method (%s) %s", receiver, signature(m, of)))
	}
	return lines
}

// signature is a method without its receiver.
func signature(m types.Object, of types.Qualifier) string {
	return m.Name() + strings.TrimPrefix(types.TypeString(m.Type(), of), "func")
}

// differences lists the lines that only one of two sorted texts has.
func differences(old, now string) []string {
	had, has := strings.Split(strings.TrimSpace(old), "\n"), strings.Split(strings.TrimSpace(now), "\n")
	var lines []string
	for _, line := range had {
		if line != "" && !slices.Contains(has, line) {
			lines = append(lines, "- "+line)
		}
	}
	for _, line := range has {
		if line != "" && !slices.Contains(had, line) {
			lines = append(lines, "+ "+line)
		}
	}
	return lines
}
