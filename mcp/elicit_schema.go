package mcp

import (
	"errors"
	"fmt"

	"github.com/parley-mcp/parley/internal/wire"
)

// ElicitSchema is a form: a flat JSON Schema of an object whose properties are
// primitives. The order of properties is kept, for people read it.
type ElicitSchema struct {
	// Schema is the dialect ("$schema"); empty is the default one.
	Schema string `json:"$schema,omitzero"`
	// Type has no value to set; it writes and checks "object".
	Type typeObject `json:"type"`
	// Properties are the fields of the form, in order.
	Properties Properties `json:"properties"`
	// Required are the names of fields that must be filled.
	Required []string `json:"required,omitzero"`
}

// Properties are the fields of a form, in order. In JSON they are an object.
type Properties []Property

// Property is a field of a form.
type Property struct {
	// Name is the field's name.
	Name string
	// Schema says what can be filled in.
	Schema PrimitiveSchema
}

// PrimitiveSchema is one field of a form: a string, a number, a boolean, or a
// choice (schema PrimitiveSchemaDefinition). [PrimitiveSchema.Kind] says which;
// the fields that do not belong to it are zero.
type PrimitiveSchema struct {
	// Type is "string", "number", "integer", "boolean" or, for several
	// choices, "array".
	Type string `json:"type"`
	// Title is the name for people.
	Title string `json:"title,omitzero"`
	// Description says what to fill in.
	Description string `json:"description,omitzero"`
	// Format is one of the constants that begin with Format, for strings.
	Format string `json:"format,omitzero"`
	// MinLength and MaxLength bound strings, in characters; nil is no bound.
	MinLength *int64 `json:"minLength,omitzero"`
	MaxLength *int64 `json:"maxLength,omitzero"`
	// Minimum and Maximum bound numbers, both included; nil is no bound.
	Minimum *float64 `json:"minimum,omitzero"`
	Maximum *float64 `json:"maximum,omitzero"`
	// Enum are the choices of a single choice without titles.
	Enum []string `json:"enum,omitzero"`
	// EnumNames are titles for Enum, in the same order.
	//
	// Deprecated: use OneOf; 2025-06-18 gets EnumNames from it.
	EnumNames []string `json:"enumNames,omitzero"`
	// OneOf are the choices of a single choice with titles.
	OneOf []EnumOption `json:"oneOf,omitzero"`
	// Items are the choices of a multiple choice.
	Items *EnumItems `json:"items,omitzero"`
	// MinItems and MaxItems bound how many are chosen; nil is no bound.
	MinItems *int64 `json:"minItems,omitzero"`
	MaxItems *int64 `json:"maxItems,omitzero"`
	// Default is filled in at the beginning, in JSON: of the field's type,
	// for a multiple choice a list of strings. Nil is absent.
	Default RawValue `json:"default,omitzero"`
	// Other is the schema of a field that is of no kind above, as a server wrote it. Any JSON value may
	// be filled in that fits it. Of the fields above only Title, Description and Default are set then,
	// as far as they can be read. Encoding [Properties] writes Other alone.
	Other RawValue `json:"-"`
}

// EnumOption is a choice with a title.
type EnumOption struct {
	// Const is the value.
	Const string `json:"const"`
	// Title is what people see.
	Title string `json:"title"`
}

// EnumItems are the choices of a multiple choice: Enum without titles, AnyOf
// with.
type EnumItems struct {
	// Type is "string" if Enum is used, else empty.
	Type string `json:"type,omitzero"`
	// Enum are choices without titles.
	Enum []string `json:"enum,omitzero"`
	// AnyOf are choices with titles.
	AnyOf []EnumOption `json:"anyOf,omitzero"`
}

// The formats of strings in forms.
const (
	FormatEmail    = "email"
	FormatURI      = "uri"
	FormatDate     = "date"
	FormatDateTime = "date-time"
)

// FieldKind says what a field of a form is.
type FieldKind uint8

// The kinds of fields.
const (
	// FieldUnknown is none of these kinds; see [PrimitiveSchema.Other].
	FieldUnknown FieldKind = iota
	// FieldString is any string within its format and bounds.
	FieldString
	// FieldNumber is any number within its bounds.
	FieldNumber
	// FieldInteger is any whole number within its bounds.
	FieldInteger
	// FieldBoolean is yes or no.
	FieldBoolean
	// FieldChoice is one of [PrimitiveSchema.Options].
	FieldChoice
	// FieldChoices are some of [PrimitiveSchema.Options].
	FieldChoices
)

