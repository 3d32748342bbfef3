package oauth

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Bounds of what is read of a response's challenges.
const (
	maxChallenges = 16
	maxParams     = 32
)

// A Challenge is one challenge of a WWW-Authenticate header (RFC 9110, section
// 11.6.1).
type Challenge struct {
	// Scheme is as written; schemes are compared without regard to case.
	Scheme string
	// Params are by name in lower case; a token68 stands under "". nil and empty
	// are the same; ParseChallenges gives no nil.
	Params map[string]string
}

// ParseChallenges reads the values of all WWW-Authenticate headers of a
// response: several challenges in one value, quoted strings with escapes,
// parameters without spaces, and values without quotes that should have them,
// as in resource_metadata=https://example.com. What cannot be read is left out:
// a response with a broken challenge is a response without that challenge. A
// parameter that is given twice makes its challenge unreadable, and so do more
// than 32 parameters. At most 16 challenges are read.
func ParseChallenges(values []string) []Challenge {
	var p challengeParser
	for _, value := range values {
		p.parse(value)
	}
	if len(p.list) == 0 {
		return nil
	}
	return p.list
}

// FindChallenge returns the first challenge of one of the schemes, in the
// order of schemes, and whether there is one.
func FindChallenge(challenges []Challenge, schemes ...string) (Challenge, bool) {
	for _, scheme := range schemes {
		for _, c := range challenges {
			if strings.EqualFold(c.Scheme, scheme) {
				return c, true
			}
		}
	}
	return Challenge{}, false
}

// String is the challenge as a header carries it: quoted strings, parameters
// in a fixed order (realm, error, error_description, scope, resource_metadata,
// then the others by name). Characters that a quoted string may not hold are
// replaced by "?", so that nothing splits the header. Names that are no tokens
// are left out; a challenge whose scheme is none is empty.
func (c Challenge) String() string {
	if !isTchars(c.Scheme) {
		return ""
	}
	if t, ok := c.Params[""]; ok && isToken68(t) {
		return c.Scheme + " " + t
	}
	var b strings.Builder
	b.WriteString(c.Scheme)
	separator := " "
	for _, name := range slices.SortedFunc(maps.Keys(c.Params), compareParams) {
		if !isTchars(name) {
			continue
		}
		b.WriteString(separator)
		b.WriteString(name)
		b.WriteByte('=')
		writeQuoted(&b, c.Params[name])
		separator = ", "
	}
	return b.String()
}

func compareParams(a, b string) int {
	first := []string{"realm", "error", "error_description", "scope", "resource_metadata"}
	place := func(name string) int {
		if i := slices.Index(first, name); i >= 0 {
			return i
		}
		return len(first)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b))
}

func writeQuoted(b *strings.Builder, s string) {
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case !isQuotable(c):
			b.WriteByte('?')
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			fallthrough
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
}

// A challengeParser reads the elements of one header value, which are schemes
// with or without their first parameter, and further parameters.
type challengeParser struct {
	s    string // what is left
	list []Challenge
	// open says that the last of list may get further parameters; those of
	// a broken challenge belong to nothing.
	open bool
}

func (p *challengeParser) parse(value string) {
	p.s, p.open = value, false
	for {
		p.s = strings.TrimLeft(p.s, " \t,")
		if p.s == "" {
			return
		}
		start := p.s
		if p.element() {
			p.blanks()
			if p.s == "" || p.s[0] == ',' {
				continue
			}
		}
		p.drop()
		p.s = afterElement(start)
	}
}

// element reads one element, and reports whether it could.
func (p *challengeParser) element() bool {
	word := p.token()
	blank := p.blanks()
	if word == "" {
		return false
	}
	if p.s != "" && p.s[0] == '=' {
		return p.param(word)
	}
	if len(p.list) == maxChallenges {
		p.s, p.open = "", false
		return true
	}
	p.list, p.open = append(p.list, Challenge{Scheme: word, Params: map[string]string{}}), true
	if p.s == "" || p.s[0] == ',' {
		return true
	}
	if !blank {
		return false
	}
	if t := p.token68(); t != "" {
		p.list[len(p.list)-1].Params[""] = t
		return true
	}
	name := p.token()
	p.blanks()
	return name != "" && p.param(name)
}

// param reads the value of a parameter and adds it to the challenge.
func (p *challengeParser) param(name string) bool {
	if p.s == "" || p.s[0] != '=' {
		return false
	}
	p.s = p.s[1:]
	p.blanks()
	value, ok := p.value()
	if !ok {
		return false
	}
	if !p.open {
		return true // of a challenge that was dropped
	}
	params := p.list[len(p.list)-1].Params
	name = strings.ToLower(name)
	_, twice := params[name]
	_, alone := params[""]
	params[name] = value
	return !twice && !alone && len(params) <= maxParams
}

// drop forgets the challenge that was begun.
func (p *challengeParser) drop() {
	if p.open {
		p.list, p.open = p.list[:len(p.list)-1], false
	}
}

func (p *challengeParser) blanks() bool {
	left := len(p.s)
	p.s = strings.TrimLeft(p.s, " \t")
	return len(p.s) < left
}

func (p *challengeParser) token() string {
	n := 0
	for n < len(p.s) && isTchar(p.s[n]) {
		n++
	}
	word := p.s[:n]
	p.s = p.s[n:]
	return word
}

// token68 reads a token68 that is followed by a comma or the end, or nothing.
func (p *challengeParser) token68() string {
	n := strings.IndexByte(p.s, ',')
	if n < 0 {
		n = len(p.s)
	}
	t := strings.TrimRight(p.s[:n], " \t")
	if !isToken68(t) {
		return ""
	}
	p.s = p.s[n:]
	return t
}

// value reads a quoted string, or a text without blanks, commas and quotes.
func (p *challengeParser) value() (string, bool) {
	if p.s == "" || p.s[0] != '"' {
		n := 0
		for n < len(p.s) && p.s[n] > ' ' && p.s[n] < 0x7f && strings.IndexByte(",\"\\", p.s[n]) < 0 {
			n++
		}
		value := p.s[:n]
		p.s = p.s[n:]
		return value, n > 0
	}
	var b strings.Builder
	for i := 1; i < len(p.s); i++ {
		c := p.s[i]
		if c == '"' {
			p.s = p.s[i+1:]
			return b.String(), true
		}
		if c == '\\' && i+1 < len(p.s) {
			i++
			c = p.s[i]
		}
		if !isQuotable(c) {
			return "", false
		}
		b.WriteByte(c)
	}
	return "", false
}

// afterElement is what follows the next comma that is not within quotes.
func afterElement(s string) string {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && c == ',':
			return s[i+1:]
		}
	}
	return ""
}

func isTchar(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' ||
		strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// isTchars reports whether s is a token (RFC 9110, section 5.6.2).
func isTchars(s string) bool {
	for i := range len(s) {
		if !isTchar(s[i]) {
			return false
		}
	}
	return s != ""
}

// isToken68 reports whether s is a token68 (RFC 9110, section 11.2).
func isToken68(s string) bool {
	s = strings.TrimRight(s, "=")
	return s != "" && strings.Trim(s, unreserved+"+/") == ""
}

// isQuotable reports whether a quoted string may hold c, escaped if need be
// (RFC 9110, section 5.6.4).
func isQuotable(c byte) bool { return c == '\t' || c >= ' ' && c != 0x7f }
