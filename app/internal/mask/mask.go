// Package mask removes secrets from recorded traffic: messages, HTTP headers and bodies, URLs and
// standard error. Traces, HAR files and cassettes use it.
//
// The package recognizes a secret by its name (the header Authorization, the field "password", the
// query parameter "token"), by its shape (the patterns of [host.Redact]), or by its value: values
// passed to the program, and every value found once in a secret place, wherever it occurs later.
// It replaces a secret with a mark such as «redacted:4f1c2a». With one Masker, equal secrets have
// equal marks. The Masker's key is random and never leaves it, so a mark does not help to guess
// the secret.
package mask

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"html"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/parley-mcp/parley/host"
)

// Bounds of what is masked by value.
const (
	// minGiven is the shortest value that is masked wherever it stands, of those that the
	// program was given; minFound of those that were found.
	minGiven, minFound = 4, 6
	// maxValue is the longest.
	maxValue = 64 << 10
	// minLine is the shortest line of a value that is masked without the others.
	minLine = 16
	// maxValues is how many values are known at once; further ones are masked where their name
	// or shape says so, and nowhere else.
	maxValues = 10_000
)

// Options say what is secret beside what usually is. Nil is none of it.
type Options struct {
	// Values are secrets wherever they stand, if they have at least 4 bytes.
	Values []string
	// Headers are names of headers whose values are secret.
	Headers []string
	// Public are names of members, headers and parameters whose values are not secret, whatever
	// the names look like. What has the shape of a secret is masked all the same.
	Public []string
	// Distinct masks a value wherever it is only if it cannot be part of other text: it has at
	// least 6 bytes, or 9 if it consists of letters only, and is no date.
	Distinct bool
}

// A Masker takes secrets out. Its methods are safe for concurrent use.
type Masker struct {
	key      []byte
	headers  map[string]bool // by folded names
	public   map[string]bool
	distinct bool

	mu       sync.Mutex
	values   map[string]string // marks by values
	sorted   []string          // values, the longest first, as of replacer
	replacer *strings.Replacer // of values; nil when it has to be made
}

// New returns a Masker that knows the values of the options.
func New(o *Options) *Masker {
	m := &Masker{
		key: make([]byte, 32), headers: make(map[string]bool), public: make(map[string]bool), values: make(map[string]string),
	}
	_, _ = rand.Read(m.key) // never fails
	if o == nil {
		return m
	}
	m.distinct = o.Distinct
	for _, name := range o.Headers {
		m.headers[fold(name)] = true
	}
	for _, name := range o.Public {
		m.public[fold(name)] = true
	}
	for _, v := range o.Values {
		m.Learn(v)
	}
	return m
}

// Environment returns the values of an environment, as os.Environ gives it, whose names look
// like those of secrets, and those that extra names.
func Environment(environ, extra []string) []string {
	var values []string
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		if host.SecretName(name) || slices.Contains(extra, name) {
			values = append(values, value)
		}
	}
	return values
}

// Learn has a value masked wherever it stands from now on, also in base64 and as it is written
// in URLs. Values that are too short to be told from other text, or as common as "password", are
// left out.
func (m *Masker) Learn(value string) {
	value = strings.TrimSpace(value)
	if len(value) >= minGiven {
		m.learn(value)
	}
	scheme, token, found := strings.Cut(value, " ")
	if found && len(token) >= minFound && !strings.Contains(token, "\n") { // Bearer TOKEN
		m.learn(token)
		if strings.EqualFold(scheme, "basic") {
			_ = m.hideCredential(token) // learns the password
		}
	}
}

// LearnNamed is Learn for the value of a variable or option if its name means a secret, or if it
// is a credential such as "Bearer TOKEN". Of any other value it learns the secrets in it that
// Text masks, such as the password in a URL.
func (m *Masker) LearnNamed(name, value string) {
	scheme, _, found := strings.Cut(value, " ")
	if m.secretName(name) || found && schemes[strings.ToLower(scheme)] {
		m.Learn(value)
		return
	}
	_ = m.Text(value) // learns what it masks
}

// found is Learn for a value that stood in a secret place.
func (m *Masker) found(value string) {
	if value = strings.TrimSpace(value); len(value) >= minFound && !marked.MatchString(value) {
		m.learn(value)
	}
}

