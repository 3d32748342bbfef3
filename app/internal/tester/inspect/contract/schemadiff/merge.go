package schemadiff

import (
	"maps"
	"slices"
	"strings"
)

// maxAlternatives bounds the alternatives of one kind.
const maxAlternatives = 64

// both is the node of the values that fit a and b.
func (d *document) both(a, b *node) *node {
	n := &node{notes: joinNotes(a.notes, b.notes)}
	for k := range n.alts {
		if len(a.alts[k])*len(b.alts[k]) > maxAlternatives {
			d.tooComplex = true
			n.alts[k] = a.alts[k]
			continue
		}
		for _, x := range a.alts[k] {
			for _, y := range b.alts[k] {
				if joined := d.bothAlts(x, y); joined != nil {
					n.alts[k] = append(n.alts[k], joined)
				}
			}
		}
		n.exclusive[k] = (a.exclusive[k] || b.exclusive[k]) && len(n.alts[k]) > 1
	}
	return n
}

// joinNotes are the notes of a, and those of b that a does not have.
func joinNotes(a, b notes) notes {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	joined := maps.Clone(b)
	maps.Copy(joined, a)
	return joined
}

// bothAlts is what x and y demand together, or nil if no value can fit.
func (d *document) bothAlts(x, y *alt) *alt {
	switch {
	case x.free() && len(x.notes) == 0:
		return y
	case y.free() && len(y.notes) == 0:
		return x
	}
	a := &alt{
		integer: x.integer || y.integer, unique: x.unique || y.unique,
		low: tighter(x.low, y.low, 1), high: tighter(x.high, y.high, -1),
		least: max(x.least, y.least), most: x.most,
		multiples: joinMaps(x.multiples, y.multiples), required: joinMaps(x.required, y.required),
		other: joinOther(x.other, y.other), notes: joinNotes(x.notes, y.notes),
	}
	if a.most < 0 || y.most >= 0 && y.most < a.most {
		a.most = y.most
	}
	switch {
	case x.hasEnum && y.hasEnum:
		a.hasEnum = true
		for _, v := range x.enum {
			if slices.Contains(y.enum, v) {
				a.enum = append(a.enum, v)
			}
		}
	case x.hasEnum:
		a.hasEnum, a.enum = true, x.enum
	case y.hasEnum:
		a.hasEnum, a.enum = true, y.enum
	}
	if a.listed(); a.hasEnum && len(a.enum) == 0 {
		return nil
	}
	a.names = joinSubs(x.names, y.names)
	d.joinItems(a, x, y)
	d.joinMembers(a, x, y)
	return a
}

// listed takes the values out of a list that are no integers, where only those are taken.
func (a *alt) listed() {
	if a.hasEnum && a.integer {
		a.enum = slices.DeleteFunc(slices.Clone(a.enum), func(v string) bool { return strings.ContainsAny(v, ".e") })
		a.integer = false
	}
}

// tighter is the tighter of two bounds; the greater one is if sign is 1.
func tighter(x, y *bound, sign int) *bound {
	if x == nil {
		return y
	}
	if y == nil {
		return x
	}
	if c := compareBounds(x, y, sign); c > 0 {
		return x
	}
	return y
}

// compareBounds is positive if x refuses more than y.
func compareBounds(x, y *bound, sign int) int {
	if c := x.at.Cmp(y.at); c != 0 {
		return c * sign
	}
	switch {
	case x.open == y.open:
		return 0
	case x.open:
		return 1
	}
	return -1
}

func joinMaps[V any](x, y map[string]V) map[string]V {
	if len(x) == 0 {
		return y
	}
	joined := maps.Clone(x)
	maps.Copy(joined, y)
	return joined
}

// joinOther are the demands that are compared as a whole; two of one keyword become one text.
func joinOther(x, y map[string]demand) map[string]demand {
	joined := joinMaps(x, y)
	for k, v := range y {
		if before, ok := x[k]; ok && before.canon != v.canon {
			list := []string{before.canon, v.canon}
			slices.Sort(list)
			joined[k] = demand{short(list[0] + " & " + list[1]), before.shown + " and " + v.shown}
		}
	}
	return joined
}

// joinSubs is the subschema of the values that fit both.
func joinSubs(x, y sub) sub {
	if x == nil || y == nil {
		return slices.Concat(x, y)
	}
	joined := slices.Clone(x)
	for _, p := range y {
		if !slices.ContainsFunc(joined, func(q place) bool { return q.pointer == p.pointer }) {
			joined = append(joined, p)
		}
	}
	return joined
}

// joinItems joins what is demanded of the items of arrays.
func (d *document) joinItems(a, x, y *alt) {
	for i := range max(len(x.prefix), len(y.prefix)) {
		a.prefix = append(a.prefix, joinSubs(x.itemAt(i), y.itemAt(i)))
	}
	a.items = joinSubs(x.items, y.items)
}

// itemAt is the subschema of one item.
func (a *alt) itemAt(i int) sub {
	if i < len(a.prefix) {
		return a.prefix[i]
	}
	return a.items
}

