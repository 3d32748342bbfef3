package wire_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/parley-mcp/parley/internal/wire"
)

// Proves: MSG-1 (id is a string or an integer, never null).
func TestParseID(t *testing.T) {
	for text, want := range map[string]string{
		`"a"`: `"a"`, `"\u0061"`: `"a"`, `""`: `""`, `"1"`: `"1"`, `"a\"\\\/b"`: `"a\"\\/b"`, `"\u00e9"`: `"é"`,
		`1`: `1`, ` 7 `: `7`, `0`: `0`, `-0`: `0`, `-12`: `-12`,
		`9223372036854775807`: `9223372036854775807`, `123456789012345678901234567890`: `123456789012345678901234567890`,
		`1.0`: "1", `-2.50e1`: "-25", `1e2`: "100", `0e9`: "0", // ruling 46
		`null`: "", `1.5`: "", `1e-1`: "", `1e400`: "", `true`: "", `{}`: "", `[]`: "", ``: "", `01`: "", `"a`: "", `"\ud800"`: "", `1 2`: "",
	} {
		id, err := wire.ParseID(wire.RawValue(text))
		if (err == nil) != (want != "") {
			t.Errorf("ParseID(%s) = %v, %v, want %q", text, id, err, want)
			continue
		}
		if err != nil {
			if !id.IsZero() {
				t.Errorf("ParseID(%s) failed with id %v", text, id)
			}
			continue
		}
		if got, _ := id.AppendJSON(nil); string(got) != want || id.String() != want {
			t.Errorf("ParseID(%s) = %s, String %s, want %s", text, got, id, want)
		}
	}
}

func TestID(t *testing.T) {
	id, err := wire.ParseID(wire.RawValue(`"\u0061"`))
	if err != nil || id != wire.StringID("a") || !id.Equal(wire.StringID("a")) {
		t.Errorf(`"\u0061" and "a" differ: %v, %v`, id, err)
	}
	if wire.StringID("1") == wire.IntID(1) {
		t.Error(`"1" and 1 are the same`)
	}
	if wire.StringID("").IsZero() || wire.IntID(0).IsZero() {
		t.Error("an empty string or a zero is taken for absent")
	}
	var zero wire.ID
	if b, err := wire.Marshal(zero); err != nil || string(b) != "null" || zero.String() != "none" {
		t.Errorf("zero ID is %s, %q, %v", b, zero, err)
	}
	if got := wire.StringID("a\n\x1b[31m\xff").String(); strings.ContainsAny(got, "\n\x1b") || !utf8.ValidString(got) {
		t.Errorf("String shows %q as it is", got)
	}
	if got := wire.StringID("a\u009b\u202e").String(); got != `"a\u009b\u202e"` {
		t.Errorf("String shows %q as it is", got)
	}
	if got := wire.StringID(strings.Repeat("é", 1000)).String(); len(got) > 210 || !utf8.ValidString(got) {
		t.Errorf("String shows %d bytes", len(got))
	}
	type holder struct {
		Token wire.ID `json:"token,omitzero"`
	}
	for _, text := range []string{`{}`, `{"token":"x"}`, `{"token":5}`} {
		var h holder
		if err := wire.Decode([]byte(text), &h); err != nil {
			t.Fatal(err)
		}
		if back, err := wire.Marshal(h); err != nil || string(back) != text {
			t.Errorf("%s came back as %s, %v", text, back, err)
		}
	}
	var h holder
	if err := wire.Decode([]byte(`{"token":1.5}`), &h); err == nil || !strings.HasPrefix(err.Error(), "/token: expected a string or an integer") {
		t.Errorf("error is %v", err)
	}
}
