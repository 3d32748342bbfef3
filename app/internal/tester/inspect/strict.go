package inspect

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// A ToolFindings is what --strict found in the schemas of one tool.
type ToolFindings struct {
	Tool     string    `json:"toolName"`
	Findings []Finding `json:"findings"`
}

// A Finding is a place in a schema that some model or client does not take.
type Finding struct {
	Rule       string `json:"rule"`
	Severity   string `json:"severity"` // "error" or "warning"
	Schema     string `json:"schema"`   // "inputSchema" or "outputSchema"
	Path       string `json:"path"`
	Issue      string `json:"issue"`
	Suggestion string `json:"suggestion"`
}

// Severities of findings.
const (
	severityError   = "error"
	severityWarning = "warning"
)

// maxSchemaDepth is how deep schemas are looked at.
const maxSchemaDepth = 64

// Where a schema has schemas: in the members of an object, in an array, or as it is.
var (
	schemaMaps   = []string{"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"}
	schemaLists  = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	schemaValues = []string{
		"items", "contains", "not", "propertyNames", "if", "then", "else",
		"additionalProperties", "unevaluatedProperties", "additionalItems", "unevaluatedItems", "contentSchema",
	}
)

// flagKeywords are those whose value is usually true or false.
var flagKeywords = set("additionalProperties", "unevaluatedProperties", "additionalItems", "unevaluatedItems")

// limiting are the keywords that limit what a value may be.
var limiting = set(
	"type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
	"maxLength", "minLength", "pattern", "format", "contentMediaType", "contentEncoding", "contentSchema",
	"maxItems", "minItems", "uniqueItems", "maxContains", "minContains", "maxProperties", "minProperties",
	"required", "dependentRequired", "allOf", "anyOf", "oneOf", "not", "items", "prefixItems", "contains",
	"additionalItems", "unevaluatedItems", "properties", "patternProperties", "additionalProperties",
	"unevaluatedProperties", "propertyNames", "dependentSchemas", "dependencies", "$ref", "$dynamicRef", "$recursiveRef",
)

var schemaTypes = set("null", "boolean", "object", "array", "number", "string", "integer")

func set(words ...string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}

// strict looks at the schemas of tools for what models or clients refuse or drop. It returns
// what it found, and how many of that are errors and warnings.
func strict(tools []mcp.RawValue) (found []ToolFindings, errors, warnings int) {
	for _, tool := range tools {
		o, err := parseSchema(tool)
		if err != nil {
			continue
		}
		l := &lint{}
		for _, l.schema = range []string{"inputSchema", "outputSchema"} {
			if raw, ok := o.Member(l.schema); ok {
				l.embedded = hasID(raw, 0)
				l.walk(raw, "", "", 0)
			}
		}
		if len(l.found) > 0 {
			found = append(found, ToolFindings{member(tool, "name"), l.found})
		}
		for _, f := range l.found {
			if f.Severity == severityError {
				errors++
			} else {
				warnings++
			}
		}
	}
	return found, errors, warnings
}

// parseSchema reads an object as deep as schemas are.
func parseSchema(raw mcp.RawValue) (strictjson.Object, error) {
	return strictjson.ParseObject(raw, &strictjson.Options{MaxDepth: 2 * maxSchemaDepth})
}

// A lint goes through one schema.
type lint struct {
	schema   string
	embedded bool // a part of it has an $id, so that references may lead there
	found    []Finding
}

func (l *lint) add(rule, severity, path, issue, suggestion string) {
	l.found = append(l.found, Finding{rule, severity, l.schema, path, issue, suggestion})
}

// walk looks at a schema and all below it. keyword is the member that it is the value of.
func (l *lint) walk(raw mcp.RawValue, path, keyword string, depth int) {
	if depth > maxSchemaDepth {
		return
	}
	switch string(raw) {
	case "true", "false":
		if !flagKeywords[keyword] {
			l.boolean(string(raw), path, keyword)
		}
		return
	}
	o, err := parseSchema(raw)
	if err != nil {
		return
	}
	l.node(o, path, keyword)
	each(o, path, func(child mcp.RawValue, path, keyword string) { l.walk(child, path, keyword, depth+1) })
}

