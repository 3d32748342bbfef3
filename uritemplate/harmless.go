package uritemplate

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// decode replaces percent-encoded bytes, once, and says whether there were any.
func decode(s string) (string, bool) {
	if strings.IndexByte(s, '%') < 0 {
		return s, false
	}
	found := false
	dst := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			high, low := hex(s[i+1]), hex(s[i+2])
			if high < 16 && low < 16 {
				dst = append(dst, high<<4|low)
				found = true
				i += 2
				continue
			}
		}
		dst = append(dst, s[i])
	}
	return string(dst), found
}

// hex returns the value of a hexadecimal digit, or 16.
func hex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 16
}

// maxEncoded is how often a value may be percent-encoded over and over.
const maxEncoded = 4

// harmless says whether a decoded value may be given to a handler, also one
// that decodes again by mistake.
func harmless(s string, slashes bool) bool {
	for range maxEncoded {
		if !harmlessAsIs(s, slashes) {
			return false
		}
		again, found := decode(s)
		if !found {
			return true
		}
		s = again
	}
	return false
}

// harmlessAsIs applies the rules of the package's comment.
func harmlessAsIs(s string, slashes bool) bool {
	if !utf8.ValidString(s) {
		return false
	}
	dots, other := 0, 0 // of the segment
	for _, r := range s {
		switch {
		case unicode.IsControl(r) || likeSlash(r):
			return false
		case r == '/' || r == '\\':
			if !slashes || dots > 0 && other == 0 {
				return false
			}
			dots, other = 0, 0
		case likeDot(r):
			dots++
		case !unicode.IsSpace(r): // Windows drops spaces after dots
			other++
		}
	}
	return dots == 0 || other > 0
}

// likeSlash says whether a character looks like a slash or backslash, or
// becomes one by normalisation.
func likeSlash(r rune) bool {
	switch r {
	case '\u2044', '\u2215', '\u2216', '\u29F5', '\u29F8', '\u29F9', '\uFE68', '\uFF0F', '\uFF3C':
		return true
	}
	return false
}

// likeDot says whether a character is a dot or becomes dots by normalisation.
func likeDot(r rune) bool {
	switch r {
	case '.', '\u2024', '\u2025', '\u2026', '\uFE52', '\uFF0E':
		return true
	}
	return false
}
