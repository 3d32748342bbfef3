package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// A text is what variables were expanded in: literals and inputs that are still open.
// Values are never read again for variables of their own.
type text []fragment

// A fragment is a literal, or the id of an input.
type fragment struct{ literal, input string }

// fill returns the text with the values of its inputs.
func (t text) fill(values map[string]string) string {
	var b strings.Builder
	for _, f := range t {
		if f.input != "" {
			b.WriteString(values[f.input])
		} else {
			b.WriteString(f.literal)
		}
	}
	return b.String()
}

// open reports whether an input is missing from the text.
func (t text) open() bool {
	for _, f := range t {
		if f.input != "" {
			return true
		}
	}
	return false
}

// A target is what a text is for.
type target uint8

const (
	targetProcess target = iota // command, arguments, environment or folder
	targetHeader                // headers and secrets of authorization
	targetURL
)

// An errForeign says that a file that others wrote names a variable in a URL or header.
var errForeign = errors.New("a project file may not put a variable into the URL or the headers of a server: " +
	"it could send your secrets there; if you want it, write the entry into your own parley.jsonc")

// variables knows what the variables of one entry stand for.
type variables struct {
	m *machine
	// foreign says that others wrote the file.
	foreign bool
	// dir is the folder of the file.
	dir string
	// folder is that of the project.
	folder string
	// own are variables that the entry itself sets.
	own map[string]string
	// inputs are those that the file declares, by id.
	inputs map[string]Input
	// used are the inputs that were met.
	used []string
	// target is what the text that is being expanded is for.
	target target
}

// A syntax is a way to write variables. It returns the value of the variable whose text
// begins at s, with the length of that text; a length of 0 is no variable.
type syntax func(v *variables, s string) (f fragment, length int, err error)

// expand replaces the variables of s. A nil syntax knows none.
func (v *variables) expand(syn syntax, s string, t target) (text, error) {
	v.target = t
	if syn == nil {
		return text{{literal: s}}, nil
	}
	var result text
	from := 0
	for i := 0; i < len(s); {
		if s[i] != '$' && s[i] != '{' {
			i++
			continue
		}
		f, n, err := syn(v, s[i:])
		if err != nil {
			return nil, err
		}
		if n == 0 {
			i++
			continue
		}
		if v.foreign && (t == targetURL || t == targetHeader && f.input == "") {
			return nil, errForeign
		}
		if i > from {
			result = append(result, fragment{literal: s[from:i]})
		}
		result = append(result, f)
		i += n
		from = i
	}
	if from < len(s) || result == nil {
		result = append(result, fragment{literal: s[from:]})
	}
	return result, nil
}

// closed is true where the value of a variable must not be looked up, because the text
// would be refused whatever it is.
func (v *variables) closed() bool { return v.foreign && v.target != targetProcess }

// environment is the value of a variable, or its default. In a text that is refused
// anyway it is empty.
func (v *variables) environment(name, fallback string, hasDefault bool, hint string) (fragment, error) {
	if v.closed() {
		return fragment{}, nil
	}
	if value, ok := v.own[name]; ok {
		return fragment{literal: value}, nil
	}
	if value, ok := v.m.env(name); ok && (value != "" || !hasDefault) {
		return fragment{literal: value}, nil
	}
	if hasDefault {
		return fragment{literal: fallback}, nil
	}
	return fragment{}, fmt.Errorf("the variable %s is not set: set it%s", showPlain(name), hint)
}

// input is a value that the person is asked for.
func (v *variables) input(id string) (fragment, error) {
	in, ok := v.inputs[id]
	if !ok {
		return fragment{}, fmt.Errorf("the input %s is not declared: add it to inputs, with the type promptString", show(id))
	}
	if in.ID == "" {
		return fragment{}, fmt.Errorf("the input %s is the result of a command of the other client, which is not run: "+
			"make it a promptString or a variable of the environment", show(id))
	}
	for _, used := range v.used {
		if used == id {
			return fragment{input: id}, nil
		}
	}
	v.used = append(v.used, id)
	return fragment{input: id}, nil
}

// maxVariable bounds the text of a variable with its braces; a longer one is no variable.
const maxVariable = 1024

// braces splits "${body}rest" and returns the body and the length of "${body}".
func braces(s string) (body string, length int) {
	if !strings.HasPrefix(s, "${") {
		return "", 0
	}
	end := strings.IndexByte(s[:min(len(s), maxVariable)], '}')
	if end < 0 {
		return "", 0
	}
	return s[2:end], end + 1
}

var (
	namePattern    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	foreignPattern = regexp.MustCompile(`^(env|input|config|command):|^(env://|userHome$|workspaceFolder)`)
)

// plainSyntax is that of Claude Code and of parley.jsonc: ${VAR} and ${VAR:-default}.
// A bare $VAR is text.
func plainSyntax(v *variables, s string) (fragment, int, error) {
	body, n := braces(s)
	if n == 0 {
		return fragment{}, 0, nil
	}
	name, fallback, hasDefault := strings.Cut(body, ":-")
	switch {
	case namePattern.MatchString(name):
	case foreignPattern.MatchString(body):
		return fragment{}, 0, fmt.Errorf("%s is a variable of another client: write ${NAME} for a variable of the environment", show("${"+body+"}"))
	default:
		return fragment{}, 0, nil
	}
	if name == "CLAUDE_PROJECT_DIR" && !v.closed() {
		if _, ok := v.m.env(name); !ok {
			return fragment{literal: v.folder}, n, nil
		}
	}
	f, err := v.environment(name, fallback, hasDefault, ", or write ${"+name+":-default}")
	return f, n, err
}

