package schemadiff

import (
	"encoding/json"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Bounds of the work on one schema.
const (
	maxSteps   = 200_000
	maxNesting = 128
)

// A document is a schema with all that it refers to.
type document struct {
	root       any
	siblings   bool // keywords beside $ref count
	nodes      map[string]*node
	anchors    map[string]place
	active     map[string]bool // places that are being read
	stack      []*node         // of canon
	steps      int
	unfinished int // how often a place was met that is being read
	tooComplex bool
}

func newDocument(root any) *document {
	d := &document{
		root: root, siblings: true, nodes: make(map[string]*node), anchors: make(map[string]place), active: make(map[string]bool),
	}
	if m, ok := root.(map[string]any); ok {
		dialect, _ := m["$schema"].(string)
		d.siblings = !strings.Contains(dialect, "draft-0")
	}
	d.findAnchors(place{"#", root}, 0)
	return d
}

// step counts a step of work, and reports whether there is room for more.
func (d *document) step() bool {
	d.steps++
	return d.steps <= maxSteps
}

// findAnchors finds the schemas that have names of their own.
func (d *document) findAnchors(p place, depth int) {
	if depth > maxNesting || !d.step() {
		d.tooComplex = true
		return
	}
	switch v := p.value.(type) {
	case map[string]any:
		for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := v[keyword].(string); ok {
				d.anchors[name] = p
			}
		}
		for name, value := range v {
			if name != "enum" && name != "const" && name != "default" && name != "examples" {
				d.findAnchors(p.child(name, value), depth+1)
			}
		}
	case []any:
		for i, item := range v {
			d.findAnchors(p.child(strconv.Itoa(i), item), depth+1)
		}
	}
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1", " ", "%20")

// child is a place within a place.
func (p place) child(name string, value any) place {
	return place{p.pointer + "/" + pointerEscapes.Replace(name), value}
}

// node is the normal form of a subschema.
func (d *document) node(s sub) *node {
	if len(s) == 0 {
		return anything()
	}
	key := s.key()
	if n, ok := d.nodes[key]; ok {
		return n
	}
	before := d.unfinished
	n := d.read(s[0])
	for _, p := range s[1:] {
		n = d.both(n, d.read(p))
	}
	d.keep(key, n, before)
	return n
}

// keep remembers a node, unless it was made of one that is still being read.
func (d *document) keep(key string, n *node, unfinished int) {
	if d.unfinished == unfinished || len(d.active) == 0 {
		d.nodes[key] = n
	}
}

// read is the normal form of the schema at one place.
func (d *document) read(p place) *node {
	if n, ok := d.nodes[p.pointer]; ok {
		return n
	}
	if d.active[p.pointer] {
		d.unfinished++
		return anything() // a schema that is itself demands nothing more
	}
	if len(d.active) > maxNesting || !d.step() {
		d.tooComplex = true
		return anything()
	}
	before := d.unfinished
	d.active[p.pointer] = true
	n := d.build(p)
	delete(d.active, p.pointer)
	d.keep(p.pointer, n, before)
	return n
}

// target is the place that a schema which only refers to another leads to.
func (d *document) target(p place) place {
	for range maxNesting {
		m, _ := p.value.(map[string]any)
		ref, ok := m["$ref"].(string)
		if !ok {
			break
		}
		for keyword := range m {
			ok = ok && (!checked[keyword] || keyword == "$ref" || !d.siblings)
		}
		next, found := d.find(ref)
		if !ok || !found {
			break
		}
		p = next
	}
	return p
}

func (d *document) build(p place) *node {
	m, ok := p.value.(map[string]any)
	if !ok {
		if p.value == false {
			return &node{}
		}
		n := anything()
		if p.value != true {
			n.demand("schema", short(text(p.value)), text(p.value))
		}
		return n
	}
	ref, hasRef := m["$ref"].(string)
	if !hasRef {
		ref, hasRef = m["$dynamicRef"].(string)
	}
	if hasRef && !d.siblings {
		n := d.referred(ref)
		return &node{n.alts, n.exclusive, joinNotes(readNotes(m), n.notes)}
	}
	n := d.own(p, m)
	if hasRef {
		n = d.both(n, d.referred(ref))
	}
	for _, branch := range d.branches(p, m, "allOf") {
		n = d.both(n, branch)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if _, ok := m[keyword].([]any); ok {
			n = d.both(n, d.oneOf(d.branches(p, m, keyword), keyword == "oneOf"))
		}
	}
	return n
}

// branches are the normal forms of the schemas in a list.
func (d *document) branches(p place, m map[string]any, keyword string) []*node {
	list, _ := m[keyword].([]any)
	under := p.child(keyword, list)
	nodes := make([]*node, 0, len(list))
	for i, item := range list {
		nodes = append(nodes, d.read(under.child(strconv.Itoa(i), item)))
	}
	return nodes
}

// referred is what a reference leads to. Other documents are not loaded.
func (d *document) referred(ref string) *node {
	if p, ok := d.find(ref); ok {
		return d.read(p)
	}
	n := anything()
	n.demand("$ref", quoted(ref), quoted(ref))
	return n
}

func (d *document) find(ref string) (place, bool) {
	fragment, local := strings.CutPrefix(ref, "#")
	if !local {
		return place{}, false
	}
	if fragment == "" {
		return place{"#", d.root}, true
	}
	if !strings.HasPrefix(fragment, "/") {
		p, ok := d.anchors[fragment]
		return p, ok
	}
	p := place{"#", d.root}
	for _, token := range strings.Split(fragment[1:], "/") {
		if plain, err := url.PathUnescape(token); err == nil {
			token = plain
		}
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch v := p.value.(type) {
		case map[string]any:
			value, ok := v[token]
			if !ok {
				return place{}, false
			}
			p = p.child(token, value)
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				return place{}, false
			}
			p = p.child(token, v[i])
		default:
			return place{}, false
		}
	}
	return p, true
}

