package issuer

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"github.com/parley-mcp/parley/oauth"
)

// cookies are the two cookies of an issuer. One marks the browser, so that what
// a person was asked in it is answered in it (spec, security best practices:
// the state of a trip to another site MUST be bound to the browser); the other
// is the login. Their names have the prefix __Host- where that is possible, and
// distinguish issuers of one host, since cookies know neither ports nor paths.
type cookies struct {
	browser, login string
	secure         bool
}

func newCookies(base *url.URL) cookies {
	c := cookies{browser: "parley-browser-", login: "parley-login-", secure: base.Scheme == "https"}
	if c.secure {
		c.browser, c.login = "__Host-"+c.browser, "__Host-"+c.login
	}
	suffix := Hash(base.String())[:8]
	c.browser += suffix
	c.login += suffix
	return c
}

// read returns the value of a cookie if it can be one of ours, else "". Of
// several with one name, as other hosts of a domain may plant where there is no
// prefix to forbid it, none is taken.
func (c cookies) read(r *http.Request, name string) string {
	found := r.CookiesNamed(name)
	if len(found) != 1 || len(found[0].Value) != secretLength {
		return ""
	}
	return found[0].Value
}

// secretLength is that of what oauth.NewSecret returns.
const secretLength = 43

// set sets a cookie until the browser closes, or, with an empty value, removes it.
func (c cookies) set(w http.ResponseWriter, name, value string) {
	age := 0
	if value == "" {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: age,
		Secure: c.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// browserMark returns the mark of the browser, and gives it one if it has none.
func (s *Server) browserMark(w http.ResponseWriter, r *http.Request) string {
	if mark := s.cookies.read(r, s.cookies.browser); mark != "" {
		return mark
	}
	mark := oauth.NewSecret()
	s.cookies.set(w, s.cookies.browser, mark)
	return mark
}

// csrf is the token of a form: it belongs to the browser and to the one
// request that the form is about.
func csrf(mark, handle string) string {
	mac := hmac.New(sha256.New, []byte(mark))
	mac.Write([]byte("csrf " + handle))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// ownForm says whether a POST comes from a form of ours, in this browser and
// for this handle. The token decides; the headers that browsers add are a
// second lock.
func (s *Server) ownForm(r *http.Request, handle string) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return false
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != s.origin() {
		return false
	}
	mark := s.cookies.read(r, s.cookies.browser)
	given := r.PostForm["csrf"]
	return mark != "" && len(given) == 1 && equal(given[0], csrf(mark, handle))
}

// origin is the issuer's, as browsers write it.
func (s *Server) origin() string {
	host := strings.ToLower(s.base.Host)
	if port := s.base.Port(); port == "443" && s.secure() || port == "80" && !s.secure() {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return s.base.Scheme + "://" + host
}

func (s *Server) secure() bool { return s.base.Scheme == "https" }

// equal compares secrets in constant time.
func equal(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}
