package schema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/schema"
)

func compile(t testing.TB, raw string) *schema.Compiled {
	t.Helper()
	c, err := schema.Compile([]byte(raw), nil)
	if err != nil {
		t.Fatalf("%.200s: %v", raw, err)
	}
	return c
}

// Proves: SEC-TOOL-1
func TestForeignCheck(t *testing.T) {
	for _, c := range []struct{ schema, value, want string }{
		{`{"type":"object","required":["a"],"properties":{"a":{"type":"integer","minimum":3}}}`, `{"a":3}`, ``},
		{`{"type":"object","required":["a"],"properties":{"a":{"type":"integer","minimum":3}}}`, `{}`, `member "a" is required`},
		{`{"type":"object","required":["a"],"properties":{"a":{"type":"integer","minimum":3}}}`, `{"a":2}`, `/a: must be at least 3`},
		{`{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}}}`, `{"a":1.0}`, ``},
		{`{"type":"object","additionalProperties":false}`, ``, ``},
		{`{"type":"object","additionalProperties":false}`, `{"secret":"topsecret"}`, `unknown member "secret"`},
		{`{"properties":{"a":{"enum":["x",1,null]}}}`, `{"a":"topsecret"}`, `/a: must be one of "x", 1, null`},
		{`{"properties":{"a":{"const":{"b":[1]}}}}`, `{"a":"topsecret"}`, `/a: must be {"b":[1]}`},
		{`{"properties":{"a~/b":{"type":["string","null"]}}}`, `{"a~/b":1}`, `/a~0~1b: expected null or string, got number`},
		{`{"items":{"pattern":"^a$"}}`, `["a","topsecret"]`, `/1: must match the pattern ^a$`},
		{`{"anyOf":[{"type":"string"},{"minimum":5}]}`, `4`, `fits none of the alternatives`},
		{`{"oneOf":[{"minimum":1},{"minimum":2}]}`, `4`, `fits more than one of the alternatives`},
		{`{"not":{"type":"string"}}`, `"topsecret"`, `fits what is excluded`},
		{`{"allOf":[{"minimum":5},{"multipleOf":3}]}`, `4`, `must be at least 5; must be a multiple of 3`},
		{`{"minLength":2,"maxLength":2}`, `"é"`, `must have at least 2 characters, has 1`},
		{`{"uniqueItems":true,"minItems":1}`, `[1,1.0]`, `items 0 and 1 must differ`},
		{`{"maximum":9007199254740993}`, `9007199254740993`, ``}, // exactly
		{`{"maximum":9007199254740992}`, `9007199254740993`, `must be at most 9007199254740992`},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, `1`, `expected string, got number`},
		{`{"$defs":{"a":{"$anchor":"x","type":"string"}},"properties":{"p":{"$ref":"#x"}}}`, `{"p":1}`, `/p: expected string`},
		{`{"$id":"https://example.com/s","$defs":{"a":{"$id":"a","type":"string"}},"properties":{"p":{"$ref":"a"}}}`, `{"p":1}`, `/p: expected string`},
		{`{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"a":1}`, `member "b" is required`},
		{`{"properties":{"a":{}},"unevaluatedProperties":false}`, `{"b":1}`, `/b: is not allowed here`},
		{`{"propertyNames":{"maxLength":1}}`, `{"bb":1}`, `member "bb" has a name that is not allowed`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `member "b" is required with "a"`},
		{`{"contains":{"const":1},"maxContains":1}`, `[1,1]`, `at most 1 items that fit`},
		{`{"format":"email"}`, `"x"`, ``}, // an annotation in 2020-12
		{`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":"string"}},"items":[{"$ref":"#/definitions/a"}],"additionalItems":false}`, `["a",1]`, `items too many`},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}},"additionalProperties":false}`, `{"a":{"b":1}}`, `/a: unknown member "b"`},
		{`{"$dynamicAnchor":"n","properties":{"a":{"$dynamicRef":"#n"}},"additionalProperties":false}`, `{"a":{"b":1}}`, `/a: unknown member "b"`},
		{`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `{"properties":{"a":{"type":"string"}}}`, ``}, // built in, not loaded
		{`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `{"properties":{"a":{"minLength":-1}}}`, `/properties/a/minLength: must be at least 0`},
		{`{}`, `{"a":`, `not valid JSON`},
		{`{}`, `{"a":"`, `not valid JSON`},
		{`{"minimum":1}`, `1e999999`, `more than 400 digits`},
		{`{"type":"integer"}`, `1` + strings.Repeat("0", 500), `more than 400 digits`},
	} {
		err := compile(t, c.schema).Check([]byte(c.value))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %s: %v", c.schema, c.value, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %s: %v; want %s", c.schema, c.value, err, c.want)
		case err != nil && strings.Contains(err.Error(), "topsecret"):
			t.Errorf("%s: the error shows a value: %v", c.schema, err)
		}
	}
}

