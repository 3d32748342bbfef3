package wire

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"
)

// Decimal is a number exactly as JSON writes it: 0.WF times ten to the power
// exp, where W and F are the digits of whole and fraction. There are no zeros
// at either end, and no digits at all if it is zero.
type Decimal struct {
	negative        bool
	whole, fraction []byte // of the text it was read from
	exp             int64
	small           int64 // the number itself
	isSmall         bool  // if it is a plain integer that fits
}

// maxExponent stands for all that are greater.
const maxExponent = 1e18

// IntDecimal returns the number n.
func IntDecimal(n int64) Decimal { return Decimal{small: n, isSmall: true} }

// Int64 returns the number if it is one that [PlainInteger] reads.
func (d *Decimal) Int64() (n int64, ok bool) { return d.small, d.isSmall }

// ReadDecimal reads a valid number. It aliases tok. An exponent beyond ±10^18
// counts as that.
func ReadDecimal(tok []byte) (d Decimal) {
	if d.small, d.isSmall = PlainInteger(tok); d.isSmall {
		return d
	}
	return exactly(tok)
}

// PlainInteger reads an integer that 64 bits hold, written without fraction and
// exponent.
func PlainInteger(tok []byte) (n int64, ok bool) {
	digits := tok
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 19 {
		return 0, false
	}
	size := uint64(0) // 19 digits are below 2^64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		size = size*10 + uint64(c-'0')
	}
	if len(digits) < len(tok) {
		return -int64(size), size <= 1<<63
	}
	return int64(size), size < 1<<63
}

// exactly reads any number by its digits.
func exactly(tok []byte) (d Decimal) {
	if tok[0] == '-' {
		d.negative, tok = true, tok[1:]
	}
	if i := bytes.IndexAny(tok, "eE"); i >= 0 {
		d.exp, _ = strconv.ParseInt(string(tok[i+1:]), 10, 64) // the nearest that 64 bits hold
		d.exp = min(max(d.exp, -maxExponent), maxExponent)
		tok = tok[:i]
	}
	d.whole, d.fraction, _ = bytes.Cut(tok, []byte("."))
	d.whole = bytes.TrimLeft(d.whole, "0")
	d.fraction = bytes.TrimRight(d.fraction, "0")
	d.exp += int64(len(d.whole))
	if len(d.whole) == 0 {
		short := bytes.TrimLeft(d.fraction, "0")
		d.exp -= int64(len(d.fraction) - len(short))
		d.fraction = short
	}
	if len(d.fraction) == 0 {
		d.whole = bytes.TrimRight(d.whole, "0")
	}
	if d.digits() == 0 {
		return Decimal{}
	}
	return d
}

// full is the same number with its digits, for arithmetic.
func (d *Decimal) full(dst []byte) Decimal {
	if !d.isSmall {
		return *d
	}
	return exactly(strconv.AppendInt(dst, d.small, 10))
}

func (d *Decimal) digits() int { return len(d.whole) + len(d.fraction) }

// digit returns the digit at i, or zero after the last.
func (d *Decimal) digit(i int) byte {
	switch {
	case i < len(d.whole):
		return d.whole[i] - '0'
	case i < d.digits():
		return d.fraction[i-len(d.whole)] - '0'
	}
	return 0
}

// Integer spells an integer of up to 20 digits without fraction and exponent. It
// returns "" for any other number.
func (d *Decimal) Integer() string {
	switch {
	case d.isSmall:
		return strconv.FormatInt(d.small, 10)
	case !d.IsInteger() || d.exp > 20:
		return ""
	case d.digits() == 0:
		return "0"
	}
	sign := ""
	if d.negative {
		sign = "-"
	}
	return sign + string(d.whole) + string(d.fraction) + strings.Repeat("0", int(d.exp)-d.digits())
}

// IsInteger looks at the value, not at how it is written.
func (d *Decimal) IsInteger() bool {
	return d.isSmall || d.digits() == 0 || d.exp >= int64(d.digits())
}

// Compare returns -1, 0 or 1 as d is below, equal to or above e.
func (d *Decimal) Compare(e *Decimal) int {
	if d.isSmall && e.isSmall {
		return cmp.Compare(d.small, e.small)
	}
	return d.compareDigits(e)
}

func (d *Decimal) compareDigits(e *Decimal) int {
	if d.isSmall && e.exp > 19 {
		return -e.sign() // e is beyond 64 bits
	}
	var a, b [20]byte
	df, ef := d.full(a[:0]), e.full(b[:0])
	switch ds, es := df.sign(), ef.sign(); {
	case ds < es:
		return -1
	case ds > es:
		return 1
	case ds < 0:
		return -df.compareSize(&ef)
	default:
		return df.compareSize(&ef)
	}
}

func (d *Decimal) sign() int {
	switch {
	case d.digits() == 0:
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// compareSize compares two numbers of one sign as if they were positive.
func (d *Decimal) compareSize(e *Decimal) int {
	if d.digits() > 0 && d.exp != e.exp {
		return cmp.Compare(d.exp, e.exp)
	}
	for i := range max(d.digits(), e.digits()) {
		if a, b := d.digit(i), e.digit(i); a != b {
			return cmp.Compare(a, b)
		}
	}
	return 0
}

// equalNumbers says whether two numbers are the same, whatever their exponents.
func equalNumbers(a, b RawValue) bool {
	x, y := ReadDecimal(a), ReadDecimal(b)
	return x.Compare(&y) == 0 && (x.sign() == 0 || hugeExponent(a) == hugeExponent(b))
}

// hugeExponent returns an exponent that may be one of those for which maxExponent
// stands, without leading zeros, or "".
func hugeExponent(raw RawValue) string {
	_, exponent, _ := bytes.Cut(bytes.ToLower(raw), []byte("e"))
	digits := strings.TrimLeft(string(exponent), "+-0")
	if len(digits) < 19 {
		return ""
	}
	return digits
}

// IsLong says whether a number has more than that many digits, or such an
// exponent, so that exact arithmetic with it would be costly.
func IsLong(number []byte, digits int) bool {
	if len(number) > digits {
		return true
	}
	i := bytes.IndexAny(number, "eE")
	if i < 0 {
		return false
	}
	n, err := strconv.Atoi(string(number[i+1:]))
	return err != nil || n > digits || n < -digits
}

// A Divisor is a positive number, n times ten to the power exp.
type Divisor struct {
	n   uint64 // below 10^18, and no multiple of ten
	exp int64
}

// NewDivisor returns a number as a divisor. It reports false if it is not positive or has too many digits.
func NewDivisor(of *Decimal) (v Divisor, ok bool) {
	var room [20]byte
	d := of.full(room[:0])
	if d.sign() <= 0 || d.digits() > 18 {
		return Divisor{}, false
	}
	v = Divisor{exp: d.exp - int64(d.digits())}
	for i := range d.digits() {
		v.n = v.n*10 + uint64(d.digit(i))
	}
	return v, true
}

// Divides says whether d is an integer times the divisor.
func (v Divisor) Divides(of *Decimal) bool {
	var room [20]byte
	d := of.full(room[:0])
	if d.digits() == 0 {
		return true
	}
	shift := d.exp - int64(d.digits()) - v.exp
	if shift < 0 {
		return false // the last digit of d is not zero
	}
	rest := uint64(0)
	for i := range d.digits() {
		rest = (rest*10 + uint64(d.digit(i))) % v.n
	}
	for shift = min(shift, 60); shift > 0 && rest > 0; shift-- { // n has fewer factors 2 and 5
		rest = rest * 10 % v.n
	}
	return rest == 0
}
