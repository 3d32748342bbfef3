// Package schema makes, bounds and checks JSON Schemas. One walk over a Go
// type gives the schema to advertise, the defaults, a validator and the header
// bindings ([For], [Of], [Elicitation]); schemas written by others are
// compiled with bounds and without loaders ([Compile]). Both give a
// [Compiled], made once at registration and never per call.
//
// # Tags
//
// The walk follows the JSON names of a struct and these tags, each with a key
// of its own:
//
//	desc     description
//	title    title
//	min max  bounds of a number (of the items, on a slice of numbers)
//	minlen   least length: characters of a string, items of a slice, members of a map
//	maxlen   greatest length, likewise
//	pattern  regular expression (RE2) that a string must contain
//	enum     allowed values, separated by commas; on a slice, of its items
//	titles   titles of the values of enum, separated by commas, in their order
//	format   email, uri, date, date-time, uuid, hostname, ipv4 or ipv6; on a slice, of its items
//	default  value if the member is absent; the member becomes optional
//	header   name of the HTTP header Mcp-Param-{name} that repeats the member
//
// For types that serve other libraries too, some of their tags are read: a plain
// text in jsonschema, and description and jsonschema_description, are desc;
// minimum, maximum, minLength, maxLength, minItems and maxItems are min, max,
// minlen and maxlen. A jsonschema tag with options (required,minimum=1) is an
// error that says what to write. The tags required, validate, binding, mcp and
// all others are ignored: they check nothing here.
//
// A pointer, omitzero, omitempty or a default makes a member optional; null is
// never allowed for it in what comes in. In outputs a pointer without omitzero
// is required, and may be null. Slices are arrays, maps objects, embedded
// structs are inlined, recursive types go to $defs. time.Time is a date-time,
// time.Duration a string such as "1m30s", []byte a base64 string, types with
// MarshalText a string, numbers with the json option string a string of digits;
// any, raw values and types with a JSON method of their own allow everything.
// Structs refuse members they do not know unless they have an inlined map. A
// blank field (_ struct{}) with title and desc describes its struct.
//
// # Schemas of your own
//
// A type with a method JSONSchema says itself what it looks like: enums, unions,
// types with MarshalJSON. The method has no parameters and one result, which is
// the text of a schema ([]byte, string) or encodes as one (a map, a struct); it is
// called on a zero value. Options.Types does the same for types of others. Such
// a schema stands inside a larger one, so it cannot refer to itself with $ref. A
// struct cannot have the method of a struct that it embeds, which would hide its
// other fields.
package schema

import (
	"fmt"
	"math"
	"reflect"

	"github.com/parley-mcp/parley/internal/wire"
)

// Compiled is a schema that is ready to check values. It never changes and may
// be used by many goroutines.
type Compiled struct {
	json    wire.RawValue
	typ     string // JSON type of the root, "" if not one
	headers []HeaderBinding
	secrets []string

	// Of an inferred schema:
	inferred *constraints
	goType   reflect.Type
	lenient  bool // unknown members are allowed
	flat     bool // isFlat

	// Of a foreign one, or an edited one, which has the above too:
	foreign *foreign
}

// Options change how a schema is inferred. Nil is the same as the zero value.
type Options struct {
	// AllowAdditional lets structs have members they do not know. Default:
	// such members are refused, and the schema says so.
	AllowAdditional bool
	// Output says that values of the type will be encoded, not decoded: a
	// pointer member without omitzero is then required and may be null.
	// Default: input.
	Output bool
	// Types are the schemas of types that cannot say theirs themselves, as
	// JSON text; each holds wherever the type is used, also by pointer. Default
	// none.
	Types map[reflect.Type]wire.RawValue
}

// For infers the schema of the type t and of what it is made of. A type or tag
// that cannot be expressed is an error that names the type, the field and the
// fix.
func For(t reflect.Type, o *Options) (*Compiled, error) {
	if o == nil {
		o = &Options{}
	}
	return infer(t, walkOptions{additional: o.AllowAdditional, output: o.Output, types: o.Types})
}