// joinMembers joins what is demanded of the members of objects. What a demands of members
// without a name of its own would also be demanded of those that the other names: such a pair
// stays apart, as a demand that is compared as a whole.
func (d *document) joinMembers(a, x, y *alt) {
	if !x.opens(y) || !y.opens(x) {
		a.members, a.patterns, a.extra = x.members, x.patterns, x.extra
		parts := &alt{most: -1, members: y.members, patterns: y.patterns, extra: y.extra}
		a.other = joinOther(a.other, map[string]demand{"allOf": {short(d.canonAlt(parts)), describe(kindObject, parts)}})
		return
	}
	a.members = joinSubMaps(x.members, y.members)
	a.patterns = joinSubMaps(x.patterns, y.patterns)
	a.extra = joinSubs(x.extra, y.extra)
}

// opens reports whether a demands nothing of members that b names and a does not.
func (a *alt) opens(b *alt) bool {
	if a.extra == nil && len(a.patterns) == 0 {
		return true
	}
	for name := range b.members {
		if _, ok := a.members[name]; !ok {
			return false
		}
	}
	for pattern := range b.patterns {
		if _, ok := a.patterns[pattern]; !ok {
			return false
		}
	}
	return true
}

func joinSubMaps(x, y map[string]sub) map[string]sub {
	joined := joinMaps(x, y)
	for name, s := range y {
		if before, ok := x[name]; ok {
			joined[name] = joinSubs(before, s)
		}
	}
	return joined
}

// oneOf is the node of the values that fit one of several nodes, or exactly one of them.
func (d *document) oneOf(list []*node, exactly bool) *node {
	n := &node{}
	for k := range n.alts {
		var alts []*alt
		for _, branch := range list {
			for _, a := range branch.alts[k] {
				if len(branch.notes) > 0 {
					own := *a
					own.notes = joinNotes(branch.notes, a.notes)
					a = &own
				}
				alts = append(alts, a)
			}
		}
		n.alts[k] = d.simpler(kind(k), alts, exactly)
		if len(n.alts[k]) > maxAlternatives {
			d.tooComplex = true
		}
		n.exclusive[k] = exactly && len(n.alts[k]) > 1 && !d.disjoint(kind(k), n.alts[k])
	}
	return n
}

// simpler joins alternatives of one kind where they say no more than one.
func (d *document) simpler(k kind, alts []*alt, exactly bool) []*alt {
	var values *alt
	var list []*alt
	for _, a := range alts {
		if !a.plainEnum() {
			list = append(list, a)
			continue
		}
		if values == nil {
			values = &alt{hasEnum: true, most: -1, notes: notes{}}
		}
		values.addValues(a)
	}
	if values != nil {
		list = append(list, wholeEnum(k, values))
	}
	if len(list) < 2 {
		return list
	}
	if !exactly {
		for _, a := range list {
			if a.free() {
				return []*alt{a}
			}
		}
	}
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(a *alt) bool {
		text := d.canonAlt(a)
		again := seen[text] && !exactly
		seen[text] = true
		return again
	})
}

// addValues adds the values of an alternative that is a list of them. What it says of one value
// is kept by that.
func (a *alt) addValues(b *alt) {
	for _, v := range b.enum {
		if !slices.Contains(a.enum, v) {
			a.enum = append(a.enum, v)
		}
		for _, keyword := range []string{"title", "description"} {
			if said, ok := b.notes[keyword]; ok && len(b.enum) == 1 {
				a.notes[keyword+" of "+v] = said
			}
		}
	}
	slices.Sort(a.enum)
}

// wholeEnum drops a list that has every value of its kind.
func wholeEnum(k kind, a *alt) *alt {
	if k == kindNull || k == kindBoolean && len(a.enum) == 2 {
		a.hasEnum, a.enum = false, nil
	}
	return a
}

// disjoint reports whether it is plain that no value fits two of the alternatives: they list
// different values, or objects are told apart by a member.
func (d *document) disjoint(k kind, alts []*alt) bool {
	if differentValues(alts) {
		return true
	}
	if k != kindObject {
		return false
	}
	for name := range alts[0].required {
		list := make([]*alt, 0, len(alts))
		for _, a := range alts {
			if only := d.onlyAlt(a.members[name]); only != nil && a.required[name] {
				list = append(list, only)
			}
		}
		if len(list) == len(alts) && differentValues(list) {
			return true
		}
	}
	return false
}

// onlyAlt is the only alternative of a subschema, or nil if it has none or several.
func (d *document) onlyAlt(s sub) *alt {
	if s == nil {
		return nil
	}
	all := slices.Concat(d.node(s).alts[:]...)
	if len(all) != 1 {
		return nil
	}
	return all[0]
}

// differentValues reports whether all alternatives are lists of values, none of which is in two.
func differentValues(alts []*alt) bool {
	seen := make(map[string]bool)
	for _, a := range alts {
		if !a.hasEnum {
			return false
		}
		for _, v := range a.enum {
			if seen[v] {
				return false
			}
			seen[v] = true
		}
	}
	return true
}
