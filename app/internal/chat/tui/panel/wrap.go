package panel

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// mark begins the rows of a stranger's text but one that follows a label: no row of a
// stranger can pass for one of this program.
const mark = "│ "

// goesOn ends a row that is broken within a word.
const goesOn = `\`

// sentenceIndent begins the further rows of a sentence.
const sentenceIndent = "    "

// cluster returns how many bytes the first character of a text that is not empty has, with
// what combines with it, and how many columns it takes.
func cluster(s string) (size, columns int) {
	if s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return 1, 1
	}
	c, columns := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	return len(c), columns
}

// width is how many columns a text takes.
func width(s string) int {
	n := 0
	for len(s) > 0 {
		size, columns := cluster(s)
		s, n = s[size:], n+columns
	}
	return n
}

// fit is how many bytes of a text go into so many columns, at least one character: all of
// it, or up to a blank in the second half, or as many as there is room for beside goesOn.
func fit(text string, columns int) int {
	at, blank, last := 0, 0, 0
	for i := 0; i < len(text); {
		size, w := cluster(text[i:])
		if at+w > columns && i > 0 {
			switch {
			case blank > i/2:
				return blank
			case last > 0:
				return last
			}
			return i
		}
		if at+w <= columns-len(goesOn) {
			last = i + size
		}
		at, i = at+w, i+size
		if text[i-1] == ' ' {
			blank = i
		}
	}
	return len(text)
}

// sentence breaks a sentence between words, or within one that is longer than a row.
func sentence(text string, columns int, indent string) []string {
	text = oneLine(text)
	var rows []string
	first := columns
	for begin := ""; ; begin = indent {
		end := fit(text, max(first, 1))
		row := text[:end]
		text = text[end:]
		if text != "" && !strings.HasSuffix(row, " ") && width(begin)+width(row) < columns {
			row += goesOn
		}
		rows = append(rows, begin+strings.TrimRight(row, " "))
		if text == "" {
			return rows
		}
		first = columns - width(indent)
	}
}

var lineReplacer = strings.NewReplacer("\t", " ", "\n", " ")

// oneLine is a text with blanks in the place of tabs and newlines.
func oneLine(text string) string {
	if !strings.ContainsAny(text, "\t\n") {
		return text
	}
	return lineReplacer.Replace(text)
}

// number writes a number with commas between thousands.
func number(n int) string {
	if n < 1000 {
		return itoa(n)
	}
	rest := itoa(n % 1000)
	return number(n/1000) + "," + strings.Repeat("0", 3-len(rest)) + rest
}
