package schemadiff_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/contract/schemadiff"
)

var effects = map[schemadiff.Effect]string{
	schemadiff.Narrows: "narrows", schemadiff.Widens: "widens", schemadiff.Differs: "differs", schemadiff.MemberAdded: "added",
	schemadiff.MemberAddedClosed: "added to closed", schemadiff.MemberRequired: "required", schemadiff.MemberRequiredClosed: "required in closed",
	schemadiff.MemberRemoved: "removed", schemadiff.MemberLost: "lost", schemadiff.MemberRenamed: "renamed", schemadiff.Described: "described",
	schemadiff.Titled: "titled", schemadiff.Defaulted: "defaulted", schemadiff.Carried: "carried", schemadiff.Annotated: "annotated",
}

// told lists changes as "path effect".
func told(t *testing.T, before, after string) string {
	t.Helper()
	changes, err := schemadiff.Compare([]byte(before), []byte(after))
	if err != nil {
		t.Fatalf("%s\n%s: %v", before, after, err)
	}
	var list []string
	for _, c := range changes {
		list = append(list, strings.Join(c.Path, "/")+" "+effects[c.Effect])
	}
	return strings.Join(list, ", ")
}

// Schemas that mean the same have no difference, in either direction.
func TestEquivalent(t *testing.T) {
	for _, test := range [][2]string{
		{`{"type":"string"}`, `{"type":["string"]}`},
		{`{}`, `true`},
		{`{"enum":["a","b"]}`, `{"type":"string","enum":["b","a"]}`},
		{`{"const":1}`, `{"enum":[1.0]}`},
		{`{"minimum":1,"type":"integer"}`, `{"exclusiveMinimum":0,"type":"integer"}`},
		{`{"maximum":1.5,"type":"integer"}`, `{"maximum":1,"type":"integer"}`},
		{`{"minimum":-1.5,"type":"integer"}`, `{"minimum":-1,"type":"integer"}`},
		{`{"type":"number","multipleOf":1}`, `{"type":"integer"}`},
		{`{"type":["string","null"]}`, `{"anyOf":[{"type":"null"},{"type":"string"}]}`},
		{`{"type":["string","null"],"minLength":2}`, `{"anyOf":[{"type":"string","minLength":2},{"type":"null"}]}`},
		{`{"anyOf":[{"type":"string"},{"type":"number"}]}`, `{"oneOf":[{"type":"number"},{"type":"string"}]}`},
		{`{"enum":["a","b"]}`, `{"oneOf":[{"const":"a"},{"const":"b"}]}`},
		{`{"type":"boolean"}`, `{"enum":[true,false]}`},
		{`{"type":"string"}`, `{"allOf":[{"type":"string"}]}`},
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"allOf":[{"type":"object"},{"properties":{"a":{"type":"string"}}}]}`},
		{`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string","minLength":1}}}`, `{"type":"object","properties":{"a":{"minLength":1,"type":"string"}}}`},
		{`{"properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`, `{"properties":{"a":{"$ref":"#/definitions/Y"}},"definitions":{"Y":{"type":"string"}}}`},
		{`{"properties":{"a":{"$ref":"#x"}},"$defs":{"x":{"$anchor":"x","type":"string"}}}`, `{"properties":{"a":{"type":"string"}}}`},
		{`{"type":"object","properties":{"a":{},"b":{}},"required":["a","b"]}`, `{"required":["b","a"],"properties":{"b":true,"a":true},"type":"object"}`},
		{`{"type":"array","items":[{"type":"string"}],"additionalItems":false,"$schema":"http://json-schema.org/draft-07/schema#"}`, `{"type":"array","prefixItems":[{"type":"string"}],"items":false}`},
		{`{"type":"object","unevaluatedProperties":false}`, `{"type":"object","additionalProperties":false}`},
		{`{"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}`, `{"type":"object","properties":{"next":{"$ref":"#"}}}`},
		{`{"not":{"type":"string","title":"x"}}`, `{"not":{"type":["string"]}}`},
		{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false,"anyOf":[{"required":["a"]}]}`, `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false,"required":["a"]}`},
		{`{"oneOf":[{"type":"object","properties":{"k":{"const":"a"}},"required":["k"]},{"type":"object","properties":{"k":{"const":"b"}},"required":["k"]}]}`, `{"anyOf":[{"type":"object","required":["k"],"properties":{"k":{"const":"b"}}},{"type":"object","properties":{"k":{"enum":["a"]}},"required":["k"]}]}`},
		{`{"$comment":"a"}`, `{"$comment":"b","$id":"x"}`},
		{`{"multipleOf":0.10,"type":"number"}`, `{"multipleOf":1e-1,"type":"number"}`},
		{`{"anyOf":[{"type":"array","items":{"$ref":"#"}},{"type":"array","items":{"type":"null"}}]}`, `{"anyOf":[{"type":"array","items":{"type":"null"}},{"type":"array","items":{"$ref":"#"}}]}`},
	} {
		for _, pair := range [][2]string{test, {test[1], test[0]}} {
			if got := told(t, pair[0], pair[1]); got != "" {
				t.Errorf("%s\n%s\nhave differences: %s", pair[0], pair[1], got)
			}
		}
	}
}

func TestChanges(t *testing.T) {
	for _, test := range []struct{ before, after, want string }{
		{`{"enum":["a","b"]}`, `{"enum":["a"]}`, "enum narrows"},
		{`{"enum":["a"]}`, `{"enum":["a","b"]}`, "enum widens"},
		{`{"enum":["a"]}`, `{"enum":["b"]}`, "enum narrows, enum widens"},
		{`{"type":"string"}`, `{"type":"string","enum":["b"]}`, "enum narrows"},
		{`{"type":"string"}`, `{"type":"number"}`, "type differs"},
		{`{"type":"number"}`, `{"type":"integer"}`, "type narrows"},
		{`{"type":"integer"}`, `{"type":"number"}`, "type widens"},
		{`{"type":"string"}`, `{"type":["string","null"]}`, "type widens"},
		{`{"type":"string","maxLength":5}`, `{"type":"string","maxLength":4}`, "maxLength narrows"},
		{`{"type":"string","maxLength":5}`, `{"type":"string"}`, "maxLength widens"},
		{`{"type":"string"}`, `{"type":"string","minLength":4}`, "minLength narrows"},
		{`{"type":"string","pattern":"a"}`, `{"type":"string","pattern":"b"}`, "pattern differs"},
		{`{"type":"string"}`, `{"type":"string","format":"uri"}`, "format narrows"},
		{`{"type":"number","minimum":1}`, `{"type":"number","exclusiveMinimum":1}`, "minimum narrows"},
		{`{"type":"number","maximum":1}`, `{"type":"number","maximum":2}`, "maximum widens"},
		{`{"type":"number","multipleOf":2}`, `{"type":"number","multipleOf":4}`, "multipleOf narrows"},
		{`{"type":"number","multipleOf":2}`, `{"type":"number","multipleOf":3}`, "multipleOf differs"},
		{`{"type":"object"}`, `{"type":"object","additionalProperties":false}`, "additionalProperties narrows"},
		{`{"type":"object","additionalProperties":{"type":"string"}}`, `{"type":"object","additionalProperties":{"type":["string","null"]}}`, "additionalProperties/type widens"},
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"type":"object"}`, "properties/a removed"},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{"type":"object"}`, "properties/a lost"},
		{`{"type":"object"}`, `{"type":"object","properties":{"a":{"type":"string"}}}`, "properties/a added"},
		{`{"type":"object","additionalProperties":false}`, `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, "properties/a added to closed"},
		{`{"type":"object"}`, `{"type":"object","required":["a"]}`, "properties/a required"},
		{`{"type":"object","properties":{"a":{}}}`, `{"type":"object","properties":{"a":{}},"required":["a"]}`, "properties/a/required narrows"},
		{`{"type":"object","properties":{"a":{"minimum":3}}}`, `{"type":"object","properties":{"b":{"minimum":3}}}`, "properties/a renamed"},
		{`{"type":"array","items":{"type":"string"}}`, `{"type":"array","items":{"type":"string","description":"x"}}`, "items/description described"},
		{`{"type":"array"}`, `{"type":"array","uniqueItems":true,"maxItems":3}`, "maxItems narrows, uniqueItems narrows"},
		{`{"type":"string","default":"a"}`, `{"type":"string","default":"b"}`, "default defaulted"},
		{`{"type":"string","title":"a"}`, `{"type":"string","x-mcp-header":"b","x-own":1}`, "title titled, x-mcp-header carried, x-own annotated"},
		{`{"not":{"const":1}}`, `{}`, "not widens"},
		{`{"not":{"const":1}}`, `{"not":{"const":2}}`, "not differs"},
		{`{"anyOf":[{"type":"object","required":["a"]},{"type":"object","required":["b"]}]}`, `{"anyOf":[{"type":"object","required":["a"]}]}`, "anyOf narrows"},
		{`{"anyOf":[{"type":"object","required":["a"]},{"type":"object","required":["b"]}]}`, `{"oneOf":[{"type":"object","required":["a"]},{"type":"object","required":["b"]}]}`, "anyOf narrows"},
		{`{"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"},"v":{"type":"string"}}}},"$ref":"#/$defs/n"}`, `{"type":"object","properties":{"next":{"$ref":"#"},"v":{"type":"number"}}}`, "properties/v/type differs"},
		{`{"oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}`, `{"oneOf":[{"const":"a","title":"A"},{"const":"b","title":"C"}]}`, `title of "b" titled`},
		{`{"$ref":"https://example.com/a"}`, `{"$ref":"https://example.com/b"}`, "$ref differs"},
		{`{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{}`, "if widens, then widens"},
		{`{"type":"object"}`, `false`, "type narrows"},
	} {
		if got := told(t, test.before, test.after); got != test.want {
			t.Errorf("%s\n%s\ngot  %s\nwant %s", test.before, test.after, got, test.want)
		}
	}
}

