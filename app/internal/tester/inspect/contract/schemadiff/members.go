package schemadiff

import (
	"maps"
	"math/big"
	"regexp"
	"slices"
)

// divides reports whether every multiple of y is one of x.
func divides(x, y *big.Rat) bool { return new(big.Rat).Quo(y, x).IsInt() }

// members compares what is demanded of the members of objects.
func (c *comparer) members(path []string, o, n *alt) {
	var gone, came []string
	for _, name := range slices.Sorted(maps.Keys(joinMaps(o.named(), n.named()))) {
		switch had, has := o.knows(name), n.knows(name); {
		case c.strict:
			c.strictMember(path, name, o, n)
		case had && !has:
			gone = append(gone, name)
		case !had && has:
			came = append(came, name)
		default:
			c.subs(under(path, "properties", name), o.member(name), n.member(name))
			c.requires(path, name, o, n)
		}
	}
	c.changedNames(path, gone, came, o, n)
	for _, pattern := range slices.Sorted(maps.Keys(joinMaps(o.patterns, n.patterns))) {
		before, had := o.patterns[pattern]
		after, has := n.patterns[pattern]
		if !had {
			before = o.extra
		}
		if !has {
			after = n.extra
		}
		c.subs(under(path, "patternProperties", pattern), before, after)
	}
	switch was, is := c.closed(c.old, o), c.closed(c.new, n); {
	case was != is:
		c.add(under(path, "additionalProperties"), side(was, is), c.old.shownExtra(o), c.new.shownExtra(n))
	default:
		c.subs(under(path, "additionalProperties"), o.extra, n.extra)
	}
	c.subs(under(path, "propertyNames"), o.names, n.names)
}

// named are the names that an object speaks of.
func (a *alt) named() map[string]bool {
	names := make(map[string]bool, len(a.members))
	for name := range a.members {
		names[name] = true
	}
	return joinMaps(names, a.required)
}

// knows reports whether a member is named.
func (a *alt) knows(name string) bool { return a.members[name] != nil || a.required[name] }

// member is the subschema of a member: that of its name, or of the first pattern that it fits,
// or that of members without a name.
func (a *alt) member(name string) sub {
	s, ok := a.members[name]
	for _, pattern := range slices.Sorted(maps.Keys(a.patterns)) {
		if re, err := regexp.Compile(pattern); err == nil && re.MatchString(name) {
			s, ok = joinSubs(s, a.patterns[pattern]), true
		}
	}
	if !ok {
		return a.extra
	}
	return s
}

// closed reports whether a takes no members but those that it names.
func (c *comparer) closed(d *document, a *alt) bool {
	return a.extra != nil && d.node(a.extra).types() == "nothing"
}

// shownExtra is what a says of members that it does not name.
func (d *document) shownExtra(a *alt) string {
	if a.extra == nil {
		return "true"
	}
	return d.plain(a.extra)
}

// strictMember compares which objects are taken, as far as one member goes.
func (c *comparer) strictMember(path []string, name string, o, n *alt) {
	c.subs(under(path, "properties", name), o.member(name), n.member(name))
	c.requires(path, name, o, n)
}

// requires compares whether a member may be left out.
func (c *comparer) requires(path []string, name string, o, n *alt) {
	if o.required[name] == n.required[name] {
		return
	}
	shown := map[bool]string{false: "optional", true: "required"}
	c.add(under(path, "properties", name, "required"), side(o.required[name], n.required[name]), shown[o.required[name]], shown[n.required[name]])
}

// changedNames tells of members that have gone and come.
func (c *comparer) changedNames(path, gone, came []string, o, n *alt) {
	text := func(d *document, a *alt, name string) string { return d.plain(a.member(name)) }
	for _, name := range gone {
		was := c.old.canonSub(o.member(name))
		i := slices.IndexFunc(came, func(other string) bool {
			return o.required[name] == n.required[other] && c.new.canonSub(n.member(other)) == was
		})
		switch {
		case i >= 0:
			c.add(under(path, "properties", name), MemberRenamed, quoted(name), quoted(came[i]))
			came = slices.Delete(slices.Clone(came), i, i+1)
		case o.required[name]:
			c.add(under(path, "properties", name), MemberLost, text(c.old, o, name), "")
		default:
			c.add(under(path, "properties", name), MemberRemoved, text(c.old, o, name), "")
		}
	}
	closed := c.closed(c.old, o)
	for _, name := range came {
		effect := MemberAdded
		switch {
		case n.required[name] && closed:
			effect = MemberRequiredClosed
		case n.required[name]:
			effect = MemberRequired
		case closed:
			effect = MemberAddedClosed
		}
		c.add(under(path, "properties", name), effect, "", text(c.new, n, name))
	}
}

// plain is a subschema as it was written.
func (d *document) plain(s sub) string {
	if len(s) == 0 {
		return "{}"
	}
	return text(s[0].value)
}
