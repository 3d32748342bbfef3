package guard

import (
	"context"
	"net/http"
	"strings"
)

// maxToken is the size in bytes of the longest Authorization header.
const maxToken = 16 << 10

// A scheme is how a token is presented.
type scheme uint8

const (
	schemeBearer scheme = iota
	schemeDPoP
)

// String is the name of the scheme.
func (s scheme) String() string {
	if s == schemeDPoP {
		return "DPoP"
	}
	return "Bearer"
}

// A form is what an Authorization header looks like.
type form uint8

const (
	formAbsent    form = iota // nothing that concerns us
	formMalformed             // neither one thing nor the other
	formToken
)

// parseAuthorization reads the values of Authorization headers. There is one
// header with one token (RFC 6750, section 2.1), or there is none: other
// schemes are as good as nothing (RFC 6750, section 3.1). Whether the token is a
// token68 is still to be seen: of one that is remembered it is known.
func parseAuthorization(values []string) (s scheme, token string, f form) {
	if len(values) == 0 {
		return s, "", formAbsent
	}
	if len(values) > 1 || len(values[0]) > maxToken {
		return s, "", formMalformed
	}
	name, rest, _ := strings.Cut(values[0], " ")
	switch {
	case strings.EqualFold(name, "Bearer"):
	case strings.EqualFold(name, "DPoP"):
		s = schemeDPoP
	case isName(name):
		return s, "", formAbsent
	default:
		return s, "", formMalformed
	}
	return s, strings.TrimLeft(rest, " "), formToken
}

// isToken68 reports whether s is a token68 (RFC 9110, section 11.2).
func isToken68(s string) bool {
	body := strings.TrimRight(s, "=")
	for i := range len(body) {
		if c := body[i]; !alphanumeric(c) && strings.IndexByte("-._~+/", c) < 0 {
			return false
		}
	}
	return body != ""
}

// isName reports whether s is the name of a scheme: a token (RFC 9110,
// section 5.6.2).
func isName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// forward is the request as what is behind the guard sees it: with ctx, and
// without the headers that belong to the guard. The original is not touched.
// Trailers, which were not checked and a proxy would pass on, are left out.
func forward(r *http.Request, ctx context.Context) *http.Request {
	out := r.WithContext(ctx)
	out.Trailer = nil
	size := len(r.Header)
	for _, name := range [...]string{"Authorization", "Dpop"} {
		if r.Header[name] != nil {
			size--
		}
	}
	// A map of up to eight members is one block, which is what most have.
	out.Header = make(http.Header, size)
	for name, values := range r.Header {
		if name != "Authorization" && name != "Dpop" {
			out.Header[name] = values
		}
	}
	return out
}

type tokenKey struct{}

// TokenFromContext returns the access token of the request that ctx belongs
// to, if [Options].ExposeToken is set, and otherwise "".
func TokenFromContext(ctx context.Context) string {
	token, _ := ctx.Value(tokenKey{}).(string)
	return token
}
