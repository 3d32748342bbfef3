package ui

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what is shown as it is: more could push what stands before or after it out of
// sight.
const (
	maxBlanks     = 8  // in a row, within a line
	maxIndented   = 64 // at the beginning of a line: deep JSON has as many
	maxEmptyLines = 3  // in a row
)

// Condense shows long runs of blanks in a text, and of empty lines, by their number, so that
// none pushes the rest out of sight. Blanks are what Unicode calls white space, and the
// escapes of JSON for it. The text is escaped already.
func Condense(text string) string {
	var b strings.Builder
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		if i > 0 {
			b.WriteByte('\n')
		}
		empty := i
		for empty < len(lines) && strings.TrimSpace(lines[empty]) == "" {
			empty++
		}
		if n := empty - i; n > maxEmptyLines {
			fmt.Fprintf(&b, "[%d empty lines]", n)
			i = empty - 1
			continue
		}
		condenseLine(&b, lines[i])
	}
	return b.String()
}

// condenseLine writes a line with its long runs of blanks as numbers.
func condenseLine(b *strings.Builder, line string) {
	for i := 0; i < len(line); {
		end, n := i, 0
		for size := blankAt(line[end:]); size > 0; size = blankAt(line[end:]) {
			end, n = end+size, n+1
		}
		limit := maxBlanks
		if i == 0 {
			limit = maxIndented
		}
		switch {
		case n > limit:
			fmt.Fprintf(b, "[%d blanks]", n)
			i = end
		case n > 0:
			b.WriteString(line[i:end])
			i = end
		default:
			size := max(escapeAt(line[i:]), 1)
			b.WriteString(line[i : i+size])
			i += size
		}
	}
}

// blankAt is the length of the blank that a text begins with, or 0.
func blankAt(s string) int {
	if escaped := escapeAt(s); escaped > 0 {
		switch s[:escaped] {
		case `\n`, `\r`, `\t`, `\f`, `\u0020`, `\u00a0`, `\u000a`, `\u000d`, `\u0009`:
			return escaped
		}
		return 0
	}
	if r, size := utf8.DecodeRuneInString(s); unicode.IsSpace(r) {
		return size
	}
	return 0
}

// escapeAt is the length of the escape of JSON that a text begins with, or 0.
func escapeAt(s string) int {
	const unicodeEscape = len(`\u0000`)
	switch {
	case len(s) < 2 || s[0] != '\\':
		return 0
	case s[1] == 'u' && len(s) >= unicodeEscape:
		return unicodeEscape
	}
	return 2
}
