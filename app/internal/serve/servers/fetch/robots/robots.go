// Package robots reads the rules of a robots.txt, which define what programs may fetch from a site
// (RFC 9309). The longest rule applies, and of two equal ones the one that allows. It reads the rules in
// one pass, skips lines that are not rules, compares names by product token and paths in one form of
// escaping, and matches "*" and "$" without regular expressions. It ignores crawl delays and site maps.
//
// The module github.com/temoto/robotstxt 1.1.2 predates the RFC. It takes the length of a rule with "*"
// from its regular expression, so that "Disallow: /a.b*c" beats the longer "Allow: /a.bxcd"; of two
// equal rules it uses the first; it rejects a file with a rule before the first User-agent; a group for
// "Mod" applies to ModelContextProtocol; and "%61" is not "a". Each of these is a test of this package.
package robots

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// MaxSize is how much of a robots.txt has to be read, in bytes; the rest has no rules
// (section 2.5).
const MaxSize = 500 << 10

// Rules are those of a robots.txt for one user agent. The zero value allows everything. They may
// be used by many goroutines at once.
type Rules struct {
	rules []rule
}

// A rule allows or forbids the paths that its pattern matches.
type rule struct {
	pattern string // escaped as escapePath does
	allow   bool
}

// Parse reads the rules of a robots.txt for an agent: those of all groups that name
// it, or else of all for "*". Lines that are no rules are passed over (sections 2.2.1 and
// 2.2.4).
func Parse(text, agent string) *Rules {
	token := productToken(agent)
	var own, others []rule
	named := false                  // a group names the agent
	var toOwn, toOthers, ruled bool // of the group that is being read
	for line := range strings.FieldsFuncSeq(strings.TrimPrefix(text, "\ufeff"), isLineEnd) {
		line, _, _ = strings.Cut(line, "#")
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key = strings.ToLower(strings.TrimSpace(key)); key {
		case "user-agent":
			if ruled { // the group before has ended
				toOwn, toOthers, ruled = false, false, false
			}
			toOthers = toOthers || value == "*"
			if token != "" && productToken(value) == token {
				toOwn, named = true, true
			}
		case "allow", "disallow":
			ruled = true
			if value == "" {
				continue // matches nothing
			}
			r := rule{pattern: escapePath(value, true), allow: key == "allow"}
			if toOwn {
				own = append(own, r)
			}
			if toOthers {
				others = append(others, r)
			}
		}
	}
	if named {
		others = own
	}
	return &Rules{rules: others}
}

func isLineEnd(c rune) bool { return c == '\n' || c == '\r' }

// productToken is the name at the beginning of a user agent, in lower case (section
// 2.2.1).
func productToken(agent string) string {
	end := strings.IndexFunc(agent, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '_'
	})
	if end >= 0 {
		agent = agent[:end]
	}
	return strings.ToLower(agent)
}

// Size is about how many bytes the rules hold.
func (r *Rules) Size() int {
	n := 0
	for _, rule := range r.rules {
		n += 32 + len(rule.pattern)
	}
	return n
}

// Allow reports whether a URL may be fetched: the longest pattern that matches decides, and
// of two the one that allows (section 2.2.2).
func (r *Rules) Allow(u *url.URL) bool {
	path := u.EscapedPath()
	if path == "/robots.txt" {
		return true
	}
	if u.RawQuery != "" || u.ForceQuery {
		path += "?" + u.RawQuery
	}
	path = escapePath(path, false)
	allowed, longest := true, -1
	for _, rule := range r.rules {
		if n := len(rule.pattern); n < longest || n == longest && (allowed || !rule.allow) || !matches(rule.pattern, path) {
			continue
		}
		allowed, longest = rule.allow, len(rule.pattern)
	}
	return allowed
}

// matches reports whether a pattern matches a path: from its beginning, "*" being any
// characters, and "$" at the end the end of the path (section 2.2.3).
func matches(pattern, path string) bool {
	pattern, anchored := strings.CutSuffix(pattern, "$")
	first, rest, wild := strings.Cut(pattern, "*")
	path, ok := strings.CutPrefix(path, first)
	if !ok {
		return false
	}
	for wild {
		first, rest, wild = strings.Cut(rest, "*")
		if !wild && anchored {
			return strings.HasSuffix(path, first)
		}
		i := strings.Index(path, first)
		if i < 0 {
			return false
		}
		path = path[i+len(first):]
	}
	return !anchored || path == ""
}

// escapePath writes a path and its query, or a pattern of these, so that equal ones are
// equal texts: everything is escaped but what never is (section 2.2.2; RFC 3986, section
// 2.3), "/", and "?". An escaped "/" or "?" is another character than one that is not,
// except in a query. In a pattern "*", and "$" at its end, are no characters of the path
// unless they are escaped (section 2.2.3).
func escapePath(path string, pattern bool) string {
	var b strings.Builder
	query := false
	for i := 0; i < len(path); i++ {
		c, escaped := path[i], false
		if c == '%' && i+2 < len(path) {
			if n, err := strconv.ParseUint(path[i+1:i+3], 16, 8); err == nil {
				c, escaped = byte(n), true
				i += 2
			}
		}
		plain := false
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0:
			plain = true
		case c == '/', c == '?':
			plain = !escaped || query
			query = query || c == '?' && !escaped
		case c == '*':
			plain = pattern && !escaped
		case c == '$':
			plain = pattern && !escaped && i == len(path)-1
		}
		if plain {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
