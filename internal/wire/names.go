package wire

import (
	"cmp"
	"encoding"
	stdjson "encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// structNames are the members that a struct type knows.
type structNames struct {
	names  []string // in the order of the fields
	fields map[string]reflect.Type
	open   bool // has a map that takes all other members
}

// structs remembers what is known of struct types: map[reflect.Type]*structNames.
var structs sync.Map

// namesOf returns the members that struct type t knows.
func namesOf(t reflect.Type) *structNames {
	if n, ok := structs.Load(t); ok {
		return n.(*structNames)
	}
	n := &structNames{fields: map[string]reflect.Type{}}
	level, seen := []reflect.Type{t}, map[reflect.Type]bool{t: true}
	for len(level) > 0 { // outer fields hide inner ones
		var next []reflect.Type
		for _, s := range level {
			next = append(next, n.add(s, seen)...)
		}
		level = next
	}
	actual, _ := structs.LoadOrStore(t, n)
	return actual.(*structNames)
}

// add adds the fields of struct type t and returns the structs embedded in it.
func (n *structNames) add(t reflect.Type, seen map[reflect.Type]bool) (embedded []reflect.Type) {
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		inline := slices.ContainsFunc(strings.Split(options, ","), func(o string) bool {
			return o == "embed" || o == "inline" || o == "unknown"
		})
		ft := elem(f.Type)
		switch {
		case tag == "-" || !f.IsExported() && !f.Anonymous:
		case inline && ft.Kind() != reflect.Struct:
			n.open = true
		case inline || f.Anonymous && name == "":
			if ft.Kind() == reflect.Struct && !seen[ft] {
				seen[ft] = true
				embedded = append(embedded, ft)
			}
		default:
			name = cmp.Or(name, f.Name)
			if _, hidden := n.fields[name]; !hidden {
				n.names = append(n.names, name)
				n.fields[name] = f.Type
			}
		}
	}
	return embedded
}

// fieldNames returns the members that t knows, if it is a struct.
func fieldNames(t reflect.Type) []string {
	if t = elem(t); t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	return namesOf(t).names
}

// HasMember reports whether a member of that name can be decoded into t. Types that
// take any member, or decode themselves, have it.
func HasMember(t reflect.Type, name string) bool {
	if t = elem(t); t == nil || t.Kind() != reflect.Struct || decodesItself(t) {
		return true
	}
	n := namesOf(t)
	_, ok := n.fields[name]
	return ok || n.open
}

// KnowsMember reports whether t has a field for a member of that name. Other than
// [HasMember] it does not count those that take any member.
func KnowsMember(t reflect.Type, name string) bool {
	return slices.Contains(fieldNames(t), name)
}

func elem(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

var ownDecoders = []reflect.Type{
	reflect.TypeFor[stdjson.Unmarshaler](),
	reflect.TypeFor[json.UnmarshalerFrom](),
	reflect.TypeFor[encoding.TextUnmarshaler](),
}

// decodesItself says whether t has a decoding method of its own.
func decodesItself(t reflect.Type) bool {
	if t == reflect.TypeFor[jsontext.Value]() {
		return true
	}
	p := reflect.PointerTo(t)
	return slices.ContainsFunc(ownDecoders, p.Implements)
}

// opens remembers which types hold an open struct: map[reflect.Type]bool.
var opens sync.Map

// openStruct says whether t holds a struct that takes unknown members.
func openStruct(t reflect.Type) bool {
	if known, ok := opens.Load(t); ok {
		return known.(bool)
	}
	found := findOpen(t, map[reflect.Type]bool{})
	opens.Store(t, found)
	return found
}

func findOpen(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer:
		return findOpen(t.Elem(), seen)
	case reflect.Slice, reflect.Array:
		return !decodesItself(t) && findOpen(t.Elem(), seen)
	case reflect.Struct:
		if decodesItself(t) {
			return false
		}
		n := namesOf(t)
		if n.open {
			return true
		}
		for _, f := range n.fields {
			if findOpen(f, seen) {
				return true
			}
		}
	}
	return false
}

// checkTwins walks data along type t and refuses the twins of known names.
func checkTwins(data []byte, t reflect.Type) error {
	if _, _, err := scan(data, Limits{Depth: maxDepth}, nil); err != nil {
		return err
	}
	if err := twins(trim(data), t, nil); err != nil {
		return err
	}
	return nil
}

func twins(raw RawValue, t reflect.Type, path []string) *Error {
	t = elem(t)
	if decodesItself(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		if raw[0] != '{' {
			return nil // the decoder says so better
		}
		n := namesOf(t)
		for name, value := range indexObject(raw).All() {
			if twin := twinOf([]byte(name), n.names); twin != "" {
				return twinError(pointerOf(path), name, twin)
			}
			if f, ok := n.fields[name]; ok {
				if err := twins(value, f, append(path, name)); err != nil {
					return err
				}
			}
		}
	case reflect.Slice, reflect.Array:
		if raw[0] != '[' {
			return nil
		}
		for i, value := range elements(raw) {
			if err := twins(value, t.Elem(), append(path, strconv.Itoa(i))); err != nil {
				return err
			}
		}
	}
	return nil
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointerOf writes a path as a JSON pointer.
func pointerOf(path []string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteString(below(p))
	}
	return b.String()
}
