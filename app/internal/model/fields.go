package model

import (
	"slices"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
)

// A field is one argument of a tool, so far as the planner understands it.
type field struct {
	name     string
	typ      string // JSON type, or "" if any will do
	items    string // type of the items of an array
	format   string
	enum     []string
	required bool
}

func (fd field) numeric() bool { return fd.typ == "number" || fd.typ == "integer" }
func (fd field) textual() bool {
	return fd.typ == "string" && len(fd.enum) == 0 && fd.format == ""
}

// anything decodes JSON strictly.
var anything = func() *schema.Compiled {
	c, err := schema.Compile(mcp.RawValue("{}"), nil)
	if err != nil {
		panic(err) // the empty schema is one
	}
	return c
}()

func valid(raw mcp.RawValue) bool {
	var v mcp.RawValue
	return anything.Decode(raw, &v) == nil
}

// decode reads a value if it is of the type of v, and leaves v alone if not.
func decode[T any](raw mcp.RawValue, v *T) {
	var got T
	if len(raw) > 0 && anything.Decode(raw, &got) == nil {
		*v = got
	}
}

// fieldsOf reads the arguments of a tool from its schema, those that are
// required first, in the order that the schema requires them, then the others
// by name.
func fieldsOf(input mcp.RawValue) []field {
	var root, properties map[string]mcp.RawValue
	var required []string
	decode(input, &root)
	decode(root["properties"], &properties)
	decode(root["required"], &required)
	fields := make([]field, 0, len(properties))
	for name, raw := range properties {
		fields = append(fields, fieldOf(name, raw, slices.Contains(required, name)))
	}
	place := func(fd field) int {
		if i := slices.Index(required, fd.name); i >= 0 {
			return i
		}
		return len(required)
	}
	slices.SortFunc(fields, func(a, b field) int {
		if d := place(a) - place(b); d != 0 {
			return d
		}
		return strings.Compare(a.name, b.name)
	})
	return fields
}

func fieldOf(name string, raw mcp.RawValue, required bool) field {
	fd := field{name: name, required: required}
	var members, items map[string]mcp.RawValue
	decode(raw, &members)
	fd.typ = typeOf(members)
	decode(members["format"], &fd.format)
	decode(members["enum"], &fd.enum)
	decode(members["items"], &items)
	fd.items = typeOf(items)
	return fd
}

// typeOf returns the type that a schema demands; of several, the first that is
// not null.
func typeOf(members map[string]mcp.RawValue) string {
	var one string
	decode(members["type"], &one)
	var several []string
	decode(members["type"], &several)
	for _, t := range several {
		if t != "null" && one == "" {
			one = t
		}
	}
	return one
}

// find returns the field that a key names.
func find(fields []field, key string) *field {
	for i := range fields {
		if fields[i].name == key {
			return &fields[i]
		}
	}
	for i := range fields {
		if sameName(fields[i].name, key) {
			return &fields[i]
		}
	}
	return nil
}

// sameName compares names without case, dashes and underscores.
func sameName(a, b string) bool {
	plain := strings.NewReplacer("-", "", "_", "")
	return strings.EqualFold(plain.Replace(a), plain.Replace(b))
}
