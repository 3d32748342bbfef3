package streamable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
)

// protocolHeaders is what the names of the protocol's own headers begin with.
// The user's have no say in them.
const protocolHeaders = "Mcp-"

const jsonType = "application/json"

// usualSize is set aside for a message: most are smaller.
const usualSize = 512

// newRequest makes a request with the user's headers and those of the session.
func (l *link) newRequest(ctx context.Context, method string, body []byte, s *clientSession) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, l.url, bytes.NewReader(body))
	if err != nil {
		return nil, l.scrub(method, err)
	}
	if l.header != nil {
		header, err := l.header(ctx)
		if err != nil {
			return nil, fmt.Errorf("headers for %s: %w", l.where, err)
		}
		for name, values := range header {
			name = http.CanonicalHeaderKey(name)
			if !strings.HasPrefix(name, protocolHeaders) && name != headerLastEvent {
				req.Header[name] = append(req.Header[name], values...)
			}
		}
	}
	switch method {
	case http.MethodPost:
		req.Header.Set("Content-Type", jsonType)
		req.Header.Set("Accept", jsonType+", "+eventstream.ContentType)
	case http.MethodGet:
		req.Header.Set("Accept", eventstream.ContentType)
	}
	if s != nil {
		if s.id != "" && s.facts.Sessions {
			req.Header.Set(headerSession, s.id)
		}
		if s.facts.VersionHeader {
			req.Header.Set(headerVersion, s.facts.Version)
		}
	}
	return req, nil
}

// postRequest makes the request that carries m.
func (l *link) postRequest(ctx context.Context, m *jsonrpc.Outgoing, r transport.Route, s *clientSession) (*http.Request, error) {
	body, err := m.AppendJSON(make([]byte, 0, usualSize))
	if err != nil {
		return nil, err
	}
	req, err := l.newRequest(ctx, http.MethodPost, body, s)
	if err != nil {
		return nil, err
	}
	if s == nil && r.Carried {
		setRoute(req.Header, m, r)
	}
	return req, nil
}

// setRoute adds what a stateless revision repeats outside the body (spec
// 2026-07-28, basic/transports/streamable-http, Request Metadata).
func setRoute(h http.Header, m *jsonrpc.Outgoing, r transport.Route) {
	facts, ok := revision.Lookup(r.Version)
	if !ok || m.Method == revision.Initialize {
		return
	}
	if facts.VersionHeader {
		h.Set(headerVersion, r.Version)
	}
	if !facts.RouteHeaders {
		return
	}
	if r.Method != "" {
		h.Set(headerMethod, r.Method)
	}
	if r.Name != "" {
		h.Set(headerName, encodeHeader(r.Name))
	}
	for name, values := range r.Fields {
		if len(values) > 0 {
			h.Set(headerParam+name, encodeHeader(values[0]))
		}
	}
}

// roundTrip sends a request. Its error says whether the server may have
// carried it out: it is transport.ErrClosed if the request was not sent, and
// transport.ErrInterrupted if it may have been. A request that HTTP does not
// allow gives another error.
func (l *link) roundTrip(req *http.Request) (*http.Response, error) {
	if err := checkHeader(req.Header); err != nil {
		return nil, err
	}
	var asked, wrote atomic.Bool
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GetConn:      func(string) { asked.Store(true) },
		WroteHeaders: func() { wrote.Store(true) },
	}))
	resp, err := l.client.Do(req)
	if err == nil {
		return resp, nil
	}
	// A transport that does not tell what it does gets no benefit of the doubt.
	if asked.Load() && !wrote.Load() || dialFailed(err) {
		return nil, fmt.Errorf("%w: %w", transport.ErrClosed, l.scrub(req.Method, err))
	}
	return nil, fmt.Errorf("%w: %w", transport.ErrInterrupted, l.scrub(req.Method, err))
}

// scrub takes the URL out of an error: its query may hold a secret.
func (l *link) scrub(method string, err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	return fmt.Errorf("%s %s: %w", method, l.where, err)
}

func dialFailed(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// checkHeader refuses what net/http would refuse, before anything is sent and
// without showing a value, which may be a secret.
func checkHeader(h http.Header) error {
	for name, values := range h {
		if !isToken(name) {
			return fmt.Errorf("%q cannot be the name of an HTTP header; nothing was sent", name)
		}
		for _, value := range values {
			if !isFieldValue(value) {
				return fmt.Errorf("header %s: the value has a control character, such as a line break, which HTTP does not allow; nothing was sent", name)
			}
		}
	}
	return nil
}

// isToken reports whether s is a token (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
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
