package issuer

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/parley-mcp/parley/oauth"
)

// serveRevoke is the revocation endpoint (RFC 7009). A refresh token takes its
// whole family with it, an access token only itself. What is no token, or one
// of another client, gets the same answer as a token that was revoked: there
// is nothing to learn here.
func (s *Server) serveRevoke(w http.ResponseWriter, r *http.Request) {
	q := &tokenRequest{Request: r, now: s.now()}
	q.event = Event{Name: "token.revoked", Outcome: "ok", Remote: s.opts.Remote(r)}
	if err := s.revoke(w, q); err != nil {
		q.event.Name = "revocation.refused"
		s.refuseClient(w, q, err)
		return
	}
	s.audit(r.Context(), q.event)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
}

func (s *Server) revoke(w http.ResponseWriter, q *tokenRequest) error {
	var err error
	if q.form, err = readForm(w, q.Request); err != nil {
		return err
	}
	if err := s.identify(q, "revoke"); err != nil {
		return err
	}
	// token_type_hint is a hint: both kinds are looked for in any case.
	token := q.form["token"]
	if token == "" {
		return refuse(oauth.InvalidRequest, "token is required", nil)
	}
	ctx := q.Context()
	held, err := s.store.Refresh(ctx, Hash(token), q.now)
	if err == nil {
		if held.ClientID != q.client.ID {
			q.event.Reason = "refresh token of another client"
			return nil
		}
		q.event.Name, q.event.Grant = "grant.revoked", held.Grant
		if err := s.store.RevokeGrant(ctx, held.Grant, q.now); err != nil {
			return fmt.Errorf("revoking a grant: %w", err)
		}
		return nil
	}
	if !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("reading a refresh token: %w", err)
	}
	access, err := s.verifyOwn(ctx, token, q.now)
	if err != nil {
		return err
	}
	if access == nil || access.Claims.ClientID != q.client.ID {
		q.event.Reason = "no token of this client"
		return nil
	}
	q.event.Grant, q.event.Subject = access.Claims.Grant, access.Claims.Subject
	if err := s.store.RevokeToken(ctx, access.Claims.ID, access.Claims.Expiry); err != nil {
		return fmt.Errorf("revoking a token: %w", err)
	}
	return nil
}
