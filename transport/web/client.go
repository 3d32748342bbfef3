package web

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
)

// maxRedirects is how many redirects Client follows for one request.
const maxRedirects = 5

// maxText is how many bytes of a body a StatusError keeps.
const maxText = 512

// Client returns a copy of c (nil: a client with http.DefaultTransport) that
// follows redirects only within one origin and only such that repeat the
// request as it is (307, 308; any for GET), at most 5 times. Others are not
// followed: headers may carry credentials, and a body must not go where the
// person did not send it. The client then returns the redirecting response
// itself, of which [NewStatusError] tells where the server pointed. A
// CheckRedirect of c is asked as well. c is not written to.
func Client(c *http.Client) *http.Client {
	var guarded http.Client
	if c != nil {
		guarded = *c
	}
	next := guarded.CheckRedirect
	guarded.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		first := via[0]
		if len(via) > maxRedirects || r.Method != first.Method || !SameOrigin(r.URL, first.URL) {
			return http.ErrUseLastResponse
		}
		if next != nil {
			return next(r, via)
		}
		return nil
	}
	return &guarded
}

// SameOrigin reports whether two URLs have the same scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

// portOf is the port of a URL, written or implied.
func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return strconv.Itoa(int(schemePort(strings.ToLower(u.Scheme))))
}

// A StatusError says that a server answered with a status that carries no
// message of the protocol, or where the status counts for more. With 401 and
// 403 it is a transport.ErrDenied; with 408, 429 and 5xx errors.As finds a
// transport.TemporaryError.
type StatusError struct {
	// Status is the HTTP status code.
	Status int
	// Header is the header of the response, such as WWW-Authenticate.
	Header http.Header
	// Text is the beginning of a body that is text, at most 512 bytes, with
	// control characters replaced; empty if there was none.
	Text string

	cause   error  // the message of the protocol that came with it, if there was one
	target  string // where a redirect led, without what may be secret
	foreign bool   // target is another origin
}

// NewStatusError reads what is needed of a response: a little of its body, if
// that is text. Reading waits for as long as the request's context lets it. It
// does not close the body.
func NewStatusError(r *http.Response) *StatusError {
	e := &StatusError{Status: r.StatusCode, Header: r.Header, Text: readText(r)}
	if r.StatusCode/100 != 3 {
		return e
	}
	to, err := r.Location()
	if err != nil {
		return e
	}
	e.foreign = r.Request != nil && r.Request.URL != nil && !SameOrigin(to, r.Request.URL)
	shown := url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path, RawPath: to.RawPath}
	e.target = printable(shown.String())
	return e
}

// readText reads the beginning of a body that people can read.
func readText(r *http.Response) string {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	unknown := r.Header.Get("Content-Type") == ""
	isText := strings.HasPrefix(kind, "text/") || kind == "application/json" || strings.HasSuffix(kind, "+json")
	switch {
	case r.Body == nil, err != nil && !unknown, !isText && !unknown:
		return ""
	case kind == "text/event-stream" && r.ContentLength < 0: // it may never end
		return ""
	}
	data := make([]byte, maxText)
	n, _ := io.ReadFull(r.Body, data) // what came is enough
	if unknown && !strings.HasPrefix(http.DetectContentType(data[:n]), "text/") {
		return ""
	}
	return printable(string(data[:n]))
}

// printable makes text of a stranger harmless for terminals and logs, in at
// most maxText bytes: white space becomes a blank, and what cannot be seen or
// changes how the rest is seen becomes a question mark.
func printable(s string) string {
	s = s[:min(len(s), maxText)]
	for range utf8.UTFMax - 1 { // the cut may have left a part of a letter
		if r, size := utf8.DecodeLastRuneInString(s); r == utf8.RuneError && size == 1 {
			s = s[:len(s)-1]
		}
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r != utf8.RuneError && unicode.IsPrint(r):
			return r
		}
		return '?'
	}, s)
	return strings.TrimSpace(s)
}

// Because gives the error the message of the protocol that came with the status,
// to be found with errors.As, and returns it.
func (e *StatusError) Because(cause *jsonrpc.Error) *StatusError {
	if cause != nil {
		e.cause, e.Text = cause, printable(cause.Message)
	}
	return e
}

// Unwrap returns the message of the protocol that came with the status, or nil.
func (e *StatusError) Unwrap() error { return e.cause }

// Is makes the error a transport.ErrDenied if its status says so.
func (e *StatusError) Is(target error) bool {
	return target == transport.ErrDenied && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden)
}

// As gives errors.As a transport.TemporaryError for the statuses that may pass:
// 408, 429 and 5xx. With 429 the request has not run (RFC 6585, section 4).
func (e *StatusError) As(target any) bool {
	temporary, ok := target.(**transport.TemporaryError)
	if !ok || !e.Temporary() {
		return false
	}
	*temporary = &transport.TemporaryError{
		Busy:       e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable,
		NotRun:     e.Status == http.StatusTooManyRequests,
		RetryAfter: e.retryAfter(time.Now()),
		Err:        e,
	}
	return true
}

// Temporary reports whether the status may be another one later, for the same
// request.
func (e *StatusError) Temporary() bool {
	return e.Status == http.StatusRequestTimeout || e.Status == http.StatusTooManyRequests || e.Status/100 == 5
}

// retryAfter reads the header of that name: seconds, or a date (RFC 9110,
// section 10.2.3). What is neither says nothing.
func (e *StatusError) retryAfter(now time.Time) time.Duration {
	text := strings.TrimSpace(e.Header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}

// Error says the status, what it means here and what to do.
func (e *StatusError) Error() string {
	said := "the server answered " + strconv.Itoa(e.Status)
	switch {
	case e.target != "" && e.foreign:
		return said + " to " + e.target + ", which is another origin; use that URL if you trust it"
	case e.target != "":
		return said + " to " + e.target + ", which was not followed; use that URL"
	}
	if text := http.StatusText(e.Status); text != "" {
		said += " " + text
	}
	if advice := e.advice(); advice != "" {
		said += "; " + advice
	}
	if e.Text != "" {
		said += fmt.Sprintf(" (it said: %s)", e.Text)
	}
	return said
}

// advice says what a status means for a client.
func (e *StatusError) advice() string {
	switch e.Status {
	case http.StatusUnauthorized:
		return "it wants authorization"
	case http.StatusForbidden:
		if scopes := wanted(e.Header); len(scopes) > 0 {
			return "it wants authorization with the scope " + printable(strings.Join(scopes, " "))
		}
		return "it does not let this caller in"
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		return "check the URL"
	case http.StatusUpgradeRequired:
		return "it speaks another protocol there; check the URL"
	case http.StatusProxyAuthRequired:
		return "the proxy between wants authorization"
	case http.StatusRequestEntityTooLarge:
		return "send less at a time"
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return "try again later"
	}
	switch e.Status / 100 {
	case 2:
		return "that is no answer of this protocol; check the URL"
	case 5:
		return "the fault is on its side"
	}
	return ""
}
