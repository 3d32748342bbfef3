package schemadiff

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ErrTooComplex says that schemas take too much work to be compared by what they mean.
var ErrTooComplex = errors.New("the schemas are too complex to be compared by what they mean")

// maxChanges bounds the changes of one comparison.
const maxChanges = 500

// An Effect says what a change does to the values that a schema takes, or to what it tells.
type Effect uint8

// The effects.
const (
	// Narrows means that values are refused that were taken.
	Narrows Effect = iota + 1
	// Widens means that values are taken that were refused.
	Widens
	// Differs means both, or that it is not known.
	Differs
	// MemberAdded is a member that may be left out, of an object that took any members.
	MemberAdded
	// MemberAddedClosed is one of an object that took no other members.
	MemberAddedClosed
	// MemberRequired is a new member that may not be left out.
	MemberRequired
	// MemberRequiredClosed is one of an object that took no other members.
	MemberRequiredClosed
	// MemberRemoved is a member that was optional and is not described any more.
	MemberRemoved
	// MemberLost is one that was required.
	MemberLost
	// MemberRenamed is a member that has got another name.
	MemberRenamed
	// Described is a description or example.
	Described
	// Titled is a text for people.
	Titled
	// Defaulted is the default of a member.
	Defaulted
	// Carried is the header that repeats a member.
	Carried
	// Annotated is a keyword that demands nothing and is not known here.
	Annotated
)

// A Change is one difference of meaning.
type Change struct {
	// Path leads from the schema to the place: properties, name of the property, and so on,
	// and last the keyword, as it would be if nothing were a reference.
	Path []string
	// Effect is what it does.
	Effect Effect
	// Before and After are JSON, or words where a value has none; one of them may be empty.
	Before, After string
}

// Compare returns the differences of meaning between two schemas. An empty text is a schema that
// takes everything. The error is ErrNoJSON or ErrTooComplex.
func Compare(before, after []byte) ([]Change, error) {
	c := comparer{seen: make(map[string]bool)}
	var err error
	if c.old, err = documentOf(before); err != nil {
		return nil, err
	}
	if c.new, err = documentOf(after); err != nil {
		return nil, err
	}
	c.subs(nil, c.old.whole(), c.new.whole())
	c.run()
	if c.old.tooComplex || c.new.tooComplex || c.steps > maxSteps {
		return nil, ErrTooComplex
	}
	return c.list, nil
}

func documentOf(raw []byte) (*document, error) {
	if len(raw) == 0 {
		return newDocument(true), nil
	}
	v, err := decode(raw)
	if err != nil {
		return nil, err
	}
	return newDocument(v), nil
}

func (d *document) whole() sub { return sub{place{"#", d.root}} }

// A pair is two subschemas to compare.
type pair struct {
	path     []string
	old, new sub
}

// A comparer compares two documents.
type comparer struct {
	old, new *document
	seen     map[string]bool // pairs of subschemas that are compared, or have been
	waiting  []pair
	list     []Change
	steps    int
	// strict is a comparison of what fits alone: a member that is new counts as what it refuses.
	strict bool
	depth  int // of comparisons within comparisons
}

func (c *comparer) add(path []string, effect Effect, before, after string) {
	made := Change{path, effect, before, after}
	again := slices.ContainsFunc(c.list, func(o Change) bool {
		return o.Effect == effect && o.Before == before && o.After == after && slices.Equal(o.Path, path)
	})
	if !again && len(c.list) < maxChanges {
		c.list = append(c.list, made)
	}
}

// under is a path within a path.
func under(path []string, more ...string) []string { return slices.Concat(path, more) }

// side is the effect of something that only one schema demands.
func side(inOld, inNew bool) Effect {
	switch {
	case inOld && inNew:
		return Differs
	case inNew:
		return Narrows
	}
	return Widens
}

func (c *comparer) subs(path []string, o, n sub) {
	key := o.key() + "\n" + n.key()
	if c.seen[key] || len(path) > 4*maxNesting {
		return
	}
	if c.steps++; c.steps > maxSteps {
		return
	}
	c.seen[key] = true
	c.waiting = append(c.waiting, pair{path, o, n})
}

// run compares what waits, outer subschemas before inner ones.
func (c *comparer) run() {
	for len(c.waiting) > 0 {
		p := c.waiting[0]
		c.waiting = c.waiting[1:]
		c.nodes(p.path, c.old.node(p.old), c.new.node(p.new))
	}
}

