package oauth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
)

// MethodS256 is the one PKCE method that this module speaks (RFC 7636).
const MethodS256 = "S256"

// NewVerifier returns a fresh code_verifier of 43 characters.
func NewVerifier() string { return NewSecret() }

// ChallengeS256 is the code_challenge of a verifier.
func ChallengeS256(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// VerifyS256 reports whether challenge was made of verifier, in constant time.
// A verifier that is not 43 to 128 unreserved characters fits nothing.
func VerifyS256(verifier, challenge string) bool {
	if len(verifier) < 43 || len(verifier) > 128 || strings.Trim(verifier, unreserved) != "" {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(ChallengeS256(verifier)), []byte(challenge)) == 1
}

const unreserved = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"

// ValidChallenge reports whether a code_challenge can be one of S256: 43
// characters of base64url.
func ValidChallenge(challenge string) bool {
	if len(challenge) != 43 {
		return false
	}
	sum, err := base64.RawURLEncoding.Strict().DecodeString(challenge)
	return err == nil && len(sum) == sha256.Size
}
