package web_test

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/transport/web"
)

// What is no address of a server is said, and never repeated.
func TestAddress(t *testing.T) {
	for raw, words := range map[string]string{
		"https://mcp.example/mcp?a=1#part": "",
		"http://[::1]:8080":                "",
		"HTTPS://mcp.example":              "",
		"":                                 "begins with",
		"mcp.example/secret":               "begins with",
		"ftp://mcp.example/secret":         `"ftp"`,
		"https:///secret":                  "no host",
		"https://:80/secret":               "no host",
		"https://ada:secret@mcp.example":   "with Header",
		"https://secret@mcp.example":       "with Header",
		"https://mcp.example/%zzsecret":    "cannot be read",
		"https://mcp.example:secret/":      "cannot be read",
		"\x00secret":                       "cannot be read",
	} {
		u, err := web.ParseURL(raw, "http", "https")
		switch {
		case words == "" && err != nil, words != "" && (err == nil || !strings.Contains(err.Error(), words)):
			t.Errorf("Address(%q): %v, want %q", raw, err, words)
		case err == nil && u.Fragment != "":
			t.Errorf("Address(%q) has a fragment", raw)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("Address(%q) repeats a secret: %v", raw, err)
		}
		if key := web.Key(raw, "http", "https"); (key == "") != (words != "") {
			t.Errorf("Key(%q) = %q", raw, key)
		}
	}
}

// Servers that differ in their query are different ones, and the query is not
// told.
func TestKey(t *testing.T) {
	seen := make(map[string]string)
	for _, raw := range []string{
		"https://mcp.example/mcp", "https://mcp.example/mcp?a=secret", "https://mcp.example/mcp?b=secret",
		"https://mcp.example/other", "http://mcp.example/mcp", "https://mcp.example:8443/mcp", "https://mcp.example/a%2Fb", "https://mcp.example/a/b",
	} {
		key := web.Key(raw, "http", "https")
		if other, ok := seen[key]; ok || key == "" || strings.Contains(key, "secret") {
			t.Errorf("%s and %q have the key %q", raw, other, key)
		}
		seen[key] = raw
		if again := web.Key(raw+"#part", "http", "https"); again != key {
			t.Errorf("with a fragment the key of %s is %q, without %q", raw, again, key)
		}
	}
}
