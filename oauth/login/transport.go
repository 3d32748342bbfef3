package login

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// Transport returns a RoundTripper that puts tokens on requests to resources that were signed in
// to, and signs in when a resource answers 401, or asks for more scopes when it answers 403 with
// insufficient_scope; the request is then repeated. next makes the requests; nil is
// http.DefaultTransport.
//
// A token goes to its resource alone: same scheme, host and port, and the same path or one below,
// over https or to this machine. It does not follow a redirect to another origin, and what such a
// redirect leads to causes no sign-in. A request that has an Authorization header is left as it is.
// One whose body cannot be repeated (no GetBody) gets its 401 or 403 back when the new tokens are
// there, for the next.
//
// What goes wrong on the way to a token is an *[Error], which says whether trying again may help;
// errors of next are returned as they are. After a person has refused, or did not finish, requests
// to that resource get the same error for a minute. While a person is asked the time limits of
// package client are paused. spec 2026-07-28, basic/authorization: "authorization MUST be included
// in every HTTP request".
func (c *Client) Transport(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return &transport{c: c, next: next}
}

// HTTPClient returns a copy of base (nil: a client with http.DefaultTransport) whose requests carry
// tokens. What it does is told at [Client.Transport].
func (c *Client) HTTPClient(base *http.Client) *http.Client {
	var made http.Client
	if base != nil {
		made = *base
	}
	made.Transport = c.Transport(made.Transport)
	return &made
}

type transport struct {
	c    *Client
	next http.RoundTripper
}

// Format writes what it is for each verb: its client has secrets.
func (t *transport) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "login transport") }

// CloseIdleConnections closes those of the transport underneath.
func (t *transport) CloseIdleConnections() {
	(&http.Client{Transport: t.next}).CloseIdleConnections()
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL == nil || req.Header.Get("Authorization") != "" || crossedOrigin(req) || !isSecure(req.URL) {
		return t.next.RoundTrip(req)
	}
	a := &attempt{t: t, req: req}
	s, err := t.c.find(req.Context(), req.URL)
	if err != nil { // the resource may want no token
		t.c.log.WarnContext(req.Context(), "request goes without token", "error", err)
	}
	s, _, err = t.c.refreshIfDue(req.Context(), s, &need{})
	if err != nil {
		closeBody(req)
		return nil, newError(req.Context(), req.URL.String(), "authorize a request", err)
	}
	if s != nil && (s.tokens == nil || !s.tokens.lasts(t.c.o.Now(), 0)) {
		s = nil // the answer tells what to do then
	}
	return a.run(s)
}

// maxRedirects is how many redirects are looked at; more are refused a token.
const maxRedirects = 32

// crossedOrigin reports whether a request comes of redirects of which one led to another origin,
// were it the last or an earlier one: a server elsewhere must not act here in the person's name, by
// way of a redirect of our own either. Attack: token leak on redirect.
func crossedOrigin(req *http.Request) bool {
	at := req
	for range maxRedirects {
		if at.Response == nil || at.Response.Request == nil || at.Response.Request.URL == nil {
			return false
		}
		if !sameOrigin(at.Response.Request.URL, at.URL) {
			return true
		}
		at = at.Response.Request
	}
	return true
}

// isSecure reports whether a token may be sent there: by TLS or locally (OAuth 2.1, section 1.5).
func isSecure(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && oauth.LoopbackHost(u.Hostname())
}

// An attempt sends a request, and sends it again after authorization.
type attempt struct {
	t   *transport
	req *http.Request

	sent          int // how often the request went out
	unauthorized  int // how often a 401 led to other tokens
	forbidden     int // how often a 403 led to a step-up
	refreshed     bool
	nonceRepeated bool   // it was repeated for a nonce
	nonce         string // of the last proof
}

func (a *attempt) run(s *session) (*http.Response, error) {
	for {
		resp, err := a.send(s)
		if err != nil {
			return nil, err
		}
		s, err = a.handleResponse(resp, s)
		if err == nil && s == nil {
			return resp, nil
		}
		discard(resp)
		if err != nil {
			return nil, newError(a.req.Context(), a.req.URL.String(), "authorize a request", err)
		}
	}
}

// send sends a copy of the request once, with the tokens of s, if any.
func (a *attempt) send(s *session) (*http.Response, error) {
	req := a.req.WithContext(a.req.Context())
	if a.sent++; a.sent > 1 && req.Body != nil && req.Body != http.NoBody {
		body, err := req.GetBody()
		if err != nil {
			return nil, fmt.Errorf("repeat a request: %w", err)
		}
		req.Body = body
	}
	if s != nil {
		if req.Header = req.Header.Clone(); req.Header == nil {
			req.Header = http.Header{}
		}
		if err := a.setToken(req, s); err != nil {
			closeBody(req)
			return nil, err
		}
	}
	return a.t.next.RoundTrip(req)
}

