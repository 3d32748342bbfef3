package schema

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/parley-mcp/parley/internal/wire"
)

// Most schemas keep to the common keywords of JSON Schema. Those become clauses,
// which are held against the text of a value without decoding it. A schema
// with anything else in it, anywhere, is left whole to the library, and so is
// everything that looks wrong: what becomes clauses is certainly valid by the
// meta-schema of its dialect, and means what it means to the library.

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

// beyond are the keywords of any dialect that clauses do not know. A keyword of
// no dialect is an annotation.
var beyond = []string{
	"$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveAnchor", "$recursiveRef", "$vocabulary", "additionalItems",
	"contains", "contentSchema", "dependencies", "dependentRequired", "dependentSchemas", "else", "if", "maxContains",
	"minContains", "patternProperties", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
}

// clauses is a schema made of clauses.
type clauses struct {
	root    *clause
	program int // instructions of the regular expressions
}

// reader makes clauses of the text of a schema, which is valid JSON.
type reader struct {
	raw     []byte
	dialect dialect
	formats bool      // are asserted
	engine  *engine   // of the regular expressions
	all     []*clause // in the order of the text
	refs    []*clause // their targets are at in the pointers of the same position
	targets []string
	places  map[int]map[string]int // what is in the values that references lead through
	beyond  bool                   // there is something that clauses cannot say
}

