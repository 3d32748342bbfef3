package schema

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/parley-mcp/parley/internal/wire"
)

// A trimmer removes from a schema keywords with the value null, which libraries write for options
// that are not set, and empty arrays in place of objects, which PHP writes. In a list or a map of
// schemas it replaces them with the schema that accepts everything.
type trimmer struct {
	changed bool
}

// schema returns a schema without them.
func (t *trimmer) schema(raw wire.RawValue) wire.RawValue {
	if raw[0] == 'n' || wire.IsEmptyArray(raw) {
		t.changed = true
		return wire.RawValue("{}")
	}
	return t.object(raw, t.keyword)
}

// keyword returns what becomes of the value of a keyword, nil for nothing.
func (t *trimmer) keyword(name string, value wire.RawValue) wire.RawValue {
	one, named := slices.Contains(oneSchema, name), slices.Contains(mapOfSchemas, name)
	switch {
	case name == "const" || name == "default":
	case value[0] == 'n', (one || named) && wire.IsEmptyArray(value):
		t.changed = true
		return nil
	case value[0] == '[' && slices.Contains(listOfSchemas, name):
		return t.list(value)
	case named:
		return t.object(value, func(_ string, sub wire.RawValue) wire.RawValue { return t.schema(sub) })
	case one:
		return t.schema(value)
	}
	return value
}

// object returns raw with the values that each returns, without the members for which it returns nil.
func (t *trimmer) object(raw wire.RawValue, each func(name string, value wire.RawValue) wire.RawValue) wire.RawValue {
	o, err := wire.ParseObject(raw, wire.Limits{Depth: maxNesting})
	if err != nil {
		return raw // for the library to refuse
	}
	out := wire.RawValue{'{'}
	for name, value := range o.All() {
		out = wire.AppendEntry(out, name, each(name, value))
	}
	return append(out, '}')
}

func (t *trimmer) list(raw wire.RawValue) wire.RawValue {
	list, err := wire.ParseArray(raw, wire.Limits{Depth: maxNesting}, 0)
	if err != nil {
		return raw
	}
	out := wire.RawValue{'['}
	for i, value := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, t.schema(value)...)
	}
	return append(out, ']')
}

// unjudged is a regular expression that cannot be judged here: patterns are ECMA-262
// (JSON Schema 2020-12, core, 6.4), which has more than RE2. It matches everything, so
// that a string always fits; see [graph.relaxed] for what that is not enough for.
type unjudged string

// MatchString returns true.
func (unjudged) MatchString(string) bool { return true }

// String returns the pattern.
func (u unjudged) String() string { return string(u) }

// relaxed removes the keywords whose result depends on what cannot be judged, and
// returns the graph of the remaining schema. Afterwards the schema accepts every value
// that the whole one accepts, and more.
func (g *graph) relaxed() (*graph, error) {
	if err := g.linkDynamic(); err != nil {
		return nil, err
	}
	unsure := g.unsure()
	if len(unsure) == 0 {
		return g, nil
	}
	for s := range unsure {
		relax(s, unsure)
	}
	return newGraph(g.root), nil
}

// unsure returns the schemas whose result can depend on what cannot be judged: those
// with such a keyword, and those that apply one of them, at the same place or beneath.
func (g *graph) unsure() map[*jsonschema.Schema]bool {
	queue := slices.DeleteFunc(slices.Clone(g.all), func(s *jsonschema.Schema) bool { return !isUnjudged(s) })
	if len(queue) == 0 {
		return nil
	}
	users := map[*jsonschema.Schema][]*jsonschema.Schema{}
	for _, s := range g.all {
		e := g.info[s]
		for _, sub := range slices.Concat(e.inPlace, e.named, e.members, e.placed, e.items) {
			users[sub] = append(users[sub], s)
		}
	}
	unsure := map[*jsonschema.Schema]bool{}
	for i := 0; i < len(queue); i++ {
		if s := queue[i]; !unsure[s] {
			unsure[s] = true
			queue = append(queue, users[s]...)
		}
	}
	return unsure
}

// isUnjudged reports whether s itself has a keyword that cannot be judged, for all
// values or for some.
func isUnjudged(s *jsonschema.Schema) bool {
	if _, ok := s.Pattern.(unjudged); ok || s.Format != nil && s.Format.Name == "regex" {
		return true
	}
	for key := range s.PatternProperties {
		if _, ok := key.(unjudged); ok {
			return true
		}
	}
	return false
}

// relax removes the keywords of s that would reject more if a subschema accepts more.
func relax(s *jsonschema.Schema, unsure map[*jsonschema.Schema]bool) {
	for key := range s.PatternProperties {
		if _, ok := key.(unjudged); ok {
			delete(s.PatternProperties, key)
			s.AdditionalProperties = nil // which members are additional is not known
		}
	}
	if unsure[s.Not] {
		s.Not = nil
	}
	if unsure[s.If] {
		s.If = nil // and with it the effect of then and else
	}
	if unsure[s.Contains] {
		s.MaxContains = nil
	}
	if slices.ContainsFunc(s.OneOf, func(sub *jsonschema.Schema) bool { return unsure[sub] }) {
		if len(s.AnyOf) == 0 {
			s.AnyOf = s.OneOf
		}
		s.OneOf = nil
	}
	s.UnevaluatedProperties, s.UnevaluatedItems = nil, nil // they depend on which subschemas fit
}
