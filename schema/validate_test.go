package schema_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/schema"
)

func of[T any](t testing.TB, o *schema.Options) *schema.Compiled {
	t.Helper()
	c, err := schema.Of[T](o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Proves: SEC-TOOL-1
func TestCheckInferred(t *testing.T) {
	c := of[every](t, nil)
	const good = `"s":"a@b.c","i":1,"i8":-128,"u":0,"u16":65535,"f":0.5,"t":"2026-07-28T01:02:03Z","raw":null,"any":[{}],"data":"AAE=","sum":"AAECAw==","pair":[1,2],"m":{},"byI":{"-5":"x"},"addr":"1.2.3.4","in":{"X":""}`
	if err := c.Check([]byte(`{` + good + `}`)); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct{ member, want string }{
		{`"s":""`, `/s: must have at least 1 character, has 0`},
		{`"s":"abcdefgh@i"`, `/s: must have at most 9 characters, has 10`},
		{`"s":"x"`, `/s: expected the format email`},
		{`"s":5`, `/s: expected string, got number`},
		{`"i":1.5`, `/i: expected integer, got a number with a fraction`},
		{`"i":"1"`, `/i: expected integer, got string`},
		{`"i":null`, `/i: expected integer, got null`},
		{`"i":9223372036854775808`, `/i: must fit a number of 64 bits`},
		{`"i":1e999999999`, `/i: must fit a number of 64 bits`},
		{`"i":1e-999999999`, `/i: expected integer, got a number with a fraction`},
		{`"i8":128`, `/i8: must be between -128 and 127`},
		{`"u":-1`, `/u: must be between 0 and 10`},
		{`"u":11`, `/u: must be between 0 and 10`},
		{`"f":-2`, `/f: must be between -1.5 and 1e3`},
		{`"f":1e400`, `/f: must be between`},
		{`"f32":0.25`, `/f32: must be one of 0.5, 1`},
		{`"b":0`, `/b: expected boolean, got number`},
		{`"t":"2026-07-28T1:02:03Z"`, `/t: expected a date-time`},
		{`"t":"2026-07-28T01:02:03+24:00"`, `/t: expected a date-time`},
		{`"t":"2026-07-28T01:02:03,5Z"`, `/t: expected a date-time`},
		{`"t":"yesterday"`, `/t: expected a date-time`},
		{`"d":"90"`, `/d: expected a duration`},
		{`"d":90`, `/d: expected string, got number`},
		{`"data":"A"`, `/data: expected base64`},
		{`"data":"AB=="`, `/data: expected base64`},
		{`"sum":"AA=="`, `/sum`},
		{`"pair":[1]`, `/pair: must have at least 2 items, has 1`},
		{`"pair":[1,2,3]`, `/pair: must have at most 2 items, has 3`},
		{`"l":[]`, `/l: must have at least 1 item, has 0`},
		{`"l":["z"]`, `/l/0: must be one of "a", "b", "c"`},
		{`"l":null`, `/l: expected array, got null`},
		{`"m":{"a":true,"b":true,"c":true}`, `/m: must have at most 2 members, has 3`},
		{`"m":{"a~/b":1}`, `/m/a~0~1b: expected boolean, got number`},
		{`"byI":{"300":"x"}`, `/byI/300: the member's name must be an integer`},
		{`"byI":{"01":"x"}`, `/byI/01: the member's name`},
		{`"p":-1`, `/p: must be at least 0`},
		{`"p":null`, `/p: expected integer, got null (the member is optional: leave it out)`},
		{`"in":{}`, `/in: member "X" is required`},
		{`"in":{"X":"","Y":1}`, `/in: unknown member "Y"`},
		{`"x\u0000y":1`, `unknown member "x\x00y"`},
	} {
		name, _, _ := strings.Cut(bad.member, ":")
		var members []string
		for _, m := range splitMembers(good) {
			if !strings.HasPrefix(m, name+":") {
				members = append(members, m)
			}
		}
		err := c.Check([]byte(`{` + strings.Join(append(members, bad.member), ",") + `}`))
		var e *schema.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), bad.want) || len(e.Problems) > 2 {
			t.Errorf("%s: %v; want %s", bad.member, err, bad.want)
		}
	}
}

// splitMembers splits the members of good at the commas between them.
func splitMembers(s string) (list []string) {
	depth, from, inString := 0, 0, false
	for i, r := range s {
		switch {
		case r == '"':
			inString = !inString
		case inString:
		case r == '[' || r == '{':
			depth++
		case r == ']' || r == '}':
			depth--
		case r == ',' && depth == 0:
			list = append(list, s[from:i])
			from = i + 1
		}
	}
	return append(list, s[from:])
}

