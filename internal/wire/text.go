package wire

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks, with the high bit of each byte, what ends a run of plain
// characters: a quote, a backslash, a control character or the start of a
// longer character. The lowest mark is exact: a subtraction borrows only from
// the byte above one that it marks.
func special(w uint64) uint64 {
	quote, slash := w^(ones*'"'), w^(ones*'\\')
	return ((quote - ones) | (slash - ones) | (w - ones*0x20) | w) & highs
}

// isPlain reports whether special does not mark c.
func isPlain(c byte) bool {
	return ' ' <= c && c < utf8.RuneSelf && c != '"' && c != '\\'
}

// word is the eight bytes at pos, the first one lowest. The compiler makes one
// load of it.
func word[T []byte | string](text T, pos int) uint64 {
	t := text[pos : pos+8]
	return uint64(t[0]) | uint64(t[1])<<8 | uint64(t[2])<<16 | uint64(t[3])<<24 |
		uint64(t[4])<<32 | uint64(t[5])<<40 | uint64(t[6])<<48 | uint64(t[7])<<56
}

// plain returns the position of the first character from pos on that is not
// plain, or the length of the text.
func plain[T []byte | string](text T, pos int) int {
	for words := 1; pos+8 <= len(text); words++ {
		if marks := special(word(text, pos)); marks != 0 {
			return pos + bits.TrailingZeros64(marks)/8
		}
		if pos += 8; words%4 == 0 { // a long text
			pos = plainBlocks(text, pos)
		}
	}
	for pos < len(text) && isPlain(text[pos]) {
		pos++
	}
	return pos
}

// plainBlocks skips blocks of plain characters. Without a branch for each word,
// the processor works on several of them at once.
func plainBlocks[T []byte | string](text T, pos int) int {
	for ; pos+32 <= len(text); pos += 32 {
		b := text[pos : pos+32]
		if special(word(b, 0))|special(word(b, 8))|special(word(b, 16))|special(word(b, 24)) != 0 {
			break
		}
	}
	return pos
}

// AppendString appends s as a JSON string literal. What is not valid UTF-8
// becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst, _ = appendQuoted(dst, s, "\uFFFD")
	return dst
}

// AppendText is [AppendString] for texts that must not be changed: if s is not
// valid UTF-8 it returns dst and false.
func AppendText(dst []byte, s string) ([]byte, bool) { return appendQuoted(dst, s, "") }

// appendQuoted appends s as a literal, with stand in place of each byte that is
// not valid UTF-8. If stand is empty it gives up there, and returns dst.
func appendQuoted(dst []byte, s, stand string) (_ []byte, ok bool) {
	out := append(slices.Grow(dst, len(s)+2), '"')
	run := 0 // start of what is not yet copied
	for pos := 0; ; {
		pos = plain(s, pos)
		if pos == len(s) {
			break
		}
		if c := s[pos]; c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[pos:])
			if r != utf8.RuneError || n > 1 {
				pos += n
				continue
			}
			if stand == "" {
				return dst, false
			}
			out = append(append(out, s[run:pos]...), stand...)
		} else {
			out = appendEscape(append(out, s[run:pos]...), c)
		}
		pos++
		run = pos
	}
	return append(append(out, s[run:]...), '"'), true
}

// AppendNumber appends a finite number as encoding/json does.
func AppendNumber(dst []byte, f float64) []byte {
	if whole := int64(f); float64(whole) == f && -1e15 < f && f < 1e15 && (whole != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(dst, whole, 10)
	}
	dst, _ = Append(dst, f) // finite
	return dst
}

const hexDigits = "0123456789abcdef"

// appendEscape appends a quote, a backslash or a control character, escaped.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// Text returns the content of a string literal, without escapes.
func Text(raw RawValue) string {
	inside := raw[1 : len(raw)-1]
	at := bytes.IndexByte(inside, '\\')
	if at < 0 {
		return string(inside)
	}
	var b strings.Builder
	b.Grow(len(inside) - 1)
	for at >= 0 {
		b.Write(inside[:at])
		r, n := unescape(inside[at:])
		b.WriteRune(r)
		inside = inside[at+n:]
		at = bytes.IndexByte(inside, '\\')
	}
	b.Write(inside)
	return b.String()
}

// AppendUnquoted appends the content of a string literal, without escapes.
func AppendUnquoted(dst []byte, raw RawValue) []byte {
	inside := raw[1 : len(raw)-1]
	dst = slices.Grow(dst, len(inside))
	for {
		at := bytes.IndexByte(inside, '\\')
		if at < 0 {
			return append(dst, inside...)
		}
		r, n := unescape(inside[at:])
		dst = utf8.AppendRune(append(dst, inside[:at]...), r)
		inside = inside[at+n:]
	}
}

// unescape reads the escape that a text starts with, and its length. An escape
// that is not valid stands for U+FFFD.
func unescape(text []byte) (r rune, size int) {
	switch c := At(text, 1); c {
	case 'u':
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 0:
		return utf8.RuneError, len(text)
	default:
		return rune(c), 2 // a quote, a slash, a backslash
	}
	high, ok := hex(text, 0)
	if !ok {
		return utf8.RuneError, min(6, len(text))
	}
	if high < 0xD800 || high > 0xDFFF {
		return rune(high), 6
	}
	if At(text, 6) != '\\' || At(text, 7) != 'u' {
		return utf8.RuneError, 6
	}
	low, _ := hex(text, 6)
	return utf16.DecodeRune(rune(high), rune(low)), min(12, len(text))
}

// hex reads the four digits of the \u escape at pos.
func hex(text []byte, pos int) (unit uint32, ok bool) {
	if pos+6 > len(text) {
		return 0, false
	}
	for _, c := range text[pos+2 : pos+6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		unit = unit<<4 | uint32(c)
	}
	return unit, true
}
