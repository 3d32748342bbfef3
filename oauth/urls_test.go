package oauth_test

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/oauth"
)

// Proves: C13.
func TestCanonicalResource(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://mcp.example.com/mcp":          "https://mcp.example.com/mcp",
		"https://mcp.example.com":              "https://mcp.example.com",
		"https://mcp.example.com/":             "https://mcp.example.com",
		"https://mcp.example.com:8443":         "https://mcp.example.com:8443",
		"https://mcp.example.com/server/mcp":   "https://mcp.example.com/server/mcp",
		"HTTPS://MCP.Example.COM:443/MCP/":     "https://mcp.example.com/MCP",
		"https://a.example//":                  "https://a.example",
		"http://a.example:80/x":                "http://a.example/x",
		"http://a.example:443/x":               "http://a.example:443/x",
		"https://a.example/a%2fb%2Fc/'":        "https://a.example/a%2fb%2Fc/'",
		"https://a.example/mcp/?tenant=A%20b/": "https://a.example/mcp?tenant=A%20b/",
		"https://a.example/?x":                 "https://a.example?x",
		"http://[::1]:80/":                     "http://[::1]",
		"https://[2001:DB8::1]:8443/x":         "https://[2001:db8::1]:8443/x",
		"http://my_host/mcp":                   "http://my_host/mcp",

		"mcp.example.com":                  "",
		"https://mcp.example.com#fragment": "",
		"https://mcp.example.com/#":        "",
		"https://user@mcp.example.com/":    "",
		"https:///mcp":                     "",
		"ftp://a.example/":                 "",
		"https:a.example":                  "",
		"https://a.example/../x":           "",
		"https://a.example/x y":            "",
		"/mcp":                             "",
		"":                                 "",
	} {
		got, err := oauth.CanonicalResource(raw)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: got %q, %v, want %q", raw, got, err, want)
		}
	}
}

// badURLs are read in different ways by browsers and net/url, or hide where
// they lead. No function takes one.
var badURLs = []string{
	"", "https://", "https:///x", "https:/a.example", "https:a.example", "//a.example", "/x", "a.example", "-x",
	"javascript:alert(1)", "JavaScript:alert(1)", "java\nscript:alert(1)", "data:text/html,x", "file:///etc/passwd",
	"vbscript:x", "blob:https://a.example/x", "about:blank", "ftp://a.example/", "view-source:https://a.example/",
	"https://user@a.example/", "https://user:pass@a.example/", "https://@a.example/", "https://a.example@evil.example/",
	"https://a.example\\@evil.example/", "https:\\\\a.example/", "https://a.example\\x", "https://a.example/\\x",
	"https://a.example/#", "https://a.example/#x", "https://a.example/x#", " https://a.example/", "https://a.example/ ",
	"https://a.example/a b", "https://a.example/\t", "https://a.exa\tmple/", "https://a.example/\r\nX: y",
	"https://a.example/\x00", "https://a.example/%00", "https://a.example/?%0d%0aX:y", "https://a.example/\x7f",
	"https://a.example/ü", "https://ä.example/", "https://a.example/%", "https://a.example/%zz", "https://a.example/?%+1",
	"https://a.example/\"", "https://a.example/<x>", "https://a.example/`id`", "https://a.example/?{x}|^",
	"https://a.example:/", "https://a.example:0/", "https://a.example:65536/", "https://a.example:0443/", "https://a.example:x/",
	"https://a.example:80:80/", "https://127.1/", "https://0x7f.1/", "https://2130706433/", "https://0177.0.0.1/",
	"https://127.0.0.1./", "https://1.2.3.4.5/", "https://a.example.0x1/", "https://256.1.1.1/", "https://a.1/", "https://0x/",
	"https://::1/", "https://[::1/", "https://[::1]x/", "https://[fe80::1%25eth0]/", "https://[127.0.0.1]/", "https://[]/",
	"https://a..example/", "https://.example/", "https://a.example./", "https://-a.example/", "https://a.example,b/",
	"https://a%2eexample/", "https://a.example%2f/", "https://a!b/", "https://" + strings.Repeat("a", 64) + ".example/",
	"https://" + strings.Repeat("a.", 130) + "example/", "https://a.example/" + strings.Repeat("x", 20000),
	"https://a.example/./x", "https://a.example/x/..", "https://a.example/%2e%2E/x", "https://a.example/.%2e",
}