func (m *Masker) learn(value string) {
	if len(value) > maxValue || slices.Contains(common, strings.ToLower(value)) || m.distinct && !isDistinct(value) {
		return
	}
	if strings.Contains(value, "\n") { // a key that a log has line by line
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) >= minLine && !strings.HasPrefix(line, "-----") {
				m.learn(line)
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.values[value]; known || len(m.values) >= maxValues {
		return
	}
	mark := m.mark(value)
	m.values[value] = mark
	for _, other := range forms(value) {
		if other != value {
			m.values[other] = mark
		}
	}
	if len(value) >= 8 {
		m.values[base64.RawStdEncoding.EncodeToString([]byte(value))] = mark
		m.values[base64.RawURLEncoding.EncodeToString([]byte(value))] = mark
	}
	m.replacer = nil
}

// forms are the ways in which a value is written in URLs, JSON, JSON pointers (RFC 6901) and HTML.
func forms(value string) []string {
	return []string{
		url.QueryEscape(value), url.PathEscape(value), escaped(value), htmlEscaped(value),
		strings.ReplaceAll(escaped(value), "/", `\/`), // as PHP writes JSON
		strings.NewReplacer("~", "~0", "/", "~1").Replace(value), html.EscapeString(value),
	}
}

// minWord is the shortest value of letters only that isDistinct accepts.
const minWord = 9

// isDistinct reports whether a value cannot be part of other text. A date, such as that of a version in a
// header, can.
func isDistinct(value string) bool {
	_, notDate := time.Parse(time.DateOnly, value)
	return len(value) >= minFound && (len(value) >= minWord || !IsWord(value)) && notDate != nil
}

// IsWord reports whether a value consists of letters only, as a word of other text does.
func IsWord(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsLetter(r) })
}

// common are values that stand in secret places, such as schemas and documentation, and
// everywhere else.
var common = []string{
	"string", "number", "integer", "boolean", "object", "array", "true", "false", "null", "none", "undefined",
	"password", "passwd", "secret", "token", "bearer", "basic", "redacted", "required", "optional", "default", "example",
	"authorization", "cookie", "invalid", "missing", "expired", "changeme", "unset", "disabled", "enabled",
	"name", "value", "text", "type", "code", "data", "test", "user", "admin", "root", "localhost",
	"tools", "prompts", "resources", "result", "method", "params", "error", "jsonrpc",
}

// byValue masks the values that are known.
func (m *Masker) byValue(text string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.values) == 0 {
		return text
	}
	m.index()
	return m.replacer.Replace(text)
}

// index makes the replacer of the values, if it has to be made. mu is held.
func (m *Masker) index() {
	if m.replacer != nil {
		return
	}
	// The first that matches counts: the longest.
	m.sorted = slices.SortedFunc(maps.Keys(m.values), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	pairs := make([]string, 0, 2*len(m.sorted))
	for _, v := range m.sorted {
		pairs = append(pairs, v, m.values[v])
	}
	m.replacer = strings.NewReplacer(pairs...)
}

// known is how many values are known.
func (m *Masker) known() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.values)
}

// marked matches a mark; those in URLs have no characters that URLs may not have.
var marked = regexp.MustCompile(`«redacted:[0-9a-f]{6}»|redacted-[0-9a-f]{6}`)

// Marked reports whether a text has a mark in it.
func Marked(text string) bool { return marked.MatchString(text) }

// Cut splits a text at its marks. A text without marks is one part.
func Cut(text string) []string { return marked.Split(text, -1) }

func (m *Masker) digest(value string) string {
	h := hmac.New(sha256.New, m.key)
	_, _ = h.Write([]byte(value)) // a hash takes everything
	return hex.EncodeToString(h.Sum(nil)[:3])
}

// mark stands for a value.
func (m *Masker) mark(value string) string { return "«redacted:" + m.digest(value) + "»" }

// urlMark stands for a value in a URL.
func (m *Masker) urlMark(value string) string { return "redacted-" + m.digest(value) }

// hide returns the mark of a value that stands in a secret place, which is known from then on.
// A mark stays what it is.
func (m *Masker) hide(value string) string {
	if value == "" || marked.MatchString(value) {
		return value
	}
	m.found(value)
	return m.mark(value)
}

// fold is a name without what differs between styles of writing: X-Api-Key, x_api_key, xApiKey.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '-', r == '_', r == '.', r == ' ':
			return -1
		case 'A' <= r && r <= 'Z':
			return r | 0x20
		}
		return r
	}, name)
}

// secretNames are folded names that mean a secret, in addition to those that host.SecretName
// knows.
var secretNames = map[string]bool{
	"authorization": true, "proxyauthorization": true, "authentication": true, "cookie": true, "setcookie": true,
	"mcpsessionid": true, "sessionid": true, "sid": true, "xapikey": true, "apikey": true, "xauthkey": true, "authkey": true,
	"jwt": true, "bearer": true, "otp": true, "codeverifier": true, "clientassertion": true, "assertion": true, "subjecttoken": true,
}

// secretName reports whether a name means that the value is secret.
func (m *Masker) secretName(name string) bool {
	folded := fold(name)
	return !m.public[folded] && (secretNames[folded] || host.SecretName(name))
}