func TestForeignFormats(t *testing.T) {
	raw := []byte(`{"format":"email"}`)
	c, err := schema.Compile(raw, &schema.Limits{AssertFormats: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check([]byte(`"x"`)); err == nil || !strings.Contains(err.Error(), "expected the format email") {
		t.Error(err)
	}
	if diff := cmp.Diff(string(raw), string(c.JSON())); diff != "" {
		t.Error(diff)
	}
}

func TestForeignDecode(t *testing.T) {
	c := compile(t, `{"type":"object","properties":{"A":{"type":"integer"}}}`)
	var v struct{ A int }
	if err := c.Decode([]byte(`{"A":5,"B":1}`), &v); err != nil || v.A != 5 {
		t.Errorf("%+v, %v", v, err)
	}
	if err := c.Decode([]byte(`{"A":"5"}`), &v); err == nil {
		t.Error("a value that does not fit is decoded")
	}
	if c.Type() != "object" {
		t.Error(c.Type())
	}
}

// chain makes definitions a0 to a(n-1), each made from the name of the next.
func chain(n int, each string, last string) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"a%d":`, i)
		fmt.Fprintf(&b, strings.ReplaceAll(each, "NEXT", `{"$ref":"#/$defs/a%[1]d"}`), i+1)
		b.WriteByte(',')
	}
	fmt.Fprintf(&b, `"a%d":%s}}`, n, last)
	return b.String()
}

// Proves: SEC-TOOL-1
func TestHostileSchemasAreRefused(t *testing.T) {
	for _, c := range []struct {
		what, schema string
		want         error
	}{
		{"network reference", `{"$ref":"https://example.com/s.json"}`, schema.ErrExternal},
		{"loopback reference", `{"properties":{"a":{"$ref":"http://127.0.0.1:1/"}}}`, schema.ErrExternal},
		{"file reference", `{"$ref":"file:///etc/passwd"}`, schema.ErrExternal},
		{"relative reference", `{"$ref":"other.json"}`, schema.ErrExternal},
		{"reference to nothing", `{"$ref":"#/$defs/none"}`, schema.ErrInvalid},
		{"reference by id", `{"$id":"https://example.com/a","$ref":"b"}`, schema.ErrExternal},
		{"unknown dialect", `{"$schema":"https://example.com/dialect"}`, schema.ErrDialect},
		{"draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#"}`, schema.ErrDialect},
		{"draft 6", `{"$schema":"http://json-schema.org/draft-06/schema#"}`, schema.ErrDialect},
		{"dialect beneath", `{"$defs":{"a":{"$id":"x","$schema":"https://example.com/dialect"}}}`, schema.ErrDialect},
		{"dialect is a number", `{"$schema":5}`, schema.ErrInvalid},
		{"loop", `{"$ref":"#"}`, schema.ErrInvalid},
		{"long loop", `{"allOf":[{"anyOf":[{"$ref":"#"}]}]}`, schema.ErrInvalid},
		{"loop by then", `{"then":{"$ref":"#"},"if":true}`, schema.ErrInvalid},
		{"loop by dependency", `{"dependentSchemas":{"a":{"$ref":"#"}}}`, schema.ErrInvalid},
		{"deep", strings.Repeat(`{"items":`, 65) + `{}` + strings.Repeat(`}`, 65), schema.ErrTooComplex},
		{"large", `{"enum":[` + strings.Repeat("1,", 10_000) + `1]}`, schema.ErrTooComplex},
		{"bomb of references", chain(40, `{"allOf":[NEXT,NEXT]}`, `{"type":"string"}`), schema.ErrTooComplex},
		{"bomb of alternatives", chain(40, `{"anyOf":[NEXT,NEXT,NEXT]}`, `{"type":"string"}`), schema.ErrTooComplex},
		{"many dynamic targets", manyAnchors(), schema.ErrTooComplex},
		{"large pattern", `{"pattern":"` + strings.Repeat("a", 2000) + `"}`, schema.ErrTooComplex},
		{"large patterns", `{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"pattern":"(a?b?c?d?){250}"},`, 40), ",") + `]}`, nil},
		{"many large patterns", manyPatterns(), schema.ErrTooComplex},
		{"lookaround", `{"pattern":"(?=a)"}`, schema.ErrInvalid},
		{"not a pattern", `{"pattern":"("}`, schema.ErrInvalid},
		{"wild number", `{"maximum":1e999999}`, schema.ErrTooComplex},
		{"not a schema", `{"type":"thing"}`, schema.ErrInvalid},
		{"array", `[]`, schema.ErrInvalid},
		{"null", `null`, schema.ErrInvalid},
		{"boolean", `true`, schema.ErrInvalid},
		{"nothing", ``, schema.ErrInvalid},
		{"duplicate names", `{"type":"string","type":"object"}`, schema.ErrInvalid},
		{"same id twice", `{"$defs":{"a":{"$id":"https://e.com/x"},"b":{"$id":"https://e.com/x"}}}`, schema.ErrInvalid},
	} {
		_, err := schema.Compile([]byte(c.schema), nil)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v; want %v", c.what, err, c.want)
		}
		if err != nil && len(err.Error()) > 700 {
			t.Errorf("%s: message of %d bytes", c.what, len(err.Error()))
		}
	}
}

