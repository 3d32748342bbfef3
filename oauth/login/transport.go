package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/parley-mcp/parley/oauth"
)

// Transport returns a RoundTripper that puts tokens on requests to resources
// that were signed in to, and signs in when a resource answers 401, or asks for
// more scopes when it answers 403 with insufficient_scope; the request is then
// repeated. next makes the requests; nil is http.DefaultTransport.
//
// A token goes to its resource alone: same scheme, host and port, and the same
// path or one below, over https or to this machine. It does not follow a
// redirect to another origin, and what such a redirect leads to causes no
// sign-in. A request that has an Authorization header is left as it is. One
// whose body cannot be repeated (no GetBody) gets its 401 or 403 back when the
// new tokens are there, for the next.
//
// Errors of the way to a token, such as *SignInRequiredError and
// *DiscoveryError, are the errors of the request, and match
// transport.ErrDenied, unless trouble of the network or a server may pass by
// itself. After a person has refused, or did not finish, requests to that
// resource get the same error for a minute. While a person is asked the time
// limits of package client stand still. spec 2026-07-28,
// basic/authorization: "authorization MUST be included in every HTTP request".
func (c *Client) Transport(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return &transport{c: c, next: next}
}

type transport struct {
	c    *Client
	next http.RoundTripper
}

// Format writes what it is for each verb: its client has secrets.
func (t *transport) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "login transport") }

// CloseIdleConnections closes those of the transport underneath.
func (t *transport) CloseIdleConnections() {
	if next, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL == nil || req.Header.Get("Authorization") != "" || strayed(req) || !private(req.URL) {
		return t.next.RoundTrip(req)
	}
	p := &passage{t: t, req: req}
	s, err := t.c.find(req.Context(), req.URL)
	if err != nil { // the resource may want no token
		t.c.log.WarnContext(req.Context(), "request goes without token", "error", err)
		s = nil
	}
	s, err = t.c.fresh(req.Context(), s)
	if err != nil {
		closeBody(req)
		return nil, failed(req, err)
	}
	return p.run(s)
}

// failed is the error of a request for which there is no token.
func failed(req *http.Request, err error) error {
	if req.Context().Err() != nil || isTransient(err) {
		return fmt.Errorf("authorize a request: %w", err)
	}
	return &deniedError{err}
}

// maxRedirects is how many redirects are looked at; a request that comes of
// more has gone astray.
const maxRedirects = 32

// strayed reports whether a request comes of redirects of which one led to
// another origin, were it the last or an earlier one: a server elsewhere must
// not act here in the person's name, by way of a redirect of our own either.
// Attack: token leak on redirect.
func strayed(req *http.Request) bool {
	at := req
	for range maxRedirects {
		if at.Response == nil || at.Response.Request == nil || at.Response.Request.URL == nil {
			return false
		}
		from := at.Response.Request
		if !sameOrigin(from.URL, at.URL) {
			return true
		}
		at = from
	}
	return true
}

// private reports whether a token may travel to a URL: over TLS, or within
// this machine (OAuth 2.1, section 1.5).
func private(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && oauth.LoopbackHost(u.Hostname())
}

// passage is one request on its way, with its repetitions.
type passage struct {
	t   *transport
	req *http.Request

	sent    int  // how often the request went out
	rounds  int  // how often a 401 led to other tokens
	tried   bool // refreshing was
	nonced  bool // it was repeated for a nonce
	nonce   string
	stepped int // how often it led to a step-up
}

// maxRounds is how often a 401 leads to other tokens: those of another
// request, refreshed ones, new ones.
const maxRounds = 3

func (p *passage) run(s *session) (*http.Response, error) {
	for {
		resp, err := p.send(s)
		if err != nil {
			return nil, err
		}
		next, again, err := p.judge(resp, s)
		if err != nil {
			discard(resp)
			return nil, failed(p.req, err)
		}
		if !again {
			return resp, nil
		}
		discard(resp)
		s = next
	}
}

