// Package schematext reads JSON Schemas as they are written, and names the
// places in them in words: for what compares schemas and what rewrites them.
package schematext

import (
	"maps"

	"github.com/parley-mcp/parley/internal/wire"
)

// maxDepth bounds the nesting of a text. It is deeper than what comes from a
// server, since a definition contains that.
const maxDepth = 128

// An Object is the keywords of a JSON Schema.
type Object map[string]wire.RawValue

// Of returns the keywords of a schema, or false if it is no object.
func Of(raw wire.RawValue) (Object, bool) {
	o, err := wire.ParseObject(raw, wire.Limits{Depth: maxDepth})
	if err != nil {
		return nil, false
	}
	return maps.Collect(o.All()), true
}

// What the keywords of JSON Schema have as their value, as far as it holds
// schemas, and what a place within is called.
var (
	// Maps have an object of schemas.
	Maps = map[string]string{
		"patternProperties": "fields that match", "$defs": "definition", "definitions": "definition",
		"dependentSchemas": "if there is a field",
	}
	// Lists have a list of schemas.
	Lists = map[string]string{
		"allOf": "part", "anyOf": "alternative", "oneOf": "alternative", "prefixItems": "item",
	}
	// Singles have one schema.
	Singles = map[string]string{
		"items": "each item", "additionalProperties": "other fields", "additionalItems": "further items",
		"contains": "contained item", "propertyNames": "names of fields", "unevaluatedItems": "unevaluatedItems",
		"unevaluatedProperties": "unevaluatedProperties", "not": "not", "if": "if", "then": "then", "else": "else",
	}
)

// Items returns the values of a JSON array.
func Items(raw wire.RawValue) ([]wire.RawValue, error) { return wire.ParseArray(raw, wire.Limits{}, 0) }

// Text returns the text of a JSON string.
func Text(raw wire.RawValue) (string, error) {
	var s string
	err := wire.Decode(raw, &s)
	return s, err
}

// Kind returns the first character of a JSON value, which says what it is, or 0.
func Kind(raw wire.RawValue) byte { return wire.At(raw, wire.SkipSpace(raw, 0)) }
