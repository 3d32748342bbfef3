package fetch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/parley-mcp/parley/mcp"
)

// maxRobots is how much of a robots.txt is read; the rest has no rules (RFC 9309,
// section 2.5).
const maxRobots = 500 << 10

// maxRobotsShown is how much of it a model is shown, in characters.
const maxRobotsShown = 10_000

// robots are the rules of a site's robots.txt for one user agent (RFC 9309).
type robots struct {
	rules []rule
	text  string // its beginning, for the model
}

// A rule allows or forbids the paths that its pattern matches.
type rule struct {
	pattern string // escaped as escapePath does
	allow   bool
}

// checkRobots returns an error for the model if the site's robots.txt forbids a URL to
// programs, or cannot be read. As in the official server, and as RFC 9309 leaves it open,
// one that itself is forbidden (401, 403) forbids everything.
func (f *fetcher) checkRobots(ctx context.Context, u *url.URL, agent string) error {
	at := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/robots.txt"}
	rules, ok := f.robots.get(at.String())
	if !ok {
		var err error
		if rules, err = f.readRobots(ctx, at, agent); err != nil {
			return err
		}
		f.robots.put(at.String(), rules, rules.size())
	}
	if rules.allow(u) {
		return nil
	}
	return mcp.Errorf(`The sites robots.txt (%s), specifies that autonomous fetching of this page is not allowed, <useragent>%s</useragent>
<url>%s</url><robots>
%s
</robots>
The assistant must let the user know that it failed to view the page. The assistant may provide further guidance based on the above information.
The assistant can tell the user that they can try manually fetching the page by using the fetch prompt within their UI.`,
		at, agent, u, rules.text)
}

// readRobots gets a robots.txt. One that does not exist has no rules; while a site cannot
// say what it has, nothing is allowed (section 2.3.1).
func (f *fetcher) readRobots(ctx context.Context, at *url.URL, agent string) (*robots, error) {
	resp, err := f.open(ctx, at, agent)
	if err != nil {
		return nil, robotsFailure(ctx, at, reason(err))
	}
	defer func() { _ = resp.Body.Close() }() // what was wanted of it was read
	switch status := resp.StatusCode; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return nil, mcp.Errorf("When fetching robots.txt (%s), received status %d so assuming that autonomous fetching is not allowed, "+
			"the user can try manually fetching by using the fetch prompt", at, status)
	case status >= http.StatusBadRequest && status < http.StatusInternalServerError:
		return &robots{}, nil
	case status >= http.StatusInternalServerError, status >= http.StatusMultipleChoices:
		return nil, robotsFailure(ctx, at, fmt.Sprintf("it was answered with status %d, and without it nothing is allowed", status))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRobots+1))
	if err != nil {
		return nil, robotsFailure(ctx, at, reason(err))
	}
	if len(body) > maxRobots { // a line that was cut is none
		body = body[:bytes.LastIndexByte(body[:maxRobots], '\n')+1]
	}
	return parseRobots(strings.ToValidUTF8(string(body), "\ufffd"), agent), nil
}

func robotsFailure(ctx context.Context, at *url.URL, reason string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return mcp.Errorf("Failed to fetch robots.txt %s due to a connection issue: %s", at, reason)
}

// parseRobots reads the rules of a robots.txt for an agent: those of all groups that name
// it, or else of all for "*". Lines that are no rules are passed over (sections 2.2.1 and
// 2.2.4).
func parseRobots(text, agent string) *robots {
	shown, _ := cut(text, 0, maxRobotsShown)
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
			r := rule{pattern: escapePath(value), allow: key == "allow"}
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
	return &robots{rules: others, text: shown}
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

// size is about how many bytes the rules hold.
func (r *robots) size() int {
	n := len(r.text)
	for _, rule := range r.rules {
		n += 32 + len(rule.pattern)
	}
	return n
}

// allow reports whether a URL may be fetched: the longest pattern that matches decides, and
// of two the one that allows (section 2.2.2).
func (r *robots) allow(u *url.URL) bool {
	path := u.EscapedPath()
	if path == "/robots.txt" {
		return true
	}
	if u.RawQuery != "" || u.ForceQuery {
		path += "?" + u.RawQuery
	}
	path = escapePath(path)
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

// escapePath writes a path so that equal ones are equal texts: what is not ASCII is
// escaped, and so is nothing that needs not be (section 2.2.2, RFC 3986, section 6.2.2).
func escapePath(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		c, escaped := path[i], false
		if c == '%' && i+2 < len(path) {
			if n, ok := hexByte(path[i+1], path[i+2]); ok {
				c, escaped = n, true
				i += 2
			}
		}
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
		if escaped && !letter || c <= ' ' || c >= 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// hexByte is the byte that two hexadecimal digits are.
func hexByte(high, low byte) (byte, bool) {
	digits := "0123456789abcdef"
	h, l := strings.IndexByte(digits, high|0x20), strings.IndexByte(digits, low|0x20)
	return byte(h<<4 | l), h >= 0 && l >= 0 && high >= '0' && low >= '0'
}
