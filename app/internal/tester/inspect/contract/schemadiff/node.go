package schemadiff

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// A kind is one of the types of JSON values; an integer is a number.
type kind uint8

const (
	kindNull kind = iota
	kindBoolean
	kindNumber
	kindString
	kindArray
	kindObject
	kinds // how many there are
)

var kindNames = [kinds]string{"null", "boolean", "number", "string", "array", "object"}

// A node is a schema in its normal form: a value fits if it fits one of the alternatives
// of its kind, and exactly one where they are exclusive. A kind without alternatives is refused.
type node struct {
	alts      [kinds][]*alt
	exclusive [kinds]bool
	notes     notes
}

// notes are what a schema says beside what it demands, by keyword, as canonical texts.
type notes map[string]string

// An alt is what is demanded of a value of one kind; the zero alt demands nothing.
type alt struct {
	// enum are the values, as canonical texts in order, if there is a list.
	enum    []string
	hasEnum bool

	// Numbers.
	integer   bool
	low, high *bound
	multiples map[string]*big.Rat

	// Least and greatest number of characters, items or members; most is negative without one.
	least, most int

	// Arrays: the schemas of the first items, and that of the others.
	prefix []sub
	items  sub
	unique bool

	// Objects.
	members  map[string]sub
	required map[string]bool
	patterns map[string]sub // by the pattern of names
	extra    sub            // of members that have no schema by their name
	names    sub

	// other are demands that are compared as a whole, by keyword.
	other map[string]demand
	notes notes
}

// A demand is what a keyword says that has no place in the normal form: as a text that is the
// same for what means the same, and as it was written.
type demand struct{ canon, shown string }

// A bound is the least or the greatest number.
type bound struct {
	at   *big.Rat
	open bool // the number itself is refused
}

func (b *bound) String() string {
	if b == nil {
		return ""
	}
	if b.open {
		return decimal(b.at) + " (exclusive)"
	}
	return decimal(b.at)
}

// A sub is a subschema: a value must fit the schemas at all of these places. Nil takes
// every value.
type sub []place

// A place is a schema within a document.
type place struct {
	pointer string
	value   any
}

// key identifies a subschema within its document.
func (s sub) key() string {
	if len(s) == 1 {
		return s[0].pointer
	}
	pointers := make([]string, len(s))
	for i, p := range s {
		pointers[i] = p.pointer
	}
	return strings.Join(pointers, " ")
}

// anything is the node of the schema that takes every value.
func anything() *node {
	n := &node{}
	for k := range n.alts {
		n.alts[k] = []*alt{{most: -1}}
	}
	return n
}

// types names the kinds of values that a node takes, for a person.
func (n *node) types() string {
	var names []string
	for k, alts := range n.alts {
		name := kindNames[k]
		if kind(k) == kindNumber && len(alts) == 1 && alts[0].integer {
			name = "integer"
		}
		if len(alts) > 0 {
			names = append(names, name)
		}
	}
	switch {
	case len(names) == 0:
		return "nothing"
	case len(names) == int(kinds):
		return "anything"
	}
	return strings.Join(names, ", ")
}

// plainEnum reports whether an alt is a list of values and nothing else.
func (a *alt) plainEnum() bool {
	return a.hasEnum && a.low == nil && a.high == nil && len(a.multiples) == 0 && a.least == 0 && a.most < 0 && a.noParts()
}

// free reports whether an alt demands nothing of the values of its kind.
func (a *alt) free() bool {
	return !a.hasEnum && !a.integer && a.low == nil && a.high == nil && len(a.multiples) == 0 && a.least == 0 && a.most < 0 && a.noParts()
}

func (a *alt) noParts() bool {
	return len(a.prefix) == 0 && a.items == nil && !a.unique && len(a.members) == 0 && len(a.required) == 0 &&
		len(a.patterns) == 0 && a.extra == nil && a.names == nil && len(a.other) == 0
}

// canon is the text of a node, in which what is demanded and nothing else shows. Nodes
// within themselves are named by how far out they are.
func (d *document) canon(n *node) string {
	for i, outer := range d.stack {
		if outer == n {
			return "^" + strconv.Itoa(len(d.stack)-i)
		}
	}
	if !d.step() || len(d.stack) > maxNesting {
		d.tooComplex = true
		return "…"
	}
	d.stack = append(d.stack, n)
	defer func() { d.stack = d.stack[:len(d.stack)-1] }()
	var list []string
	for k, alts := range n.alts {
		var texts []string
		for _, a := range alts {
			texts = append(texts, d.canonAlt(a))
		}
		if len(texts) == 0 {
			continue
		}
		slices.Sort(texts)
		name := kindNames[k]
		if n.exclusive[k] {
			name += " one of"
		}
		list = append(list, name+strings.Join(texts, "|"))
	}
	return short("<" + strings.Join(list, " ") + ">")
}

// maxCanon is how long the text of a node is before a digest takes its place.
const maxCanon = 512

func short(text string) string {
	if len(text) <= maxCanon {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "#" + hex.EncodeToString(sum[:])
}

// canonAlt is the text of an alternative.
func (d *document) canonAlt(a *alt) string {
	var parts []string
	add := func(name, text string) { parts = append(parts, name+"="+text) }
	if a.hasEnum {
		add("enum", strings.Join(a.enum, ","))
	}
	if a.integer {
		add("integer", "")
	}
	if a.low != nil {
		add("low", a.low.String())
	}
	if a.high != nil {
		add("high", a.high.String())
	}
	for _, m := range slices.Sorted(maps.Keys(a.multiples)) {
		add("multiple", m)
	}
	if a.least > 0 {
		add("least", strconv.Itoa(a.least))
	}
	if a.most >= 0 {
		add("most", strconv.Itoa(a.most))
	}
	for _, p := range a.prefix {
		add("prefix", d.canonSub(p))
	}
	if a.items != nil {
		add("items", d.canonSub(a.items))
	}
	if a.unique {
		add("unique", "")
	}
	for _, name := range slices.Sorted(maps.Keys(a.members)) {
		add("member "+quoted(name), d.canonSub(a.members[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(a.required)) {
		add("required", quoted(name))
	}
	for _, p := range slices.Sorted(maps.Keys(a.patterns)) {
		add("pattern "+quoted(p), d.canonSub(a.patterns[p]))
	}
	if a.extra != nil {
		add("extra", d.canonSub(a.extra))
	}
	if a.names != nil {
		add("names", d.canonSub(a.names))
	}
	for _, k := range slices.Sorted(maps.Keys(a.other)) {
		add(k, a.other[k].canon)
	}
	return "{" + strings.Join(parts, ";") + "}"
}

func (d *document) canonSub(s sub) string {
	if len(s) == 1 {
		if p := d.target(s[0]); d.active[p.pointer] {
			return "@" + p.pointer
		}
	}
	return d.canon(d.node(s))
}
