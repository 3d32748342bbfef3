package provider

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/internal/schematext"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
)

// Bounds of the reduction of a schema.
const (
	maxSchemaInput  = 1 << 20 // bytes of a schema that is looked into
	maxReduced      = 64 << 10
	maxReducedParts = 2000 // schemas within it, those behind references each time
	maxReduceDepth  = 32
	maxReducedEnum  = 1000
	maxLostValue    = 200 // bytes of a keyword in a description
	maxDescription  = 4000
	maxLosses       = 50
)

// anyObject is the schema of all objects.
var anyObject = mcp.RawValue(`{"type":"object"}`)

// Reduce returns a schema of arguments that a provider takes. It accepts every
// object that the full schema accepts, and may accept more: what is left out is
// told in the descriptions, for the model, and in the notes, for people. The notes
// quote names of raw, which are to be neutralised before they are
// shown. The result may share memory with raw, which is not written to. The error
// says that raw is no JSON Schema.
func Reduce(raw mcp.RawValue, p Profile) (reduced mcp.RawValue, notes []string, err error) {
	reduced, losses, err := reduce(raw, p)
	for _, l := range losses {
		notes = append(notes, l.What)
	}
	return reduced, notes, err
}

// reduce is Reduce with all that is known of what is left out.
func reduce(raw mcp.RawValue, p Profile) (reduced mcp.RawValue, losses []Loss, err error) {
	if err := wire.Valid(raw, wire.Limits{}); err != nil {
		return nil, nil, fmt.Errorf("reducing a schema: %w; the server must send valid JSON", err)
	}
	if c := schematext.Kind(raw); c != '{' && c != 't' && c != 'f' {
		return nil, nil, fmt.Errorf("reducing a schema: expected an object, got %s; the server must send a JSON Schema",
			wire.Kind(c))
	}
	all := p.takesAll()
	p.MaxDepth, p.MaxEnum = cmp.Or(p.MaxDepth, maxReduceDepth), cmp.Or(p.MaxEnum, maxReducedEnum)
	p.MaxBytes = cmp.Or(p.MaxBytes, maxReduced)
	if len(raw) > maxSchemaInput {
		return anyObject, []Loss{{fmt.Sprintf("the schema has %d bytes and is left out", len(raw)), whyLong, mendShorter}}, nil
	}
	if all && len(raw) <= p.MaxBytes {
		return raw, nil, nil
	}
	for _, depth := range []int{p.MaxDepth, 6, 4, 3, 2, 1} {
		if depth > p.MaxDepth {
			continue
		}
		r := newReducer(raw, &p, depth)
		out := r.root()
		if depth < p.MaxDepth {
			r.lose(fmt.Sprintf("the schema is too long: what is deeper than %d levels is left out", depth), whyLong, mendShorter)
		}
		if len(out) <= p.MaxBytes && compiles(out) {
			return out, r.losses, nil
		}
	}
	return anyObject, []Loss{{"the schema is too long or not valid, and is left out", whyLong, mendShorter}}, nil
}

// compiles reports whether a reduced schema is one. Its patterns are the provider's to match.
func compiles(raw mcp.RawValue) bool {
	_, err := schema.Compile(raw, &schema.Limits{IgnoreHeaders: true, Lenient: true})
	return err == nil
}

// A reducer reduces one schema.
type reducer struct {
	profile  *Profile
	maxDepth int
	raw      mcp.RawValue
	document schematext.Object
	refs     refStyle
	left     int      // schemas that may still be written
	inlining []string // references that are being followed
	losses   []Loss
}

// A refStyle says how references of a document are read.
type refStyle int

const (
	refsBeside refStyle = iota // keywords beside a reference count
	refsAlone                  // they do not, as in draft-07
	refsOpaque                 // the document has parts with other base URIs: none is followed
)

func newReducer(raw mcp.RawValue, p *Profile, depth int) *reducer {
	r := &reducer{profile: p, maxDepth: depth, raw: raw, left: maxReducedParts}
	r.document, _ = schematext.Of(raw)
	if dialect, err := schematext.Text(r.document["$schema"]); err == nil && strings.Contains(dialect, "draft-0") {
		r.refs = refsAlone
	}
	own := 0
	if r.document["$id"] != nil {
		own = 1
	}
	if bytes.Count(raw, []byte(`"$id"`)) > own {
		r.refs = refsOpaque
	}
	return r
}

