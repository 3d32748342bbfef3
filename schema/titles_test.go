package schema_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/schema"
)

type paint struct {
	Colour string   `json:"colour" enum:"r,g" titles:"Red, Dark green" default:"g"`
	Extras []string `json:"extras,omitzero" enum:"m,s" titles:"Matt,Shiny"`
}

// Ruling 20: choices with titles, one and several, as forms have them. The
// schema means what the checker does.
func TestTitles(t *testing.T) {
	c, err := schema.Elicitation(reflect.TypeFor[paint]())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","properties":{` +
		`"colour":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Dark green"}],"default":"g"},` +
		`"extras":{"type":"array","items":{"type":"string","anyOf":[{"const":"m","title":"Matt"},{"const":"s","title":"Shiny"}]}}}}`
	if diff := cmp.Diff(want, string(c.JSON())); diff != "" {
		t.Error(diff)
	}
	foreign, err := schema.Compile(c.JSON(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for value, good := range map[string]bool{
		`{"colour":"r","extras":["s","m"]}`: true,
		`{}`:                                true,
		`{"colour":"Red"}`:                  false,
		`{"extras":["x"]}`:                  false,
	} {
		if err := c.Check(wire.RawValue(value)); (err == nil) != good {
			t.Errorf("%s: %v", value, err)
		}
		if err := foreign.Check(wire.RawValue(value)); (err == nil) != good {
			t.Errorf("%s, by the schema: %v", value, err)
		}
	}
}

func TestTitlesMistaken(t *testing.T) {
	for _, test := range []struct {
		typ  reflect.Type
		want string
	}{
		{reflect.TypeFor[struct {
			A string `titles:"x"`
		}](), "enum"},
		{reflect.TypeFor[struct {
			A string `enum:"a,b" titles:"x"`
		}](), "1 titles for 2 values"},
		{reflect.TypeFor[struct {
			A string `enum:"a,b" titles:"x,"`
		}](), "empty title"},
		{reflect.TypeFor[struct {
			A int `enum:"1,2" titles:"x,y"`
		}](), "strings"},
	} {
		if _, err := schema.For(test.typ, nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want an error with %q", test.typ, err, test.want)
		}
	}
}
