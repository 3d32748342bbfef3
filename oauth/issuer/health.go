package issuer

import (
	"context"
	"time"

	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// A SigningKey is the key that signs access tokens, without its private part.
type SigningKey struct {
	ID, Algorithm string
	// Created is when it was made, some time before it began to sign.
	Created time.Time
}

// SigningKey signs something with the key that signs access tokens now, and returns the key. An
// error says that no token can be issued now; it is for the log, and not for strangers. It waits for
// the store at most as long as ctx.
func (s *Server) SigningKey(ctx context.Context) (*SigningKey, error) {
	key, _, err := s.keys.signing(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := key.Sign("trial", &jwt.Claims{Issuer: s.issuer}); err != nil {
		return nil, err
	}
	return &SigningKey{ID: key.ID(), Algorithm: s.opts.SigningAlgorithm, Created: s.keys.created(key.ID())}, nil
}

// created is when a key was made; zero if it is not held.
func (k *keyring) created(id string) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	if key := k.keys[id]; key != nil {
		return key.created
	}
	return time.Time{}
}
