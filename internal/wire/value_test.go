package wire_test

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
)

func TestEqual(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[true,null]}`, ` { "b" : [ true , null ] , "\u0061" : 1.0 } `, true},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`{"a":1}`, `{"b":1}`, false},
		{`{"a":1}`, `{"A":1}`, false},
		{`{"a":1,"a":1}`, `{"a":1,"a":1}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`[1,2]`, `[1,2,3]`, false},
		{`[1,2,3]`, `[1,2]`, false},
		{`[]`, `[ ]`, true},
		{`[]`, `{}`, false},
		{`"a\/\u00e9"`, `"a/é"`, true},
		{`"1"`, `1`, false},
		{`true`, `false`, false},
		{`null`, `null`, true},
		{`null`, ``, false},
		{``, ``, false},
		{`1`, `1.0`, true},
		{`100`, `1e2`, true},
		{`1e2`, `1000E-1`, true},
		{`0.1`, `0.10`, true},
		{`-0`, `0.0e5`, true},
		{`1`, `-1`, false},
		{`0.1`, `0.01`, false},
		{`9007199254740993`, `9007199254740992`, false},
		{`1e99999999999999999999`, `1e99999999999999999998`, false},
		{`1e99999999999999999999`, `1.0e+99999999999999999999`, true},
		{`1e99999999999999999999`, `1e-99999999999999999999`, false},
		{`0e99999999999999999999`, `0`, true},
		{strings.Repeat("[", 500) + strings.Repeat("]", 500), strings.Repeat("[ ", 500) + strings.Repeat("]", 500), true},
	}
	for _, tt := range tests {
		a, b := wire.RawValue(tt.a), wire.RawValue(tt.b)
		if got := wire.Equal(a, b); got != tt.want {
			t.Errorf("Equal(%s, %s) = %v", tt.a, tt.b, got)
		}
		if got := wire.Equal(b, a); got != tt.want {
			t.Errorf("Equal(%s, %s) = %v", tt.b, tt.a, got)
		}
	}
}

func TestCanonical(t *testing.T) {
	for text, want := range map[string]string{
		` { "b" : 1.50 , "a" : [ 1e2 , -0 , "\u00e9\/" ] } `: `{"a":[100,0,"é/"],"b":1.5}`,
		// RFC 8785, section 3.2.3: names are sorted by UTF-16 code units.
		`{"\ufb33":1,"\ud83d\ude00":2,"\u20ac":3,"1":4}`: "{\"1\":4,\"€\":3,\"😀\":2,\"\ufb33\":1}",
		`1E30`:                           `1e+30`,
		`9007199254740992`:               `9007199254740992`,
		`9007199254740993`:               `9007199254740993`,
		`{"z":1e1,"b":9007199254740993}`: `{"b":9007199254740993,"z":10}`,
	} {
		in := wire.RawValue(text)
		got, err := wire.Canonical(in)
		if err != nil || string(got) != want {
			t.Errorf("Canonical(%s) = %s, %v, want %s", text, got, err, want)
		}
		if string(in) != text {
			t.Errorf("Canonical changed its argument to %s", in)
		}
	}
	for _, text := range []string{``, `{"a":1,"a":2}`, `{`} {
		if got, err := wire.Canonical(wire.RawValue(text)); err == nil {
			t.Errorf("Canonical(%s) = %s", text, got)
		}
	}
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{`""`: "", `"abc"`: "abc", `"a\u0062\n"`: "ab\n"} {
		if got := wire.Text(wire.RawValue(text)); got != want {
			t.Errorf("Text(%s) = %q, want %q", text, got, want)
		}
	}
}
