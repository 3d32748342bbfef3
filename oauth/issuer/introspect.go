package issuer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// introspection is the answer about a token (RFC 7662, section 2.2); about one
// that is not active it says that alone.
type introspection struct {
	Active    bool          `json:"active"`
	Issuer    string        `json:"iss,omitzero"`
	Subject   string        `json:"sub,omitzero"`
	Audience  string        `json:"aud,omitzero"`
	ClientID  string        `json:"client_id,omitzero"`
	Scope     string        `json:"scope,omitzero"`
	TokenType string        `json:"token_type,omitzero"`
	ID        string        `json:"jti,omitzero"`
	IssuedAt  int64         `json:"iat,omitzero"`
	Expiry    int64         `json:"exp,omitzero"`
	Confirm   *confirmation `json:"cnf,omitzero"`
	Actor     wire.RawValue `json:"act,omitzero"`
}

type confirmation struct {
	JKT string `json:"jkt"`
}

// serveIntrospect is the introspection endpoint (RFC 7662): for resource
// servers that do not want to wait until a token expires to learn that it was
// revoked. A client sees into the tokens for those resources alone whose
// Introspectors name it.
func (s *Server) serveIntrospect(w http.ResponseWriter, r *http.Request) {
	q := &tokenRequest{Request: r, now: s.now()}
	q.event = Event{Name: "introspection.refused", Remote: s.opts.Remote(r)}
	answer, err := s.introspect(w, q)
	if err != nil {
		s.refuseClient(w, q, err)
		return
	}
	answerJSON(w, http.StatusOK, answer)
}

func (s *Server) introspect(w http.ResponseWriter, q *tokenRequest) (*introspection, error) {
	var err error
	if q.form, err = readForm(w, q.Request); err != nil {
		return nil, err
	}
	c, err := s.authenticate(q)
	if err == nil && accepts(c, oauth.AuthNone) {
		err = refuse(oauth.InvalidClient, "introspection is for clients that authenticate", nil)
	}
	if err != nil {
		// Clients that authenticate are resource servers and are not counted: they
		// ask once for each of their own callers.
		return nil, cmp.Or(s.count(q, "introspect", ""), err)
	}
	raw := q.form["token"]
	if raw == "" {
		return nil, refuse(oauth.InvalidRequest, "token is required", nil)
	}
	token, err := s.verifyOwn(q.Context(), raw, q.now)
	if err != nil {
		return nil, err
	}
	if token == nil {
		return &introspection{}, nil
	}
	res, err := s.introspected(q.Context(), token, c)
	if err != nil || res == nil {
		return &introspection{}, err
	}
	answer := describeToken(token.Token)
	scopes, err := s.liveScopes(q.Context(), token, res)
	if err != nil {
		return nil, err
	}
	answer.Scope = oauth.JoinScope(scopes)
	return answer, nil
}

// liveScopes are those that the client of a token may still have at its resource.
func (s *Server) liveScopes(ctx context.Context, t *ownToken, res *Resource) ([]string, error) {
	scopes, err := oauth.ParseScope(t.Claims.Scope)
	if err != nil {
		return nil, fmt.Errorf("reading the scopes of a token: %w", err)
	}
	// A grant may have fewer scopes than when the token was issued. That of a token
	// which was exchanged is for another resource.
	if t.grant != nil && t.grant.Resource == res.URI {
		scopes = intersect(scopes, res.impliedScopes(t.grant.Scopes))
	}
	scopes = intersect(scopes, allowedScopes(res, t.client))
	if t.grant == nil || t.workload {
		return scopes, nil
	}
	return s.scopesOf(ctx, res, t.client, t.grant, scopes)
}

func describeToken(token *jwt.Token) *introspection {
	claims := &token.Claims
	answer := &introspection{
		Active: true, Issuer: claims.Issuer, Subject: claims.Subject, Audience: claims.Audience[0],
		ClientID: claims.ClientID, Scope: claims.Scope, TokenType: "Bearer", ID: claims.ID,
		IssuedAt: claims.IssuedAt.Unix(), Expiry: claims.Expiry.Unix(),
	}
	if claims.JKT != "" {
		answer.TokenType, answer.Confirm = "DPoP", &confirmation{claims.JKT}
	}
	if o, err := wire.ParseObject(token.Raw, wire.Limits{Bytes: maxTokenBody}); err == nil {
		answer.Actor, _ = o.Member("act")
	}
	return answer
}