// boolean is about true or false where an object is expected.
func (l *lint) boolean(value, path, keyword string) {
	mend := `describe the value, such as {"type": "object", "additionalProperties": true} for any object`
	switch {
	case value == "false":
		mend = `write {"not": {}}, which also rejects every value`
	case keyword == "not":
		mend = "write {}, which also accepts every value"
	}
	l.add("boolean-schema", severityError, path, "the schema is "+value+", but an object is expected", mend)
}

// node looks at one schema alone.
func (l *lint) node(o strictjson.Object, path, keyword string) {
	if types := union(o); types != nil {
		parts := make([]string, len(types))
		for i, t := range types {
			parts[i] = `{"type": "` + t + `"}`
		}
		l.add("type-union", severityWarning, path, "type is a list, which some models reject or ignore",
			`write {"anyOf": [`+strings.Join(parts, ", ")+`]}`)
	}
	if ref := member(o.Raw(), "$ref"); ref != "" && !strings.HasPrefix(ref, "#") && !l.embedded {
		l.add("remote-ref", severityWarning, path, fmt.Sprintf("$ref points to %q, outside of the schema, which clients do not load", ref),
			"put the referenced schema under $defs, and refer to #/$defs/NAME")
	}
	if !limits(o) && keyword != "not" {
		l.add("untyped-schema", severityWarning, path, "the schema has no keyword that limits the value, so it accepts any value",
			`describe the value, such as {"type": "object", "additionalProperties": true} for any object`)
	}
}

// union are the types of a schema whose type is a list of different ones.
func union(o strictjson.Object) []string {
	raw, _ := o.Member("type")
	var types []string
	if len(raw) == 0 || raw[0] != '[' || strictjson.Unmarshal(raw, &types) != nil || len(types) == 0 {
		return nil
	}
	seen := make(map[string]bool)
	for _, t := range types {
		if !schemaTypes[t] || seen[t] {
			return nil
		}
		seen[t] = true
	}
	return types
}

// limits reports whether a schema limits what a value may be.
func limits(o strictjson.Object) bool {
	for name := range o.All() {
		if limiting[name] {
			return true
		}
	}
	_, condition := o.Member("if")
	_, then := o.Member("then")
	_, otherwise := o.Member("else")
	return condition && (then || otherwise)
}

// each calls visit with the schemas in a schema.
func each(o strictjson.Object, path string, visit func(child mcp.RawValue, path, keyword string)) {
	for _, keyword := range schemaMaps {
		members, ok := o.Object(keyword)
		if !ok {
			continue
		}
		for name, child := range members.All() {
			visit(child, beneath(beneath(path, keyword), name), keyword)
		}
	}
	list := func(keyword string) {
		raw, _ := o.Member(keyword)
		var items []mcp.RawValue
		if len(raw) > 0 && raw[0] == '[' && strictjson.Unmarshal(raw, &items, &strictjson.Options{MaxDepth: 2 * maxSchemaDepth}) == nil {
			for i, child := range items {
				visit(child, beneath(path, keyword)+"["+strconv.Itoa(i)+"]", keyword)
			}
		}
	}
	for _, keyword := range schemaLists {
		list(keyword)
	}
	for _, keyword := range schemaValues {
		switch child, ok := o.Member(keyword); {
		case !ok:
		case keyword == "items" && child[0] == '[':
			list(keyword)
		default:
			visit(child, beneath(path, keyword), keyword)
		}
	}
}

// hasID reports whether a schema, or one in it, has an $id.
func hasID(raw mcp.RawValue, depth int) bool {
	o, err := parseSchema(raw)
	if err != nil || depth > maxSchemaDepth {
		return false
	}
	found := member(raw, "$id") != ""
	each(o, "", func(child mcp.RawValue, _, _ string) { found = found || hasID(child, depth+1) })
	return found
}

var plainMember = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

// below is the path of a member.
func beneath(path, name string) string {
	switch {
	case !plainMember.MatchString(name):
		return path + "[" + string(quoted(name)) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// strictReport says for a user what was found.
func strictReport(found []ToolFindings, errors, warnings int) string {
	var b strings.Builder
	for _, tool := range found {
		for _, f := range tool.Findings {
			place := f.Schema
			if f.Path != "" {
				place += "." + f.Path
			}
			fmt.Fprintf(&b, "%s: tool %q, %s: %s; %s\n", f.Severity, tool.Tool, place, f.Issue, f.Suggestion)
		}
	}
	fmt.Fprintf(&b, "%d errors and %d warnings in the schemas of %d tools", errors, warnings, len(found))
	return b.String()
}
