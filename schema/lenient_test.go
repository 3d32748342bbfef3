package schema_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/schema"
)

// unjudgeable are patterns that are none to RE2, or exceed a bound.
var unjudgeable = map[string]string{
	"lookahead":      `^(?!x)a`,
	"lookbehind":     `(?<=x)a`,
	"back-reference": `(a)\1`,
	"code unit":      `^[\u4e00-\u9fa5]+$`,
	"script":         `^\p{Script=Han}+$`,
	"many times":     `^a{0,2000}$`,
	"control letter": `\cA`,
	"any character":  `[^]`,
	"no pattern":     `(`,
	"long":           strings.Repeat("a", 1025),
	"large":          `(((a?b?c?d?){100}){10}){9}`,
	"large in parts": `(a?b?c?d?e?f?g?h?i?j?k?l?m?n?o?p?q?r?s?t?u?v?w?x?y?z?A?B?C?D?E?F?G?H?I?J?K?L?M?N?O?P?Q?R?S?T?U?V?W?X?Y?Z?){1000}`,
}

// A schema with a pattern that cannot be judged here is refused where it is registered,
// and where a peer sent it the rest is checked.
// Proves: ruling 38
func TestUnjudgeablePatterns(t *testing.T) {
	for name, pattern := range unjudgeable {
		quoted := string(wire.AppendString(nil, pattern))
		for _, c := range []struct{ keyword, schema, good, bad string }{
			{"pattern", `{"properties":{"a":{"type":"string","pattern":%s}}}`, `{"a":"b"}`, `{"a":1}`},
			{"patternProperties", `{"patternProperties":{%s:{"type":"string"}},"required":["b"],"additionalProperties":false}`, `{"b":1}`, `{"a":"b"}`},
			{"propertyNames", `{"propertyNames":{"pattern":%s,"maxLength":2}}`, `{"b":1}`, `{"bbb":1}`},
			{"draft-07", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"type":"string","pattern":%s}}}`, `{"a":"b"}`, `{"a":1}`},
		} {
			t.Run(name+"/"+c.keyword, func(t *testing.T) {
				raw := fmt.Appendf(nil, c.schema, quoted)
				if _, err := schema.Compile(raw, nil); !errors.Is(err, schema.ErrInvalid) && !errors.Is(err, schema.ErrTooComplex) {
					t.Errorf("registered: %v; want an error", err)
				}
				s, err := schema.Compile(raw, &schema.Limits{Lenient: true, AssertFormats: true})
				if err != nil {
					t.Fatalf("received: %v", err)
				}
				if string(s.JSON()) != string(raw) {
					t.Errorf("its text became %s", s.JSON())
				}
				if err := s.Check([]byte(c.good)); err != nil {
					t.Errorf("%s: %v", c.good, err)
				}
				if err := s.Check([]byte(c.bad)); err == nil {
					t.Errorf("%s is accepted", c.bad)
				}
			})
		}
	}
}

// No value is rejected because a pattern in a subschema was not judged. "(?!)" matches
// nothing, "(?=)" everything.
// Proves: ruling 38
func TestUnjudgedPatternsRejectNothing(t *testing.T) {
	for _, c := range []struct {
		name, schema string
		good, bad    []string
	}{
		{
			"additional members", `{"properties":{"n":{"type":"number"}},"patternProperties":{"(?=)":true},"additionalProperties":false}`,
			[]string{`{"a":1}`, `{"n":1}`},
			[]string{`{"n":"x"}`},
		},
		{
			"additional members of a kind", `{"patternProperties":{"(?=)":true,"^b":{"type":"string"}},"additionalProperties":{"type":"string"}}`,
			[]string{`{"a":1}`},
			[]string{`{"b":1}`},
		},
		{"members of a pattern", `{"patternProperties":{"(?!)":{"type":"string"}}}`, []string{`{"a":1}`}, nil},
		{"unevaluated members", `{"patternProperties":{"(?=)":true},"unevaluatedProperties":false}`, []string{`{"a":1}`}, nil},
		{"unevaluated members of a part", `{"allOf":[{"patternProperties":{"(?=)":true}}],"unevaluatedProperties":false}`, []string{`{"a":1}`}, nil},
		{"not", `{"not":{"pattern":"(?!)"},"type":"string"}`, []string{`"a"`}, []string{`1`}},
		{"not, by reference", `{"not":{"$ref":"#/$defs/a"},"$defs":{"a":{"properties":{"b":{"pattern":"(?!)"}}}}}`, []string{`{"b":"c"}`}, nil},
		{
			"not, by dynamic reference", `{"$dynamicAnchor":"x","not":{"items":{"$dynamicRef":"#y"}},"$defs":{"a":{"$dynamicAnchor":"y","pattern":"(?!)"}}}`,
			[]string{`["a"]`},
			nil,
		},
		{"one of", `{"oneOf":[{"type":"string","pattern":"(?!)"},{"type":"string"}]}`, []string{`"a"`}, []string{`1`}},
		{"one of, and any of", `{"oneOf":[{"pattern":"(?!)"},{"minLength":1}],"anyOf":[{"type":"string"}]}`, []string{`"a"`}, []string{`1`}},
		{"if, then", `{"if":{"pattern":"(?!)"},"then":false}`, []string{`"a"`}, nil},
		{
			"if, else", `{"if":{"properties":{"a":{"pattern":"(?=)"}},"type":"object"},"else":{"type":"string"},"then":{"required":["b"]}}`,
			[]string{`{"a":"c"}`, `"a"`},
			nil,
		},
		{
			"if, and unevaluated", `{"if":{"properties":{"a":{"pattern":"(?=)"}}},"then":{"properties":{"b":true}},"unevaluatedProperties":false}`,
			[]string{`{"a":"c","b":1}`},
			nil,
		},
		{"contains", `{"contains":{"pattern":"(?!)"},"minContains":0,"maxContains":1}`, []string{`["a","b"]`}, nil},
		{"contains enough", `{"contains":{"type":"string","pattern":"(?=)"}}`, []string{`["a"]`}, []string{`[1]`}},
		{"names of members", `{"not":{"propertyNames":{"pattern":"(?!)"}}}`, []string{`{"a":1}`}, nil},
		{"patterns as values", `{"type":"string","format":"regex"}`, []string{`"(?=a)"`}, []string{`1`}},
		{"no patterns as values", `{"not":{"format":"regex"}}`, []string{`"(a)\\1"`}, nil},
		{"judged beside unjudged", `{"allOf":[{"pattern":"(?=)"},{"pattern":"^a$"}],"not":{"const":"b"}}`, []string{`"a"`}, []string{`"c"`, `"b"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := schema.Compile([]byte(c.schema), &schema.Limits{Lenient: true, AssertFormats: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, value := range c.good {
				if err := s.Check([]byte(value)); err != nil {
					t.Errorf("%s: %v", value, err)
				}
			}
			for _, value := range c.bad {
				if err := s.Check([]byte(value)); err == nil {
					t.Errorf("%s is accepted", value)
				}
			}
		})
	}
}

