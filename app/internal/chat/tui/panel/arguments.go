package panel

import (
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

func itoa(n int) string { return strconv.Itoa(n) }

// A part is one value within JSON, with the way there.
type part struct {
	// pointer is its JSON pointer, not escaped; empty for the whole.
	pointer string
	// label is how the form names it, escaped: a member of the whole by its name.
	label string
	value mcp.RawValue
	// text is the value as it is shown, escaped; lines is how many it has if it is a text of
	// several, else 0.
	text  string
	lines int
}

// A form is JSON as names and values. Its zero value is that of no JSON.
type form struct {
	parts []part
	// more says that there are more values than parts.
	more bool
}

// Bounds of parts.
const (
	maxPartDepth = 8     // deeper values are shown as JSON
	maxParts     = 2_000 // of one value
)

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// newForm lists the parts of JSON that hold no others, in their order.
func newForm(raw mcp.RawValue) form {
	var f form
	f.add("", raw, 0)
	return f
}

// whole reports whether the form is one value without a name.
func (f *form) whole() bool { return len(f.parts) == 1 && f.parts[0].pointer == "" }

func (f *form) add(pointer string, raw mcp.RawValue, depth int) {
	if len(f.parts) >= maxParts {
		f.more = true
		return
	}
	if depth < maxPartDepth && len(raw) > 0 {
		switch raw[0] {
		case '{':
			if object, err := strictjson.ParseObject(raw); err == nil && object.Len() > 0 {
				for key, value := range object.All() {
					f.add(pointer+"/"+pointerEscaper.Replace(key), value, depth+1)
				}
				return
			}
		case '[':
			var items []mcp.RawValue
			if strictjson.Unmarshal(raw, &items) == nil && len(items) > 0 {
				for i, value := range items {
					f.add(pointer+"/"+itoa(i), value, depth+1)
				}
				return
			}
		}
	}
	p := part{pointer: pointer, label: partLabel(pointer), value: raw}
	if text, ok := textOf(raw); ok {
		p.text, p.lines = strings.ReplaceAll(ui.Condense(text), "\t", tab), strings.Count(text, "\n")+1
	} else {
		p.text = jsonText(raw)
	}
	f.parts = append(f.parts, p)
}

// partLabel is the name of a member of the whole, or a pointer.
func partLabel(pointer string) string {
	if pointer == "" {
		return "the value"
	}
	name := pointer[1:]
	if strings.ContainsAny(name, "/~") || name == "" {
		name = pointer
	}
	if strings.TrimLeft(name, plainName) == "" {
		return name
	}
	quoted, err := strictjson.Marshal(name)
	if err != nil { // no text that JSON can hold
		return ui.Condense(host.EscapeLine(strconv.Quote(name)))
	}
	return ui.Condense(host.EscapeLine(host.Indent(quoted)))
}

// plainName are the characters of names that are shown without quotes.
const plainName = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.$@/~"

// textOf is the text of a JSON string that has several lines, escaped; false for
// other values, which are shown as JSON. So are texts with carriage returns, which Escape
// would take for newlines.
func textOf(raw mcp.RawValue) (string, bool) {
	var text string
	if len(raw) < 2 || raw[0] != '"' || strictjson.Unmarshal(raw, &text) != nil || !strings.Contains(text, "\n") || strings.Contains(text, "\r") {
		return "", false
	}
	return host.Escape(text), true
}

// jsonText is JSON as it is shown, escaped.
func jsonText(raw mcp.RawValue) string { return ui.Condense(host.Escape(host.Indent(raw))) }
