package kit

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Strangers' names never get into a command that the person may copy.
// Attack: a scope that ends the quotes.
func TestWord(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://example.com/mcp":   "https://example.com/mcp",
		"files:write":               "files:write",
		"http://[::1]:8080/mcp":     "http://[::1]:8080/mcp",
		"a'; rm -rf ~; '":           "…",
		"$(id)":                     "…",
		"--issuer":                  "…",
		"":                          "…",
		"https://example.com/a?b=c": "…",
		"ü":                         "…",
	} {
		if got := SafeWord(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		resource, address string
		want              bool
	}{
		{"https://a.example/mcp", "https://a.example/mcp", true},
		{"https://a.example/mcp", "https://A.example:443/mcp/x?y", true},
		{"https://a.example", "https://a.example/mcp", true},
		{"https://a.example/", "https://a.example/mcp", true},
		{"https://a.example/mcp", "https://a.example/mcpx", false},
		{"https://a.example/mcp", "https://a.example/", false},
		{"https://a.example", "https://a.example.evil.example/", false},
		{"https://a.example", "http://a.example/", false},
	} {
		u, err := url.Parse(tt.address)
		if err != nil {
			t.Fatal(err)
		}
		if got := Covers(tt.resource, u); got != tt.want {
			t.Errorf("%s covers %s: %v, want %v", tt.resource, tt.address, got, tt.want)
		}
	}
}

// A line of progress is never wider than the terminal: it could not be cleared.
func TestProgressFits(t *testing.T) {
	for text, want := range map[string]string{
		"short": "short", "exactly 10": "exactly 10", "eleven chars": "eleven cha", "文字文字文字": "文字文字文",
	} {
		if got := fitting(text, 10); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// How long something takes is rounded, so that ten minutes are ten a moment later too.
func TestRoundDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		10*time.Minute - time.Second: "10 minutes", 8*time.Minute + 29*time.Second: "8 minutes", 90 * time.Second: "90 seconds",
		47*time.Hour + 59*time.Minute: "48 hours", 30 * 24 * time.Hour: "30 days",
	} {
		if got := RoundDuration(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

// An error of a server is bounded, and none of its lines passes for ours.
func TestErrorsOfServers(t *testing.T) {
	text := ErrorText(errors.New("no\nparley: all is well\x1b[2J" + strings.Repeat("x", 100_000)))
	if strings.Contains(text, "\nparley:") || strings.Contains(text, "\x1b") || len(text) > 6000 {
		t.Errorf("%d bytes: %.200s", len(text), text)
	}
}
