// Package netguard makes requests to addresses that strangers name, such as
// URLs in metadata, or pages that a model asks for, without letting them reach
// what is not theirs (server-side request forgery): which schemes and hosts,
// which addresses after resolution, how many bytes after decompression.
//
// [Client] is for pages: it follows redirects and checks each. [NewTransport]
// is the http.RoundTripper beneath it, for those with rules of their own for
// redirects. What is refused is a [*BlockedError].
package netguard

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Rules say what may be fetched. The zero value, and nil, permit https to
// public addresses.
type Rules struct {
	// AllowHosts are names, addresses or networks (CIDR) whose private
	// addresses may be dialled: for services inside a company. A name, without
	// port, is compared with the host of the URL, an address or network with the
	// dialled address. The metadata services of clouds, which hand out
	// credentials, are opened by their own address alone. Default none.
	AllowHosts []string
	// Plain permits http as well as https.
	Plain bool
	// Loopback permits loopback addresses under loopback names ([LoopbackHost]),
	// with http too, and no other addresses under these names.
	Loopback bool
	// MaxBody is the size in bytes of the largest body, decompressed. Reading
	// more is a *TooLargeError. Default 8 MiB.
	MaxBody int64
	// Decompress asks servers for gzip and deflate, and takes it off, for
	// requests that set neither Accept-Encoding nor Range. Default: no
	// compression is asked for, and none taken off.
	Decompress bool
	// UserAgent is sent with requests that have none. Default "parley".
	UserAgent string
	// Timeout is for one whole request of a Client, redirects and body
	// included. Default 30 s.
	Timeout time.Duration
	// MaxRedirects is how many redirects a Client follows; more are an error.
	// Default 5; -1 follows none and returns them as they are.
	MaxRedirects int
	// Proxy is as in http.Transport. Default nil: none, also none from the
	// environment, since behind a proxy no address can be checked but those
	// that URLs name themselves. The proxy's own address is not checked, and
	// loopback hosts are never reached through it. Hosts that are not ASCII are
	// refused then: in Punycode they are not.
	Proxy func(*http.Request) (*url.URL, error)
	// CheckProxied looks names up here before their requests go to a proxy, and
	// refuses a name that has no address here, or one that must not be dialled.
	// The proxy looks the name up again, and may find another address: a name that
	// changes its address between the two gets through. Default: names that go
	// to a proxy are not looked up.
	CheckProxied bool
	// TLS is the configuration of TLS. Default: the system's roots.
	TLS *tls.Config
	// Resolve looks names up, for tests of rebinding; at most 8 addresses are
	// tried. Default: the system's.
	Resolve func(ctx context.Context, host string) ([]string, error)
}

// A BlockedError says that a URL or the address behind it must not be
// fetched, and how it can be allowed.
type BlockedError struct {
	// URL has no query.
	URL    string
	Reason string
}

func (e *BlockedError) Error() string {
	return "blocked: " + e.URL + ": " + e.Reason
}

// NotRun tells transports of MCP that the request was not carried out.
func (e *BlockedError) NotRun() bool { return true }

// A Transport is an http.RoundTripper that holds every request to its rules:
// the URL before it is used, the address when it is dialled (so that a name
// that changes its address does not help), the body while it is read. Private,
// link-local, shared, mapped, translated (NAT64, 6to4, Teredo) and other
// special ranges are no public addresses (IANA special-purpose address
// registries, RFC 6890). It follows no redirects, keeps no cookies and takes
// nothing from the environment. It may be used by many goroutines at once.
type Transport struct {
	rules Rules
	allow allowList
	next  *http.Transport
}

