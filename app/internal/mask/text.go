package mask

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/parley-mcp/parley/host"
)

var (
	// authorizationText is an Authorization header in a text.
	authorizationText = regexp.MustCompile(`(?i)((?:proxy-)?authorization\\?["']?\s{0,4}[:=]\s{0,4}\\?["']?(?:basic|bearer|digest|token|apikey)\s{1,4})([^\s"'\\,;]+)`)
	// cookieText is a Cookie or Set-Cookie header, up to the end of its line or quotes.
	cookieText = regexp.MustCompile(`(?i)\b((?:set-)?cookie\\?["']?\s{0,4}[:=]\s{0,4}\\?["']?)([^"'\\\r\n]+)`)
)

// Text takes the secrets out of a text. It takes time in proportion to the length of the text.
func (m *Masker) Text(text string) string {
	if text == "" {
		return ""
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = m.byValue(text)
	text = m.urls(text)
	if strings.Contains(text, "uthorization") || strings.Contains(text, "UTHORIZATION") {
		text = replaceGroup(authorizationText, text, func(g []string) string { return g[1] + m.hideCredential(g[2]) })
	}
	if strings.Contains(text, "ookie") || strings.Contains(text, "OOKIE") {
		text = replaceGroup(cookieText, text, func(g []string) string { return g[1] + m.cookie(g[2]) })
	}
	text = m.named(text)
	return host.RedactFunc(text, func(secret, _ string) string { return m.hide(secret) })
}

// replaceGroup replaces the matches of an expression by what f makes of their groups.
func replaceGroup(re *regexp.Regexp, text string, f func(groups []string) string) string {
	matches := re.FindAllStringSubmatchIndex(text, -1)
	if len(matches) == 0 {
		return text
	}
	var b strings.Builder
	at := 0
	for _, m := range matches {
		groups := make([]string, len(m)/2)
		for i := range groups {
			if m[2*i] >= 0 {
				groups[i] = text[m[2*i]:m[2*i+1]]
			}
		}
		b.WriteString(text[at:m[0]])
		b.WriteString(f(groups))
		at = m[1]
	}
	b.WriteString(text[at:])
	return b.String()
}

// hideCredential hides what follows the scheme in an Authorization header. The password
// in a basic credential is a secret by itself.
func (m *Masker) hideCredential(credential string) string {
	raw, err := base64.StdEncoding.DecodeString(credential)
	if err == nil {
		if _, password, ok := strings.Cut(string(raw), ":"); ok {
			m.found(password)
		}
	}
	return m.hide(credential)
}

// cookie masks the values of a Cookie header.
func (m *Masker) cookie(text string) string {
	parts := strings.Split(text, ";")
	for i, part := range parts {
		name, value, ok := strings.Cut(part, "=")
		switch {
		case ok && !cookieAttributes[strings.ToLower(strings.TrimSpace(name))]:
			parts[i] = name + "=" + m.hide(value)
		case !ok && i == 0:
			parts[i] = m.hide(part)
		}
	}
	return strings.Join(parts, ";")
}

// cookieAttributes are what a Set-Cookie header says next to the cookie (RFC 6265, 4.1).
var cookieAttributes = map[string]bool{
	"expires": true, "max-age": true, "domain": true, "path": true, "samesite": true, "priority": true,
}

// escaped is a text as it stands between the quotes of JSON.
func escaped(text string) string {
	raw := quote(text)
	return string(raw[1 : len(raw)-1])
}

// htmlEscaped is escaped for JSON that may be embedded in HTML.
func htmlEscaped(text string) string {
	raw, err := json.Marshal(text)
	if err != nil { // strings always encode
		return text
	}
	return string(raw[1 : len(raw)-1])
}

// quote is a text as JSON.
func quote(text string) []byte {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil { // strings always encode
		return []byte(`""`)
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}
