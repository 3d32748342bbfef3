package schema

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/parley-mcp/parley/internal/racetest"
	"github.com/parley-mcp/parley/internal/wire"
)

// pair is a schema both ways.
type pair struct {
	text        []byte
	constraints *constraints
	library     *library
}

// bothWays compiles a schema that [Compile] would not refuse before it comes
// to either way. What constraints can be made of, the library must take.
func bothWays(t testing.TB, text []byte, formats bool) (p pair, ok bool) {
	t.Helper()
	if wire.Valid(text, wire.Limits{}) != nil {
		return p, false
	}
	if size := wire.Measure(text, maxDigits); size.HasLong || size.Values > 10_000 {
		return p, false
	}
	if _, err := readAnnotations(text, &Limits{IgnoreHeaders: true}); err != nil {
		return p, false
	}
	if p = (pair{text: text, constraints: readSchema(text, formats)}); p.constraints == nil {
		return p, false
	}
	p.library = &library{limit: 500_000}
	if err := p.library.compile(text, formats); err != nil {
		t.Fatalf("%s\nbecame constraints, but is refused: %v", text, err)
	}
	if p.constraints.program != p.library.program {
		t.Fatalf("%s: patterns of %d instructions, want %d", text, p.constraints.program, p.library.program)
	}
	return p, true
}

// agree holds a value against both, and reports whether constraints decided about
// it and how.
func (p pair) agree(t testing.TB, value []byte) (valid, decided bool) {
	t.Helper()
	ours, decided := p.constraints.validate(value, 500_000)
	if !decided {
		return false, false
	}
	theirs := p.library.check(value)
	if errors.Is(theirs, ErrTooComplex) {
		return ours == nil, true // they count the worst case
	}
	if (ours == nil) != (theirs == nil) {
		t.Fatalf("%s\nof %s:\nours   %v\ntheirs %v", value, p.text, ours, theirs)
	}
	if ours == nil {
		return true, true
	}
	a, more := places(t, ours)
	b, others := places(t, theirs)
	if !more && !others && !slices.Equal(a, b) {
		t.Fatalf("%s\nof %s: problems elsewhere\nours   %v\ntheirs %v", value, p.text, ours, theirs)
	}
	return false, true
}

// places returns where the problems of a report are.
func places(t testing.TB, err error) (list []string, more bool) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) == 0 || len(e.Problems) > MaxProblems {
		t.Fatalf("not a report: %v", err)
	}
	for _, p := range e.Problems {
		list = append(list, p.Pointer)
	}
	slices.Sort(list)
	return slices.Compact(list), e.More
}

// dice are thrown by the bytes of a fuzzer, or else by a generator.
type dice struct {
	data []byte
	rand *rand.Rand
}

