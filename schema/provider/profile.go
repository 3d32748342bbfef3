package provider

import (
	"slices"
	"strings"
)

// A Profile says which JSON Schemas a provider of models takes as the
// parameters of a function. The zero value takes everything.
type Profile struct {
	// Keywords are the keywords that are taken, $ref, oneOf and the like among
	// them. Nil takes all.
	Keywords []string
	// Formats are the values of the keyword format that are taken. Nil takes all.
	Formats []string
	// Types says how a value of several types is written.
	Types Types
	// Enums says which values can be listed.
	Enums Enums
	// Root says what the schema itself must look like.
	Root Root
	// AnyOf says what may stand beside anyOf.
	AnyOf AnyOf
	// Items says whether a list must say what its items are.
	Items Items
	// Names says what the arguments may be called.
	Names Names
	// ToolNames says what the tool may be called.
	ToolNames ToolNames
	// MaxDepth is the number of schemas within each other. Default 32.
	MaxDepth int
	// MaxEnum is the number of values that are listed. Default 1,000.
	MaxEnum int
	// MaxBytes bounds the schema. Default 65,536.
	MaxBytes int
}

// Types says how a value of several types is written.
type Types int

// How a value of several types is written.
const (
	// TypesList is a list of types: "type": ["string", "null"].
	TypesList Types = iota
	// TypesAnyOf is one alternative of anyOf for each type.
	TypesAnyOf
	// TypesNullable is like TypesAnyOf, with "nullable": true for null.
	TypesNullable
)

// Enums says which values can be listed.
type Enums int

// Which values can be listed.
const (
	// EnumsAny is values of every type.
	EnumsAny Enums = iota
	// EnumsStrings is strings alone.
	EnumsStrings
)

// Root says what the schema of all arguments must look like.
type Root int

// What the schema of all arguments must look like.
const (
	// RootAny is any schema.
	RootAny Root = iota
	// RootObject is a schema with the type "object".
	RootObject
	// RootPlain is a schema with the type "object", and without oneOf, anyOf,
	// allOf, enum, const, not and $ref.
	RootPlain
)

// AnyOf says what may stand beside anyOf.
type AnyOf int

// What may stand beside anyOf.
const (
	// AnyOfBeside is every keyword.
	AnyOfBeside AnyOf = iota
	// AnyOfAlone is none.
	AnyOfAlone
)

// Items says whether a list must say what its items are.
type Items int

// Whether a list must say what its items are.
const (
	// ItemsOptional leaves it to the schema.
	ItemsOptional Items = iota
	// ItemsRequired adds "items": {} to lists that do not say it.
	ItemsRequired
)

// Names says what the arguments may be called; it is about those of the root alone.
type Names int

// What the arguments may be called.
const (
	// NamesAny is every name.
	NamesAny Names = iota
	// NamesPlain is 1 to 64 ASCII letters, digits, underscores, dots and dashes.
	NamesPlain
)

// isPlain reports whether a name is one of NamesPlain.
func isPlain(name string) bool {
	const most, letters = 64, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
	return name != "" && len(name) <= most && strings.Trim(name, letters) == ""
}

// ToolNames says what tools may be called.
type ToolNames int

// What tools may be called.
const (
	// ToolNamesAny is every name.
	ToolNamesAny ToolNames = iota
	// ToolNamesPlain is 1 to 64 ASCII letters, digits, underscores and dashes.
	ToolNamesPlain
	// ToolNamesBegun is 1 to 64 ASCII letters, digits, underscores, dots, colons and
	// dashes, of which the first is a letter or an underscore.
	ToolNamesBegun
)

// What providers take, each row with its sources. Where a provider documents
// nothing, the words of its refusal are the source.
var (
	// Any takes every schema.
	Any = Profile{}

	// Anthropic takes JSON Schema for tools that are not strict, but no oneOf, allOf
	// or anyOf for the arguments as a whole, and only plain names of arguments.
	//
	// Documented: https://platform.claude.com/docs/en/agents-and-tools/tool-use/define-tools
	// ("input_schema: a JSON Schema object defining the expected parameters").
	// Refusals: "input_schema does not support oneOf, allOf, or anyOf at the top
	// level" (https://github.com/anthropics/claude-code/issues/5319), "Property keys
	// should match pattern '^[a-zA-Z0-9_.-]{1,64}$'", which looks at the names of
	// arguments alone (aws-solutions-library-samples/
	// accelerated-intelligent-document-processing-on-aws, issue 709). Names of tools are on
	// the documented page.
	Anthropic = Profile{Root: RootPlain, Names: NamesPlain, ToolNames: ToolNamesPlain}

	// OpenAI is what OpenAI takes for functions that are not strict, and most
	// providers that offer the same interface.
	//
	// Documented: https://developers.openai.com/api/docs/guides/function-calling and
	// https://developers.openai.com/api/docs/guides/structured-outputs, whose bound of
	// 10 levels holds for strict functions and is kept here for all. Refusals: "schema must
	// have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at
	// the top level" (https://github.com/goruck/home-generative-agent/pull/545),
	// "array schema missing items". Names of tools:
	// https://platform.openai.com/docs/api-reference/chat/create ("maximum length of 64").
	OpenAI = Profile{
		Keywords: []string{
			"type", "title", "description", "default", "examples", "properties", "required", "additionalProperties",
			"patternProperties", "items", "prefixItems", "enum", "const", "anyOf", "allOf", "not", "$ref", "$defs",
			"definitions", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
			"maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties",
		},
		Root: RootPlain, Items: ItemsRequired, ToolNames: ToolNamesPlain, MaxDepth: 10, MaxEnum: 500,
	}

	// Gemini is the subset of OpenAPI 3.0 that Gemini takes for the parameters of
	// functions.
	//
	// Documented: https://ai.google.dev/api/caching#Schema (the fields of Schema; any
	// other is refused as an unknown name; an enum has texts). Refusals: "only 'enum'
	// and 'date-time' are supported for STRING type"
	// (https://github.com/google-gemini/gemini-cli/issues/3178), "items: missing
	// field" (https://github.com/kkrishnan90/gemini-desktop/pull/7), "enum: only
	// allowed for STRING type" (https://github.com/decolua/9router/pull/380), "Invalid
	// function name" (https://github.com/google-gemini/gemini-cli/issues/9535).
	Gemini = Profile{
		Keywords: []string{
			"type", "format", "title", "description", "nullable", "enum", "items", "minItems", "maxItems", "properties",
			"required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "anyOf", "default",
			"minimum", "maximum",
		},
		Formats: []string{"date-time", "float", "double", "int32", "int64"},
		Types:   TypesNullable, Enums: EnumsStrings, Root: RootPlain, AnyOf: AnyOfAlone,
		Items: ItemsRequired, ToolNames: ToolNamesBegun, MaxDepth: 10, MaxEnum: 500,
	}
)

// takesAll reports whether the provider takes every schema.
func (p *Profile) takesAll() bool {
	return p.Keywords == nil && p.Formats == nil && p.Types == TypesList && p.Enums == EnumsAny &&
		p.Root == RootAny && p.AnyOf == AnyOfBeside && p.Items == ItemsOptional &&
		p.Names == NamesAny &&
		p.MaxDepth == 0 && p.MaxEnum == 0
}

// takes reports whether the provider takes a keyword.
func (p *Profile) takes(keyword string) bool {
	return p.Keywords == nil || slices.Contains(p.Keywords, keyword)
}