// A member may say itself that it takes null, and then null is decoded.
func TestNullByOwnSchema(t *testing.T) {
	type in struct {
		Name  *maybe `json:"name,omitzero"`
		Other *int   `json:"other,omitzero"`
	}
	c := of[in](t, nil)
	var v in
	if err := c.Decode([]byte(`{"name":null}`), &v); err != nil || v.Name != nil {
		t.Errorf("%v, %v", v.Name, err)
	}
	if err := c.Decode([]byte(`{"name":"x"}`), &v); err != nil || v.Name == nil || *v.Name != "x" {
		t.Errorf("%v, %v", v.Name, err)
	}
	if err := c.Check([]byte(`{"name":null,"other":null}`)); err == nil || err.Error() != "/other: expected integer, got null (the member is optional: leave it out)" {
		t.Errorf("got %v", err)
	}
	if err := c.Check([]byte(`{"name":5}`)); err == nil || strings.Contains(err.Error(), "leave it out") {
		t.Errorf("got %v", err)
	}
}

// maybe is a string or null.
type maybe string

func (maybe) JSONSchema() string { return `{"type":["string","null"]}` }

func TestProblemsAreListedAndBounded(t *testing.T) {
	type in struct{ A, B, C int }
	err := of[in](t, nil).Check([]byte(`{"A":"topsecret","B":true,"D":"topsecret"}`))
	want := `/A: expected integer, got string; /B: expected integer, got boolean; unknown member "D"; member "C" is required`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	err = of[[]int](t, nil).Check([]byte(`[` + strings.Repeat(`"topsecret",`, 100) + `""]`))
	var e *schema.Error
	if !errors.As(err, &e) || len(e.Problems) != schema.MaxProblems || !e.More {
		t.Errorf("got %v", err)
	}
	type deep struct{ L []struct{ M []int } }
	err = of[deep](t, nil).Check([]byte(`{"L":[{"M":[` + strings.Repeat(`"topsecret",`, 100) + `""]}]}`))
	if !errors.As(err, &e) || len(e.Problems) != schema.MaxProblems || !e.More || !strings.HasPrefix(err.Error(), "/L/0/M/0: expected integer") {
		t.Errorf("got %v", err)
	}
	if strings.Contains(err.Error(), "topsecret") {
		t.Errorf("the error shows a value: %v", err)
	}
	err = of[map[string]int](t, nil).Check([]byte(`{"` + strings.Repeat("é", 200) + `\u001b":""}`))
	if err == nil || len(err.Error()) > 200 || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("got %v", err)
	}
}

func TestNotJSON(t *testing.T) {
	c := of[every](t, nil)
	for _, bad := range []string{``, ` `, `{`, `{"s"`, `{"s":`, `{"s":"`, `{"s":"a`, `{"s":"a"`, `{"s":"a",`, `{"s":"a" "i":1}`, `[`, `{"l":[`, `{"l":["a"`, `{"m":{"a`, `{,}`, `{"i":}`, `x`, `{}}`, `{"s":"\u12`, `{"s":"\`} {
		if c.Check([]byte(bad)) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestDecode(t *testing.T) {
	c := of[indexIn](t, nil)
	for _, ok := range []struct {
		raw  string
		want indexIn
	}{
		{`{"repo":"a/b"}`, indexIn{Repo: "a/b", Depth: 50, Kind: "all"}},
		{` {"kind":"docs" , "repo":"a/b","depth":7} `, indexIn{Repo: "a/b", Depth: 7, Kind: "docs"}},
		{`{"repo":"a/b","depth":7.0}`, indexIn{Repo: "a/b", Depth: 7, Kind: "all"}},
		{`{"repo":"a/b","depth":5e1}`, indexIn{Repo: "a/b", Depth: 50, Kind: "all"}},
		{`{"\u0072epo":"a\/b","depth":700e-2}`, indexIn{Repo: "a/b", Depth: 7, Kind: "all"}},
	} {
		var got indexIn
		if err := c.Decode([]byte(ok.raw), &got); err != nil {
			t.Errorf("%s: %v", ok.raw, err)
		} else if got != ok.want {
			t.Errorf("%s: %+v", ok.raw, got)
		}
	}
	for _, bad := range []string{``, `{}`, `{"repo":"ab"}`, `{"repo":"a/b","Depth":1}`, `{"repo":"a/b","depth":0}`, `[]`, `null`} {
		var got indexIn
		if err := c.Decode([]byte(bad), &got); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	for _, wrong := range []any{indexIn{}, &node{}, (*indexIn)(nil), nil} {
		if err := c.Decode([]byte(`{"repo":"a/b"}`), wrong); err == nil {
			t.Errorf("decodes into %T", wrong)
		}
	}
}

func TestAbsentArguments(t *testing.T) {
	type in struct {
		N int `default:"3"`
	}
	var got in
	if err := of[in](t, nil).Decode(nil, &got); err != nil || got.N != 3 {
		t.Errorf("%+v, %v", got, err)
	}
}

type inner struct {
	A int    `json:"a" default:"1"`
	B string `json:"b,omitzero"`
}

type defaulted struct {
	Direct  inner            `json:"direct,omitzero"`
	Pointer *inner           `json:"pointer,omitzero"`
	List    []inner          `json:"list,omitempty"`
	Fixed   [1]*inner        `json:"fixed,omitzero"`
	ByName  map[string]inner `json:"byName,omitempty"`
	Tags    []string         `json:"tags" default:"x,y"`
	Ptr     *int             `json:"ptr" default:"4"`
	Wait    time.Duration    `json:"wait" default:"90s"`
	When    time.Time        `json:"when" default:"2026-01-02T03:04:05Z"`
	Counts  map[string]int   `json:"counts" default:"{\"a\":1}"`
	Any     any              `json:"any" default:"[1]"`
	F       float32          `json:"f" default:"0.5"`
	Ints    []int8           `json:"ints" default:"1,2"`
}

func TestDefaults(t *testing.T) {
	c := of[defaulted](t, nil)
	base := func(change func(*defaulted)) defaulted {
		d := defaulted{
			Direct: inner{A: 1}, Tags: []string{"x", "y"}, Ptr: new(4), Wait: 90 * time.Second,
			When: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Counts: map[string]int{"a": 1}, Any: []any{1.0}, F: 0.5, Ints: []int8{1, 2},
		}
		change(&d)
		return d
	}
	for raw, want := range map[string]defaulted{
		`{}`: base(func(*defaulted) {}),
		`{"direct":{"b":"x"},"pointer":{},"ptr":0,"tags":[]}`: base(func(d *defaulted) {
			d.Direct, d.Pointer, d.Ptr, d.Tags = inner{1, "x"}, &inner{A: 1}, new(0), []string{}
		}),
		`{"list":[{},{"a":5},{"b":"\"}"}],"fixed":[{"a":2}],"byName":{"k":{},"\u006c":{"a":7}}}`: base(func(d *defaulted) {
			d.List, d.Fixed = []inner{{A: 1}, {A: 5}, {1, `"}`}}, [1]*inner{{A: 2}}
			d.ByName = map[string]inner{"k": {A: 1}, "l": {A: 7}}
		}),
	} {
		var got defaulted
		if err := c.Decode([]byte(raw), &got); err != nil {
			t.Errorf("%s: %v", raw, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", raw, diff)
		}
	}
}

