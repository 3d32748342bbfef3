package oauth

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxScopes is how many scopes a parameter may name.
const maxScopes = 100

// ParseScope splits a scope parameter into its scopes, each once, in order. It
// refuses characters that no scope may have (RFC 6749, section 3.3), and more
// than 100.
func ParseScope(scope string) ([]string, error) {
	var scopes []string
	for s := range strings.SplitSeq(scope, " ") {
		if s == "" || slices.Contains(scopes, s) {
			continue
		}
		if !isScopeText(s) {
			return nil, errors.New("scope has a character that is not allowed")
		}
		if len(scopes) == maxScopes {
			return nil, fmt.Errorf("more than %d scopes", maxScopes)
		}
		scopes = append(scopes, s)
	}
	return scopes, nil
}

// isScopeText reports whether s is of the characters of scopes and error codes.
func isScopeText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return s != ""
}

// JoinScope is the scope parameter of scopes.
func JoinScope(scopes []string) string { return strings.Join(scopes, " ") }

// UnionScopes returns the scopes of all lists, each once, in order of first
// appearance; nil if there are none.
func UnionScopes(lists ...[]string) []string {
	var union []string
	seen := make(map[string]bool)
	for _, list := range lists {
		for _, s := range list {
			if !seen[s] {
				seen[s] = true
				union = append(union, s)
			}
		}
	}
	return union
}

// ScopeOfflineAccess asks for a refresh token where servers have it.
const ScopeOfflineAccess = "offline_access"
