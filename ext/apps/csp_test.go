package apps_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/ext/apps"
)

// SEP-1865, Restrictive Default and CSP Construction from Metadata.
func TestCSP(t *testing.T) {
	for _, test := range []struct {
		name    string
		domains *apps.Domains
		want    string
	}{
		{"nothing declared", nil, "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
			"img-src 'self' data:; media-src 'self' data:; connect-src 'none'; frame-src 'none'; object-src 'none'; base-uri 'self'"},
		{"an empty declaration", &apps.Domains{}, "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
			"connect-src 'self'; img-src 'self' data:; font-src 'self'; media-src 'self' data:; frame-src 'none'; object-src 'none'; base-uri 'self'"},
		{"all of it", &apps.Domains{
			Connect:  []string{"https://api.example.com", "wss://live.example.com:8443"},
			Resource: []string{"https://*.example.org"},
			Frame:    []string{"https://player.example.net"},
			BaseURI:  []string{"https://cdn.example.org"},
		}, "default-src 'none'; script-src 'self' 'unsafe-inline' https://*.example.org; style-src 'self' 'unsafe-inline' https://*.example.org; " +
			"connect-src 'self' https://api.example.com wss://live.example.com:8443; img-src 'self' data: https://*.example.org; " +
			"font-src 'self' https://*.example.org; media-src 'self' data: https://*.example.org; " +
			"frame-src https://player.example.net; object-src 'none'; base-uri https://cdn.example.org"},
	} {
		got, err := apps.CSP(test.domains)
		if err != nil || got != test.want {
			t.Errorf("%s: %v\n got %s\nwant %s", test.name, err, got, test.want)
		}
	}
}

// What is no origin is refused wherever it stands, by the host and by the server's
// own constructor, and the error says why.
func TestCSPRefuses(t *testing.T) {
	for entry, want := range map[string]string{
		"":                                  "with its scheme",
		"*":                                 "with its scheme",
		"https:":                            "with its scheme",
		"'unsafe-eval'":                     "change the policy",
		"https://a.example https://b.c":     "change the policy",
		"https://a.example; script-src *":   "change the policy",
		"https://a.example, default-src *":  "change the policy",
		"https://a.example\r\nSet-Cookie:1": "change the policy",
		"https://a.example\x00":             "change the policy",
		"https://a.example\t":               "change the policy",
		"https://user@a.example":            "change the policy",
		"https://münchen.example":           "change the policy",
		"https://[::1]":                     "change the policy",
		"https://a.example?x=1":             "change the policy",
		"data:":                             "with its scheme",
		"data://a":                          "scheme is data",
		"javascript://a.example":            "scheme is javascript",
		"https://*":                         "wildcard",
		"https://*.com":                     "at least two names",
		"https://*.*.example.com":           "wildcard",
		"https://a.*.example.com":           "wildcard",
		"https://*.1.2.3.4":                 "no wildcard",
		"https://a.example:*":               "port",
		"https://a.example:0":               "port",
		"https://a.example:65536":           "port",
		"https://a.example:443/x":           "port",
		"https://a.example/":                "path",
		"https://a.example/lib":             "path",
		"https://":                          "empty",
		"https://:443":                      "empty",
		"https://a..example":                "no name",
		"https://-a.example":                "no name",
		"http://a.example":                  "https or wss",
		"ws://a.example":                    "https or wss",
		"https://" + strings.Repeat("a", 64) + ".example":  "no name",
		"https://" + strings.Repeat("a.", 130) + "example": "longer",
	} {
		list := []string{"https://good.example", entry}
		for _, d := range []*apps.Domains{{Connect: list}, {Resource: list}, {Frame: list}, {BaseURI: list}} {
			if got, err := apps.CSP(d); err == nil || got != "" || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %q, %v; want %q", entry, got, err, want)
			}
			if _, err := apps.NewPage("ui://x", page, &apps.PageOptions{CSP: d}); err == nil {
				t.Errorf("%q: a page declares it", entry)
			}
		}
	}
	for _, entry := range []string{"http://localhost:3000", "ws://127.0.0.1", "HTTPS://A.example", "https://192.0.2.1:8443", "https://*.a-b.example.com"} {
		if _, err := apps.CSP(&apps.Domains{Connect: []string{entry}}); err != nil {
			t.Errorf("%q: %v", entry, err)
		}
	}
	var many []string
	for i := range 400 {
		many = append(many, fmt.Sprintf("https://host%d.example", i))
	}
	if _, err := apps.CSP(&apps.Domains{Resource: many}); err == nil || !strings.Contains(err.Error(), "fewer origins") {
		t.Errorf("too many: %v", err)
	}
}

// Whatever a server declares, the policy has the directives of the specification, each
// once, and no source but keywords and what was declared.
func FuzzCSP(f *testing.F) {
	f.Add("https://a.example", "wss://b.example:1", "https://*.c.example")
	f.Add("https://a.example;script-src *", "'none'", "*")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		d := &apps.Domains{Connect: []string{a}, Resource: []string{b}, Frame: []string{c}, BaseURI: []string{a, b}}
		policy, err := apps.CSP(d)
		if err != nil {
			if policy != "" {
				t.Errorf("a policy beside an error: %q", policy)
			}
			return
		}
		names := []string{
			"default-src", "script-src", "style-src", "connect-src", "img-src",
			"font-src", "media-src", "frame-src", "object-src", "base-uri",
		}
		allowed := []string{"'none'", "'self'", "'unsafe-inline'", "data:", a, b, c}
		var got []string
		for directive := range strings.SplitSeq(policy, "; ") {
			parts := strings.Fields(directive)
			got = append(got, parts[0])
			for _, source := range parts[1:] {
				if !slices.Contains(allowed, source) || strings.ContainsAny(source, ";,\r\n\"") {
					t.Errorf("source %q in %q", source, policy)
				}
			}
		}
		if !slices.Equal(got, names) {
			t.Errorf("directives %q", got)
		}
		if strings.Count(policy, ";") != len(names)-1 || !strings.Contains(policy, "object-src 'none'") {
			t.Errorf("policy %q", policy)
		}
	})
}
