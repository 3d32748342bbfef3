package model

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/mcp"
)

// A Pair is an argument as a person writes it.
type Pair struct{ Key, Value string }

// Arguments makes the arguments of a call of key=value pairs, each read as the
// tool's input schema says. A key that is given several times is an array, with
// an item of each. A key that the schema does not know goes as JSON if it is
// some, else as a text: the server decides about it.
func Arguments(input mcp.RawValue, pairs []Pair) (mcp.RawValue, error) {
	fields := fieldsOf(input)
	out := []byte{'{'}
	done := make(map[string]bool)
	for _, p := range pairs {
		if done[p.Key] {
			continue
		}
		done[p.Key] = true
		fd := field{name: p.Key}
		for _, known := range fields {
			if known.name == p.Key {
				fd = known
			}
		}
		value, err := fd.argument(pairs)
		if err != nil {
			return nil, err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, encode(p.Key)...), ':'), value...)
	}
	return append(out, '}'), nil
}

// argument reads the value, or the values, that pairs have for the field.
func (fd *field) argument(pairs []Pair) (mcp.RawValue, error) {
	var texts []string
	for _, p := range pairs {
		if p.Key == fd.name {
			texts = append(texts, p.Value)
		}
	}
	if len(texts) == 1 {
		value, ok := fd.value(texts[0])
		if !ok {
			return nil, fmt.Errorf("argument %s: %q is %s", fd.name, texts[0], fd.wanted())
		}
		return value, nil
	}
	if fd.typ != "array" {
		return nil, fmt.Errorf("argument %q is given twice, and is no array", fd.name)
	}
	item := field{name: fd.name, typ: fd.items}
	out := []byte{'['}
	for i, text := range texts {
		value, ok := item.value(text)
		if !ok {
			return nil, fmt.Errorf("argument %s: %q is %s", fd.name, text, item.wanted())
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, value...)
	}
	return append(out, ']'), nil
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

// CheckObject says why raw is not a valid JSON object, or nil.
func CheckObject(raw mcp.RawValue) error {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("it begins with no {")
	}
	var members map[string]mcp.RawValue
	return anything.Decode(raw, &members)
}
