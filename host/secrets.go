package host

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/mcp"
)

// A Secret is a place that looks like it holds a secret. The value itself is
// not in it.
type Secret struct {
	// Pointer is the JSON pointer of the value, or empty for plain text.
	Pointer string
	// Why says what it looks like.
	Why string
}

// maxSecrets bounds how many places are told.
const maxSecrets = 16

// secretName matches names of members that usually hold a secret.
var secretName = regexp.MustCompile(`(?i)passw(or)?d|passphrase|secret|token$|api_?-?key|private_?-?key|access_?-?key|^authorization$|credential|^cookie$|^pin$`)

// secretShapes are well-known forms of secrets in texts.
var secretShapes = []struct {
	why   string
	shape *regexp.Regexp
}{
	{"a private key", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)},
	{"an AWS access key", regexp.MustCompile(`\b(AKIA|ASIA)[0-9A-Z]{16}\b`)},
	{"a GitHub token", regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})`)},
	{"a Slack token", regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`)},
	{"a Google API key", regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{30,}`)},
	{"an API key", regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{20,}`)},
	{"a signed token (JWT)", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.`)},
	{"a bearer token", regexp.MustCompile(`(?i)\bbearer [A-Za-z0-9._~+/-]{16,}`)},
}

// TextSecrets finds what looks like a secret in a text.
func TextSecrets(text string) []Secret {
	var found []Secret
	for _, s := range secretShapes {
		if s.shape.MatchString(text) {
			found = append(found, Secret{Why: "looks like " + s.why})
		}
	}
	return found
}

// ArgumentSecrets finds what looks like a secret in the arguments of a call, by
// the names of members and by the shape of texts. It finds at most 16.
func ArgumentSecrets(raw mcp.RawValue) []Secret {
	var found []Secret
	findSecrets(raw, "", "", &found)
	return found
}

func findSecrets(raw mcp.RawValue, pointer, name string, found *[]Secret) {
	if len(*found) >= maxSecrets {
		return
	}
	switch kindOf(raw) {
	case '{':
		list, _ := members(raw) // what does not decode never reaches a server
		for _, m := range list {
			findSecrets(m.value, pointer+"/"+pointerEscaper.Replace(m.name), m.name, found)
		}
	case '[':
		list, _ := items(raw)
		for i, item := range list {
			findSecrets(item, pointer+"/"+strconv.Itoa(i), name, found)
		}
	case '"':
		value, _ := text(raw)
		if value != "" && secretName.MatchString(name) {
			*found = append(*found, Secret{pointer, "the name says that it is secret"})
			return
		}
		for _, s := range TextSecrets(value) {
			*found = append(*found, Secret{pointer, s.Why})
		}
	}
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// SecretName reports whether the name of a field usually means a secret.
func SecretName(name string) bool { return secretName.MatchString(name) }
