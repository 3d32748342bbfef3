package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/racetest"
	"github.com/parley-mcp/parley/internal/schematext"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
)

// profiles are the profiles that the tests go through.
var profiles = map[string]Profile{
	"any": Any, "anthropic": Anthropic, "openai": OpenAI, "gemini": Gemini,
	"no unions": {Keywords: []string{"type", "description", "properties", "required", "items"}, Root: RootObject, Types: TypesAnyOf, MaxDepth: 3},
	// It takes what must not become weaker, and not what is often in it.
	"exact": {Keywords: []string{
		"type", "description", "properties", "required", "additionalProperties", "items", "contains", "minContains", "maxContains",
		"oneOf", "anyOf", "not", "if", "then", "else", "unevaluatedProperties", "$ref", "$defs",
	}},
	"any of": {Types: TypesAnyOf, Root: RootObject, MaxEnum: 2},
}

func TestReduceSchema(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, profile, full, want string }{
		{"unchanged", "any", `{ "$ref":"#/$defs/a", "$defs":{"a":{"oneOf":[true]}}}`, `{ "$ref":"#/$defs/a", "$defs":{"a":{"oneOf":[true]}}}`},
		{
			"ordinary", "gemini",
			`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"string","description":"A."}},"required":["a"],"additionalProperties":false}`,
			`{"description":"(additionalProperties: false)","properties":{"a":{"description":"A.","type":"string"}},"required":["a"],"type":"object"}`,
		},
		{
			"lost keyword", "gemini", `{"type":"object","properties":{"n":{"type":"integer","multipleOf":5,"description":"How many."}}}`,
			`{"properties":{"n":{"description":"How many. (multipleOf: 5)","type":"integer"}},"type":"object"}`,
		},
		{
			"pattern stays", "openai", `{"type":"object","properties":{"n":{"type":"string","pattern":"^[a-z]+$"}}}`,
			`{"properties":{"n":{"pattern":"^[a-z]+$","type":"string"}},"type":"object"}`,
		},
		{
			"pattern goes", "no unions", `{"type":"object","properties":{"n":{"type":"string","pattern":"^[a-z]+$"}}}`,
			`{"properties":{"n":{"description":"(pattern: ^[a-z]+$)","type":"string"}},"type":"object"}`,
		},
		{
			"reference", "gemini", `{"type":"object","properties":{"p":{"$ref":"#/$defs/P","description":"Where."}},"$defs":{"P":{"type":"object","description":"A point.","properties":{"x":{"type":"number"}}}}}`,
			`{"properties":{"p":{"description":"Where.","properties":{"x":{"type":"number"}},"type":"object"}},"type":"object"}`,
		},
		{
			"reference stays", "openai", `{"type":"object","properties":{"p":{"$ref":"#/$defs/P"}},"$defs":{"P":{"type":"string"},"Q":{}}}`,
			`{"$defs":{"P":{"type":"string"}},"properties":{"p":{"$ref":"#/$defs/P"}},"type":"object"}`,
		},
		{
			"recursion", "gemini", `{"type":"object","properties":{"t":{"$ref":"#/$defs/T"}},"$defs":{"T":{"type":"object","properties":{"next":{"$ref":"#/$defs/T"}}}}}`,
			`{"properties":{"t":{"properties":{"next":{"description":"(the same again within itself)"}},"type":"object"}},"type":"object"}`,
		},
		{
			"root reference", "openai", `{"$ref":"#/definitions/A","definitions":{"A":{"type":"object","properties":{"a":{"type":"boolean"}}}},"$schema":"http://json-schema.org/draft-07/schema#"}`,
			`{"properties":{"a":{"type":"boolean"}},"type":"object"}`,
		},
		{
			"null", "gemini", `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`,
			`{"properties":{"a":{"nullable":true,"type":"string"},"b":{"anyOf":[{"type":"integer"},{"description":"(type: null)","nullable":true}]}},"type":"object"}`,
		},
		{
			"types", "gemini", `{"type":"object","properties":{"a":{"type":["string","integer","null"],"maxLength":3,"minimum":1,"description":"Id."}}}`,
			`{"properties":{"a":{"anyOf":[{"description":"Id.","minimum":1,"nullable":true,"type":"integer"},{"maxLength":3,"type":"string"}]}},"type":"object"}`,
		},
		{
			"oneOf", "gemini", `{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"type":"array","items":{"const":"x"}}]}}}`,
			`{"properties":{"a":{"anyOf":[{"type":"string"},{"items":{"enum":["x"],"type":"string"},"type":"array"}]}},"type":"object"}`,
		},
		{
			"listed numbers", "gemini", `{"type":"object","properties":{"a":{"enum":[1,2,3]},"b":{"enum":["x",null]}}}`,
			`{"properties":{"a":{"description":"(enum: [1,2,3])","type":"number"},"b":{"enum":["x"],"nullable":true,"type":"string"}},"type":"object"}`,
		},
		{
			"exclusive bound", "gemini", `{"type":"object","properties":{"a":{"type":"number","exclusiveMinimum":0}}}`,
			`{"properties":{"a":{"description":"(exclusiveMinimum: 0)","minimum":0,"type":"number"}},"type":"object"}`,
		},
		{
			"items", "gemini", `{"type":"object","properties":{"a":{"type":"array"},"b":{"type":"array","prefixItems":[{"type":"string"}],"items":false}}}`,
			`{"properties":{"a":{"items":{},"type":"array"},"b":{"description":"(items: false; prefixItems: [{\"type\":\"string\"}])","items":{},"type":"array"}},"type":"object"}`,
		},
		{
			"pattern that not all take", "openai", `{"type":"object","properties":{"n":{"type":"string","pattern":"^(?!x)a"}}}`,
			`{"properties":{"n":{"description":"(pattern: ^(?!x)a)","type":"string"}},"type":"object"}`,
		},
		{
			"pattern of names that not all take", "openai", `{"type":"object","properties":{"e":{"type":"object","patternProperties":{"^(?!x)":{}},"additionalProperties":false}}}`,
			`{"properties":{"e":{"description":"(additionalProperties: false; patternProperties: {\"^(?!x)\":{}})","type":"object"}},"type":"object"}`,
		},
		{
			"patterns of names", "gemini", `{"type":"object","properties":{"e":{"type":"object","patternProperties":{"^x":{}},"additionalProperties":false}}}`,
			`{"properties":{"e":{"description":"(additionalProperties: false; patternProperties: {\"^x\":{}})","type":"object"}},"type":"object"}`,
		},
		{
			"one of the arguments", "openai", `{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"}},"anyOf":[{"required":["id"]},{"required":["name"]}]}`,
			`{"description":"(anyOf: [{\"required\":[\"id\"]},{\"required\":[\"name\"]}])","properties":{"id":{"type":"string"},"name":{"type":"string"}},"type":"object"}`,
		},
		{
			"alternatives of all arguments", "openai",
			`{"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"x":{"type":"integer"}},"required":["k","x"],"additionalProperties":false},` +
				`{"type":"object","properties":{"k":{"const":"b"}},"required":["k"],"additionalProperties":false}]}`,
			`{"description":"(oneOf: [{\"additionalProperties\":false,\"properties\":{\"k\":{\"const\":\"a\"},\"x\":{\"type\":\"integer\"}},\"required\":[\"k\",\"x\"],\"type\":\"object\"},{\"additionalProperties\":false,\"properties\":{\"k\":{\"const… (42 more bytes))",` +
				`"properties":{"k":{"anyOf":[{"const":"a"},{"const":"b"}]},"x":{"type":"integer"}},"required":["k"],"type":"object"}`,
		},
		{
			"null keywords", "anthropic", `{"type":"object","title":null,"required":null,"properties":{"a":{"type":"string","enum":null,"format":null,"default":null}},"additionalProperties":null}`,
			`{"properties":{"a":{"default":null,"type":"string"}},"type":"object"}`,
		},
		{
			"invalid keywords", "anthropic", `{"type":"object","properties":{"a":{"type":"int","required":true},"b":{"type":["string","any"],"minLength":"3","items":7},"c":{"allOf":"x","$ref":5}}}`,
			`{"properties":{"a":{"description":"(required: true; type: int)"},"b":{"description":"(items: 7; minLength: 3; type: [\"string\",\"any\"])"},"c":{"description":"($ref: 5; allOf: x)"}},"type":"object"}`,
		},
		{
			"invalid beneath", "gemini", `{"type":"object","allOf":[{"properties":{"a":{"$ref":"#/definitions/n"}},"required":"a"}],"definitions":{"n":{"type":"integer","minimum":null,"maximum":"9"}}}`,
			`{"description":"(required: a)","properties":{"a":{"description":"(maximum: 9)","type":"integer"}},"type":"object"}`,
		},
		{
			"arrays of PHP", "openai", `{"type":"object","properties":[]}`,
			`{"description":"(properties: [])","type":"object"}`,
		},
		{
			"bounds of draft-04", "openai", `{"type":"object","properties":{"a":{"type":"number","minimum":0,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false}}}`,
			`{"properties":{"a":{"exclusiveMinimum":0,"maximum":9,"type":"number"}},"type":"object"}`,
		},
		{
			"a reference to nothing", "anthropic", `{"type":"object","properties":{"a":{"$ref":"#/$defs/none","description":"A."}}}`,
			`{"properties":{"a":{"description":"A. ($ref: #/$defs/none)"}},"type":"object"}`,
		},
		{"of a string", "openai", `{"type":"string"}`, `{"type":"object"}`},
		{
			"parts", "gemini", `{"type":"object","allOf":[{"properties":{"a":{"type":"number"}}},{"properties":{"a":{"type":"integer","minimum":1},"b":{}},"required":["a"]}]}`,
			`{"properties":{"a":{"minimum":1,"type":"integer"},"b":{}},"required":["a"],"type":"object"}`,
		},
		{"no type", "openai", `{}`, `{"type":"object"}`},
		{"true", "gemini", `true`, `{"type":"object"}`},
		{"list", "gemini", `{"type":"array"}`, `{"type":"object"}`},
		{"types of the root", "gemini", `{"type":["null","object"]}`, `{"type":"object"}`},
		{"too many values", "any of", `{"type":"object","properties":{"a":{"type":"string","enum":["x","y","z"]}}}`, `{"properties":{"a":{"description":"(enum: [\"x\",\"y\",\"z\"])","type":"string"}},"type":"object"}`},
		{
			"too deep", "no unions", `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"object","properties":{"c":{"type":"object","description":"C.","properties":{"d":{}},"required":["d"]}}}}}}}`,
			`{"properties":{"a":{"properties":{"b":{"properties":{"c":{"description":"C.","type":"object"}},"type":"object"}},"type":"object"}},"type":"object"}`,
		},
		{"other document", "gemini", `{"type":"object","properties":{"a":{"$ref":"https://example.com/x"}}}`, `{"properties":{"a":{"description":"($ref: https://example.com/x)"}},"type":"object"}`},
		{"extension", "openai", `{"type":"object","x-order":1,"properties":{"a":{"type":"string","x-mcp-header":"A"}}}`, `{"properties":{"a":{"type":"string"}},"type":"object"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, notes, err := Reduce(mcp.RawValue(c.full), profiles[c.profile])
			if err != nil || string(got) != c.want {
				t.Errorf("%v\ngot  %s\nwant %s\nnotes %q", err, got, c.want, notes)
			}
			if strings.Contains(c.want, "(") && len(notes) == 0 {
				t.Error("nothing is noted")
			}
		})
	}
	for _, bad := range []string{``, `{`, `[]`, `1`, `"x"`, `{"a":1,"a":2}`} {
		if _, _, err := Reduce(mcp.RawValue(bad), Gemini); err == nil {
			t.Errorf("%q is no schema", bad)
		}
	}
}

// Schemas of strangers stay bounded: references that double at each step, parts
// within parts, long texts, and thousands of fields.
func TestReduceSchemaIsBounded(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	var doubling, fields strings.Builder
	for i := range 40 {
		fmt.Fprintf(&doubling, `"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}},"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1, i+1, i+1)
	}
	for i := range 5000 {
		fmt.Fprintf(&fields, `"f%d":{"type":"string","description":"%s"},`, i, strings.Repeat("long ", 20))
	}
	for _, full := range []string{
		`{"type":"object","$ref":"#/$defs/d0","$defs":{` + doubling.String() + `"d40":{}}}`,
		`{"type":"object","properties":{` + fields.String() + `"a":{}}}`,
		`{"type":"object","properties":{"a":{"description":"` + strings.Repeat("x", 900_000) + `"}}}`,
		`{"type":"object","properties":{"a":{"default":"` + strings.Repeat("x", 900_000) + `"}}}`,
		`{"type":"object","description":"` + strings.Repeat("x", 2_000_000) + `"}`,
	} {
		for name, p := range profiles {
			got, notes, err := Reduce(mcp.RawValue(full), p)
			if err != nil || len(got) > maxReduced || name != "any" && !compiles(got) || 2*len(got) < len(full) && len(notes) == 0 {
				t.Errorf("%s: %v, %d bytes, notes %q of %.60s", name, err, len(got), notes, full)
			}
		}
	}
}

