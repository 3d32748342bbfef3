package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// graph says which subschemas a schema applies: in place, to the value itself,
// and beneath, to its members and items. From it follows what a check may cost
// (spec 2026-07-28, basic, Composition-Keyword Resource Use).
type graph struct {
	root   *jsonschema.Schema
	all    []*jsonschema.Schema
	info   map[*jsonschema.Schema]*edges
	unique bool
	round  int
}

// edges are the subschemas of one schema.
type edges struct {
	inPlace []*jsonschema.Schema
	// Beneath: every member may meet one of named, all of members; every
	// item one of placed, all of items.
	named, members, placed, items []*jsonschema.Schema
	// cost is the number of evaluations in place, this one included.
	cost int
	// worst is the number of evaluations at one place beneath.
	worst int
	state visit
	// below is the result of boundBelow in that round.
	below, round int
}

type visit uint8

const (
	unvisited visit = iota
	visiting
	visited
)

func newGraph(root *jsonschema.Schema) *graph {
	g := &graph{root: root, info: map[*jsonschema.Schema]*edges{}}
	g.add(root)
	for i := 0; i < len(g.all); i++ {
		g.link(g.all[i])
	}
	return g
}

func (g *graph) add(list ...*jsonschema.Schema) []*jsonschema.Schema {
	list = slices.DeleteFunc(list, func(s *jsonschema.Schema) bool { return s == nil })
	for _, s := range list {
		if g.info[s] == nil {
			g.info[s] = &edges{}
			g.all = append(g.all, s)
		}
	}
	return list
}

// either returns the schema that a keyword of type "boolean or schema" has.
func either(v any) *jsonschema.Schema {
	s, _ := v.(*jsonschema.Schema)
	return s
}

func (g *graph) link(s *jsonschema.Schema) {
	e := g.info[s]
	g.unique = g.unique || s.UniqueItems
	e.inPlace = g.add(s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else)
	if s.DynamicRef != nil {
		e.inPlace = append(e.inPlace, g.add(s.DynamicRef.Ref)...)
	}
	e.inPlace = append(e.inPlace, g.add(slices.Concat(s.AllOf, s.AnyOf, s.OneOf)...)...)
	e.inPlace = append(e.inPlace, g.add(slices.Collect(maps.Values(s.DependentSchemas))...)...)
	for _, sub := range s.Dependencies {
		e.inPlace = append(e.inPlace, g.add(either(sub))...)
	}
	e.named = g.add(slices.Collect(maps.Values(s.Properties))...)
	e.members = g.add(slices.Collect(maps.Values(s.PatternProperties))...)
	e.members = append(e.members, g.add(either(s.AdditionalProperties), s.UnevaluatedProperties, s.PropertyNames)...)
	e.placed = g.add(slices.Clone(s.PrefixItems)...)
	if list, ok := s.Items.([]*jsonschema.Schema); ok {
		e.placed = append(e.placed, g.add(slices.Clone(list)...)...)
	}
	e.items = g.add(either(s.Items), either(s.AdditionalItems), s.Items2020, s.Contains, s.UnevaluatedItems)
}

// linkDynamic adds whatever dynamic references may end up at.
func (g *graph) linkDynamic() error {
	anchors := map[string][]*jsonschema.Schema{}
	var recursive []*jsonschema.Schema
	for _, s := range g.all {
		if s.DynamicAnchor != "" {
			anchors[s.DynamicAnchor] = append(anchors[s.DynamicAnchor], s)
		}
		if s.RecursiveAnchor {
			recursive = append(recursive, s)
		}
	}
	for _, s := range g.all {
		e := g.info[s]
		var targets []*jsonschema.Schema
		if s.RecursiveRef != nil {
			targets = recursive
		}
		if s.DynamicRef != nil {
			targets = slices.Concat(targets, anchors[s.DynamicRef.Anchor])
		}
		if len(targets) > maxTargets {
			return fmt.Errorf("%w: a dynamic reference with more than %d targets", ErrTooComplex, maxTargets)
		}
		for _, target := range targets {
			if target != s && !slices.Contains(e.inPlace, target) {
				e.inPlace = append(e.inPlace, target)
			}
		}
	}
	return nil
}

