package schema

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/parley-mcp/parley/internal/wire"
)

// Most schemas keep to the common keywords of JSON Schema. They become constraints,
// which validate the text of a value without decoding it. A schema with anything
// else in it is left whole to the library, and so is all that looks wrong: what
// becomes constraints is valid by its meta-schema, and means the same to the library.

// dialect is one of dialects, by its position.
type dialect int

const (
	draft2020 dialect = iota
	draft2019
	draft7
)

// ignored are keywords without a meaning for the check. Their values have a
// type all the same: a letter of typeAt, or 0 for any.
var ignored = map[string]typeSet{
	"title": typeString, "description": typeString, "$comment": typeString,
	"contentEncoding": typeString, "contentMediaType": typeString,
	"default": 0, "examples": typeArray,
	"deprecated": typeBoolean, "readOnly": typeBoolean, "writeOnly": typeBoolean,
}

// beyond are the keywords of any dialect that constraints do not know. A keyword of
// no dialect is an annotation.
var beyond = []string{
	"$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveAnchor", "$recursiveRef", "$vocabulary", "additionalItems",
	"contains", "contentSchema", "dependencies", "dependentRequired", "dependentSchemas", "else", "if", "maxContains",
	"minContains", "patternProperties", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
}

// reader makes constraints of the text of a schema, which is valid JSON.
type reader struct {
	raw     []byte
	dialect dialect
	formats bool          // are asserted
	engine  *engine       // of the regular expressions
	all     []*constraint // in the order of the text
	refs    []*constraint // their targets are at in the pointers of the same position
	targets []string
	places  map[int]map[string]int // what is in the values that references lead through
	beyond  bool                   // there is something that constraints cannot say
}

// readSchema makes constraints of a schema, or nil if it is for the library.
func readSchema(raw wire.RawValue, formats bool) *constraints {
	r := reader{raw: raw, formats: formats, engine: &engine{known: map[string]jsonschema.Regexp{}}}
	start := wire.SkipSpace(raw, 0)
	r.readDialect(start)
	root, _ := r.schema(start)
	for i, from := range r.refs {
		if from.inPlace.ref = r.target(r.targets[i]); from.inPlace.ref == nil {
			return nil
		}
	}
	for _, one := range r.all {
		if _, ok := one.inPlaceCost(); !ok || r.beyond {
			return nil
		}
	}
	for _, one := range r.all {
		one.settle()
	}
	return &constraints{root: root, program: r.engine.size}
}

// want notes that the schema is beyond the constraints unless the condition holds.
func (r *reader) want(ok bool) bool {
	r.beyond = r.beyond || !ok
	return !r.beyond
}

func (r *reader) readDialect(start int) {
	wire.EachMember(r.raw, start, func(name string, at int) int {
		end := wire.SkipValue(r.raw, at)
		if name == "$schema" {
			r.dialect = dialect(slices.Index(dialects, strings.TrimSuffix(wire.Text(r.raw[at:end]), "#")))
		}
		return end
	})
	r.formats = r.formats || r.dialect == draft7
	r.want(r.dialect >= 0)
}

// schema reads the schema at i and returns its end.
func (r *reader) schema(i int) (*constraint, int) {
	s := &constraint{at: i}
	r.all = append(r.all, s)
	end, refs := -1, len(r.refs)
	switch wire.At(r.raw, i) {
	case '{':
		end = wire.EachMember(r.raw, i, func(name string, at int) int {
			if r.keyword(s, name, at); r.beyond {
				return -1
			}
			return wire.SkipValue(r.raw, at)
		})
		if r.dialect == draft7 && slices.Contains(r.refs[refs:], s) {
			r.want(s.bare()) // the rest would be without effect
		}
	case 't':
		end = wire.SkipScalar(r.raw, i)
	case 'f':
		s.types = typeNone
		end = wire.SkipScalar(r.raw, i)
	default:
		r.want(false)
	}
	return s, end
}

