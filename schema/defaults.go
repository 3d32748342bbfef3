package schema

import (
	"fmt"
	"reflect"

	"github.com/parley-mcp/parley/internal/wire"
)

// fill puts the defaults of members that raw lacks into v, which was decoded
// from raw. Both fit s.
func fill(s *constraint, raw []byte, v reflect.Value) error {
	f := filler{raw: raw}
	f.value(s, wire.SkipSpace(raw, 0), v)
	return f.err
}

type filler struct {
	raw []byte
	err error
}

// value fills v from the value at i and returns the position after it.
func (f *filler) value(s *constraint, i int, v reflect.Value) int {
	for s.same != nil {
		s = s.same
	}
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	c := wire.At(f.raw, i)
	switch {
	case !s.defaults || f.err != nil || v.Kind() == reflect.Pointer:
	case c == '{' && s.object != nil && v.Kind() == reflect.Struct:
		return f.object(s.object, i, v)
	case c == '[' && s.array != nil:
		return f.array(s.array, i, v)
	case c == '{' && s.object != nil && plainKey(v.Type().Key()):
		return f.mapping(s.object, i, v)
	}
	return wire.SkipValue(f.raw, i)
}

func (f *filler) array(a *arrayConstraint, i int, v reflect.Value) int {
	at := 0
	i, last := wire.First(f.raw, i, ']')
	for !last && i >= 0 && at < v.Len() {
		i, last = wire.Next(f.raw, f.value(a.items, i, v.Index(at)), ']')
		at++
	}
	return i
}

func (f *filler) mapping(o *objectConstraint, i int, v reflect.Value) int {
	return wire.EachMember(f.raw, i, func(name string, value int) int {
		key := reflect.ValueOf(name).Convert(v.Type().Key())
		element := reflect.New(v.Type().Elem()).Elem()
		if old := v.MapIndex(key); old.IsValid() {
			element.Set(old)
		}
		end := f.value(o.extra, value, element)
		v.SetMapIndex(key, element)
		return end
	})
}

func (f *filler) object(o *objectConstraint, i int, v reflect.Value) int {
	var seen memberSet
	seen.make(len(o.fields))
	expect := 0
	var scratch []byte
	i, last := wire.First(f.raw, i, '}')
	for !last && i >= 0 {
		nameEnd, escaped, value := wire.MemberAt(f.raw, i)
		if nameEnd < 0 {
			return -1
		}
		name := f.raw[i+1 : nameEnd-1]
		if escaped {
			scratch = wire.AppendUnquoted(scratch[:0], f.raw[i:nameEnd])
			name = scratch
		}
		at := o.find(name, expect)
		end := -1
		if at >= 0 {
			expect = at + 1
			seen.add(at)
			if inner := o.members[at].constraint; inner.defaults {
				if member, err := v.FieldByIndexErr(o.fields[at].index); err == nil {
					end = f.value(inner, value, member)
				}
			}
		}
		if end < 0 {
			end = wire.SkipValue(f.raw, value)
		}
		i, last = wire.Next(f.raw, end, '}')
	}
	f.absent(o, &seen, v)
	return i
}

// absent gives the members of a struct that are not there their defaults. A
// struct that is not there gets the defaults of its members, as an empty one would.
func (f *filler) absent(o *objectConstraint, seen *memberSet, v reflect.Value) {
	for at := range o.fields {
		m, inner := &o.fields[at], o.members[at].constraint
		if seen.has(at) || m.fallback == nil && (!inner.defaults || m.typ.Kind() != reflect.Struct) || f.err != nil {
			continue
		}
		target, err := v.FieldByIndexErr(m.index)
		if err != nil {
			continue // in a struct embedded by pointer, which is nil
		}
		switch {
		case m.fallback == nil:
			f.err = fill(inner, []byte("{}"), target)
		case m.fallback.plain.IsValid():
			target.Set(m.fallback.plain)
		default:
			if err := wire.Decode(m.fallback.raw, target.Addr().Interface()); err != nil {
				f.err = fmt.Errorf("default of %s: %w", o.members[at].name, err)
			}
		}
	}
}
