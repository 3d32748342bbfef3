package host

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-mcp/parley/mcp"
)

// maxIndent is the depth beyond which Indent stops indenting further, so that
// deep values do not become mostly spaces.
const maxIndent = 32

// Escape makes a stranger's text safe to show: what could move a cursor, hide
// text or reverse its order is written as \u{...}. That is control characters
// but newline and tab, bidirectional and other format characters, invisible
// letters, private use and invalid UTF-8. The pair of carriage return and
// newline becomes a newline.
func Escape(s string) string {
	if plain(s, true) {
		return s
	}
	return escape(strings.ReplaceAll(s, "\r\n", "\n"), true)
}

// EscapeLine is like [Escape] for text that must stay on one line: newlines
// and tabs are escaped too.
func EscapeLine(s string) string {
	if plain(s, false) {
		return s
	}
	return escape(s, false)
}

// plain reports whether s is printable ASCII, which needs no second look.
func plain(s string, lines bool) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case ' ' <= c && c <= '~':
		case lines && (c == '\n' || c == '\t'):
		default:
			return false
		}
	}
	return true
}

func escape(s string, lines bool) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case lines && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case hidden(r):
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// hidden reports whether a character cannot be seen for what it is.
func hidden(r rune) bool {
	if ' ' <= r && r <= '~' {
		return false
	}
	switch r {
	case 0x115F, 0x1160, 0x3164, 0xFFA0: // Hangul fillers: letters without a shape
		return true
	case 0x034F, 0x2800, 0x2065: // grapheme joiner, blank Braille, reserved as invisible
		return true
	case 0x17B4, 0x17B5, 0x1D159: // Khmer vowels and a note head without a shape
		return true
	}
	switch {
	// Variation selectors, which can carry hidden bytes; the last two of the
	// first sixteen stay, because they are usual after symbols.
	case 0x180B <= r && r <= 0x180F, 0xFE00 <= r && r <= 0xFE0D:
		return true
	case 0xFFF0 <= r && r <= 0xFFFB, 0xE0000 <= r && r <= 0xE0FFF: // all of it invisible, or reserved as such
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp)
}

// Indent lays JSON out over lines for a person to read. The text of strings is
// kept as it came, but for characters that [Escape] would escape: they become
// JSON escapes, so that the result is still the same value. raw must be valid
// JSON; anything else is shown escaped, as it is.
func Indent(raw mcp.RawValue) string {
	var b strings.Builder
	depth := 0
	line := func() {
		b.WriteByte('\n')
		for range min(depth, maxIndent) {
			b.WriteString("  ")
		}
	}
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; c {
		case ' ', '\t', '\r', '\n':
		case '"':
			end := stringEnd(raw, i)
			indentString(&b, raw[i:end])
			i = end - 1
		case '{', '[':
			b.WriteByte(c)
			if next := skipSpace(raw, i+1); next < len(raw) && (raw[next] == '}' || raw[next] == ']') {
				b.WriteByte(raw[next])
				i = next
				continue
			}
			depth++
			line()
		case '}', ']':
			depth--
			line()
			b.WriteByte(c)
		case ',':
			b.WriteByte(c)
			line()
		case ':':
			b.WriteString(": ")
		default:
			if c < ' ' || c > '~' {
				return Escape(string(raw))
			}
			b.WriteByte(c)
		}
	}
	return b.String()
}

// stringEnd returns the index after the string literal that starts at i.
func stringEnd(raw mcp.RawValue, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

func skipSpace(raw mcp.RawValue, i int) int {
	for i < len(raw) && strings.IndexByte(" \t\r\n", raw[i]) >= 0 {
		i++
	}
	return i
}

// indentString writes a string literal with hidden characters as JSON escapes.
func indentString(b *strings.Builder, lit []byte) {
	for _, r := range string(lit) {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			high, low := (r-0x10000)>>10+0xD800, (r-0x10000)&0x3FF+0xDC00
			fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(b, `\u%04x`, r)
		}
	}
}
