package wire_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
)

// Proves: MSG-1 (strict text), SEC-DOS-1 (size, depth), defects G16 and M0. Ruling 8.
func TestValid(t *testing.T) {
	many := func(last string) string {
		var b strings.Builder
		for i := range 40 {
			fmt.Fprintf(&b, `"n%d":%d,`, i, i)
		}
		return "{" + b.String() + last + "}"
	}
	tests := []struct {
		name, text string
		lim        wire.Limits
		want       error  // nil: valid
		words      string // part of the message
	}{
		{name: "object", text: `{"a":[1,-0.5e+7,true,false,null,"x\n\u00e9\ud83d\ude00é"]}`},
		{name: "spaces", text: " \t\r\n{ \"a\" : [ ] , \"b\" : { } } \n"},
		{name: "scalar", text: `12`},
		{name: "empty", text: ``, want: wire.ErrSyntax, words: "end of text"},
		{name: "blank", text: `  `, want: wire.ErrSyntax},
		{name: "trailing", text: `{} {}`, want: wire.ErrSyntax, words: "after the value at byte 3"},
		{name: "trailing comma", text: `{"a":1,}`, want: wire.ErrSyntax, words: "member name"},
		{name: "array comma", text: `[1,]`, want: wire.ErrSyntax},
		{name: "no colon", text: `{"a" 1}`, want: wire.ErrSyntax, words: "':'"},
		{name: "no comma", text: `{"a":1 "b":2}`, want: wire.ErrSyntax, words: "',' or '}'"},
		{name: "array no comma", text: `[1 2]`, want: wire.ErrSyntax, words: "',' or ']'"},
		{name: "open", text: `{"a":[1`, want: wire.ErrSyntax, words: "end of text"},
		{name: "single quotes", text: `{'a':1}`, want: wire.ErrSyntax},
		{name: "comment", text: `{} // x`, want: wire.ErrSyntax},
		{name: "byte order mark", text: "\ufeff{}", want: wire.ErrSyntax},
		{name: "leading zero", text: `01`, want: wire.ErrSyntax},
		{name: "plus", text: `+1`, want: wire.ErrSyntax},
		{name: "bare fraction", text: `1.`, want: wire.ErrSyntax, words: "end of text"},
		{name: "bare exponent", text: `[1e]`, want: wire.ErrSyntax, words: "digit"},
		{name: "minus", text: `-`, want: wire.ErrSyntax},
		{name: "NaN", text: `NaN`, want: wire.ErrSyntax},
		{name: "literal", text: `nul`, want: wire.ErrSyntax},
		{name: "literal case", text: `True`, want: wire.ErrSyntax},
		{name: "NUL", text: "\x00", want: wire.ErrSyntax},
		{name: "control", text: "\"a\x01\"", want: wire.ErrSyntax, words: "control character"},
		{name: "line break in string", text: "\"a long text, then\n\"", want: wire.ErrSyntax},
		{name: "bad escape", text: `"\x41"`, want: wire.ErrSyntax, words: "escape"},
		{name: "bad hex", text: `"\u00g0"`, want: wire.ErrSyntax, words: "hexadecimal"},
		{name: "cut escape", text: `"\`, want: wire.ErrSyntax},
		{name: "invalid UTF-8", text: "\"plain text \xff\"", want: wire.ErrUTF8},
		{name: "overlong UTF-8", text: "\"\xc0\xaf\"", want: wire.ErrUTF8},
		{name: "encoded surrogate", text: "\"\xed\xa0\x80\"", want: wire.ErrUTF8},
		{name: "invalid UTF-8 in name", text: "{\"\xff\":1}", want: wire.ErrUTF8},
		{name: "replacement character", text: "\"\ufffd\""},
		{name: "high surrogate", text: `"\ud83d"`, want: wire.ErrUTF8, words: "surrogate"},
		{name: "low surrogate", text: `"\ude00"`, want: wire.ErrUTF8},
		{name: "two high surrogates", text: `"\ud83d\ud83d"`, want: wire.ErrUTF8},
		{name: "duplicate", text: `{"name":"safe","name":"danger"}`, want: wire.ErrDuplicate, words: `"name"`},
		{name: "duplicate by escape", text: `{"name":1,"n\u0061me":2}`, want: wire.ErrDuplicate, words: `"name"`},
		{name: "duplicate escapes", text: `{"\u0061\/":1,"a\u002f":2}`, want: wire.ErrDuplicate},
		{name: "duplicate deep", text: `{"a":[{"b":{"c":1,"c":1}}]}`, want: wire.ErrDuplicate},
		{name: "same name in siblings", text: `{"a":{"b":1},"b":{"a":1,"b":[{"a":1},{"a":1}]}}`},
		{name: "case is not duplicate", text: `{"a":1,"A":2}`},
		{name: "many", text: many(`"x":1`)},
		{name: "many duplicate", text: many(`"n3":1`), want: wire.ErrDuplicate, words: `"n3"`},
		{name: "many duplicate by escape", text: many(`"\u006e3":1`), want: wire.ErrDuplicate},
		{name: "many deep duplicate", text: `{"a":` + many(`"n39":1`) + `}`, want: wire.ErrDuplicate},
		{name: "depth 64", text: strings.Repeat(`{"a":[`, 32) + strings.Repeat(`]}`, 32)},
		{name: "depth 65", text: `[` + strings.Repeat(`{"a":[`, 32) + strings.Repeat(`]}`, 32) + `]`, want: wire.ErrDepth},
		{name: "hostile depth", text: strings.Repeat(`[`, 1<<20), want: wire.ErrDepth},
		{name: "own depth", text: `[[]]`, lim: wire.Limits{Depth: 1}, want: wire.ErrDepth, words: "nested too deeply at byte 1"},
		{name: "wide is not deep", text: `[[],[],[]]`, lim: wire.Limits{Depth: 2}},
		{name: "size", text: `"abc"`, lim: wire.Limits{Bytes: 5}},
		{name: "too large", text: `"abcd"`, lim: wire.Limits{Bytes: 5}, want: wire.ErrSize, words: "limit of 5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := wire.Valid([]byte(tt.text), tt.lim)
			if !errors.Is(err, tt.want) {
				t.Fatalf("Valid = %v, want %v", err, tt.want)
			}
			if tt.want != nil && !strings.Contains(err.Error(), tt.words) {
				t.Errorf("error %q does not say %q", err, tt.words)
			}
		})
	}
}

// Every position at which a word of eight bytes may be cut is tried.
func TestValidStringsAtEveryOffset(t *testing.T) {
	for n := range 40 {
		plain := strings.Repeat("a", n)
		for _, c := range []struct {
			text string
			ok   bool
		}{
			{`"` + plain + `"`, true},
			{`"` + plain + `\"` + plain + `"`, true},
			{`"` + plain + `é` + plain + `"`, true},
			{`"` + plain + "\x1f" + plain + `"`, false},
			{`"` + plain + "\x80" + plain + `"`, false},
			{`"` + plain + "\x7f!" + plain + `"`, true},
			{`"` + plain, false},
		} {
			if err := wire.Valid([]byte(c.text), wire.Limits{}); (err == nil) != c.ok {
				t.Errorf("Valid(%q) = %v, want valid %v", c.text, err, c.ok)
			}
		}
	}
}

// Proves: SEC-DOS-1. What fails leaves nothing behind in the pool.
func TestValidAfterFailure(t *testing.T) {
	for _, bad := range []string{`{"a":{"b":1,`, `{"\u0061":`, `{"a":1,"a":2}`} {
		if wire.Valid([]byte(bad), wire.Limits{}) == nil {
			t.Fatalf("Valid(%s) = nil", bad)
		}
		if err := wire.Valid([]byte(`{"a":{"b":{"\u0061":1}}}`), wire.Limits{}); err != nil {
			t.Fatalf("after %s: %v", bad, err)
		}
	}
}
