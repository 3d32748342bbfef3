package filesystem

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// formatSize shows a number of bytes, as the original server does.
func formatSize(bytes int64) string {
	const step = 1024
	if bytes < step {
		return fmt.Sprintf("%d B", max(bytes, 0))
	}
	units := []string{"KB", "MB", "GB", "TB"}
	unit, name := int64(step), 0
	for name < len(units)-1 && bytes/unit >= step {
		unit *= step
		name++
	}
	whole, rest := bytes/unit, bytes%unit
	hundredths := (rest*200 + unit) / (2 * unit) // halves are rounded up
	return fmt.Sprintf("%d.%02d %s", whole+hundredths/100, hundredths%100, units[name])
}

// pad fills text up to a width, which counts as JavaScript counts characters.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-len(utf16.Encode([]rune(text)))))
}

// collation is the order of the characters of ASCII in English: signs, digits, letters.
const collation = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"

// compareNames orders names as people expect it: without regard to case, and small
// letters first where nothing else differs.
func compareNames(a, b string) int {
	x, y := []rune(a), []rune(b)
	for i := range min(len(x), len(y)) {
		if c := cmp.Compare(weight(x[i]), weight(y[i])); c != 0 {
			return c
		}
	}
	if c := cmp.Compare(len(x), len(y)); c != 0 {
		return c
	}
	for i := range x {
		if x[i] != y[i] {
			return cmp.Compare(y[i], x[i]) // small letters have the greater codes
		}
	}
	return 0
}

func weight(r rune) int {
	r = unicode.ToLower(r)
	if i := strings.IndexRune(collation, r); i >= 0 {
		return i
	}
	return len(collation) + int(r)
}
