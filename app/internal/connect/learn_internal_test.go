package connect

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/transport/stdio"
)

// Secrets of this program's own environment are masked, but for what is a word or names a file.
func TestEnvironmentSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key-1.json")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"PARLEY_TEST_TOKEN": "plum-token-1", "PARLEY_TEST_PASSWORD": "plumplumplum", "PARLEY_TEST_CREDENTIALS": file, "PARLEY_TEST_SECRET": "plum1", "PARLEY_TEST_PLAIN": "plum-plain-1",
		"PARLEY_TEST_PROXY": "http://ada:plum-proxy-1@proxy.example:3128",
	} {
		t.Setenv(name, value)
	}
	text := " plumplumplum " + file + " plum1 plum-plain-1 proxy.example"
	if got := (&kit.Streams{}).Masker().Known("plum-token-1" + text + "plum-proxy-1"); got != mask.Hidden+text+mask.Hidden {
		t.Errorf("%q", got)
	}
}

// A report that happens to have a secret as a number is made all the same.
func TestMaskedCopy(t *testing.T) {
	t.Parallel()
	type report struct {
		Text    string
		N, Size int
		Any     any
	}
	p := New(&kit.Console{Streams: &kit.Streams{}})
	p.Streams.Masker().Learn("123456")
	got, err := kit.MaskedCopy(p.Console, &report{"at 123456", 123456, 1234567, []any{"123456"}})
	if want := (report{"at " + mask.Hidden, 0, 1234567, []any{mask.Hidden}}); err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// A file in which a secret is, also one that is missing, is named in errors.
func TestCommandSecrets(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "key-1.json")
	m := mask.New(&mask.Options{Distinct: true})
	d := stdio.Command("server", "--token-secret", missing, "--secret="+missing, "--token", "plum-token-1", "--password=plum-word-1")
	d.ExtraEnv = []string{"GOOGLE_APPLICATION_CREDENTIALS=" + missing, "API_KEY=/plum/key/1"}
	LearnCommand(m, d)
	text := "open " + missing + ": no such file; "
	if got := m.Known(text + "plum-token-1 plum-word-1 /plum/key/1"); got != text+strings.Join([]string{mask.Hidden, mask.Hidden, mask.Hidden}, " ") {
		t.Errorf("%q", got)
	}
}

// A token of a sign-in, which only requests have, is masked from the first request on.
func TestCredentialTransport(t *testing.T) {
	t.Parallel()
	p := New(&kit.Console{Streams: &kit.Streams{}})
	said := func() string { return p.Masked("no token plum-token-1") }
	transport := p.Around(roundTripper(func(r *http.Request) (*http.Response, error) {
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

// What tokens are got with is masked, too, when an authorization server repeats it.
func TestCredentialsOfForms(t *testing.T) {
	t.Parallel()
	p := New(&kit.Console{Streams: &kit.Streams{}})
	const form = "grant_type=refresh_token&refresh_token=plum-refresh-1&client_id=plum-client-1&client_secret=plum%2Fsecret%2F1"
	transport := p.Around(roundTripper(func(r *http.Request) (*http.Response, error) {
		if raw, err := io.ReadAll(r.Body); string(raw) != form {
			t.Errorf("sent: %q, %v", raw, err)
		}
		return nil, http.ErrServerClosed
	}))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://parley.example/token", strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if _, err := transport.RoundTrip(request); !errors.Is(err, http.ErrServerClosed) { //nolint:bodyclose // there is no response
		t.Error(err)
	}
	if got := p.Masked("no refresh_token plum-refresh-1 of plum-client-1 with plum/secret/1"); strings.ReplaceAll(got, mask.Hidden, "«»") != "no refresh_token «» of plum-client-1 with «»" {
		t.Errorf("%q", got)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