func (d *dice) n(sides int) int {
	if d.rand != nil {
		return d.rand.IntN(sides)
	}
	if len(d.data) == 0 {
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return int(b) % sides
}

func (d *dice) of(list []string) string { return list[d.n(len(list))] }

var (
	someNumbers = []string{
		"0", "1", "2", "3", "-1", "10", "1.0", "-0", "-0.0", "0.5", "0.1", "0.30", "0.3", "1e0", "1E+2", "100", "1e-2", "0.01", "1.5e1", "15", "0.10e1",
		"9007199254740993", "9007199254740992", "9007199254740992.0", "9223372036854775808", "999999999999999999", "1000000000000000000",
		"123456789012345678901234567890", "123456789012345678901234567891", "1e400", "-1e400", "1e-400", "0e400", "12e-1", "1200e-3", "0.00012e4", "99.99",
	}
	someTexts = []string{
		`""`, `"a"`, `"ab"`, `"\u0061"`, `"abc"`, `"é"`, `"\u00e9"`, `"😀"`, `"\ud83d\ude00"`, `"a\nb"`, `"\\"`, `"\u0000"`, `"1"`, `"null"`,
		`"2024-02-29"`, `"2024-02-29T01:02:03Z"`, `"a@b.example"`, `"https://a.example/b"`, `"::1"`, `"1.2.3.4"`,
	}
	someNames    = []string{`"a"`, `"b"`, `"c"`, `""`, `"\u0061"`, `"\u00e9"`, `"d"`, `"$ref"`, `"a~/b"`}
	someTypes    = []string{"null", "boolean", "number", "integer", "string", "array", "object"}
	somePatterns = []string{`"a"`, `"^a+b?$"`, `"^.$"`, `"\\d"`, `"^é"`, `""`}
	someFormats  = []string{"email", "date", "date-time", "uri", "ipv4", "ipv6", "uuid", "hostname", "time", "duration", "json-pointer", "unknown"}
	someKeywords = []string{
		"type", "types", "properties", "required", "additionalProperties", "closed", "enum", "const", "minimum", "maximum", "exclusiveMinimum",
		"exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "items", "prefixItems", "minItems", "maxItems", "minProperties",
		"maxProperties", "uniqueItems", "anyOf", "oneOf", "allOf", "not", "$ref", "format", "title", "default", "x-note",
	}
)

// author writes schemas out of the common keywords.
type author struct {
	dice
	dialect dialect
}

func (a *author) root() []byte {
	a.dialect = dialect([...]int{0, 0, 0, 1, 2}[a.n(5)])
	dst := []byte(`{"$schema":"` + dialects[a.dialect] + `",`)
	if a.n(3) > 0 {
		dst = []byte{'{'}
		a.dialect = draft2020
	}
	dst = a.keywords(dst, 0)
	defs := "$defs"
	if a.dialect == draft7 {
		defs = "definitions"
	}
	dst = append(dst, `"`+defs+`":{"a":`...)
	dst = append(a.schema(dst, 1), `,"b":`...)
	return append(a.schema(dst, 1), "}}"...)
}

func (a *author) schema(dst []byte, depth int) []byte {
	switch {
	case a.n(12) == 0:
		return append(dst, a.of([]string{"true", "false", "{}", "true"})...)
	case depth > 3:
		return append(dst, `{"type":"`+a.of(someTypes)+`"}`...)
	}
	dst = a.keywords(append(dst, '{'), depth)
	return append(bytes.TrimSuffix(dst, []byte{','}), '}')
}

// keywords writes some keywords, each with a comma after it.
func (a *author) keywords(dst []byte, depth int) []byte {
	used := map[string]bool{}
	for range 1 + a.n(4) {
		k := a.of(someKeywords)
		name := k
		switch k {
		case "types":
			name = "type"
		case "closed":
			name = "additionalProperties"
		case "prefixItems":
			if a.dialect != draft2020 {
				continue
			}
		case "$ref":
			if a.dialect == draft7 && len(used) > 0 {
				continue
			}
		}
		if used[name] {
			continue
		}
		used[name] = true
		dst = append(a.keyword(append(dst, `"`+name+`":`...), k, depth), ',')
		if k == "$ref" && a.dialect == draft7 {
			break
		}
	}
	return dst
}

func (a *author) keyword(dst []byte, k string, depth int) []byte {
	list := func(n int, each func()) {
		dst = append(dst, '[')
		for i := range n {
			if i > 0 {
				dst = append(dst, ',')
			}
			each()
		}
		dst = append(dst, ']')
	}
	switch k {
	case "type":
		return append(dst, `"`+a.of(someTypes)+`"`...)
	case "types":
		at := a.n(len(someTypes) - 1)
		return append(dst, `["`+someTypes[at]+`","`+someTypes[at+1]+`"]`...)
	case "properties":
		dst = append(dst, `{"a":`...)
		dst = append(a.schema(dst, depth+1), `,"\u0062":`...)
		dst = append(a.schema(dst, depth+1), `,"":`...)
		return append(a.schema(dst, depth+1), '}')
	case "required":
		return append(dst, a.of([]string{`["a"]`, `["b","a"]`, `[]`, `["z"]`, `["","\u0061"]`})...)
	case "additionalProperties", "items", "not":
		return a.schema(dst, depth+1)
	case "closed":
		return append(dst, "false"...)
	case "enum":
		seen := map[string]bool{}
		list(1+a.n(3), func() {
			v := cmp.Or(a.of([]string{"", "", "null", "true", "false"}), a.of(someTexts), "0")
			if a.n(3) == 0 {
				v = a.of(someNumbers)
			}
			for seen[v] {
				v = strconv.Itoa(1001 + len(seen))
			}
			seen[v] = true
			dst = append(dst, v...)
		})
	case "const":
		return append(dst, a.of([]string{"null", "true", "false", a.of(someTexts), a.of(someNumbers)})...)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return append(dst, a.of(someNumbers)...)
	case "multipleOf":
		return append(dst, a.of([]string{"1", "2", "3", "0.01", "0.1", "1e-2", "10", "7", "123456789012345678", "1e400", "1e-400", "0.3"})...)
	case "minLength", "minItems", "minProperties", "maxLength", "maxItems", "maxProperties":
		return append(dst, strconv.Itoa(a.n(4))...)
	case "pattern":
		return append(dst, a.of(somePatterns)...)
	case "format":
		return append(dst, `"`+a.of(someFormats)+`"`...)
	case "uniqueItems":
		return append(dst, a.of([]string{"true", "true", "false"})...)
	case "prefixItems", "anyOf", "oneOf", "allOf":
		list(1+a.n(3), func() { dst = a.schema(dst, depth+1) })
	case "$ref":
		defs := "#/$defs/"
		if a.dialect == draft7 {
			defs = "#/definitions/"
		}
		return append(dst, `"`+a.of([]string{defs + "a", defs + "b", "#", defs + "a/properties/a", "#/properties/b"})+`"`...)
	default:
		return append(dst, `"note"`...)
	}
	return dst
}

// guesser writes values that come near a schema.
type guesser struct {
	dice
	root map[string]any
}

func (g *guesser) value(dst []byte, schema any, depth int) []byte {
	s, _ := schema.(map[string]any)
	if s == nil || depth > 6 || g.n(12) == 0 {
		return g.anything(dst, depth)
	}
	if ref, ok := s["$ref"].(string); ok && g.n(4) > 0 {
		var at any = g.root
		for token := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
			if m, ok := at.(map[string]any); ok && token != "" {
				at = m[token]
			}
		}
		return g.value(dst, at, depth+1)
	}
	for _, k := range []string{"anyOf", "oneOf", "allOf"} {
		if list, ok := s[k].([]any); ok && g.n(3) > 0 {
			return g.value(dst, list[g.n(len(list))], depth+1)
		}
	}
	if list, ok := s["enum"].([]any); ok {
		return appendValue(dst, list[g.n(len(list))])
	}
	if v, ok := s["const"]; ok {
		return appendValue(dst, v)
	}
	typ, _ := s["type"].(string)
	if list, ok := s["type"].([]any); ok {
		typ, _ = list[g.n(len(list))].(string)
	}
	switch {
	case typ == "object" || s["properties"] != nil || s["required"] != nil || s["additionalProperties"] != nil:
		return g.object(dst, s, depth)
	case typ == "array" || s["items"] != nil || s["prefixItems"] != nil || s["uniqueItems"] != nil:
		dst = append(dst, '[')
		prefix, _ := s["prefixItems"].([]any)
		for i := range g.n(4) {
			if i > 0 {
				dst = append(dst, ',', ' ')
			}
			each := s["items"]
			if i < len(prefix) {
				each = prefix[i]
			}
			dst = g.value(dst, each, depth+1)
		}
		return append(dst, ']')
	case typ == "string" || s["pattern"] != nil || s["minLength"] != nil || s["format"] != nil:
		return append(dst, g.of(someTexts)...)
	case typ == "integer" || typ == "number" || s["minimum"] != nil || s["multipleOf"] != nil:
		return append(dst, g.of(someNumbers)...)
	}
	return g.anything(dst, depth)
}

