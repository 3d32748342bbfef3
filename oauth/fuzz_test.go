package oauth_test

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth"
)

// FuzzChallenges: whatever is read is written so that it is read again, alone
// and in a list, and never as two lines.
func FuzzChallenges(f *testing.F) {
	for _, seed := range []string{
		`Bearer realm="x", error="invalid_token",scope=a`, `Negotiate abc==, Basic realm="\"\\", Bearer`, "Bearer a=https://x?y=z",
		`@ , x=y, Bearer a="b`, "DPoP \t algs=\"ES256\",,",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		challenges := oauth.ParseChallenges([]string{value})
		var lines []string
		for _, c := range challenges {
			line := c.String()
			if strings.ContainsAny(line, "\r\n\x00") {
				t.Errorf("%q is several lines", line)
			}
			if diff := cmp.Diff([]oauth.Challenge{c}, oauth.ParseChallenges([]string{line})); diff != "" {
				t.Errorf("%q (-want +got):\n%s", line, diff)
			}
			lines = append(lines, line)
		}
		if diff := cmp.Diff(challenges, oauth.ParseChallenges([]string{strings.Join(lines, ", ")})); diff != "" {
			t.Errorf("as a list (-want +got):\n%s", diff)
		}
	})
}

// FuzzURLs: what is accepted means the same to net/url, to browsers and after
// it was written anew.
func FuzzURLs(f *testing.F) {
	for _, seed := range badURLs {
		if len(seed) < 500 {
			f.Add(seed)
		}
	}
	for _, seed := range []string{
		"https://a.example:8443/x%2Fy?z='$!", "http://127.0.0.1:1/cb", "HTTP://[::1]/", "com.example.app:/cb", "https://A.example:443//", "0./:",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if u, err := oauth.CheckEndpoint(raw); err == nil {
			sameHost(t, raw, u)
			again, err := oauth.CheckEndpoint(u.String())
			if err != nil || again.String() != u.String() {
				t.Errorf("%q is written as %q: %v", raw, u, err)
			}
		}
		if u, err := oauth.CheckAuthorizationURL(raw); err == nil {
			s := u.String()
			again, err := oauth.CheckAuthorizationURL(s)
			if err != nil || again.String() != s || strings.ContainsAny(s, " '\"`$!\\<>|^{}") || s[0] == '-' {
				t.Errorf("%q is opened as %q: %v", raw, s, err)
			}
			sameHost(t, s, u)
		}
		if s, err := oauth.CanonicalResource(raw); err == nil {
			if again, err := oauth.CanonicalResource(s); err != nil || again != s {
				t.Errorf("canonical %q has the canonical form %q: %v", s, again, err)
			}
			if err := (&oauth.ResourceMetadata{Resource: raw}).Check(s, false); err != nil {
				t.Errorf("%q is not its canonical form: %v", raw, err)
			}
		}
		if err := oauth.CheckRedirectURI(raw, true); err == nil {
			checkRedirect(t, raw)
		}
	})
}

func checkRedirect(t *testing.T, raw string) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatalf("redirect URI %q: %v", raw, err)
	}
	switch u.Scheme {
	case "https":
		sameHost(t, raw, u)
	case "http":
		sameHost(t, raw, u)
		if !oauth.LoopbackHost(u.Hostname()) {
			t.Errorf("redirect URI %q leaves this machine in plain text", raw)
		}
	default:
		if !strings.Contains(u.Scheme, ".") || !strings.HasPrefix(strings.ToLower(raw), u.Scheme+":/") {
			t.Errorf("redirect URI %q has the scheme %q", raw, u.Scheme)
		}
	}
	if u.User != nil || strings.ContainsAny(raw, "#*\\ \r\n\t\x00") {
		t.Errorf("redirect URI %q has a forbidden part", raw)
	}
	if !oauth.MatchRedirectURI(raw, raw, false) {
		t.Errorf("redirect URI %q does not match itself", raw)
	}
}

// sameHost compares the host that net/url found with the one a browser goes
// to, by the steps of the WHATWG URL standard that matter here.
func sameHost(t *testing.T, raw string, u *url.URL) {
	t.Helper()
	s := strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' {
			return -1
		}
		return r
	}, strings.TrimFunc(raw, func(r rune) bool { return r <= ' ' }))
	scheme, s, _ := strings.Cut(s, ":")
	s = strings.TrimLeft(s, `/\`)
	if i := strings.IndexAny(s, `/\?#`); i >= 0 {
		s = s[:i]
	}
	s = s[strings.LastIndexByte(s, '@')+1:]
	if i := strings.LastIndexByte(s, ':'); i > strings.LastIndexByte(s, ']') {
		s = s[:i]
	}
	host, err := url.PathUnescape(s)
	if err != nil || !strings.EqualFold(host, strings.TrimSuffix(u.Host, ":"+u.Port())) || !strings.EqualFold(scheme, u.Scheme) {
		t.Errorf("%q: net/url finds %s at %s, a browser %s at %s", raw, u.Scheme, u.Host, scheme, host)
	}
	last := strings.TrimSuffix(host, ".")
	last = last[strings.LastIndexByte(last, '.')+1:]
	number := last != "" && strings.Trim(last, "0123456789") == "" ||
		strings.HasPrefix(strings.ToLower(last), "0x") && strings.Trim(last[2:], "0123456789abcdefABCDEF") == ""
	if _, err := netip.ParseAddr(host); number && err != nil {
		t.Errorf("%q: a browser takes %q for an address, and we for a name", raw, host)
	}
}

// FuzzDocuments: whatever is read is written so that it is read again, and
// keeps the bounds.
func FuzzDocuments(f *testing.F) {
	for _, seed := range []string{
		`{"issuer":"https://as.example","token_endpoint":"https://as.example/t","scopes_supported":["a"],"code_challenge_methods_supported":null}`,
		`{"resource":"https://a.example/mcp","authorization_servers":["https://as.example"],"resource_name":"a\u202eb"}`,
		`{"client_id":"x","client_secret_expires_at":"0","jwks":{ "keys": [] },"redirect_uris":["http://localhost/"]}`,
		`{"access_token":"a","token_type":"Bearer","expires_in":3.6e3,"refresh_token":"r"}`,
		`{"error":"invalid_grant","error_description":"x\ny"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		stable(t, data, oauth.ParseResourceMetadata)
		stable(t, data, oauth.ParseClientMetadata)
		stable(t, data, oauth.ParseClientInformation)
		stable(t, data, oauth.ParseTokenResponse)
		stable(t, data, func(data []byte) (*oauth.ServerMetadata, error) {
			return oauth.ParseServerMetadata(data, "https://as.example")
		})
		if e := oauth.ParseError(400, data); e.Code != "" {
			stable(t, data, func(data []byte) (*oauth.Error, error) { return oauth.ParseError(400, data), nil })
		} else if e.Description == "" {
			t.Error("an error without code and text")
		}
		if c, err := oauth.ParseClientInformation(data); err == nil {
			_ = c.CheckDocument(c.ClientID, true) // takes whatever was read
		}
	})
}

func stable[T any](t *testing.T, data []byte, parse func([]byte) (*T, error)) {
	t.Helper()
	value, err := parse(data)
	if err != nil {
		return
	}
	text, err := wire.Marshal(value)
	if err != nil {
		t.Fatalf("writing %+v: %v", value, err)
	}
	again, err := parse(text)
	if err != nil {
		t.Fatalf("reading %s again: %v", text, err)
	}
	if got, err := wire.Marshal(again); err != nil || string(got) != string(text) {
		t.Errorf("%s becomes %s, %v", text, got, err)
	}
}
