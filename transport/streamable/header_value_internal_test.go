package streamable

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Proves: SEC-HTTP-1, Ruling 15: the base64 sentinel, both ways.
func TestSentinel(t *testing.T) {
	for value, header := range map[string]string{
		"us-west1":              "us-west1",
		"":                      "",
		"a b\tc":                "a b\tc",
		"Hello, 世界":             "=?base64?SGVsbG8sIOS4lueVjA==?=",
		" padded ":              "=?base64?IHBhZGRlZCA=?=",
		"line1\nline2":          "=?base64?bGluZTEKbGluZTI=?=",
		"=?base64?literal?=":    "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
		"=?base64?=":            "=?base64?PT9iYXNlNjQ/PQ==?=",
		"=?BASE64?bGl0ZXJhbA?=": "=?BASE64?bGl0ZXJhbA?=",
		"\x7f":                  "=?base64?fw==?=",
	} {
		if got := encodeHeader(value); got != header {
			t.Errorf("encodeHeader(%q) is %q, want %q", value, got, header)
		}
		if got, err := decodeHeader(header); err != nil || got != value {
			t.Errorf("decodeHeader(%q) is %q, %v, want %q", header, got, err, value)
		}
	}
	for _, bad := range []string{
		"=?base64?SGVsbG8?=", "=?base64?SGVs!G8=?=", "=?base64?SGVsbG9=?=", "=?base64?/w==?=",
		"=?base64?SGVs\tbG8=?=", "Hello, 世界", "a\nb", "a\x00b", "\x7f",
	} {
		if got, err := decodeHeader(bad); err == nil {
			t.Errorf("decodeHeader(%q) is %q, want an error", bad, got)
		}
	}
}

func FuzzSentinel(f *testing.F) {
	for _, seed := range []string{"", "x", "=?base64?SGVsbG8=?=", "=?base64??=", "=?base64?=", " x", "ü"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, err := decodeHeader(s); err == nil && !utf8.ValidString(got) {
			t.Errorf("decodeHeader(%q) is %q, which is not UTF-8", s, got)
		}
		if !utf8.ValidString(s) {
			return
		}
		h := encodeHeader(s)
		if got, err := decodeHeader(h); err != nil || got != s {
			t.Errorf("%q became %q and %q, error %v", s, h, got, err)
		}
		if h != strings.TrimSpace(h) || !plain(h) {
			t.Errorf("%q became %q, which a header does not carry as it is", s, h)
		}
	})
}
