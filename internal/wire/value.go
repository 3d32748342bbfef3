package wire

import (
	"bytes"
	"iter"
	"math/big"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nesting of texts that have been accepted already, under
// whatever limits: some of what follows reads a text once for each level.
const maxDepth = 512

// elements yields the elements of an array that is known to be valid.
func elements(raw RawValue) iter.Seq2[int, RawValue] {
	return func(yield func(int, RawValue) bool) {
		pos, last := First(raw, 0, ']')
		for i := 0; !last; i++ {
			end := SkipValue(raw, pos)
			if !yield(i, raw[pos:end:end]) {
				return
			}
			pos, last = Next(raw, end, ']')
		}
	}
}

// Equal says whether a and b are the same JSON value: members in any order,
// numbers in any spelling (exactly, never rounded), strings with any escapes.
// What is not valid, or nested deeper than 512, equals nothing.
func Equal(a, b RawValue) bool {
	lim := Limits{Depth: maxDepth}
	return Valid(a, lim) == nil && Valid(b, lim) == nil && EqualValid(trim(a), trim(b))
}

// EqualValid is [Equal] of two texts that are known to be valid, without white
// space around them.
func EqualValid(a, b RawValue) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if Kind(a[0]) != Kind(b[0]) {
		return false
	}
	switch a[0] {
	case '{':
		return equalObjects(indexObject(a), indexObject(b))
	case '[':
		return equalArrays(a, b)
	case '"':
		return (bytes.IndexByte(a, '\\') >= 0 || bytes.IndexByte(b, '\\') >= 0) && Text(a) == Text(b)
	case 't', 'f', 'n':
		return false // the texts differ
	}
	return equalNumbers(a, b)
}

func equalObjects(a, b Object) bool {
	if a.Len() != b.Len() {
		return false
	}
	for name, x := range a.All() {
		y, ok := b.Member(name)
		if !ok || !EqualValid(x, y) {
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
		if !ok || !EqualValid(x, y) {
			return false
		}
	}
	_, _, more := next()
	return !more
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
			pos, _ = SkipString(v, pos)
		case c == '-' || '0' <= c && c <= '9':
			end := SkipValue(v, pos)
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
