package schema_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/schema"
)

type query struct {
	Region string `json:"region" header:"Region"`
	Place  struct {
		Shard int  `json:"shard,omitzero" header:"X-Shard"`
		Live  bool `json:"live,omitzero" header:"Live"`
	} `json:"place,omitzero"`
	Query string `json:"query"`
}

// Ruling 15
func TestHeaders(t *testing.T) {
	inferred := of[query](t, nil)
	foreign, err := schema.Compile(inferred.JSON(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []schema.HeaderBinding{
		{Name: "Region", Path: []string{"region"}, Type: "string"},
		{Name: "X-Shard", Path: []string{"place", "shard"}, Type: "integer"},
		{Name: "Live", Path: []string{"place", "live"}, Type: "boolean"},
	}
	for _, c := range []*schema.Compiled{inferred, foreign} {
		if diff := cmp.Diff(want, c.Headers()); diff != "" {
			t.Error(diff)
		}
	}
	if !strings.Contains(string(inferred.JSON()), `"x-mcp-header":"X-Shard"`) {
		t.Errorf("%s", inferred.JSON())
	}
	ignored, err := schema.Compile(inferred.JSON(), &schema.Limits{IgnoreHeaders: true})
	if err != nil || ignored.Headers() != nil {
		t.Errorf("%v, %v", ignored.Headers(), err)
	}
}

// Ruling 15
func TestHeaderValue(t *testing.T) {
	headers := of[query](t, nil).Headers()
	for _, c := range []struct {
		raw  string
		want [3]string // "-": absent, "!": error
	}{
		{`{"region":"us-west1","place":{"shard":-7,"live":false}}`, [3]string{"us-west1", "-7", "false"}},
		{`{"region":"","place":{}}`, [3]string{"", "-", "-"}},
		{`{"region":null,"place":{"shard":null,"live":null}}`, [3]string{"-", "-", "-"}},
		{`{}`, [3]string{"-", "-", "-"}},
		{``, [3]string{"-", "-", "-"}},
		{`{"x":{"region":"no"},"\u0072egion":"caf\u00e9\n","place":[1]}`, [3]string{"café\n", "-", "-"}},
		{`{"region":1,"place":{"shard":1.0,"live":true}}`, [3]string{"!", "1", "true"}},
		{`{"region":"a","place":{"shard":9007199254740991}}`, [3]string{"a", "9007199254740991", "-"}},
		{`{"region":"a","place":{"shard":9007199254740992}}`, [3]string{"a", "!", "-"}},
		{`{"region":"a","place":{"shard":-9007199254740992}}`, [3]string{"a", "!", "-"}},
		{`{"region":"a","place":{"shard":1.5,"live":"true"}}`, [3]string{"a", "!", "!"}},
		{`{"region":"a","place":{"shard":1e999999999}}`, [3]string{"a", "!", "-"}},
	} {
		for i := range headers {
			got, present, err := headers[i].Value([]byte(c.raw))
			switch {
			case err != nil:
				got = "!"
			case !present:
				got = "-"
			}
			if got != c.want[i] {
				t.Errorf("%s: %s is %q, want %q", c.raw, headers[i].Name, got, c.want[i])
			}
		}
	}
}

// Ruling 15
func TestHeaderEqual(t *testing.T) {
	headers := of[query](t, nil).Headers()
	for _, c := range []struct {
		binding       int
		header, value string
		want          bool
	}{
		{0, "a", "a", true},
		{0, "A", "a", false},
		{0, "1.0", "1", false},
		{1, "42", "42", true},
		{1, "42.0", "42", true},
		{1, "4.2e1", "42", true},
		{1, "-0", "0", true},
		{1, "042", "42", false},
		{1, "0x2a", "42", false},
		{1, "", "0", false},
		{1, "+42", "42", false},
		{1, "42 ", "42", false},
		{2, "true", "true", true},
		{2, "True", "true", false},
	} {
		if got := headers[c.binding].Equal(c.header, c.value); got != c.want {
			t.Errorf("%s: %q and %q: %v", headers[c.binding].Name, c.header, c.value, got)
		}
	}
}

// Ruling 15
func TestHeaderRules(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[struct {
			F float64 `header:"F"`
		}](),
		reflect.TypeFor[struct {
			L []string `header:"L"`
		}](),
		reflect.TypeFor[struct {
			In struct{} `header:"In"`
		}](),
		reflect.TypeFor[struct {
			A any `header:"A"`
		}](),
		reflect.TypeFor[struct {
			A string `header:"x"`
			B string `header:"X"`
		}](),
		reflect.TypeFor[struct {
			A string `header:""`
		}](),
		reflect.TypeFor[struct {
			A string `header:"a b"`
		}](),
		reflect.TypeFor[struct {
			A string "header:\"a\\r\\nb\""
		}](),
		reflect.TypeFor[struct {
			L []struct {
				A string `header:"A"`
			}
		}](),
		reflect.TypeFor[struct {
			M map[string]struct {
				A string `header:"A"`
			}
		}](),
	} {
		if _, err := schema.For(typ, nil); !errors.Is(err, schema.ErrHeader) {
			t.Errorf("%v: %v", typ, err)
		}
	}
	for _, raw := range []string{
		`{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`,
		`{"properties":{"a":{"type":"array","x-mcp-header":"A"}}}`,
		`{"properties":{"a":{"type":["string","null"],"x-mcp-header":"A"}}}`,
		`{"properties":{"a":{"x-mcp-header":"A"}}}`,
		`{"properties":{"a":{"type":"string","x-mcp-header":5}}}`,
		`{"properties":{"a":{"type":"string","x-mcp-header":""}}}`,
		`{"properties":{"a":{"type":"string","x-mcp-header":"a:b"}}}`,
		`{"properties":{"a":{"type":"string","x-mcp-header":"é"}}}`,
		`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"properties":{"c":{"type":"string","x-mcp-header":"a"}}}}}`,
		`{"type":"string","x-mcp-header":"A"}`,
		`{"properties":{"a":{"items":{"type":"string","x-mcp-header":"A"}}}}`,
		`{"properties":{"a":{"prefixItems":[{"type":"string","x-mcp-header":"A"}]}}}`,
		`{"allOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`,
		`{"if":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`,
		`{"$defs":{"d":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}}`,
		`{"patternProperties":{"a":{"type":"string","x-mcp-header":"A"}}}`,
		`{"additionalProperties":{"type":"string","x-mcp-header":"A"}}`,
	} {
		if _, err := schema.Compile([]byte(raw), nil); !errors.Is(err, schema.ErrHeader) {
			t.Errorf("%s: %v", raw, err)
		}
	}
	// Not annotations: a member of that name, and data.
	for _, raw := range []string{
		`{"properties":{"x-mcp-header":{"type":"string"}}}`,
		`{"default":{"x-mcp-header":"a b"},"enum":[{"x-mcp-header":"a b"}]}`,
	} {
		if c, err := schema.Compile([]byte(raw), nil); err != nil || len(c.Headers()) > 0 {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