// keyword reads one keyword of s, whose value is at i.
func (r *reader) keyword(s *constraint, name string, i int) {
	c := wire.At(r.raw, i)
	if t, ok := ignored[name]; ok {
		r.want(t == 0 || typeAt(c) == t)
		return
	}
	switch name {
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		r.number(made(&s.number, numberConstraint{}), name, i)
	case "minLength", "maxLength", "pattern":
		r.text(made(&s.text, stringConstraint{length: anyLength}), name, i)
	case "format":
		r.format(s, i)
	case "items", "prefixItems", "minItems", "maxItems", "uniqueItems":
		r.array(made(&s.array, arrayConstraint{length: anyLength}), name, i)
	case "properties", "required", "additionalProperties", "minProperties", "maxProperties":
		r.object(made(&s.object, objectConstraint{length: anyLength}), name, i)
	case "$ref", "allOf", "anyOf", "oneOf", "not":
		r.applicator(s, made(&s.inPlace, applicators{}), name, i)
	case "$schema":
		r.want(s == r.all[0]) // beneath it belongs to an $id
	case "$defs", "definitions":
		// In draft-07 "$defs" is no keyword, and what is in it unchecked.
		if r.want(c == '{' && (name == "definitions" || r.dialect != draft7)) {
			wire.EachMember(r.raw, i, func(_ string, at int) int {
				_, end := r.schema(at)
				return end
			})
		}
	case "type":
		s.types = r.types(i)
	case "enum":
		if r.want(c == '[') {
			s.enum = r.choices(i, true)
		}
	case "const":
		s.only = r.choices(i, false)
	default:
		r.want(!slices.Contains(beyond, name))
	}
}

// made returns what p points to, which is first if there is nothing yet.
func made[T any](p **T, first T) *T {
	if *p == nil {
		s := first
		*p = &s
	}
	return *p
}

// types reads the value of "type": a name, or several that differ.
func (r *reader) types(i int) (set typeSet) {
	add := func(at int) int {
		end := wire.SkipValue(r.raw, at)
		if r.want(wire.At(r.raw, at) == '"') {
			t := typeNamed(wire.Text(r.raw[at:end]))
			r.want(t != 0 && set&t == 0)
			set |= t
		}
		return end
	}
	if wire.At(r.raw, i) == '[' {
		wire.EachElement(r.raw, i, add)
	} else {
		add(i)
	}
	r.want(set != 0)
	return set
}

// choices reads a scalar, or several from an array.
func (r *reader) choices(i int, several bool) *choices {
	c := &choices{list: r.raw[i:wire.SkipValue(r.raw, i)]}
	add := func(at int) int {
		end := wire.SkipValue(r.raw, at)
		twice := false
		switch typeAt(wire.At(r.raw, at)) {
		case typeNull, typeBoolean:
			twice = c.hasWord(r.raw[at])
			c.words += string(r.raw[at : at+1])
		case typeString:
			s := wire.Text(r.raw[at:end])
			twice = slices.Contains(c.strings, s)
			c.strings = append(c.strings, s)
		case typeNumber:
			d := wire.ReadDecimal(r.raw[at:end])
			twice = c.hasNumber(&d)
			c.numbers = append(c.numbers, d)
		default:
			r.beyond = true
		}
		r.want(!twice)
		return end
	}
	if several {
		wire.EachElement(r.raw, i, add)
	} else {
		add(i)
	}
	if r.want(c.words != "" || c.strings != nil || c.numbers != nil) && len(c.strings) > 2*few {
		c.index = make(map[string]struct{}, len(c.strings))
		for _, s := range c.strings {
			c.index[s] = struct{}{}
		}
	}
	return c
}

// count reads a number of things, written plainly.
func (r *reader) count(i int) int {
	n, ok := wire.PlainInteger(r.raw[i:wire.SkipValue(r.raw, i)])
	r.want(ok && 0 <= n && n <= math.MaxInt32)
	return int(n)
}

// applicator reads keywords that apply schemas to the value itself.
func (r *reader) applicator(s *constraint, a *applicators, name string, i int) {
	switch name {
	case "$ref":
		if r.want(r.raw[i] == '"') {
			r.refs = append(r.refs, s)
			r.targets = append(r.targets, wire.Text(r.raw[i:wire.SkipValue(r.raw, i)]))
		}
	case "allOf":
		a.all = r.schemas(i)
	case "anyOf":
		a.any = r.schemas(i)
	case "oneOf":
		a.one = r.schemas(i)
	default:
		a.not, _ = r.schema(i)
	}
}

