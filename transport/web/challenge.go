package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/principal"
)

// maxScopes is the most scopes that one challenge names, and maxScopeBytes the
// most bytes that they have together: servers and proxies bound headers.
const (
	maxScopes     = 100
	maxScopeBytes = 4 << 10
)

// Challenge tells a caller that was not granted scopes, in a response with
// status 403, what it needs and where to get it, in the words of the guard that
// authenticated it.
//
// spec 2026-07-28, basic/authorization, Runtime Insufficient Scope Errors:
// servers SHOULD respond with 403 and WWW-Authenticate, which names all scopes
// of the operation in one challenge.
func Challenge(h http.Header, who *principal.Principal, scopes []string) {
	if who == nil || who.Challenge == nil {
		return
	}
	// An error that was passed on may name anything.
	left := maxScopeBytes
	scopes = slices.DeleteFunc(slices.Clone(scopes), func(s string) bool {
		if !principal.ValidScope(s) || len(s) >= left {
			return true
		}
		left -= len(s) + 1
		return false
	})
	scopes = scopes[:min(len(scopes), maxScopes)]
	if text := who.Challenge(scopes); text != "" {
		h.Set(headerChallenge, text)
	}
}

const headerChallenge = "WWW-Authenticate"

// wanted are the scopes that a response with status 403 asks for; nil if it
// does not speak of scopes (RFC 6750, section 3).
func wanted(h http.Header) (scopes []string) {
	for _, value := range h.Values(headerChallenge) {
		params := parameters(value[:min(len(value), maxChallenge)])
		if params["error"] == "insufficient_scope" && params["scope"] != "" {
			scopes = append(scopes, strings.Fields(params["scope"])...)
		}
	}
	scopes = slices.DeleteFunc(scopes, func(s string) bool { return !principal.ValidScope(s) })
	return scopes[:min(len(scopes), maxScopes)]
}

// maxChallenge is how many bytes of a challenge are looked at.
const maxChallenge = 8 << 10

// parameters reads name=value and name="value" of a challenge for people to be
// told of; the first of a name counts. It does not mind what is malformed, nor
// where one challenge ends and the next begins.
func parameters(s string) map[string]string {
	params := make(map[string]string)
	for {
		before, rest, ok := strings.Cut(s, "=")
		if !ok {
			return params
		}
		name := strings.ToLower(before[strings.LastIndexAny(before, " ,\t")+1:])
		var value string
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			value, rest = unquote(quoted)
		} else {
			end := strings.IndexAny(rest, " ,\t")
			if end < 0 {
				end = len(rest)
			}
			value, rest = rest[:end], rest[end:]
		}
		if _, twice := params[name]; !twice {
			params[name] = value
		}
		s = rest
	}
}

// unquote reads the rest of a quoted string (RFC 9110, section 5.6.4).
func unquote(s string) (value, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}