// Patterns that are too many to be matched here cost a schema nothing: they are the provider's to match.
// Proves: Ruling 38.
func TestReduceManyPatterns(t *testing.T) {
	var fields strings.Builder
	for i := range 70 {
		fmt.Fprintf(&fields, `"f%d":{"type":"string","pattern":"^.{0,900}x%d$"},`, i, i)
	}
	full := mcp.RawValue(`{"type":"object","properties":{` + fields.String() + `"a":{"type":"string"}}}`)
	for _, name := range []string{"any", "anthropic", "openai", "gemini"} {
		if got, losses, err := Reduce(full, profiles[name]); err != nil || len(losses) > 0 || strings.Count(string(got), "pattern") != 70 {
			t.Errorf("%s: %v, losses %q", name, err, losses)
		}
	}
}

// The schemas of usual servers lose little.
func TestReduceOrdinary(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../host/testdata/tools.json")
	if err != nil {
		t.Fatal(err)
	}
	var servers map[string][]*mcp.Tool
	if err := json.Unmarshal(raw, &servers); err != nil {
		t.Fatal(err)
	}
	for server, tools := range servers {
		for _, tool := range tools {
			_, notes, err := Reduce(tool.InputSchema, OpenAI)
			notes = slices.DeleteFunc(notes, func(n string) bool { return n == "input schema: oneOf is left out" })
			if err != nil || len(notes) > 0 {
				t.Errorf("%s of %s: %v, %q", tool.Name, server, err, notes)
			}
			got, _, err := Reduce(tool.InputSchema, Gemini)
			if err != nil {
				t.Error(err)
			}
			checkTaken(t, Gemini, got)
		}
	}
}