// schemas reads an array of schemas that is not empty.
func (r *reader) schemas(i int) (list []*constraint) {
	if !r.want(wire.At(r.raw, i) == '[') {
		return nil
	}
	wire.EachElement(r.raw, i, func(at int) int {
		s, end := r.schema(at)
		list = append(list, s)
		return end
	})
	r.want(len(list) > 0)
	return list
}

// number reads keywords that bound numbers.
func (r *reader) number(n *numberConstraint, name string, i int) {
	b := bound{}
	switch name {
	case "minimum":
		b.sign, b.reason = -1, "must be at least "
	case "maximum":
		b.sign, b.reason = 1, "must be at most "
	case "exclusiveMinimum":
		b.sign, b.reason, b.excludes = -1, "must be above ", true
	case "exclusiveMaximum":
		b.sign, b.reason, b.excludes = 1, "must be below ", true
	}
	if !r.want(typeAt(r.raw[i]) == typeNumber) {
		return
	}
	tok := r.raw[i:wire.SkipValue(r.raw, i)]
	if b.limit = wire.ReadDecimal(tok); b.sign != 0 {
		b.reason = bounded(b.reason + string(tok))
		n.bounds = append(n.bounds, b)
		return
	}
	if d, ok := wire.NewDivisor(&b.limit); r.want(ok) {
		n.multiple, n.step = &d, bounded("must be a multiple of "+string(tok))
	}
}

// text reads keywords that bound strings.
func (r *reader) text(t *stringConstraint, name string, i int) {
	switch name {
	case "minLength":
		t.length.min = r.count(i)
	case "maxLength":
		t.length.max = r.count(i)
	default:
		if r.want(r.raw[i] == '"') {
			text := wire.Text(r.raw[i:wire.SkipValue(r.raw, i)])
			compiled, err := r.engine.compile(text)
			t.pattern, _ = compiled.(*regexp.Regexp)
			t.mismatch = "must match the pattern " + bounded(text)
			r.want(err == nil && t.pattern != nil)
		}
	}
}

// format finds the library's check of a format, if it is to be asserted.
func (r *reader) format(s *constraint, i int) {
	if !r.want(r.raw[i] == '"') || !r.formats {
		return
	}
	name := wire.Text(r.raw[i:wire.SkipValue(r.raw, i)])
	if r.want(name != "regex") { // is checked by the engine, within its bounds
		s.format = libraryFormat(name)
	}
}

// array reads keywords that bound arrays.
func (r *reader) array(a *arrayConstraint, name string, i int) {
	switch name {
	case "items":
		a.items, _ = r.schema(i) // an array of draft-07 is beyond
	case "prefixItems":
		if r.want(r.dialect == draft2020) {
			a.prefix = r.schemas(i)
		}
	case "minItems":
		a.length.min = r.count(i)
	case "maxItems":
		a.length.max = r.count(i)
	default:
		r.want(typeAt(r.raw[i]) == typeBoolean)
		a.unique = r.raw[i] == 't'
	}
}

// object reads keywords that bound objects.
func (r *reader) object(o *objectConstraint, name string, i int) {
	switch name {
	case "properties":
		if r.want(r.raw[i] == '{') {
			wire.EachMember(r.raw, i, func(name string, at int) (end int) {
				m := o.member(name)
				m.constraint, end = r.schema(at)
				return end
			})
		}
	case "required":
		if r.want(r.raw[i] == '[') {
			r.required(o, i)
		}
	case "additionalProperties":
		extra, _ := r.schema(i)
		o.closed, o.extra = extra.types == typeNone, extra
	case "minProperties":
		o.length.min = r.count(i)
	default:
		o.length.max = r.count(i)
	}
}

func (r *reader) required(o *objectConstraint, i int) {
	wire.EachElement(r.raw, i, func(at int) int {
		end := wire.SkipValue(r.raw, at)
		if r.want(r.raw[at] == '"') {
			m := o.member(wire.Text(r.raw[at:end]))
			r.want(!m.required)
			m.required = true
			o.required++
		}
		return end
	})
}
