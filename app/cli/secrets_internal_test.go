package cli

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/inspect/mask"
)

// Secrets of this program's own environment are masked, but for what is a word or names a file.
func TestEnvironmentSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key-1.json")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"PARLEY_TEST_TOKEN": "plum-token-1", "PARLEY_TEST_PASSWORD": "plumplumplum", "PARLEY_TEST_CREDENTIALS": file, "PARLEY_TEST_SECRET": "plum1", "PARLEY_TEST_PLAIN": "plum-plain-1",
	} {
		t.Setenv(name, value)
	}
	text := " plumplumplum " + file + " plum1 plum-plain-1"
	if got := (&Streams{}).mask().Known("plum-token-1" + text); got != mask.Hidden+text {
		t.Errorf("%q", got)
	}
}

// A token of a sign-in, which only requests have, is masked from the first request on.
func TestCredentialTransport(t *testing.T) {
	t.Parallel()
	p := &program{streams: &Streams{}}
	said := func() string { return p.masked("no token plum-token-1") }
	transport := p.tappedTransport(roundTripper(func(r *http.Request) (*http.Response, error) {
		if said() != "no token "+mask.Hidden || r.Header.Get("Authorization") == "" {
			t.Errorf("as the request is sent: %q", said())
		}
		return nil, http.ErrServerClosed
	}))
	if strings.Contains(said(), mask.Hidden) {
		t.Error("it is known before it is sent")
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://parley.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "DPoP plum-token-1")
	if _, err := transport.RoundTrip(request); !errors.Is(err, http.ErrServerClosed) { //nolint:bodyclose // there is no response
		t.Error(err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