// demand adds a demand on values of every kind that is compared as a whole.
func (n *node) demand(keyword string, canon, shown string) {
	for _, alts := range n.alts {
		for _, a := range alts {
			a.set(keyword, canon, shown)
		}
	}
}

// own is what the keywords of a schema demand themselves, without references and alternatives.
func (d *document) own(p place, m map[string]any) *node {
	n := &node{notes: readNotes(m)}
	integer, fractions := false, false
	for _, name := range typeNames(m) {
		switch k := kind(slices.Index(kindNames[:], name)); {
		case name == "integer":
			integer = true
			n.alts[kindNumber] = []*alt{{most: -1}}
		case k < kinds:
			fractions = fractions || k == kindNumber
			n.alts[k] = []*alt{{most: -1}}
		}
	}
	for k, alts := range n.alts {
		if len(alts) == 0 {
			continue
		}
		a := alts[0]
		switch kind(k) {
		case kindNumber:
			a.integer = integer && !fractions
			a.readNumber(m)
		case kindString:
			a.readString(m)
		case kindArray:
			d.readArray(a, p, m)
		case kindObject:
			d.readObject(a, p, m)
		default: // null and booleans have no keywords of their own
		}
	}
	for _, keyword := range []string{"not", "if", "then", "else"} {
		if value, ok := m[keyword]; ok {
			n.demand(keyword, d.canonSub(sub{p.child(keyword, value)}), text(value))
		}
	}
	n.readValues(m)
	return n
}

// typeNames are the types that a schema takes.
func typeNames(m map[string]any) []string {
	switch t := m["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var names []string
		for _, name := range t {
			if s, ok := name.(string); ok {
				names = append(names, s)
			}
		}
		return names
	}
	return kindNames[:]
}

// readValues reads the lists of values.
func (n *node) readValues(m map[string]any) {
	if list, ok := m["enum"].([]any); ok {
		n.only(list)
	}
	if value, ok := m["const"]; ok {
		n.only([]any{value})
	}
}

