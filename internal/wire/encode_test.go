package wire_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
)

func TestAppend(t *testing.T) {
	type s struct {
		A int                      `json:"a"`
		D time.Duration            `json:"d,omitzero"`
		P *time.Duration           `json:"p,omitzero"`
		M map[string]time.Duration `json:"m,omitzero"`
		I any                      `json:"i,omitzero"`
	}
	d := 90 * time.Second
	for _, tt := range []struct {
		v    any
		want string
	}{
		{nil, `null`},
		{"<a&b>\u2028\u0001\"", "\"<a&b>\u2028\\u0001\\\"\""},
		{s{A: 1}, `{"a":1}`},
		{&s{A: 1, D: d, P: &d, M: map[string]time.Duration{"k": d}}, `{"a":1,"d":"1m30s","p":"1m30s","m":{"k":"1m30s"}}`},
		{s{I: d}, `{"a":0,"i":"1m30s"}`},
		{[]any{d, map[string]any{"x": d}}, `["1m30s",{"x":"1m30s"}]`},
		{[]int(nil), `[]`},
		{map[string]int(nil), `{}`},
		{[]byte{1, 2}, `"AQI="`},
		{wire.RawValue("{\n \"a\" : \"\\u0061\\/\" }\n"), `{"a":"\u0061\/"}`},
		{wire.RawValue(nil), `null`},
		{struct{ R wire.RawValue }{wire.RawValue(`[ 1.0 ]`)}, `{"R":[1.0]}`},
		{wire.StringID("x"), `"x"`},
	} {
		got, err := wire.Append([]byte("before "), tt.v)
		if err != nil || string(got) != "before "+tt.want {
			t.Errorf("Append(%#v) = %s, %v, want %s", tt.v, got, err, tt.want)
		}
	}
}

type broken struct{}

func (broken) MarshalJSON() ([]byte, error) {
	return nil, &wire.Error{Reason: "broken on purpose", Offset: -1}
}

func TestAppendErrors(t *testing.T) {
	for _, tt := range []struct {
		v    any
		want string
	}{
		{func() {}, "func()"},
		{map[string]any{"a": math.NaN()}, "/a"},
		{wire.RawValue(`{"a":1,"a":2}`), "duplicate member name"},
		{wire.RawValue(`{"secret`), "cannot be encoded"},
		{struct{ X wire.RawValue }{wire.RawValue(`{} {}`)}, "/X"},
		{"\xff", "the text is not valid UTF-8"},
		{map[string]any{"a": struct{ B string }{"\xff"}}, "/a/B: the text is not valid UTF-8"},
		{map[string]any{"b": broken{}}, "/b: broken on purpose"},
	} {
		got, err := wire.Append([]byte("before"), tt.v)
		var e *wire.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("Append(%#v) = %v, want error with %q", tt.v, err, tt.want)
		}
		if string(got) != "before" {
			t.Errorf("after an error dst is %q", got)
		}
	}
}

// Proves: the codec does not encode into another buffer first.
func TestAppendInPlace(t *testing.T) {
	v := &struct{ Text string }{strings.Repeat("a", 1<<20)}
	dst := make([]byte, 4, 2<<20)
	out, err := wire.Append(dst, v)
	if err != nil || &out[0] != &dst[0] {
		t.Fatalf("Append did not use the room of dst: %v", err)
	}
	if got := allocations(func() {
		if _, err := wire.Append(dst, v); err != nil {
			t.Error(err)
		}
	}); got > 2 {
		t.Errorf("Append allocates %v times, want at most 2", got)
	}
}

func TestAppendString(t *testing.T) {
	for s, want := range map[string]string{
		"": `""`, "plain": `"plain"`, "é😀": `"é😀"`, "a\"\\\n\x00": `"a\"\\\n\u0000"`, "a\xffb": "\"a\ufffdb\"", "\x7f<>": "\"\x7f<>\"",
	} {
		if got := wire.AppendString([]byte("x"), s); string(got) != "x"+want {
			t.Errorf("AppendString(%q) = %s, want %s", s, got[1:], want)
		}
	}
}
