package config

import (
	"regexp"
	"strconv"
	"strings"
)

const redacted = "***"

// maxShown bounds what a message shows of a name that a file has, in bytes.
const maxShown = 100

// show is a name in quotes, without control characters and not long.
func show(name string) string {
	if len(name) > maxShown {
		name = strings.ToValidUTF8(name[:maxShown], "") + "…"
	}
	return strconv.QuoteToGraphic(name)
}

var plainPattern = regexp.MustCompile(`^[A-Za-z0-9_./~-]+$`)

// showPlain is a name without quotes if it needs none.
func showPlain(name string) string {
	if len(name) <= maxShown && plainPattern.MatchString(name) {
		return name
	}
	return show(name)
}

// redactURL leaves out the parts of a URL in which secrets travel: user, query, fragment.
// It keeps variables as they were written.
func redactURL(text string) string {
	text, _, _ = strings.Cut(text, "?")
	text, _, _ = strings.Cut(text, "#")
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		if strings.Contains(text, "@") {
			return redacted
		}
		return text
	}
	host, path, slash := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	} else if strings.Contains(path, "@") && strings.Contains(host, ":") {
		// A password with a slash in it, or a path that has the sign: not to be told apart.
		return scheme + "://" + redacted
	}
	if slash {
		host += "/"
	}
	return scheme + "://" + host + path
}

var secretFlag = regexp.MustCompile(`(?i)(^|[-_.])(api[-_]?key|apikey|key|token|secret|passw(or)?d|pat|auth|authorization|bearer|credentials?)$`)

// RedactArgs replaces the values of options whose names say that they are secret, and
// headers with a value, for showing a command to people.
func RedactArgs(args []string) []string {
	shown := make([]string, len(args))
	hide := false
	for i, arg := range args {
		name, value, assigned := strings.Cut(arg, "=")
		key := strings.TrimLeft(name, "-")
		switch {
		case hide:
			shown[i] = redacted
		case assigned && value != "" && secretFlag.MatchString(key):
			shown[i] = name + "=" + redacted
		case strings.Contains(arg, "://"):
			shown[i] = redactURL(arg)
		default:
			shown[i] = redactHeader(arg)
		}
		hide = !hide && !assigned && strings.HasPrefix(arg, "-") && secretFlag.MatchString(key)
	}
	return shown
}

// redactHeader hides the value of "Authorization: Bearer x", as mcp-remote takes it.
func redactHeader(arg string) string {
	name, value, ok := strings.Cut(arg, ":")
	if ok && value != "" && secretFlag.MatchString(name) {
		return name + ": " + redacted
	}
	return arg
}
