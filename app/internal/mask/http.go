package mask

import (
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// schemes are what the value of an Authorization header begins with.
var schemes = map[string]bool{"basic": true, "bearer": true, "digest": true, "token": true, "apikey": true, "dpop": true, "negotiate": true}

// hideCredentials hides a value in a secret place; the scheme before it is none of the secret.
func (m *Masker) hideCredentials(value string) string {
	scheme, rest, ok := strings.Cut(value, " ")
	if ok && schemes[strings.ToLower(scheme)] {
		return scheme + " " + m.hideCredential(rest)
	}
	return m.hide(value)
}

// Header returns a copy of a header without its secrets.
func (m *Masker) Header(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for name, values := range h {
		for _, v := range values {
			out[name] = append(out[name], m.HeaderValue(name, v))
		}
	}
	return out
}

// HeaderValue is the value of a header without its secrets.
func (m *Masker) HeaderValue(name, value string) string {
	folded := fold(name)
	switch {
	case m.headers[folded]:
		return m.hideCredentials(value)
	case m.public[folded]:
		return m.Text(value)
	case folded == "cookie", folded == "setcookie":
		return m.cookie(value)
	case m.secretName(name):
		return m.hideCredentials(value)
	}
	return m.Text(value)
}

// secretParameters are folded names of parameters of URLs and forms that mean a secret, in
// addition to those that mean one everywhere.
var secretParameters = map[string]bool{
	"key": true, "auth": true, "sig": true, "signature": true, "code": true, "session": true, "state": true, "ticket": true, "hmac": true,
	"xamzsignature": true, "xamzcredential": true, "xgoogsignature": true, "devicecode": true, "usercode": true,
}

// URL takes the secrets out of a URL: user and password, and parameters by their names.
// The rest is masked by value alone. A text that is no URL is masked as well as it can be.
func (m *Masker) URL(address string) string {
	address = m.urlValues(address)
	address, fragment, hasFragment := strings.Cut(address, "#")
	address, query, hasQuery := strings.Cut(address, "?")
	if scheme, rest, ok := strings.Cut(address, "://"); ok {
		authority, path, hasPath := strings.Cut(rest, "/")
		if at := strings.LastIndexByte(authority, '@'); at >= 0 {
			authority = m.userinfo(authority[:at]) + authority[at:]
		}
		address = scheme + "://" + authority
		if hasPath {
			address += "/" + path
		}
	}
	if hasQuery {
		address += "?" + m.parameters(query)
	}
	if hasFragment {
		if strings.Contains(fragment, "=") {
			fragment = m.parameters(fragment)
		}
		address += "#" + fragment
	}
	return address
}

// urlValues is byValue for a URL, with marks that may stand there.
func (m *Masker) urlValues(address string) string {
	masked := m.byValue(address)
	if masked == address {
		return address
	}
	return marked.ReplaceAllStringFunc(masked, func(mark string) string {
		return "redacted-" + strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(mark, "«redacted:"), "redacted-"), "»")
	})
}

// userinfo masks the user and password of a URL: either may be the secret.
func (m *Masker) userinfo(text string) string {
	if marked.MatchString(text) && !strings.Contains(text, ":") {
		return text
	}
	name, password, _ := strings.Cut(text, ":")
	if password == "" && !IsWord(name) { // a token, such as of a repository
		password = name
	}
	if plain, err := url.PathUnescape(password); err == nil {
		m.found(plain)
	}
	return m.urlMark(text)
}

// parameters masks the values of a query or form.
func (m *Masker) parameters(query string) string {
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, value, ok := strings.Cut(part, "=")
		plain, err := url.QueryUnescape(name)
		if err != nil {
			plain = name
		}
		if folded := fold(plain); !ok || value == "" || marked.MatchString(value) || m.public[folded] || !m.secretName(plain) && !secretParameters[folded] {
			continue
		}
		secret, err := url.QueryUnescape(value)
		if err != nil {
			secret = value
		}
		m.found(secret)
		parts[i] = name + "=" + m.urlMark(secret)
	}
	return strings.Join(parts, "&")
}

// Body takes the secrets out of the body of a request or response of that content type.
func (m *Masker) Body(contentType string, body []byte) string {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media = ""
	}
	switch media {
	case "application/x-www-form-urlencoded":
		return m.parameters(m.urlValues(string(body)))
	case "text/event-stream":
		return m.events(string(body))
	}
	out, _ := m.Message(body)
	return string(out)
}

// events masks a stream of events: what stands behind "data:" is a message each.
func (m *Masker) events(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		content := strings.TrimRight(line, "\r\n")
		end := line[len(content):]
		if data, ok := strings.CutPrefix(content, "data:"); ok {
			if masked, ok := m.JSON([]byte(data)); ok {
				lines[i] = "data: " + string(masked) + end
				continue
			}
		}
		lines[i] = m.Text(content) + end
	}
	return strings.Join(lines, "")
}

// ownHeaders are folded names of headers that clients of the protocol and net/http send by
// themselves, and that hold no secret.
var ownHeaders = map[string]bool{
	"accept": true, "acceptencoding": true, "acceptlanguage": true, "cachecontrol": true, "connection": true, "contentlength": true,
	"contenttype": true, "host": true, "lasteventid": true, "origin": true, "pragma": true, "referer": true, "transferencoding": true,
	"upgrade": true, "useragent": true, "secwebsocketkey": true, "secwebsocketversion": true, "secwebsocketprotocol": true,
	"secwebsocketextensions": true, "traceparent": true, "tracestate": true, "baggage": true,
}

// RequestHeader is [Masker.Header] for a request of this program. Headers that
// neither the protocol nor HTTP knows are the user's own, and secret.
func (m *Masker) RequestHeader(h http.Header) http.Header {
	out := m.Header(h)
	for name, values := range h {
		folded := fold(name)
		if ownHeaders[folded] || m.public[folded] || strings.HasPrefix(folded, "mcp") {
			continue
		}
		for i, v := range values {
			out[name][i] = m.hideCredentials(v)
		}
	}
	return out
}

// LearnHeader learns the value of a header of a request of this program that RequestHeader masks,
// unless it is a word and only the unknown name of the header makes it secret.
func (m *Masker) LearnHeader(name, value string) {
	secret := m.headers[fold(name)] || m.secretName(name)
	if IsWord(value) && !secret {
		return
	}
	_ = m.RequestHeader(http.Header{name: {value}}) // learns what it masks
	if _, rest, ok := strings.Cut(value, " "); ok && secret {
		m.found(rest) // behind a scheme that is none of schemes
		_ = m.named(rest)
	}
}
