package registry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/parley-mcp/parley/app/internal/tester/registry"
)

// beyond are the codes of errors about files that the published schema takes, with the reason for
// refusing them all the same. A code that is not here is an error of the schema, and one that the
// schema must find, too.
var beyond = map[string]string{
	"argument-name":        "the official registry refuses a flag with its value",
	"argument-value":       "the official registry refuses a value that begins with the flag",
	"duplicate-argument":   "one of two arguments is lost in the forms of clients",
	"duplicate-header":     "clients send one of them",
	"duplicate-member":     "readers differ in which they take",
	"duplicate-package":    "clients would offer the same package twice",
	"duplicate-remote":     "the official registry refuses a URL that is there twice",
	"duplicate-variable":   "one variable has one value",
	"empty":                "an empty text says nothing; the schema has no least length for versions, identifiers and names of inputs",
	"hash-missing":         "the official registry refuses mcpb packages without a hash",
	"header-name":          "no client can send such a header",
	"identifier":           "no package can have that name",
	"name":                 "the official registry wants letters or digits at both ends of a name",
	"name-namespace":       "the official registry proves the namespace by a domain",
	"oci-member":           "the official registry refuses these members of OCI packages",
	"old-member":           "the member has another name now, and would be ignored",
	"repository-source":    "the official registry refuses sources at other hosts",
	"repository-subfolder": "the schema says \"a clean relative path\" in words",
	"repository-url":       "the official registry refuses URLs that are no repository of their source",
	"schema-version":       "a file of another schema cannot be checked by this one",
	"secret-default":       "the file is public",
	"secret-value":         "the file is public",
	"stdio-url":            "the official registry refuses a URL of standard input and output",
	"too-long":             "the schema has no bound for identifiers, versions of packages, URLs and names of inputs",
	"url":                  "the schema takes every URI and every text after http://; clients need a host",
	"url-local":            "nobody else can reach it",
	"url-scheme":           "the official registry wants https where others call",
	"url-user":             "the file is public",
	"variable-name":        "no environment can have that variable",
	"variable-unknown":     "the official registry refuses URLs with names that nothing fills in",
	"version-latest":       "the schema refuses it of packages alone; in words, of the server as well",
	"version-missing":      "clients cannot tell which version to install",
	"version-range":        "the schema says in words that ranges are rejected",
	"version-space":        "no two readers agree on a version with white space",
}

// unread are places where the schema takes anything, or nothing, and the official registry does not:
// it reads these members with their types, and wants $schema.
var unread = []struct{ code, pointer string }{
	{"type", `/(packageArguments|runtimeArguments)/\d+/(name|valueHint)$`}, // of the other type of argument
	{"type", `/transport/(headers|url)$`},                                  // of stdio
	{"required", `^$`},                                                     // $schema
}

// bases are good files, which use every member of the schema.
var bases = []string{
	npm(`"registryBaseUrl": "https://registry.npmjs.org", "runtimeHint": "npx",
		"runtimeArguments": [{"type": "positional", "value": "-y"}, {"type": "named", "name": "--a", "value": "{b}", "variables": {"b": {"format": "filepath"}}}],
		"packageArguments": [{"type": "named", "name": "--port", "default": "80", "format": "number", "isRepeated": false}, {"type": "positional", "valueHint": "dir", "description": "D.", "placeholder": "/tmp"}],
		"environmentVariables": [{"name": "A", "choices": ["a", "b"], "default": "a", "isRequired": true}, {"name": "KEY", "isSecret": true}]`),
	file(`"title": "Words", "websiteUrl": "https://example.com/words", "repository": {"url": "https://github.com/ada/words", "source": "github", "id": "1", "subfolder": "src/words"},
		"icons": [{"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48", "any"], "theme": "dark"}],
		"_meta": {"io.modelcontextprotocol.registry/publisher-provided": {"a": 1}},
		"remotes": [{"type": "streamable-http", "url": "https://{tenant}.example.com/mcp", "variables": {"tenant": {"isRequired": true, "choices": ["a"]}}, "headers": [{"name": "X-Key", "isSecret": true, "value": "Bearer {k}", "variables": {"k": {}}}]}, {"type": "sse", "url": "https://example.com/sse"}]`),
	file(`"packages": [` + pack("oci", "ghcr.io/ada/words:1.0.2", "") + "," +
		pack("mcpb", "https://github.com/ada/words/releases/download/v1/words.mcpb", `"fileSha256": "`+strings.Repeat("a", 64)+`"`) + `,
		{"registryType": "pypi", "identifier": "words", "version": "1.0.2", "transport": {"type": "sse", "url": "http://localhost:8080/sse", "headers": [{"name": "X-A"}]}}]`),
}

