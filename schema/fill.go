package schema

import (
	"fmt"
	"reflect"

	"github.com/parley-mcp/parley/internal/wire"
)

// fill puts the defaults of members that raw lacks into v, which was decoded
// from raw. Both fit the node.
func fill(n *node, raw []byte, v reflect.Value) error {
	f := filler{raw: raw}
	f.value(n, skipSpace(raw, 0), v)
	return f.err
}

type filler struct {
	raw []byte
	err error
}

// value fills v from the value at i and returns the position after it.
func (f *filler) value(n *node, i int, v reflect.Value) int {
	if n.kind == kindRef {
		n = n.ref
	}
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	c := byteAt(f.raw, i)
	switch {
	case !n.defaults || f.err != nil || v.Kind() == reflect.Pointer:
	case n.kind == kindStruct && c == '{':
		return f.object(n, i, v)
	case n.kind == kindArray && c == '[':
		return f.array(n, i, v)
	case n.kind == kindMap && c == '{' && plainKey(v.Type().Key()):
		return f.mapping(n, i, v)
	}
	return skipValue(f.raw, i)
}

func (f *filler) array(n *node, i int, v reflect.Value) int {
	at := 0
	i, last := first(f.raw, i, ']')
	for !last && i >= 0 && at < v.Len() {
		i, last = next(f.raw, f.value(n.items, i, v.Index(at)), ']')
		at++
	}
	return i
}

func (f *filler) mapping(n *node, i int, v reflect.Value) int {
	i, last := first(f.raw, i, '}')
	for !last && i >= 0 {
		nameEnd, _, value := memberAt(f.raw, i)
		if nameEnd < 0 {
			return -1
		}
		key := reflect.ValueOf(string(unquote(nil, f.raw[i+1:nameEnd-1]))).Convert(v.Type().Key())
		element := reflect.New(v.Type().Elem()).Elem()
		if old := v.MapIndex(key); old.IsValid() {
			element.Set(old)
		}
		end := f.value(n.items, value, element)
		v.SetMapIndex(key, element)
		i, last = next(f.raw, end, '}')
	}
	return i
}

func (f *filler) object(n *node, i int, v reflect.Value) int {
	var seen present
	seen.make(len(n.fields))
	expect := 0
	var scratch []byte
	i, last := first(f.raw, i, '}')
	for !last && i >= 0 {
		nameEnd, escaped, value := memberAt(f.raw, i)
		if nameEnd < 0 {
			return -1
		}
		name := f.raw[i+1 : nameEnd-1]
		if escaped {
			scratch = unquote(scratch[:0], name)
			name = scratch
		}
		at := n.fieldNamed(name, expect)
		end := -1
		if at >= 0 {
			expect = at + 1
			seen.add(at)
			if n.fields[at].node.defaults {
				if member, err := v.FieldByIndexErr(n.fields[at].index); err == nil {
					end = f.value(n.fields[at].node, value, member)
				}
			}
		}
		if end < 0 {
			end = skipValue(f.raw, value)
		}
		i, last = next(f.raw, end, '}')
	}
	for at := range n.fields {
		if !seen.has(at) {
			f.absent(&n.fields[at], v)
		}
	}
	return i
}

// absent gives a member that is not there its default. A struct that is not
// there gets the defaults of its members, as an empty one would.
func (f *filler) absent(m *field, v reflect.Value) {
	if m.fallback == nil && (m.typ.Kind() != reflect.Struct || !m.node.defaults) || f.err != nil {
		return
	}
	target, err := v.FieldByIndexErr(m.index)
	if err != nil {
		return // in a struct embedded by pointer, which is nil
	}
	switch {
	case m.fallback == nil:
		f.err = fill(m.node, []byte("{}"), target)
	case m.fallback.plain.IsValid():
		target.Set(m.fallback.plain)
	default:
		if err := wire.Decode(m.fallback.raw, target.Addr().Interface()); err != nil {
			f.err = fmt.Errorf("default of %s: %w", m.name, err)
		}
	}
}
