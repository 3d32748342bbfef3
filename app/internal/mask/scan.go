package mask

import "strings"

// maxName is the longest name that stands beside a value in a text.
const maxName = 64

// nameByte reports whether a byte may stand in the name of a value.
func nameByte(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.'
}

// named masks values that stand beside a secret name in a text, as in password=VALUE,
// "token": "VALUE" or api-key => VALUE.
func (m *Masker) named(text string) string {
	var b strings.Builder
	done := 0
	for at := 0; at < len(text); at++ {
		if text[at] != ':' && text[at] != '=' {
			continue
		}
		if name := nameBefore(text, max(done, at-maxName-8), at); name == "" || !m.secretName(name) {
			continue
		}
		begin, end, quoted := valueAfter(text, at)
		value := text[begin:end]
		if value == "" || marked.MatchString(value) || !quoted && literal(value) {
			continue
		}
		// A word beside a name may be prose, as in "token: invalid".
		if quoted || len(value) >= 8 && strings.ContainsAny(value, "0123456789") {
			m.found(value)
		}
		b.WriteString(text[done:begin] + m.mark(value))
		done, at = end, end-1
	}
	if done == 0 {
		return text
	}
	return b.String() + text[done:]
}

// literal reports whether a word is a value of JSON that is no secret, or the scheme before a
// credential that has been masked already.
func literal(word string) bool {
	return word == "true" || word == "false" || word == "null" || schemes[strings.ToLower(word)]
}

// nameBefore is the name that ends before the separator at a place, quotes and spaces between
// them aside.
func nameBefore(text string, from, at int) string {
	end := at
	for spaces := 0; end > from && text[end-1] == ' ' && spaces < 4; spaces++ {
		end--
	}
	if end > from && (text[end-1] == '"' || text[end-1] == '\'') {
		if end--; end > from && text[end-1] == '\\' {
			end--
		}
	}
	begin := end
	for begin > from && nameByte(text[begin-1]) {
		begin--
	}
	return text[begin:end]
}

// valueAfter finds the value behind the separator at a place: what stands between quotes, or
// one word.
func valueAfter(text string, at int) (begin, end int, quoted bool) {
	begin = at + 1
	if begin < len(text) && text[at] == '=' && text[begin] == '>' {
		begin++
	}
	for spaces := 0; begin < len(text) && text[begin] == ' ' && spaces < 4; spaces++ {
		begin++
	}
	rest := text[begin:]
	switch {
	case strings.HasPrefix(rest, `\"`):
		begin += 2
		end = strings.Index(text[begin:], `\"`)
	case strings.HasPrefix(rest, `"`), strings.HasPrefix(rest, "'"):
		quote := rest[0]
		begin++
		end = 0
		for end < len(text)-begin && text[begin+end] != quote {
			if text[begin+end] == '\\' {
				end++
			}
			end++
		}
		end = min(end, len(text)-begin)
	default:
		end = strings.IndexAny(rest, " \t\r\n\"'`,;&<>(){}[]\\")
		if end < 0 {
			end = len(rest)
		}
		return begin, begin + end, false
	}
	if end < 0 { // the end was cut off
		end = len(text) - begin
	}
	return begin, begin + end, true
}

// urls masks the URLs in a text.
func (m *Masker) urls(text string) string {
	var b strings.Builder
	done := 0
	for at := 0; ; {
		next := strings.Index(text[at:], "://")
		if next < 0 {
			break
		}
		at += next
		begin := at
		for begin > done && (nameByte(text[begin-1]) && text[begin-1] != '_' || text[begin-1] == '+') && at-begin < 20 {
			begin--
		}
		end := strings.IndexAny(text[at:], " \t\r\n\"'<>`\\{}|^")
		if end < 0 {
			end = len(text) - at
		}
		end += at
		if begin < at {
			b.WriteString(text[done:begin] + m.URL(text[begin:end]))
			done = end
		}
		at = max(end, at+len("://"))
	}
	if done == 0 {
		return text
	}
	return b.String() + text[done:]
}
