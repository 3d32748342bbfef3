package host

import (
	"slices"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
)

// anything decodes the JSON that a host looks into by itself, as strictly as
// what comes from servers.
var anything = must(schema.Compile(mcp.RawValue("{}"), nil))

// must is for what is known to compile.
func must(c *schema.Compiled, err error) *schema.Compiled {
	if err != nil {
		panic(err)
	}
	return c
}

// A member is one member of a JSON object.
type member struct {
	name  string
	value mcp.RawValue
}

// members splits a JSON object, in the order of its names. Anything but a
// valid object, of bounded depth and without a name twice, is an error.
func members(raw mcp.RawValue) ([]member, error) {
	var m map[string]mcp.RawValue
	if err := anything.Decode(raw, &m); err != nil {
		return nil, err
	}
	list := make([]member, 0, len(m))
	for name, value := range m {
		list = append(list, member{name, value})
	}
	slices.SortFunc(list, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return list, nil
}

// items splits a JSON array.
func items(raw mcp.RawValue) ([]mcp.RawValue, error) {
	var list []mcp.RawValue
	err := anything.Decode(raw, &list)
	return list, err
}

// text returns the text of a JSON string.
func text(raw mcp.RawValue) (string, error) {
	var s string
	err := anything.Decode(raw, &s)
	return s, err
}

// kindOf returns the first character of a JSON value, which says what it is.
func kindOf(raw mcp.RawValue) byte {
	if i := skipSpace(raw, 0); i < len(raw) {
		return raw[i]
	}
	return 0
}
