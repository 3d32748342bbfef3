package mask

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Bounds of JSON that is walked over.
const (
	// maxDepth is how deep. What is deeper is masked as text.
	maxDepth = 128
	// maxNested is how many texts in one another may be JSON.
	maxNested = 3
)

// JSON takes the secrets out of a JSON text. What is no secret stays as it is, byte for byte,
// and the result is well-formed. It reports false, and returns nothing, for what is no JSON.
func (m *Masker) JSON(raw []byte) ([]byte, bool) { return m.nested(raw, maxNested) }

// Message takes the secrets out of what was sent as a message: JSON, or whatever it is. The
// second result says that it is JSON.
func (m *Masker) Message(data []byte) ([]byte, bool) {
	if out, ok := m.JSON(data); ok {
		return out, true
	}
	return []byte(m.Text(string(data))), false
}

func (m *Masker) nested(raw []byte, left int) ([]byte, bool) {
	raw, ok := walkable(raw)
	if !ok {
		return nil, false
	}
	// Values that stand in a secret place count for the whole text, also before it.
	for range 2 {
		known := m.known()
		w := walker{m: m, in: raw, out: make([]byte, 0, len(raw)), left: left}
		w.value(place{})
		raw = w.out
		if m.known() == known {
			break
		}
	}
	return raw, true
}

// walkable is raw without space around it, if it is JSON that a walker can copy.
func walkable(raw []byte) ([]byte, bool) {
	raw = bytes.TrimSpace(raw)
	return raw, utf8.Valid(raw) && json.Valid(raw) && !deeper(raw, maxDepth)
}

// deeper reports whether valid JSON is nested deeper than a limit.
func deeper(raw []byte, limit int) bool {
	depth, inText := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{', c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return false
}

// A place says what the names around a value mean for it.
type place struct {
	name   string // of the member
	secret bool   // it is a secret, and all within it
	schema bool   // its members are properties in a JSON Schema, and their names no secrets
}

// A walker copies valid JSON and masks texts and numbers in secret places.
type walker struct {
	m    *Masker
	in   []byte
	at   int
	out  []byte
	left int // how many texts in one another may still be JSON

	known bool // only the values that are known are masked, as Known does
}

// copyTo copies up to, but not including, the byte at end.
func (w *walker) copyTo(end int) {
	w.out = append(w.out, w.in[w.at:end]...)
	w.at = end
}

// space copies white space and one separator, if there is one.
func (w *walker) space() {
	end := w.at
	for end < len(w.in) && strings.IndexByte(" \t\r\n,:", w.in[end]) >= 0 {
		end++
	}
	w.copyTo(end)
}

func (w *walker) value(p place) {
	w.space()
	if w.at >= len(w.in) {
		return
	}
	switch w.in[w.at] {
	case '{':
		w.object(p)
	case '[':
		w.copyTo(w.at + 1)
		for w.space(); w.in[w.at] != ']'; w.space() {
			w.value(place{name: p.name, secret: p.secret})
		}
		w.copyTo(w.at + 1)
	case '"':
		w.text(p)
	default:
		w.scalar(p)
	}
}

// object copies an object. Names count for its members.
func (w *walker) object(p place) {
	pair := w.pairName()
	w.copyTo(w.at + 1)
	for w.space(); w.in[w.at] != '}'; w.space() {
		end := textEnd(w.in, w.at)
		name := unquote(w.in[w.at:end])
		w.name(w.in[w.at:end], name)
		w.at = end
		w.space()
		in := place{name: name, secret: p.secret || w.m.secretName(name)}
		switch {
		case w.known:
			in.secret = false
		case p.schema: // a property that is called like a secret is none
			in.secret = p.secret
			if in.secret || !isSchema(w.in[w.at:]) {
				in.secret = p.secret || w.m.secretName(name)
			} else if w.m.secretName(name) {
				in.name = sampleOf // what it is by default, or for example, is secret
			}
		case p.name == sampleOf && samples[name]:
			in.secret = true
		case name == "value" && pair != "" && w.m.secretName(pair):
			in.secret = true
		case schemaMaps[name]:
			in.schema = true
		}
		w.value(in)
	}
	w.copyTo(w.at + 1)
}

// sampleOf is the name of the place of a schema of a secret.
const sampleOf = "\x00schema of a secret"

// samples are the members of a schema that hold values of what it describes.
var samples = map[string]bool{"default": true, "const": true, "example": true, "examples": true}

// schemaMaps are the members of a schema whose members are schemas.
var schemaMaps = map[string]bool{"properties": true, "patternProperties": true, "$defs": true, "definitions": true, "dependentSchemas": true}

// schemaMembers tell a schema from other objects.
var schemaMembers = map[string]bool{
	"type": true, "$ref": true, "enum": true, "const": true, "anyOf": true, "oneOf": true, "allOf": true,
	"description": true, "title": true, "format": true, "properties": true, "items": true,
}

// isSchema reports whether the value at the beginning of raw looks like a JSON Schema: an object
// with none but members that have such a name or are no text, or true or false.
func isSchema(raw []byte) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n:")
	if len(raw) == 0 || raw[0] != '{' {
		return len(raw) > 0 && (raw[0] == 't' || raw[0] == 'f')
	}
	known := 0
	for at := skipTo(raw, 1); at < len(raw) && raw[at] != '}'; at = skipTo(raw, at) {
		end := textEnd(raw, at)
		if schemaMembers[unquote(raw[at:end])] {
			known++
		}
		at = valueEnd(raw, skipTo(raw, end))
	}
	return known > 0
}