// Of is [For] the type T.
func Of[T any](o *Options) (*Compiled, error) {
	return For(reflect.TypeFor[T](), o)
}

// Elicitation infers the flat schema of a form: a struct whose fields are
// strings, numbers, booleans, times, enums or slices of enums, with the formats
// email, uri, date and date-time (spec 2026-07-28, client/elicitation,
// Requested Schema). The error names the field that a form cannot have.
func Elicitation(t reflect.Type) (*Compiled, error) {
	return infer(t, walkOptions{additional: true, form: true})
}

// Edit returns a schema with another text for the same Go type: values are
// checked against raw, as [Compile] makes it, and decoded into the type, whose
// defaults are filled in; members that the type does not know are then ignored.
// raw must demand the same JSON type.
func (c *Compiled) Edit(raw wire.RawValue, o *Limits) (*Compiled, error) {
	edited, err := Compile(raw, o)
	if err != nil {
		return nil, err
	}
	if edited.typ != c.typ {
		return nil, fmt.Errorf("%w: its type is %q, that of the Go type is %q", ErrInvalid, edited.typ, c.typ)
	}
	edited.inferred, edited.goType, edited.lenient = c.inferred, c.goType, true
	return edited, nil
}

// JSON returns the text of the schema to advertise. It must not be changed.
func (c *Compiled) JSON() wire.RawValue { return c.json }

// Type returns the JSON type that the root of the schema demands, such as
// "object", or "" if it demands none or several.
func (c *Compiled) Type() string { return c.typ }

// Headers returns the members that are repeated in HTTP headers, in the order
// of the schema.
func (c *Compiled) Headers() []HeaderBinding { return c.headers }

// SecretMembers returns the names of members that look like secrets (password,
// token, apiKey), for warnings at registration.
func (c *Compiled) SecretMembers() []string { return c.secrets }

// Check says whether raw, which must have passed the strict pass of the wire,
// fits the schema. Empty raw counts as an empty object if the schema demands
// an object. The error is an [*Error] with up to [MaxProblems] problems, none of which
// shows a value, or wraps [ErrTooComplex] if checking would cost too much.
func (c *Compiled) Check(raw wire.RawValue) error {
	raw = c.orEmpty(raw)
	if c.foreign != nil {
		return c.foreign.check(raw)
	}
	err, _ := c.inferred.validate(raw, math.MaxInt)
	return err
}

// Decode checks raw as [Compiled.Check] does, decodes it into v, a pointer to
// a zero value of the type the schema was inferred from, and fills in the
// defaults of members that are absent. Members that the type does not know are
// refused. With a foreign schema v may be any pointer, and no defaults are
// filled in.
func (c *Compiled) Decode(raw wire.RawValue, v any) error {
	raw = c.orEmpty(raw)
	if c.foreign != nil {
		if err := c.foreign.check(raw); err != nil {
			return err
		}
		if c.inferred == nil {
			return wire.Decode(raw, v)
		}
	}
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() || target.Type().Elem() != c.goType {
		return fmt.Errorf("decoding into %T: the schema was made for *%s", v, c.goType)
	}
	var err error
	if c.foreign != nil {
		raw = c.inferred.respell(raw)
	} else if raw, err = c.inferred.validateGo(raw); err != nil {
		return err
	}
	if c.flat && target.Elem().IsZero() {
		if c.inferred.decodeFlat(raw, target.Elem()) {
			return nil
		}
		target.Elem().SetZero()
	}
	if c.lenient {
		err = wire.Decode(raw, v)
	} else {
		err = wire.DecodeKnown(raw, v)
	}
	if err != nil {
		return err
	}
	if root := c.inferred.root; root.defaults {
		return fill(root, raw, target.Elem())
	}
	return nil
}

// orEmpty lets absent arguments be an empty object.
func (c *Compiled) orEmpty(raw wire.RawValue) wire.RawValue {
	if len(raw) == 0 && c.typ == "object" {
		return wire.RawValue("{}")
	}
	return raw
}