// checkTaken checks that a reduced schema has nothing that the provider
// refuses.
func checkTaken(t *testing.T, p Profile, raw mcp.RawValue) {
	t.Helper()
	s, ok := schematext.Of(raw)
	if !ok {
		return
	}
	for keyword, value := range s {
		if !p.takes(keyword) {
			t.Errorf("%s is not taken: %.300s", keyword, raw)
		}
		switch keyword {
		case "properties", "$defs", "definitions", "patternProperties":
			fields, _ := schematext.Of(value)
			for _, field := range fields {
				checkTaken(t, p, field)
			}
		case "anyOf", "allOf", "oneOf", "prefixItems":
			list, _ := schematext.Items(value)
			for _, part := range list {
				checkTaken(t, p, part)
			}
			if p.AnyOf == AnyOfAlone && len(s) > 1 {
				t.Errorf("anyOf is not alone: %.300s", raw)
			}
		case "items", "additionalProperties", "not":
			checkTaken(t, p, value)
		case "type":
			if p.Types != TypesList && schematext.Kind(value) == '[' {
				t.Errorf("a list of types: %.300s", raw)
			}
		}
	}
}

// withNull writes nullable as JSON Schema understands it.
func withNull(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = withNull(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = withNull(v[name])
		}
		if v["nullable"] == true {
			return map[string]any{"anyOf": []any{v, map[string]any{"type": "null"}}}
		}
	}
	return v
}

