package wire_test

import (
	"errors"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
)

// What is not Unicode in the strings of a text becomes U+FFFD, and nothing else changes. In the
// names of members it stays.
// Proves: ruling 37
func TestMendText(t *testing.T) {
	for text, want := range map[string]string{
		"{\"a\":\"x\xffy\"}":                                    `{"a":"x\uFFFDy"}`,
		"[\"\xc3\", \"\xe4\xb8\"]":                              `["\uFFFD", "\uFFFD\uFFFD"]`,
		`{"a":"\ud83d","b":["\ude00"]}`:                         `{"a":"\ufffd","b":["\ufffd"]}`,
		`["\ud83d\ud83d\ude00"]`:                                `["\ufffd\ud83d\ude00"]`,
		`["\ud83dx","\\ud83d","\ud83d\n"]`:                      `["\ufffdx","\\ud83d","\ufffd\n"]`,
		"\"\xff":                                                `"` + "\uFFFD",
		"{\"a\":{\"b\":[1,\"\xff\",{\"c\":2}],\"d\":\"\xfe\"}}": `{"a":{"b":[1,"\uFFFD",{"c":2}],"d":"\uFFFD"}}`,

		"{\"\xff\":1}": "", `{"\ud83d":1}`: "", "{\"a\":1,\"\xff\":2}": "", "[{\"a\":[],\"\xff\":2}]": "",
		`{"a":"\ud83d\ude00 é"}`: "", `{}`: "", ``: "", "\xff": "", `"\u12`: "",
	} {
		got, ok := wire.MendText([]byte(text))
		if want = replaced(want); ok != (want != "") || ok && string(got) != want {
			t.Errorf("MendText(%q) = %q, %t, want %q", text, got, ok, want)
		}
	}
}

// replaced writes the characters that stand in for bytes.
func replaced(s string) string {
	out := ""
	for i := 0; i < len(s); i++ {
		if i+6 <= len(s) && s[i:i+6] == `\uFFFD` {
			out += "\uFFFD"
			i += 5
			continue
		}
		out += s[i : i+1]
	}
	return out
}

// FuzzMendText: what is mended has no characters that are not Unicode, and what has none is not mended.
func FuzzMendText(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		lim := wire.Limits{Depth: 8}
		before := wire.Valid(data, lim)
		mended, ok := wire.MendText(data)
		switch {
		case before == nil && ok:
			t.Fatalf("%q became %q", data, mended)
		case ok && errors.Is(wire.Valid(mended, lim), wire.ErrUTF8):
			t.Fatalf("%q became %q: %v", data, mended, wire.Valid(mended, lim))
		}
		if again, twice := wire.MendText(mended); ok && twice {
			t.Fatalf("%q became %q", mended, again)
		}
	})
}
