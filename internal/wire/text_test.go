package wire_test

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-mcp/parley/internal/wire"
)

// texts are strings with something special at every place of a word, of a
// block, and of what is left behind them.
func texts() []string {
	specials := []string{
		`"`, `\`, "\x00", "\x1f", "\b\f\n\r\t", "/", "\x7f", "é", "€", "𝄞", "\u2028", "\ufffd",
		"\x80", "\xc3", "\xe2\x82", "\xf0\x9d\x84", "\xed\xa0\x80", "\xff\xfe",
	}
	all := append([]string{"", "a", strings.Repeat("a", 200)}, specials...)
	for _, s := range specials {
		for n := range 80 {
			all = append(all, strings.Repeat("x", n)+s+strings.Repeat("y", 80-n), strings.Repeat("z", n)+s)
		}
		all = append(all, strings.Repeat(s, 50), strings.Repeat(s+" ", 50))
	}
	return all
}

// checkText compares the writing and reading of a text with the codec's.
func checkText(t *testing.T, s string) {
	t.Helper()
	valid := strings.ToValidUTF8(s, "") == s
	want, _ := jsontext.AppendQuote([]byte(">"), s)
	if got := wire.AppendString([]byte(">"), s); string(got) != string(want) {
		t.Fatalf("AppendString(%q) = %s, want %s", s, got, want)
	}
	got, ok := wire.AppendText([]byte(">"), s)
	if ok != valid || valid && string(got) != string(want) || !valid && string(got) != ">" {
		t.Fatalf("AppendText(%q) = %s, %t", s, got, ok)
	}
	literal := want[1:]
	if err := wire.Valid(literal, wire.Limits{}); err != nil {
		t.Fatalf("%s is refused: %v", literal, err)
	}
	back, err := jsontext.AppendUnquote(nil, literal)
	if err != nil {
		t.Fatal(err)
	}
	if got := wire.Text(literal); got != string(back) {
		t.Fatalf("Text(%s) = %q, want %q", literal, got, back)
	}
}

func TestTextForms(t *testing.T) {
	for _, s := range texts() {
		checkText(t, s)
	}
	for literal, want := range map[string]string{
		`"\u0061\u00e9\u20AC\ud834\udd1e\/\b\f\n\r\t\"\\ end"`: "aé€𝄞/\b\f\n\r\t\"\\ end", `"\\\\\""`: `\\"`, `"\ufffd"`: "\ufffd", `"\u0000"`: "\x00",
	} {
		if err := wire.Valid([]byte(literal), wire.Limits{}); err != nil {
			t.Errorf("%s: %v", literal, err)
		}
		if got := wire.Text(wire.RawValue(literal)); got != want {
			t.Errorf("Text(%s) = %q, want %q", literal, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range texts() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkText(t, s)
		// As a literal it is accepted where the codec accepts it, with the same meaning.
		literal := []byte(`"` + s + `"`)
		if wire.Valid(literal, wire.Limits{}) != nil {
			if utf8.ValidString(s) && jsontext.Value(literal).IsValid() {
				t.Fatalf("%s is refused", literal)
			}
			return
		}
		want, err := jsontext.AppendUnquote(nil, literal)
		if err != nil || wire.Text(literal) != string(want) {
			t.Fatalf("Text(%s) = %q, want %q, %v", literal, wire.Text(literal), want, err)
		}
	})
}

func FuzzAppendNumber(f *testing.F) {
	f.Add(uint64(0))
	f.Add(math.Float64bits(1e15))
	f.Fuzz(func(t *testing.T, b uint64) {
		for _, n := range []float64{math.Float64frombits(b), float64(b), -float64(b) / 8} {
			want, err := wire.Marshal(n)
			if err != nil {
				continue // not finite
			}
			if got := wire.AppendNumber(nil, n); string(got) != string(want) {
				t.Fatalf("AppendNumber(%v) = %s, want %s", n, got, want)
			}
		}
	})
}

func TestAppendNumber(t *testing.T) {
	for _, f := range []float64{
		0, math.Copysign(0, -1), 1, -1, 0.5, 100, 1e14, 1e15, -1e15, 1e15 + 1, 1 << 53, 1e20, 1e21, 1.5e300, -2.25, 1e-7, 1e-6,
		math.MaxFloat64, math.SmallestNonzeroFloat64, math.MaxInt64, math.MinInt64,
	} {
		want, err := wire.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if got := wire.AppendNumber([]byte(">"), f); string(got) != ">"+string(want) {
			t.Errorf("AppendNumber(%v) = %s, want %s", f, got, want)
		}
	}
}