// A reducedSchema is a schema and what it is reduced to for each profile.
type reducedSchema struct {
	full     *schema.Compiled
	raw      mcp.RawValue
	profiles map[string]*schema.Compiled
}

// reduceAll reduces a schema for each profile and checks the results. It returns
// nil if the schema is not valid.
func reduceAll(t *testing.T, full mcp.RawValue) *reducedSchema {
	t.Helper()
	o := &schema.Limits{IgnoreHeaders: true}
	c, err := schema.Compile(full, o)
	if err != nil {
		return nil
	}
	all := &reducedSchema{c, full, make(map[string]*schema.Compiled)}
	for name, p := range profiles {
		got, _, err := Reduce(full, p)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, full)
		}
		if name != "any" && len(got) > maxReduced {
			t.Fatalf("%s: %d bytes", name, len(got))
		}
		checkTaken(t, p, got)
		if p.Types == TypesNullable {
			var v any
			if err := json.Unmarshal(got, &v); err != nil {
				t.Fatal(err)
			}
			got, _ = json.Marshal(withNull(v))
		}
		if all.profiles[name], err = schema.Compile(got, o); err != nil {
			t.Fatalf("%s: %v\n%s\nof %s", name, err, got, full)
		}
	}
	return all
}

// check checks that a value which the full schema accepts is accepted by those
// it is reduced to. It reports whether the full schema accepts it.
func (s *reducedSchema) check(t *testing.T, value mcp.RawValue) bool {
	t.Helper()
	if schematext.Kind(value) != '{' || s.full.Check(value) != nil {
		return false
	}
	for name, weaker := range s.profiles {
		if err := weaker.Check(value); err != nil && !errors.Is(err, schema.ErrTooComplex) {
			t.Fatalf("%s refuses what the full schema accepts: %v\nvalue %s\nfull  %s\ngot   %s", name, err, value, s.raw, weaker.JSON())
		}
	}
	return true
}