// Attack: RCE by authorization URL, open redirect, XSS by redirect scheme.
func TestAttackURLs(t *testing.T) {
	t.Parallel()
	for _, raw := range badURLs {
		if u, err := oauth.CheckEndpoint(raw); err == nil {
			t.Errorf("CheckEndpoint takes %q as %s", raw, u)
		}
		if u, err := oauth.CheckIssuer(raw); err == nil {
			t.Errorf("CheckIssuer takes %q as %s", raw, u)
		}
		if u, err := oauth.CheckAuthorizationURL(raw); err == nil {
			t.Errorf("CheckAuthorizationURL takes %q as %s", raw, u)
		}
		if s, err := oauth.CanonicalResource(raw); err == nil {
			t.Errorf("CanonicalResource takes %q as %s", raw, s)
		}
		for _, native := range []bool{false, true} {
			if err := oauth.CheckRedirectURI(raw, native); err == nil {
				t.Errorf("CheckRedirectURI takes %q", raw)
			}
		}
	}
}

func TestCheckEndpoint(t *testing.T) {
	t.Parallel()
	for raw, ok := range map[string]bool{
		"https://a.example":                      true,
		"https://a.example/token?tenant=1":       true,
		"HTTPS://A.example:8443/x":               true,
		"https://192.0.2.1/":                     true,
		"https://[2001:db8::1]:8443/":            true,
		"http://localhost:8080/token":            true,
		"http://as.localhost/":                   true,
		"http://127.9.9.9/":                      true,
		"http://[::1]:1/":                        true,
		"http://a.example/":                      false,
		"http://localhost.example/":              false,
		"http://10.0.0.1/":                       false,
		"http://[::ffff:127.0.0.1]/":             false,
		"https://a.example/" + longPath(2048):    false,
		"https://a.example/" + longPath(2048-18): true,
	} {
		u, err := oauth.CheckEndpoint(raw)
		if (err == nil) != ok {
			t.Errorf("CheckEndpoint %.60s: got %v, want ok=%v", raw, err, ok)
		}
		if err == nil && !strings.HasSuffix(strings.ToLower(raw), strings.ToLower(u.String()[len("https"):])) {
			t.Errorf("CheckEndpoint %.60s: became %.60s", raw, u)
		}
	}
	for raw, ok := range map[string]bool{
		"https://a.example": true, "https://a.example/tenant": true, "http://127.0.0.1:9": true,
		"https://a.example/?x=1": false, "https://a.example/?": false, "http://a.example": false,
	} {
		if _, err := oauth.CheckIssuer(raw); (err == nil) != ok {
			t.Errorf("CheckIssuer %s: got %v, want ok=%v", raw, err, ok)
		}
	}
}

func longPath(n int) string { return strings.Repeat("x", n) }

// Attack: RCE by authorization URL. Proves: C28.
func TestCheckAuthorizationURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://as.example/authorize?client_id=a%20b&state=x":        "https://as.example/authorize?client_id=a%20b&state=x",
		"HTTPS://AS.example/authorize":                                "https://as.example/authorize",
		"http://127.0.0.1:9/authorize":                                "http://127.0.0.1:9/authorize",
		"https://as.example/a'$(id)!?x='$(id)!&y=$HOME;z":             "https://as.example/a%27%24(id)%21?x=%27%24(id)%21&y=%24HOME;z",
		"https://as.example/a%2Fb'":                                   "https://as.example/a%2Fb%27",
		"https://as.example/?redirect_uri=http%3A%2F%2Flocalhost%3A1": "https://as.example/?redirect_uri=http%3A%2F%2Flocalhost%3A1",
		"https://as.example/?x=" + longPath(9000):                     "https://as.example/?x=" + longPath(9000),
	} {
		u, err := oauth.CheckAuthorizationURL(raw)
		if err != nil {
			t.Errorf("%.80s: %v", raw, err)
			continue
		}
		if got := u.String(); got != want {
			t.Errorf("%.80s: got %.80s, want %.80s", raw, got, want)
		}
	}
}