// Schemas that take too much work are an error, and soon.
func TestTooComplex(t *testing.T) {
	deep := strings.Repeat(`{"items":`, 1000) + "{}" + strings.Repeat("}", 1000)
	var defs []string
	for i := range 40 {
		defs = append(defs, fmt.Sprintf(`"d%d":{"not":{"allOf":[{"not":{"$ref":"#/$defs/d%d"}},{"not":{"$ref":"#/$defs/d%d"}}]}}`, i, i+1, i+1))
	}
	wide := `{"$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `,"d40":{"type":"string"}}}`
	for _, s := range []string{deep, wide} {
		if _, err := schemadiff.Compare([]byte(s), []byte(s)); err != nil && !errors.Is(err, schemadiff.ErrTooComplex) {
			t.Errorf("%.60s: %v", s, err)
		}
	}
	if _, err := schemadiff.Compare([]byte(`{`), []byte(`{}`)); !errors.Is(err, schemadiff.ErrNoJSON) {
		t.Errorf("got %v", err)
	}
}

// Nothing that a stranger writes makes it fail, and nothing differs from itself.
func FuzzCompare(f *testing.F) {
	f.Add(`{"type":["string","null"],"enum":["a",null]}`)
	f.Add(`{"$ref":"#"}`)
	f.Add(`{"oneOf":[{"const":1},{"$ref":"#/oneOf/0"}],"not":{"$ref":"#"}}`)
	f.Add(`{"properties":{"a":{"$ref":"#/properties/b"},"b":{"$ref":"#/properties/a"}},"patternProperties":{"(":{}},"required":["c",1]}`)
	f.Add(`{"items":[{"minimum":1e999999}],"multipleOf":0,"maxLength":-1}`)
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := schemadiff.Canonical([]byte(s)); err != nil {
			return
		}
		changes, err := schemadiff.Compare([]byte(s), []byte(s))
		if err != nil && !errors.Is(err, schemadiff.ErrTooComplex) {
			t.Fatal(err)
		}
		if len(changes) > 0 {
			t.Fatalf("%s differs from itself: %v", s, changes)
		}
		if _, err := schemadiff.Compare([]byte(s), []byte(`{"type":"object"}`)); err != nil && !errors.Is(err, schemadiff.ErrTooComplex) {
			t.Fatal(err)
		}
	})
}