// only leaves the values of a list.
func (n *node) only(list []any) {
	var texts [kinds][]string
	for _, v := range list {
		k := kindOf(v)
		if t := text(v); !slices.Contains(texts[k], t) {
			texts[k] = append(texts[k], t)
		}
	}
	for k, alts := range n.alts {
		if len(alts) == 0 {
			continue
		}
		a := alts[0]
		values := texts[k]
		slices.Sort(values)
		if a.hasEnum {
			values = slices.DeleteFunc(values, func(v string) bool { return !slices.Contains(a.enum, v) })
		}
		a.hasEnum, a.enum = true, values
		if a.listed(); len(a.enum) == 0 {
			n.alts[k] = nil
			continue
		}
		wholeEnum(kind(k), a)
	}
}

func kindOf(v any) kind {
	switch v.(type) {
	case bool:
		return kindBoolean
	case json.Number:
		return kindNumber
	case string:
		return kindString
	case []any:
		return kindArray
	case map[string]any:
		return kindObject
	}
	return kindNull
}

// readNumber reads the bounds of numbers. Those of integers are the integers themselves.
func (a *alt) readNumber(m map[string]any) {
	for _, b := range []struct {
		keyword string
		open    bool
		sign    int
	}{{"minimum", false, 1}, {"exclusiveMinimum", true, 1}, {"maximum", false, -1}, {"exclusiveMaximum", true, -1}} {
		at := rational(m[b.keyword])
		if at == nil {
			continue
		}
		found := &bound{at, b.open}
		if b.sign > 0 {
			a.low = tighter(a.low, found, 1)
		} else {
			a.high = tighter(a.high, found, -1)
		}
	}
	if step := rational(m["multipleOf"]); step != nil && step.Sign() > 0 {
		if step.Cmp(big.NewRat(1, 1)) == 0 {
			a.integer = true
		} else {
			a.multiples = map[string]*big.Rat{decimal(step): step}
		}
	}
	if a.integer {
		a.low, a.high = whole(a.low, 1), whole(a.high, -1)
	}
}

// whole is a bound of integers: the least or the greatest one that is taken.
func whole(b *bound, sign int) *bound {
	if b == nil {
		return nil
	}
	if b.at.IsInt() {
		if !b.open {
			return b
		}
		return &bound{at: new(big.Rat).Add(b.at, big.NewRat(int64(sign), 1))}
	}
	down := new(big.Int).Div(b.at.Num(), b.at.Denom()) // Euclidean: towards less, for a denominator above 0
	if sign > 0 {
		down.Add(down, big.NewInt(1))
	}
	return &bound{at: new(big.Rat).SetInt(down)}
}

// readCounts reads a least and a greatest number of parts.
func (a *alt) readCounts(m map[string]any, least, most string) {
	if n, ok := count(m[least]); ok {
		a.least = n
	}
	if n, ok := count(m[most]); ok {
		a.most = n
	}
}

func (a *alt) set(keyword, canon, shown string) {
	if a.other == nil {
		a.other = make(map[string]demand)
	}
	a.other[keyword] = demand{canon, shown}
}

func (a *alt) readString(m map[string]any) {
	a.readCounts(m, "minLength", "maxLength")
	for _, keyword := range []string{"pattern", "format", "contentEncoding", "contentMediaType"} {
		if value, ok := m[keyword]; ok {
			a.set(keyword, short(text(value)), text(value))
		}
	}
}

func (d *document) readArray(a *alt, p place, m map[string]any) {
	a.readCounts(m, "minItems", "maxItems")
	a.unique = m["uniqueItems"] == true
	prefix, rest := "prefixItems", "items"
	if _, old := m["items"].([]any); old {
		prefix, rest = "items", "additionalItems"
	}
	if list, ok := m[prefix].([]any); ok {
		under := p.child(prefix, list)
		for i, item := range list {
			a.prefix = append(a.prefix, d.part(under, strconv.Itoa(i), item))
		}
	}
	if value, ok := m[rest]; ok {
		a.items = d.part(p, rest, value)
	} else if value, ok := m["unevaluatedItems"]; ok {
		a.set("unevaluatedItems", d.canonSub(sub{p.child("unevaluatedItems", value)}), text(value))
	}
	if value, ok := m["contains"]; ok {
		counts := " " + text(m["minContains"]) + " " + text(m["maxContains"])
		a.set("contains", d.canonSub(sub{p.child("contains", value)})+counts, text(value)+counts)
	}
}

