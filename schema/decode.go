package schema

import (
	"reflect"
	"strconv"

	"github.com/parley-mcp/parley/internal/wire"
)

// isFlat says whether a type is a struct of texts, numbers and flags, lists of
// them and structs of the same kind, as the arguments of most tools are, and so
// may be decoded by flatDecoder.
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
func (c *constraints) decodeFlat(raw wire.RawValue, v reflect.Value) bool {
	d := flatDecoder{raw: raw}
	end, ok := d.value(c.root, wire.SkipSpace(raw, 0), v)
	return ok && end > 0
}

// value decodes the value at i, and returns where it ends.
func (d *flatDecoder) value(s *constraint, i int, v reflect.Value) (end int, ok bool) {
	c := wire.At(d.raw, i)
	for v.Kind() == reflect.Pointer && c != 'n' {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch kind := typeAt(c); {
	case s.starts&kind == 0:
	case kind == typeObject:
		return d.object(s, i, v)
	case kind == typeArray:
		return d.array(s.array, i, v)
	case kind == typeString:
		end, escaped := wire.SkipString(d.raw, i)
		if end < 0 {
			return -1, false
		}
		v.SetString(d.text(s.text, i, end, escaped))
		return end, true
	case kind == typeBoolean:
		v.SetBool(c == 't')
		return wire.SkipScalar(d.raw, i), true
	case kind == typeNumber:
		end = wire.SkipScalar(d.raw, i)
		return end, setNumber(d.raw[i:end], v)
	}
	return -1, false
}

// text returns the content of the string literal from at to end; one of few
// texts is not copied.
func (d *flatDecoder) text(s *stringConstraint, at, end int, escaped bool) string {
	if s == nil || s.enum == nil {
		return wire.Text(d.raw[at:end])
	}
	inner := d.raw[at+1 : end-1]
	if escaped {
		d.scratch = wire.AppendUnquoted(d.scratch[:0], d.raw[at:end])
		inner = d.scratch
	}
	for _, choice := range s.enum.strings {
		if choice == string(inner) {
			return choice
		}
	}
	return string(inner)
}

// setNumber sets a number, if it is written as its type wants it.
func setNumber(tok []byte, v reflect.Value) bool {
	switch {
	case v.CanInt():
		whole, ok := wire.PlainInteger(tok)
		if ok = ok && !v.OverflowInt(whole); ok {
			v.SetInt(whole)
		}
		return ok
	case v.CanUint():
		whole, err := strconv.ParseUint(string(tok), 10, 64)
		if err != nil || v.OverflowUint(whole) {
			return false
		}
		v.SetUint(whole)
		return true
	default:
		f, err := strconv.ParseFloat(string(tok), v.Type().Bits())
		if err != nil {
			return false
		}
		v.SetFloat(f)
		return true
	}
}

func (d *flatDecoder) array(a *arrayConstraint, i int, v reflect.Value) (end int, ok bool) {
	count := 0
	at, last := wire.First(d.raw, i, ']')
	for !last {
		count++
		at, last = wire.Next(d.raw, wire.SkipValue(d.raw, at), ']')
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
	i, last = wire.First(d.raw, i, ']')
	for at := 0; !last; at++ {
		if end, ok = d.value(a.items, i, v.Index(at)); !ok {
			return -1, false
		}
		i, last = wire.Next(d.raw, end, ']')
	}
	return i, i > 0
}

func (d *flatDecoder) object(s *constraint, i int, v reflect.Value) (end int, ok bool) {
	o := s.object
	var seen memberSet
	seen.make(len(o.fields))
	expect := 0
	i, last := wire.First(d.raw, i, '}')
	for !last {
		nameEnd, escaped, value := wire.MemberAt(d.raw, i)
		if nameEnd < 0 || escaped {
			return -1, false
		}
		at := o.find(d.raw[i+1:nameEnd-1], expect)
		if at < 0 || seen.add(at) {
			return -1, false
		}
		expect = at + 1
		if end, ok = d.value(o.members[at].constraint, value, v.Field(o.fields[at].index[0])); !ok {
			return -1, false
		}
		i, last = wire.Next(d.raw, end, '}')
	}
	if s.defaults && i > 0 {
		var f filler
		f.absent(o, &seen, v)
		return i, f.err == nil
	}
	return i, i > 0
}
