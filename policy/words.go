package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

func wordOf(names []string, i int, what string) string {
	if i < len(names) && names[i] != "" {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", what, i)
}

// unknownWord is the error for a word that is none of known: it names the nearest one, and otherwise
// all.
func unknownWord[S ~string](what, word string, known []S) error {
	if near := nearest(word, known); near != "" {
		return fmt.Errorf("no such %s: %q; did you mean %q?", what, word, near)
	}
	return fmt.Errorf("no such %s: %q; write %s", what, word, choices(known))
}

// choices lists words for an error: "a, b or c".
func choices[S ~string](words []S) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i > 0 && i == len(words)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// nearest returns the known word that begins with word, or else the one that the fewest changes of a
// letter make of it, or "" if both are far.
func nearest[S ~string](word string, known []S) S {
	var best S
	word = strings.ToLower(word)
	least := 3 + len(word)/4
	for _, k := range known {
		n := changes(word, string(k))
		if len(word) > 2 && strings.HasPrefix(string(k), word) {
			n = 1
		}
		if n < min(least, 1+len(word)/2) {
			best, least = k, n
		}
	}
	return best
}

// changes returns how many letters must be put in, taken out, replaced or swapped with the next one to
// make b of a, which is cut after 64 bytes.
func changes(a, b string) int {
	a = a[:min(len(a), 64)]
	before, last, row := []int(nil), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, slices.Clone(row)
	}
	return last[len(b)]
}

// word shows a word that somebody chose in a line of text: in quotes if it has blanks, commas, quotes
// or characters that do not print.
func word(s string) string {
	special := func(r rune) bool {
		return !unicode.IsGraphic(r) || unicode.IsSpace(r) || strings.ContainsRune("\",;`", r)
	}
	if s == "" || strings.ContainsFunc(s, special) {
		return strconv.Quote(s)
	}
	return s
}

// phrase is word for what may have blanks, commas and quotes.
func phrase(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return strconv.Quote(s)
	}
	return s
}

func wordList[S ~string](list []S) string {
	shown := make([]string, len(list))
	for i, s := range list {
		shown[i] = word(string(s))
	}
	return choices(shown)
}
