package host

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
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
var secretName = lazy(`(?i)passw(or)?d|passphrase|^pwd$|[_-]pwd$|secret|token$|` +
	`api_?-?key|private_?-?key|access_?-?key|account_?-?key|signing_?-?key|encryption_?-?key|` +
	`connection_?-?string|^authorization$|credential|^cookie$|^pin$`)

// publicName matches names that end like those of secrets and hold none: the
// tokens that lists are paged with, and those of texts.
var publicName = lazy(`(?i)(page|paging|next|prev(ious)?|continuation|continue|sync|cursor|resume|` +
	`delta|progress|stop|end|max|eos|bos|pad|unk)[_-]?token$`)

// SecretName reports whether the name of a field usually means a secret.
func SecretName(name string) bool {
	return secretName().MatchString(name) && !publicName().MatchString(name)
}

// SecretProperty reports whether the name or title of a field of a form usually means a secret, or
// that of a property in its schema.
func SecretProperty(p *mcp.Property) bool {
	if SecretName(p.Name) || secretTitle(p.Schema.Title) {
		return true
	}
	var schema any
	return p.Schema.Other != nil && wire.Decode(p.Schema.Other, &schema) == nil && namesSecret(schema)
}

// secretTitle is SecretName of words with spaces between.
func secretTitle(title string) bool {
	return SecretName(strings.ReplaceAll(strings.TrimSpace(title), " ", "_"))
}

// namesSecret reports whether a member in a schema is called like a secret, or has such a title.
func namesSecret(schema any) bool {
	switch v := schema.(type) {
	case map[string]any:
		for name, value := range v {
			title, _ := value.(string)
			if SecretName(name) || name == "title" && secretTitle(title) || namesSecret(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, namesSecret)
	}
	return false
}

// TextSecrets finds what looks like a secret in a text: each kind once, at most
// 16. It takes time in proportion to the length of the text.
func TextSecrets(text string) []Secret {
	var found []Secret
	for _, s := range secretSpans(text) {
		secret := Secret{Why: "looks like " + s.kind}
		if len(found) < maxSecrets && !slices.Contains(found, secret) {
			found = append(found, secret)
		}
	}
	return found
}

// Redact replaces what looks like a secret in a text by "[redacted: kind]", as in
// "[redacted: GitHub token]". What [TextSecrets] does not find stays. It takes
// time in proportion to the length of the text.
func Redact(text string) string {
	return RedactFunc(text, func(_, kind string) string { return "[redacted: " + kind + "]" })
}

// RedactFunc is [Redact] with marks of the caller's making: mark is told the secret
// and its kind, such as "GitHub token", and returns what takes the secret's place.
func RedactFunc(text string, mark func(secret, kind string) string) string {
	spans := secretSpans(text)
	if len(spans) == 0 {
		return text
	}
	slices.SortFunc(spans, func(a, b secretSpan) int { return cmp.Compare(a.start, b.start) })
	var b strings.Builder
	at := 0
	for _, s := range spans {
		if s.start >= at {
			_, kind, _ := strings.Cut(s.kind, " ")
			b.WriteString(text[at:s.start] + mark(text[s.start:s.end], kind))
		}
		at = max(at, s.end)
	}
	b.WriteString(text[at:])
	return b.String()
}

// ArgumentSecrets finds what looks like a secret in the arguments of a call, by
// the names of members and by the shape of texts. It finds at most 16.
func ArgumentSecrets(raw mcp.RawValue) []Secret {
	var found []Secret
	findSecrets(raw, "", "", &found)
	return found[:min(len(found), maxSecrets)]
}

func findSecrets(raw mcp.RawValue, pointer, name string, found *[]Secret) {
	if len(*found) >= maxSecrets {
		return
	}
	switch kindOf(raw) {
	case '{':
		list, _ := members(raw) // what does not decode never reaches a server
		for _, m := range list {
			findSecrets(m.value, pointer+"/"+pointerEscaper.Replace(m.name), telling(name, m.name), found)
		}
	case '[':
		list, _ := items(raw)
		for i, item := range list {
			findSecrets(item, pointer+"/"+strconv.Itoa(i), name, found)
		}
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if SecretName(name) {
			*found = append(*found, Secret{pointer, "the name says that it is secret"})
		}
	case '"':
		value, _ := text(raw)
		if value != "" && SecretName(name) {
			*found = append(*found, Secret{pointer, "the name says that it is secret"})
			return
		}
		for _, s := range TextSecrets(value) {
			*found = append(*found, Secret{pointer, s.Why})
		}
	}
}

// telling is the name that counts for a member of an object: the object's own if that says
// that all of it is secret.
func telling(object, member string) string {
	if SecretName(object) {
		return object
	}
	return member
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// A secretSpan is a part of a text that looks like a secret.
type secretSpan struct {
	start, end int
	kind       string
}

// secretSpans finds what looks like a secret. Where two kinds overlap, the first
// of secretShapes counts.
func secretSpans(text string) []secretSpan {
	spans := privateKeys(text)
	// Spans of one shape do not overlap each other, so that only those of the
	// shapes before are compared, in order of their place.
	for i := range secretShapes {
		spans = mergeSpans(spans, secretShapes[i].find(text))
	}
	return spans
}

// mergeSpans adds spans to others, both in order, but for those that overlap
// one of them.
func mergeSpans(spans, more []secretSpan) []secretSpan {
	if len(more) == 0 {
		return spans
	}
	var added []secretSpan
	i := 0
	for _, m := range more {
		for i < len(spans) && spans[i].end <= m.start {
			i++
		}
		if i == len(spans) || m.end <= spans[i].start {
			added = append(added, m)
		}
	}
	spans = append(spans, added...)
	slices.SortFunc(spans, func(a, b secretSpan) int { return cmp.Compare(a.start, b.start) })
	return spans
}

var (
	privateKeyBegin = lazy(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`)
	privateKeyEnd   = lazy(`-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`)
	// privateKeyBody is the beginning of a key that was cut off, in lines of
	// which the ends may be escaped.
	privateKeyBody = lazy(`^(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{16,})+`)
)

// privateKeys finds private keys in PEM or in the armor of OpenPGP, also those
// whose last lines are missing.
func privateKeys(text string) []secretSpan {
	if !strings.Contains(text, "PRIVATE KEY") {
		return nil
	}
	var spans []secretSpan
	begins := privateKeyBegin().FindAllStringIndex(text, -1)
	for i, begin := range begins {
		limit := len(text)
		if i+1 < len(begins) {
			limit = begins[i+1][0]
		}
		rest := text[begin[1]:limit]
		span := secretSpan{begin[0], begin[1], "a private key"}
		if end := privateKeyEnd().FindStringIndex(rest); end != nil {
			span.end += end[1]
		} else if body := privateKeyBody().FindStringIndex(rest); body != nil {
			span.end += body[1]
		}
		spans = append(spans, span)
	}
	return spans
}
