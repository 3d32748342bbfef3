package schema

import (
	"reflect"
	"testing"
	"time"

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

type decoding string

func (d *decoding) UnmarshalText(text []byte) error {
	*d = decoding(text) + "!"
	return nil
}

// deep has what the short way takes besides.
type deep struct {
	Name   *string   `json:"name,omitzero"`
	Named  named     `json:"named,omitzero"`
	Score  float64   `json:"score,omitzero" default:"0.5"`
	Small  float32   `json:"small,omitzero"`
	Count  uint8     `json:"count,omitzero"`
	Tags   []string  `json:"tags,omitempty"`
	Grid   [][]int   `json:"grid,omitempty"`
	Inner  flat      `json:"inner,omitzero"`
	Ptr    *flat     `json:"ptr,omitzero"`
	List   []flat    `json:"list,omitempty"`
	Limits filled    `json:"limits,omitzero"`
	Again  *filled   `json:"again,omitzero"`
	Every  []*filled `json:"every,omitempty"`
}

type filled struct {
	Low  int      `json:"low" default:"1"`
	High *int     `json:"high,omitzero" default:"9"`
	Kind []string `json:"kind,omitempty" default:"[\"a\",\"b\"]"`
}

func TestIsFlat(t *testing.T) {
	type inner struct {
		X string `json:"x"`
	}
	for want, types := range map[bool][]reflect.Type{
		true: {
			reflect.TypeFor[flat](), reflect.TypeFor[struct{}](), reflect.TypeFor[inner](), reflect.TypeFor[deep](),
			reflect.TypeFor[struct {
				X named `json:"x"`
			}](),
			reflect.TypeFor[struct {
				X **string `json:"x,omitzero"`
			}](),
		},
		false: {
			reflect.TypeFor[struct {
				X decoding `json:"x"`
			}](),
			reflect.TypeFor[struct {
				X []decoding `json:"x"`
			}](),
			reflect.TypeFor[struct{ inner }](),
			reflect.TypeFor[struct {
				X any `json:"x"`
			}](),
			reflect.TypeFor[struct {
				X []byte `json:"x"`
			}](),
			reflect.TypeFor[struct {
				X [2]int `json:"x"`
			}](),
			reflect.TypeFor[struct {
				X time.Time `json:"x"`
			}](),
			reflect.TypeFor[struct {
				X time.Duration `json:"x"`
			}](),
			reflect.TypeFor[struct {
				X map[string]int `json:"x"`
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
func both[T any](t *testing.T, c *Compiled, raw wire.RawValue) {
	t.Helper()
	var short, long T
	err := c.Decode(raw, &short)
	slow := *c
	slow.flat = false
	wantErr := slow.Decode(raw, &long)
	if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() || !reflect.DeepEqual(short, long) {
		t.Errorf("%s: got %+v, %v, want %+v, %v", raw, short, err, long, wantErr)
	}
}

func inferred[T any](t testing.TB) *Compiled {
	t.Helper()
	c, err := Of[T](nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The short way does what the codec does.
func TestDecodeFlat(t *testing.T) {
	c, d := inferred[flat](t), inferred[deep](t)
	for _, raw := range flatTexts {
		both[flat](t, c, wire.RawValue(raw))
		both[deep](t, d, wire.RawValue(raw))
	}
	var v flat
	if !c.inferred.decodeFlat(wire.RawValue(`{"text":"a","n":-5,"on":true}`), reflect.ValueOf(&v).Elem()) || v != (flat{Text: "a", N: -5, On: true}) {
		t.Errorf("the short way is not taken: %+v", v)
	}
	var w deep
	if !d.inferred.decodeFlat(wire.RawValue(`{"name":"\n","tags":["x"],"list":[{"n":1},{}]}`), reflect.ValueOf(&w).Elem()) ||
		*w.Name != "\n" || w.Score != 0.5 || w.Limits.Low != 1 || w.Again != nil || w.List[0].N != 1 {
		t.Errorf("the short way is not taken: %+v", w)
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
	`{"name":"a","named":"b","score":1e3,"small":0.1,"count":255}`, `{"name":null}`, `{"count":256}`, `{"count":-1}`, `{"score":-0.0,"small":3.4e38}`,
	`{"small":3.5e38}`, `{"score":1e400}`, `{"count":1.0,"tags":["a","\ud83d\ude00"]}`, `{"tags":[],"grid":[]}`, `{"grid":[[],[1,2],[-9223372036854775808]]}`,
	`{"tags":[null]}`, `{"inner":{"text":"a"},"ptr":{"n":1},"list":[{"on":true},{}]}`, `{"inner":{"x":1}}`, `{"list":[{"small":1},{"small":1000}]}`,
	`{"limits":{},"again":{"low":5},"every":[{},{"high":1},{"kind":[]}]}`, `{"limits":{"kind":["z"],"high":0}}`, `{"every":[{"low":1.0}]}`,
	`{"score":0.25,"score":0.5}`, `{"limits":null}`, `{"ptr":{}}`,
}

func FuzzDecodeFlat(f *testing.F) {
	for _, raw := range flatTexts {
		f.Add([]byte(raw))
	}
	c, d := inferred[flat](f), inferred[deep](f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if wire.Valid(raw, wire.Limits{Depth: 64}) == nil {
			both[flat](t, c, raw)
			both[deep](t, d, raw)
		}
	})
}

// Decoding arguments allocates what they hold: a text and a list.
func TestDecodeAllocates(t *testing.T) {
	type in struct {
		Query  string   `json:"query" minlen:"1"`
		Limit  int      `json:"limit" min:"1" max:"100" default:"10"`
		Kinds  []string `json:"kinds,omitempty" enum:"code,docs,issue"`
		Filter struct {
			MinScore float64 `json:"minScore,omitzero" min:"0" max:"1"`
		} `json:"filter,omitzero"`
	}
	c := inferred[in](t)
	raw := wire.RawValue(`{"query":"how does replay work","kinds":["code","docs"],"filter":{"minScore":0.25}}`)
	var v in
	if n := testing.AllocsPerRun(100, func() {
		v = in{}
		if err := c.Decode(raw, &v); err != nil || v.Limit != 10 {
			t.Fatal(v, err)
		}
	}); n > 2 {
		t.Errorf("%v allocations", n)
	}
}