func manyAnchors() string {
	var b strings.Builder
	b.WriteString(`{"properties":{"z":{}`)
	for i := range 500 {
		fmt.Fprintf(&b, `,"p%d":{"$id":"p%d","$dynamicAnchor":"a","items":{"$dynamicRef":"#a"}}`, i, i)
	}
	return b.String() + `}}`
}

func manyPatterns() string {
	var b strings.Builder
	b.WriteString(`{"type":"object"`)
	for i := range 60 {
		fmt.Fprintf(&b, `,"x%d":{}`, i)
	}
	b.WriteString(`,"patternProperties":{"z":{}`)
	for i := range 60 {
		fmt.Fprintf(&b, `,"(a?b?c?d?){250}%d":{}`, i)
	}
	return b.String() + `}}`
}

// A schema may be fine and a value still make it explode: each level of the
// value doubles the work.
// Proves: SEC-TOOL-1
func TestHostileValuesAreRefused(t *testing.T) {
	twins := `{"anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["b"]},{"properties":{"a":{"$ref":"#"}},"required":["c"]}]}`
	c := compile(t, twins)
	nested := func(n int) []byte {
		return []byte(strings.Repeat(`{"a":`, n) + `1` + strings.Repeat(`}`, n))
	}
	if err := c.Check(nested(5)); err == nil || errors.Is(err, schema.ErrTooComplex) {
		t.Errorf("a shallow value: %v", err)
	}
	if err := c.Check(nested(60)); !errors.Is(err, schema.ErrTooComplex) {
		t.Errorf("a deep value: %v", err)
	}
	if err := c.Check([]byte(`{"b":1,"a":{"c":2}}`)); err != nil {
		t.Errorf("a good value: %v", err)
	}
	items := compile(t, `{"items":{"type":"integer"}}`) // which fit: at ones that do not, the check ends early
	if err := items.Check([]byte(`[` + strings.Repeat("1,", 600_000) + `1]`)); !errors.Is(err, schema.ErrTooComplex) {
		t.Errorf("a huge value: %.100v", err)
	}
	unique := compile(t, `{"uniqueItems":true}`)
	if err := unique.Check([]byte(`[` + strings.Repeat("[],", 5000) + `[]]`)); !errors.Is(err, schema.ErrTooComplex) {
		t.Errorf("many arrays that must differ: %.100v", err)
	}
	slow := compile(t, `{"pattern":"(a?b?c?d?){200}"}`)
	if err := slow.Check(wire.AppendString(nil, strings.Repeat("a", 4<<20))); !errors.Is(err, schema.ErrTooComplex) {
		t.Errorf("a long string: %.100v", err)
	}
}

