package schematext

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxName bounds a stranger's name in a path, in bytes.
const maxName = 80

// A Path names a place in the input or output schema of a tool in words.
type Path struct {
	Kind string // input or output
	text string // the steps that lead to the place; empty is the schema itself
}

func (p Path) String() string { return p.Kind + " " + cmp.Or(p.text, "schema") }

// Step returns the path of a part.
func (p Path) Step(text string) Path {
	if p.text == "" && !strings.HasPrefix(text, "field ") {
		text = "schema, " + text
	} else if p.text != "" {
		text = p.text + ", " + text
	}
	if len(text) > 3*maxName {
		text = "…" + text[len(text)-3*maxName:]
		text = strings.ToValidUTF8(text, "")
	}
	return Path{p.Kind, text}
}

// Field returns the path of a field.
func (p Path) Field(name string) Path { return p.Step("field " + Quote(name)) }

// Quote quotes a stranger's name for a path.
func Quote(name string) string {
	if len(name) > maxName {
		name = Cut(name, maxName) + "…"
	}
	return strconv.Quote(name)
}

// Clip cuts a text to limit bytes and says how much is missing.
func Clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	note := func(missing int) string { return fmt.Sprintf("… (%d more bytes)", missing) }
	head := Cut(s, limit-len(note(len(s))))
	return head + note(len(s)-len(head))
}

// Cut returns at most limit bytes of s, whole characters.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
