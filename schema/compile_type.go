package schema

import (
	"math"
	"strconv"
)

// translation makes the constraints of a Go type out of its nodes.
type translation map[*node]*constraint // those that references lead to

// constraints returns the constraints of a type whose root is n.
func (n *node) constraints() *constraints {
	return &constraints{root: translation{}.target(n), inferred: true}
}

func (t translation) target(n *node) *constraint {
	s, ok := t[n]
	if !ok {
		s = &constraint{}
		t[n] = s
		t.fill(s, n)
	}
	return s
}

func (t translation) constraint(n *node) *constraint {
	s := &constraint{}
	if n.kind == kindRef {
		s = t.target(n.ref)
	} else {
		t.fill(s, n)
	}
	if n.nullable && (n.kind == kindRef || n.kind == kindOwn) {
		return &constraint{same: s, starts: typeNull, defaults: n.defaults}
	}
	return s
}

// fill makes s the constraint of a node that is no reference.
func (t translation) fill(s *constraint, n *node) {
	s.types, s.defaults = types[n.kind], n.defaults
	s.starts = startsOf(s.types)
	switch n.kind {
	case kindAny:
		s.idle = true
	case kindOwn:
		s.inPlace = &applicators{own: n.own}
	case kindString, kindTime, kindDuration, kindBytes:
		s.text = n.ofText()
	case kindInt, kindUint, kindFloat:
		s.number = n.ofNumber()
	case kindArray:
		s.array = &arrayConstraint{length: n.length, items: t.constraint(n.items)}
	case kindMap:
		s.object = &objectConstraint{length: n.length, keys: n.keys, extra: t.constraint(n.items)}
	case kindStruct:
		s.object = t.ofStruct(n)
	default:
	}
	if n.nullable {
		s.starts |= typeNull
	}
}

func (t translation) ofStruct(n *node) *objectConstraint {
	o := &objectConstraint{
		length: anyLength, closed: n.extra == nil,
		members: make([]memberConstraint, len(n.fields)), fields: make([]goField, len(n.fields)),
	}
	for i := range n.fields {
		f := &n.fields[i]
		o.members[i] = memberConstraint{name: f.name, constraint: t.constraint(f.node), required: f.required}
		o.fields[i] = f.goField
		if f.required {
			o.required++
		}
	}
	o.makeIndex()
	if n.extra != nil && n.extra.kind != kindAny {
		o.extra = t.constraint(n.extra)
	}
	return o
}

// ofText returns the constraint of a string, or nil if every one will do.
func (n *node) ofText() *stringConstraint {
	c := &stringConstraint{length: n.length, pattern: n.pattern, format: n.format}
	if c.pattern != nil {
		c.mismatch = "must match the pattern " + c.pattern.String()
	}
	if n.enum != nil {
		c.enum = &n.enum.choices
	}
	if *c == (stringConstraint{length: anyLength}) {
		return nil
	}
	return c
}

// ofNumber returns the constraint of a number.
func (n *node) ofNumber() *numberConstraint {
	c := &numberConstraint{unsigned: n.kind == kindUint, hi: -1}
	if n.enum != nil {
		c.enum = &n.enum.choices
	}
	reason := n.outOfRange()
	if n.kind == kindFloat {
		c.float = &floatConstraint{bits: n.bits, lo: n.flo, hi: n.fhi, reason: reason}
		if n.enum != nil {
			c.float.enum = n.enum.floats
		}
		return c
	}
	if c.enum == nil {
		var ok bool
		c.lo, _ = n.lo.Int64()
		if c.hi, ok = n.hi.Int64(); !ok {
			c.hi = math.MaxInt64
		}
	}
	c.bounds = []bound{{limit: n.lo, sign: -1, reason: reason}, {limit: n.hi, sign: 1, reason: reason}}
	return c
}

// outOfRange is the reason that a number is too small or too great.
func (n *node) outOfRange() string {
	switch {
	case n.loText != "" && n.hiText != "":
		return "must be between " + n.loText + " and " + n.hiText
	case n.loText != "":
		return "must be at least " + n.loText + " and fit its type"
	case n.hiText != "":
		return "must be at most " + n.hiText + " and fit its type"
	}
	return "must fit a number of " + strconv.Itoa(n.bits) + " bits"
}
