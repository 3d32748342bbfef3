package archtest

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// A directive is one line of go.mod or go.work, blocks unfolded.
type directive struct {
	verb     string
	args     []string
	line     int
	indirect bool
}

// directives reads a go.mod or go.work file. It knows the grammar as far as
// the go command writes it; what it cannot make sense of, the go command
// refuses before any test runs.
func directives(text string) []directive {
	var all []directive
	block := ""
	number := 0
	for line := range strings.Lines(text) {
		number++
		code, comment, _ := strings.Cut(line, "//")
		fields := strings.Fields(code)
		switch {
		case len(fields) == 0:
			continue
		case block != "" && fields[0] == ")":
			block = ""
			continue
		case len(fields) == 2 && fields[1] == "(":
			block = fields[0]
			continue
		case block != "":
			fields = append([]string{block}, fields...)
		}
		d := directive{verb: fields[0], line: number, indirect: strings.TrimSpace(comment) == "indirect"}
		for _, arg := range fields[1:] {
			d.args = append(d.args, strings.Trim(arg, "\"`"))
		}
		all = append(all, d)
	}
	return all
}

// Modules reports what go.work and the go.mod files of the workspace say
// that differs from the tables: other modules, any replace, direct dependencies that are
// not on the list, or on the list without use or without a record of the
// decision. An error says that one of the files cannot be read.
func Modules(fsys fs.FS) ([]Problem, error) {
	found, err := checkWorkspace(fsys)
	if err != nil {
		return nil, err
	}
	for _, dir := range workspace {
		more, err := checkModule(fsys, dir)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

func checkWorkspace(fsys fs.FS) ([]Problem, error) {
	const name = "go.work"
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("reading the workspace: %w", err)
	}
	var found []Problem
	var used []string
	for _, d := range directives(string(text)) {
		switch d.verb {
		case "use":
			used = append(used, d.args...)
		case "replace":
			if !home(d.args) {
				found = append(found, Problem{name, d.line, "no replace: the library is tested with the versions its users get"})
			}
		}
	}
	slices.Sort(used)
	if !slices.Equal(used, workspace) {
		found = append(found, Problem{File: name, Text: fmt.Sprintf("uses %q, want exactly %q", used, workspace)})
	}
	return found, nil
}

// home says whether a replace leads one version of a module of the workspace
// to its own folder: "module version => folder". Until that version is
// published the go command would look for it elsewhere, though the workspace
// holds the module itself. It changes nothing that is built.
func home(args []string) bool {
	return len(args) == 4 && within(modulePath, args[0]) && args[2] == "=>" &&
		strings.HasPrefix(args[3], ".") && path.Join(modulePath, args[3]) == args[0]
}

func checkModule(fsys fs.FS, dir string) ([]Problem, error) {
	name := path.Join(dir, "go.mod")
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("reading a module: %w", err)
	}
	var found []Problem
	allowed := dependencies[dir]
	required := map[string]bool{}
	for _, d := range directives(string(text)) {
		switch {
		case d.verb == "replace":
			found = append(found, Problem{name, d.line, "no replace: the module is built with the versions its users get"})
		case d.verb != "require" || d.indirect || len(d.args) == 0 || within(modulePath, d.args[0]):
		case allowed[d.args[0]] == "":
			found = append(found, Problem{name, d.line, d.args[0] + " is not on the list of dependencies in internal/archtest: it needs a record in docs/decisions"})
		default:
			required[d.args[0]] = true
		}
	}
	for _, module := range slices.Sorted(maps.Keys(allowed)) {
		if !required[module] {
			found = append(found, Problem{File: name, Text: module + " is on the list of dependencies but not required"})
		}
		record := allowed[module]
		if page, err := fs.ReadFile(fsys, record); err != nil || !strings.Contains(string(page), module) {
			found = append(found, Problem{File: name, Text: module + " has no record of its decision: " + record + " must exist and name it"})
		}
	}
	return found, nil
}