func (r *reducer) lose(what, why, mend string) {
	known := func(l Loss) bool { return l.What == what }
	if len(r.losses) < maxLosses && !slices.ContainsFunc(r.losses, known) {
		r.losses = append(r.losses, Loss{what, why, mend})
	}
}

// root reduces the whole document.
func (r *reducer) root() mcp.RawValue {
	path := schematext.Path{Kind: "input"}
	out := r.reduce(r.raw, 0, path)
	if r.profile.Root != RootAny && !isType(out["type"], "object") {
		if out["type"] != nil || r.profile.Root == RootPlain && out["anyOf"] != nil {
			r.lose("the schema is not that of an object, and is left out", "arguments are an object", `write "type": "object" and name the fields`)
			return anyObject
		}
		out["type"] = mcp.RawValue(`"object"`)
	}
	for _, keyword := range []string{"$defs", "definitions"} {
		defs, ok := schematext.Of(r.document[keyword])
		if !ok || !r.profile.takes("$ref") || !r.profile.takes(keyword) || r.refs == refsOpaque {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(defs)) {
			defs[name] = encodeSchema(r.reduce(defs[name], 1, path.Step("definition "+schematext.Quote(name))))
		}
		out[keyword] = encodeSchema(defs)
	}
	prune(out)
	return encodeSchema(out)
}

// prune removes the definitions that nothing refers to.
func prune(out schematext.Object) {
	for removed := true; removed; {
		removed = false
		whole := encodeSchema(out)
		for _, keyword := range []string{"$defs", "definitions"} {
			defs, _ := schematext.Of(out[keyword])
			for name := range defs {
				if !bytes.Contains(whole, wire.AppendString(nil, "#/"+keyword+"/"+name)) {
					delete(defs, name)
					removed = true
				}
			}
			if len(defs) > 0 {
				out[keyword] = encodeSchema(defs)
			} else {
				delete(out, keyword)
			}
		}
	}
}

func isType(raw mcp.RawValue, want string) bool {
	s, err := schematext.Text(raw)
	return err == nil && s == want
}

// encodeSchema writes keywords in order.
func encodeSchema(s schematext.Object) mcp.RawValue {
	out := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(s)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(wire.AppendString(out, name), ':')
		out = append(out, s[name]...)
	}
	return append(out, '}')
}

// encodeList writes a list of values.
func encodeList(list []mcp.RawValue) mcp.RawValue {
	out := []byte{'['}
	for i, v := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}

// reduce reduces one schema.
func (r *reducer) reduce(raw mcp.RawValue, depth int, path schematext.Path) schematext.Object {
	if r.left--; r.left < 0 {
		r.lose("the schema has too many parts: some are left out", whyLong, mendShorter)
		return schematext.Object{}
	}
	s, ok := schematext.Of(raw)
	if !ok {
		if schematext.Canonical(raw) == "false" && r.profile.takes("not") && depth > 0 {
			return schematext.Object{"not": mcp.RawValue("{}")}
		}
		return schematext.Object{}
	}
	mark := len(r.inlining)
	defer func() { r.inlining = r.inlining[:mark] }()
	n := reduction{r: r, path: path, depth: depth, out: schematext.Object{}}
	n.s = r.flatten(s, n.plain(), &n.lost)
	if depth >= r.maxDepth {
		n.cut()
	} else {
		n.alternatives()
		n.values()
		n.keywords()
		n.arrays()
	}
	n.types()
	n.describe()
	return n.out
}

// exact reports whether a schema would not change, so that it means the same
// where less than the whole would be more: in not, if, contains and oneOf.
func (r *reducer) exact(raw mcp.RawValue, depth int) bool {
	whole := schematext.Canonical(raw)
	if strings.Contains(whole, `"$ref"`) {
		return false
	}
	try := *r
	try.losses, try.inlining = nil, nil
	same := schematext.Canonical(encodeSchema(try.reduce(raw, depth, schematext.Path{})))
	r.left = try.left
	return same == whole
}

// A reduction is the state of reducing one schema.
type reduction struct {
	r        *reducer
	path     schematext.Path
	depth    int
	s        schematext.Object // what is still to be written
	out      schematext.Object
	lost     []string // what the description will tell
	nullable bool     // null was among the listed values
}

// plain reports whether the schema is a root that must have no combinations.
func (n *reduction) plain() bool { return n.depth == 0 && n.r.profile.Root == RootPlain }