// setToken puts the token on a request, in the header alone (spec 2026-07-28, basic/authorization,
// "Token Requirements": MUST NOT be in the query string).
func (a *attempt) setToken(req *http.Request, s *session) error {
	if s.dpop == nil {
		req.Header.Set("Authorization", "Bearer "+s.tokens.Access)
		return nil
	}
	proof, nonce, err := s.dpop.proof(method(req), req.URL.String(), s.tokens.Access, a.t.c.o.Now())
	if err != nil {
		return fmt.Errorf("prove the possession of a token's key: %w", err)
	}
	a.nonce = nonce
	req.Header.Set("Authorization", "DPoP "+s.tokens.Access)
	req.Header.Set(headerDPoP, proof)
	return nil
}

// handleResponse reads a response and returns the session to repeat the request with; nil if it is
// final.
func (a *attempt) handleResponse(resp *http.Response, s *session) (*session, error) {
	c := a.t.c
	if s != nil && s.dpop != nil {
		s.dpop.learn(a.req.URL.String(), resp.Header)
	}
	if s != nil && resp.StatusCode != http.StatusUnauthorized {
		s.accepted.Store(true)
	}
	lost := a.sessionLost(resp)
	ch := readChallenge(a.req, resp)
	if ch == nil || lost {
		if a.forbidden > 0 && s != nil {
			c.resources.with(s.ID, func(r *entry) { delete(r.stepUps, a.operation()) })
		}
		return nil, nil
	}
	n := &need{generation: generationOf(s), operation: a.operation(), refreshed: a.refreshed}
	var err error
	switch {
	case ch.forbidden():
		a.forbidden++
		n.rounds = a.forbidden
		s, err = c.acquire(a.req.Context(), ch, n)
	case s != nil && s.dpop != nil && ch.code == oauth.UseDPoPNonce: // RFC 9449, section 9: once
		n.newNonce = !a.nonceRepeated && s.dpop.nonce(a.req.URL.String()) != a.nonce
		a.nonceRepeated = true
		_, err = c.decide(s, nil, ch, n)
	default:
		a.unauthorized++
		n.rounds = a.unauthorized
		s, err = c.acquire(a.req.Context(), ch, n)
		a.refreshed, a.nonceRepeated = true, false
	}
	if errors.Is(err, errNoBetterTokens) {
		return nil, nil
	}
	if a.req.Body != nil && a.req.Body != http.NoBody && a.req.GetBody == nil {
		return nil, err // it cannot be repeated
	}
	return s, err
}

// sessionLost reports whether a response says that the server does not know the session of MCP, and asks
// for no credentials: some servers do that by 401 (modelcontextprotocol/rust-sdk#559). The transport begins
// another session then, and if a sign-in is meant all the same, that is refused too, without the id of a
// session. A session that has just begun for this reason is not lost: then the server means the token.
func (a *attempt) sessionLost(resp *http.Response) (lost bool) {
	id, now := a.req.Header.Get(headerSession), a.t.c.o.Now()
	if id == "" {
		a.noteSession(resp.Header.Get(headerSession), now)
		return false
	}
	if resp.StatusCode != http.StatusUnauthorized || len(resp.Header.Values("WWW-Authenticate")) > 0 {
		return false
	}
	head := make([]byte, maxWords)
	n, _ := io.ReadFull(resp.Body, head) // what came is enough
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head[:n]), resp.Body), resp.Body}
	words := strings.Join(strings.Fields(strings.ReplaceAll(string(head[:n]), id, "")), " ")
	if !unknownSession.MatchString(words) {
		return false
	}
	a.t.c.resources.with(a.endpoint(), func(r *entry) {
		if !isRecent(now, r.lost.at, refusalBackoff) {
			r.lost.begun = nil
		}
		if lost = !slices.Contains(r.lost.begun, id); lost {
			r.lost.at = now
		}
	})
	return lost
}

// noteSession notes a session that began just after others were lost.
func (a *attempt) noteSession(id string, now time.Time) {
	const most, longest = 64, 8 << 10 // what is more, or longer in bytes, is forgotten
	if id == "" || len(id) > longest {
		return
	}
	a.t.c.resources.with(a.endpoint(), func(r *entry) {
		if isRecent(now, r.lost.at, refusalBackoff) && len(r.lost.begun) < most {
			r.lost.begun = append(r.lost.begun, id)
		}
	})
}

// endpoint is where the request goes, for what is remembered of sessions of MCP.
func (a *attempt) endpoint() string { return oauth.Origin(a.req.URL) + a.req.URL.EscapedPath() }

const (
	headerSession = "Mcp-Session-Id"
	// maxWords is how many bytes of a refusal are looked at.
	maxWords = 512
)

// unknownSession matches "Session not found", "Unknown session ID" and the like.
var unknownSession = regexp.MustCompile(`(?i)\bsession( id)?( is| was| does)? ?(not (found|known|exist)|unknown)\b|\b(unknown|no such) (mcp )?session\b`)

// operation is what step-ups are counted by: method and path, of HTTP and, if named, MCP.
func (a *attempt) operation() string {
	h := a.req.Header
	return strings.Join([]string{method(a.req), a.req.URL.Path, h.Get("Mcp-Method"), h.Get("Mcp-Name")}, "\x00")
}

func method(req *http.Request) string { return cmp.Or(req.Method, http.MethodGet) }

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