// A schemaMaker makes random schemas.
type schemaMaker struct{ *rand.Rand }

func (m schemaMaker) pick(list ...string) string { return list[m.IntN(len(list))] }

func (m schemaMaker) value(depth int) any {
	switch m.IntN(9) {
	case 0:
		return nil
	case 1:
		return m.IntN(2) == 0
	case 2, 3:
		return m.IntN(4)
	case 4:
		return m.pick("a", "b", "xyz", "")
	case 5:
		return 1.5
	}
	if depth == 0 {
		return "a"
	}
	if m.IntN(3) == 0 {
		list := []any{}
		for range m.IntN(3) {
			list = append(list, m.value(depth-1))
		}
		return list
	}
	object := map[string]any{}
	for range m.IntN(4) {
		object[m.pick("a", "b", "xc", "d")] = m.value(depth - 1)
	}
	return object
}

func (m schemaMaker) list(depth int) []any {
	list := []any{}
	for range 1 + m.IntN(3) {
		list = append(list, m.schema(depth))
	}
	return list
}

func (m schemaMaker) fields(depth int) map[string]any {
	fields := map[string]any{}
	for range m.IntN(4) {
		fields[m.pick("a", "b", "xc", "d")] = m.schema(depth)
	}
	return fields
}

// schema makes a schema with a few keywords of all kinds.
func (m schemaMaker) schema(depth int) any {
	if n := m.IntN(20); n == 0 || depth == 0 {
		return m.IntN(12) != 0
	}
	s := map[string]any{}
	for range 1 + m.IntN(4) {
		sub := func() any { return m.schema(depth - 1) }
		makers := []func(){
			func() {
				s["type"] = m.pick("object", "object", "string", "integer", "number", "array", "boolean", "null")
			},
			func() { s["type"] = []string{m.pick("object", "string"), m.pick("null", "integer", "array")} },
			func() { s["properties"] = m.fields(depth - 1) },
			func() { s["properties"] = m.fields(depth - 1) },
			func() { s["required"] = []string{m.pick("a", "b", "xc")} },
			func() { s["additionalProperties"] = m.IntN(2) == 0 },
			func() { s["additionalProperties"] = sub() },
			func() { s["patternProperties"] = map[string]any{m.pick("^x", "a|b"): sub()} },
			func() { s["items"] = sub() },
			func() { s["prefixItems"] = m.list(depth - 1) },
			func() { s["contains"], s["maxContains"] = sub(), m.IntN(3) },
			func() { s["anyOf"] = m.list(depth - 1) },
			func() { s["anyOf"] = m.list(depth - 1) },
			func() { s["oneOf"] = m.list(depth - 1) },
			func() { s["allOf"] = m.list(depth - 1) },
			func() { s["not"] = sub() },
			func() { s["if"], s["then"], s["else"] = sub(), sub(), sub() },
			func() { s["dependentSchemas"] = map[string]any{"a": sub()} },
			func() { s["propertyNames"] = map[string]any{"maxLength": m.IntN(3)} },
			func() { s["unevaluatedProperties"] = false },
			func() { s["const"] = m.value(1) },
			func() { s["enum"] = []any{m.value(1), m.pick("a", "b", "c"), m.value(0)} },
			func() { s["enum"] = []any{m.pick("a", "b"), "c"} },
			func() { s["minimum"], s["maxLength"] = m.IntN(3), 1+m.IntN(3) },
			func() { s["exclusiveMaximum"] = m.IntN(4) },
			func() { s["pattern"] = m.pick("^a", "b$", "^[a-z]*$") },
			func() { s["minProperties"], s["maxItems"], s["uniqueItems"] = m.IntN(2), m.IntN(3), true },
			func() { s["$ref"] = "#/" + m.pick("$defs/A", "$defs/B", "properties/a", "$defs/A/properties/b") },
			func() { s["$ref"] = m.pick("#/$defs/A", "#/$defs/B", "#") },
			func() { s["description"] = "Some." },
		}
		makers[m.IntN(len(makers))]()
	}
	return s
}