func (g *guesser) object(dst []byte, s map[string]any, depth int) []byte {
	properties, _ := s["properties"].(map[string]any)
	dst = append(dst, '{')
	used := map[string]bool{}
	for range g.n(5) {
		literal := g.of(someNames)
		name := wire.Text([]byte(literal))
		if used[name] && g.n(8) > 0 {
			continue // a member is given twice now and then
		}
		if len(used) > 0 {
			dst = append(dst, ',')
		}
		used[name] = true
		each, ok := properties[name]
		if !ok {
			each = s["additionalProperties"]
		}
		dst = g.value(append(append(dst, literal...), ':'), each, depth+1)
	}
	return append(dst, '}')
}

func (g *guesser) anything(dst []byte, depth int) []byte {
	switch n := g.n(8); {
	case n == 0 && depth < 5:
		return append(g.value(append(dst, '['), nil, depth+1), ']')
	case n == 1 && depth < 5:
		return append(g.value(append(append(dst, '{'), g.of(someNames)+":"...), nil, depth+1), '}')
	case n < 4:
		return append(dst, g.of(someTexts)...)
	case n < 6:
		return append(dst, g.of(someNumbers)...)
	}
	return append(dst, g.of([]string{"null", "true", "false", "[]", "{}", "1e401", "tru", "[1,]", `"\ud800"`, "\"\xff\"", "01"})...)
}

