package registry_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/tester/registry"
)

func TestParsePackage(t *testing.T) {
	stdio := registry.Transport{Type: "stdio"}
	for text, want := range map[string]registry.Package{
		"npm:words":                 {RegistryType: "npm", Identifier: "words", Transport: stdio},
		"npm:@ada/words@1.0.2":      {RegistryType: "npm", Identifier: "@ada/words", Version: "1.0.2", Transport: stdio},
		"npm:@ada/words":            {RegistryType: "npm", Identifier: "@ada/words", Transport: stdio},
		"oci:r.example:5000/w:1@x":  {RegistryType: "oci", Identifier: "r.example:5000/w:1@x", Transport: stdio},
		"mcpb:https://x.example/m@": {RegistryType: "mcpb", Identifier: "https://x.example/m@", Transport: stdio},
	} {
		got, err := registry.ParsePackage(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
	for _, text := range []string{"", "words", "npm:", "brew:words", ":words"} {
		if _, err := registry.ParsePackage(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestParseArgument(t *testing.T) {
	for text, want := range map[string]registry.Argument{
		"serve":              {Type: "positional", Input: registry.Input{Value: "serve"}},
		"--port":             {Type: "named", Name: "--port"},
		"--port=80":          {Type: "named", Name: "--port", Input: registry.Input{Value: "80"}},
		"<dir>,required":     {Type: "positional", ValueHint: "dir", Input: registry.Input{Required: true}},
		"-v,repeated,secret": {Type: "named", Name: "-v", Repeated: true, Input: registry.Input{Secret: true}},
		"--a,default=1,format=number,choices=1|2,placeholder=x,value=,description=a, b=c,secret": {
			Type: "named", Name: "--a",
			Input: registry.Input{Default: "1", Format: "number", Choices: []string{"1", "2"}, Placeholder: "x", Description: "a, b=c,secret"},
		},
	} {
		got, err := registry.ParseArgument(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
	for text, want := range map[string]string{
		"": "write --name", "<>": "write --name", ",required": "write --name", "--a,optional": `unknown option "optional"`, "a,b": `unknown option "b"`,
		"--a,required=yes": "unknown option", "--a,default": "unknown option", "--a,format=text": `unknown format "text"`, "--a,,": `unknown option ""`,
	} {
		if _, err := registry.ParseArgument(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestParseVariable(t *testing.T) {
	got, err := registry.ParseVariable("API_KEY=x{y},secret")
	want := registry.Variable{Name: "API_KEY", Input: registry.Input{Value: "x{y}", Secret: true}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for _, text := range []string{"", "=x", ",required", "A,repeated"} {
		if _, err := registry.ParseVariable(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// What is written is valid.
func TestEncode(t *testing.T) {
	s := &registry.Server{
		Schema: registry.Schema, Name: "io.github.ada/words", Description: "Counts <words> & lines.", Version: "1.0.2",
		Packages: []registry.Package{{
			RegistryType: "npm", Identifier: "words", Version: "1.0.2", Transport: registry.Transport{Type: registry.TransportStdio},
			Args:        []registry.Argument{{Type: registry.ArgumentNamed, Name: "--port", Input: registry.Input{Default: "80", Format: "number"}}},
			Environment: []registry.Variable{{Name: "API_KEY", Input: registry.Input{Secret: true, Required: true}}},
		}},
	}
	text, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if findings := registry.Check(text); len(findings) > 0 {
		t.Errorf("%+v\n%s", findings, text)
	}
	if !strings.Contains(string(text), "Counts <words> & lines.") || !strings.HasSuffix(string(text), "}\n") {
		t.Errorf("%s", text)
	}
}
