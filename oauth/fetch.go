package oauth

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/netguard"
)

// FetchOptions adjust a Fetcher. The zero value, and nil, are safe.
type FetchOptions struct {
	// AllowHosts are names, addresses or networks (CIDR) whose private
	// addresses may be dialled: for identity providers inside a company. A
	// name, without port, is compared with the host of the URL, an address or
	// network with the dialled address. The metadata services of clouds, which hand out
	// credentials, are opened by their own address alone. Default none.
	AllowHosts []string
	// MaxBody is the size in bytes of the largest body. Default 1 MiB.
	MaxBody int64
	// Timeout is for one whole request, redirects included. Default 15 s.
	Timeout time.Duration
	// MaxRedirects is how many redirects of a GET are followed, within one
	// origin only; more are an error. Default 3; -1 follows none and returns
	// them as they are, as is done with those of a POST always.
	MaxRedirects int
	// Proxy is as in http.Transport. Default nil: none, also none from the
	// environment, since behind a proxy no address can be checked but those
	// that URLs name themselves. The proxy's own address is not checked, and
	// loopback hosts are never reached through it.
	Proxy func(*http.Request) (*url.URL, error)
	// TLS is the configuration of TLS. Default: the system's roots.
	TLS *tls.Config
	// Resolve looks names up, for tests of rebinding; at most 8 addresses are
	// tried. Default: the system's.
	Resolve func(ctx context.Context, host string) ([]string, error)
	// Around puts something around what sends each request, such as a tap
	// (TapTransport of package transport/web); addresses are checked beneath it. It is called twice, when
	// the Fetcher is made. Default nil: nothing.
	Around func(next http.RoundTripper) http.RoundTripper
}

// A Fetcher makes every request to the outside for metadata, keys, tokens
// and registrations: https alone (http on loopback hosts if loopback is
// allowed), the dialled address checked as package netguard does, no redirects
// of a POST, none to another origin, bodies and times bounded, no cookies, no
// credentials of the environment. spec, security best practices, SSRF. It may be used by many
// goroutines at once.
type Fetcher struct {
	options   FetchOptions
	transport *netguard.Transport
	sender    http.RoundTripper // the transport, and what is around it
	pair      *Fetcher          // the same with loopback, or itself
}

// NewFetcher makes a Fetcher.
func NewFetcher(o *FetchOptions) *Fetcher {
	var options FetchOptions
	if o != nil {
		options = *o
	}
	options.MaxBody = positive(options.MaxBody, 1<<20)
	options.Timeout = positive(options.Timeout, 15*time.Second)
	if options.MaxRedirects == 0 {
		options.MaxRedirects = 3
	}
	rules := netguard.Rules{
		AllowHosts: options.AllowHosts, MaxBody: options.MaxBody,
		Proxy: options.Proxy, TLS: options.TLS, Resolve: options.Resolve,
	}
	f := &Fetcher{options: options, transport: netguard.NewTransport(&rules)}
	rules.Loopback = true
	local := &Fetcher{options: options, transport: netguard.NewTransport(&rules)}
	f.pair, local.pair = local, local
	f.sender, local.sender = f.transport, local.transport
	if options.Around != nil {
		f.sender, local.sender = options.Around(f.transport), options.Around(local.transport)
	}
	return f
}

func positive[T int64 | time.Duration](n, otherwise T) T {
	if n > 0 {
		return n
	}
	return otherwise
}

// Loopback returns a Fetcher that differs from f in that it may dial loopback
// addresses under loopback names, for MCP servers on this machine. The
// connections are separate.
func (f *Fetcher) Loopback() *Fetcher { return f.pair }

// Close closes idle connections, of Loopback too. Requests that are under way
// are not disturbed, and later ones are possible.
func (f *Fetcher) Close() {
	f.transport.CloseIdleConnections()
	f.pair.transport.CloseIdleConnections()
}

// A Response is an answer that was read whole, without a byte order mark.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	// URL is where it came from in the end.
	URL string
}

// JSON reports whether the body is announced as JSON (application/json or a
// +json type).
func (r *Response) JSON() bool {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return false
	}
	return t == "application/json" || strings.HasSuffix(t, "+json")
}

// Document reports whether the body may be a JSON document: it is announced as JSON, or begins as an
// object does. Servers of files, and some others, announce something else.
func (r *Response) Document() bool {
	return r.JSON() || bytes.HasPrefix(bytes.TrimLeft(r.Body, " \t\r\n"), []byte("{"))
}

