package schema

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/parley-mcp/parley/internal/wire"
)

// schemaMethod is the method by which a type says its schema itself.
const schemaMethod = "JSONSchema"

// own makes the node of a type that says its schema itself, or of which
// Options.Types says it.
func (w *walk) own(n *node, t reflect.Type) error {
	raw, listed := w.types[t]
	if !listed {
		var err error
		if raw, err = askSchema(t); err != nil {
			return w.errorf("method %s of %s: %w", schemaMethod, t, err)
		}
		if inner := lender(t, raw); inner != nil {
			return w.errorf("method %s of %s is that of the embedded %s, which says nothing of the other fields; "+
				"give %s a method of its own, or the embedded field a name in its json tag", schemaMethod, t, inner, t)
		}
	}
	own, err := Compile(raw, &Limits{IgnoreHeaders: true})
	if err != nil {
		return w.errorf("schema given for %s: %w", t, err)
	}
	if err := standsAlone(raw); err != nil {
		return w.errorf("schema given for %s: %w", t, err)
	}
	n.own = own
	return nil
}

// askSchema calls the method of a type.
func askSchema(t reflect.Type) (raw wire.RawValue, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("it panicked on a zero value: %v", v)
		}
	}()
	m := reflect.New(t).MethodByName(schemaMethod)
	if m.Type().NumIn() != 0 || m.Type().NumOut() != 1 {
		return nil, errors.New("want no parameters and one result, the text of a schema")
	}
	out := m.Call(nil)[0]
	switch {
	case out.Kind() == reflect.String:
		return wire.RawValue(out.String()), nil
	case out.Kind() == reflect.Slice && out.Type().Elem().Kind() == reflect.Uint8:
		return wire.RawValue(out.Bytes()), nil
	}
	return wire.Marshal(out.Interface())
}

// lender returns the embedded type that a struct has its schema from, which raw
// is, if the struct has more fields than that. A struct that has the JSON form of
// what it embeds too is none.
func lender(t reflect.Type, raw wire.RawValue) reflect.Type {
	if t.Kind() != reflect.Struct || t.NumField() < 2 || hasMethod(t, "MarshalJSON", "UnmarshalJSON", "MarshalJSONTo", "UnmarshalJSONFrom", "MarshalText", "UnmarshalText", "AppendText") {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if inner := deref(f.Type); f.Anonymous && inner.Kind() != reflect.Interface && hasMethod(inner, schemaMethod) {
			if own, err := askSchema(inner); err == nil && bytes.Equal(own, raw) {
				return inner
			}
		}
	}
	return nil
}

// standsAlone refuses what means something else inside another schema.
func standsAlone(raw wire.RawValue) error {
	o, err := wire.ParseObject(raw, wire.Limits{Depth: maxNesting})
	if err != nil {
		return err
	}
	for name, value := range o.All() {
		switch name {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
			if err := eachStandsAlone(value); err != nil {
				return err
			}
			continue
		case "$ref", "$dynamicRef", "$recursiveRef", "$id", "$schema", "$anchor", "$dynamicAnchor", "$recursiveAnchor":
			return fmt.Errorf("%s does not work inside another schema; write out what it stands for", name)
		}
		values := []wire.RawValue{value}
		if value[0] == '[' {
			if values, err = wire.ParseArray(value, wire.Limits{Depth: maxNesting}, 0); err != nil {
				return err
			}
		}
		for _, v := range values {
			if v[0] != '{' || name == "const" || name == "enum" || name == "default" || name == "examples" {
				continue
			}
			if err := standsAlone(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachStandsAlone is standsAlone for schemas by name. The names are no keywords.
func eachStandsAlone(raw wire.RawValue) error {
	o, err := wire.ParseObject(raw, wire.Limits{Depth: maxNesting})
	if err != nil {
		return err
	}
	for _, value := range o.All() {
		if value[0] != '{' {
			continue
		}
		if err := standsAlone(value); err != nil {
			return err
		}
	}
	return nil
}

// jsonType is the JSON type that a node demands, or "".
func (n *node) jsonType() string {
	if n.own != nil {
		return n.own.typ
	}
	return types[n.kind]
}

// appendWrapped prints a schema that cannot take more keywords of ours: those of
// its field go around it.
func (n *node) appendWrapped(dst []byte, f *field) []byte {
	var inner []byte
	if n.own != nil {
		inner = n.own.json
	} else {
		bare := *n
		bare.nullable, bare.title, bare.desc = false, "", ""
		inner = bare.append(nil, nil, nil)
	}
	if !n.nullable && n.title == "" && n.desc == "" && (f == nil || f.fallback == nil && f.header == "") {
		return append(dst, inner...)
	}
	start := len(dst)
	dst = append(dst, '{')
	if n.title != "" {
		dst = wire.AppendString(appendMember(dst, start, "title"), n.title)
	}
	if n.desc != "" {
		dst = wire.AppendString(appendMember(dst, start, "description"), n.desc)
	}
	if n.nullable {
		dst = append(append(appendMember(dst, start, "anyOf"), '['), inner...)
		dst = append(dst, `,{"type":"null"}]`...)
	} else {
		dst = append(append(appendMember(dst, start, "allOf"), '['), inner...)
		dst = append(dst, ']')
	}
	if f != nil && f.fallback != nil {
		dst = append(appendMember(dst, start, "default"), f.fallback.raw...)
	}
	return append(dst, '}')
}

// own checks the value at i against the schema that its type has given.
func (k *checker) own(n *node, i int) int {
	end := k.skip(i)
	if k.broken {
		return end
	}
	err := n.own.Check(k.raw[i:end])
	var e *Error
	switch {
	case err == nil:
	case errors.As(err, &e):
		here := k.pointer()
		for _, p := range e.Problems {
			if len(k.problems) == MaxProblems {
				k.more = true
				break
			}
			k.problems = append(k.problems, Problem{Pointer: here + p.Pointer, Reason: p.Reason})
		}
		k.more = k.more || e.More
	default:
		k.fail(err.Error())
	}
	return end
}

// Numbers in strings, as the json option "string" writes them.
var (
	digitPatterns = map[nodeKind]string{
		kindInt: "^-?(0|[1-9][0-9]*)$", kindUint: "^(0|[1-9][0-9]*)$",
		kindFloat: "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?$",
	}
	digitWords = map[nodeKind]string{kindInt: "an integer", kindUint: "an integer of 0 or more", kindFloat: "a number"}
)

// quoted walks a number that its json tag puts into a string.
func (w *walk) quoted(t reflect.Type, tags *tagSet) (*node, error) {
	inner := deref(t)
	kind := w.classify(inner)
	if kind != kindInt && kind != kindUint && kind != kindFloat || w.form {
		return nil, w.errorf("the json option \"string\" fits numbers only, not %s", t)
	}
	if name := tags.any(); name != "" && name != "header" {
		return nil, w.errorf("tag %s cannot be said of a number in a string; leave the json option \"string\" out", name)
	}
	n := &node{kind: kindString, digits: kind, digitsBits: inner.Bits(), minLen: -1, maxLen: -1}
	w.nodes = append(w.nodes, n)
	return n, nil
}

// isDigits says whether a text is a number of the node's kind and size.
func (n *node) isDigits(s string) bool {
	if !isNumber(s) {
		return false
	}
	var err error
	switch n.digits {
	case kindInt:
		_, err = strconv.ParseInt(s, 10, n.digitsBits)
	case kindUint:
		_, err = strconv.ParseUint(s, 10, n.digitsBits)
	default:
		_, err = strconv.ParseFloat(s, n.digitsBits)
	}
	return err == nil
}