// Recursive schemas of the usual kind are not refused.
func TestUsualRecursion(t *testing.T) {
	c := compile(t, `{"$ref":"#/$defs/e","$defs":{"e":{"oneOf":[
		{"type":"number"},
		{"type":"object","properties":{"op":{"const":"neg"},"args":{"items":{"$ref":"#/$defs/e"},"maxItems":1}},"required":["op","args"]},
		{"type":"object","properties":{"op":{"const":"add"},"args":{"items":{"$ref":"#/$defs/e"},"minItems":2}},"required":["op","args"]}]}}}`)
	if err := c.Check([]byte(`{"op":"add","args":[1,{"op":"neg","args":[{"op":"add","args":[1,2,3]}]}]}`)); err != nil {
		t.Error(err)
	}
	if err := c.Check([]byte(`{"op":"mul","args":[1,2]}`)); err == nil {
		t.Error("an unknown operator is accepted")
	}
}

func TestLimitsCanBeSet(t *testing.T) {
	raw := []byte(`{"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`)
	for _, l := range []schema.Limits{{MaxSchemaNodes: 5}, {MaxSchemaDepth: 2}} {
		if _, err := schema.Compile(raw, &l); !errors.Is(err, schema.ErrTooComplex) {
			t.Errorf("%+v: %v", l, err)
		}
	}
	c, err := schema.Compile(raw, &schema.Limits{MaxEvaluations: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check([]byte(`{"a":"","b":""}`)); !errors.Is(err, schema.ErrTooComplex) {
		t.Error(err)
	}
}

// FuzzCompile: no panic and no endless work, whatever the schema and value.
// Proves: SEC-TOOL-1
func FuzzCompile(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`), []byte(`{"a":{}}`))
	f.Add([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"c":{"not":{}}}}`), []byte(`{"a":1,"c":2}`))
	f.Add([]byte(`{"$dynamicAnchor":"a","allOf":[{"items":{"$dynamicRef":"#a"}}],"unevaluatedItems":false}`), []byte(`[[1],[]]`))
	f.Add([]byte(`{"patternProperties":{"^(a|b)*$":{"multipleOf":0.1,"uniqueItems":true}}}`), []byte(`{"ab":0.3,"b":[1,1.0]}`))
	f.Add([]byte(`{"properties":{"t":{"type":"integer","x-mcp-header":"T"}}}`), []byte(`{"t":5}`))
	f.Add([]byte(`{"oneOf":[{"pattern":"(?=a)"},{"not":{"items":{"$ref":"#"}}}],"unevaluatedItems":false}`), []byte(`[["a"]]`))
	f.Fuzz(func(t *testing.T, raw, value []byte) {
		lenient, refused := schema.Compile(raw, &schema.Limits{Lenient: true})
		if refused == nil {
			_ = lenient.Check(value)
		}
		c, err := schema.Compile(raw, nil)
		if err != nil {
			return
		}
		if refused != nil {
			t.Fatalf("a schema of a peer is refused: %v", refused)
		}
		if err = c.Check(value); err == nil && lenient.Check(value) != nil {
			t.Fatal("a schema of a peer rejects more")
		}
		for i := range c.Headers() {
			_, _, _ = c.Headers()[i].Value(value)
		}
		if again := c.Check(value); (err == nil) != (again == nil) {
			t.Fatalf("first %v, then %v", err, again)
		}
	})
}
