package host

import (
	"encoding/base64"
	"math"
	"regexp"
	"strings"
	"sync"
)

// A secretShape is a well-known form of a secret. The last group of the
// expression is the secret, or all of it if there is none; the first of two is
// the name beside it.
type secretShape struct {
	kind  string   // with its article
	parts []string // one of them is in every text that has the shape
	shape func() *regexp.Regexp
	check func(secret string) bool // nil takes all
}

func (s *secretShape) find(text string) []secretSpan {
	has := false
	for _, part := range s.parts {
		has = has || strings.Contains(text, part)
	}
	if !has {
		return nil
	}
	var spans []secretSpan
	for _, m := range s.shape().FindAllStringSubmatchIndex(text, -1) {
		if len(m) == 6 && publicName().MatchString(text[m[2]:m[3]]) {
			continue
		}
		m = m[len(m)-2:]
		if secret := text[m[0]:m[1]]; s.check == nil || s.check(secret) {
			spans = append(spans, secretSpan{m[0], m[1], s.kind})
		}
	}
	return spans
}

// secretShapes are searched in this order, the most telling first.
var secretShapes = []secretShape{
	{
		"an AWS access key",
		[]string{"AKIA", "ASIA", "ABIA", "ACCA"},
		lazy(`\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b`), nil,
	},
	{
		"an AWS secret key",
		[]string{"ecret", "ECRET"},
		lazy(`(?i)aws_?-?secret_?-?(?:access_?-?)?key` +
			`["']?\s{0,4}[:=]\s{0,4}["']?([A-Za-z0-9/+]{40})\b`), random,
	},
	{
		"a GitHub token",
		[]string{"gh", "github_pat_"},
		lazy(`\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})`), nil,
	},
	{
		"a GitLab token",
		[]string{"gl"},
		lazy(`\bgl(?:pat|rt|dt|cbt|ptt|ft|soat|agent|oas)-[A-Za-z0-9_-]{20,}`), nil,
	},
	{
		"a Slack token",
		[]string{"xox", "xapp-"},
		lazy(`\b(?:xox[abceoprs]-(?:[a-z]-)?|xapp-\d-)[A-Za-z0-9-]{10,}`), nil,
	},
	{
		"a Slack webhook",
		[]string{"hooks.slack.com"},
		lazy(`hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9+/]{20,})`), nil,
	},
	{
		"a Stripe key",
		[]string{"_live_", "_test_", "whsec_"},
		lazy(`\b(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,})`), nil,
	},
	{"an Anthropic API key", []string{"sk-ant-"}, lazy(`\bsk-ant-[A-Za-z0-9_-]{20,}`), nil},
	{
		"an OpenAI API key",
		[]string{"sk-proj-", "sk-svcacct-", "sk-admin-"},
		lazy(`\bsk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}`), nil,
	},
	{"an API key", []string{"sk-"}, lazy(`\bsk-[A-Za-z0-9_-]{20,}`), mixed},
	{"a Google API key", []string{"AIza"}, lazy(`\bAIza[A-Za-z0-9_-]{30,}`), nil},
	{
		"a Google OAuth secret",
		[]string{"GOCSPX-", "ya29."},
		lazy(`\b(?:GOCSPX-[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{20,})`), nil,
	},
	{"an npm token", []string{"npm_"}, lazy(`\bnpm_[A-Za-z0-9]{36}\b`), nil},
	{"a PyPI token", []string{"pypi-"}, lazy(`\bpypi-[A-Za-z0-9_-]{32,}`), mixed},
	{"a Hugging Face token", []string{"hf_"}, lazy(`\bhf_[A-Za-z0-9]{30,}\b`), nil},
	{
		"a SendGrid API key",
		[]string{"SG."},
		lazy(`\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}`), nil,
	},
	{"a Telegram bot token", []string{":AA"}, lazy(`\b\d{8,10}:AA[A-Za-z0-9_-]{32,}`), nil},
	{
		"a cloud provider's token",
		[]string{"dop_v1_", "shpat_", "shpss_", "dapi", "hvs.", "PMAK-", "lin_api_", "ntn_", "glc_", "glsa_"},
		lazy(`\b(?:dop_v1_[a-f0-9]{64}|shp(?:at|ss)_[a-fA-F0-9]{32}|dapi[a-f0-9]{32}|` +
			`hvs\.[A-Za-z0-9_-]{24,}|PMAK-[a-f0-9-]{40,}|lin_api_[A-Za-z0-9]{32,}|ntn_[A-Za-z0-9]{40,}|gl(?:c|sa)_[A-Za-z0-9+/=_]{32,})`), nil,
	},
	{
		"an age secret key",
		[]string{"AGE-SECRET-KEY-"},
		lazy(`\bAGE-SECRET-KEY-1[0-9A-Z]{40,}`), nil,
	},
	{
		"a signed token (JWT)",
		[]string{"eyJ"},
		lazy(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), nil,
	},
	{
		"an Azure key",
		[]string{"ccount", "haredAccess"},
		lazy(`(?i)\b(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,}={0,2})`), nil,
	},
	{
		"a bearer token",
		[]string{"earer", "EARER"},
		lazy(`(?i)\bbearer[ :]{1,2}([A-Za-z0-9._~+/-]{16,}=*)`), mixed,
	},
	{
		"a basic credential",
		[]string{"asic", "ASIC"},
		lazy(`(?i)\bbasic ([A-Za-z0-9+/]{8,}={0,2})`), basicCredential,
	},
	{
		"a password in a URL",
		[]string{"://"},
		lazy(`\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:@"'<>]*:([^\s/?#@"'<>]+)@`), notPlaceholder,
	},
	{
		"a token in a URL",
		[]string{"=", "%3D"},
		lazy(`(?i)[?&](?:access_?token|refresh_?token|id_?token|token|auth|` +
			`api_?-?key|key|secret|client_?secret|password|passwd|pwd|sig|signature|x-amz-signature|x-amz-security-token|x-goog-signature|code)=([A-Za-z0-9._~%+/=-]{12,})`), mixed,
	},
	{
		"a password or token beside its name",
		[]string{":", "="},
		lazy(`(?i)([a-z0-9_-]*(?:passw(?:or)?d|passphrase|secret|token|api_?-?key|access_?-?key|` +
			`private_?-?key|auth_?-?key|signing_?-?key|encryption_?-?key|pwd|credentials?))` +
			`\\?["']?\s{0,4}(?:=>|[:=])\s{0,4}\\?["']?([^\s"'` + "`" + `,;&<>(){}\[\]\\]{12,})`), random,
	},
}

