package schema

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The functions here read JSON text that has passed the strict pass of
// internal/wire. They never read beyond the text, whatever it is; a position
// of -1 says that it was not JSON after all.

// maxNesting bounds recursion over texts that did not pass the wire's bound.
const maxNesting = 1000

func skipSpace(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\n' || raw[i] == '\r') {
		i++
	}
	return i
}

// byteAt returns the byte at i, or 0 beyond the end.
func byteAt(raw []byte, i int) byte {
	if i >= 0 && i < len(raw) {
		return raw[i]
	}
	return 0
}

// stringEnd returns the position after the string literal that starts at i.
func stringEnd(raw []byte, i int) (end int, escaped bool) {
	for i++; i < len(raw); {
		for i+8 <= len(raw) {
			w := binary.LittleEndian.Uint64(raw[i:])
			quote, slash := w^(ones*'"'), w^(ones*'\\')
			marks := ((quote-ones)&^quote | (slash-ones)&^slash) & highs // the lowest is exact
			if marks != 0 {
				i += bits.TrailingZeros64(marks) / 8
				break
			}
			i += 8
		}
		switch byteAt(raw, i) {
		case '"':
			return i + 1, escaped
		case '\\':
			escaped = true
			i++
		}
		i++
	}
	return -1, escaped
}

// scalarEnd returns the position after the number or word that starts at i.
func scalarEnd(raw []byte, i int) int {
	j := i
	for j < len(raw) && !delimits(raw[j]) {
		j++
	}
	if j == i {
		return -1
	}
	return j
}

// delimits says whether c ends a number or word.
func delimits(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', ',', ':', ']', '}', '[', '{', '"':
		return true
	}
	return false
}

// skipValue returns the position after the value that starts at i.
func skipValue(raw []byte, i int) int {
	depth := 0
	for i >= 0 && i < len(raw) {
		switch raw[i] {
		case '"':
			i, _ = stringEnd(raw, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\n', '\r':
			i++
			continue
		default:
			i = scalarEnd(raw, i)
		}
		if depth <= 0 {
			return i
		}
	}
	return -1
}

// memberAt reads a member's name at i and returns the literal's end and the
// start of the value.
func memberAt(raw []byte, i int) (nameEnd int, escaped bool, value int) {
	if byteAt(raw, i) != '"' {
		return -1, false, -1
	}
	nameEnd, escaped = stringEnd(raw, i)
	if nameEnd < 0 {
		return -1, false, -1
	}
	colon := skipSpace(raw, nameEnd)
	if byteAt(raw, colon) != ':' {
		return -1, false, -1
	}
	return nameEnd, escaped, skipSpace(raw, colon+1)
}

// next steps from the end of a member or element to the next one. It returns
// last if the container, which ends with shut, ends; i is then after it.
func next(raw []byte, end int, shut byte) (i int, last bool) {
	if end < 0 {
		return -1, true
	}
	end = skipSpace(raw, end)
	switch byteAt(raw, end) {
	case ',':
		return skipSpace(raw, end+1), false
	case shut:
		return end + 1, true
	}
	return -1, true
}

// first returns the start of the first member or element of the container at
// i, or none if it is empty; i is then after it.
func first(raw []byte, i int, shut byte) (start int, none bool) {
	start = skipSpace(raw, i+1)
	if byteAt(raw, start) == shut {
		return start + 1, true
	}
	return start, false
}

// unquote appends the text between the quotes of a string literal, without
// escapes.
func unquote(dst, inner []byte) []byte {
	for {
		plain, r, rest, more := unescape(inner)
		dst = append(dst, plain...)
		if !more {
			return dst
		}
		dst = utf8.AppendRune(dst, r)
		inner = rest
	}
}

// unquoted is the same as a text of its own.
func unquoted(inner []byte) string {
	var b strings.Builder
	b.Grow(len(inner))
	for {
		plain, r, rest, more := unescape(inner)
		b.Write(plain)
		if !more {
			return b.String()
		}
		b.WriteRune(r)
		inner = rest
	}
}

// unescape cuts a text after its first escape, of which r is the meaning. Without
// one, all of it is plain.
func unescape(text []byte) (plain []byte, r rune, rest []byte, more bool) {
	at := bytes.IndexByte(text, '\\')
	if at < 0 || at+1 == len(text) {
		return text, 0, nil, false
	}
	plain, rest = text[:at], text[at+2:]
	switch c := text[at+1]; c {
	case 'b':
		r = '\b'
	case 'f':
		r = '\f'
	case 'n':
		r = '\n'
	case 'r':
		r = '\r'
	case 't':
		r = '\t'
	case 'u':
		r = hex4(rest, 0)
		rest = rest[min(4, len(rest)):]
		if utf16.IsSurrogate(r) && byteAt(rest, 0) == '\\' && byteAt(rest, 1) == 'u' {
			r = utf16.DecodeRune(r, hex4(rest, 2))
			rest = rest[min(6, len(rest)):]
		}
	default:
		r = rune(c)
	}
	return plain, r, rest, true
}

// hex4 is the number of four hexadecimal digits, or U+FFFD.
func hex4(b []byte, i int) (r rune) {
	if i+4 > len(b) {
		return utf8.RuneError
	}
	for _, c := range b[i : i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return utf8.RuneError
		}
		r = r<<4 | rune(c)
	}
	return r
}

// kindAt names the type of the value that starts with c.
func kindAt(c byte) string {
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

// plainInteger says whether a number is spelled as Go's decoders want an
// integer: without fraction or exponent.
func plainInteger(tok []byte) bool {
	for _, c := range tok {
		if c == '.' || c == 'e' || c == 'E' {
			return false
		}
	}
	return true
}

// integerText spells a number without fraction and exponent. It is not ok if
// the number is no integer; an integer of more than 20 digits is big.
func integerText(tok []byte) (text string, ok, big bool) {
	sign, rest := "", string(tok)
	if strings.HasPrefix(rest, "-") {
		sign, rest = "-", rest[1:]
	}
	exp := 0
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		n, err := strconv.Atoi(rest[i+1:])
		if err != nil || n > 1e9 || n < -1e9 {
			n = 1e9
			if strings.HasPrefix(rest[i+1:], "-") {
				n = -1e9
			}
		}
		exp, rest = n, rest[:i]
	}
	whole, fraction, _ := strings.Cut(rest, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0", true, false
	}
	exp -= len(fraction)
	short := strings.TrimRight(digits, "0")
	exp += len(digits) - len(short)
	switch {
	case exp < 0:
		return "", false, false
	case len(short)+exp > 20:
		return "", true, true
	}
	return sign + short + strings.Repeat("0", exp), true, false
}
