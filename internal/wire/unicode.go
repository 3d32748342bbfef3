package wire

import "unicode/utf8"

// MendText returns data, a JSON text, with U+FFFD in place of what is not Unicode in its strings:
// bytes that are not UTF-8, and halves of surrogate pairs. It reports false if there is none, or if
// one is in the name of a member. What is not JSON for another reason stays so.
func MendText(data []byte) (mended []byte, ok bool) {
	out := make([]byte, 0, len(data)+16)
	var names []bool // for each open container: whether it is an object
	name := false    // the next string is the name of a member
	for pos := 0; pos < len(data); {
		switch c := data[pos]; c {
		case '"':
			end, text, changed := mendString(data, pos)
			if changed && name {
				return nil, false
			}
			ok = ok || changed
			out = append(out, text...)
			pos = end
			continue
		case '{', '[':
			if len(names) > maxDepth {
				return nil, false
			}
			names = append(names, c == '{')
			name = c == '{'
		case '}', ']':
			if len(names) > 0 {
				names = names[:len(names)-1]
			}
		case ':':
			name = false
		case ',':
			name = len(names) > 0 && names[len(names)-1]
		}
		out = append(out, data[pos])
		pos++
	}
	return out, ok
}

// mendString returns the string literal at pos, mended, and its end.
func mendString(data []byte, pos int) (end int, text []byte, changed bool) {
	start, out := pos, []byte(nil) // what is mended up to start
	replace := func(to int, by string) {
		out = append(append(out, data[start:pos]...), by...)
		start, pos, changed = to, to, true
	}
	for pos++; pos < len(data); {
		switch c := data[pos]; {
		case c == '"':
			return pos + 1, append(out, data[start:pos+1]...), changed
		case c == '\\' && At(data, pos+1) == 'u':
			if unit, isHex := hex(data, pos); !isHex || unit < 0xD800 || unit > 0xDFFF {
				pos += 2
			} else if next, err := scanEscape(data, pos); err == nil {
				pos = next
			} else {
				replace(pos+6, `\ufffd`)
			}
		case c == '\\':
			pos += 2
		case c < utf8.RuneSelf:
			pos++
		default:
			if r, n := utf8.DecodeRune(data[pos:]); r == utf8.RuneError && n == 1 {
				replace(pos+1, "\uFFFD")
			} else {
				pos += n
			}
		}
	}
	return len(data), append(out, data[start:]...), changed
}
