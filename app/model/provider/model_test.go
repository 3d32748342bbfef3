package provider_test

import (
	stdjson "encoding/json"
	"testing"

	"github.com/parley-mcp/parley/app/model/provider"
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
		if got := (&provider.Endpoint{Provider: "p", URL: address}).Origin(own); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
