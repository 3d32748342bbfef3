package ui

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// A Form is what a face needs to know to show a server's form.
type Form struct {
	// Fields are in the order of the form.
	Fields []Field
}

// A FieldKind says what is filled into a field.
type FieldKind string

// The kinds of fields. Those from KindEmail on are texts of a format.
const (
	KindText     FieldKind = "text"
	KindNumber   FieldKind = "number"
	KindInteger  FieldKind = "integer"
	KindBoolean  FieldKind = "boolean"
	KindChoice   FieldKind = "choice"
	KindChoices  FieldKind = "choices"
	KindEmail    FieldKind = "email"
	KindURI      FieldKind = "uri"
	KindDate     FieldKind = "date"
	KindDateTime FieldKind = "date-time"
	// KindJSON is any JSON value that the server takes.
	KindJSON FieldKind = "json"
)

// A Field is one field of a form. Label, Help and the titles of Options are a
// server's text, escaped and on one line, so that they can be shown.
type Field struct {
	// Name is the field's name in the answer, as the server wrote it.
	Name string
	// Label is what to call the field: its title, or its name.
	Label string
	// Help says what to fill in, or is empty.
	Help     string
	Kind     FieldKind
	Required bool
	// Default is the value of a field that is left empty, as JSON, or nil.
	Default mcp.RawValue
	// Options are what can be chosen, in KindChoice and KindChoices.
	Options []Option
	// Min and Max bound numbers, nil is no bound.
	Min, Max *float64
	// MinLength and MaxLength bound texts, in characters; MinItems and MaxItems how
	// many options are chosen; nil is no bound.
	MinLength, MaxLength, MinItems, MaxItems *int64
	// Secret says that the name or title of the field, or of a part of it, means a secret, for which no
	// server may ask with a form.
	Secret bool
}

// An Option is one choice of a field.
type Option struct {
	// Value is what is sent.
	Value string
	// Title is what a person sees.
	Title string
}

// NewForm plans a form. Nil is a form without fields.
func NewForm(s *mcp.ElicitSchema) *Form {
	f := &Form{}
	if s == nil {
		return f
	}
	for i := range s.Properties {
		f.Fields = append(f.Fields, newField(&s.Properties[i], slices.Contains(s.Required, s.Properties[i].Name)))
	}
	return f
}

func newField(p *mcp.Property, required bool) Field {
	s := &p.Schema
	f := Field{
		Name: p.Name, Label: claim(s.Title), Help: claim(s.Description), Kind: kindOf(s), Required: required,
		Default: s.Default, Min: s.Minimum, Max: s.Maximum,
		MinLength: s.MinLength, MaxLength: s.MaxLength, MinItems: s.MinItems, MaxItems: s.MaxItems,
		Secret: host.SecretProperty(p),
	}
	if f.Kind == KindJSON && s.Other != nil {
		f.Help = strings.TrimSpace(f.Help + " Schema: " + compact(s.Other, maxClaim))
	}
	if f.Label == "" {
		f.Label = host.EscapeLine(shorten(p.Name, maxName))
	}
	for _, o := range s.Options() {
		f.Options = append(f.Options, Option{Value: o.Const, Title: claim(o.Title)})
	}
	return f
}

// kindOf says what is filled into a field of a schema.
func kindOf(s *mcp.PrimitiveSchema) FieldKind {
	switch s.Kind() {
	case mcp.FieldNumber:
		return KindNumber
	case mcp.FieldInteger:
		return KindInteger
	case mcp.FieldBoolean:
		return KindBoolean
	case mcp.FieldChoice:
		return KindChoice
	case mcp.FieldChoices:
		return KindChoices
	case mcp.FieldUnknown:
		return KindJSON
	case mcp.FieldString:
	}
	switch s.Format {
	case mcp.FormatEmail, mcp.FormatURI, mcp.FormatDate, mcp.FormatDateTime:
		return FieldKind(s.Format)
	}
	return KindText
}

// Check says what is wrong with the values of a form, by the names of its fields:
// the first field that does not fit, or that is required and missing without a
// default, or a value without a field.
func (f *Form) Check(values map[string]mcp.RawValue) error {
	known := make(map[string]bool, len(f.Fields))
	for i := range f.Fields {
		field := &f.Fields[i]
		known[field.Name] = true
		value, given := values[field.Name]
		var err error
		switch {
		case given:
			err = field.Check(value)
		case field.Required && field.Default == nil:
			err = errRequired
		}
		if err != nil {
			return fmt.Errorf("%s: %w", field.Label, err)
		}
	}
	for name := range values {
		if !known[name] {
			return fmt.Errorf("the form has no field %q", name)
		}
	}
	return nil
}

// errRequired says that a field was left empty.
var errRequired = errors.New("it is required")

// Hint says in a few words what fits the field, and what an empty line means:
// "a whole number; Enter for 3". It is empty if there is nothing to say.
func (f *Field) Hint() string {
	var parts []string
	switch f.Kind {
	case KindBoolean:
		parts = append(parts, "yes or no")
	case KindChoice:
		parts = append(parts, "a number or name from the list")
	case KindChoices:
		parts = append(parts, "numbers or names, with commas between")
	default:
		if fits := f.Fits(); fits != "" {
			parts = append(parts, fits)
		}
	}
	switch {
	case f.Default != nil:
		parts = append(parts, "Enter for "+f.DefaultText())
	case !f.Required:
		parts = append(parts, "Enter to leave it out")
	}
	return strings.Join(parts, "; ")
}

// Fits says in a few words what fits a field that is typed: "a whole number". It is empty
// where any text does, and for fields with options.
func (f *Field) Fits() string {
	switch f.Kind {
	case KindNumber:
		return "a number"
	case KindInteger:
		return "a whole number"
	case KindEmail:
		return "a mail address"
	case KindURI:
		return "a whole URI"
	case KindDate:
		return "a date as year-month-day"
	case KindDateTime:
		return "a date and time with a zone"
	case KindJSON:
		return "a JSON value"
	case KindText, KindBoolean, KindChoice, KindChoices:
	}
	return ""
}

// DefaultText is the default as JSON on one line, shortened and escaped, or empty.
func (f *Field) DefaultText() string {
	if f.Default == nil {
		return ""
	}
	return compact(f.Default, maxName)
}

// compact is JSON on one line, shortened and escaped.
func compact(raw mcp.RawValue, limit int) string {
	lines := strings.Split(host.Indent(raw), "\n")
	for i := range lines {
		lines[i] = strings.TrimLeft(lines[i], " ")
	}
	// The layout of the value takes no part in its text: newlines in strings are escapes.
	joined := strings.NewReplacer("{ ", "{", " }", "}", "[ ", "[", " ]", "]").Replace(strings.Join(lines, " "))
	return host.EscapeLine(shorten(joined, limit))
}

// encode writes a value as JSON.
func encode(v any) (mcp.RawValue, error) {
	raw, err := strictjson.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("writing the value as JSON: %w", err)
	}
	return raw, nil
}