func (c *comparer) nodes(path []string, o, n *node) {
	c.notes(path, o.notes, n.notes)
	lost, gained := false, false
	for k := range o.alts {
		lost = lost || len(o.alts[k]) > 0 && len(n.alts[k]) == 0
		gained = gained || len(o.alts[k]) == 0 && len(n.alts[k]) > 0
	}
	if lost || gained {
		effect := Widens
		if lost {
			effect = Narrows
		}
		if lost && gained {
			effect = Differs
		}
		c.add(under(path, "type"), effect, o.types(), n.types())
	}
	for k := range o.alts {
		if len(o.alts[k]) > 0 && len(n.alts[k]) > 0 {
			c.alternatives(path, kind(k), o, n)
		}
	}
}

// alternatives compares what is demanded of values of one kind.
func (c *comparer) alternatives(path []string, k kind, o, n *node) {
	before, after := o.alts[k], n.alts[k]
	if len(before) == 1 && len(after) == 1 {
		c.alt(path, k, before[0], after[0])
		return
	}
	texts := func(d *document, list []*alt) map[string]bool {
		set := make(map[string]bool, len(list))
		for _, a := range list {
			set[d.canonAlt(a)] = true
		}
		return set
	}
	oldTexts, newTexts := texts(c.old, before), texts(c.new, after)
	oldRest := slices.DeleteFunc(slices.Clone(before), func(a *alt) bool { return newTexts[c.old.canonAlt(a)] })
	newRest := slices.DeleteFunc(slices.Clone(after), func(a *alt) bool { return oldTexts[c.new.canonAlt(a)] })
	path = under(path, "anyOf")
	if len(oldRest) == 1 && len(newRest) == 1 {
		c.alt(path, k, oldRest[0], newRest[0])
	} else {
		for _, a := range oldRest {
			if !slices.ContainsFunc(after, func(b *alt) bool { return c.covers(k, a, b) }) {
				c.add(path, Narrows, describe(k, a), "")
			}
		}
		back := &comparer{old: c.new, new: c.old, steps: c.steps, depth: c.depth}
		for _, b := range newRest {
			if !slices.ContainsFunc(before, func(a *alt) bool { return back.covers(k, b, a) }) {
				c.add(path, Widens, "", describe(k, b))
			}
		}
		c.steps = back.steps
	}
	if o.exclusive[k] != n.exclusive[k] {
		names := map[bool]string{false: "anyOf", true: "oneOf"}
		c.add(path, side(o.exclusive[k], n.exclusive[k]), names[o.exclusive[k]], names[n.exclusive[k]])
	}
}

// covers reports whether b of the new schema takes all that a of the old one takes.
func (c *comparer) covers(k kind, a, b *alt) bool {
	if c.depth > maxNesting {
		c.steps = maxSteps + 1
		return false
	}
	inner := &comparer{old: c.old, new: c.new, seen: make(map[string]bool), steps: c.steps, strict: true, depth: c.depth + 1}
	if c.strict { // what is being compared is taken to fit where it comes again within itself
		inner.seen = maps.Clone(c.seen)
	}
	inner.alt(nil, k, a, b)
	inner.run()
	c.steps = inner.steps
	return c.steps <= maxSteps && !slices.ContainsFunc(inner.list, func(c Change) bool { return c.Effect == Narrows || c.Effect == Differs })
}

// describe names an alternative for a person.
func describe(k kind, a *alt) string {
	parts := []string{kindNames[k]}
	if a.hasEnum {
		parts = append(parts, "of "+strings.Join(a.enum, ", "))
	}
	if len(a.members) > 0 {
		parts = append(parts, "with "+strings.Join(slices.Sorted(maps.Keys(a.members)), ", "))
	}
	return strings.Join(parts, " ")
}

// notes compares what schemas tell.
func (c *comparer) notes(path []string, o, n notes) {
	if c.strict {
		return
	}
	for _, keyword := range slices.Sorted(maps.Keys(joinNotes(o, n))) {
		if o[keyword] != n[keyword] {
			c.add(under(path, keyword), noteEffect(keyword), o[keyword], n[keyword])
		}
	}
}

