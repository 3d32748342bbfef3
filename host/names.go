package host

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Model names of tools: what every provider takes is [a-zA-Z_][a-zA-Z0-9_-]{0,63};
// Gemini refuses what does not begin with a letter or an underscore.
const (
	separator    = "__"
	maxModelName = 64
	hashDigits   = 16 // more than can be forged
)

// hashed matches what hashedName ends in.
var hashed = lazy(`_[0-9a-f]{16}$`)

// modelName makes the name under which the model knows a tool. It is the plain
// server__tool where that can be split again, else it ends in a hash of
// the true pair, so that two pairs differ. The name depends on the pair alone, not on
// the other tools that are there: it is the same one each time, and a tool cannot take
// over the calls that are meant for another.
func modelName(server, tool string) string {
	s, t := clean(server), clean(tool)
	name := s + separator + t
	ambiguous := strings.Contains(s, separator) || strings.HasSuffix(s, "_")
	if s == server && t == tool && len(name) <= maxModelName && begins(name) && !ambiguous && !hashed().MatchString(name) {
		return name
	}
	return hashedName(server, tool)
}

// hashedName is the name with digits of a hash of the pair.
func hashedName(server, tool string) string {
	return withHash(clean(server)+separator+clean(tool), server+"\x00"+tool)
}

// plainName makes the name under which the model knows a tool that a server names in a request
// of its own: the name itself where every provider takes it, else one that ends in a hash of it.
func plainName(name string) string {
	if c := clean(name); c != name || len(name) > maxModelName || !begins(name) || hashed().MatchString(name) {
		return withHash(c, name)
	}
	return name
}

// withHash is a clean name with digits of a hash of the true one.
func withHash(name, of string) string {
	if !begins(name) {
		name = "_" + name
	}
	sum := sha256.Sum256([]byte(of))
	suffix := "_" + hex.EncodeToString(sum[:])[:hashDigits]
	return name[:min(len(name), maxModelName-len(suffix))] + suffix
}

// begins reports whether a name begins as every provider wants it.
func begins(name string) bool {
	return name != "" && name[0] != '-' && (name[0] < '0' || name[0] > '9')
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
