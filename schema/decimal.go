package schema

import (
	"bytes"
	"strconv"
)

// decimal is a number exactly as JSON writes it: 0.WF times ten to the power
// exp, where W and F are the digits of whole and fraction. There are no zeros
// at either end, and no digits at all if it is zero.
type decimal struct {
	negative        bool
	whole, fraction []byte // of the text it was read from
	exp             int
	small           int64 // the number itself
	isSmall         bool  // if it is a plain integer that fits
}

// readDecimal reads a number that is not wild.
func readDecimal(tok []byte) (d decimal) {
	if d.small, d.isSmall = smallInteger(tok); d.isSmall {
		return d
	}
	return exactly(tok)
}

// smallInteger reads a plain integer of up to 18 digits.
func smallInteger(tok []byte) (n int64, ok bool) {
	digits := tok
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if len(digits) < len(tok) {
		n = -n
	}
	return n, true
}

// exactly reads any number that is not wild by its digits.
func exactly(tok []byte) (d decimal) {
	if tok[0] == '-' {
		d.negative, tok = true, tok[1:]
	}
	if i := bytes.IndexAny(tok, "eE"); i >= 0 {
		d.exp, _ = strconv.Atoi(string(tok[i+1:])) // in range, as it is not wild
		tok = tok[:i]
	}
	d.whole, d.fraction, _ = bytes.Cut(tok, []byte("."))
	d.whole = bytes.TrimLeft(d.whole, "0")
	d.fraction = bytes.TrimRight(d.fraction, "0")
	d.exp += len(d.whole)
	if len(d.whole) == 0 {
		short := bytes.TrimLeft(d.fraction, "0")
		d.exp -= len(d.fraction) - len(short)
		d.fraction = short
	}
	if len(d.fraction) == 0 {
		d.whole = bytes.TrimRight(d.whole, "0")
	}
	if d.digits() == 0 {
		return decimal{}
	}
	return d
}

// full is the same number with its digits, for arithmetic.
func (d *decimal) full(dst []byte) decimal {
	if !d.isSmall {
		return *d
	}
	return exactly(strconv.AppendInt(dst, d.small, 10))
}

func (d *decimal) digits() int { return len(d.whole) + len(d.fraction) }

// digit returns the digit at i, or zero after the last.
func (d *decimal) digit(i int) byte {
	switch {
	case i < len(d.whole):
		return d.whole[i] - '0'
	case i < d.digits():
		return d.fraction[i-len(d.whole)] - '0'
	}
	return 0
}

// isInteger looks at the value, not at how it is written.
func (d *decimal) isInteger() bool {
	return d.isSmall || d.digits() == 0 || d.exp >= d.digits()
}

// compare returns -1, 0 or 1 as d is below, equal to or above e.
func (d *decimal) compare(e *decimal) int {
	if d.isSmall && e.isSmall {
		switch {
		case d.small < e.small:
			return -1
		case d.small > e.small:
			return 1
		}
		return 0
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

func (d *decimal) sign() int {
	switch {
	case d.digits() == 0:
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// compareSize compares two numbers of one sign as if they were positive.
func (d *decimal) compareSize(e *decimal) int {
	if d.digits() > 0 && d.exp != e.exp {
		if d.exp < e.exp {
			return -1
		}
		return 1
	}
	for i := range max(d.digits(), e.digits()) {
		if a, b := d.digit(i), e.digit(i); a != b {
			if a < b {
				return -1
			}
			return 1
		}
	}
	return 0
}

// A divisor is a positive number, n times ten to the power exp.
type divisor struct {
	n   uint64 // below 10^18, and no multiple of ten
	exp int
}

// newDivisor reports false if d is not positive or has too many digits.
func newDivisor(of *decimal) (divisor, bool) {
	var room [20]byte
	d := of.full(room[:0])
	if d.sign() <= 0 || d.digits() > 18 {
		return divisor{}, false
	}
	v := divisor{exp: d.exp - d.digits()}
	for i := range d.digits() {
		v.n = v.n*10 + uint64(d.digit(i))
	}
	return v, true
}

// divides says whether d is an integer times the divisor.
func (v divisor) divides(of *decimal) bool {
	var room [20]byte
	d := of.full(room[:0])
	if d.digits() == 0 {
		return true
	}
	shift := d.exp - d.digits() - v.exp
	if shift < 0 {
		return false // the last digit of d is not zero
	}
	rest := uint64(0)
	for i := range d.digits() {
		rest = (rest*10 + uint64(d.digit(i))) % v.n
	}
	for ; shift > 0 && rest > 0; shift-- {
		rest = rest * 10 % v.n
	}
	return rest == 0
}
