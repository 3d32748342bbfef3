package schema

import (
	"reflect"
	"regexp"
	"strconv"

	"github.com/parley-mcp/parley/internal/wire"
)

// nodeKind is what a node of an inferred schema describes.
type nodeKind uint8

const (
	kindAny nodeKind = iota
	kindString
	kindTime
	kindDuration
	kindBytes
	kindInt
	kindUint
	kindFloat
	kindBool
	kindArray
	kindMap
	kindStruct
	kindRef
	kindOwn // what the type says itself
)

// types are the JSON types of the kinds.
var types = [...]string{
	kindAny: "", kindString: "string", kindTime: "string", kindDuration: "string", kindBytes: "string",
	kindInt: "integer", kindUint: "integer", kindFloat: "number", kindBool: "boolean",
	kindArray: "array", kindMap: "object", kindStruct: "object", kindRef: "", kindOwn: "",
}

// node is one place of an inferred schema: it can print itself and check
// values. Nodes are not changed once the walk is done.
type node struct {
	kind        nodeKind
	title, desc string

	// Numbers. Bounds hold always; the texts are those to advertise, "" for none.
	lo, hi         int64
	ulo, uhi       uint64
	flo, fhi       float64
	bits           int // of a float
	loText, hiText string

	// Lengths of strings (characters), arrays and maps; -1 for none.
	minLen, maxLen int

	pattern *regexp.Regexp
	format  *format
	enum    *enum

	items *node // of arrays, and values of maps

	keys *keyRule // of maps whose keys are not strings

	// Structs.
	fields []field
	index  map[string]int // by name, if there are many
	extra  *node          // members that no field takes; nil: refused

	// A number in a string: its kind and size; its bounds do not hold.
	digits     nodeKind
	digitsBits int

	nullable bool // null will do as well

	own *Compiled // of types that say their schema themselves

	// References to recursive types.
	ref     *node
	refText string

	// defaults says that defaults may have to be filled in at or below.
	defaults bool
}

// field is a member of a struct.
type field struct {
	name     string
	node     *node
	required bool
	index    []int // path of the Go field
	typ      reflect.Type
	fallback *fallback
	header   string
}

// fallback is the value of an absent member.
type fallback struct {
	raw wire.RawValue
	// plain is the decoded value if it may be shared; otherwise it is
	// decoded afresh each time.
	plain reflect.Value
}

// enum is a set of allowed values.
type enum struct {
	texts   []string // as JSON
	strings []string
	ints    []int64
	uints   []uint64
	floats  []float64
	titles  []string // of the values, or nil
	items   bool     // they are of the items of an array
}

// keyRule describes the keys of a map that are integers.
type keyRule struct {
	pattern string
	signed  bool
	bits    int
}

// few is the number of fields up to which they are searched one by one.
const few = 8

// fieldNamed returns the position of a field, starting at the one expected.
func (n *node) fieldNamed(name []byte, expect int) int {
	if expect < len(n.fields) && string(name) == n.fields[expect].name {
		return expect
	}
	if n.index != nil {
		if i, ok := n.index[string(name)]; ok {
			return i
		}
		return -1
	}
	for i := range n.fields {
		if string(name) == n.fields[i].name {
			return i
		}
	}
	return -1
}

// appendMember appends "name":, with a comma if it is not the first member of
// the object that starts at start.
func appendMember(dst []byte, start int, name string) []byte {
	if len(dst) > start+1 {
		dst = append(dst, ',')
	}
	dst = wire.AppendString(dst, name)
	return append(dst, ':')
}