// evaluationsAt returns how many evaluations there may be at one place of a value, or
// 0 if that depends on the value: then it has to be counted for each. A
// schema that refers to itself without going deeper, or applies too many
// subschemas to one place, is refused.
func (g *graph) evaluationsAt() (int, error) {
	if err := g.linkDynamic(); err != nil {
		return 0, err
	}
	for _, s := range g.all {
		if _, err := g.cost(s); err != nil {
			return 0, err
		}
	}
	const deepest, most = 64, 1_000
	for g.round = range deepest {
		grown := make([]int, len(g.all))
		changed := false
		for i, s := range g.all {
			grown[i] = max(g.info[s].cost, g.boundBelow(s, most))
			changed = changed || grown[i] != g.info[s].worst
		}
		for i, s := range g.all {
			g.info[s].worst = grown[i]
		}
		switch worst := g.info[g.root].worst; {
		case worst > most:
			return 0, nil
		case !changed:
			return worst, nil
		}
	}
	return 0, nil
}

// cost counts the evaluations of a schema at the place it is applied to.
func (g *graph) cost(s *jsonschema.Schema) (int, error) {
	e := g.info[s]
	switch e.state {
	case visited:
		return e.cost, nil
	case visiting:
		return 0, fmt.Errorf("%w: %s refers to itself without end", ErrInvalid, place(s))
	case unvisited:
	}
	e.state = visiting
	e.cost = 1
	for _, sub := range e.inPlace {
		n, err := g.cost(sub)
		if err != nil {
			return 0, err
		}
		if e.cost += n; e.cost > maxInPlace {
			return 0, fmt.Errorf("%w: %s applies more than %d subschemas to one value", ErrTooComplex, place(s), maxInPlace)
		}
	}
	e.state = visited
	return e.cost, nil
}

// place names a subschema.
func place(s *jsonschema.Schema) string {
	return bounded("#" + strings.TrimPrefix(s.Location, schemaURL+"#"))
}

// boundBelow is an upper bound of the evaluations at one place below the one s is
// applied to, from the bounds of the previous round, cut off above most.
func (g *graph) boundBelow(s *jsonschema.Schema, most int) int {
	e := g.info[s]
	if e.round == g.round+1 {
		return e.below
	}
	worst := func(one, all []*jsonschema.Schema) (n int) {
		for _, sub := range one {
			n = max(n, g.info[sub].worst)
		}
		for _, sub := range all {
			n += g.info[sub].worst
		}
		return n
	}
	sum := max(worst(e.named, e.members), worst(e.placed, e.items))
	for _, sub := range e.inPlace {
		if sum > most {
			break
		}
		sum += g.boundBelow(sub, most)
	}
	e.below, e.round = min(sum, most+1), g.round+1
	return e.below
}

// withinLimit counts the evaluations that checking v takes, and says whether they
// are within the limit. The count itself takes no longer than the limit.
func (g *graph) withinLimit(root *jsonschema.Schema, v any, limit int) bool {
	c := counter{graph: g, left: limit}
	c.value(map[*jsonschema.Schema]int{root: 1}, v)
	return c.left >= 0
}

// counter counts evaluations down to zero.
type counter struct {
	*graph
	left int
}

// value counts what a set of schemas, each applied so many times, costs at a
// place and beneath.
func (c *counter) value(applied map[*jsonschema.Schema]int, v any) {
	flat := map[*jsonschema.Schema]int{}
	for s, times := range applied {
		c.flatten(flat, s, times)
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			c.beneath(flat, member, func(s *jsonschema.Schema, e *edges) (*jsonschema.Schema, []*jsonschema.Schema) {
				return s.Properties[name], e.members
			})
		}
	case []any:
		for at, item := range v {
			c.beneath(flat, item, func(_ *jsonschema.Schema, e *edges) (*jsonschema.Schema, []*jsonschema.Schema) {
				if at < len(e.placed) {
					return e.placed[at], e.items
				}
				return nil, e.items
			})
		}
	}
}

// flatten adds a schema and what it applies in place.
func (c *counter) flatten(flat map[*jsonschema.Schema]int, s *jsonschema.Schema, times int) {
	if c.left -= times; c.left < 0 {
		return
	}
	flat[s] += times
	for _, sub := range c.info[s].inPlace {
		c.flatten(flat, sub, times)
	}
}

// beneath counts what the schemas that are applied to a container cost at v in it;
// pick returns those that one of them applies there: by name or position, and to all.
func (c *counter) beneath(flat map[*jsonschema.Schema]int, v any,
	pick func(*jsonschema.Schema, *edges) (*jsonschema.Schema, []*jsonschema.Schema),
) {
	if c.left < 0 {
		return
	}
	below := map[*jsonschema.Schema]int{}
	for s, times := range flat {
		one, all := pick(s, c.info[s])
		if one != nil {
			below[one] += times
		}
		for _, sub := range all {
			below[sub] += times
		}
	}
	c.value(below, v)
}