func (n *reduction) takes(keyword string) bool { return n.r.profile.takes(keyword) }

// lose leaves a keyword out and tells of it.
func (n *reduction) lose(keyword string) {
	raw, ok := n.s[keyword]
	if !ok {
		return
	}
	delete(n.s, keyword)
	n.lost = append(n.lost, keyword+": "+lostText(raw))
	why, mend := n.why(keyword, raw)
	n.r.lose(n.path.String()+": "+keyword+" is left out", why, mend)
}

// lostText writes a value for a description.
func lostText(raw mcp.RawValue) string {
	if s, err := schematext.Text(raw); err == nil && raw != nil {
		return schematext.Clip(s, maxLostValue)
	}
	return schematext.Clip(schematext.Canonical(raw), maxLostValue)
}

// cut keeps of a schema that is too deep its type and description alone.
func (n *reduction) cut() {
	kept := schematext.Object{}
	for keyword, value := range n.s {
		switch keyword {
		case "type", "description", "title":
			kept[keyword] = value
		default:
			n.r.lose(n.path.String()+": deeper parts are left out", fmt.Sprintf("schemas are at most %d levels deep", n.r.maxDepth), "make it flatter, with names such as address_city")
		}
	}
	n.s = kept
	n.keywords()
}

// alternatives writes oneOf and anyOf.
func (n *reduction) alternatives() {
	p := n.r.profile
	for _, keyword := range []string{"oneOf", "anyOf"} {
		branches, err := schematext.Items(n.s[keyword])
		if n.s[keyword] == nil {
			continue
		}
		if err != nil || len(branches) == 0 {
			delete(n.s, keyword)
			continue
		}
		switch {
		case n.plain() || !p.takes("anyOf") && (keyword == "anyOf" || !p.takes("oneOf")):
			n.lose(keyword)
			n.s = n.r.merge(n.s, n.r.union(branches))
		case keyword == "oneOf" && p.takes("oneOf") && n.allExact(branches):
			n.out["oneOf"] = mcp.RawValue(schematext.Canonical(n.s["oneOf"]))
			delete(n.s, "oneOf")
		case keyword == "oneOf" && n.s["anyOf"] == nil && p.takes("anyOf"):
			n.s["anyOf"] = n.s["oneOf"]
			delete(n.s, "oneOf")
			n.r.lose(n.path.String()+": oneOf becomes anyOf", "oneOf is not taken", "write anyOf where both would do")
		case keyword == "oneOf":
			n.lose("oneOf")
		default:
			n.branches(branches)
			delete(n.s, "anyOf")
		}
	}
}

// allExact reports whether no schema within this one would change.
func (n *reduction) allExact(list []mcp.RawValue) bool {
	return !slices.ContainsFunc(list, func(b mcp.RawValue) bool { return !n.r.exact(b, n.depth+1) })
}

// branches writes anyOf.
func (n *reduction) branches(list []mcp.RawValue) {
	var reduced []mcp.RawValue
	for i, b := range list {
		if schematext.Canonical(b) == "false" {
			continue
		}
		one := encodeSchema(n.r.reduce(b, n.depth+1, n.path.Step(fmt.Sprintf("alternative %d", i+1))))
		if !slices.ContainsFunc(reduced, func(r mcp.RawValue) bool { return bytes.Equal(r, one) }) {
			reduced = append(reduced, one)
		}
	}
	if len(reduced) > 0 {
		n.out["anyOf"] = encodeList(reduced)
	}
}

// values writes const and enum.
func (n *reduction) values() {
	if value, ok := n.s["const"]; ok && (!n.takes("const") || n.plain()) {
		n.s["enum"] = encodeList([]mcp.RawValue{value})
		delete(n.s, "const")
	}
	list, err := schematext.Items(n.s["enum"])
	if n.s["enum"] == nil {
		return
	}
	if err != nil || len(list) == 0 {
		delete(n.s, "enum")
		return
	}
	if n.s["type"] == nil {
		n.s["type"] = typesOfValues(list)
	}
	if !n.takes("enum") || len(list) > n.r.profile.MaxEnum || n.plain() {
		n.lose("enum")
		return
	}
	if n.r.profile.Enums == EnumsStrings {
		list = slices.DeleteFunc(list, func(v mcp.RawValue) bool {
			null := schematext.Kind(v) == 'n'
			n.nullable = n.nullable || null
			return null
		})
		if len(list) == 0 || slices.ContainsFunc(list, func(v mcp.RawValue) bool { return schematext.Kind(v) != '"' }) {
			n.lose("enum")
			return
		}
		if types := typeNames(n.s["type"]); len(types) > 0 {
			n.nullable = n.nullable && slices.Contains(types, "null")
		}
		n.s["type"] = mcp.RawValue(`"string"`)
		n.s["enum"] = encodeList(list)
	}
}

