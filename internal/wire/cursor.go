package wire

import (
	"encoding/binary"
	"math/bits"
)

// The functions of this file walk over a text that is known to be valid JSON.
// They never read beyond any other text, and a position of -1 says that it was
// not JSON after all; At, Next and SkipValue may be given it.

// At returns the byte at pos, or 0 outside of the text, which is valid nowhere.
func At(text []byte, pos int) byte {
	if uint(pos) < uint(len(text)) {
		return text[pos]
	}
	return 0
}

// SkipSpace returns the position of the first byte from pos on that is not white space.
func SkipSpace(text []byte, pos int) int {
	for pos < len(text) && text[pos] <= ' ' && isSpace(text[pos]) {
		pos++
	}
	return pos
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t'
}

// Kind names the kind of value that starts with c.
func Kind(c byte) string {
	switch c {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// First returns the position of the first member or element of the container at
// pos, which shut ends. If there is none it says so, and pos is after the container.
func First(text []byte, pos int, shut byte) (first int, none bool) {
	first = SkipSpace(text, pos+1)
	if At(text, first) == shut {
		return first + 1, true
	}
	return first, false
}

// Next returns the position of the member or element that follows the one with
// that end. After the last one it says so, and pos is after the container.
func Next(text []byte, end int, shut byte) (pos int, last bool) {
	if end < 0 {
		return -1, true
	}
	end = SkipSpace(text, end)
	switch At(text, end) {
	case ',':
		return SkipSpace(text, end+1), false
	case shut:
		return end + 1, true
	}
	return -1, true
}

// MemberAt returns where the name of the member at pos ends, whether the name
// has escapes, and where the value starts.
func MemberAt(text []byte, pos int) (nameEnd int, escaped bool, value int) {
	if At(text, pos) != '"' {
		return -1, false, -1
	}
	nameEnd, escaped = SkipString(text, pos)
	if nameEnd < 0 {
		return -1, false, -1
	}
	colon := SkipSpace(text, nameEnd)
	if At(text, colon) != ':' {
		return -1, false, -1
	}
	return nameEnd, escaped, SkipSpace(text, colon+1)
}

// EachMember calls f with each member of the object at pos, for f to return where
// the value ends, and returns where the object ends.
func EachMember(text []byte, pos int, f func(name string, value int) (end int)) int {
	pos, last := First(text, pos, '}')
	for !last {
		nameEnd, _, value := MemberAt(text, pos)
		if nameEnd < 0 {
			return -1
		}
		pos, last = Next(text, f(Text(text[pos:nameEnd]), value), '}')
	}
	return pos
}

// EachElement is EachMember for an array.
func EachElement(text []byte, pos int, f func(pos int) (end int)) int {
	pos, last := First(text, pos, ']')
	for !last {
		pos, last = Next(text, f(pos), ']')
	}
	return pos
}

// MemberNamed returns where the value of a member starts in the object at pos, or
// -1 if there is none.
func MemberNamed(text []byte, pos int, name string) int {
	if At(text, pos) != '{' {
		return -1
	}
	pos, last := First(text, pos, '}')
	for !last && pos >= 0 {
		nameEnd, escaped, value := MemberAt(text, pos)
		if nameEnd < 0 {
			return -1
		}
		if !escaped && string(text[pos+1:nameEnd-1]) == name || escaped && Text(text[pos:nameEnd]) == name {
			return value
		}
		pos, last = Next(text, SkipValue(text, value), '}')
	}
	return -1
}

// SkipString returns the position after the string that starts at pos, and
// whether it has escapes.
func SkipString(text []byte, pos int) (end int, escaped bool) {
	for pos++; pos < len(text); pos++ {
		if pos+8 <= len(text) {
			marks := quotes(binary.LittleEndian.Uint64(text[pos:]))
			for marks == 0 {
				if pos = skipUnquoted(text, pos+8); pos+8 > len(text) {
					break
				}
				marks = quotes(binary.LittleEndian.Uint64(text[pos:]))
			}
			if marks != 0 {
				pos += bits.TrailingZeros64(marks) / 8
			}
		}
		switch At(text, pos) {
		case '"':
			return pos + 1, escaped
		case '\\':
			escaped = true
			pos++
		}
	}
	return -1, escaped
}

// skipUnquoted skips words of eight bytes without quotes and backslashes, and
// blocks of them where a branch for each word would be dear.
func skipUnquoted(text []byte, pos int) int {
	for pos+8 <= len(text) && quotes(word(text, pos)) == 0 {
		for pos += 8; pos+32 <= len(text); pos += 32 {
			b := text[pos : pos+32]
			if quotes(word(b, 0))|quotes(word(b, 8))|quotes(word(b, 16))|quotes(word(b, 24)) != 0 {
				break
			}
		}
	}
	return pos
}

// quotes marks quotes and backslashes with the high bit of each byte. The lowest
// mark is exact.
func quotes(w uint64) uint64 {
	quote, slash := w^(ones*'"'), w^(ones*'\\')
	return ((quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// SkipScalar returns the position after the number or word that starts at pos.
func SkipScalar(text []byte, pos int) int {
	end := pos
	for end < len(text) && !delimits(text[end]) {
		end++
	}
	if end == pos {
		return -1
	}
	return end
}

// delimits says whether c ends a number or word.
func delimits(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', ',', ':', ']', '}', '[', '{', '"':
		return true
	}
	return false
}

// SkipValue returns the position after the value that starts at pos.
func SkipValue(text []byte, pos int) int {
	depth := 0
	for pos >= 0 && pos < len(text) {
		switch text[pos] {
		case '"':
			pos, _ = SkipString(text, pos)
		case '{', '[':
			depth++
			pos++
		case '}', ']':
			depth--
			pos++
		case ',', ':', ' ', '\t', '\n', '\r':
			pos++
			continue
		default:
			pos = SkipScalar(text, pos)
		}
		if depth <= 0 {
			return pos
		}
	}
	return -1
}
