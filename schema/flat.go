package schema

import (
	"reflect"
	"strconv"

	"github.com/parley-mcp/parley/internal/wire"
)

// isFlat says whether a type is a struct of texts, numbers and flags, lists of
// them and structs of the same kind, as the arguments of most tools are, and so
// may be decoded by flatDecoder.
func (c *Compiled) isFlat() bool {
	return !c.lenient && c.goType.Kind() == reflect.Struct && c.root.isFlat(c.goType)
}

func (n *node) isFlat(t reflect.Type) bool {
	t = deref(t)
	if reflect.PointerTo(t).NumMethod() > 0 {
		return false // one of them may decode it
	}
	switch n.kind {
	case kindString:
		return t.Kind() == reflect.String
	case kindBool, kindInt, kindUint, kindFloat:
		return true
	case kindArray:
		return t.Kind() == reflect.Slice && n.items.isFlat(t.Elem())
	case kindStruct:
		for i := range n.fields {
			if f := &n.fields[i]; len(f.index) != 1 || !f.node.isFlat(f.typ) {
				return false // of an embedded struct, or of some other type
			}
		}
		return n.extra == nil
	default:
		return false
	}
}

// flatDecoder decodes a text that has passed the checks into a type that
// isFlat. Every method reports false, with the target in any state, if there is
// something that it leaves to the codec: an unknown member, null, a number that
// is not written plainly.
type flatDecoder struct {
	raw     []byte
	scratch []byte
}

// decodeFlat decodes raw into v, which is zero.
func (n *node) decodeFlat(raw wire.RawValue, v reflect.Value) bool {
	d := flatDecoder{raw: raw}
	end, ok := d.value(n, skipSpace(raw, 0), v)
	return ok && end > 0
}

// value decodes the value at i, and returns where it ends.
func (d *flatDecoder) value(n *node, i int, v reflect.Value) (end int, ok bool) {
	c := byteAt(d.raw, i)
	for v.Kind() == reflect.Pointer && c != 'n' {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch {
	case c == '{' && n.kind == kindStruct:
		return d.object(n, i, v)
	case c == '[' && n.kind == kindArray:
		return d.array(n, i, v)
	case c == '"' && n.kind == kindString:
		end, escaped := stringEnd(d.raw, i)
		if end < 0 {
			return -1, false
		}
		v.SetString(d.text(n, i, end, escaped))
		return end, true
	case (c == 't' || c == 'f') && n.kind == kindBool:
		v.SetBool(c == 't')
		return scalarEnd(d.raw, i), true
	case c == '-' || '0' <= c && c <= '9':
		end = scalarEnd(d.raw, i)
		return end, setNumber(n, d.raw[i:end], v)
	}
	return -1, false
}

// text returns the text of the string literal from at to end; one of few texts
// is not copied.
func (d *flatDecoder) text(n *node, at, end int, escaped bool) string {
	inner := d.raw[at+1 : end-1]
	switch {
	case escaped && n.enum == nil:
		return unquoted(inner)
	case escaped:
		d.scratch = unquote(d.scratch[:0], inner)
		inner = d.scratch
	}
	if n.enum != nil {
		for _, choice := range n.enum.strings {
			if choice == string(inner) {
				return choice
			}
		}
	}
	return string(inner)
}

// setNumber sets a number, if it is written as its type wants it.
func setNumber(n *node, tok []byte, v reflect.Value) bool {
	switch n.kind {
	case kindInt:
		whole, ok := smallInteger(tok)
		if !ok {
			var err error
			whole, err = strconv.ParseInt(string(tok), 10, 64)
			ok = err == nil
		}
		if ok = ok && !v.OverflowInt(whole); ok {
			v.SetInt(whole)
		}
		return ok
	case kindUint:
		whole, err := strconv.ParseUint(string(tok), 10, 64)
		if err != nil || v.OverflowUint(whole) {
			return false
		}
		v.SetUint(whole)
		return true
	case kindFloat:
		f, err := strconv.ParseFloat(string(tok), n.bits)
		if err != nil {
			return false
		}
		v.SetFloat(f)
		return true
	default:
		return false
	}
}

func (d *flatDecoder) array(n *node, i int, v reflect.Value) (end int, ok bool) {
	count := 0
	at, last := first(d.raw, i, ']')
	for !last {
		count++
		at, last = next(d.raw, skipValue(d.raw, at), ']')
	}
	if at < 0 {
		return -1, false
	}
	if count == 0 {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0)) // empty, not absent
		return at, true
	}
	v.Grow(count)
	v.SetLen(count)
	i, last = first(d.raw, i, ']')
	for at := 0; !last; at++ {
		if end, ok = d.value(n.items, i, v.Index(at)); !ok {
			return -1, false
		}
		i, last = next(d.raw, end, ']')
	}
	return i, i > 0
}

func (d *flatDecoder) object(n *node, i int, v reflect.Value) (end int, ok bool) {
	var seen present
	seen.make(len(n.fields))
	expect := 0
	i, last := first(d.raw, i, '}')
	for !last {
		nameEnd, escaped, value := memberAt(d.raw, i)
		if nameEnd < 0 || escaped {
			return -1, false
		}
		at := n.fieldNamed(d.raw[i+1:nameEnd-1], expect)
		if at < 0 || seen.add(at) {
			return -1, false
		}
		expect = at + 1
		f := &n.fields[at]
		if end, ok = d.value(f.node, value, v.Field(f.index[0])); !ok {
			return -1, false
		}
		i, last = next(d.raw, end, '}')
	}
	if n.defaults && i > 0 {
		var f filler
		for at := range n.fields {
			if !seen.has(at) {
				f.absent(&n.fields[at], v)
			}
		}
		return i, f.err == nil
	}
	return i, i > 0
}