// send sends the request once, with what s has for it. req itself is not
// changed, as http.RoundTripper demands.
func (p *passage) send(s *session) (*http.Response, error) {
	req := p.req.WithContext(p.req.Context())
	if p.sent++; p.sent > 1 && req.Body != nil && req.Body != http.NoBody {
		body, err := req.GetBody()
		if err != nil {
			return nil, fmt.Errorf("repeat a request: %w", err)
		}
		req.Body = body
	}
	if s != nil {
		req.Header = req.Header.Clone()
		if req.Header == nil {
			req.Header = http.Header{}
		}
		if err := p.put(req, s); err != nil {
			closeBody(req)
			return nil, err
		}
	}
	return p.t.next.RoundTrip(req)
}

// put puts the token on a request, in the header alone (spec 2026-07-28,
// basic/authorization, "Token Requirements": MUST NOT be in the query string).
func (p *passage) put(req *http.Request, s *session) error {
	if s.prover == nil {
		req.Header.Set("Authorization", "Bearer "+s.tokens.Access)
		return nil
	}
	target := req.URL.String()
	p.nonce = s.prover.nonce(target)
	proof, err := s.prover.proof(method(req), target, s.tokens.Access, p.t.c.o.Now())
	if err != nil {
		return fmt.Errorf("prove the possession of a token's key: %w", err)
	}
	req.Header.Set("Authorization", "DPoP "+s.tokens.Access)
	req.Header.Set(headerDPoP, proof)
	return nil
}

func method(req *http.Request) string {
	if req.Method == "" {
		return http.MethodGet
	}
	return req.Method
}

// judge reads a response and says whether the request is to be repeated, and
// with what.
func (p *passage) judge(resp *http.Response, s *session) (next *session, again bool, err error) {
	if s != nil && s.prover != nil {
		s.prover.learn(p.req.URL.String(), resp.Header)
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return p.unauthorized(resp, s)
	case http.StatusForbidden:
		next, again, err = p.forbidden(resp, s)
	default:
		if p.stepped > 0 {
			p.t.c.forgetSteps(p.operation(s))
		}
	}
	if s != nil {
		s.probe.worked.Store(true)
	}
	return next, again, err
}

// unauthorized answers a 401: with a nonce, or other tokens.
func (p *passage) unauthorized(resp *http.Response, s *session) (*session, bool, error) {
	c := p.t.c
	r, ours := p.readRefusal(resp)
	if !ours {
		return nil, false, nil
	}
	if s != nil && s.prover != nil && r.code == oauth.UseDPoPNonce {
		again := !p.nonced && s.prover.nonce(p.req.URL.String()) != p.nonce && p.repeatable()
		p.nonced = true
		return s, again, nil // RFC 9449, section 9: once
	}
	if p.rounds++; p.rounds > maxRounds || s.futile(c.o.Now()) {
		return nil, false, nil
	}
	got, err := c.acquire(p.req.Context(), &want{refusal: *r, had: generationOf(s), noRefresh: p.tried})
	if err != nil {
		return nil, false, err
	}
	p.tried, p.nonced = true, false
	return got.session, p.repeatable(), nil
}

// forbidden answers a 403 with insufficient_scope: with more scopes, a few
// times for each operation. spec 2026-07-28, basic/authorization, "Step-Up
// Authorization Flow".
func (p *passage) forbidden(resp *http.Response, s *session) (*session, bool, error) {
	c := p.t.c
	r, ours := p.readRefusal(resp)
	if !ours || r.code != oauth.InsufficientScope || s == nil || len(r.scopes) == 0 {
		return nil, false, nil
	}
	if p.stepped++; p.stepped > max(c.o.StepUps, 0)+maxRounds {
		return nil, false, nil
	}
	got, err := c.acquire(p.req.Context(), &want{
		refusal: *r, had: generationOf(s), stepUp: true, operation: p.operation(s),
	})
	if errors.Is(err, errSteps) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return got.session, p.repeatable(), nil
}

// operation names what is being done to a resource, for counting: HTTP method
// and path and, where requests say it, method and name of MCP.
func (p *passage) operation(s *session) string {
	id := ""
	if s != nil {
		id = s.ID
	}
	h := p.req.Header
	return strings.Join([]string{id, method(p.req), p.req.URL.Path, h.Get("Mcp-Method"), h.Get("Mcp-Name")}, "\x00")
}

