package schema_test

import (
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/schema"
)

// shape is a union: the word round, or a number of corners.
type shape struct {
	round   bool
	corners int
}

const shapeSchema = `{"oneOf":[{"const":"round"},{"type":"integer","minimum":3}]}`

func (*shape) JSONSchema() string { return shapeSchema }

func (s shape) MarshalJSON() ([]byte, error) {
	if s.round {
		return []byte(`"round"`), nil
	}
	return wire.Marshal(s.corners)
}

func (s *shape) UnmarshalJSON(raw []byte) error {
	if string(raw) == `"round"` {
		s.round = true
		return nil
	}
	return wire.Decode(raw, &s.corners)
}

// colour is an enum that says so itself, with a value that encodes as a schema.
type colour string

func (colour) JSONSchema() map[string]any {
	return map[string]any{"type": "string", "enum": []string{"red", "green"}}
}

type (
	panicking  struct{}
	withParams struct{}
	notASchema struct{}
	referring  struct{}
)

func (panicking) JSONSchema() []byte        { panic("boom") }
func (withParams) JSONSchema(string) string { return "{}" }
func (notASchema) JSONSchema() []byte       { return []byte(`{"type":7}`) }
func (referring) JSONSchema() []byte {
	return []byte(`{"anyOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{}}}`)
}