// Proves: SEC-TOOL-1
func TestConstraintsAgreeWithLibrary(t *testing.T) {
	racetest.SkipSerial(t)
	const schemas, values = 3000, 20
	valid, invalid, undecided := 0, 0, 0
	own := 0
	for seed := range uint64(schemas) {
		a := author{dice: dice{rand: rand.New(rand.NewPCG(7, seed))}}
		p, ok := bothWays(t, a.root(), seed%2 == 0)
		if !ok {
			continue
		}
		own++
		doc, _ := jsonschema.UnmarshalJSON(bytes.NewReader(p.text))
		g := guesser{dice: a.dice, root: doc.(map[string]any)}
		for range values {
			switch fits, decided := p.agree(t, g.value(nil, g.root, 0)); {
			case !decided:
				undecided++
			case fits:
				valid++
			default:
				invalid++
			}
		}
	}
	t.Logf("%d schemas became constraints; %d values fit, %d do not, %d were left", own, valid, invalid, undecided)
	if own < schemas/2 || valid < own*values/5 || invalid < own*values/5 || undecided > own*values/5 {
		t.Error("the generators prove little")
	}
}

// FuzzSubset: schemas out of the common keywords and values near them.
// Proves: SEC-TOOL-1
func FuzzSubset(f *testing.F) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(3, seed))
		from := make([]byte, 200)
		for i := range from {
			from[i] = byte(r.Uint32())
		}
		f.Add(from[:100], from[100:], []byte(`{"a":[1,"x"]}`))
	}
	f.Fuzz(func(t *testing.T, schema, value, raw []byte) {
		a := author{dice: dice{data: schema}}
		p, ok := bothWays(t, a.root(), len(value)%2 == 0)
		if !ok {
			return
		}
		doc, _ := jsonschema.UnmarshalJSON(bytes.NewReader(p.text))
		g := guesser{dice: dice{data: value}, root: doc.(map[string]any)}
		for range 4 {
			p.agree(t, g.value(nil, g.root, 0))
		}
		p.agree(t, raw)
	})
}

// FuzzConstraints: any schema and any value.
// Proves: SEC-TOOL-1
func FuzzConstraints(f *testing.F) {
	for _, c := range edgeCases {
		f.Add([]byte(c.schema), []byte(c.value))
	}
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		if p, ok := bothWays(t, schema, len(value)%2 == 0); ok {
			p.agree(t, value)
		}
	})
}