// Attack: open redirect, XSS by redirect scheme. Proves: C27, S9.
func TestCheckRedirectURI(t *testing.T) {
	t.Parallel()
	const no, all, native = 0, 1, 2
	for raw, want := range map[string]int{
		"https://app.example/cb":                all,
		"https://app.example:8443/cb?x=1":       all,
		"http://localhost/cb":                   all,
		"http://localhost:1234/cb":              all,
		"http://127.0.0.1:1234":                 all,
		"http://[::1]:1234/cb":                  all,
		"http://127.0.0.2/cb":                   no,
		"http://app.localhost/cb":               no,
		"http://app.example/cb":                 no,
		"http://localhost.evil.example/cb":      no,
		"http://localhost:80@evil.example/":     no,
		"com.example.app:/cb":                   native,
		"com.example.app://cb/x":                native,
		"com.example.app:cb":                    no,
		"com.example.app:":                      no,
		"com.example.app://user@cb/x":           no,
		"com.example.app:/cb#x":                 no,
		"com.example.app:/../cb":                no,
		"com.example.app:/c b":                  no,
		"com.example.app:/" + longPath(2048):    no,
		"app:/cb":                               no,
		".app:/cb":                              no,
		"app.:/cb":                              no,
		"a..b:/cb":                              no,
		"a./x:/cb":                              no,
		"javascript.:/cb":                       no,
		"javascript:/cb":                        no,
		"intent://x":                            no,
		"ms-word:ofe|u|https://a.example":       no,
		"https://*.app.example/cb":              no,
		"https://app.example/*":                 no,
		"https://app.example/cb#x":              no,
		"https://app.example/cb/../open?to=//x": no,
		"urn:ietf:wg:oauth:2.0:oob":             no,
	} {
		for _, isNative := range []bool{false, true} {
			ok := want == all || want == native && isNative
			err := oauth.CheckRedirectURI(raw, isNative)
			if (err == nil) != ok {
				t.Errorf("%s, native=%v: got %v, want ok=%v", raw, isNative, err, ok)
			}
		}
	}
}

// Proves: S7.
func TestMatchRedirectURI(t *testing.T) {
	t.Parallel()
	const no, same, port = 0, 1, 2
	for _, c := range []struct {
		registered, given string
		want              int
	}{
		{"https://a.example/cb", "https://a.example/cb", same},
		{"https://a.example/cb", "https://a.example/cb/", no},
		{"https://a.example/cb", "https://a.example/cb?x", no},
		{"https://a.example/cb", "https://A.example/cb", no},
		{"https://a.example/cb", "https://a.example:443/cb", no},
		{"https://localhost:1/cb", "https://localhost:2/cb", no},
		{"http://127.0.0.1/cb", "http://127.0.0.1:1234/cb", port},
		{"http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb", port},
		{"http://127.0.0.1:1/cb", "http://127.0.0.1/cb", port},
		{"http://127.0.0.1:1", "http://127.0.0.1:2", port},
		{"http://127.0.0.1:1?x=1", "http://127.0.0.1:2?x=1", port},
		{"http://[::1]:1/cb", "http://[::1]:2/cb", port},
		{"http://localhost/cb", "http://localhost:2/cb", port},
		{"http://localhost/cb", "http://127.0.0.1:2/cb", no},
		{"http://127.0.0.1:1/cb", "http://127.0.0.1:2/other", no},
		{"http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb?x", no},
		{"http://127.0.0.1:1/cb", "http://127.0.0.1:/cb", no},
		{"http://127.0.0.1:1/cb", "http://127.0.0.1:0/cb", no},
		{"http://127.0.0.1:1/cb", "http://127.0.0.1:99999/cb", no},
		{"http://127.0.0.1:1/cb", "http://127.0.0.1:2@evil.example/cb", no},
		{"http://127.0.0.1/cb", "http://127.0.0.1.evil.example/cb", no},
		{"http://127.0.0.1.evil.example/cb", "http://127.0.0.1:1.evil.example/cb", no},
		{"http://127.0.0.2:1/cb", "http://127.0.0.2:2/cb", no},
		{"", "", no},
	} {
		if got := oauth.MatchRedirectURI(c.registered, c.given, false); got != (c.want == same) {
			t.Errorf("%s, %s: got %v, want %v", c.registered, c.given, got, c.want == same)
		}
		if got := oauth.MatchRedirectURI(c.registered, c.given, true); got != (c.want != no) {
			t.Errorf("%s, %s, ports free: got %v, want %v", c.registered, c.given, got, c.want != no)
		}
	}
}

func TestLoopbackHost(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "app.localhost": true, "a.b.localhost": true, "127.0.0.1": true,
		"127.255.255.254": true, "::1": true, "[::1]": true, "0:0:0:0:0:0:0:1": true,
		"": false, "localhost.": false, ".localhost": false, "a b.localhost": false, "localhost.example": false,
		"xlocalhost": false, "127.1": false, "0x7f.1": false, "2130706433": false, "127.0.0.01": false,
		"0.0.0.0": false, "::": false, "[::1": false, "::1]": false, "[localhost]": false, "[127.0.0.1]": false,
		"::ffff:127.0.0.1": false, "::1%lo": false, "localhost:80": false, "127.0.0.1:80": false, "128.0.0.1": false,
	} {
		if got := oauth.LoopbackHost(host); got != want {
			t.Errorf("%q: got %v, want %v", host, got, want)
		}
	}
}
