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
	token, err := s.ownToken(q.Context(), raw, q.now)
	if err != nil {
		return nil, err
	}
	if token == nil || s.introspected(token, c) == nil {
		return &introspection{}, nil
	}
	return describeToken(token), nil
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

// ownToken verifies an access token of this issuer. One that is not genuine,
// has expired or was revoked is nil; the error is one of our own.
func (s *Server) ownToken(ctx context.Context, raw string, now time.Time) (*jwt.Token, error) {
	// The keys are there before the token is looked at, so that what goes
	// wrong with the store is no verdict on the token.
	if _, _, err := s.keys.set(ctx, keysReload); err != nil {
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
	if ok, err := s.clientExists(ctx, token, now); err != nil || !ok {
		return nil, err
	}
	if ok, err := s.personExists(ctx, token, now); err != nil || !ok {
		return nil, err
	}
	return token, nil
}

// personExists says whether the person is still there who signed in for a token.
func (s *Server) personExists(ctx context.Context, token *jwt.Token, now time.Time) (bool, error) {
	if s.opts.Subjects == nil || token.Claims.Grant == "" {
		return true, nil
	}
	g, err := s.store.Grant(ctx, token.Claims.Grant, now)
	switch {
	case errors.Is(err, ErrRevoked), errors.Is(err, ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the grant of a token: %w", err)
	case g.Stamp == "":
		return true, nil // no person signed in for it
	}
	return s.current(ctx, g.Subject, g.Stamp)
}

// clientExists says whether the client of a token is still one of ours:
// what the operator takes out of the configuration is void at once. Documents
// are not fetched for that.
func (s *Server) clientExists(ctx context.Context, token *jwt.Token, now time.Time) (bool, error) {
	id := token.Claims.ClientID
	switch _, configured := s.static[id]; {
	case configured:
		return true, nil
	case isDocument(id):
		return s.docs.check(id) == nil, nil
	}
	platform, err := platformOf(token)
	if err != nil {
		return false, nil //nolint:nilerr // a bad token is an answer here, not an error
	}
	if platform != "" {
		return slices.ContainsFunc(s.issuers, func(a *assertionIssuer) bool { return !a.IDJAG && a.Issuer == platform }), nil
	}
	switch _, err := s.store.Client(ctx, id, now); {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the client of a token: %w", err)
	}
	return true, nil
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
// see into its tokens.
func (s *Server) introspected(token *jwt.Token, c *Client) *Resource {
	res := s.resources.byURI[token.Claims.Audience[0]]
	if res == nil || !slices.Contains(res.Introspectors, c.ID) {
		return nil
	}
	return res
}
