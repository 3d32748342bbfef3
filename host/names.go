package host

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Model names of tools: what every provider takes is [a-zA-Z0-9_-]{1,64}.
const (
	separator    = "__"
	maxModelName = 64
	hashDigits   = 8
)

// modelName makes the name under which the model knows a tool. It is the plain
// server__tool where that can be split again, else it ends in a hash of
// the true pair, so that two pairs differ and the same pair is always the same.
func modelName(server, tool string) string {
	s, t := clean(server), clean(tool)
	name := s + separator + t
	ambiguous := strings.Contains(s, separator) || strings.HasSuffix(s, "_")
	if s == server && t == tool && len(name) <= maxModelName && !ambiguous {
		return name
	}
	return hashedName(server, tool, hashDigits)
}

// hashedName is the name with digits of a hash of the pair.
func hashedName(server, tool string, digits int) string {
	name := clean(server) + separator + clean(tool)
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	suffix := "_" + hex.EncodeToString(sum[:])[:digits]
	return name[:min(len(name), maxModelName-len(suffix))] + suffix
}

// clean replaces what a model's provider refuses in names.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}
