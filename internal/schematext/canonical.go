package schematext

import (
	"slices"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
)

// Canonical returns the canonical form of a value, or the text itself if it is
// not valid.
func Canonical(raw wire.RawValue) string {
	if len(raw) == 0 {
		return ""
	}
	return string(AppendCanonical(nil, raw))
}

// AppendCanonical appends JSON with sorted members and without white space.
// What is not valid is appended as it is.
func AppendCanonical(dst []byte, raw wire.RawValue) []byte {
	lim := wire.Limits{Depth: maxDepth}
	switch Kind(raw) {
	case '{':
		o, err := wire.ParseObject(raw, lim)
		if err != nil {
			return append(dst, raw...)
		}
		names := make([]string, 0, o.Len())
		for name := range o.All() {
			names = append(names, name)
		}
		slices.Sort(names)
		dst = append(dst, '{')
		for i, name := range names {
			if i > 0 {
				dst = append(dst, ',')
			}
			value, _ := o.Member(name)
			dst = append(wire.AppendString(dst, name), ':')
			dst = AppendCanonical(dst, value)
		}
		return append(dst, '}')
	case '[':
		list, err := wire.ParseArray(raw, lim, 0)
		if err != nil {
			return append(dst, raw...)
		}
		dst = append(dst, '[')
		for i, item := range list {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendCanonical(dst, item)
		}
		return append(dst, ']')
	case '"':
		s, err := Text(raw)
		if err != nil {
			return append(dst, raw...)
		}
		return wire.AppendString(dst, s)
	}
	return append(dst, strings.TrimSpace(string(raw))...)
}
