package streamable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/internal/httptoken"
	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/tap"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// protocolHeaders is what the names of the protocol's own headers begin with.
// The user's have no say in them.
const protocolHeaders = "Mcp-"

const jsonType = "application/json"

// usualSize is set aside for a message: most are smaller.
const usualSize = 512

// usualHeaders is for how many headers a request has room at once.
const usualHeaders = 8

// An outgoingRequest is what one request is made of, in one piece of memory.
// Nothing of it is shared with other requests: a transport of the user may write
// to it.
type outgoingRequest struct {
	address url.URL
	values  [usualHeaders]string // of headers
	n       int
	content []byte
	reader  bytes.Reader // of content: a type that net/http knows to be in memory, so that head and body leave together

	bad error // why a header cannot be sent: net/http would refuse it

	progress web.RequestProgress
}

// set adds a header whose name is valid. Its value is kept in it, if there is room.
func (p *outgoingRequest) set(h http.Header, name, value string) {
	if p.bad == nil && !isFieldValue(value) {
		p.bad = badValue(name)
	}
	if p.n == len(p.values) {
		h[name] = []string{value}
		return
	}
	p.values[p.n] = value
	h[name] = p.values[p.n : p.n+1 : p.n+1]
	p.n++
}

// again gives the content once more, for a redirect or another connection.
func (p *outgoingRequest) again() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(p.content)), nil
}

// newRequest makes a request with the user's headers and those of the session,
// and without content.
func (l *link) newRequest(ctx context.Context, method string, s *clientSession) (*http.Request, *outgoingRequest, error) {
	p := &outgoingRequest{address: *l.address}
	if l.tap != nil {
		ctx = tap.Begin(ctx, l.tap)
	}
	req := l.blank.WithContext(p.progress.Trace(ctx))
	req.Method, req.URL, req.Header = method, &p.address, make(http.Header, usualHeaders)
	if l.header != nil {
		header, err := l.header(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("headers for %s: %w", l.where, err)
		}
		p.bad = checkHeader(header)
		for name, values := range header {
			name = http.CanonicalHeaderKey(name)
			if !strings.HasPrefix(name, protocolHeaders) && name != headerLastEvent {
				req.Header[name] = append(req.Header[name], values...)
			}
		}
	}
	switch method {
	case http.MethodPost:
		p.set(req.Header, "Content-Type", jsonType)
		p.set(req.Header, "Accept", jsonType+", "+eventstream.ContentType)
	case http.MethodGet:
		p.set(req.Header, "Accept", eventstream.ContentType)
	}
	if s != nil {
		if s.id != "" && s.facts.Sessions {
			p.set(req.Header, headerSession, s.id)
		}
		if s.facts.VersionHeader {
			p.set(req.Header, headerVersion, s.facts.Version)
		}
	}
	return req, p, nil
}

// postRequest makes the request that carries m.
func (l *link) postRequest(ctx context.Context, m *jsonrpc.Outgoing, r transport.Route, s *clientSession) (*http.Request, *outgoingRequest, error) {
	content, err := m.AppendJSON(make([]byte, 0, usualSize))
	if err != nil {
		return nil, nil, err
	}
	req, p, err := l.newRequest(ctx, http.MethodPost, s)
	if err != nil {
		return nil, nil, err
	}
	p.content = content
	p.reader.Reset(content)
	req.Body, req.GetBody, req.ContentLength = io.NopCloser(&p.reader), p.again, int64(len(content))
	if s == nil && r.Carried {
		p.setRoute(req.Header, m, r)
	}
	return req, p, nil
}

// setRoute adds what a stateless revision repeats outside the body (spec
// 2026-07-28, basic/transports/streamable-http, Request Metadata).
func (p *outgoingRequest) setRoute(h http.Header, m *jsonrpc.Outgoing, r transport.Route) {
	facts, ok := revision.Lookup(r.Version)
	if !ok || m.Method == revision.Initialize {
		return
	}
	if facts.VersionHeader {
		p.set(h, headerVersion, r.Version)
	}
	if !facts.RouteHeaders {
		return
	}
	if r.Method != "" {
		p.set(h, headerMethod, r.Method)
	}
	if r.Name != "" {
		p.set(h, headerName, encodeHeader(r.Name))
	}
	for name, values := range r.Fields {
		if len(values) > 0 {
			if p.bad == nil && !httptoken.Valid(headerParam+name) {
				p.bad = badName(headerParam + name)
			}
			p.set(h, http.CanonicalHeaderKey(headerParam+name), encodeHeader(values[0]))
		}
	}
}

// roundTrip sends a request. Its error says whether the server may have
// carried it out: it is transport.ErrClosed if the request was not sent, and
// transport.ErrInterrupted if it may have been. A request that HTTP does not
// allow, or a transport of the user that says transport.ErrDenied, gives
// another error.
func (l *link) roundTrip(req *http.Request, p *outgoingRequest) (*http.Response, error) {
	if p.bad != nil {
		return nil, p.bad
	}
	resp, err := l.exchange(req)
	switch {
	case err == nil:
		return resp, nil
	case errors.Is(err, transport.ErrDenied):
		return nil, l.scrub(req.Method, err)
	}
	if p.progress.Unsent(err) {
		return nil, fmt.Errorf("%w: %w", transport.ErrClosed, l.scrub(req.Method, err))
	}
	return nil, fmt.Errorf("%w: %w", transport.ErrInterrupted, l.scrub(req.Method, err))
}

// exchange sends a request as the http.Client does, but leaves to it only what
// needs it: cookies, a timeout, a redirect, an error that it words.
func (l *link) exchange(req *http.Request) (*http.Response, error) {
	if l.client.Jar != nil || l.client.Timeout != 0 {
		return l.client.Do(req)
	}
	next := l.client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	resp, err := next.RoundTrip(req)
	if l.tap != nil && resp != nil && resp.Request == nil {
		resp.Request = req // what is shown goes by it
	}
	if err == nil && resp != nil && resp.Body != nil && resp.StatusCode/100 != 3 {
		return resp, nil
	}
	client, first := *l.client, true
	client.Transport = roundTrip(func(req *http.Request) (*http.Response, error) {
		if !first {
			return next.RoundTrip(req)
		}
		first = false // that one is carried out already
		return resp, err
	})
	return client.Do(req)
}

// A roundTrip is a transport that is a function.
type roundTrip func(req *http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// scrub takes the URL out of an error: its query may hold a secret.
func (l *link) scrub(method string, err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	return fmt.Errorf("%s %s: %w", method, l.where, err)
}

// checkHeader refuses what net/http would refuse, before anything is sent.
func checkHeader(h http.Header) error {
	for name, values := range h {
		if !httptoken.Valid(name) {
			return badName(name)
		}
		for _, value := range values {
			if !isFieldValue(value) {
				return badValue(name)
			}
		}
	}
	return nil
}

func badName(name string) error {
	return fmt.Errorf("%q cannot be the name of an HTTP header; nothing was sent", name)
}

// badValue does not show the value, which may be a secret.
func badValue(name string) error {
	return fmt.Errorf("header %s: the value has a control character, such as a line break, which HTTP does not allow; nothing was sent", name)
}

// isFieldValue reports whether s may be the value of a header (RFC 9110, section 5.5).
func isFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
