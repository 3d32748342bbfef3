package login

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// Proves: extension oauth-client-credentials: grant_type, scope and resource
// are sent, the client authenticates, with a proof if tokens are bound.
func TestClientCredentials(t *testing.T) {
	t.Parallel()
	a := newAnswering(t, webtest.Answer(200, goodToken))
	q := a.request(t, &Credentials{Issuer: a.URL, ClientID: "id", Secret: "s"})
	q.dpop = newTestProver(t)
	got, err := ClientCredentials().obtain(t.Context(), q)
	if err != nil || got.AccessToken != "at" {
		t.Fatalf("%+v, %v", got, err)
	}
	seen := a.requests()
	want := url.Values{"grant_type": {"client_credentials"}, "scope": {"read write"}, "resource": {"https://mcp.example/mcp"}}
	if diff := cmp.Diff(want, seen[0].form); diff != "" {
		t.Error(diff)
	}
	if seen[0].authorization != "Basic aWQ6cw==" {
		t.Errorf("authorization %q", seen[0].authorization)
	}
	if _, err := jwt.VerifyProof(seen[0].proof, &jwt.ProofCheck{Method: "POST", URL: q.meta.TokenEndpoint, Now: time.Now()}); err != nil {
		t.Error(err)
	}
}

// Proves: RFC 6749, section 4.4: confidential clients alone.
func TestClientCredentialsNeedProof(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*Credentials{
		"no credentials": nil,
		"no id":          {Secret: "s"},
		"no secret":      {ClientID: "id"},
		"not supported":  {ClientID: "id", Secret: "s", Method: "tls_client_auth"},
	} {
		a := newAnswering(t, webtest.Answer(200, goodToken))
		if _, err := ClientCredentials().obtain(t.Context(), a.request(t, c)); err == nil || !strings.HasPrefix(err.Error(), "client credentials: ") {
			t.Errorf("%s: error %v", name, err)
		}
		if n := len(a.requests()); n != 0 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
}

// Proves: extension auth/wif: no registration, resource sent, client_id only if
// there is one.
func TestJWTBearer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		creds *Credentials
		id    []string
	}{
		{"no registration", nil, nil},
		{"with a client id", &Credentials{ClientID: "workload"}, []string{"workload"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAnswering(t, webtest.Answer(200, goodToken))
			q := a.request(t, tt.creds)
			q.dpop = newTestProver(t)
			var audience string
			grant := JWTBearer(func(_ context.Context, aud string) (string, error) {
				audience = aud
				return "platform.jwt", nil
			})
			if got, err := grant.obtain(t.Context(), q); err != nil || got.AccessToken != "at" {
				t.Fatalf("%+v, %v", got, err)
			}
			if audience != a.URL {
				t.Errorf("audience %q, want the issuer", audience)
			}
			want := url.Values{
				"grant_type": {oauth.GrantJWTBearer}, "assertion": {"platform.jwt"},
				"scope": {"read write"}, "resource": {"https://mcp.example/mcp"},
			}
			if tt.id != nil {
				want["client_id"] = tt.id
			}
			seen := a.requests()[0]
			if diff := cmp.Diff(want, seen.form); diff != "" {
				t.Error(diff)
			}
			if seen.authorization != "" || seen.proof == "" {
				t.Errorf("headers %+v", seen)
			}
		})
	}
}

// Proves: SEP-1933: no retry and no other grant after a refusal.
func TestJWTBearerRefusalIsFinal(t *testing.T) {
	t.Parallel()
	for _, code := range []string{oauth.InvalidGrant, oauth.InvalidScope, oauth.UnauthorizedClient} {
		a := newAnswering(t, webtest.Answer(400, `{"error":"`+code+`"}`))
		grant := JWTBearer(func(context.Context, string) (string, error) { return "hush", nil })
		_, err := grant.obtain(t.Context(), a.request(t, nil))
		if !errors.Is(err, &oauth.Error{Code: code}) || strings.Contains(err.Error(), "hush") {
			t.Errorf("error %v", err)
		}
		if n := len(a.requests()); n != 1 {
			t.Errorf("%s: %d requests, want 1", code, n)
		}
	}
	boom := errors.New("boom")
	for _, f := range []func(context.Context, string) (string, error){
		nil,
		func(context.Context, string) (string, error) { return "", nil },
		func(context.Context, string) (string, error) { return "hush", boom },
	} {
		a := newAnswering(t, webtest.Answer(200, goodToken))
		if _, err := JWTBearer(f).obtain(t.Context(), a.request(t, nil)); err == nil || len(a.requests()) != 0 {
			t.Errorf("error %v, %d requests", err, len(a.requests()))
		}
	}
}