// editorSyntax is that of VS Code and Cursor: ${env:VAR}, ${userHome}, ${workspaceFolder},
// ${workspaceFolderBasename}, ${pathSeparator}, ${/} and ${input:id}.
func editorSyntax(v *variables, s string) (fragment, int, error) {
	body, n := braces(s)
	if n == 0 {
		return fragment{}, 0, nil
	}
	kind, rest, _ := strings.Cut(body, ":")
	var f fragment
	var err error
	switch {
	case kind == "env" && rest != "":
		f, err = v.environment(rest, "", false, "")
	case kind == "input" && rest != "":
		f, err = v.input(rest)
	case body == "userHome":
		f.literal = v.m.home
	case body == "workspaceFolder" || kind == "workspaceFolder":
		f.literal = v.folder
	case body == "workspaceFolderBasename":
		f.literal = filepath.Base(v.folder)
	case body == "pathSeparator" || body == "/":
		f.literal = string(separator(v.m.goos))
	case kind == "config" || kind == "command" || strings.HasPrefix(body, "file"):
		return f, 0, fmt.Errorf("%s is known to the editor alone: write its value, or ${env:NAME}", show("${"+body+"}"))
	default:
		return f, 0, nil
	}
	return f, n, err
}

func separator(goos string) byte {
	if goos == "windows" {
		return '\\'
	}
	return '/'
}

// kitSyntax is that of kit and mcphost: ${env://VAR} and ${env://VAR:-default}.
func kitSyntax(v *variables, s string) (fragment, int, error) {
	body, n := braces(s)
	rest, ok := strings.CutPrefix(body, "env://")
	if !ok {
		return fragment{}, 0, nil
	}
	name, fallback, hasDefault := strings.Cut(rest, ":-")
	f, err := v.environment(name, fallback, hasDefault, ", or write ${env://NAME:-default}")
	return f, n, err
}

// opencodeSyntax is that of opencode: {env:VAR} and {file:path}.
func opencodeSyntax(v *variables, s string) (fragment, int, error) {
	end := strings.IndexByte(s[:min(len(s), maxVariable)], '}')
	if end < 0 || s[0] != '{' {
		return fragment{}, 0, nil
	}
	kind, rest, _ := strings.Cut(s[1:end], ":")
	var f fragment
	var err error
	switch {
	case kind == "env" && rest != "":
		f, err = v.environment(rest, "", false, "")
	case kind == "file" && rest != "":
		f, err = v.file(rest)
	default:
		return f, 0, nil
	}
	return f, end + 1, err
}

// maxValue bounds a file whose text is a value.
const maxValue = 64 << 10

// file is the text of a file, without space around it.
func (v *variables) file(path string) (fragment, error) {
	if v.closed() {
		return fragment{}, nil
	}
	within := ""
	if v.foreign {
		within = v.m.project
	}
	data, err := readFile(v.resolve(path, v.dir), within, maxValue)
	if err != nil {
		return fragment{}, fmt.Errorf("reading %s: %w", show("{file:"+path+"}"), readError(err))
	}
	return fragment{literal: strings.TrimSpace(string(data))}, nil
}

// resolve makes a path absolute: "~" is the home folder, a relative path begins at base.
func (v *variables) resolve(path, base string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(v.m.home, rest)
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

var userPattern = regexp.MustCompile(`^\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)

// librechatSyntax is that of LibreChat: ${VAR} is the operator's, {{NAME}} is something
// that each user gave.
func librechatSyntax(v *variables, s string) (fragment, int, error) {
	if body, n := braces(s); n > 0 && namePattern.MatchString(body) {
		f, err := v.environment(body, "", false, "")
		return f, n, err
	}
	m := userPattern.FindStringSubmatch(s)
	if m == nil {
		return fragment{}, 0, nil
	}
	if _, ok := v.inputs[m[1]]; !ok {
		return fragment{}, 0, fmt.Errorf("{{%s}} is a value of a user of LibreChat: declare it in customUserVars, or write the value", m[1])
	}
	f, err := v.input(m[1])
	return f, len(m[0]), err
}

var shellPattern = regexp.MustCompile(`^\$([A-Za-z_][A-Za-z0-9_]*)`)

// crushSyntax is what of a shell's syntax needs no shell: $VAR, ${VAR}, ${VAR:-default}.
// Commands are never run.
func crushSyntax(v *variables, s string) (fragment, int, error) {
	if strings.HasPrefix(s, "$(") {
		return fragment{}, 0, errors.New("$(…) is a command, which is not run: put its result into a variable of the environment")
	}
	if m := shellPattern.FindStringSubmatch(s); m != nil {
		f, err := v.environment(m[1], "", false, ", or write ${"+m[1]+":-default}")
		return f, len(m[0]), err
	}
	return plainSyntax(v, s)
}

// gooseSyntax is that of goose: $VAR and ${VAR}.
func gooseSyntax(v *variables, s string) (fragment, int, error) {
	if m := shellPattern.FindStringSubmatch(s); m != nil {
		f, err := v.environment(m[1], "", false, "")
		return f, len(m[0]), err
	}
	body, n := braces(s)
	if n == 0 || !namePattern.MatchString(body) {
		return fragment{}, 0, nil
	}
	f, err := v.environment(body, "", false, "")
	return f, n, err
}
