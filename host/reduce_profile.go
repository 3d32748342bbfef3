package host

import "slices"

// A SchemaProfile says which JSON Schemas a provider of models takes as the
// parameters of a function. The zero value takes everything.
type SchemaProfile struct {
	// Keywords are the keywords that are taken, $ref, oneOf and the like among
	// them. Nil takes all.
	Keywords []string
	// Formats are the values of the keyword format that are taken. Nil takes all.
	Formats []string
	// Types says how a value of several types is written.
	Types SchemaTypes
	// Enums says which values can be listed.
	Enums SchemaEnums
	// Root says what the schema itself must look like.
	Root SchemaRoot
	// AnyOf says what may stand beside anyOf.
	AnyOf SchemaAnyOf
	// Items says whether a list must say what its items are.
	Items SchemaItems
	// MaxDepth is the number of schemas within each other. Default 32.
	MaxDepth int
	// MaxEnum is the number of values that are listed. Default 1,000.
	MaxEnum int
	// MaxBytes bounds the schema. Default 65,536.
	MaxBytes int
}

// SchemaTypes says how a value of several types is written.
type SchemaTypes int

// How a value of several types is written.
const (
	// SchemaTypesList is a list of types: "type": ["string", "null"].
	SchemaTypesList SchemaTypes = iota
	// SchemaTypesAnyOf is one alternative of anyOf for each type.
	SchemaTypesAnyOf
	// SchemaTypesNullable is like SchemaTypesAnyOf, with "nullable": true for null.
	SchemaTypesNullable
)

// SchemaEnums says which values can be listed.
type SchemaEnums int

// Which values can be listed.
const (
	// SchemaEnumsAny is values of every type.
	SchemaEnumsAny SchemaEnums = iota
	// SchemaEnumsStrings is strings alone.
	SchemaEnumsStrings
)

// SchemaRoot says what the schema of all arguments must look like.
type SchemaRoot int

// What the schema of all arguments must look like.
const (
	// SchemaRootAny is any schema.
	SchemaRootAny SchemaRoot = iota
	// SchemaRootObject is a schema with the type "object".
	SchemaRootObject
	// SchemaRootPlain is a schema with the type "object", and without oneOf, anyOf,
	// allOf, enum, not and $ref.
	SchemaRootPlain
)

// SchemaAnyOf says what may stand beside anyOf.
type SchemaAnyOf int

// What may stand beside anyOf.
const (
	// SchemaAnyOfBeside is every keyword.
	SchemaAnyOfBeside SchemaAnyOf = iota
	// SchemaAnyOfAlone is none.
	SchemaAnyOfAlone
)

// SchemaItems says whether a list must say what its items are.
type SchemaItems int

// Whether a list must say what its items are.
const (
	// SchemaItemsOptional leaves it to the schema.
	SchemaItemsOptional SchemaItems = iota
	// SchemaItemsRequired adds "items": {} to lists that do not say it.
	SchemaItemsRequired
)

// Profiles of providers.
var (
	// ProfileAny takes every schema.
	ProfileAny = SchemaProfile{}
	// ProfileOpenAIStrictless is what OpenAI takes for functions that are not
	// strict, and most providers that offer the same interface.
	ProfileOpenAIStrictless = SchemaProfile{
		Keywords: []string{
			"type", "title", "description", "default", "examples", "properties", "required", "additionalProperties",
			"patternProperties", "items", "prefixItems", "enum", "const", "anyOf", "allOf", "not", "$ref", "$defs",
			"definitions", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
			"maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties",
		},
		Root: SchemaRootPlain, Items: SchemaItemsRequired, MaxDepth: 10, MaxEnum: 500,
	}
	// ProfileGemini is the subset of OpenAPI 3.0 that Gemini takes for the
	// parameters of functions.
	ProfileGemini = SchemaProfile{
		Keywords: []string{
			"type", "format", "title", "description", "nullable", "enum", "items", "minItems", "maxItems", "properties",
			"required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "anyOf", "default",
			"minimum", "maximum",
		},
		Formats: []string{"date-time", "float", "double", "int32", "int64"},
		Types:   SchemaTypesNullable, Enums: SchemaEnumsStrings, Root: SchemaRootPlain, AnyOf: SchemaAnyOfAlone,
		Items: SchemaItemsRequired, MaxDepth: 10, MaxEnum: 500,
	}
)

// takesAll reports whether the provider takes every schema.
func (p *SchemaProfile) takesAll() bool {
	return p.Keywords == nil && p.Formats == nil && p.Types == SchemaTypesList && p.Enums == SchemaEnumsAny &&
		p.Root == SchemaRootAny && p.AnyOf == SchemaAnyOfBeside && p.Items == SchemaItemsOptional &&
		p.MaxDepth == 0 && p.MaxEnum == 0
}

// takes reports whether the provider takes a keyword.
func (p *SchemaProfile) takes(keyword string) bool {
	return p.Keywords == nil || slices.Contains(p.Keywords, keyword)
}
