// Package httptoken knows the tokens of HTTP: names of header fields and methods.
package httptoken

import "strings"

// Valid says whether s is a token (RFC 9110, section 5.6.2).
func Valid(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