// newClauses makes clauses of a schema, or nil if it is for the library.
func newClauses(raw wire.RawValue, formats bool) *clauses {
	r := reader{raw: raw, formats: formats, engine: &engine{known: map[string]jsonschema.Regexp{}}}
	start := skipSpace(raw, 0)
	r.readDialect(start)
	root, _ := r.schema(start)
	for i, from := range r.refs {
		if from.ref = r.target(r.targets[i]); from.ref == nil {
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
	return &clauses{root: root, program: r.engine.size}
}

// members calls f for each member of the object at i and returns its end.
func (r *reader) members(i int, f func(name string, at int) (end int)) int {
	i, last := first(r.raw, i, '}')
	for !last && !r.beyond {
		nameEnd, _, value := memberAt(r.raw, i)
		i, last = next(r.raw, f(r.textAt(i, nameEnd), value), '}')
	}
	return i
}

// elements calls f for each element of the array at i.
func (r *reader) elements(i int, f func(at int) (end int)) int {
	i, last := first(r.raw, i, ']')
	for !last && !r.beyond {
		i, last = next(r.raw, f(i), ']')
	}
	return i
}

func (r *reader) textAt(at, end int) string {
	inner := r.raw[at+1 : end-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	return string(unquote(nil, inner))
}

// want notes that the schema is beyond the clauses unless the condition holds.
func (r *reader) want(ok bool) bool {
	r.beyond = r.beyond || !ok
	return !r.beyond
}

func (r *reader) readDialect(start int) {
	r.members(start, func(name string, at int) int {
		end := skipValue(r.raw, at)
		if name == "$schema" {
			r.dialect = dialect(slices.Index(dialects, strings.TrimSuffix(r.textAt(at, end), "#")))
		}
		return end
	})
	r.formats = r.formats || r.dialect == draft7
	r.want(r.dialect >= 0)
}

// schema reads the schema at i and returns its end.
func (r *reader) schema(i int) (*clause, int) {
	s := &clause{at: i}
	r.all = append(r.all, s)
	end, refs := -1, len(r.refs)
	switch byteAt(r.raw, i) {
	case '{':
		end = r.members(i, func(name string, at int) int {
			r.keyword(s, name, at)
			return skipValue(r.raw, at)
		})
		if r.dialect == draft7 && slices.Contains(r.refs[refs:], s) {
			r.want(s.alone()) // the rest would be without effect
		}
	case 't':
		end = scalarEnd(r.raw, i)
	case 'f':
		s.never = true
		end = scalarEnd(r.raw, i)
	default:
		r.want(false)
	}
	return s, end
}

// keyword reads one keyword of s, whose value is at i.
func (r *reader) keyword(s *clause, name string, i int) {
	c := byteAt(r.raw, i)
	if t, ok := ignored[name]; ok {
		r.want(t == 0 || typeAt(c) == t)
		return
	}
	switch {
	case r.applicator(s, name, i), r.ofNumber(s, name, i), r.ofText(s, name, i), r.ofArray(s, name, i), r.ofObject(s, name, i):
		return
	}
	switch name {
	case "$schema":
		r.want(s == r.all[0]) // beneath it belongs to an $id
	case "$defs", "definitions":
		// In draft-07 "$defs" is no keyword, and what is in it unchecked.
		if r.want(c == '{' && (name == "definitions" || r.dialect != draft7)) {
			r.members(i, func(_ string, at int) int {
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

// types reads the value of "type": a name, or several that differ.
func (r *reader) types(i int) (set typeSet) {
	add := func(at int) int {
		end := skipValue(r.raw, at)
		if r.want(byteAt(r.raw, at) == '"') {
			t := typeNamed(r.textAt(at, end))
			r.want(t != 0 && set&t == 0)
			set |= t
		}
		return end
	}
	if byteAt(r.raw, i) == '[' {
		r.elements(i, add)
	} else {
		add(i)
	}
	r.want(set != 0)
	return set
}

// choices reads a scalar, or several from an array.
func (r *reader) choices(i int, several bool) *choices {
	c := &choices{list: r.raw[i:skipValue(r.raw, i)]}
	add := func(at int) int {
		end := skipValue(r.raw, at)
		twice := false
		switch typeAt(byteAt(r.raw, at)) {
		case typeNull:
			twice = c.types&typeNull != 0
			c.types |= typeNull
		case typeBoolean:
			which := &c.yes
			if r.raw[at] == 'f' {
				which = &c.no
			}
			twice, *which = *which, true
		case typeString:
			s := r.textAt(at, end)
			twice = slices.Contains(c.strings, s)
			c.strings = append(c.strings, s)
		case typeNumber:
			d := readDecimal(r.raw[at:end])
			twice = c.hasNumber(&d)
			c.numbers = append(c.numbers, d)
		default:
			r.beyond = true
		}
		r.want(!twice)
		return end
	}
	if several {
		r.elements(i, add)
	} else {
		add(i)
	}
	if r.want(c.types != 0 || c.yes || c.no || c.strings != nil || c.numbers != nil) && len(c.strings) > 2*few {
		c.index = make(map[string]struct{}, len(c.strings))
		for _, s := range c.strings {
			c.index[s] = struct{}{}
		}
	}
	return c
}

// count reads a number of things, written plainly.
func (r *reader) count(i int) int {
	n, ok := smallInteger(r.raw[i:skipValue(r.raw, i)])
	r.want(ok && 0 <= n && n <= math.MaxInt32)
	return int(n)
}

// applicator reads keywords that apply schemas to the value itself.
func (r *reader) applicator(s *clause, name string, i int) bool {
	switch name {
	case "$ref":
		end := skipValue(r.raw, i)
		if r.want(r.raw[i] == '"') {
			r.refs = append(r.refs, s)
			r.targets = append(r.targets, r.textAt(i, end))
		}
	case "allOf":
		s.all = r.schemas(i)
	case "anyOf":
		s.any = r.schemas(i)
	case "oneOf":
		s.one = r.schemas(i)
	case "not":
		s.not, _ = r.schema(i)
	default:
		return false
	}
	return true
}

// schemas reads an array of schemas that is not empty.
func (r *reader) schemas(i int) (list []*clause) {
	if !r.want(byteAt(r.raw, i) == '[') {
		return nil
	}
	r.elements(i, func(at int) int {
		s, end := r.schema(at)
		list = append(list, s)
		return end
	})
	r.want(len(list) > 0)
	return list
}

// ofNumber reads keywords that bound numbers.
func (r *reader) ofNumber(s *clause, name string, i int) bool {
	b := bound{}
	switch name {
	case "minimum":
		b.sign, b.text = -1, "must be at least "
	case "maximum":
		b.sign, b.text = 1, "must be at most "
	case "exclusiveMinimum":
		b.sign, b.text, b.excludes = -1, "must be above ", true
	case "exclusiveMaximum":
		b.sign, b.text, b.excludes = 1, "must be below ", true
	case "multipleOf":
	default:
		return false
	}
	if !r.want(typeAt(r.raw[i]) == typeNumber) {
		return true
	}
	if s.number == nil {
		s.number = &numberClause{}
	}
	tok := r.raw[i:skipValue(r.raw, i)]
	if b.limit = readDecimal(tok); b.sign != 0 {
		b.text = bounded(b.text + string(tok))
		s.number.bounds = append(s.number.bounds, b)
		return true
	}
	if d, ok := newDivisor(&b.limit); r.want(ok) {
		s.number.multiple, s.number.step = &d, bounded("must be a multiple of "+string(tok))
	}
	return true
}

// ofText reads keywords that bound strings.
func (r *reader) ofText(s *clause, name string, i int) bool {
	switch name {
	case "minLength", "maxLength", "pattern":
	case "format":
		r.format(s, i)
		return true
	default:
		return false
	}
	if s.text == nil {
		s.text = &textClause{length: anyLength}
	}
	switch name {
	case "minLength":
		s.text.length.min = r.count(i)
	case "maxLength":
		s.text.length.max = r.count(i)
	default:
		if r.want(r.raw[i] == '"') {
			compiled, err := r.engine.compile(r.textAt(i, skipValue(r.raw, i)))
			s.text.pattern, _ = compiled.(*regexp.Regexp)
			r.want(err == nil && s.text.pattern != nil)
		}
	}
	return true
}

// format finds the library's check of a format, if it is to be asserted.
func (r *reader) format(s *clause, i int) {
	if !r.want(r.raw[i] == '"') || !r.formats {
		return
	}
	name := r.textAt(i, skipValue(r.raw, i))
	if !r.want(name != "regex") { // is checked by the engine, within its bounds
		return
	}
	known, ok := libraryFormats()[name]
	if !ok {
		known = libraryFormat(name)
	}
	s.format = known
}

// libraryFormats are the formats that are used most.
var libraryFormats = sync.OnceValue(func() map[string]*jsonschema.Format {
	m := map[string]*jsonschema.Format{}
	for _, name := range []string{"date", "date-time", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"} {
		m[name] = libraryFormat(name)
	}
	return m
})

// libraryFormat returns the format that the library knows by that name, or nil:
// then it is a mere annotation.
func libraryFormat(name string) *jsonschema.Format {
	c := jsonschema.NewCompiler()
	c.UseLoader(refuser{})
	c.AssertFormat()
	if err := c.AddResource(schemaURL, map[string]any{"format": name}); err != nil {
		return nil
	}
	s, err := c.Compile(schemaURL)
	if err != nil {
		return nil
	}
	return s.Format
}

// ofArray reads keywords that bound arrays.
func (r *reader) ofArray(s *clause, name string, i int) bool {
	switch name {
	case "items", "prefixItems", "minItems", "maxItems", "uniqueItems":
	default:
		return false
	}
	if s.array == nil {
		s.array = &arrayClause{length: anyLength}
	}
	switch name {
	case "items":
		s.array.items, _ = r.schema(i) // an array of draft-07 is beyond
	case "prefixItems":
		if r.want(r.dialect == draft2020) {
			s.array.prefix = r.schemas(i)
		}
	case "minItems":
		s.array.length.min = r.count(i)
	case "maxItems":
		s.array.length.max = r.count(i)
	default:
		r.want(typeAt(r.raw[i]) == typeBoolean)
		s.array.unique = r.raw[i] == 't'
	}
	return true
}

// ofObject reads keywords that bound objects.
func (r *reader) ofObject(s *clause, name string, i int) bool {
	switch name {
	case "properties", "required", "additionalProperties", "minProperties", "maxProperties":
	default:
		return false
	}
	if s.object == nil {
		s.object = &objectClause{length: anyLength}
	}
	o := s.object
	switch name {
	case "properties":
		if r.want(r.raw[i] == '{') {
			r.members(i, func(name string, at int) (end int) {
				m := o.member(name)
				m.clause, end = r.schema(at)
				return end
			})
		}
	case "required":
		if r.want(r.raw[i] == '[') {
			r.required(o, i)
		}
	case "additionalProperties":
		extra, _ := r.schema(i)
		o.closed, o.extra = extra.never, extra
	case "minProperties":
		o.length.min = r.count(i)
	default:
		o.length.max = r.count(i)
	}
	return true
}

func (r *reader) required(o *objectClause, i int) {
	r.elements(i, func(at int) int {
		end := skipValue(r.raw, at)
		if r.want(r.raw[at] == '"') {
			m := o.member(r.textAt(at, end))
			r.want(!m.required)
			m.required = true
			o.required++
		}
		return end
	})
}

// member returns the member of that name, a new one if need be.
func (o *objectClause) member(name string) *memberClause {
	if at := o.find([]byte(name), len(o.members)); at >= 0 {
		return &o.members[at]
	}
	o.members = append(o.members, memberClause{name: name})
	if at := len(o.members) - 1; o.index != nil {
		o.index[name] = at
	} else if at >= few {
		o.index = make(map[string]int, 2*few)
		for i := range o.members {
			o.index[o.members[i].name] = i
		}
	}
	return &o.members[len(o.members)-1]
}

// target finds the schema that a reference leads to, or nil.
func (r *reader) target(ref string) *clause {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' || strings.ContainsFunc(pointer, isUnusual) {
		return nil
	}
	at := r.all[0].at
	for pointer != "" && at >= 0 {
		token, rest, more := strings.Cut(pointer[1:], "/")
		if pointer = ""; more {
			pointer = "/" + rest
		}
		at = r.beneath(at, token)
	}
	i, found := slices.BinarySearchFunc(r.all, at, func(s *clause, at int) int { return s.at - at })
	if !found {
		return nil
	}
	return r.all[i]
}

// isUnusual says whether a reference with that character, which may be an
// escape, is better left to the library.
func isUnusual(c rune) bool {
	return c >= 0x80 || !isAlphanumeric(byte(c)) && !strings.ContainsRune("/_-.$", c)
}

// beneath returns where the member or element of that name is in the value at
// i, or -1. What is in a value is looked up once: there may be as many
// references as there are places.
func (r *reader) beneath(i int, token string) int {
	places, known := r.places[i]
	if !known {
		places = map[string]int{}
		switch byteAt(r.raw, i) {
		case '{':
			r.members(i, func(name string, at int) int {
				places[name] = at
				return skipValue(r.raw, at)
			})
		case '[':
			r.elements(i, func(at int) int {
				places[strconv.Itoa(len(places))] = at
				return skipValue(r.raw, at)
			})
		}
		if r.places == nil {
			r.places = map[int]map[string]int{}
		}
		r.places[i] = places
	}
	if at, ok := places[token]; ok {
		return at
	}
	return -1
}
