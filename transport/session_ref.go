package transport

import (
	"crypto/sha256"
	"encoding/hex"
)

// SessionRef names a session in logs and traces: a digest of its id, which
// itself lets its holder use the session. It is "" for "".
func SessionRef(id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}