var fieldKindNames = [...]string{"unknown", "string", "number", "integer", "boolean", "choice", "choices"}

// String is the kind in a word, such as "choice".
func (k FieldKind) String() string {
	if int(k) < len(fieldKindNames) {
		return fieldKindNames[k]
	}
	return fieldKindNames[FieldUnknown]
}

// Kind says what the field is.
func (s *PrimitiveSchema) Kind() FieldKind {
	if s.Other != nil {
		return FieldUnknown
	}
	switch s.Type {
	case "string":
		if s.Enum != nil || s.OneOf != nil {
			return FieldChoice
		}
		return FieldString
	case "number":
		return FieldNumber
	case "integer":
		return FieldInteger
	case "boolean":
		return FieldBoolean
	case "array":
		if s.Options() != nil {
			return FieldChoices
		}
	}
	return FieldUnknown
}

// Titled reports whether the choices of a field have titles of their own.
func (s *PrimitiveSchema) Titled() bool {
	return s.OneOf != nil || s.EnumNames != nil || s.Items != nil && s.Items.AnyOf != nil
}

// Options are the choices of a field, whichever way the schema writes them;
// a choice without a title has its value as title. Nil for other kinds.
func (s *PrimitiveSchema) Options() []EnumOption {
	switch {
	case s.OneOf != nil:
		return s.OneOf
	case s.Items != nil && s.Items.AnyOf != nil:
		return s.Items.AnyOf
	case s.Items != nil && s.Items.Enum != nil:
		return options(s.Items.Enum, nil)
	case s.Enum != nil:
		return options(s.Enum, s.EnumNames)
	}
	return nil
}

func options(values, titles []string) []EnumOption {
	list := make([]EnumOption, len(values))
	for i, value := range values {
		list[i] = EnumOption{Const: value, Title: value}
		if i < len(titles) {
			list[i].Title = titles[i]
		}
	}
	return list
}

// Lookup returns the schema of the field called name. It points into p.
func (p Properties) Lookup(name string) (*PrimitiveSchema, bool) {
	for i := range p {
		if p[i].Name == name {
			return &p[i].Schema, true
		}
	}
	return nil, false
}

// MarshalJSON encodes the fields as an object, in their order. Two fields of
// one name are an error.
func (p Properties) MarshalJSON() ([]byte, error) {
	buf := []byte{'{'}
	seen := make(map[string]bool, len(p)) // there are many in the form of a hostile server
	for i := range p {
		if seen[p[i].Name] {
			return nil, fmt.Errorf("two properties are called %q", p[i].Name)
		}
		seen[p[i].Name] = true
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(wire.AppendString(buf, p[i].Name), ':')
		var err error
		if other := p[i].Schema.Other; other != nil {
			buf, err = wire.Append(buf, other)
		} else {
			buf, err = wire.Append(buf, &p[i].Schema)
		}
		if err != nil {
			return nil, fmt.Errorf("property %q: %w", p[i].Name, err)
		}
	}
	return append(buf, '}'), nil
}

// UnmarshalJSON decodes the fields in the order of the object's members. A field of no kind that forms
// have is kept as [PrimitiveSchema.Other].
func (p *Properties) UnmarshalJSON(data []byte) error {
	object, err := wire.ParseObject(data, accepted)
	if err != nil {
		return err
	}
	list := make(Properties, 0, object.Len())
	for name, raw := range object.All() {
		list = append(list, Property{Name: name})
		s := &list[len(list)-1].Schema
		err := wire.DecodeParams(raw, s)
		switch {
		case errors.Is(err, wire.ErrTwin):
			return at(name, err)
		case err != nil, s.Kind() == FieldUnknown:
			*s = otherSchema(raw)
		}
	}
	*p = list
	return nil
}

// otherSchema keeps a schema of no kind that forms have.
func otherSchema(raw RawValue) PrimitiveSchema {
	s := PrimitiveSchema{Other: raw}
	if o, err := wire.ParseObject(raw, accepted); err == nil {
		for name, text := range map[string]*string{"title": &s.Title, "description": &s.Description} {
			if value, ok := o.Member(name); ok && value[0] == '"' {
				*text = wire.Text(value)
			}
		}
		s.Default, _ = o.Member("default")
	}
	return s
}