// append prints the schema of a node; f is the field it belongs to, or nil, and
// defs the definitions if it is the root.
func (n *node) append(dst []byte, f *field, defs []*definition) []byte {
	start := len(dst)
	if n.own != nil || n.nullable && (n.enum != nil || n.kind == kindRef) {
		return n.appendWrapped(dst, f)
	}
	dst = append(dst, '{')
	str := func(name, value string) {
		if value != "" {
			dst = wire.AppendString(appendMember(dst, start, name), value)
		}
	}
	text := func(name, value string) {
		if value != "" {
			dst = append(appendMember(dst, start, name), value...)
		}
	}
	str("$ref", n.refText)
	if n.nullable && n.kind != kindAny {
		text("type", `["`+types[n.kind]+`","null"]`)
	} else {
		str("type", types[n.kind])
	}
	str("title", n.title)
	str("description", n.desc)
	str("format", n.formatName())
	if n.kind == kindBytes {
		str("contentEncoding", "base64")
	}
	if n.kind == kindDuration {
		str("pattern", durationPattern)
	} else if n.digits != kindAny {
		str("pattern", digitPatterns[n.digits])
	} else if n.pattern != nil {
		str("pattern", n.pattern.String())
	}
	text(n.enum.member(), n.enum.list())
	text("minimum", n.loText)
	text("maximum", n.hiText)
	text(n.lengthName("min"), length(n.minLen))
	text(n.lengthName("max"), length(n.maxLen))
	dst = n.appendContents(dst, start)
	if f != nil {
		if f.fallback != nil {
			text("default", string(f.fallback.raw))
		}
		str("x-mcp-header", f.header)
	}
	if len(defs) > 0 {
		dst = appendMember(dst, start, "$defs")
		inner := len(dst)
		dst = append(dst, '{')
		for _, d := range defs {
			dst = d.node.append(appendMember(dst, inner, d.name), nil, nil)
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// appendContents prints what the values of a container are.
func (n *node) appendContents(dst []byte, start int) []byte {
	switch n.kind {
	case kindArray:
		dst = n.items.append(appendMember(dst, start, "items"), nil, nil)
	case kindMap:
		if n.keys != nil {
			dst = append(appendMember(dst, start, "propertyNames"), `{"pattern":`...)
			dst = append(wire.AppendString(dst, n.keys.pattern), '}')
		}
		dst = n.items.append(appendMember(dst, start, "additionalProperties"), nil, nil)
	case kindStruct:
		dst = n.appendFields(dst, start)
	default:
	}
	return dst
}

func (n *node) appendFields(dst []byte, start int) []byte {
	var required []byte
	if len(n.fields) > 0 {
		dst = appendMember(dst, start, "properties")
		inner := len(dst)
		dst = append(dst, '{')
		for i := range n.fields {
			f := &n.fields[i]
			dst = f.node.append(appendMember(dst, inner, f.name), f, nil)
			if f.required {
				if required != nil {
					required = append(required, ',')
				}
				required = wire.AppendString(required, f.name)
			}
		}
		dst = append(dst, '}')
	}
	if required != nil {
		dst = append(append(append(appendMember(dst, start, "required"), '['), required...), ']')
	}
	switch {
	case n.extra == nil:
		dst = append(appendMember(dst, start, "additionalProperties"), "false"...)
	case n.extra.kind != kindAny:
		dst = n.extra.append(appendMember(dst, start, "additionalProperties"), nil, nil)
	}
	return dst
}

func (n *node) formatName() string {
	if n.kind == kindTime {
		return "date-time"
	}
	if n.format != nil {
		return n.format.name
	}
	return ""
}

// lengthName is the keyword for a bound of the length.
func (n *node) lengthName(bound string) string {
	switch n.kind {
	case kindArray:
		return bound + "Items"
	case kindMap:
		return bound + "Properties"
	default:
		return bound + "Length"
	}
}

func length(n int) string {
	if n < 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// member is the keyword that list belongs to.
func (e *enum) member() string {
	switch {
	case e == nil || e.titles == nil:
		return "enum"
	case e.items:
		return "anyOf"
	}
	return "oneOf"
}

func (e *enum) list() string {
	if e == nil {
		return ""
	}
	dst := []byte{'['}
	for i, text := range e.texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		if e.titles == nil {
			dst = append(dst, text...)
			continue
		}
		dst = append(append(dst, `{"const":`...), text...)
		dst = wire.AppendString(append(dst, `,"title":`...), e.titles[i])
		dst = append(dst, '}')
	}
	return string(append(dst, ']'))
}
