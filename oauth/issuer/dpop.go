package issuer

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

const (
	// proofWindow is how far the time of a proof may be from ours.
	proofWindow = 5 * time.Minute
	// nonceSlot is how long one nonce is handed out; it is taken one slot longer.
	nonceSlot = 2 * time.Minute
)

// checkProof verifies the DPoP proof of a token request (RFC 9449, section 5),
// if there is one. A proof is good for one request, and with Options.DPoPNonce
// it has a nonce that we gave out lately (section 8).
func (s *Server) checkProof(w http.ResponseWriter, q *tokenRequest) error {
	headers := q.Header.Values("DPoP")
	switch {
	case len(headers) == 0:
		return nil
	case len(headers) > 1:
		return refuse(oauth.InvalidDPoPProof, "several DPoP proofs", nil)
	}
	proof, err := jwt.VerifyProof(headers[0], &jwt.ProofCheck{
		Method: http.MethodPost, URL: s.endpoint("token"), Window: proofWindow, Now: q.now,
	})
	if err != nil {
		return refuse(oauth.InvalidDPoPProof, "the DPoP proof is not valid", err)
	}
	if s.opts.DPoPNonce {
		if err := s.checkNonce(w, q, proof.Nonce); err != nil {
			return err
		}
	}
	first, err := s.store.UseID(q.Context(), "dpop "+proof.Thumbprint, Hash(proof.ID),
		proof.IssuedAt.Add(proofWindow+time.Second), q.now)
	if err != nil {
		return fmt.Errorf("noting a proof: %w", err)
	}
	if !first {
		return refuse(oauth.InvalidDPoPProof, "the DPoP proof was used before", nil)
	}
	q.proof = proof
	return nil
}

// checkNonce also hands out the nonce for the next proof.
func (s *Server) checkNonce(w http.ResponseWriter, q *tokenRequest, given string) error {
	fresh, err := s.nonce(q.Context(), q.now)
	if err != nil {
		return err
	}
	w.Header().Set("DPoP-Nonce", fresh)
	if equal(given, fresh) {
		return nil
	}
	before, err := s.nonce(q.Context(), q.now.Add(-nonceSlot))
	if err != nil {
		return err
	}
	if !equal(given, before) {
		return refuse(oauth.UseDPoPNonce, "the DPoP proof needs the nonce of this answer", nil)
	}
	return nil
}

// nonce is the same for every process and every client at one time.
func (s *Server) nonce(ctx context.Context, now time.Time) (string, error) {
	slot := now.Unix() / int64(nonceSlot/time.Second)
	start := time.Unix(slot*int64(nonceSlot/time.Second), 0)
	return s.keys.derive(ctx, start, "nonce", strconv.FormatInt(slot, 10))
}

// requireProof refuses a request without proof where the client or the
// resource wants none but bound tokens.
func requireProof(q *tokenRequest, c *Client, res *Resource) error {
	if q.proof == nil && (res.DPoP || c.Metadata.DPoPBoundAccessTokens) {
		return refuse(oauth.InvalidDPoPProof, "a DPoP proof is required", nil)
	}
	return nil
}

// checkKey refuses a request whose proof is not of this key, if there is one.
func checkKey(q *tokenRequest, key string) error {
	if key == "" || q.proof != nil && equal(q.proof.Thumbprint, key) {
		return nil
	}
	return refuse(oauth.InvalidDPoPProof, "the DPoP proof is not of the key that this is bound to", nil)
}
