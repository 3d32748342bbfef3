package kit

import "strings"

// SafeWord is a text as a word of a command that the person may copy: strangers
// wrote it, so that what is more than plain characters is left out.
func SafeWord(s string) string {
	if s == "" || strings.HasPrefix(s, "-") || strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._~:/@+,=%[]", r)
	}) {
		return "…"
	}
	return s
}

// Wrap breaks a text into lines for the help.
func Wrap(text string) string {
	var b strings.Builder
	width := 0
	for i, word := range strings.Fields(text) {
		switch {
		case width+len(word) > 78:
			b.WriteByte('\n')
			width = 0
		case i > 0:
			b.WriteByte(' ')
		}
		b.WriteString(word)
		width += len(word) + 1
	}
	return b.String()
}
