package mcp_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// Proves: FLOW-ELICIT (a form keeps the order of its fields). Ruling 20.
func TestElicitSchemaKeepsOrder(t *testing.T) {
	const raw = `{"type":"object","properties":{"z":{"type":"string","format":"email","minLength":1},` +
		`"a":{"type":"integer","minimum":0,"maximum":2.5},"m":{"type":"boolean","default":false},` +
		`"e":{"type":"string","enum":["x","y"]},"l":{"type":"string","enum":["x","y"],"enumNames":["X"]},` +
		`"t":{"type":"string","oneOf":[{"const":"x","title":"X"}]},` +
		`"u":{"type":"array","items":{"type":"string","enum":["x"]},"minItems":1},` +
		`"v":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]},"default":["x"]},` +
		`"n":{"type":"number"}},"required":["z"]}`
	var schema mcp.ElicitSchema
	if err := wire.DecodeParams([]byte(raw), &schema); err != nil {
		t.Fatal(err)
	}
	if got := marshal(t, &schema); got != raw {
		t.Errorf("\n got %s\nwant %s", got, raw)
	}
	x := mcp.EnumOption{Const: "x", Title: "X"}
	for name, want := range map[string]struct {
		kind    mcp.FieldKind
		titled  bool
		options []mcp.EnumOption
	}{
		"z": {kind: mcp.FieldString},
		"a": {kind: mcp.FieldInteger},
		"n": {kind: mcp.FieldNumber},
		"m": {kind: mcp.FieldBoolean},
		"e": {mcp.FieldChoice, false, []mcp.EnumOption{{Const: "x", Title: "x"}, {Const: "y", Title: "y"}}},
		"l": {mcp.FieldChoice, true, []mcp.EnumOption{x, {Const: "y", Title: "y"}}},
		"t": {mcp.FieldChoice, true, []mcp.EnumOption{x}},
		"u": {mcp.FieldChoices, false, []mcp.EnumOption{{Const: "x", Title: "x"}}},
		"v": {mcp.FieldChoices, true, []mcp.EnumOption{x}},
	} {
		field, ok := schema.Properties.Lookup(name)
		if !ok {
			t.Errorf("no field %q", name)
			continue
		}
		if field.Kind() != want.kind || field.Titled() != want.titled {
			t.Errorf("%s: kind %d, titled %t", name, field.Kind(), field.Titled())
		}
		if diff := cmp.Diff(want.options, field.Options()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, ok := schema.Properties.Lookup("none"); ok {
		t.Error("found a field that is not there")
	}
}

func TestElicitSchemaThatIsWrong(t *testing.T) {
	for raw, want := range map[string]string{
		`{"type":"array","properties":{}}`:                  "object",
		`{"type":"object","properties":[]}`:                 "object",
		`{"type":"object","properties":{"a":{"Type":"x"}}}`: "Type",
		`{"type":"object","properties":{"a":1,"a":2}}`:      "a",
	} {
		var schema mcp.ElicitSchema
		err := wire.DecodeParams([]byte(raw), &schema)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", raw, err, want)
		}
	}
	twice := mcp.Properties{{Name: "a"}, {Name: "a"}}
	if out, err := wire.Marshal(twice); err == nil {
		t.Errorf("two fields of one name became %s", out)
	}
	unknown := mcp.PrimitiveSchema{Type: "object"}
	if unknown.Kind() != mcp.FieldUnknown || unknown.Options() != nil {
		t.Errorf("kind of an object is %d", unknown.Kind())
	}
}

func FuzzElicitSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"string","enum":["x"]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var first, second mcp.ElicitSchema
		if wire.Valid(data, wire.Limits{}) != nil || wire.DecodeParams(data, &first) != nil {
			return
		}
		for i := range first.Properties {
			_ = first.Properties[i].Schema.Options()
		}
		out := marshal(t, &first)
		if err := wire.DecodeParams([]byte(out), &second); err != nil {
			t.Fatalf("%s was decoded and encoded to %s: %v", data, out, err)
		}
		if again := marshal(t, &second); again != out {
			t.Fatalf("%s, then %s", out, again)
		}
	})
}

func TestFieldKindString(t *testing.T) {
	for kind, want := range map[mcp.FieldKind]string{
		mcp.FieldUnknown: "unknown", mcp.FieldString: "string", mcp.FieldNumber: "number", mcp.FieldInteger: "integer",
		mcp.FieldBoolean: "boolean", mcp.FieldChoice: "choice", mcp.FieldChoices: "choices", 99: "unknown",
	} {
		if got := kind.String(); got != want {
			t.Errorf("kind %d is %q, want %q", uint8(kind), got, want)
		}
	}
}