// A type that says its schema itself is described, checked and decoded by it,
// wherever it stands.
func TestTypesWithSchemas(t *testing.T) {
	type in struct {
		Shape  shape            `json:"shape" desc:"What it looks like."`
		Colour colour           `json:"colour" default:"red"`
		More   []*shape         `json:"more,omitempty"`
		ByName map[string]shape `json:"byName,omitempty"`
	}
	c := of[in](t, nil)
	want := `{"type":"object","properties":{"shape":{"description":"What it looks like.","allOf":[` + shapeSchema + `]},` +
		`"colour":{"allOf":[{"enum":["red","green"],"type":"string"}],"default":"red"},` +
		`"more":{"type":"array","items":` + shapeSchema + `},"byName":{"type":"object","additionalProperties":` + shapeSchema + `}},` +
		`"required":["shape"],"additionalProperties":false}`
	if diff := cmp.Diff(want, string(c.JSON())); diff != "" {
		t.Error(diff)
	}
	if _, err := schema.Compile(c.JSON(), nil); err != nil {
		t.Error(err)
	}
	var got in
	if err := c.Decode([]byte(`{"shape":4,"more":["round"],"byName":{"a":3}}`), &got); err != nil {
		t.Fatal(err)
	}
	if got.Shape.corners != 4 || got.Colour != "red" || !got.More[0].round || got.ByName["a"].corners != 3 {
		t.Errorf("got %+v", got)
	}
	for raw, want := range map[string]string{
		`{"shape":2}`:                                        "/shape",
		`{"shape":"square"}`:                                 "/shape",
		`{"shape":"round","colour":"blue"}`:                  "/colour",
		`{"shape":"round","more":[5,1]}`:                     "/more/1",
		`{"shape":"round","byName":{"a~":1}}`:                "/byName/a~0",
		`{"shape":"round","more":[1,1,1,1,1,1,1,1,1,1,1,1]}`: "and more",
	} {
		err := c.Check([]byte(raw))
		var e *schema.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) || len(e.Problems) > schema.MaxProblems {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
	if typ := of[colour](t, nil).Type(); typ != "string" {
		t.Errorf("the type of the root is %q", typ)
	}
}

// Types of others get their schemas by an option, those included that have no
// fit form themselves.
func TestOptionTypes(t *testing.T) {
	type in struct {
		At   *url.URL `json:"at"`
		Tree node     `json:"tree,omitzero"`
	}
	o := &schema.Options{Types: map[reflect.Type]wire.RawValue{
		reflect.TypeFor[url.URL](): wire.RawValue(`{"type":"object","title":"parts"}`),
		reflect.TypeFor[node]():    wire.RawValue(`{"type":"object","required":["name"]}`),
	}}
	want := `{"type":"object","properties":{"at":{"type":"object","title":"parts"},"tree":{"type":"object","required":["name"]}},"additionalProperties":false}`
	if diff := cmp.Diff(want, string(of[in](t, o).JSON())); diff != "" {
		t.Error(diff)
	}
	o.Types[reflect.TypeFor[node]()] = wire.RawValue(`{`)
	if _, err := schema.Of[in](o); !errors.Is(err, schema.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

// Tags that other libraries read in the same sense are read, what checks things
// elsewhere is ignored.
func TestTagsOfOthers(t *testing.T) {
	type in struct {
		A string `json:"a" jsonschema:"the city, required by law" validate:"min=3" binding:"required" mcp:"x" required:"false"`
		B int    `json:"b" description:"how many" minimum:"1" maximum:"9"`
		C string `json:"c" jsonschema_description:"a text" minLength:"1" maxLength:"5"`
		D []int  `json:"d" desc:"ours" description:"theirs" jsonschema:"theirs" minItems:"1" maxItems:"2"`
	}
	want := `{"type":"object","properties":{"a":{"type":"string","description":"the city, required by law"},` +
		`"b":{"type":"integer","description":"how many","minimum":1,"maximum":9},` +
		`"c":{"type":"string","description":"a text","minLength":1,"maxLength":5},` +
		`"d":{"type":"array","description":"ours","minItems":1,"maxItems":2,"items":{"type":"integer"}}},` +
		`"required":["a","b","c","d"],"additionalProperties":false}`
	if diff := cmp.Diff(want, string(of[in](t, nil).JSON())); diff != "" {
		t.Error(diff)
	}
}

// Numbers in strings are described, checked, decoded and encoded as such.
func TestNumbersInStrings(t *testing.T) {
	type amounts struct {
		I int8    `json:"i,string" desc:"small"`
		U uint    `json:"u,string"`
		F float64 `json:"f,string"`
		P *int64  `json:"p,string,omitzero"`
	}
	for _, o := range []*schema.Options{nil, {Output: true}} {
		c := of[amounts](t, o)
		want := `{"type":"object","properties":{"i":{"type":"string","description":"small","pattern":"^-?(0|[1-9][0-9]*)$"},` +
			`"u":{"type":"string","pattern":"^(0|[1-9][0-9]*)$"},` +
			`"f":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?$"},` +
			`"p":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)$"}},"required":["i","u","f"],"additionalProperties":false}`
		if diff := cmp.Diff(want, string(c.JSON())); diff != "" {
			t.Error(diff)
		}
		give := amounts{I: -8, U: 7, F: 1.5, P: new(int64(1) << 60)}
		raw, err := wire.Marshal(give)
		if err != nil {
			t.Fatal(err)
		}
		var got amounts
		if err := c.Decode(raw, &got); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if diff := cmp.Diff(give, got); diff != "" {
			t.Error(diff)
		}
		for raw, want := range map[string]string{
			`{"i":1,"u":"1","f":"1"}`:       "/i: expected string, got number",
			`{"i":"300","u":"1","f":"1"}`:   "/i: expected an integer in a string",
			`{"i":"1","u":"-1","f":"1"}`:    "/u: expected an integer of 0 or more in a string",
			`{"i":"1","u":"1","f":"much"}`:  "/f: expected a number in a string",
			`{"i":" 1","u":"01","f":"NaN"}`: "/i: ",
		} {
			if err := c.Check([]byte(raw)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", raw, err, want)
			}
		}
	}
}

// An edited schema decides what is taken, and the type what it becomes.
func TestEdit(t *testing.T) {
	type in struct {
		Team string `json:"team"`
		N    int    `json:"n" default:"7"`
	}
	c, err := of[in](t, nil).Edit([]byte(`{"type":"object","properties":{"team":{"enum":["a","b"]},"n":{"type":"integer"},"note":{"type":"string"}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]in{
		`{"team":"a"}`:                       {"a", 7},
		`{"team":"b","n":2.0,"note":"more"}`: {"b", 2},
		`{}`:                                 {"", 7},
	} {
		var got in
		if err := c.Decode([]byte(raw), &got); err != nil || got != want {
			t.Errorf("%s becomes %+v, %v; want %+v", raw, got, err, want)
		}
	}
	var got in
	if err := c.Decode([]byte(`{"team":"c"}`), &got); err == nil || !strings.Contains(err.Error(), "/team") {
		t.Errorf("got %v", err)
	}
	for _, bad := range []string{`{"type":"array"}`, `{}`, `{"type":"object","properties":7}`} {
		if _, err := of[in](t, nil).Edit([]byte(bad), nil); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// A schema that nobody here has to understand takes every value.
func TestUnchecked(t *testing.T) {
	raw := []byte(`{"$schema":"urn:own","type":"object","properties":{"a":{"type":"sorcery","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"B"}},"$ref":"https://example.com/x"}`)
	if _, err := schema.Compile(raw, nil); err == nil {
		t.Error("it is taken with checks too")
	}
	if _, err := schema.Compile(raw, &schema.Limits{Unchecked: true}); !errors.Is(err, schema.ErrHeader) {
		t.Errorf("a header on what is no string: %v", err)
	}
	c, err := schema.Compile(raw, &schema.Limits{Unchecked: true, IgnoreHeaders: true})
	if err != nil {
		t.Fatal(err)
	}
	if c.Type() != "object" || string(c.JSON()) != string(raw) {
		t.Errorf("got %q %s", c.Type(), c.JSON())
	}
	for _, value := range []string{`{}`, `{"a":[1,{"b":null}]}`, ``} {
		if err := c.Check([]byte(value)); err != nil {
			t.Errorf("%s: %v", value, err)
		}
	}
}

type (
	address   struct{ City string }
	addressed struct {
		address
		Name string
	}
	pointing struct {
		Name string
		*place
	}
	place   struct{ City string }
	wrapped struct{ address }
	both    struct {
		shape
		Name string
	}
	ownMethod struct {
		address
		Name string
	}
	named struct {
		Address address `json:"address"`
		Name    string  `json:"name"`
	}
)

const addressSchema = `{"type":"object","properties":{"City":{"type":"string","minLength":1}},"required":["City"]}`

func (address) JSONSchema() string   { return addressSchema }
func (*place) JSONSchema() string    { return addressSchema }
func (ownMethod) JSONSchema() string { return `{"type":"object","properties":{"City":{},"Name":{}}}` }

// A struct does not get its schema from what it embeds: its other fields would be
// hidden. It does where it has nothing else, or the same JSON form.
func TestPromotedSchemas(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[addressed](), reflect.TypeFor[pointing]()} {
		if _, err := schema.For(typ, nil); err == nil || !strings.Contains(err.Error(), "is that of the embedded") {
			t.Errorf("%v: %v", typ, err)
		}
	}
	for typ, want := range map[reflect.Type]string{
		reflect.TypeFor[wrapped]():   addressSchema,
		reflect.TypeFor[both]():      shapeSchema,
		reflect.TypeFor[ownMethod](): ownMethod{}.JSONSchema(),
		reflect.TypeFor[named]():     `{"type":"object","properties":{"address":` + addressSchema + `,"name":{"type":"string"}},"required":["address","name"],"additionalProperties":false}`,
	} {
		if c, err := schema.For(typ, nil); err != nil || string(c.JSON()) != want {
			t.Errorf("%v: %v, %s", typ, err, c.JSON())
		}
	}
}

// Members may be called what keywords are called; keywords inside of them are
// found.
func TestMembersNamedLikeKeywords(t *testing.T) {
	type value struct{ V any }
	at := func(text string) error {
		_, err := schema.Of[value](&schema.Options{Types: map[reflect.Type]wire.RawValue{reflect.TypeFor[any](): []byte(text)}})
		return err
	}
	if err := at(`{"type":"object","properties":{"$id":{"type":"string"},"$ref":{"type":"string"},"enum":{"type":"string"}}}`); err != nil {
		t.Error(err)
	}
	for _, text := range []string{
		`{"properties":{"default":{"$ref":"#/$defs/a"}},"$defs":{"a":{}}}`,
		`{"patternProperties":{"enum":{"items":{"$ref":"#/$defs/a"}}},"$defs":{"a":{}}}`,
		`{"$defs":{"const":{"$anchor":"a"}}}`,
	} {
		if err := at(text); err == nil || !strings.Contains(err.Error(), "does not work inside another schema") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A schema for a pointer type would never be used.
func TestSchemaForPointer(t *testing.T) {
	for _, typ := range []reflect.Type{nil, reflect.TypeFor[*colour]()} {
		_, err := schema.Of[struct{ C *colour }](&schema.Options{Types: map[reflect.Type]wire.RawValue{typ: []byte(`{"type":"string"}`)}})
		if err == nil || !strings.Contains(err.Error(), "the type that is pointed to") {
			t.Errorf("%v: %v", typ, err)
		}
	}
}
