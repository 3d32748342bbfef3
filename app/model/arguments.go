package model

import (
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/mcp"
)

// A Pair is an argument as a person writes it.
type Pair struct{ Key, Value string }

// Arguments makes the arguments of a call of key=value pairs, each read as the
// tool's input schema says. A key that the schema does not know goes as JSON if
// it is some, else as a text: the server decides about it.
func Arguments(input mcp.RawValue, pairs []Pair) (mcp.RawValue, error) {
	fields := fieldsOf(input)
	out := []byte{'{'}
	for i, p := range pairs {
		fd := field{name: p.Key}
		for _, known := range fields {
			if known.name == p.Key {
				fd = known
			}
		}
		value, ok := fd.value(p.Value)
		if !ok {
			return nil, fmt.Errorf("argument %s: %q is %s", p.Key, p.Value, fd.wanted())
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, encode(p.Key)...), ':'), value...)
	}
	return append(out, '}'), nil
}

// wanted says what a value should have been.
func (fd *field) wanted() string {
	if len(fd.enum) > 0 {
		return "none of " + strings.Join(fd.enum, ", ")
	}
	return "no " + fd.typ
}

// Signature lists the arguments of a tool for a person: "a: number", and a
// question mark after those that can be left out.
func Signature(input mcp.RawValue) []string {
	var list []string
	for _, fd := range fieldsOf(input) {
		s := fd.name
		if !fd.required {
			s += "?"
		}
		if fd.typ != "" {
			s += ": " + fd.typ
		}
		list = append(list, s)
	}
	return list
}

// IsObject reports whether raw is a valid JSON object.
func IsObject(raw mcp.RawValue) bool {
	var members map[string]mcp.RawValue
	return len(raw) > 0 && anything.Decode(raw, &members) == nil && members != nil
}
