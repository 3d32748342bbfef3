package issuer

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// credentials are what a request says about the client that sends it.
type credentials struct {
	method    string
	id        string
	secret    string
	assertion string
}

// identify finds out which client sends a request and has it prove that, by
// the one method that it is registered with (RFC 6749, section 2.3). Requests
// are counted by client, and by address alone until there is one.
func (s *Server) identify(q *tokenRequest, endpoint string) error {
	c, err := s.authenticate(q)
	if err != nil {
		return cmp.Or(s.count(q, endpoint, ""), err)
	}
	q.client, q.public = c, accepts(c, oauth.AuthNone)
	q.event.by(c)
	return s.count(q, endpoint, c.ID)
}

func (s *Server) authenticate(q *tokenRequest) (*Client, error) {
	given, err := readCredentials(q.Request, q.form)
	if err != nil {
		return nil, err
	}
	if u, err := url.Parse(given.id); err == nil && isDocument(given.id) {
		// Before the document is fetched: no client uses us to flood its host.
		if err := s.count(q, "document", u.Host); err != nil {
			return nil, err
		}
	}
	c, err := s.client(q.Context(), given.id)
	if err != nil {
		return nil, err
	}
	if !accepts(c, given.method) {
		return nil, refuse(oauth.InvalidClient, "the client is registered with another method of authentication", nil)
	}
	if given.method == oauth.AuthNone {
		return c, nil
	}
	// RFC 6749, section 2.3.1: MUST be protected against guessing. A client that failed
	// too often is told nothing more, also if the next guess is right.
	if wait, ok := s.rates.spent(s.bucketOf(q.Request, "guess", c.ID)); ok {
		return nil, refuseWait(wait)
	}
	if err := s.checkCredentials(q, c, given); err != nil {
		if asError(err).Code == oauth.InvalidClient {
			s.allow(q.Request, "guess", c.ID)
		}
		return nil, err
	}
	return c, nil
}

func (s *Server) checkCredentials(q *tokenRequest, c *Client, given *credentials) error {
	if given.method == oauth.AuthPrivateKeyJWT {
		return s.checkClientAssertion(q, c, given.assertion)
	}
	if c.SecretHash == "" || !equal(Hash(given.secret), c.SecretHash) {
		return refuse(oauth.InvalidClient, "client authentication was refused", errors.New("wrong secret"))
	}
	return nil
}

// accepts says whether a client authenticates with a method.
func accepts(c *Client, method string) bool { return method == authMethod(c) }

// authMethod is the method that a client is registered with. Where its metadata
// names none, what it has decides (RFC 7591, section 2: client_secret_basic).
func authMethod(c *Client) string {
	m := &c.Metadata
	switch {
	case m.TokenEndpointAuthMethod != "":
		return m.TokenEndpointAuthMethod
	case c.SecretHash != "":
		return oauth.AuthSecretBasic
	case len(m.JWKS) > 0 || m.JWKSURI != "":
		return oauth.AuthPrivateKeyJWT
	}
	return oauth.AuthNone
}

// readCredentials reads the client credentials of a request. More than one method
// in a request is refused (RFC 6749, section 2.3: MUST NOT).
func readCredentials(r *http.Request, f form) (*credentials, error) {
	given := &credentials{method: oauth.AuthNone, id: f["client_id"]}
	methods := 0
	if headers := r.Header.Values("Authorization"); len(headers) > 0 {
		methods++
		id, secret, err := parseBasic(headers)
		if err != nil {
			return nil, refuse(oauth.InvalidClient, "the Authorization header cannot be used", err)
		}
		if given.id != "" && given.id != id {
			return nil, refuse(oauth.InvalidRequest, "the request names two clients", nil)
		}
		given.method, given.id, given.secret = oauth.AuthSecretBasic, id, secret
	}
	if secret := f["client_secret"]; secret != "" {
		methods++
		given.method, given.secret = oauth.AuthSecretPost, secret
	}
	if assertion := f["client_assertion"]; assertion != "" || f["client_assertion_type"] != "" {
		methods++
		if f["client_assertion_type"] != oauth.ClientAssertionJWT {
			return nil, refuse(oauth.InvalidClient, "this type of client assertion is not supported", nil)
		}
		given.method, given.assertion = oauth.AuthPrivateKeyJWT, assertion
		if given.id == "" {
			token, err := jwt.Peek(assertion)
			if err != nil {
				return nil, refuse(oauth.InvalidClient, "client authentication was refused", err)
			}
			given.id = token.Claims.Subject
		}
	}
	switch {
	case methods > 1:
		return nil, refuse(oauth.InvalidRequest, "the request uses several methods of client authentication", nil)
	case given.id == "":
		return nil, refuse(oauth.InvalidClient, "the request names no client", nil)
	case len(given.id) > maxClientID:
		return nil, refuse(oauth.InvalidClient, "unknown client", nil)
	}
	return given, nil
}

// parseBasic reads the Authorization headers of a request: there must be one,
// and id and secret in it are form-encoded (RFC 6749, section 2.3.1).
func parseBasic(headers []string) (id, secret string, err error) {
	if len(headers) != 1 {
		return "", "", errors.New("several Authorization headers")
	}
	r := http.Request{Header: http.Header{"Authorization": headers}}
	user, password, ok := r.BasicAuth()
	if !ok {
		return "", "", errors.New("not Basic")
	}
	// The errors of unescaping quote what they could not read.
	if id, err = url.QueryUnescape(user); err != nil || id == "" {
		return "", "", errors.New("client id is not form-encoded")
	}
	if secret, err = url.QueryUnescape(password); err != nil {
		return "", "", errors.New("client secret is not form-encoded")
	}
	return id, secret, nil
}

// isPreregistered says whether the operator knows a client: it registered neither
// itself, nor by a document that any client can publish.
func (s *Server) isPreregistered(c *Client) bool {
	return s.static[c.ID] != nil || !c.Dynamic && !isDocument(c.ID)
}

// audiences are the names of this issuer that an assertion for it may have.
// One trailing slash more or less is tolerated, which servers and clients
// disagree about.
func (s *Server) audiences() []string {
	bare := strings.TrimSuffix(s.issuer, "/")
	return []string{bare, bare + "/"}
}