// pairName is the member "name" or "key" of the object that begins here, for objects that say
// {"name": NAME, "value": VALUE}.
func (w *walker) pairName() string {
	raw := w.in[w.at:]
	for at := skipTo(raw, 1); raw[at] != '}'; at = skipTo(raw, at) {
		end := textEnd(raw, at)
		name := unquote(raw[at:end])
		at = skipTo(raw, end)
		end = valueEnd(raw, at)
		if (name == "name" || name == "key") && raw[at] == '"' {
			return unquote(raw[at:end])
		}
		at = end
	}
	return ""
}

// skipTo is the place of the next byte that is neither space nor separator.
func skipTo(raw []byte, at int) int {
	for at < len(raw) && strings.IndexByte(" \t\r\n,:", raw[at]) >= 0 {
		at++
	}
	return at
}

// valueEnd is the end of the value that begins at a place of valid JSON.
func valueEnd(raw []byte, at int) int {
	for depth := 0; at < len(raw); {
		switch raw[at] {
		case '{', '[':
			depth++
			at++
		case '}', ']':
			depth--
			at++
		case '"':
			at = textEnd(raw, at)
		case ' ', '\t', '\r', '\n', ',', ':':
			at++
			continue
		default:
			at = scalarEnd(raw, at)
		}
		if depth == 0 {
			return at
		}
	}
	return at
}

// textEnd is the end of the string that begins at a place of valid JSON.
func textEnd(raw []byte, at int) int {
	for at++; at < len(raw); at++ {
		switch raw[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(raw)
}

// scalarEnd is the end of a number or word.
func scalarEnd(raw []byte, at int) int {
	for at < len(raw) && strings.IndexByte(" \t\r\n,:{}[]\"", raw[at]) < 0 {
		at++
	}
	return at
}

// unquote is the text of a JSON string.
func unquote(raw []byte) string {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return string(raw)
	}
	return s
}

// name copies the name of a member, which may hold a secret, too.
func (w *walker) name(raw []byte, name string) {
	masked := ""
	if w.known {
		masked = w.m.Known(name)
	} else {
		masked = w.m.byValue(name)
	}
	if masked != name {
		raw = quote(masked)
	}
	w.out = append(w.out, raw...)
}

// text copies a string, masked.
func (w *walker) text(p place) {
	end := textEnd(w.in, w.at)
	raw := w.in[w.at:end]
	w.at = end
	value := unquote(raw)
	masked := ""
	switch {
	case w.known:
		masked = w.m.Known(value)
	case p.secret:
		masked = w.m.hideCredentials(value)
	default:
		masked = w.within(value)
	}
	if masked == value {
		w.out = append(w.out, raw...)
		return
	}
	w.out = append(w.out, quote(masked)...)
}

// within masks a text that is in no secret place, and may be JSON.
func (w *walker) within(value string) string {
	if begin := strings.TrimLeft(value, " \t\r\n"); w.left > 0 && begin != "" && (begin[0] == '{' || begin[0] == '[') {
		if inner, ok := w.m.nested([]byte(value), w.left-1); ok {
			if string(inner) == strings.TrimSpace(value) {
				return value
			}
			return string(inner)
		}
	}
	return w.m.Text(value)
}

// scalar copies a number or a word. Numbers in secret places are masked.
func (w *walker) scalar(p place) {
	end := scalarEnd(w.in, w.at)
	raw := string(w.in[w.at:end])
	w.at = end
	if c := raw[0]; c == '-' || '0' <= c && c <= '9' {
		masked := raw
		if p.secret {
			masked = w.m.hide(raw)
		} else if mark, ok := w.m.exact(raw); ok {
			masked = mark
		}
		if w.known && masked != raw {
			masked = Hidden
		}
		if masked != raw {
			w.out = append(w.out, quote(masked)...)
			return
		}
	}
	w.out = append(w.out, raw...)
}

// exact is the mark of a value that is known.
func (m *Masker) exact(value string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mark, ok := m.values[value]
	return mark, ok
}
