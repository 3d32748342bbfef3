package issuer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

const (
	// maxAssertion is how far ahead the expiry of a client assertion may be:
	// as long is its jti remembered.
	maxAssertion = time.Hour
	// assertionSkew is how far the clocks of signers of assertions may differ.
	assertionSkew = 30 * time.Second
	// maxSources is how many key sets of clients are remembered.
	maxSources = 1000
)

// checkClientAssertion verifies the JWT with which a client authenticates (RFC
// 7523, sections 2.2 and 3): signed with a key of its metadata, about itself,
// for this issuer, and never seen before. The audience is that of RFC 7523bis,
// the issuer and nothing else, so that what was sent to another server is of no
// use here.
func (s *Server) checkClientAssertion(q *tokenRequest, c *Client, assertion string) error {
	keys, err := s.clientKeys(c)
	if err != nil {
		return refuse(oauth.InvalidClient, "the keys of the client cannot be used", err)
	}
	audiences := s.audiences()
	if s.opts.TokenEndpointAudience {
		audiences = append(audiences, s.endpoint("token"))
	}
	algorithms := jwt.DefaultAlgorithms()
	if registered := c.Metadata.TokenEndpointAuthSigningAlg; registered != "" {
		algorithms = []string{registered}
	}
	token, err := jwt.Verify(q.Context(), assertion, keys, &jwt.Check{
		Algorithms: algorithms, Types: []string{"", jwt.TypeJWT, "client-authentication+jwt"},
		Issuer: c.ID, Audience: audiences, Skew: assertionSkew, Now: q.now, NeedExpiry: true,
	})
	if err != nil {
		return refuseAssertion(oauth.InvalidClient, "client authentication was refused", err)
	}
	if err := checkAssertionClaims(&token.Claims, c.ID, audiences, q.now); err != nil {
		return refuse(oauth.InvalidClient, "client authentication was refused", err)
	}
	return s.useOnce(q, "client "+c.ID, &token.Claims, oauth.InvalidClient)
}

// refuseAssertion refuses a JWT that did not verify; with keys that cannot be had now it may be a
// good one, and its client is told to come again.
func refuseAssertion(code, text string, err error) error {
	if jwt.Refused(err) {
		return refuse(code, text, err)
	}
	return &refusal{
		out: &oauth.Error{
			Code: oauth.TemporarilyUnavailable, Description: "the keys of the assertion cannot be had now",
			Status: http.StatusServiceUnavailable,
		},
		reason: err,
	}
}

func checkAssertionClaims(claims *jwt.Claims, id string, audiences []string, now time.Time) error {
	for _, audience := range claims.Audience {
		if !slices.Contains(audiences, audience) {
			return fmt.Errorf("another audience besides: %w", jwt.ErrAudience)
		}
	}
	switch {
	case claims.Subject != id:
		return errors.New("subject is not the client")
	case claims.ID == "":
		return errors.New("jti is missing")
	case claims.Expiry.After(now.Add(maxAssertion)):
		return errors.New("expires too far ahead")
	}
	return nil
}

// useOnce refuses an assertion that was used before, with this code.
func (s *Server) useOnce(q *tokenRequest, issuer string, claims *jwt.Claims, code string) error {
	// Hashed, since the client chose the jti: what is stored has a bound.
	first, err := s.store.UseID(q.Context(), issuer, Hash(claims.ID), claims.Expiry.Add(assertionSkew+time.Second), q.now)
	if err != nil {
		return fmt.Errorf("noting an assertion: %w", err)
	}
	if !first {
		return refuse(code, "the assertion was used before", nil)
	}
	return nil
}

// clientKeys are the keys of a client, in its metadata or where that says.
func (s *Server) clientKeys(c *Client) (jwt.Source, error) {
	m := &c.Metadata
	if len(m.JWKS) > 0 {
		set, err := jwt.ParseSet(m.JWKS)
		if err != nil {
			return nil, fmt.Errorf("reading jwks: %w", err)
		}
		return set, nil
	}
	if m.JWKSURI == "" {
		return nil, errors.New("neither jwks nor jwks_uri")
	}
	uri := m.JWKSURI
	return s.keys.others.remote("client "+c.ID+" "+uri, s.now(), func() *jwt.Remote {
		return jwt.NewRemote(s.fetch, func(context.Context) (string, error) { return uri, nil }, &jwt.RemoteOptions{Now: s.now})
	}), nil
}

// sources are the key sets of others that are fetched, at most maxSources. When
// there are more, the one that was used longest ago goes. The zero value is
// empty.
type sources struct {
	mu     sync.Mutex
	byName map[string]*source
}

type source struct {
	*jwt.Remote
	used time.Time
}

func (o *sources) remote(name string, now time.Time, fresh func() *jwt.Remote) *jwt.Remote {
	o.mu.Lock()
	defer o.mu.Unlock()
	if found := o.byName[name]; found != nil {
		found.used = now
		return found.Remote
	}
	if o.byName == nil {
		o.byName = map[string]*source{}
	}
	if len(o.byName) >= maxSources {
		oldest := ""
		for other, s := range o.byName {
			if oldest == "" || cmp.Or(s.used.Compare(o.byName[oldest].used), cmp.Compare(other, oldest)) < 0 {
				oldest = other
			}
		}
		delete(o.byName, oldest)
	}
	made := &source{fresh(), now}
	o.byName[name] = made
	return made.Remote
}