var edgeCases = []struct{ schema, value string }{
	{`{"type":"integer"}`, `1.0`},
	{`{"type":"integer"}`, `1e400`},
	{`{"type":"integer"}`, `1.5`},
	{`{"type":["integer","null"],"minimum":0}`, `-0`},
	{`{"type":["number","integer"]}`, `1.5`},
	{`{"maximum":1e400}`, `1e400`},
	{`{"exclusiveMaximum":1e400}`, `1e400`},
	{`{"maximum":1e-400}`, `0`},
	{`{"minimum":9007199254740993}`, `9007199254740992`},
	{`{"multipleOf":0.01}`, `19.99`},
	{`{"multipleOf":0.01}`, `19.999`},
	{`{"multipleOf":3}`, `1e400`},
	{`{"multipleOf":1e400}`, `1e400`},
	{`{"multipleOf":123456789}`, `0.0`},
	{`{"properties":{"\u0061":{"type":"string"}}}`, `{"a":1}`},
	{`{"properties":{"a":{"type":"string"}}}`, `{"\u0061":1}`},
	{`{"minLength":1,"maxLength":1}`, `"😀"`},
	{`{"minLength":1,"maxLength":1}`, `"\ud83d\ude00"`},
	{`{"minLength":2}`, `"\ud800\u0041"`},
	{`{"maxLength":1}`, "\"\xff\xfe\""},
	{`{"properties":{"":{"const":1}},"required":[""]}`, `{"":2}`},
	{`{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#/$defs/a"},"type":["array","null"]}}}`, `[[null],[[]],1]`},
	{`{"$ref":"#/$defs/a","maximum":1,"$defs":{"a":{"minimum":1}}}`, `2`},
	{`{"properties":{"a":{"type":"string"},"b":{"$ref":"#/properties/a"}}}`, `{"b":1}`},
	{`{"anyOf":[{"type":"string"},{"items":{"$ref":"#/anyOf/0"}}]}`, `[1]`},
	{`{"required":["a"]}`, `{}`},
	{`{"required":["a"],"additionalProperties":false}`, `{"a":1}`},
	{`{"properties":{"a":{}},"additionalProperties":{"type":"null"}}`, `{"a":1,"b":2}`},
	{`{"properties":{"a":true,"b":false}}`, `{"a":1,"b":2}`},
	{`{"enum":[1,"1",null,false]}`, `1.0`},
	{`{"enum":[1,"1",null,false]}`, `true`},
	{`{"enum":[1.0e2]}`, `100`},
	{`{"enum":["\u0061"]}`, `"a"`},
	{`{"enum":["é"]}`, `"\u00e9"`},
	{`{"const":null}`, `null`},
	{`{"const":null}`, `0`},
	{`{"const":false}`, `0`},
	{`{"const":""}`, `{}`},
	{`{"minimum":5,"minLength":5,"minItems":5,"minProperties":5}`, `null`},
	{`{"minimum":5}`, `"1"`},
	{`{"maxLength":0}`, `[1,2]`},
	{`{"minProperties":2}`, `{"a":1,"a":2}`},
	{`{"properties":{"a":{"type":"string"}}}`, `{"a":1,"a":"x"}`},
	{`{"not":{"properties":{"a":{"type":"integer"}}}}`, `{"a":"x","a":1}`},
	{`{"uniqueItems":true}`, `[1,1.0]`},
	{`{"uniqueItems":true}`, `["a","\u0061"]`},
	{`{"uniqueItems":true}`, `[1,"1",true,null,false,0]`},
	{`{"uniqueItems":true}`, `[[1],[1]]`},
	{`{"prefixItems":[{"type":"string"}],"items":false}`, `["a",1]`},
	{`{"prefixItems":[{"type":"string"},{"type":"string"}],"items":false}`, `["a"]`},
	{`{"oneOf":[{"minimum":1},{"maximum":2}]}`, `1.5`},
	{`{"oneOf":[{"minimum":1},{"type":"string"}]}`, `true`},
	{`{"allOf":[{"type":"object","required":["a"]},{"required":["b"]}]}`, `{}`},
	{`{"not":{}}`, `1`},
	{`{"not":false}`, `1`},
	{`{"format":"date"}`, `"2023-02-29"`},
	{`{"$schema":"http://json-schema.org/draft-07/schema#","format":"email"}`, `"x"`},
	{`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","definitions":{"a":{"type":"string"}}}`, `1`},
	{`{"$schema":"https://json-schema.org/draft/2019-09/schema","items":{"type":"string"},"$ref":"#/$defs/a","$defs":{"a":{"maxItems":1}}}`, `["a","b"]`},
	{`{}`, `{"a":[1e401]}`},
	{`{}`, `[1 2]`},
	{`{}`, "\"\t\""},
	{`{}`, `{"a":1,}`},
	{`{}`, `nul`},
	{`{}`, `-`},
	{`{}`, `1 1`},
	{`{}`, ``},
}

func TestConstraintEdges(t *testing.T) {
	for _, c := range edgeCases {
		for _, formats := range []bool{false, true} {
			p, ok := bothWays(t, []byte(c.schema), formats)
			if !ok {
				t.Errorf("%s is left to the library", c.schema)
				continue
			}
			p.agree(t, []byte(c.value))
		}
	}
}

