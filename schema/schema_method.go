package schema

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
)

// schemaMethod is the method by which a type says its schema itself.
const schemaMethod = "JSONSchema"

// noOwnKeywords are keywords that speak of the whole document.
var noOwnKeywords = strings.Fields("$ref $dynamicRef $recursiveRef $id $schema $anchor $dynamicAnchor $recursiveAnchor")

// own makes the node of a type that says its schema itself, or of which
// Options.Types says it.
func (w *walk) own(n *node, t reflect.Type) error {
	raw, listed := w.types[t]
	if !listed {
		var err error
		if raw, err = askSchema(t); err != nil {
			return w.errorf("method %s of %s: %w", schemaMethod, t, err)
		}
		if inner := embeddedSchemaType(t, raw); inner != nil {
			return w.errorf("method %s of %s is that of the embedded %s, which says nothing of the other fields; "+
				"give %s a method of its own, or the embedded field a name in its json tag", schemaMethod, t, inner, t)
		}
	}
	own, err := Compile(raw, &Limits{IgnoreHeaders: true})
	if err != nil {
		return w.errorf("schema given for %s: %w", t, err)
	}
	if err := standsAlone(raw, wire.SkipSpace(raw, 0), false); err != nil {
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

// embeddedSchemaType returns the embedded type that a struct has its schema from, which raw
// is, if the struct has more fields than that. A struct that has the JSON form of
// what it embeds too is none.
func embeddedSchemaType(t reflect.Type, raw wire.RawValue) reflect.Type {
	if t.Kind() != reflect.Struct || t.NumField() < 2 || codesJSON(t) || codesText(t) {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if inner := deref(f.Type); f.Anonymous && inner.Kind() != reflect.Interface && hasSchemaMethod(inner) {
			if own, err := askSchema(inner); err == nil && bytes.Equal(own, raw) {
				return inner
			}
		}
	}
	return nil
}

// standsAlone refuses what means something else inside another schema than the one
// at i. If that has schemas by name, the names are no keywords.
func standsAlone(raw wire.RawValue, i int, byName bool) (err error) {
	wire.EachMember(raw, i, func(name string, at int) int {
		switch {
		case byName:
		case slices.Contains(noOwnKeywords, name):
			err = fmt.Errorf("%s does not work inside another schema; write out what it stands for", name)
			return -1
		case name == "const" || name == "enum" || name == "default" || name == "examples":
			return wire.SkipValue(raw, at)
		}
		inner := func(at int) int {
			if raw[at] == '{' {
				if err = standsAlone(raw, at, !byName && slices.Contains(mapOfSchemas, name)); err != nil {
					return -1
				}
			}
			return wire.SkipValue(raw, at)
		}
		if raw[at] == '[' {
			return wire.EachElement(raw, at, inner)
		}
		return inner(at)
	})
	return err
}

// jsonType is the JSON type that a node demands, or "".
func (n *node) jsonType() string {
	if n.own != nil {
		return n.own.typ
	}
	return types[n.kind].String()
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
	keyword, end := "allOf", "]"
	if n.nullable {
		keyword, end = "anyOf", `,{"type":"null"}]`
	}
	dst = append(append(append(appendMember(dst, start, keyword), '['), inner...), end...)
	if f != nil && f.fallback != nil {
		dst = append(appendMember(dst, start, "default"), f.fallback.raw...)
	}
	return append(dst, '}')
}

// digits returns the format of a number in a string, as the json option "string"
// writes it, and keys of maps are. Tags do not bound it.
func digits(kind nodeKind, bits int) *format {
	what, pattern := "a number", "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?$"
	parse := func(s string) (err error) { _, err = strconv.ParseFloat(s, bits); return err }
	switch kind {
	case kindInt:
		what, pattern = "an integer", "^-?(0|[1-9][0-9]*)$"
		parse = func(s string) (err error) { _, err = strconv.ParseInt(s, 10, bits); return err }
	case kindUint:
		what, pattern = "an integer of 0 or more", "^(0|[1-9][0-9]*)$"
		parse = func(s string) (err error) { _, err = strconv.ParseUint(s, 10, bits); return err }
	default:
	}
	valid := func(text []byte) bool { return isNumber(string(text)) && parse(string(text)) == nil }
	return &format{reason: "expected " + what + " in a string", valid: valid, pattern: pattern}
}

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
	n := &node{kind: kindString, format: digits(kind, inner.Bits()), length: anyLength}
	w.nodes = append(w.nodes, n)
	return n, nil
}