// typesOfValues returns the types of listed values, as the keyword "type".
func typesOfValues(list []mcp.RawValue) mcp.RawValue {
	names := map[byte]string{
		'"': "string", '{': "object", '[': "array", 't': "boolean", 'f': "boolean", 'n': "null",
	}
	var types []mcp.RawValue
	for _, v := range list {
		name := wire.AppendString(nil, cmp.Or(names[schematext.Kind(v)], "number"))
		if !slices.ContainsFunc(types, func(t mcp.RawValue) bool { return bytes.Equal(t, name) }) {
			types = append(types, name)
		}
	}
	if len(types) == 1 {
		return types[0]
	}
	return encodeList(types)
}

// keywords writes what needs no rewriting, and schemas within this one.
func (n *reduction) keywords() {
	n.exactKeywords()
	n.names()
	n.bounds()
	if n.s["patternProperties"] != nil && (!n.takes("patternProperties") || !allPatterns(n.s["patternProperties"])) {
		n.lose("additionalProperties") // it would refuse what the patterns allow
		n.lose("patternProperties")
	}
	for _, keyword := range slices.Sorted(maps.Keys(n.s)) {
		value := n.s[keyword]
		switch keyword {
		case "type", "description", "items", "prefixItems", "additionalItems", "$defs", "definitions":
			// Written elsewhere.
		case "$schema", "$id", "$anchor", "$comment":
			// Of no use to a model.
		case "format":
			formats := n.r.profile.Formats
			if s, err := schematext.Text(value); err != nil || !n.takes(keyword) || formats != nil && !slices.Contains(formats, s) {
				n.lose(keyword)
			} else {
				n.out[keyword] = value
			}
		case "pattern":
			if s, err := schematext.Text(value); err != nil || !n.takes(keyword) || !isPattern(s) {
				n.lose(keyword)
			} else {
				n.out[keyword] = value
			}
		case "required":
			n.required(value)
		default:
			n.keyword(keyword, value)
		}
	}
}

func isPattern(s string) bool {
	_, err := regexp.Compile(s)
	return err == nil
}

// allPatterns reports whether the names in an object are patterns that all take.
func allPatterns(raw mcp.RawValue) bool {
	fields, _ := schematext.Of(raw)
	for pattern := range fields {
		if !isPattern(pattern) {
			return false
		}
	}
	return true
}

// keyword writes one keyword that is taken, with the schemas in it reduced.
func (n *reduction) keyword(keyword string, value mcp.RawValue) {
	_, single := schematext.Singles[keyword]
	_, list := schematext.Lists[keyword]
	_, mapped := schematext.Maps[keyword]
	switch {
	case !n.takes(keyword):
		silent := []string{"readOnly", "writeOnly", "deprecated", "title"}
		if !strings.HasPrefix(keyword, "x-") && !slices.Contains(silent, keyword) {
			n.lose(keyword)
		}
	case keyword == "properties" || mapped:
		fields, ok := schematext.Of(value)
		if !ok {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) { // the losses are always in the same order
			fields[name] = encodeSchema(n.r.reduce(fields[name], n.depth+1, n.path.Field(name)))
		}
		n.out[keyword] = encodeSchema(fields)
	case list:
		parts, err := schematext.Items(value)
		if err != nil || len(parts) == 0 {
			return
		}
		for i, part := range parts {
			step := n.path.Step(fmt.Sprintf("part %d of %s", i+1, keyword))
			parts[i] = encodeSchema(n.r.reduce(part, n.depth+1, step))
		}
		n.out[keyword] = encodeList(parts)
	case single && keyword == "additionalProperties" && schematext.Kind(value) != '{':
		n.out[keyword] = value
	case single:
		n.out[keyword] = encodeSchema(n.r.reduce(value, n.depth+1, n.path.Step(schematext.Singles[keyword])))
	default:
		n.out[keyword] = value
	}
}
