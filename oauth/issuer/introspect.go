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
	a, err := s.introspected(q.Context(), token, c)
	if err != nil || a == nil {
		return &introspection{}, err
	}
	answer := describeToken(token.Token)
	answer.Scope = oauth.JoinScope(a.scopes)
	return answer, nil
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

// An ownToken is an access token of this issuer, with its grant and the clients as they are now.
type ownToken struct {
	*jwt.Token
	grant *Grant
	// client is the client that the token was issued to; granted is the one of the grant, which is another
	// if the token was exchanged.
	client, granted *Client
	// platform is the issuer that vouched for the workload of the grant; empty for clients.
	platform string
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
	own.grant, err = s.store.Grant(ctx, token.Claims.Grant, now)
	switch {
	case errors.Is(err, ErrRevoked), errors.Is(err, ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the grant of a token: %w", err)
	}
	if ok, err := s.setClients(ctx, own); err != nil || !ok {
		return nil, err
	}
	if ok, err := s.personStays(ctx, own.grant); err != nil || !ok {
		return nil, err
	}
	return own, nil
}

// setClients finds the clients of a token, and says whether they are still there: what the operator takes out
// of the configuration, or disables, is void at once, with what came of it by exchange.
func (s *Server) setClients(ctx context.Context, t *ownToken) (ok bool, err error) {
	if t.platform, err = platformOf(t.Token); err != nil {
		return false, nil //nolint:nilerr // a bad token is an answer here, not an error
	}
	isTrusted := func(a *assertionIssuer) bool { return !a.IDJAG && a.Issuer == t.platform }
	if t.platform != "" && !slices.ContainsFunc(s.issuers, isTrusted) {
		return false, nil
	}
	if t.granted, err = s.holder(ctx, t.grant.ClientID, t.platform != ""); err != nil || t.granted == nil {
		return false, err
	}
	t.client = t.granted
	if t.Claims.ClientID != t.grant.ClientID {
		t.client, err = s.holder(ctx, t.Claims.ClientID, false)
	}
	return t.client != nil, err
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
