package mask

import (
	"strings"
	"unicode/utf8"
)

// Hidden replaces a value that Known masks. Unlike a mark it is the same in each run.
const Hidden = "«redacted»"

// minCut is the shortest beginning of a value that is masked where a text was cut off.
const minCut = 8

// Known masks only the values that the Masker knows, with Hidden: neither names nor shapes are
// looked at. Of a value that was cut off, at an ellipsis or the end of a line, it masks the rest
// if that has 8 bytes.
func (m *Masker) Known(text string) string {
	if text == "" {
		return ""
	}
	masked := m.byValue(text)
	if masked != text {
		masked = marked.ReplaceAllString(masked, Hidden)
	}
	return m.cutOff(masked)
}

// KnownJSON is Known for the strings, numbers and names in JSON. The result is JSON. It reports
// false, and returns nothing, if raw is not JSON.
func (m *Masker) KnownJSON(raw []byte) ([]byte, bool) {
	raw, ok := walkable(raw)
	if !ok {
		return nil, false
	}
	w := walker{m: m, in: raw, out: make([]byte, 0, len(raw)), known: true}
	w.value(place{})
	return w.out, true
}

// cutOff masks the beginnings of values where a text was cut off.
func (m *Masker) cutOff(text string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.values) == 0 {
		return text
	}
	m.index()
	var b strings.Builder
	done := 0
	for at := 0; at < len(text); {
		end := strings.IndexAny(text[at:], "\n…")
		if end < 0 {
			end = len(text) - at
		}
		end += at
		part := strings.TrimRight(text[at:end], " \t\r\"')]}")
		if begin := m.beginning(part); begin < len(part) {
			b.WriteString(text[done:at+begin] + Hidden)
			done = at + len(part)
		}
		_, width := utf8.DecodeRuneInString(text[end:])
		at = end + max(width, 1)
	}
	if done == 0 {
		return text
	}
	return b.String() + text[done:]
}

// beginning is where, at the end of a text, the beginning of a value begins; the length of the
// text if there is none. mu is held.
func (m *Masker) beginning(text string) int {
	for _, v := range m.sorted {
		for at := max(0, len(text)-len(v)+1); at <= len(text)-minCut; at++ {
			if strings.HasPrefix(v, text[at:]) {
				return at
			}
		}
	}
	return len(text)
}
