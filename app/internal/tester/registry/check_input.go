package registry

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

var (
	inputShape = shape{
		"choices": isArray, "default": isString, "description": isString, "format": isString, "isRequired": isBool, "isSecret": isBool,
		"placeholder": isString, "value": isString,
	}
	variablesShape = with(inputShape, shape{"variables": isObject})
	keyShape       = with(variablesShape, shape{"name": isString})
	argumentShape  = with(variablesShape, shape{"isRepeated": isBool, "name": isString, "type": isString, "valueHint": isString})
)

func with(a, b shape) shape {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

var (
	brace       = lazy(`\{([^{}]+)\}`)
	variable    = lazy(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	environment = lazy(`^[A-Za-z_][A-Za-z0-9_]*$`)
	secretName  = lazy(`(?i)token|secret|passw(or)?d|passphrase|api_?-?key|private_?-?key|credential|authorization`)
)

// braces are the names that stand in braces in a text.
func braces(text string) []string {
	var names []string
	for _, m := range brace().FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// templateNames are what the URL of a package may have in braces: its environment variables, and the
// names and hints of its arguments.
func (s location) templateNames() map[string]bool {
	names := map[string]bool{}
	for _, list := range []string{"environmentVariables", "runtimeArguments", "packageArguments"} {
		for _, item := range s.list(list) {
			if item.n.kind == isObject {
				names[item.text("name")], names[item.text("valueHint")] = true, true
			}
		}
	}
	delete(names, "")
	return names
}

// keyed checks environment variables or headers: their names and values.
func keyed(items []location, duplicate string, key func(string) string, check func(location)) {
	seen := map[string]bool{}
	for _, item := range items {
		if !item.input(keyShape, "name") {
			continue
		}
		name, ok := item.get("name", isString)
		if !ok || !name.length(1, 255) {
			continue
		}
		check(name)
		if seen[key(name.n.text)] {
			name.fail(duplicate, "remove one of them", "duplicate %s", quoted(name.n.text))
		}
		seen[key(name.n.text)] = true
		if secretName().MatchString(name.n.text) && !item.flag("isSecret") && item.text("value") == "" {
			name.warn("secret-unmarked", `add "isSecret": true`, "%s looks like a secret, but is not marked as one", quoted(name.n.text))
		}
	}
}

func (s location) environmentName() {
	const fix = "write it with letters, digits and _, like WORDS_TOKEN"
	switch {
	case strings.ContainsAny(s.n.text, "= \t\r\n\x00"):
		s.fail("variable-name", fix, "%s is not a valid name of an environment variable", quoted(s.n.text))
	case !environment().MatchString(s.n.text):
		s.warn("variable-name", fix, "shells cannot set the environment variable %s", quoted(s.n.text))
	}
}

// arguments checks the arguments of a command.
func arguments(items []location) {
	seen := map[string]bool{}
	for _, item := range items {
		if !item.input(argumentShape, "type") {
			continue
		}
		kind, ok := item.get("type", isString)
		if !ok || !kind.oneOf(ArgumentNamed, ArgumentPositional) {
			continue
		}
		name := "name"
		if kind.n.text == ArgumentNamed {
			item.named()
		} else {
			name = "valueHint"
			if item.n.member("value") == nil && item.n.member("valueHint") == nil {
				item.fail("required", "add value for a fixed argument, or valueHint for one that the user fills in", "the argument has neither value nor valueHint")
			}
		}
		at, ok := item.get(name, isString)
		if !ok {
			continue
		}
		key := kind.n.text + " " + at.n.text
		if seen[key] && !item.flag("isRepeated") && item.text("value") == "" {
			at.fail("duplicate-argument", `remove one of them, or add "isRepeated": true`, "duplicate argument %s", quoted(at.n.text))
		}
		seen[key] = true
	}
}

// named checks an argument with a name, such as --port.
func (s location) named() {
	at, ok := s.get("name", isString)
	if !ok {
		if s.n.member("name") == nil {
			s.fail("required", "add name, with its dashes", "the argument has no name")
		}
		return
	}
	if !at.length(1, 255) {
		return
	}
	name := at.n.text
	if strings.ContainsAny(name, "<> $\t\n=") {
		at.fail("argument-name", "write only the flag, like --port; put its value in value or default", "%s is not only the name of an argument", quoted(name))
	}
	for _, member := range []string{"value", "default"} {
		if v, ok := s.get(member, isString); ok && v.n.text != "" && strings.HasPrefix(v.n.text, name) {
			v.fail("argument-value", "write only the value", "the field %s begins with the name of the argument", member)
		}
	}
	if secretName().MatchString(name) && !s.flag("isSecret") && s.text("value") == "" {
		at.warn("secret-unmarked", `add "isSecret": true`, "%s looks like a secret, but is not marked as one", quoted(name))
	}
}

// input checks a value that is fixed or filled in, and its variables. A nil shape is that of an input
// without variables.
func (s location) input(members shape, required ...string) bool {
	if members == nil {
		members = inputShape
	}
	if !s.object(members, required...) {
		return false
	}
	if f, ok := s.get("format", isString); ok {
		f.oneOf("string", "number", "boolean", "filepath")
	}
	s.choices()
	s.secret()
	if d, ok := s.get("default", isString); ok {
		d.fits(s.text("format"))
		if s.text("value") != "" {
			d.warn("default-unused", "remove default or value", "a default is never used if there is a fixed value")
		}
	}
	s.variables(members)
	return true
}

// choices checks that a default is one of the values that can be chosen.
func (s location) choices() {
	list := s.list("choices")
	var values []string
	for _, c := range list {
		if c.n.kind != isString {
			c.fail("type", "write a string", "expected a string, got %s", c.n.kind)
			continue
		}
		values = append(values, c.n.text)
	}
	if d, ok := s.get("default", isString); ok && len(values) > 0 && !slices.Contains(values, d.n.text) && !s.flag("isSecret") {
		d.warn("default-choice", "write one of the choices", "the default %s is not one of the choices", quoted(d.n.text))
	}
}

// secret checks that no secret is in the file, which everybody can read. Values are not repeated.
func (s location) secret() {
	if !s.flag("isSecret") {
		return
	}
	if d, ok := s.get("default", isString); ok && d.n.text != "" {
		d.fail("secret-default", "remove the default; use a placeholder to show the expected form", "a secret has a default value, which anyone can read")
	}
	if v, ok := s.get("value", isString); ok && v.n.text != "" && len(braces(v.n.text)) == 0 {
		v.fail("secret-value", "remove the value, so that the user fills it in", "a secret has a fixed value, which anyone can read")
	}
}

// fits checks that a default has the format of its input.
func (s location) fits(format string) {
	var err error
	switch format {
	case "number":
		_, err = strconv.ParseFloat(s.n.text, 64)
	case "boolean":
		if s.n.text != "true" && s.n.text != "false" {
			err = strconv.ErrSyntax
		}
	}
	if err != nil {
		s.warn("default-format", "write a default of the format "+format, "the default is not a %s", format)
	}
}

// variables checks the variables of a value, and what stands in braces in it.
func (s location) variables(members shape) {
	if _, may := members["variables"]; !may {
		return
	}
	names := map[string]bool{}
	if m, ok := s.get("variables", isObject); ok {
		m.twice()
	}
	used := map[string]bool{}
	for _, name := range braces(s.text("value")) {
		used[name] = true
	}
	for _, v := range s.entries("variables") {
		names[v.name] = true
		v.input(nil)
		if !used[v.name] {
			v.warn("variable-unused", "remove it, or write it in braces in the value", "the value does not use the variable %s", quoted(v.name))
		}
	}
	at, ok := s.get("value", isString)
	if !ok {
		return
	}
	for _, name := range braces(at.n.text) {
		if !names[name] && variable().MatchString(name) {
			at.warn("variable-unknown", "add it to variables, or remove the braces", "%s in the value is not a variable", quoted("{"+name+"}"))
		}
	}
}
