// Package printable says which texts people can be shown as they are.
package printable

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line says whether a text is UTF-8 of characters that can be printed, which leaves line breaks out, and
// characters that cannot be seen.
func Line(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) })
}

// Name says whether a text is a Line of 1 to longest bytes.
func Name(text string, longest int) bool {
	return text != "" && len(text) <= longest && Line(text)
}