// Get fetches a URL. header may be nil. Any status is an answer, not an error,
// and so is a redirect if MaxRedirects is -1. The error of a forbidden target
// is a *BlockedError, which may be wrapped. No error shows the query of target.
func (f *Fetcher) Get(ctx context.Context, target string, header http.Header) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, f.options.Timeout)
	defer cancel()
	u, err := f.check(target)
	if err != nil {
		return nil, err
	}
	for hops := 0; ; hops++ {
		r, err := f.send(ctx, http.MethodGet, u, header, nil)
		if err != nil {
			return nil, err
		}
		location := r.Header.Get("Location")
		if f.options.MaxRedirects < 0 || !isRedirect(r.Status) || location == "" {
			return r, nil
		}
		if hops == f.options.MaxRedirects {
			return nil, fmt.Errorf("fetch %s: more than %d redirects", withoutQuery(u), hops)
		}
		if u, err = f.redirect(u, location); err != nil {
			return nil, err
		}
	}
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// redirect checks where a redirect of u leads.
func (f *Fetcher) redirect(u *url.URL, location string) (*url.URL, error) {
	location, _, _ = strings.Cut(location, "#")
	to, err := u.Parse(location)
	if err != nil {
		return nil, &BlockedError{URL: withoutQuery(u), Reason: "redirects to what is no URL"}
	}
	to, err = f.check(to.String())
	if err != nil {
		return nil, fmt.Errorf("redirect of %s: %w", withoutQuery(u), err)
	}
	if Origin(to) != Origin(u) {
		return nil, &BlockedError{URL: withoutQuery(u), Reason: "redirects to another origin, " + Origin(to)}
	}
	return to, nil
}

// PostForm sends a form, as token endpoints take it. Redirects are not
// followed but returned as they are: a form may hold codes and secrets.
func (f *Fetcher) PostForm(ctx context.Context, target string, form url.Values, header http.Header) (*Response, error) {
	return f.post(ctx, target, "application/x-www-form-urlencoded", []byte(form.Encode()), header)
}

// PostJSON sends a JSON text, as registration endpoints take it. Redirects are
// returned as they are.
func (f *Fetcher) PostJSON(ctx context.Context, target string, body []byte, header http.Header) (*Response, error) {
	return f.post(ctx, target, "application/json", body, header)
}

func (f *Fetcher) post(ctx context.Context, target, contentType string, body []byte, header http.Header) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, f.options.Timeout)
	defer cancel()
	u, err := f.check(target)
	if err != nil {
		return nil, err
	}
	header = header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", contentType)
	return f.send(ctx, http.MethodPost, u, header, body)
}

// check says whether a URL may be fetched, as far as the URL tells; the
// address is checked when it is dialled.
func (f *Fetcher) check(target string) (*url.URL, error) {
	u, err := parseURL(target, maxAuthorizationURL)
	if err != nil {
		return nil, &BlockedError{URL: shown(target), Reason: err.Error()}
	}
	u.Host = strings.ToLower(u.Host)
	if err := f.transport.Check(u); err != nil {
		return nil, err
	}
	return u, nil
}

// shown is a URL that is none, for an error: without query, bounded.
func shown(target string) string {
	target, _, _ = strings.Cut(target, "?")
	target, _, _ = strings.Cut(target, "#")
	if i := strings.LastIndexByte(target, '@'); i >= 0 {
		target = target[i+1:] // what stands before may be a password
	}
	return cleanText(target, 256)
}

// send makes one request and reads its answer.
func (f *Fetcher) send(ctx context.Context, method string, u *url.URL, header http.Header, body []byte) (*Response, error) {
	r, err := f.exchange(ctx, method, u, header, body)
	if err == nil {
		return r, nil
	}
	if blocked, ok := errors.AsType[*BlockedError](err); ok {
		return nil, blocked
	}
	return nil, fmt.Errorf("fetch %s: %w", withoutQuery(u), err)
}

func (f *Fetcher) exchange(ctx context.Context, method string, u *url.URL, header http.Header, body []byte) (*Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("request cannot be made")
	}
	for name, values := range header {
		req.Header[name] = slices.Clone(values)
	}
	req.Header.Set("User-Agent", "parley")
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	// RoundTrip, not a Client: there are no cookies, no redirects and no
	// referrers to switch off, and errors without URLs.
	resp, err := f.sender.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF")) // RFC 8259, section 8.1: MAY be ignored
	return &Response{Status: resp.StatusCode, Header: resp.Header, Body: data, URL: u.String()}, nil
}

// A BlockedError says that a URL or the address behind it must not be
// fetched, and how it can be allowed.
type BlockedError = netguard.BlockedError
