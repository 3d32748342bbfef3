package uritemplate

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// Binder puts the variables of one template into a struct. It never changes
// and may be used by many goroutines.
type Binder struct {
	typ    reflect.Type
	fields []boundField
	whole  bool // typ is Values
}

type boundField struct {
	variable string
	index    []int
}

var (
	textType   = reflect.TypeFor[encoding.TextUnmarshaler]()
	valuesType = reflect.TypeFor[Values]()
)

// Bind matches the fields of the struct type t, by their tag uri:"name", with
// the variables of a template. A field is a string, integer, boolean, a type
// with UnmarshalText or a pointer to one of these; an exploded variable is a
// []string, and none of a simple expression: {x*} is a list with commas, which
// is hardly ever meant. Each variable needs a field and each tagged field a variable; the
// error names the one that has none. t may also be [Values], which takes all.
func Bind(t reflect.Type, tmpl *Template) (*Binder, error) {
	if t == valuesType {
		return &Binder{typ: t, whole: true}, nil
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("variables of %s: want a struct with uri tags, not %v", tmpl, t)
	}
	missing := tmpl.Variables()
	b := &Binder{typ: t}
	for _, f := range reflect.VisibleFields(t) {
		name, ok := f.Tag.Lookup("uri")
		if !ok {
			continue
		}
		at := slices.Index(missing, name)
		if at < 0 {
			return nil, fmt.Errorf("field %s.%s: uri:%q is no variable of %s, or bound before", t, f.Name, name, tmpl)
		}
		if byPointer(t, f.Index) {
			return nil, fmt.Errorf("field %s.%s: it is in a struct embedded by pointer; embed the struct itself", t, f.Name)
		}
		if tmpl.plainList(name) {
			return nil, fmt.Errorf("field %s.%s: {%s*} is a list with commas and matches no slash; write {+%s} for a text with slashes, "+
				"{/%s*} for the segments of a path, {%s} for one value, or take Values", t, f.Name, name, name, name, name)
		}
		if err := bindable(f, tmpl.explodes(name)); err != nil {
			return nil, fmt.Errorf("field %s.%s: %w", t, f.Name, err)
		}
		missing = slices.Delete(missing, at, at+1)
		b.fields = append(b.fields, boundField{name, f.Index})
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("variable %s of %s has no field in %s; add one with the tag uri:%q", missing[0], tmpl, t, missing[0])
	}
	return b, nil
}

// byPointer says whether an embedded pointer leads to a field.
func byPointer(t reflect.Type, index []int) bool {
	for _, i := range index {
		if t.Kind() == reflect.Pointer {
			return true
		}
		t = t.Field(i).Type
	}
	return false
}

func (t *Template) explodes(name string) bool {
	for _, p := range t.parts {
		for _, v := range p.variables {
			if v.name == name {
				return v.explode
			}
		}
	}
	return false
}

// plainList says whether a variable is exploded in a simple expression.
func (t *Template) plainList(name string) bool {
	for _, p := range t.parts {
		for _, v := range p.variables {
			if v.name == name {
				return v.explode && p.operator == 0
			}
		}
	}
	return false
}

func bindable(f reflect.StructField, exploded bool) error {
	if !f.IsExported() {
		return fmt.Errorf("it is not exported")
	}
	t := f.Type
	if exploded {
		if t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.String {
			return fmt.Errorf("the variable is exploded; want []string, not %s", t)
		}
		return nil
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(textType) {
		return nil
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return nil
	case reflect.Slice:
		return fmt.Errorf("the variable has one value; write {/%s*} or the like to explode it, or use a string", f.Tag.Get("uri"))
	}
	return fmt.Errorf("type %s cannot be read from a URI; use a string, an integer or a boolean", f.Type)
}

// Decode sets the fields of v, a pointer to a zero value of the binder's type.
// Fields of variables that are absent stay zero. The error names the variable
// and what was expected.
func (b *Binder) Decode(values Values, v any) error {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() || target.Type().Elem() != b.typ {
		return fmt.Errorf("variables for %T: the binder was made for *%s", v, b.typ)
	}
	target = target.Elem()
	if b.whole {
		target.Set(reflect.ValueOf(values))
		return nil
	}
	for _, f := range b.fields {
		list := values[f.variable]
		if len(list) == 0 {
			continue
		}
		if err := set(target.FieldByIndex(f.index), list); err != nil {
			return fmt.Errorf("variable %s: %w", f.variable, err)
		}
	}
	return nil
}

func set(v reflect.Value, list []string) error {
	if v.Kind() == reflect.Slice && !v.Addr().Type().Implements(textType) {
		out := reflect.MakeSlice(v.Type(), len(list), len(list))
		for i, s := range list {
			out.Index(i).SetString(s)
		}
		v.Set(out)
		return nil
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	text := list[0]
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if u.UnmarshalText([]byte(text)) != nil {
			return fmt.Errorf("expected %s", v.Type())
		}
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("expected true or false")
		}
		v.SetBool(text == "true")
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, v.Type().Bits())
		if err != nil || strconv.FormatUint(n, 10) != text {
			return fmt.Errorf("expected an integer from 0 in the range of %s", v.Type())
		}
		v.SetUint(n)
	default:
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil || strconv.FormatInt(n, 10) != text {
			return fmt.Errorf("expected an integer in the range of %s", v.Type())
		}
		v.SetInt(n)
	}
	return nil
}
