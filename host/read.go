package host

import (
	"slices"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// A member is one member of a JSON object.
type member struct {
	name  string
	value mcp.RawValue
}

// members splits a JSON object, in the order of its names. Anything but a
// valid object, of bounded depth and without a name twice, is an error.
func members(raw mcp.RawValue) ([]member, error) {
	o, err := wire.ParseObject(raw, wire.Limits{})
	if err != nil {
		return nil, err
	}
	list := make([]member, 0, o.Len())
	for name, value := range o.All() {
		list = append(list, member{name, value})
	}
	slices.SortFunc(list, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return list, nil
}

// items splits a JSON array.
func items(raw mcp.RawValue) ([]mcp.RawValue, error) { return wire.ParseArray(raw, wire.Limits{}, 0) }

// text returns the text of a JSON string.
func text(raw mcp.RawValue) (string, error) {
	var s string
	err := wire.Decode(raw, &s)
	return s, err
}

// kindOf returns the first character of a JSON value, which says what it is.
func kindOf(raw mcp.RawValue) byte {
	if i := skipSpace(raw, 0); i < len(raw) {
		return raw[i]
	}
	return 0
}

// compact returns a JSON object without white space, as it is sent. Anything but a
// valid object is an error.
func compact(raw mcp.RawValue) (mcp.RawValue, error) {
	if _, err := members(raw); err != nil {
		return nil, err
	}
	return wire.Marshal(raw)
}
