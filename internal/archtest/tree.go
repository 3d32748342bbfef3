package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// A Problem is one breach of a rule.
type Problem struct {
	// File is the file, seen from the root of the repository.
	File string
	// Line is the line of the breach, or 0 if it concerns the whole file.
	Line int
	// Text says what is wrong and what to do.
	Text string
}

// String gives the problem as file:line: text, which editors can follow.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// A Tree is the Go source of a repository, parsed.
type Tree struct {
	fsys    fs.FS
	set     *token.FileSet
	sources []source
	broken  []Problem
}

// A source is one parsed file.
type source struct {
	name string // seen from the root of the repository
	pkg  string // its folder, "." for the root
	test bool
	size int // lines
	file *ast.File
}

// Load parses every Go file of fsys but those that the go command ignores:
// testdata and folders whose names begin with a dot or an underscore. It
// passes over node_modules too. A file that cannot be parsed becomes a
// problem of the tree; an error says that the files cannot be read.
func Load(fsys fs.FS) (*Tree, error) {
	t := &Tree{fsys: fsys, set: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if ignored(d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" || strings.HasPrefix(d.Name(), "_") || strings.HasPrefix(d.Name(), ".") {
			return nil
		}
		return t.add(name)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the repository: %w", err)
	}
	return t, nil
}

func ignored(folder string) bool {
	if folder == "." {
		return false
	}
	return folder == "testdata" || folder == "node_modules" || strings.HasPrefix(folder, ".") || strings.HasPrefix(folder, "_")
}

func (t *Tree) add(name string) error {
	data, err := fs.ReadFile(t.fsys, name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(t.set, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.broken = append(t.broken, Problem{File: name, Text: "does not parse: " + err.Error()})
		return nil //nolint:nilerr // what does not parse is a problem of the tree, which goes on
	}
	t.sources = append(t.sources, source{
		name: name,
		pkg:  path.Dir(name),
		test: strings.HasSuffix(name, "_test.go"),
		size: lines(data),
		file: file,
	})
	return nil
}

// lines counts the lines of data; a last line without its end counts too.
func lines(data []byte) int {
	n := strings.Count(string(data), "\n")
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	return n
}

// at makes a problem at the place of a node.
func (t *Tree) at(pos token.Pos, format string, args ...any) Problem {
	p := t.set.Position(pos)
	return Problem{File: p.Filename, Line: p.Line, Text: fmt.Sprintf(format, args...)}
}

// Check applies every rule and returns the breaches in order of place. An
// error says that a file of the repository cannot be read.
func (t *Tree) Check() ([]Problem, error) {
	found := slices.Concat(t.broken, t.Imports(), t.Sizes(), t.Limits(), t.Docs(), t.Dates())
	modules, err := Modules(t.fsys)
	if err != nil {
		return nil, err
	}
	found = slices.Concat(found, modules)
	slices.SortFunc(found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	return found, nil
}
