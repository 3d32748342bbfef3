package issuer

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/oauth"
)

// redirects says which redirect URIs clients may have. It never changes.
type redirects struct {
	schemes []string // without a dot, that native clients may have
}

// maxRedirects is how many redirect URIs a client may have, maxRedirect how
// long one may be in bytes.
const (
	maxRedirects = 20
	maxRedirect  = 2048
)

// newRedirects checks schemes that the operator permits.
func newRedirects(schemes []string) (*redirects, error) {
	for _, scheme := range schemes {
		rest := strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+-")
		if scheme == "" || rest != "" || scheme[0] < 'a' || slices.Contains(reservedSchemes, scheme) {
			return nil, fmt.Errorf("scheme %q of redirect URIs cannot be a private one: it is in small letters, without a dot, and means nothing to browsers and systems", scheme)
		}
	}
	return &redirects{schemes: slices.Clone(schemes)}, nil
}

// reservedSchemes mean something to browsers or operating systems: they run
// code, read files, or hand what follows to a program that expects no code.
var reservedSchemes = []string{
	"about", "blob", "chrome", "chrome-extension", "content", "data", "file", "filesystem", "ftp", "geo", "http", "https",
	"intent", "itms-apps", "jar", "javascript", "mailto", "market", "moz-extension", "ms-msdt", "resource", "search-ms", "shell",
	"sms", "smb", "ssh", "tel", "urn", "vbscript", "view-source", "ws", "wss",
}

// check is oauth.CheckRedirectURI, and refuses what would show people
// another host than the one that gets the code, or collide with what an answer
// carries.
func (r *redirects) check(uri string, native bool) error {
	if len(uri) > maxRedirect {
		return errors.New("redirect URI is too long")
	}
	if strings.ContainsFunc(uri, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return errors.New("redirect URI has characters beyond ASCII")
	}
	form := uri
	if scheme, _, _ := strings.Cut(uri, ":"); native && slices.Contains(r.schemes, strings.ToLower(scheme)) {
		form = "private." + uri // all rules but that of the dot
	}
	if err := oauth.CheckRedirectURI(form, native); err != nil {
		return err
	}
	u, err := url.Parse(uri)
	if err != nil {
		return errors.New("redirect URI cannot be read")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("query of the redirect URI cannot be read")
	}
	for _, name := range []string{"code", "state", "iss", "error", "error_description", "error_uri"} {
		if query.Has(name) {
			return errors.New("query of the redirect URI has a parameter of an answer")
		}
	}
	return nil
}

// registered says whether a client registered the redirect URI that a request
// gives: exactly, or but for the port of a native client on loopback (RFC 8252,
// section 7.3).
func (r *redirects) registered(c *Client, given string) bool {
	native := c.Metadata.ApplicationType == applicationNative
	return slices.ContainsFunc(c.Metadata.RedirectURIs, func(uri string) bool {
		// What was registered has been checked; what is given with another
		// port is checked here.
		return oauth.MatchRedirectURI(uri, given, native) && r.check(given, native) == nil
	})
}

// isDeviceRedirect says whether a redirect URI, which was checked, leads to a program
// on the device of the browser: to whichever listens there, or has claimed the
// scheme.
func isDeviceRedirect(uri string) bool {
	u, err := url.Parse(uri)
	return err == nil && (!isWeb(u) || oauth.LoopbackHost(u.Hostname()))
}

// isWeb says whether browsers open a URL themselves. The parser writes schemes
// in small letters, as browsers do.
func isWeb(u *url.URL) bool { return u.Scheme == "https" || u.Scheme == "http" }