func TestDefaultsAreNotShared(t *testing.T) {
	c := of[defaulted](t, nil)
	var one, two defaulted
	if err := errors.Join(c.Decode([]byte(`{}`), &one), c.Decode([]byte(`{}`), &two)); err != nil {
		t.Fatal(err)
	}
	one.Tags[0], *one.Ptr, one.Counts["a"] = "changed", 0, 0
	if two.Tags[0] != "x" || *two.Ptr != 4 || two.Counts["a"] != 1 {
		t.Errorf("%+v", two)
	}
}

func TestRecursiveDefaults(t *testing.T) {
	var got forest
	if err := of[forest](t, nil).Decode([]byte(`{"trees":[{"grafts":[{},{"height":2,"grafts":[{}]}]}]}`), &got); err != nil {
		t.Fatal(err)
	}
	want := forest{Trees: []tree{{Height: 1, Grafts: []tree{{Height: 1}, {Height: 2, Grafts: []tree{{Height: 1}}}}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEmbedding(t *testing.T) {
	var got embedding
	err := of[embedding](t, nil).Decode([]byte(`{"id":1,"kind":true,"note":"n","x":5.0,"y":6}`), &got)
	want := embedding{Base: Base{ID: 1}, Deep: &Deep{Note: "n"}, Kind: true, Extra: map[string]int64{"x": 5, "y": 6}}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := of[embedding](t, nil).Check([]byte(`{"id":1,"kind":true,"x":"5"}`)); err == nil {
		t.Error("a member of the inlined map may have any type")
	}
}

func TestManyFields(t *testing.T) {
	var fields []reflect.StructField
	var raw strings.Builder
	raw.WriteByte('{')
	for i := range 100 {
		name := "F" + string(rune('A'+i/26)) + string(rune('A'+i%26))
		fields = append(fields, reflect.StructField{Name: name, Type: reflect.TypeFor[int](), Tag: `default:"7"`})
		if i%2 == 1 {
			raw.WriteString(`"` + name + `":1,`)
		}
	}
	typ := reflect.StructOf(fields)
	c, err := schema.For(typ, nil)
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.New(typ)
	if err := c.Decode([]byte(strings.TrimSuffix(raw.String(), ",")+`}`), v.Interface()); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if got, want := v.Elem().Field(i).Int(), int64(7-6*(i%2)); got != want {
			t.Errorf("field %d is %d", i, got)
		}
	}
}

func TestOrderAndTwice(t *testing.T) {
	c := of[struct{ A, B, C int }](t, nil)
	if err := c.Check([]byte(`{"C":1,"A":1,"B":1}`)); err != nil {
		t.Error(err)
	}
	if err := c.Check([]byte(`{"A":1,"B":1,"A":1,"C":1}`)); err == nil {
		t.Error("a member given twice is accepted")
	}
}

func TestType(t *testing.T) {
	for want, c := range map[string]*schema.Compiled{
		"object": of[struct{}](t, nil), "array": of[[]int](t, nil), "": of[any](t, nil), "integer": of[uint](t, nil),
	} {
		if c.Type() != want {
			t.Errorf("%s: type %q", c.JSON(), c.Type())
		}
	}
}
