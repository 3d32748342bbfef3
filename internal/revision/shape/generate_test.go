package shape_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
)

type object = map[string]any

// A schema makes random instances of the object types of one revision.
type schema struct {
	defs object
}

func specDir(t testing.TB) string {
	dir := os.Getenv("PARLEY_SPEC_DIR")
	if dir == "" {
		t.Skip("PARLEY_SPEC_DIR is not set")
	}
	return dir
}

func loadSchema(t testing.TB, version string) *schema {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(specDir(t), version, "schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var root object
	if err := wire.Decode(data, &root); err != nil {
		t.Fatal(err)
	}
	s := &schema{}
	for _, name := range []string{"$defs", "definitions"} {
		if defs, ok := root[name].(object); ok {
			s.defs = defs
		}
	}
	return s
}

func property(def object, name string) object {
	properties, _ := def["properties"].(object)
	p, _ := properties[name].(object)
	return p
}

func (s *schema) resolve(def object) object {
	for {
		ref, ok := def["$ref"].(string)
		if !ok {
			return def
		}
		def = s.defs[ref[strings.LastIndex(ref, "/")+1:]].(object)
	}
}

// A message is what a method has for params or result.
type message struct {
	method string
	result bool
	def    object
}

func (m message) String() string {
	if m.result {
		return m.method + " result"
	}
	return m.method + " params"
}

// messages are the params and results of all methods of the revision that have
// a type in package mcp.
func (s *schema) messages() []message {
	var list []message
	for name, def := range s.defs {
		def := def.(object)
		method, _ := property(def, "method")["const"].(string)
		if method == "" || strings.Contains(method, "tasks/") {
			continue
		}
		if params := property(def, "params"); params != nil {
			list = append(list, message{method, false, params})
		}
		result, ok := s.defs[strings.TrimSuffix(name, "Request")+"Result"].(object)
		if strings.HasSuffix(name, "Request") && !ok {
			result = s.defs["EmptyResult"].(object)
		}
		if result != nil {
			list = append(list, message{method, true, result})
		}
	}
	slices.SortFunc(list, func(a, b message) int { return strings.Compare(a.String(), b.String()) })
	return list
}

// untyped are members without a Go type: core tasks were an experiment.
var untyped = []string{"task", "tasks", "execution"}

// kept are the open objects whose unknown members are kept.
var kept = []string{
	"arguments", "_meta", "metadata", "input", "structuredContent", "experimental",
	"extensions", "completions", "logging", "inputSchema", "outputSchema", "data",
}

// wholeNumbers are members that older schemas give as integers by mistake.
var wholeNumbers = []string{"minimum", "maximum", "default"}

type generator struct {
	*rand.Rand
	schema *schema
}

// make makes a random instance of def, which is the member called name.
func (g *generator) make(def object, name string, depth int) any {
	def = g.schema.resolve(def)
	if value, ok := def["const"]; ok {
		return value
	}
	if values, ok := def["enum"].([]any); ok {
		return values[g.IntN(len(values))]
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list, ok := def[key].([]any); ok {
			return g.make(list[g.IntN(len(list))].(object), name, depth)
		}
	}
	kind := def["type"]
	if list, ok := kind.([]any); ok {
		kind = list[g.IntN(len(list))]
	}
	switch kind {
	case "string":
		return g.text(def["format"])
	case "integer":
		return float64(g.IntN(1 << 20))
	case "number":
		if slices.Contains(wholeNumbers, name) {
			return float64(g.IntN(100))
		}
		return float64(g.IntN(100)) / 100
	case "boolean":
		return g.IntN(2) == 0
	case "array":
		items, _ := def["items"].(object)
		list := make([]any, g.IntN(3))
		for i := range list {
			list[i] = g.make(items, "", depth+1)
		}
		return list
	case "object":
		return g.object(def, name, depth)
	}
	return g.any(name, depth)
}

func (g *generator) object(def object, name string, depth int) object {
	o := object{}
	required, _ := def["required"].([]any)
	properties, _ := def["properties"].(object)
	for _, member := range sortedKeys(properties) {
		if slices.Contains(untyped, member) {
			continue
		}
		must := slices.Contains(required, any(member))
		if !must && (depth > 6 || g.IntN(2) == 0) {
			continue
		}
		value := g.make(properties[member].(object), member, depth+1)
		if value == "" && slices.Contains(neverEmpty, member) {
			value = "x"
		}
		if !must && (value == "" || value == false) && !slices.Contains(absentIsNotEmpty, member) {
			continue // the same as its absence, which is how it is written
		}
		o[member] = value
	}
	more, ok := def["additionalProperties"].(object)
	switch {
	case ok && len(more) > 0:
		for i := range g.IntN(3) {
			o[fmt.Sprintf("key%d", i)] = g.make(more, name+"[]", depth+1)
		}
	case slices.Contains(kept, name) || strings.HasSuffix(name, "[]") && slices.Contains(kept, strings.TrimSuffix(name, "[]")):
		for i := range g.IntN(3) {
			o[fmt.Sprintf("com.example/x%d", i)] = g.any(name, depth)
		}
	}
	if name == "_meta" && len(o) == 0 {
		o["com.example/x"] = true
	}
	return o
}

// absentIsNotEmpty are members whose empty string means something.
var absentIsNotEmpty = []string{"cursor", "nextCursor", "requestState"}

// neverEmpty are members that some messages must have and others must not, so
// that their empty string is their absence.
var neverEmpty = []string{"io.modelcontextprotocol/protocolVersion", "url", "elicitationId", "resultType"}

var texts = []string{"", "a", "hello world", "ünïcödé 🙂", "line\nbreak", `quo"te`, "<b>"}

func (g *generator) text(format any) string {
	switch format {
	case "byte":
		return []string{"", "AA==", "aGVsbG8=", "UklGRiQAAABXQVZF"}[g.IntN(4)]
	case "uri":
		return fmt.Sprintf("file:///dir/%d.txt", g.IntN(10))
	case "uri-template":
		return fmt.Sprintf("file:///dir%d/{name}", g.IntN(10))
	}
	return texts[g.IntN(len(texts))]
}

// any makes any JSON value.
func (g *generator) any(name string, depth int) any {
	choices := 7
	if depth > 5 {
		choices = 5
	}
	switch g.IntN(choices) {
	case 0:
		return g.text(nil)
	case 1:
		return float64(g.IntN(1000)) / 8
	case 2:
		return true
	case 3:
		return false
	case 4:
		return object{}
	case 5:
		return object{"k": g.any(name, depth+1), "K": nil}
	}
	return []any{g.any(name, depth+1), nil}
}

func sortedKeys(o object) []string {
	keys := make([]string, 0, len(o))
	for key := range o {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
