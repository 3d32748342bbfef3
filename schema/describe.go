package schema

import (
	"cmp"
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

// types are the JSON types of the kinds; 0: any.
var types = [...]typeSet{
	kindString: typeString, kindTime: typeString, kindDuration: typeString, kindBytes: typeString,
	kindInt: typeInteger, kindUint: typeInteger, kindFloat: typeNumber, kindBool: typeBoolean,
	kindArray: typeArray, kindMap: typeObject, kindStruct: typeObject, kindOwn: 0,
}

// lengths end the keywords for bounds of lengths, except for strings.
var lengths = map[nodeKind]string{kindArray: "Items", kindMap: "Properties"}

// node describes one place of a Go type, as its schema and its constraints do.
// Nodes are not changed once the walk is done.
type node struct {
	kind        nodeKind
	title, desc string

	// Numbers. Bounds hold always; the texts are those to advertise, "" for none.
	lo, hi         wire.Decimal // of integers
	flo, fhi       float64
	bits           int // of a float
	loText, hiText string

	length  extents // of strings (characters), arrays and maps
	pattern *regexp.Regexp
	format  *format
	enum    *enum

	items *node // of arrays, and values of maps

	keys *format // of maps whose keys are not strings

	// Structs.
	fields []field
	extra  *node // members that no field takes; nil: refused

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
	goField
	name     string
	node     *node
	required bool
	header   string
}

// goField is what the decoder knows of a member.
type goField struct {
	index    []int // path of the Go field
	typ      reflect.Type
	fallback *fallback
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
	choices
	floats  []float64
	texts   []string // as JSON
	titles  []string // of the values, or nil
	keyword string   // that says it
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
	count := func(bound string, number int) {
		if number >= 0 {
			text(bound+cmp.Or(lengths[n.kind], "Length"), strconv.Itoa(number))
		}
	}
	str("$ref", n.refText)
	if n.nullable && n.kind != kindAny {
		text("type", `["`+types[n.kind].String()+`","null"]`)
	} else {
		str("type", types[n.kind].String())
	}
	str("title", n.title)
	str("description", n.desc)
	if n.kind == kindBytes {
		str("contentEncoding", "base64")
	}
	if n.format != nil {
		str("format", n.format.name)
		str("pattern", n.format.pattern)
	}
	if n.pattern != nil {
		str("pattern", n.pattern.String())
	}
	if n.enum != nil {
		text(n.enum.keyword, n.enum.list())
	}
	text("minimum", n.loText)
	text("maximum", n.hiText)
	count("min", n.length.min)
	count("max", n.length.max)
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
				required = wire.AppendString(append(required, ','), f.name)
			}
		}
		dst = append(dst, '}')
	}
	if required != nil {
		dst = append(append(append(appendMember(dst, start, "required"), '['), required[1:]...), ']')
	}
	switch {
	case n.extra == nil:
		dst = append(appendMember(dst, start, "additionalProperties"), "false"...)
	case n.extra.kind != kindAny:
		dst = n.extra.append(appendMember(dst, start, "additionalProperties"), nil, nil)
	}
	return dst
}

// list is the value of the keyword.
func (e *enum) list() string {
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