// others are values that stand in the place of those of a good file.
var others = []any{
	nil, true, false, 0.0, 1.5, "", " ", "a", "x y", "latest", "^1.0", "1.x", "http://example.com", "https://example.com", "https://", "http://a b", "://", "ftp://example.com/x",
	"https://u:p@example.com", "http://localhost", "no uri", "%zz", "io.github.ada/words", "a/b/c", "stdio", "sse", "streamable-http", "named", "positional", "npm", "number",
	"48x48", "any", "image/gif", "light", "--port=80", strings.Repeat("x", 101), strings.Repeat("ä", 100), strings.Repeat("x", 256), strings.Repeat("a", 64), "日本", "a\u00a0b",
	[]any{},
	[]any{1.0},
	[]any{"a"},
	[]any{map[string]any{}},
	map[string]any{},
	map[string]any{"a": map[string]any{}},
	map[string]any{"name": "A"},
	map[string]any{"type": "stdio"},
	map[string]any{"type": "named", "name": "--x", "valueHint": "y"},
	map[string]any{"type": "positional", "value": ""},
}

// place is a value within a file, and what replaces it there.
type place struct {
	in     any
	key    string
	index  int
	within func(any)
}

// places are all members and items below a value.
func places(v any, set func(any)) []place {
	var list []place
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			list = append(list, place{v, key, 0, set})
			list = append(list, places(v[key], func(n any) { v[key] = n })...)
		}
	case []any:
		for i := range v {
			list = append(list, place{v, "", i, set})
			list = append(list, places(v[i], func(n any) { v[i] = n })...)
		}
	}
	return list
}

// names are members of the format, older ones and unknown ones.
var names = []string{"name", "type", "value", "valueHint", "variables", "headers", "url", "version", "title", "_meta", "isSecret", "fileSha256", "registry_type", "status", "x"}

// cloned is a value that shares nothing with another.
func cloned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, value := range v {
			m[key] = cloned(value)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = cloned(v[i])
		}
		return list
	}
	return v
}

// change changes one thing in a file.
func change(root map[string]any, r *rand.Rand) {
	list := places(root, nil)
	if len(list) == 0 {
		return
	}
	p := list[r.IntN(len(list))]
	other := cloned(others[r.IntN(len(others))])
	switch in := p.in.(type) {
	case map[string]any:
		switch r.IntN(4) {
		case 0:
			delete(in, p.key)
		case 1:
			in[names[r.IntN(len(names))]] = other
		default:
			in[p.key] = other
		}
	case []any:
		switch r.IntN(3) {
		case 0:
			p.within(slices.Delete(slices.Clone(in), p.index, p.index+1))
		case 1:
			p.within(append(slices.Clone(in), cloned(in[p.index])))
		default:
			in[p.index] = other
		}
	}
}

// Files that the published schema refuses are refused, and those that it takes only for reasons that
// are listed.
func TestPublishedSchema(t *testing.T) {
	dir := os.Getenv("PARLEY_SCHEMA_DIR")
	if dir == "" {
		t.Skip("PARLEY_SCHEMA_DIR is not set")
	}
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(dir, "server.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	checkWritten(t, schema)
	r := rand.New(rand.NewPCG(1, 2))
	taken, refused, stricter := 0, 0, map[string]int{}
	for i := range 6000 {
		var root map[string]any
		if err := json.Unmarshal([]byte(bases[i%len(bases)]), &root); err != nil {
			t.Fatal(err)
		}
		for range i / len(bases) % 3 { // a third of the files is left as it is, or has one or two changes
			change(root, r)
		}
		text, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		findings := registry.Check(text)
		wrong := schema.Validate(root)
		if wrong != nil {
			refused++
			if registry.Valid(findings) {
				t.Errorf("the schema refuses it, and we do not: %v\n%s", wrong, text)
			}
			continue
		}
		taken++
		for _, f := range findings {
			if f.Severity != registry.Error {
				continue
			}
			if beyond[f.Code] == "" && !isUnread(f) {
				t.Errorf("the schema takes it, and we do not: %+v\n%s", f, text)
			}
			stricter[f.Code]++
		}
	}
	t.Logf("%d taken by the schema, %d refused; refused here for other reasons: %v", taken, refused, stricter)
	if taken < 1000 || refused < 1000 {
		t.Errorf("%d files are taken, and %d refused: that compares little", taken, refused)
	}
}

// checkWritten holds what is written to the schema.
func checkWritten(t *testing.T, schema *jsonschema.Schema) {
	t.Helper()
	for _, text := range bases {
		var s registry.Server
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		written, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(written))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%v\n%s", err, written)
		}
	}
}

func isUnread(f registry.Finding) bool {
	return slices.ContainsFunc(unread, func(u struct{ code, pointer string }) bool {
		return u.code == f.Code && regexp.MustCompile(u.pointer).MatchString(f.Pointer)
	})
}

// Every good file that the differential test starts with is good, with and without the schema.
func TestBases(t *testing.T) {
	for i, text := range bases {
		if findings := registry.Check([]byte(text)); len(findings) > 0 {
			t.Errorf("base %d: %s", i, fmt.Sprintf("%+v", findings))
		}
	}
}