// An ownToken is an access token of this issuer, with its client and its grant, if it has one,
// as they are now.
type ownToken struct {
	*jwt.Token
	client *Client
	grant  *Grant
	// workload says that it was issued for a workload, whose mapping says what it may do.
	workload bool
}

// verifyOwn verifies an access token of this issuer. One that is not genuine,
// has expired or was revoked is nil; the error is one of our own.
func (s *Server) verifyOwn(ctx context.Context, raw string, now time.Time) (*ownToken, error) {
	// The keys are there before the token is looked at, so that what goes
	// wrong with the store is no verdict on the token.
	if _, err := s.keys.set(ctx, keysReload); err != nil {
		return nil, err
	}
	token, err := jwt.Verify(ctx, raw, s.keys, &jwt.Check{
		Algorithms: ownAlgorithms, Types: []string{jwt.TypeAccessToken}, Issuer: s.issuer, Now: now, NeedExpiry: true,
	})
	if err != nil || len(token.Claims.Audience) != 1 || token.Claims.ID == "" {
		return nil, nil //nolint:nilerr // a bad token is an answer here, not an error
	}
	revoked, err := s.store.TokenRevoked(ctx, token.Claims.ID, token.Claims.Grant, now)
	if err != nil {
		return nil, fmt.Errorf("asking whether a token was revoked: %w", err)
	}
	if revoked {
		return nil, nil
	}
	own := &ownToken{Token: token}
	if err := s.setClient(ctx, own, now); err != nil || own.client == nil {
		return nil, err
	}
	if token.Claims.Grant == "" {
		return own, nil
	}
	own.grant, err = s.store.Grant(ctx, token.Claims.Grant, now)
	switch {
	case errors.Is(err, ErrRevoked), errors.Is(err, ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the grant of a token: %w", err)
	case own.grant.Stamp == "":
		return own, nil // no person signed in for it
	}
	ok, err := s.current(ctx, own.grant.Subject, own.grant.Stamp)
	if err != nil || !ok {
		return nil, err
	}
	return own, nil
}

// setClient finds the client of a token, which stays nil if it is none of ours any more:
// what the operator takes out of the configuration, or disables, is void at once. Documents
// are not fetched for that.
func (s *Server) setClient(ctx context.Context, t *ownToken, now time.Time) error {
	id := t.Claims.ClientID
	platform, err := platformOf(t.Token)
	if err != nil {
		return nil //nolint:nilerr // a bad token is an answer here, not an error
	}
	t.workload = platform != ""
	switch {
	case s.static[id] != nil:
		t.client = s.static[id]
	case isDocument(id):
		if s.docs.check(id) == nil {
			t.client = &Client{ID: id}
		}
	case t.workload && !slices.ContainsFunc(s.issuers, func(a *assertionIssuer) bool { return !a.IDJAG && a.Issuer == platform }):
	default:
		c, err := s.store.Client(ctx, id, now)
		switch {
		case err == nil && !c.Disabled:
			t.client = c
		case errors.Is(err, ErrNotFound) && t.workload:
			t.client = &Client{ID: id}
		case err != nil && !errors.Is(err, ErrNotFound):
			return fmt.Errorf("reading the client of a token: %w", err)
		}
	}
	return nil
}

// platformOf is the platform of the workload that a token was issued to; empty
// for clients.
func platformOf(token *jwt.Token) (string, error) {
	o, err := wire.ParseObject(token.Raw, wire.Limits{Bytes: maxTokenBody})
	if err != nil {
		return "", fmt.Errorf("reading a token: %w", err)
	}
	raw, ok := o.Member(claimPlatform)
	if !ok {
		return "", nil
	}
	var platform string
	if err := wire.Decode(raw, &platform); err != nil {
		return "", fmt.Errorf("reading a token: %w", err)
	}
	return platform, nil
}

// ownAlgorithms are those that this server may ever have signed with.
var ownAlgorithms = []string{"ES256", "EdDSA", "RS256"}

// introspected returns the resource that a token is for, if the client may
// see into its tokens, and the client of the token may still have the resource; else nil.
func (s *Server) introspected(ctx context.Context, token *ownToken, c *Client) (*Resource, error) {
	all, err := s.resources.current(ctx)
	if err != nil {
		return nil, s.broken(ctx, "asking for the resources", err)
	}
	res := all.byURI[token.Claims.Audience[0]]
	if res != nil && token.grant != nil && token.grant.Resource == res.URI && token.grant.Created.Before(res.Since) {
		return nil, nil
	}
	if res == nil || !slices.Contains(res.Introspectors, c.ID) || !mayHave(token.client, res) {
		return nil, nil
	}
	return res, nil
}
