package kit

import (
	"fmt"
	"strings"
	"time"
)

// SafeWord returns s if it is safe in a command that the user might copy, or "…" if it has other than
// plain characters, since s can come from an untrusted server.
func SafeWord(s string) string {
	if s == "" || strings.HasPrefix(s, "-") || strings.ContainsFunc(s, func(r rune) bool {
		return !isAlphanumeric(r) && !strings.ContainsRune("-._~:/@+,=%[]", r)
	}) {
		return "…"
	}
	return s
}

// Wrap wraps a text for the help.
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

// RoundDuration formats a duration in one unit.
func RoundDuration(d time.Duration) string {
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "days"}, {time.Hour, "hours"}, {time.Minute, "minutes"}} {
		if d >= 2*unit.size {
			return fmt.Sprintf("%d %s", (d+unit.size/2)/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%d seconds", (d+time.Second-1)/time.Second)
}

// MaxName is the maximum number of bytes shown of a name in a sentence.
const MaxName = 40

// IsPlainName reports whether a name, which can come from a server, consists of ASCII letters and digits,
// dots, hyphens and underscores.
func IsPlainName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !isAlphanumeric(r) && !strings.ContainsRune("._-", r)
	})
}

// isAlphanumeric reports whether r is a letter or digit of ASCII.
func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