// What the full schema accepts, the reduced one accepts.
func TestReducedAcceptsMore(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	m := schemaMaker{rand.New(rand.NewPCG(14, 3))}
	accepted := 0
	const rounds = 400
	for range rounds {
		s, ok := m.schema(4).(map[string]any)
		if !ok {
			continue
		}
		if m.IntN(2) == 0 {
			s["type"] = "object"
		}
		s["$defs"] = map[string]any{"A": m.schema(3), "B": m.schema(2)}
		if s["properties"] == nil {
			s["properties"] = m.fields(3)
		}
		full, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		all := reduceAll(t, full)
		for range 30 {
			value, _ := json.Marshal(m.value(3))
			if all != nil && all.check(t, value) {
				accepted++
			}
		}
	}
	if accepted < rounds {
		t.Errorf("only %d values were accepted by their full schema", accepted)
	}
}

// Where leaving a part out would refuse more, the rest goes with it.
func TestReducedAcceptsKnown(t *testing.T) {
	t.Parallel()
	for full, value := range map[string]string{
		`{"type":"object","patternProperties":{"^x":{}},"additionalProperties":false}`:                                                                                               `{"x":1}`,
		`{"type":"object","properties":{"a":{"prefixItems":[{"type":"string"}],"items":{"type":"number"}}}}`:                                                                         `{"a":["s",1]}`,
		`{"type":"object","allOf":[{"patternProperties":{"^x":{}}},{"patternProperties":{"^a":{}},"additionalProperties":false}]}`:                                                   `{"a":1}`,
		`{"type":"object","oneOf":[{"properties":{"k":{"const":1},"x":{"type":"string"}},"required":["k"]},{"properties":{"k":{"const":2}}}]}`:                                       `{"k":2,"x":5}`,
		`{"type":"object","properties":{"a":{"oneOf":[{"minimum":3},{"type":"integer","maximum":2}]}}}`:                                                                              `{"a":1}`,
		`{"type":"object","properties":{"a":{"not":{"minimum":3}}}}`:                                                                                                                 `{"a":1}`,
		`{"type":"object","properties":{"a":{"contains":{"minimum":3},"maxContains":1}}}`:                                                                                            `{"a":[1,2,3]}`,
		`{"type":"object","properties":{"a":{"if":{"minimum":3},"then":{"type":"string"}}}}`:                                                                                         `{"a":1}`,
		`{"type":"object","properties":{"a":{"type":"integer"}},"allOf":[{"properties":{"b":{}}}],"unevaluatedProperties":false}`:                                                    `{"b":1}`,
		`{"type":"object","properties":{"a":{"enum":["x",null]},"b":{"type":["string","null"],"enum":["x",null]}}}`:                                                                  `{"a":null,"b":null}`,
		`{"type":"object","properties":{"a":{"enum":["x",1]},"b":{"const":null}}}`:                                                                                                   `{"a":1,"b":null}`,
		`{"type":"object","properties":{"a":{"type":["string","null"],"anyOf":[{"maxLength":2},{"type":"null"}]}}}`:                                                                  `{"a":null}`,
		`{"type":"object","properties":{"a":{"type":["object","array","null"],"properties":{"b":{"type":"string"}},"items":{"type":"integer"}}}}`:                                    `{"a":[1]}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"$ref":"#/definitions/A","type":"string"}},"definitions":{"A":{"type":"integer"}}}`: `{"a":1}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"items":[{"type":"string"}],"additionalItems":false}}}`:                             `{"a":["x"]}`,
	} {
		all := reduceAll(t, mcp.RawValue(full))
		if all == nil || !all.check(t, mcp.RawValue(value)) {
			t.Errorf("%s does not accept %s", full, value)
		}
	}
}