// NewTransport makes a Transport. Rules may be nil; they are copied.
func NewTransport(r *Rules) *Transport {
	t := new(Transport)
	if r != nil {
		t.rules = *r
	}
	if t.rules.MaxBody <= 0 {
		t.rules.MaxBody = 8 << 20
	}
	t.rules.MaxBody = min(t.rules.MaxBody, math.MaxInt64-slack-1) // what is added to it still fits
	if t.rules.Timeout <= 0 {
		t.rules.Timeout = 30 * time.Second
	}
	t.rules.MaxRedirects = cmp.Or(t.rules.MaxRedirects, 5)
	t.rules.UserAgent = cmp.Or(t.rules.UserAgent, "parley")
	t.allow = newAllowList(t.rules.AllowHosts)
	t.next = &http.Transport{
		Proxy:                  routeProxy,
		DialContext:            t.dial,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // it is taken off here, within the limit
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        time.Minute,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if t.rules.TLS != nil {
		t.next.TLSClientConfig = t.rules.TLS.Clone()
	}
	return t
}

// CloseIdleConnections closes connections that no request uses. Later requests
// are possible.
func (t *Transport) CloseIdleConnections() { t.next.CloseIdleConnections() }

// Check says whether a URL may be fetched, as far as the URL tells: the
// address of a name is checked when it is dialled. The error is a *BlockedError.
func (t *Transport) Check(u *url.URL) error {
	reason := ""
	host := u.Hostname()
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		reason = "must be https or http"
	case host == "" || u.Opaque != "":
		reason = "must have a host"
	case u.User != nil:
		reason = "must not have a user"
	case numeric(host):
		reason = "host is a number; write addresses like 192.0.2.1"
	case strings.HasSuffix(host, ".") && LoopbackHost(host[:len(host)-1]):
		reason = "must be a loopback name without a dot behind it"
	case u.Scheme == "https" || t.rules.Plain || t.rules.Loopback && LoopbackHost(host):
		if addr, err := netip.ParseAddr(host); err == nil {
			reason = t.refuseReason(host, addr)
		}
	case LoopbackHost(host):
		reason = "must be https: this machine itself is not allowed here"
	default:
		reason = "must be https"
	}
	if reason == "" {
		return nil
	}
	return &BlockedError{URL: shown(u), Reason: reason}
}

// shown is a URL for errors and logs: without user, query and fragment.
func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host), Path: u.Path, RawPath: u.RawPath}).String()
}

// RoundTrip implements http.RoundTripper. The error of a forbidden target is a
// *BlockedError, which may be wrapped; no error shows the query. A body whose
// reading the end of the request's context cut off is an error, however well it
// seems to end.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.roundTrip(req)
	if err == nil {
		return resp, nil
	}
	if req.Body != nil {
		_ = req.Body.Close() // may have been before
	}
	if blocked, ok := errors.AsType[*BlockedError](err); ok {
		// The dialer knows the host alone.
		return nil, &BlockedError{URL: shown(req.URL), Reason: blocked.Reason}
	}
	return nil, err
}

func (t *Transport) roundTrip(req *http.Request) (*http.Response, error) {
	if err := t.Check(req.URL); err != nil {
		return nil, err
	}
	ctx, err := t.route(req)
	if err != nil {
		return nil, err
	}
	r := req.Clone(ctx)
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if len(r.Header.Values("User-Agent")) == 0 {
		r.Header.Set("User-Agent", t.rules.UserAgent)
	}
	asks := t.rules.Decompress && r.Header.Get("Accept-Encoding") == "" && r.Header.Get("Range") == ""
	if asks {
		r.Header.Set("Accept-Encoding", "gzip, deflate")
	}
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < http.StatusOK {
		err = errors.New("answer switches protocols") // and its body has no end
	} else {
		err = t.guardBody(ctx, resp, asks)
	}
	if err != nil {
		_ = resp.Body.Close() // it is not read
		return nil, err
	}
	resp.Request = req
	return resp, nil
}

// Client makes an http.Client for pages of strangers. Redirects of GET and HEAD
// may lead to other hosts; each is checked like the first URL. Those of other
// methods are returned as they are: a body is for the one it was sent to. Where a
// redirect leaves the first origin, only Accept, Accept-Language and User-Agent
// go along, and no Referer ever does. The client has no cookies.
func Client(r *Rules) *http.Client {
	t := NewTransport(r)
	return &http.Client{Transport: t, Timeout: t.rules.Timeout, CheckRedirect: t.redirect}
}

// redirect is http.Client.CheckRedirect.
func (t *Transport) redirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case t.rules.MaxRedirects < 0, first.Method != http.MethodGet && first.Method != http.MethodHead && first.Method != "":
		return http.ErrUseLastResponse
	case len(via) > t.rules.MaxRedirects:
		return fmt.Errorf("more than %d redirects", t.rules.MaxRedirects)
	}
	req.Header.Del("Referer")
	if req.URL.Scheme == first.URL.Scheme && strings.EqualFold(req.URL.Host, first.URL.Host) {
		return nil
	}
	for name := range req.Header {
		switch name {
		case "Accept", "Accept-Language", "User-Agent":
		default:
			delete(req.Header, name)
		}
	}
	return nil
}