func noteEffect(keyword string) Effect {
	keyword, _, _ = strings.Cut(keyword, " ")
	switch keyword {
	case "description", "examples", "deprecated", "readOnly", "writeOnly":
		return Described
	case "title":
		return Titled
	case "default":
		return Defaulted
	case "x-mcp-header":
		return Carried
	}
	return Annotated
}

func (c *comparer) alt(path []string, k kind, o, n *alt) {
	c.notes(path, o.notes, n.notes)
	c.values(path, o, n)
	for _, keyword := range slices.Sorted(maps.Keys(joinMaps(o.other, n.other))) {
		before, had := o.other[keyword]
		after, has := n.other[keyword]
		if before.canon != after.canon {
			c.add(under(path, keyword), side(had, has), before.shown, after.shown)
		}
	}
	switch k {
	case kindNumber:
		c.numbers(path, o, n)
	case kindString:
		c.counts(path, o, n, "minLength", "maxLength")
	case kindArray:
		c.counts(path, o, n, "minItems", "maxItems")
		c.items(path, o, n)
	case kindObject:
		c.counts(path, o, n, "minProperties", "maxProperties")
		c.members(path, o, n)
	default: // null and booleans are what they are
	}
}

// values compares lists of values.
func (c *comparer) values(path []string, o, n *alt) {
	before, after := "", ""
	if o.hasEnum {
		before = "[" + strings.Join(o.enum, ",") + "]"
	}
	if n.hasEnum {
		after = "[" + strings.Join(n.enum, ",") + "]"
	}
	path = under(path, "enum")
	if !o.hasEnum || !n.hasEnum {
		if before != after {
			c.add(path, side(o.hasEnum, n.hasEnum), before, after)
		}
		return
	}
	missing := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(v string) bool { return !slices.Contains(b, v) })
	}
	if missing(o.enum, n.enum) {
		c.add(path, Narrows, before, after)
	}
	if missing(n.enum, o.enum) {
		c.add(path, Widens, before, after)
	}
}

func (c *comparer) numbers(path []string, o, n *alt) {
	if o.integer != n.integer && !o.hasEnum {
		names := map[bool]string{false: "number", true: "integer"}
		c.add(under(path, "type"), side(o.integer, n.integer), names[o.integer], names[n.integer])
	}
	c.bound(under(path, "minimum"), o.low, n.low, 1)
	c.bound(under(path, "maximum"), o.high, n.high, -1)
	before, after := slices.Sorted(maps.Keys(o.multiples)), slices.Sorted(maps.Keys(n.multiples))
	if slices.Equal(before, after) {
		return
	}
	effect := side(len(before) > 0, len(after) > 0)
	if len(before) == 1 && len(after) == 1 {
		x, y := o.multiples[before[0]], n.multiples[after[0]]
		switch {
		case divides(x, y):
			effect = Narrows
		case divides(y, x):
			effect = Widens
		}
	}
	c.add(under(path, "multipleOf"), effect, strings.Join(before, ", "), strings.Join(after, ", "))
}

func (c *comparer) bound(path []string, o, n *bound, sign int) {
	if o.String() == n.String() {
		return
	}
	effect := side(o != nil, n != nil)
	if o != nil && n != nil {
		effect = Widens
		if compareBounds(n, o, sign) > 0 {
			effect = Narrows
		}
	}
	c.add(path, effect, o.String(), n.String())
}

func (c *comparer) counts(path []string, o, n *alt, least, most string) {
	shown := func(n int) string {
		if n < 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	if o.least != n.least {
		effect := Widens
		if n.least > o.least {
			effect = Narrows
		}
		c.add(under(path, least), effect, shown(o.least), shown(n.least))
	}
	if o.most != n.most {
		effect := Narrows
		if n.most < 0 || o.most >= 0 && n.most > o.most {
			effect = Widens
		}
		c.add(under(path, most), effect, shown(o.most), shown(n.most))
	}
}

func (c *comparer) items(path []string, o, n *alt) {
	if o.unique != n.unique {
		c.add(under(path, "uniqueItems"), side(o.unique, n.unique), strconv.FormatBool(o.unique), strconv.FormatBool(n.unique))
	}
	for i := range max(len(o.prefix), len(n.prefix)) {
		c.subs(under(path, "prefixItems", strconv.Itoa(i)), o.itemAt(i), n.itemAt(i))
	}
	c.subs(under(path, "items"), o.items, n.items)
}
