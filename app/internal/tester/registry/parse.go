package registry

import (
	"fmt"
	"slices"
	"strings"
)

// ParsePackage reads a package of a command line: its type, a colon, and what it is called there, as
// in npm:@ada/words@1.0.2, pypi:words@1.0.2, nuget:Words@1.0.2, oci:ghcr.io/ada/words:1.0.2 or
// mcpb:https://…. It serves on standard input and output.
func ParsePackage(text string) (Package, error) {
	kind, id, found := strings.Cut(text, ":")
	if !found || id == "" {
		return Package{}, fmt.Errorf("package %q: write it like npm:words@1.0.2, with one of npm, pypi, oci, nuget and mcpb", text)
	}
	t, known := registryTypes[kind]
	if !known {
		return Package{}, fmt.Errorf("package %q: the type must be npm, pypi, oci, nuget or mcpb", text)
	}
	p := Package{RegistryType: kind, Identifier: id, Transport: Transport{Type: TransportStdio}}
	if at := strings.LastIndexByte(id, '@'); t.versioned && at > 0 {
		p.Identifier, p.Version = id[:at], id[at+1:]
	}
	return p, nil
}

// Versioned reports whether packages of a type have a version of their own next to the identifier.
func Versioned(kind string) bool { return registryTypes[kind].versioned }

// Options of the texts of inputs.
const inputOptions = "required, secret, value=, default=, placeholder=, format=, choices=A|B, and description= at the end"

// ParseVariable reads an environment variable, a header or a variable of a URL: NAME or NAME=VALUE,
// and options after commas, as in API_KEY,required,secret,description=Key of the API. The description
// takes all that follows.
func ParseVariable(text string) (Variable, error) {
	var v Variable
	name, options, _ := strings.Cut(text, ",")
	v.Name, v.Value, _ = strings.Cut(name, "=")
	if v.Name == "" {
		return v, fmt.Errorf("%q: write NAME, NAME=VALUE, or either with options after commas: %s", text, inputOptions)
	}
	if err := v.options(options, nil); err != nil {
		return v, fmt.Errorf("%q: %w", v.Name, err)
	}
	return v, nil
}

// ParseArgument reads an argument: --name or --name=VALUE, a fixed positional argument, or <hint> for
// one that the user fills in; with the options of ParseVariable, and repeated.
func ParseArgument(text string) (Argument, error) {
	word, options, _ := strings.Cut(text, ",")
	a := Argument{Type: ArgumentPositional}
	hint, isHint := strings.CutPrefix(word, "<")
	switch {
	case strings.HasPrefix(word, "-"):
		a.Type = ArgumentNamed
		a.Name, a.Value, _ = strings.Cut(word, "=")
	case isHint && strings.HasSuffix(hint, ">"):
		a.ValueHint = strings.TrimSuffix(hint, ">")
	default:
		a.Value = word
	}
	if a.Name == "" && a.Value == "" && a.ValueHint == "" {
		return a, fmt.Errorf("%q: write --name, --name=VALUE, VALUE or <hint>, or one of them with options after commas: repeated, %s", text, inputOptions)
	}
	if err := a.options(options, &a.Repeated); err != nil {
		return a, fmt.Errorf("%q: %w", word, err)
	}
	return a, nil
}

// options reads the options of an input. Those that are not for it have no pointer.
func (in *Input) options(text string, repeated *bool) error {
	texts := map[string]*string{
		"value": &in.Value, "default": &in.Default, "placeholder": &in.Placeholder, "format": &in.Format, "description": &in.Description,
	}
	flags := map[string]*bool{"required": &in.Required, "secret": &in.Secret, "repeated": repeated}
	for text != "" {
		var option string
		if strings.HasPrefix(text, "description=") {
			option, text = text, ""
		} else {
			option, text, _ = strings.Cut(text, ",")
		}
		name, value, has := strings.Cut(option, "=")
		switch {
		case has && name == "choices":
			in.Choices = strings.Split(value, "|")
		case has && texts[name] != nil:
			*texts[name] = value
		case !has && flags[name] != nil:
			*flags[name] = true
		default:
			return fmt.Errorf("unknown option %q; the options are %s", option, inputOptions)
		}
	}
	if f := in.Format; f != "" && !slices.Contains([]string{"string", "number", "boolean", "filepath"}, f) {
		return fmt.Errorf("unknown format %q; the formats are string, number, boolean and filepath", f)
	}
	return nil
}
