package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// refreshIfDue refreshes tokens that are about to end, or have ended, and returns what is left to
// do.
func (c *Client) refreshIfDue(ctx context.Context, s *session, n *need) (*session, action, error) {
	act, _ := c.decide(s, nil, &challenge{}, n)
	if act == refresh {
		var err error
		if s, err = c.refreshEarly(ctx, s); err != nil {
			return nil, fail, err
		}
		n.refreshed = true
		act, _ = c.decide(s, nil, &challenge{}, n)
	}
	return s, act, nil
}

// refreshEarly refreshes tokens without discovery of the resource, in its flight. Without a
// session, or tokens that last, the resource's answer must lead to a sign-in.
func (c *Client) refreshEarly(ctx context.Context, s *session) (*session, error) {
	now := c.o.Now()
	valid, limit := s.tokens.lasts(now, 0), c.o.SignInTimeout
	if valid {
		limit = min(limit, refreshTimeout)
	}
	got, _, err := c.joinFlight(ctx, s.ID, limit, func(ctx context.Context, asking func()) (*outcome, error) {
		return c.replaceTokens(ctx, s.ID, nil, &challenge{}, need{}, asking)
	})
	if valid && ctx.Err() == nil && (err != nil || generationOf(got.session) == s.tokens.Generation) {
		c.resources.with(s.ID, func(r *entry) { r.refreshFailed = now })
		c.log.WarnContext(ctx, "token is not refreshed yet", "resource", s.ID, "error", err)
		return s, nil // trouble at the server is none of the request's yet
	}
	switch {
	case err == nil:
		return got.session, nil
	case !valid && refusedForGood(err):
		return nil, nil
	}
	return nil, err
}

// tryRefresh refreshes tokens if that can be, and returns the session to go on with: if it is not
// another one with tokens, new ones are needed. The lock of the resource is held.
func (c *Client) tryRefresh(ctx context.Context, m *oauth.ServerMetadata, s *session) (*session, error) {
	// Attack: metadata that moves the token endpoint would have the token.
	if s.tokens.TokenEndpoint != m.TokenEndpoint {
		c.log.WarnContext(ctx, "token endpoint moved; the refresh token is not sent there", "resource", s.ID, "issuer", s.Issuer)
		return s, nil
	}
	creds, err := c.credentialsOf(ctx, m, s)
	if err != nil || creds == nil && s.ClientID != "" {
		return s, err
	}
	made, err := c.refresh(ctx, m, s, creds)
	switch {
	case err == nil:
		return made, nil
	case errors.Is(err, &oauth.Error{Code: oauth.InvalidGrant}):
		return c.dropTokens(ctx, s), nil
	case clientUnknown(err):
		c.unregister(ctx, creds)
		return c.dropTokens(ctx, s), nil
	}
	return s, err
}

// credentialsOf are those that a session's tokens were given to; nil if there are none any more.
func (c *Client) credentialsOf(ctx context.Context, m *oauth.ServerMetadata, s *session) (*Credentials, error) {
	if s.ClientID == "" {
		return nil, nil
	}
	if creds := c.preregistered(m.Issuer); creds != nil && creds.ClientID == s.ClientID {
		return creds, nil
	}
	if s.ClientID == c.o.DocumentURL {
		return c.documentCredentials(m.Issuer), nil
	}
	return c.storedRegistration(ctx, m, s.ClientID)
}

// refresh makes one refresh request and keeps what it brings, before anybody uses it. The old
// refresh token stays if no new one comes (RFC 6749, section 6).
func (c *Client) refresh(ctx context.Context, m *oauth.ServerMetadata, s *session, creds *Credentials) (*session, error) {
	q := c.request(c.storedDiscovery(&s.binding), m, creds, s.dpop)
	form := q.form(oauth.GrantRefreshToken)
	form.Set("refresh_token", s.tokens.Refresh)
	// A caller that leaves now must not cost the rotated token.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
	defer cancel()
	r, err := requestToken(ctx, q, form)
	if form.Has("resource") && resourceRefused(err) {
		// RFC 8707, section 2.2: without it the token is for what was granted, and that is the resource.
		c.log.InfoContext(ctx, "refreshing once more, without resource", "resource", s.ID, "issuer", s.Issuer, "error", err)
		form.Del("resource")
		r, err = requestToken(ctx, q, form)
	}
	if err != nil {
		return nil, fmt.Errorf("refresh the token of %s: %w", s.ID, err)
	}
	if _, err := checkType(r.TokenType, s.dpop != nil, s.dpop != nil); err != nil {
		return nil, newDiscoveryError(StepToken, m.TokenEndpoint, err, "", adviceTellServer)
	}
	t := newTokens(&s.tokens.binding, m.TokenEndpoint, r, c.o.Now())
	t.Key = s.tokens.Key
	if t.Refresh == "" {
		t.Refresh = s.tokens.Refresh
	}
	if r.Scope == "" {
		t.Granted = s.tokens.Granted
	}
	made, err := s.with(t)
	if err != nil {
		return nil, err
	}
	c.save(ctx, made)
	c.log.DebugContext(ctx, "refreshed", "resource", s.ID, "issuer", s.Issuer)
	return made, nil
}

// refreshTimeout and storeTimeout bound work that no caller waits for any more.
const refreshTimeout, storeTimeout = 30 * time.Second, 30 * time.Second

// refusedForGood reports whether a server refuses to refresh a token in a way that asking again
// does not change, so that a person must sign in. Not all servers say so with a code of OAuth.
func refusedForGood(err error) bool {
	said, ok := errors.AsType[*oauth.Error](err)
	return ok && !isTransient(err) &&
		(said.Code != "" || said.Status == http.StatusBadRequest || said.Status == http.StatusUnauthorized)
}

// resourceRefused reports whether a request may have been refused because of its resource parameter:
// some servers know none in a refresh.
func resourceRefused(err error) bool {
	said, ok := errors.AsType[*oauth.Error](err)
	return ok && said.Status == http.StatusBadRequest && (said.Code == oauth.InvalidTarget || said.Code == oauth.InvalidRequest)
}

// storedDiscovery is what is known of a resource without asking it.
func (c *Client) storedDiscovery(b *binding) *discovery {
	return &discovery{id: b.ID, resource: b.Resource, servers: []string{b.Issuer}, version: c.o.ProtocolVersion}
}
