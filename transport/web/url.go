package web

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// ParseURL reads the URL of an endpoint, which has one of the schemes, a host,
// and no user or password, since those would end up in logs. A fragment is
// left out. Errors do not repeat the URL: it may hold a secret.
func ParseURL(raw string, schemes ...string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the URL of the server cannot be read; write it as in %s://server.example/mcp", schemes[len(schemes)-1])
	case !slices.Contains(schemes, u.Scheme):
		return nil, fmt.Errorf("the URL of the server begins with %q, not with %s://", u.Scheme, strings.Join(schemes, ":// or "))
	case u.Hostname() == "":
		return nil, errors.New("the URL of the server names no host")
	case u.User != nil:
		return nil, errors.New("the URL of the server holds a user or password, which would end up in logs; give credentials with Header")
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// RedactURL returns a URL without the parts in which secrets travel: scheme, host and
// path.
func RedactURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// Key names the server at a URL for what outlives a connection (Key of
// transport.Dialer): its RedactURL and, since a query may say which of several
// servers is meant, a digest of that. It is empty if ParseURL refuses the URL.
func Key(raw string, schemes ...string) string {
	u, err := ParseURL(raw, schemes...)
	switch {
	case err != nil:
		return ""
	case u.RawQuery == "":
		return RedactURL(u)
	}
	digest := sha256.Sum256([]byte(u.RawQuery))
	return RedactURL(u) + "?" + hex.EncodeToString(digest[:8])
}
