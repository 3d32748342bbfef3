package schema

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// What a text of JSON may be found to be by the functions here, which trust
// nothing: they read texts of whoever calls Check.
type trouble uint8

const (
	fine    trouble = iota
	notJSON         // against the grammar
	odd             // broken Unicode, which decoders replace
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// stops marks, with the high bit of each byte, what ends a run of plain
// characters in a string. The lowest mark is exact.
func stops(w uint64) uint64 {
	quote, slash := w^(ones*'"'), w^(ones*'\\')
	return ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w | w) & highs
}

// strictString returns the position after the string that starts at i.
func strictString(raw []byte, i int) (end int, escaped bool, t trouble) {
	for i++; i < len(raw); {
		for i+8 <= len(raw) {
			marks := stops(binary.LittleEndian.Uint64(raw[i:]))
			if marks != 0 {
				i += bits.TrailingZeros64(marks) / 8
				break
			}
			i += 8
		}
		switch c := byteAt(raw, i); {
		case c == '"':
			return i + 1, escaped, t
		case c == '\\':
			escaped = true
			n, found := strictEscape(raw, i)
			if found == notJSON {
				return i, true, notJSON
			}
			t = max(t, found)
			i += n
		case c < ' ':
			return i, escaped, notJSON
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(raw[i:])
			if r == utf8.RuneError && n == 1 {
				t = odd
			}
			i += n
		}
	}
	return i, escaped, notJSON
}

// strictEscape returns the length of the escape at i, with both halves of a
// surrogate pair.
func strictEscape(raw []byte, i int) (n int, t trouble) {
	switch byteAt(raw, i+1) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, fine
	case 'u':
	default:
		return 0, notJSON
	}
	for j := i + 2; j < i+6; j++ {
		if !isHex(byteAt(raw, j)) {
			return 0, notJSON
		}
	}
	unit := hex4(raw, i+2)
	if unit < 0xD800 || unit > 0xDFFF {
		return 6, fine
	}
	if unit < 0xDC00 && byteAt(raw, i+6) == '\\' && byteAt(raw, i+7) == 'u' {
		if low := hex4(raw, i+8); 0xDC00 <= low && low <= 0xDFFF {
			return 12, fine
		}
	}
	return 6, odd
}

// strictNumber returns the position after the number that starts at i, or -1.
// A plain one has no fraction and no exponent.
func strictNumber(raw []byte, i int) (end int, plain, exponent bool) {
	if byteAt(raw, i) == '-' {
		i++
	}
	if byteAt(raw, i) == '0' {
		i++
	} else if i = strictDigits(raw, i); i < 0 {
		return -1, false, false
	}
	plain = true
	if byteAt(raw, i) == '.' {
		plain = false
		if i = strictDigits(raw, i+1); i < 0 {
			return -1, false, false
		}
	}
	if c := byteAt(raw, i); c == 'e' || c == 'E' {
		plain, exponent = false, true
		i++
		if c := byteAt(raw, i); c == '+' || c == '-' {
			i++
		}
		if i = strictDigits(raw, i); i < 0 {
			return -1, false, false
		}
	}
	return i, plain, exponent
}

func strictDigits(raw []byte, i int) int {
	start := i
	for i < len(raw) && '0' <= raw[i] && raw[i] <= '9' {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// strictWord returns the position after true, false or null at i, or -1.
func strictWord(raw []byte, i int) int {
	word := ""
	switch byteAt(raw, i) {
	case 't':
		word = "true"
	case 'f':
		word = "false"
	case 'n':
		word = "null"
	}
	if end := i + len(word); word != "" && end <= len(raw) && string(raw[i:end]) == word {
		return end
	}
	return -1
}
