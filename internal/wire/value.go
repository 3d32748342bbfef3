package wire

import (
	"bytes"
	"iter"
	"math/big"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nesting of texts that have been accepted already, under
// whatever limits: some of what follows reads a text once for each level.
const maxDepth = 512

// elements yields the elements of an array that is known to be valid.
func elements(raw RawValue) iter.Seq2[int, RawValue] {
	return func(yield func(int, RawValue) bool) {
		pos := after(raw, 1)
		for i := 0; raw[pos] != ']'; i++ {
			end := skip(raw, pos)
			if !yield(i, raw[pos:end:end]) {
				return
			}
			if pos = after(raw, end); raw[pos] == ',' {
				pos = after(raw, pos+1)
			}
		}
	}
}

// Equal says whether a and b are the same JSON value: members in any order,
// numbers in any spelling (exactly, never rounded), strings with any escapes.
// What is not valid, or nested deeper than 512, equals nothing.
func Equal(a, b RawValue) bool {
	lim := Limits{Depth: maxDepth}
	return Valid(a, lim) == nil && Valid(b, lim) == nil && equal(trim(a), trim(b))
}

func equal(a, b RawValue) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if kindOf(a[0]) != kindOf(b[0]) {
		return false
	}
	switch a[0] {
	case '{':
		return equalObjects(indexObject(a), indexObject(b))
	case '[':
		return equalArrays(a, b)
	case '"':
		return Text(a) == Text(b)
	case 't', 'f', 'n':
		return false // the texts differ
	}
	return decimalOf(a) == decimalOf(b)
}

func equalObjects(a, b Object) bool {
	if a.Len() != b.Len() {
		return false
	}
	for name, x := range a.All() {
		y, ok := b.Member(name)
		if !ok || !equal(x, y) {
			return false
		}
	}
	return true
}

func equalArrays(a, b RawValue) bool {
	next, stop := iter.Pull2(elements(b))
	defer stop()
	for _, x := range elements(a) {
		_, y, ok := next()
		if !ok || !equal(x, y) {
			return false
		}
	}
	_, _, more := next()
	return !more
}

// decimal is a number in its one form: digits without zeros at either end,
// times ten to the exponent. Zero has no digits and no sign.
type decimal struct {
	negative bool
	digits   string
	exponent int64
	huge     string // the exponent as written, if 64 bits may not hold it
}

func decimalOf(raw RawValue) decimal {
	var d decimal
	if raw[0] == '-' {
		d.negative, raw = true, raw[1:]
	}
	mantissa, exponent := raw, RawValue(nil)
	if i := bytes.IndexAny(raw, "eE"); i >= 0 {
		mantissa, exponent = raw[:i], raw[i+1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte{'.'})
	digits := append(bytes.Clone(whole), fraction...)
	shift := int64(-len(fraction))
	digits = bytes.TrimLeft(digits, "0")
	trimmed := bytes.TrimRight(digits, "0")
	shift += int64(len(digits) - len(trimmed))
	if len(trimmed) == 0 {
		return decimal{}
	}
	d.digits = string(trimmed)
	d.setExponent(exponent, shift)
	return d
}

func (d *decimal) setExponent(exponent RawValue, shift int64) {
	d.exponent = shift
	if len(exponent) == 0 {
		return
	}
	sign := exponent[0] == '-'
	digits := bytes.TrimLeft(bytes.TrimLeft(exponent, "+-"), "0")
	if len(digits) > 17 {
		d.huge = strconv.FormatBool(sign) + string(digits)
		return
	}
	n, _ := strconv.ParseInt("0"+string(digits), 10, 64) // digits only
	if sign {
		n = -n
	}
	d.exponent += n
}

// Canonical returns the canonical form of v (RFC 8785) in a new slice, for
// digests. One thing is added: where an integer is beyond what a double holds
// exactly, integers keep their digits, so that different integers never
// share a digest. The error is an *[Error].
func Canonical(v RawValue) (RawValue, error) {
	_, _, err := scan(v, Limits{Depth: maxDepth}, nil)
	if err != nil {
		return nil, err
	}
	out := jsontext.Value(bytes.Clone(v))
	if err := out.Canonicalize(jsontext.CanonicalizeRawInts(!hasBigInteger(v))); err != nil {
		return nil, newError("", err, "has no canonical form")
	}
	return RawValue(out), nil
}

// hasBigInteger says whether a valid text has an integer that a double does
// not hold exactly.
func hasBigInteger(v RawValue) bool {
	for pos := 0; pos < len(v); {
		switch c := v[pos]; {
		case c == '"':
			pos = skipText(v, pos)
		case c == '-' || '0' <= c && c <= '9':
			end := skip(v, pos)
			if isBigInteger(v[pos:end]) {
				return true
			}
			pos = end
		default:
			pos++
		}
	}
	return false
}

func isBigInteger(number RawValue) bool {
	if len(number) <= 15 || bytes.ContainsAny(number, ".eE") {
		return false
	}
	if len(number) > 400 {
		return true // beyond every double
	}
	n, ok := new(big.Int).SetString(string(number), 10)
	if !ok {
		return true
	}
	_, accuracy := new(big.Float).SetInt(n).Float64()
	return accuracy != big.Exact
}