// readRefusal reads a 401 or 403. It is not ours if it asks for other kinds of
// credentials only; without a readable challenge it is (some servers send none).
func (p *passage) readRefusal(resp *http.Response) (*refusal, bool) {
	r := newRefusal(p.req.URL, p.req.Header.Get("MCP-Protocol-Version"))
	challenges := oauth.ParseChallenges(resp.Header.Values("WWW-Authenticate"))
	challenge, ok := oauth.FindChallenge(challenges, "Bearer", "DPoP")
	if !ok {
		return r, len(challenges) == 0
	}
	if other, ok := oauth.FindChallenge(challenges, "DPoP"); ok && challenge.Params["error"] == "" {
		challenge = merge(challenge, other)
	}
	r.metadata, r.code = challenge.Params["resource_metadata"], challenge.Params["error"]
	r.scopes = strangersScopes(challenge.Params["scope"])
	return r, true
}

// maxScopeText is the length in bytes of the longest list of scopes that a
// stranger's word is taken for: all of it stands in a URL and before a person.
const maxScopeText = 8 << 10

// strangersScopes reads a list of scopes; nil if there are none, or it is none.
func strangersScopes(list string) []string {
	if len(list) > maxScopeText {
		return nil
	}
	scopes, err := oauth.ParseScope(list)
	if err != nil || len(scopes) == 0 {
		return nil
	}
	return scopes
}

// merge adds to a challenge what only the other one says.
func merge(a, b oauth.Challenge) oauth.Challenge {
	params := map[string]string{}
	for name, value := range b.Params {
		params[name] = value
	}
	for name, value := range a.Params {
		params[name] = value
	}
	return oauth.Challenge{Scheme: a.Scheme, Params: params}
}

func (p *passage) repeatable() bool {
	return p.req.Body == nil || p.req.Body == http.NoBody || p.req.GetBody != nil
}

// maxDrain is how much of a refusal is read so that its connection can be used
// again. One of unknown length may never end, and is not.
const maxDrain = 64 << 10

func discard(resp *http.Response) {
	if resp.ContentLength >= 0 && resp.ContentLength <= maxDrain {
		_, _ = io.CopyN(io.Discard, resp.Body, maxDrain)
	}
	_ = resp.Body.Close()
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// maxSegments is how deep a path is looked at for resources above it.
const maxSegments = 16

// find is what is known of the resource that a URL belongs to, the one with
// the longest path; nil if none. One without tokens does not get those of a
// resource above it, which may belong to somebody else.
func (c *Client) find(ctx context.Context, u *url.URL) (*session, error) {
	for _, id := range candidates(u) {
		s, err := c.recall(ctx, id)
		if err != nil || s != nil {
			return s, err
		}
	}
	return nil, nil
}

// forgetBetween forgets, in memory, resources between a URL and the one that it
// was found to belong to: they are no more.
func (c *Client) forgetBetween(u *url.URL, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range candidates(u) {
		if other == id {
			return
		}
		if c.sessions[other] != nil {
			c.sessions[other] = nil
		}
	}
}

// candidates are the ids of the resources that a URL may belong to, the
// longest first. A path with dot segments, which a server may read as another
// one, belongs to nothing but the whole origin.
func candidates(u *url.URL) []string {
	base := origin(u)
	var ids []string
	add := func(raw string) {
		if id, err := oauth.CanonicalResource(raw); err == nil {
			ids = append(ids, id)
		}
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	if dotted(path) {
		path = ""
	}
	if u.RawQuery != "" {
		add(base + path + "?" + u.RawQuery)
	}
	for strings.Count(path, "/") > maxSegments {
		path = path[:strings.LastIndexByte(path, '/')]
	}
	for path != "" {
		add(base + path)
		path = path[:strings.LastIndexByte(path, '/')]
	}
	add(base)
	return ids
}

// dotted reports whether a path has dot segments, also such that are escaped,
// or backslashes.
func dotted(path string) bool {
	plain, err := url.PathUnescape(path)
	if err != nil || strings.Contains(plain, `\`) {
		return true
	}
	for segment := range strings.SplitSeq(plain, "/") {
		segment, _, _ = strings.Cut(segment, ";") // some servers leave parameters out
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}