// part is a subschema, or nil if it takes everything.
func (d *document) part(p place, name string, value any) sub {
	if m, ok := value.(map[string]any); value == true || ok && len(m) == 0 {
		return nil
	}
	return sub{p.child(name, value)}
}

func (d *document) readObject(a *alt, p place, m map[string]any) {
	a.readCounts(m, "minProperties", "maxProperties")
	a.members = subsOf(p, m, "properties")
	a.patterns = subsOf(p, m, "patternProperties")
	if list, ok := m["required"].([]any); ok && len(list) > 0 {
		a.required = make(map[string]bool, len(list))
		for _, name := range list {
			if s, ok := name.(string); ok {
				a.required[s] = true
			}
		}
	}
	if value, ok := m["additionalProperties"]; ok {
		a.extra = d.part(p, "additionalProperties", value)
	} else if value, ok := m["unevaluatedProperties"]; ok {
		if applicators(m) {
			a.set("unevaluatedProperties", d.canonSub(sub{p.child("unevaluatedProperties", value)}), text(value))
		} else {
			a.extra = d.part(p, "unevaluatedProperties", value)
		}
	}
	if value, ok := m["propertyNames"]; ok {
		a.names = d.part(p, "propertyNames", value)
	}
	for _, keyword := range []string{"dependentRequired", "dependentSchemas", "dependencies"} {
		if value, ok := m[keyword].(map[string]any); ok && len(value) > 0 {
			a.set(keyword, short(text(value)), text(value))
		}
	}
}

// applicators reports whether other schemas of the same object may know members.
func applicators(m map[string]any) bool {
	for _, keyword := range []string{"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"} {
		if _, ok := m[keyword]; ok {
			return true
		}
	}
	return false
}

// subsOf are the subschemas of a map of them.
func subsOf(p place, m map[string]any, keyword string) map[string]sub {
	values, ok := m[keyword].(map[string]any)
	if !ok || len(values) == 0 {
		return nil
	}
	under := p.child(keyword, values)
	subs := make(map[string]sub, len(values))
	for name, value := range values {
		subs[name] = sub{under.child(name, value)}
	}
	return subs
}

// checked are the keywords that demand something, or say where a schema is.
var checked = map[string]bool{
	"type": true, "enum": true, "const": true, "multipleOf": true, "minimum": true, "exclusiveMinimum": true, "maximum": true,
	"exclusiveMaximum": true, "minLength": true, "maxLength": true, "pattern": true, "format": true, "contentEncoding": true,
	"contentMediaType": true, "contentSchema": true, "items": true, "prefixItems": true, "additionalItems": true, "unevaluatedItems": true,
	"contains": true, "minContains": true, "maxContains": true, "minItems": true, "maxItems": true, "uniqueItems": true,
	"properties": true, "patternProperties": true, "additionalProperties": true, "unevaluatedProperties": true, "propertyNames": true,
	"required": true, "minProperties": true, "maxProperties": true, "dependentRequired": true, "dependentSchemas": true, "dependencies": true,
	"allOf": true, "anyOf": true, "oneOf": true, "not": true, "if": true, "then": true, "else": true, "$ref": true, "$dynamicRef": true,
	"$schema": true, "$id": true, "$anchor": true, "$dynamicAnchor": true, "$defs": true, "definitions": true, "$comment": true, "$vocabulary": true,
}

// readNotes are the keywords that demand nothing.
func readNotes(m map[string]any) notes {
	var n notes
	for keyword, value := range m {
		if checked[keyword] {
			continue
		}
		if n == nil {
			n = make(notes)
		}
		n[keyword] = text(value)
	}
	return n
}