// lazy compiles an expression when it is first used: a program that needs few of them starts sooner.
//
//go:noinline // it would be three functions for each expression
func lazy(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// Shapes that are random-looking and no secrets.
var (
	uuidShape  = lazy(`(?i)^\{?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\}?$`)
	wordsShape = lazy(`^[A-Za-z]+[0-9]{0,4}(?:[-_.:][A-Za-z]*[0-9]{0,4})*$`)
	publicText = lazy(`(?i)your|example\.|changeme|placeholder|redacted|xxxx|\*\*\*|\.\.\.|…|` +
		`^\$|%[a-z_]+%|^https?://|^/|^\./|^<|^sha(256|384|512)[:-]`)
)

// notPlaceholder refuses what stands for a secret in documentation.
func notPlaceholder(s string) bool {
	switch strings.ToLower(s) {
	case "password", "passwd", "pass", "secret":
		return false
	}
	return !publicText().MatchString(s)
}

// mixed reports whether s has both letters and digits, as keys have and words
// do not.
func mixed(s string) bool {
	letter := func(r rune) bool { return 'a' <= r|0x20 && r|0x20 <= 'z' }
	return strings.ContainsAny(s, "0123456789") && strings.ContainsFunc(s, letter) && notPlaceholder(s)
}

// random reports whether s looks as if it was made by chance: letters and
// digits, at least three bits for each character, and no identifier.
func random(s string) bool {
	return mixed(s) && !uuidShape().MatchString(s) && !wordsShape().MatchString(s) && entropy(s) >= 3
}

// entropy returns the bits for each byte of s, by how often each occurs.
func entropy(s string) float64 {
	var counts [256]int
	for i := range len(s) {
		counts[s[i]]++
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// basicCredential reports whether s is a name and a password in base64.
func basicCredential(s string) bool {
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil {
		return false
	}
	name, password, ok := strings.Cut(string(raw), ":")
	return ok && name+password != "" && plain(string(raw), false)
}
