package issuer

import (
	"crypto/sha256"
	"encoding/base64"
)

// Hash is how secrets are stored: SHA-256 in base64url. They have 256 random
// bits, so nothing slower is needed.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