func TestReduceDoesNotChangeItsInput(t *testing.T) {
	t.Parallel()
	full := mcp.RawValue(`{"type":"object","allOf":[{"properties":{"a":{"oneOf":[{"type":"string"},{"const":1}]}}}],"$defs":{"x":{}}}`)
	before := slices.Clone(full)
	for _, p := range profiles {
		if _, _, err := Reduce(full, p); err != nil || !reflect.DeepEqual(full, before) {
			t.Errorf("%v, %s", err, full)
		}
	}
}

func FuzzReduceSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"const":null}]}},"required":["a"]}`), []byte(`{"a":null}`))
	f.Add([]byte(`{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/properties/b"},{"patternProperties":{"^x":false}}]}},"properties":{"b":{"not":{}}}}`), []byte(`{"x":1}`))
	f.Add([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"array","additionalItems":false}],"definitions":{"a":{"$ref":"#","minimum":1}}}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, full, value []byte) {
		for _, p := range profiles {
			if got, _, err := Reduce(full, p); err == nil && !compiles(got) && (p.Keywords != nil || compiles(full)) {
				t.Errorf("not valid: %s", got)
			}
		}
		if all := reduceAll(t, full); all != nil && wire.Valid(value, wire.Limits{}) == nil {
			all.check(t, value)
		}
	})
}

// Anthropic looks at the names of arguments, and no deeper.
func TestReduceNames(t *testing.T) {
	t.Parallel()
	full := mcp.RawValue(`{"type":"object","properties":{"ok.a-1":{"type":"string"},"a b":{"type":"object","properties":{"c d":{}}}},"required":["a b"],"additionalProperties":false}`)
	got, notes, err := Reduce(full, Anthropic)
	want := `{"description":"(additionalProperties: false; properties: a b {\"properties\":{\"c d\":{}},\"type\":\"object\"}; required: [\"a b\"])",` +
		`"properties":{"ok.a-1":{"type":"string"}},"type":"object"}`
	if err != nil || string(got) != want {
		t.Errorf("%v, got %s", err, got)
	}
	if len(notes) == 0 || !strings.Contains(strings.Join(notes, "\n"), `input field "a b" is left out: its name must be`) {
		t.Errorf("notes %q", notes)
	}
	all := reduceAll(t, full)
	if all == nil || !all.check(t, mcp.RawValue(`{"a b":{"c d":1}}`)) {
		t.Error("the full schema accepts it")
	}
	if got, notes, err := Reduce(mcp.RawValue(`{"type":"object","properties":{"a":{"properties":{"c d":{"oneOf":[{}]}}}}}`), Anthropic); err != nil || len(notes) > 0 || !strings.Contains(string(got), `"c d":{"oneOf"`) {
		t.Errorf("%v, notes %q, got %s", err, notes, got)
	}
}

func ExampleReduce() {
	full := `{"type":"object","properties":{"size":{"type":"integer","multipleOf":8}}}`
	reduced, notes, err := Reduce(mcp.RawValue(full), Gemini)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(reduced))
	fmt.Println(notes)
	// Output:
	// {"properties":{"size":{"description":"(multipleOf: 8)","type":"integer"}},"type":"object"}
	// [input field "size": multipleOf is left out]
}