// What is too long for the patterns is checked without them if the schema is a peer's.
// Proves: ruling 38
func TestLongStringsOfLenientSchemas(t *testing.T) {
	s, err := schema.Compile([]byte(`{"properties":{"a":{"pattern":"(a?b?c?d?){200}","maxLength":5000000},"n":{"type":"number"}},`+
		`"not":{"required":["o"]}}`), &schema.Limits{Lenient: true})
	if err != nil {
		t.Fatal(err)
	}
	long := string(wire.AppendString(nil, strings.Repeat("a", 4<<20)))
	for value, fits := range map[string]bool{`{"a":%s}`: true, `{"a":%s,"n":1}`: true, `{"a":%s,"n":"x"}`: false, `{"a":%s,"o":1}`: false} {
		if err := s.Check(fmt.Appendf(nil, value, long)); (err == nil) != fits {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// Values of the format "regex" are checked each for itself, on any goroutine: many of
// them exhaust nothing.
func TestManyPatternsAsValues(t *testing.T) {
	s := compile(t, `{"$schema":"http://json-schema.org/draft-07/schema#","type":"string","format":"regex"}`)
	var group sync.WaitGroup
	for i := range 80 {
		group.Go(func() {
			if err := s.Check(fmt.Appendf(nil, `"(a?b?c?d?){250}%d"`, i)); err != nil {
				t.Error(err)
			}
			if err := s.Check([]byte(`"("`)); err == nil {
				t.Error("what is no pattern is accepted")
			}
		})
	}
	group.Wait()
}

// A schema of a peer has its dialect by any usual spelling of the address, null for a keyword is absence, and
// so is an empty array for an object; what is left is checked. All of these are refused where they are
// registered.
// Proves: ruling 38
func TestSchemasOfPeers(t *testing.T) {
	for name, test := range map[string]struct {
		schema    string
		good, bad string
	}{
		"draft-07 by https":  {`{"$schema":"https://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"$ref":"#/definitions/n","type":"string"}},"definitions":{"n":{"type":"number"}}}`, `{"a":1}`, `{"a":"x"}`},
		"draft-06":           {`{"$schema":"http://json-schema.org/draft-06/schema#","type":"object","properties":{"a":{"exclusiveMinimum":1}}}`, `{"a":2}`, `{"a":1}`},
		"draft-06, no sign":  {`{"$schema":"https://json-schema.org/draft-06/schema","properties":{"a":{"const":1}}}`, `{"a":1}`, `{"a":2}`},
		"draft-04":           {`{"$schema":"http://json-schema.org/draft-04/schema#","id":"a","type":"object","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`, `{"a":2}`, `{"a":1}`},
		"2019-09 by http":    {`{"$schema":"http://json-schema.org/draft/2019-09/schema","items":[{"type":"string"}]}`, `["a"]`, `[1]`},
		"2020-12 by http":    {`{"$schema":"http://json-schema.org/draft/2020-12/schema#","prefixItems":[{"type":"string"}]}`, `["a"]`, `[1]`},
		"no version":         {`{"$schema":"http://json-schema.org/schema#","type":"object"}`, `{}`, `[]`},
		"null dialect":       {`{"$schema":null,"type":"object"}`, `{}`, `[]`},
		"null keywords":      {`{"type":"object","required":null,"additionalProperties":null,"allOf":null,"minProperties":1}`, `{"a":1}`, `{}`},
		"null in a property": {`{"properties":{"a":{"type":"string","enum":null,"pattern":null,"minLength":null,"items":null}}}`, `{"a":"x"}`, `{"a":1}`},
		"null property":      {`{"properties":{"a":null},"additionalProperties":false}`, `{"a":1}`, `{"b":1}`},
		"null in a list":     {`{"allOf":[null,{"required":["a"]}]}`, `{"a":1}`, `{}`},
		"null beneath":       {`{"$defs":{"n":{"anyOf":[{"type":"string","title":null},{"type":"number"}],"not":null}},"properties":{"a":{"$ref":"#/$defs/n"}},"patternProperties":{"^b":{"type":"string","format":null}}}`, `{"a":1,"b":"x"}`, `{"b":1}`},
		"null is a value":    {`{"properties":{"a":{"const":null,"title":null},"b":{"enum":[null],"title":null}}}`, `{"a":null,"b":null}`, `{"a":1}`},
		"arrays of PHP":      {`{"type":"object","properties":[],"$defs":[],"required":null}`, `{"a":1}`, `[]`},
		"array for a schema": {`{"properties":{"a":[],"b":{"type":"string","not":null}},"additionalProperties":[]}`, `{"a":1,"c":1}`, `{"b":1}`},
		"not everything":     {`{"properties":{"a":{"title":null,"not":{}}}}`, `{}`, `{"a":1}`},
		"dependencies":       {`{"$schema":"http://json-schema.org/draft-07/schema#","title":null,"dependencies":{"a":["b"],"c":[]}}`, `{"c":1}`, `{"a":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := schema.Compile([]byte(test.schema), nil); !errors.Is(err, schema.ErrInvalid) && !errors.Is(err, schema.ErrDialect) {
				t.Errorf("registered: %v; want an error", err)
			}
			c, err := schema.Compile([]byte(test.schema), &schema.Limits{Lenient: true})
			if err != nil {
				t.Fatal(err)
			}
			if string(c.JSON()) != test.schema {
				t.Errorf("its text became %s", c.JSON())
			}
			if err := c.Check([]byte(test.good)); err != nil {
				t.Errorf("%s: %v", test.good, err)
			}
			if err := c.Check([]byte(test.bad)); err == nil {
				t.Errorf("%s is accepted", test.bad)
			}
		})
	}
	for _, wrong := range []string{
		`{"$schema":"https://example.com/schema"}`, `{"$schema":"json-schema.org/draft-07/schema"}`, `{"$schema":7}`,
		`{"type":"int"}`, `{"properties":{"a":{"required":true}}}`, `{"$ref":"#/nowhere","title":null}`, `{"properties":[1]}`, `null`, `[]`,
	} {
		if _, err := schema.Compile([]byte(wrong), &schema.Limits{Lenient: true}); err == nil {
			t.Errorf("%s is a schema", wrong)
		}
	}
}

// A gateway passes on any object as a schema, and reads only header annotations.
func TestUncheckedSchemas(t *testing.T) {
	many := `{"type":"object","enum":[` + strings.Repeat("1,", 20_000) + `1` + strings.Repeat("0", 500) + `]}`
	for _, raw := range []string{`{"type":"object","$schema":"urn:x"}`, `{"type":"objekt","required":7}`, many} {
		c, err := schema.Compile([]byte(raw), &schema.Limits{Unchecked: true})
		if err != nil {
			t.Errorf("%.60s: %v", raw, err)
			continue
		}
		if err := c.Check([]byte(`{"a":1}`)); err != nil {
			t.Errorf("%.60s: %v", raw, err)
		}
	}
	header := `{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}`
	if _, err := schema.Compile([]byte(header), &schema.Limits{Unchecked: true}); !errors.Is(err, schema.ErrHeader) {
		t.Errorf("a wrong header annotation: %v", err)
	}
	if _, err := schema.Compile([]byte(`[]`), &schema.Limits{Unchecked: true}); !errors.Is(err, schema.ErrInvalid) {
		t.Errorf("an array: %v", err)
	}
}
