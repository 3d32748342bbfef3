package schema

import (
	"reflect"
	"strconv"

	"github.com/parley-mcp/parley/internal/wire"
)

// isFlat says whether a type is a struct of strings, whole numbers and flags
// alone, as the arguments of most tools are, and so may be decoded by
// decodeFlat.
func (c *Compiled) isFlat() bool {
	n := c.root
	if n == nil || n.kind != kindStruct || n.extra != nil || n.defaults || c.lenient || c.goType.Kind() != reflect.Struct {
		return false
	}
	for i := range n.fields {
		f := &n.fields[i]
		if len(f.index) != 1 || f.typ.PkgPath() != "" {
			return false // of an embedded struct, or with a method that may decode it
		}
		switch {
		case f.node.kind == kindString && f.typ.Kind() == reflect.String,
			f.node.kind == kindBool && f.typ.Kind() == reflect.Bool,
			f.node.kind == kindInt && reflect.Int <= f.typ.Kind() && f.typ.Kind() <= reflect.Int64:
		default:
			return false
		}
	}
	return true
}

// decodeFlat decodes an object that has passed the checks into a struct that
// isFlat. It reports false, with v in any state, if there is something that it
// leaves to the codec: a name or text with escapes, an unknown member, null, a
// number that is not written plainly.
func (n *node) decodeFlat(raw wire.RawValue, v reflect.Value) bool {
	at := skipSpace(raw, 0)
	if byteAt(raw, at) != '{' {
		return false
	}
	i, last := first(raw, at, '}')
	for !last {
		nameEnd, escaped, value := memberAt(raw, i)
		if nameEnd < 0 || escaped {
			return false
		}
		f := n.named(raw[i+1 : nameEnd-1])
		if f == nil {
			return false
		}
		end, ok := decodePlain(raw, value, v.Field(f.index[0]))
		if !ok {
			return false
		}
		i, last = next(raw, end, '}')
	}
	return i > 0
}

// named returns the field of a member, or nil.
func (n *node) named(name []byte) *field {
	for i := range n.fields {
		if f := &n.fields[i]; f.name == string(name) {
			return f
		}
	}
	return nil
}

// decodePlain decodes the value at i, and returns where it ends.
func decodePlain(raw wire.RawValue, i int, v reflect.Value) (end int, ok bool) {
	switch c := byteAt(raw, i); {
	case c == '"' && v.Kind() == reflect.String:
		end, escaped := stringEnd(raw, i)
		if end < 0 || escaped {
			return -1, false
		}
		v.SetString(string(raw[i+1 : end-1]))
		return end, true
	case (c == 't' || c == 'f') && v.Kind() == reflect.Bool:
		v.SetBool(c == 't')
		return scalarEnd(raw, i), true
	case (c == '-' || '0' <= c && c <= '9') && v.CanInt():
		end := scalarEnd(raw, i)
		whole, err := strconv.ParseInt(string(raw[i:end]), 10, 64)
		if err != nil || v.OverflowInt(whole) {
			return -1, false
		}
		v.SetInt(whole)
		return end, true
	}
	return -1, false
}
