package wire_test

import (
	"math/big"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
)

var someNumbers = []string{
	"0", "-0", "0.0e5", "1", "-1", "1.0", "10e-1", "0.1e1", "1.5", "-1.5", "15e-1", "0.3", "0.30", "3e-1", "99.99", "100", "1e2", "1E+2", "1200e-3",
	"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616",
	"1e19", "1e20", "-1e20", "1e300", "1e-300", "123456789012345678901234567890", "123456789012345678901234567891", "0.000123e6", "12345678901234567890e0",
}

// A Decimal compares, is an integer and divides as an exact fraction does.
func TestDecimal(t *testing.T) {
	for _, a := range someNumbers {
		x := wire.ReadDecimal([]byte(a))
		want, _ := new(big.Rat).SetString(a)
		if got := x.IsInteger(); got != want.IsInt() {
			t.Errorf("%s is an integer: %t", a, got)
		}
		text, short := x.Integer(), want.IsInt() && len(new(big.Int).Abs(want.Num()).String()) <= 20
		if short != (text != "") || short && text != want.Num().String() {
			t.Errorf("%s is spelt %q", a, text)
		}
		if n, ok := wire.PlainInteger([]byte(a)); ok && (!want.IsInt() || want.Num().Cmp(big.NewInt(n)) != 0) {
			t.Errorf("%s is read as %d", a, n)
		}
		divisor, isDivisor := wire.NewDivisor(&x)
		for _, b := range someNumbers {
			y := wire.ReadDecimal([]byte(b))
			other, _ := new(big.Rat).SetString(b)
			if got := x.Compare(&y); got != want.Cmp(other) {
				t.Errorf("%s compares to %s as %d", a, b, got)
			}
			if isDivisor {
				if got := divisor.Divides(&y); got != new(big.Rat).Quo(other, want).IsInt() {
					t.Errorf("%s divides %s: %t", a, b, got)
				}
			}
		}
	}
}

// Exponents that no memory holds end a comparison at once.
func TestDecimalOfAnyExponent(t *testing.T) {
	huge, tiny := wire.ReadDecimal([]byte("1e99999999999999999999")), wire.ReadDecimal([]byte("1e-99999999999999999999"))
	three := wire.IntDecimal(3)
	divisor, _ := wire.NewDivisor(&three)
	if huge.Compare(&tiny) != 1 || !huge.IsInteger() || tiny.IsInteger() || huge.Integer() != "" || divisor.Divides(&huge) {
		t.Error("a number with a huge exponent is taken for another")
	}
}

func TestMeasure(t *testing.T) {
	got := wire.Measure([]byte(`{"name":["a", "\u0061b", 1e5, null], "b":{}}`), 4)
	if want := (wire.Size{Values: 7, Containers: 3, Longest: 7, HasLong: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if !wire.Measure([]byte(`["a`), 4).Broken {
		t.Error("a string without an end is measured")
	}
}
