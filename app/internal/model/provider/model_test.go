package provider_test

import (
	stdjson "encoding/json"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/model/provider"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]provider.Tokens{
		`8192`: 8192, `"131072"`: 131072, `1e5`: 100000, `8192.5`: 8192, `-1`: 0, `null`: 0, `"many"`: 0, `{}`: 0, `[1]`: 0, `1e300`: 0, `"NaN"`: 0,
	} {
		var got struct{ N provider.Tokens }
		if err := stdjson.Unmarshal([]byte(`{"N":`+text+`}`), &got); err != nil || got.N != want {
			t.Errorf("%s: %d, %v, want %d", text, got.N, err, want)
		}
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	const own = "https://api.example/v1"
	for address, want := range map[string]string{own: "p", "https://API.example:8443/v1": "p@api.example:8443", "http://127.0.0.1:1/v1": "p@127.0.0.1:1"} {
		if got := (&provider.Endpoint{Provider: "p", URL: address, Own: own}).Origin(); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

func TestTokensWindow(t *testing.T) {
	t.Parallel()
	for n, want := range map[provider.Tokens]int{0: 0, 100: 0, 2047: 0, 2048: 2048, 1_048_576: 1_048_576, 1 << 24: 1 << 24, 1<<24 + 1: 0, 1 << 40: 0} {
		if got := n.Window(); got != want {
			t.Errorf("%d: %d, want %d", n, got, want)
		}
	}
}

// What clients give New, and what the person is told about another key.
func TestNew(t *testing.T) {
	t.Parallel()
	const own = "https://api.example/v1"
	for _, test := range []struct{ address, key, url, advice string }{
		{"", " sk-1\n", own, "'parley model key set p' sets another one"},
		{" https://api.EXAMPLE:443/v2/ ", "", "https://api.EXAMPLE:443/v2", "'parley model key set p' sets another one"},
		{"http://[::1]:8080", "sk-1", "http://[::1]:8080/v1", "'parley model key set p --base-url http://[::1]:8080' sets another one"},
		{"https://other.example/api", "sk-1", "https://other.example/api", "'parley model key set p --base-url https://other.example' sets another one"},
	} {
		e, err := provider.New(&provider.Endpoint{Provider: "p", URL: test.address, Own: own, Key: test.key}, "/v1")
		if err != nil {
			t.Errorf("%s: %v", test.address, err)
			continue
		}
		if e.URL != test.url || e.OtherKey() != test.advice || strings.TrimSpace(test.key) != e.Key {
			t.Errorf("%s: %s, key %q, %s", test.address, e.URL, e.Key, e.OtherKey())
		}
	}
	for address, want := range map[string]string{
		"http://other.example": `p: the base URL "http://other.example" is http, and not on this machine`,
		"none":                 `p: the base URL "none" is none`,
	} {
		if e, err := provider.New(&provider.Endpoint{Provider: "p", URL: address, Own: own, Key: "sk-1"}, ""); e != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if e, err := provider.New(&provider.Endpoint{Provider: "p", Own: own, Key: "a b"}, ""); e != nil || err == nil || !strings.HasPrefix(err.Error(), "p: the key has a blank") {
		t.Errorf("%v", err)
	}
}
