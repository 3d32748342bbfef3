package schema

import (
	"reflect"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
)

type flat struct {
	Text  string `json:"text,omitzero"`
	Other string `json:"other,omitzero" enum:"a,b"`
	N     int    `json:"n,omitzero"`
	Small int8   `json:"small,omitzero"`
	On    bool   `json:"on,omitzero"`
}

type named string

func TestIsFlat(t *testing.T) {
	type inner struct {
		X string `json:"x"`
	}
	for want, types := range map[bool][]reflect.Type{
		true: {reflect.TypeFor[flat](), reflect.TypeFor[struct{}](), reflect.TypeFor[inner]()},
		false: {
			reflect.TypeFor[struct {
				X named `json:"x"`
			}](),
			reflect.TypeFor[struct {
				X *string `json:"x"`
			}](),
			reflect.TypeFor[struct{ inner }](),
			reflect.TypeFor[struct {
				X inner `json:"x"`
			}](),
			reflect.TypeFor[struct {
				X float64 `json:"x"`
			}](),
			reflect.TypeFor[struct {
				X string `json:"x" default:"a"`
			}](),
			reflect.TypeFor[map[string]string](), reflect.TypeFor[string](),
		},
	} {
		for _, typ := range types {
			c, err := For(typ, nil)
			if err != nil {
				t.Fatalf("%v: %v", typ, err)
			}
			if c.flat != want {
				t.Errorf("%v: flat is %t, want %t", typ, c.flat, want)
			}
		}
	}
}

// both decodes raw by the short way and by the codec alone, and fails if they
// differ.
func both(t *testing.T, c *Compiled, raw wire.RawValue) {
	t.Helper()
	var short, long flat
	err := c.Decode(raw, &short)
	slow := *c
	slow.flat = false
	wantErr := slow.Decode(raw, &long)
	if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() || short != long {
		t.Errorf("%s: got %+v, %v, want %+v, %v", raw, short, err, long, wantErr)
	}
}

// The short way does what the codec does.
func TestDecodeFlat(t *testing.T) {
	c, err := For(reflect.TypeFor[flat](), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range flatTexts {
		both(t, c, wire.RawValue(raw))
	}
	var v flat
	if !c.root.decodeFlat(wire.RawValue(`{"text":"a","n":-5,"on":true}`), reflect.ValueOf(&v).Elem()) || v != (flat{Text: "a", N: -5, On: true}) {
		t.Errorf("the short way is not taken: %+v", v)
	}
	v = flat{Text: "left over"}
	if err := c.Decode(wire.RawValue(`{"n":1}`), &v); err != nil || v.Text != "left over" {
		t.Errorf("what is absent was changed: %+v, %v", v, err)
	}
}

var flatTexts = []string{
	`{}`, ` { } `, `{"text":"a"}`, `{ "text" : "a" , "n" : 7 }`, `{"text":"\u0041\n","on":false}`, `{"te\u0078t":"a"}`,
	`{"text":null}`, `{"n":1.0}`, `{"n":1e2}`, `{"n":1.5}`, `{"n":-0}`, `{"small":127}`, `{"small":128}`, `{"n":9223372036854775807}`,
	`{"n":9223372036854775808}`, `{"other":"a"}`, `{"other":"c"}`, `{"unknown":1}`, `{"Text":"a"}`, `{"on":"true"}`, `{"text":5}`, `[]`, `null`, `{"text":"é👋"}`,
}

func FuzzDecodeFlat(f *testing.F) {
	for _, raw := range flatTexts {
		f.Add([]byte(raw))
	}
	c, err := For(reflect.TypeFor[flat](), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if wire.Valid(raw, wire.Limits{Depth: 64}) == nil {
			both(t, c, raw)
		}
	})
}