// What constraints cannot say goes to the library whole, be it valid or not.
func TestBeyondConstraints(t *testing.T) {
	for _, text := range []string{
		`{"patternProperties":{"a":{}}}`, `{"properties":{"a":{"if":true}}}`, `{"$id":"https://a.example/"}`, `{"enum":[[1]]}`, `{"const":{}}`,
		`{"enum":[1,1.0]}`, `{"enum":[]}`, `{"items":[true]}`, `{"type":"thing"}`, `{"type":[]}`, `{"type":["null","null"]}`, `{"required":["a","a"]}`,
		`{"required":"a"}`, `{"minLength":-1}`, `{"minLength":1.5}`, `{"minimum":"1"}`, `{"multipleOf":0}`, `{"multipleOf":-1}`, `{"title":1}`,
		`{"examples":{}}`, `{"properties":[]}`, `{"properties":{"a":1}}`, `{"allOf":[]}`, `{"allOf":{}}`, `{"not":1}`, `{"pattern":"("}`, `{"pattern":1}`,
		`{"$ref":"#a"}`, `{"$ref":"a"}`, `{"$ref":"#/$defs/none"}`, `{"$ref":"#/$defs/%61","$defs":{"a":{}}}`, `{"$ref":1}`, `{"$ref":"#/$defs/a~1b","$defs":{"a/b":{}}}`, `{"$ref":"#/title","title":"a"}`,
		`{"$ref":"#"}`, `{"format":"regex"}`, `{"format":1}`, `{"uniqueItems":1}`, `{"additionalProperties":1}`, `{"$defs":1}`, `{"$defs":{"a":1}}`,
		`{"properties":{"a":{"$schema":"https://json-schema.org/draft/2020-12/schema"}}}`, `{"dependentRequired":{}}`, `{"unevaluatedProperties":false}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","type":"null","definitions":{"a":{}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","$defs":{"a":{}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","prefixItems":[{}]}`,
		`{"$anchor":"a"}`, `{"contains":{}}`, `{"$dynamicRef":"#"}`, `{"propertyNames":{}}`,
	} {
		if readSchema([]byte(text), true) != nil {
			t.Errorf("%s became constraints", text)
		}
	}
}

// Every keyword of a meta-schema is one that constraints know or know to be beyond
// them: what is left may be taken for an annotation.
func TestKeywordsAreKnown(t *testing.T) {
	c := jsonschema.NewCompiler()
	seen := map[*jsonschema.Schema]bool{}
	keywords := 0
	var visit func(s *jsonschema.Schema)
	visit = func(s *jsonschema.Schema) {
		if s == nil || seen[s] {
			return
		}
		seen[s] = true
		visit(s.Ref)
		for _, sub := range s.AllOf {
			visit(sub)
		}
		for name := range s.Properties {
			keywords++
			one := reader{raw: []byte(`{"` + name + `":[0]}`), dialect: draft2020, engine: &engine{known: map[string]jsonschema.Regexp{}}}
			one.schema(0)
			_, known := ignored[name]
			if !one.beyond && !known && name != "const" && name != "enum" && name != "$schema" {
				t.Errorf("%s is taken for an annotation", name)
			}
		}
	}
	for _, dialect := range dialects {
		s, err := c.Compile(dialect)
		if err != nil {
			t.Fatal(err)
		}
		visit(s)
	}
	if keywords < 100 {
		t.Errorf("only %d keywords found", keywords)
	}
}

// A value that would take too many steps is left to the library.
func TestConstraintsGiveUp(t *testing.T) {
	c := readSchema([]byte(`{"anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["b"]},{"properties":{"a":{"$ref":"#"}},"required":["c"]}]}`), false)
	nested := func(n int) wire.RawValue {
		return wire.RawValue(strings.Repeat(`{"a":`, n) + `1` + strings.Repeat(`}`, n))
	}
	if err, decided := c.validate(nested(5), 500_000); err == nil || !decided {
		t.Errorf("a shallow value: %v, %t", err, decided)
	}
	if _, decided := c.validate(nested(60), 500_000); decided {
		t.Error("a deep value is decided")
	}
	if err, decided := c.validate(nested(1), 3); decided {
		t.Errorf("a value is decided in more steps than allowed: %v", err)
	}
	wide := readSchema(fmt.Appendf(nil, `{"anyOf":[%s false]}`, strings.Repeat(`{"items":{"maximum":1},"maxItems":1},`, 200)), false)
	if _, decided := wide.validate(wire.RawValue(`[`+strings.Repeat("0,", 10_000)+`0]`), 500_000_000); decided {
		t.Error("a value was read 200 times")
	}
}

// References are looked up in time that grows with the schema, not with its
// square: strangers write schemas.
func TestManyReferences(t *testing.T) {
	cost := func(n int) float64 {
		var b strings.Builder
		b.WriteString(`{"$defs":{`)
		for i := range n {
			fmt.Fprintf(&b, `"r%d":{"$ref":"#/$defs/t%d"},"t%d":{"type":"string"},`, i, n-1-i, i)
		}
		b.WriteString(`"last":true}}`)
		if readSchema([]byte(b.String()), false) == nil {
			t.Fatal("left to the library")
		}
		return testing.AllocsPerRun(1, func() { readSchema([]byte(b.String()), false) })
	}
	if few, many := cost(100), cost(1000); many > 15*few {
		t.Errorf("%v allocations for 100 references, %v for 1,000", few, many)
	}
}
