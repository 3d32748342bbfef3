package doctor

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/contract"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
	"github.com/parley-mcp/parley/strictjson"
)

// Bounds of the examination of one schema.
const (
	maxSchemaDepth  = 40
	maxSchemaValues = 200 // defaults and examples that are checked
)

// A schemaCheck examines one schema.
type schemaCheck struct {
	*subject

	path  []string // of the schema
	raw   mcp.RawValue
	input bool // it is of arguments
	root  map[string]any
	n     int // of values that were checked
}

func (s *schemaCheck) at(path []string, id, reason string) {
	s.add(id, contract.Path(slices.Concat(s.path, path)...), reason)
}

// compile compiles the schema, or says why that cannot be done. Patterns are ECMA-262: those that
// cannot be judged here are no fault of the server's.
func (s *schemaCheck) compile(ignoreHeaders bool) *schema.Compiled {
	c, err := schema.Compile(s.raw, &schema.Limits{IgnoreHeaders: ignoreHeaders, Lenient: true})
	if err != nil {
		s.at(nil, schemaCode(err), reasonOf(err))
		return nil
	}
	return c
}

// walk examines the parts of the schema, and returns it as a value.
func (s *schemaCheck) walk() any {
	if strictjson.Unmarshal(s.raw, &s.root) != nil {
		return nil // told by compile
	}
	if dialect, ok := s.root["$schema"].(string); ok && (strings.Contains(dialect, "draft-0") || strings.Contains(dialect, "2019-09")) {
		s.dialects.add(dialect, contract.Path(s.path...), s.version)
	}
	s.part(nil, s.root, 0)
	return s.root
}

// dialects are the old dialects that schemas name: where, and in which revisions.
type dialects map[string]*struct{ paths, versions []string }

func (d dialects) add(dialect, path, version string) {
	if d[dialect] == nil {
		d[dialect] = new(struct{ paths, versions []string })
	}
	if at := d[dialect]; !slices.Contains(at.paths, path) {
		at.paths = append(at.paths, path)
	}
	if at := d[dialect]; !slices.Contains(at.versions, version) {
		at.versions = append(at.versions, version)
	}
}

// maxPaths is how many schemas a reason names.
const maxPaths = 20

// oldDialects tells of schemas that name an old dialect: once for all revisions.
func (e *examination) oldDialects() {
	for _, dialect := range slices.Sorted(maps.Keys(e.dialects)) {
		at := e.dialects[dialect]
		reason := fmt.Sprintf("%d schemas name %.100q: %s", len(at.paths), dialect, strings.Join(at.paths[:min(len(at.paths), maxPaths)], ", "))
		for _, version := range at.versions {
			e.found.add("MCP-SCHEMA-013", "$.tools", reason, "", version)
		}
	}
}

// Keywords by what they hold.
var (
	schemaMaps  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
	schemaLists = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	schemaOnes  = []string{"items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames", "unevaluatedProperties", "unevaluatedItems"}
)

// part examines a subschema.
func (s *schemaCheck) part(path []string, m map[string]any, depth int) {
	if depth > maxSchemaDepth {
		return
	}
	s.required(path, m)
	s.values(path, m)
	for _, keyword := range schemaMaps {
		parts, _ := m[keyword].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			inner, ok := parts[name].(map[string]any)
			if !ok {
				continue
			}
			place := slices.Concat(path, []string{keyword, name})
			if s.input && keyword == "properties" && depth == 0 && !s.described(inner, 0) {
				s.at(place, "MCP-SCHEMA-006", fmt.Sprintf("the argument %q has no description", name))
			}
			s.part(place, inner, depth+1)
		}
	}
	for _, keyword := range schemaLists {
		list, _ := m[keyword].([]any)
		for i, item := range list {
			if inner, ok := item.(map[string]any); ok {
				s.part(slices.Concat(path, []string{keyword, strconv.Itoa(i)}), inner, depth+1)
			}
		}
	}
	for _, keyword := range schemaOnes {
		if inner, ok := m[keyword].(map[string]any); ok {
			s.part(slices.Concat(path, []string{keyword}), inner, depth+1)
		}
	}
}

// described reports whether a schema has a description, of its own or of what it is made of.
func (s *schemaCheck) described(m map[string]any, depth int) bool {
	if text, ok := m["description"].(string); ok && strings.TrimSpace(text) != "" {
		return true
	}
	if depth > 4 {
		return false
	}
	if ref, ok := m["$ref"].(string); ok {
		for _, keyword := range []string{"$defs", "definitions"} {
			name, local := strings.CutPrefix(ref, "#/"+keyword+"/")
			defs, _ := s.root[keyword].(map[string]any)
			if target, ok := defs[name].(map[string]any); local && ok && s.described(target, depth+1) {
				return true
			}
		}
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := m[keyword].([]any)
		for _, item := range list {
			if inner, ok := item.(map[string]any); ok && s.described(inner, depth+1) {
				return true
			}
		}
	}
	return false
}

// required looks for members that are required and that nothing describes.
func (s *schemaCheck) required(path []string, m map[string]any) {
	list, _ := m["required"].([]any)
	known, has := m["properties"].(map[string]any)
	if !has && len(path) > 0 {
		return // an alternative, whose members the schema around it describes
	}
	for _, keyword := range []string{"$ref", "allOf", "anyOf", "oneOf", "patternProperties", "if"} {
		if _, ok := m[keyword]; ok {
			return // they may describe it
		}
	}
	if open, ok := m["additionalProperties"].(map[string]any); ok && len(open) > 0 {
		return // which describes it
	}
	for _, name := range list {
		if text, ok := name.(string); ok && known[text] == nil {
			s.at(slices.Concat(path, []string{"required"}), "MCP-SCHEMA-007", fmt.Sprintf("%q is required, but not in properties", text))
		}
	}
}

// values compares the default and the examples of a subschema with it.
func (s *schemaCheck) values(path []string, m map[string]any) {
	def, hasDefault := m["default"]
	examples, _ := m["examples"].([]any)
	if !hasDefault && len(examples) == 0 {
		return
	}
	if s.n += 1 + len(examples); s.n > maxSchemaValues {
		return
	}
	alone := maps.Clone(m)
	for _, keyword := range []string{"default", "examples", "x-mcp-header"} {
		delete(alone, keyword)
	}
	for _, keyword := range []string{"$schema", "$defs", "definitions"} {
		if value, ok := s.root[keyword]; ok {
			alone[keyword] = value
		}
	}
	raw, err := json.Marshal(alone)
	if err != nil {
		return
	}
	c, err := schema.Compile(raw, &schema.Limits{IgnoreHeaders: true, Lenient: true})
	if err != nil {
		return // it refers to another place, or is wrong, which was told
	}
	check := func(id string, value any, where ...string) {
		if text, err := json.Marshal(value); err == nil {
			if wrong := c.Check(text); wrong != nil {
				s.at(slices.Concat(path, where), id, reasonOf(wrong))
			}
		}
	}
	if hasDefault {
		check("MCP-SCHEMA-008", def, "default")
	}
	for i, value := range examples {
		check("MCP-SCHEMA-011", value, "examples", strconv.Itoa(i))
	}
}
