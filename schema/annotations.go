package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
)

// Where subschemas are: one, several in an array, several in an object.
var (
	oneSchema = []string{
		"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
		"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
	}
	listOfSchemas = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	mapOfSchemas  = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)

// annotations is a walk over the text of a foreign schema, in its order.
type annotations struct {
	c    *Compiled
	lim  *Limits
	path []string // names of members, as long as reach
}

// readAnnotations reads what the library does not: dialects, header bindings
// and names that look like secrets.
func readAnnotations(raw wire.RawValue, lim *Limits) (*Compiled, error) {
	root, err := wire.ParseObject(raw, wire.Limits{Depth: maxNesting})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	a := annotations{c: &Compiled{}, lim: lim}
	a.c.typ, _ = text(root, "type")
	return a.c, a.schema(root, true)
}

// text returns a member that is a string.
func text(o wire.Object, name string) (string, bool) {
	raw, ok := o.Member(name)
	if !ok || raw[0] != '"' {
		return "", false
	}
	return wire.Text(raw), true
}

// schema reads one subschema; reach says that only "properties" led to it.
func (a *annotations) schema(o wire.Object, reach bool) error {
	if err := checkDialect(o, a.lim.Lenient); err != nil && !a.lim.Unchecked {
		return err
	}
	if _, ok := o.Member("x-mcp-header"); ok && !a.lim.IgnoreHeaders {
		if err := a.header(o, reach); err != nil {
			return err
		}
	}
	for name, raw := range o.All() {
		var err error
		switch {
		case raw[0] == '{' && slices.Contains(oneSchema, name):
			err = a.member(o, name, false)
		case raw[0] == '{' && slices.Contains(mapOfSchemas, name):
			err = a.mapping(o, name, reach && name == "properties")
		case raw[0] == '[' && slices.Contains(listOfSchemas, name):
			err = a.list(raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// member reads a member that is a schema.
func (a *annotations) member(o wire.Object, name string, reach bool) error {
	if sub, ok := o.Object(name); ok {
		return a.schema(sub, reach)
	}
	return nil // a boolean, or for the library to refuse
}

// mapping reads an object of schemas.
func (a *annotations) mapping(o wire.Object, keyword string, reach bool) error {
	all, _ := o.Object(keyword)
	for name := range all.All() {
		if keyword == "properties" {
			a.noteSecret(all, name)
		}
		a.path = append(a.path, name)
		if err := a.member(all, name, reach); err != nil {
			return err
		}
		a.path = a.path[:len(a.path)-1]
	}
	return nil
}

func (a *annotations) list(raw wire.RawValue) error {
	elements, err := wire.ParseArray(raw, wire.Limits{Depth: maxNesting}, 0)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	for _, element := range elements {
		if element[0] != '{' {
			continue
		}
		sub, err := wire.ParseObject(element, wire.Limits{Depth: maxNesting})
		if err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		if err := a.schema(sub, false); err != nil {
			return err
		}
	}
	return nil
}

func (a *annotations) noteSecret(all wire.Object, name string) {
	if !looksSecret(name) || slices.Contains(a.c.secrets, name) {
		return
	}
	if sub, ok := all.Object(name); ok {
		if t, _ := text(sub, "type"); t == "boolean" || t == "number" {
			return
		}
	}
	a.c.secrets = append(a.c.secrets, name)
}

// header binds the member that o describes (Ruling 15).
func (a *annotations) header(o wire.Object, reach bool) error {
	where := wire.QuoteName(strings.Join(a.path, "."))
	name, ok := text(o, "x-mcp-header")
	if !ok {
		return fmt.Errorf("%w: at %s it is not a string", ErrHeader, where)
	}
	if !reach || len(a.path) == 0 {
		return fmt.Errorf("%w: %s at %s is not reachable by properties alone", ErrHeader, wire.QuoteName(name), where)
	}
	t, _ := text(o, "type")
	if t != "string" && t != "integer" && t != "boolean" {
		return fmt.Errorf("%w: %s at %s is not on a string, integer or boolean", ErrHeader, wire.QuoteName(name), where)
	}
	headers, err := addHeader(a.c.headers, HeaderBinding{Name: name, Path: a.path, Type: t})
	if err != nil {
		return err
	}
	a.c.headers = headers
	return nil
}

// checkDialect refuses dialects that are not served (spec 2026-07-28, basic,
// JSON Schema Usage: MUST return an error that says so).
func checkDialect(o wire.Object, lenient bool) error {
	raw, ok := o.Member("$schema")
	if !ok || lenient && raw[0] == 'n' {
		return nil
	}
	if raw[0] != '"' {
		return fmt.Errorf("%w: $schema is not a string but %s", ErrInvalid, wire.Kind(raw[0]))
	}
	dialect := wire.Text(raw)
	if !isDialect(strings.TrimSuffix(dialect, "#"), lenient) {
		return fmt.Errorf("%w %s; 2020-12, 2019-09 and draft-07 are supported", ErrDialect, wire.QuoteName(dialect))
	}
	return nil
}

// isDialect reports whether an address is that of a dialect. In a lenient schema its scheme does not
// matter.
func isDialect(address string, lenient bool) bool {
	if !lenient {
		return slices.Contains(dialects, address)
	}
	_, place, _ := strings.Cut(address, "://")
	return slices.ContainsFunc(slices.Concat(dialects, olderDialects), func(known string) bool {
		_, at, _ := strings.Cut(known, "://")
		return at == place
	})
}
