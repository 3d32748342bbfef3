package login

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// An answering is a server that notes requests and answers them in order; the
// last answer is for all that follow.
type answering struct {
	*httptest.Server
	mu      sync.Mutex
	seen    []noted
	answers []func(http.ResponseWriter, *http.Request)
}

type noted struct {
	path, authorization, proof, accept string
	form                               url.Values
}

func newAnswering(t testing.TB, answers ...func(http.ResponseWriter, *http.Request)) *answering {
	t.Helper()
	a := &answering{answers: answers}
	a.Server = webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		a.mu.Lock()
		a.seen = append(a.seen, noted{r.URL.Path, r.Header.Get("Authorization"), r.Header.Get(headerDPoP), r.Header.Get("Accept"), r.PostForm})
		next := a.answers[0]
		if len(a.answers) > 1 {
			a.answers = a.answers[1:]
		}
		a.mu.Unlock()
		next(w, r)
	}))
	return a
}

func (a *answering) requests() []noted {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]noted(nil), a.seen...)
}

// request is a grantRequest to this server.
func (a *answering) request(t testing.TB, c *Credentials) *grantRequest {
	t.Helper()
	f := oauth.NewFetcher(nil)
	local := f.Loopback()
	t.Cleanup(f.Close)
	t.Cleanup(local.Close)
	return &grantRequest{
		fetch: local, creds: c, resource: "https://mcp.example/mcp", scopes: []string{"read", "write"}, now: time.Now,
		meta: &oauth.ServerMetadata{Issuer: a.URL, TokenEndpoint: a.URL + "/token", RevocationEndpoint: a.URL + "/revoke"},
	}
}

const goodToken = `{"access_token":"at","token_type":"Bearer","expires_in":60}`

func TestRequestTokenAuthenticates(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		creds         *Credentials
		authorization string
		want          url.Values
	}{
		{"nobody", nil, "", url.Values{}},
		{"no id", &Credentials{}, "", url.Values{}},
		{"public", &Credentials{ClientID: "i d"}, "", url.Values{"client_id": {"i d"}}},
		{"basic", &Credentials{ClientID: "id", Secret: "s"}, "Basic aWQ6cw==", url.Values{}},
		{"post", &Credentials{ClientID: "id", Secret: "s", Method: oauth.AuthSecretPost}, "", url.Values{"client_id": {"id"}, "client_secret": {"s"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAnswering(t, webtest.Answer(200, goodToken))
			form := url.Values{"grant_type": {"refresh_token"}}
			got, err := requestToken(t.Context(), a.request(t, tt.creds), form)
			if err != nil || got.AccessToken != "at" {
				t.Fatalf("%+v, %v", got, err)
			}
			if diff := cmp.Diff(url.Values{"grant_type": {"refresh_token"}}, form); diff != "" {
				t.Errorf("the form was written to: %s", diff)
			}
			seen := a.requests()
			if len(seen) != 1 {
				t.Fatalf("%d requests", len(seen))
			}
			tt.want.Set("grant_type", "refresh_token")
			if diff := cmp.Diff(tt.want, seen[0].form); diff != "" {
				t.Error(diff)
			}
			if seen[0].authorization != tt.authorization || seen[0].accept != "application/json" || seen[0].proof != "" {
				t.Errorf("headers %+v", seen[0])
			}
		})
	}
}

// Attack: secrets in errors.
func TestRequestTokenErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		listed []string
		creds  *Credentials
		answer func(http.ResponseWriter, *http.Request)
		code   string
		has    string
	}{
		{"refused", nil, nil, webtest.Answer(400, `{"error":"invalid_grant","error_description":"gone"}`), oauth.InvalidGrant, "gone"},
		{"refused with 200", nil, nil, webtest.Answer(200, `{"error":"invalid_grant"}`), oauth.InvalidGrant, ""},
		{"no JSON", nil, nil, webtest.Answer(502, `<html>bad`), "", "502"},
		{"no token", nil, nil, webtest.Answer(200, `{"token_type":"Bearer"}`), "", "answer of the authorization server"},
		{
			"public where a secret is wanted",
			[]string{oauth.AuthSecretBasic, oauth.AuthPrivateKeyJWT},
			&Credentials{ClientID: "id"},
			webtest.Answer(401, `{"error":"invalid_client"}`), oauth.InvalidClient, "give a Secret or a Signer",
		},
		{
			"wrong secret",
			[]string{oauth.AuthSecretBasic},
			&Credentials{ClientID: "id", Secret: "hush"},
			webtest.Answer(401, `{"error":"invalid_client"}`), oauth.InvalidClient, "",
		},
		{
			"redirected", nil, &Credentials{ClientID: "id", Secret: "hush"},
			webtest.Answer(307, ``, "Location", "https://evil.example/"), "", "token request",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAnswering(t, tt.answer)
			q := a.request(t, tt.creds)
			q.meta.TokenEndpointAuthMethodsSupported = tt.listed
			_, err := requestToken(t.Context(), q, url.Values{"code": {"hush"}, "code_verifier": {"hush"}})
			if err == nil {
				t.Fatal("no error")
			}
			var e *oauth.Error
			if tt.code != "" && (!errors.As(err, &e) || e.Code != tt.code) {
				t.Errorf("error %v has no code %s", err, tt.code)
			}
			if !strings.Contains(err.Error(), tt.has) || strings.Contains(err.Error(), "hush") {
				t.Errorf("error %q, want one that says %q", err, tt.has)
			}
			if n := len(a.requests()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
	if _, err := requestToken(t.Context(), &grantRequest{meta: &oauth.ServerMetadata{}}, nil); err == nil {
		t.Error("no token endpoint is no error")
	}
}

// Proves: RFC 9449, section 8: the nonce is taken up, once and only once, with
// a fresh proof and a fresh assertion.
func TestDPoPNonceRetry(t *testing.T) {
	t.Parallel()
	const wantNonce = `{"error":"use_dpop_nonce"}`
	for _, tt := range []struct {
		name     string
		answers  []func(http.ResponseWriter, *http.Request)
		requests int
		nonces   []string
		code     string
	}{
		{"no nonce wanted", []func(http.ResponseWriter, *http.Request){webtest.Answer(200, goodToken)}, 1, []string{""}, ""},
		{"nonce wanted", []func(http.ResponseWriter, *http.Request){
			webtest.Answer(400, wantNonce, headerDPoPNonce, "n1"), webtest.Answer(200, goodToken),
		}, 2, []string{"", "n1"}, ""},
		{"wanted with 401", []func(http.ResponseWriter, *http.Request){
			webtest.Answer(401, wantNonce, headerDPoPNonce, "n1"), webtest.Answer(200, goodToken),
		}, 2, []string{"", "n1"}, ""},
		{"a new one each time", []func(http.ResponseWriter, *http.Request){
			webtest.Answer(400, wantNonce, headerDPoPNonce, "n1"), webtest.Answer(400, wantNonce, headerDPoPNonce, "n2"), webtest.Answer(200, goodToken),
		}, 2, []string{"", "n1"}, oauth.UseDPoPNonce},
		{"wanted and not given", []func(http.ResponseWriter, *http.Request){webtest.Answer(400, wantNonce)}, 1, []string{""}, oauth.UseDPoPNonce},
		{"another error with a nonce", []func(http.ResponseWriter, *http.Request){
			webtest.Answer(400, `{"error":"invalid_grant"}`, headerDPoPNonce, "n1"),
		}, 1, []string{""}, oauth.InvalidGrant},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAnswering(t, tt.answers...)
			q := a.request(t, &Credentials{ClientID: "id", Signer: newECKey(t)})
			q.dpop = newTestProver(t)
			_, err := requestToken(t.Context(), q, url.Values{"grant_type": {"x"}})
			var e *oauth.Error
			if tt.code == "" && err != nil || tt.code != "" && (!errors.As(err, &e) || e.Code != tt.code) {
				t.Errorf("error %v, want code %q", err, tt.code)
			}
			seen := a.requests()
			if len(seen) != tt.requests {
				t.Fatalf("%d requests, want %d", len(seen), tt.requests)
			}
			ids, assertions := map[string]bool{}, map[string]bool{}
			for i, s := range seen {
				proof, err := jwt.VerifyProof(s.proof, &jwt.ProofCheck{Method: "POST", URL: q.meta.TokenEndpoint, Now: time.Now()})
				if err != nil {
					t.Fatal(err)
				}
				if proof.Nonce != tt.nonces[i] {
					t.Errorf("request %d has nonce %q, want %q", i, proof.Nonce, tt.nonces[i])
				}
				ids[proof.ID], assertions[s.form.Get("client_assertion")] = true, true
			}
			if len(ids) != len(seen) || len(assertions) != len(seen) {
				t.Error("a proof or an assertion was sent twice")
			}
		})
	}
}

// A nonce that another goroutine learnt meanwhile is used all the same.
func TestDPoPNonceLearntElsewhere(t *testing.T) {
	t.Parallel()
	var p *dpopSigner
	a := newAnswering(t, func(w http.ResponseWriter, r *http.Request) {
		p.learn("http://"+r.Host+"/token", nonceHeader("n1"))
		webtest.Answer(400, `{"error":"use_dpop_nonce"}`, headerDPoPNonce, "n1")(w, r)
	}, webtest.Answer(200, goodToken))
	q := a.request(t, nil)
	p = newTestProver(t)
	q.dpop = p
	if _, err := requestToken(t.Context(), q, url.Values{}); err != nil {
		t.Error(err)
	}
}

// Proves: RFC 7009, sections 2.1 and 2.2.
func TestRevokeToken(t *testing.T) {
	t.Parallel()
	a := newAnswering(t, webtest.Answer(200, ``), webtest.Answer(400, `{"error":"unsupported_token_type"}`), webtest.Answer(503, ``))
	q := a.request(t, &Credentials{ClientID: "id", Secret: "s"})
	if err := revokeToken(t.Context(), q, "hush", "refresh_token"); err != nil {
		t.Error(err)
	}
	err := revokeToken(t.Context(), q, "hush", "")
	if !errors.Is(err, &oauth.Error{Code: oauth.UnsupportedTokenType}) || strings.Contains(err.Error(), "hush") {
		t.Errorf("error %v", err)
	}
	if err := revokeToken(t.Context(), q, "hush", ""); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("error %v", err)
	}
	seen := a.requests()
	if diff := cmp.Diff(url.Values{"token": {"hush"}, "token_type_hint": {"refresh_token"}}, seen[0].form); diff != "" {
		t.Error(diff)
	}
	if seen[0].path != "/revoke" || seen[0].authorization != "Basic aWQ6cw==" || seen[1].form.Has("token_type_hint") {
		t.Errorf("requests %+v", seen)
	}
	q.meta.RevocationEndpoint = ""
	if err := revokeToken(t.Context(), q, "hush", ""); err != nil {
		t.Errorf("no revocation endpoint: %v", err)
	}
	if n := len(a.requests()); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

// marshal is JSON for a test server.
func marshal(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A server that asks for the nonce it was given is not asked again.
func TestDPoPNonceAlreadySent(t *testing.T) {
	t.Parallel()
	a := newAnswering(t, webtest.Answer(400, `{"error":"use_dpop_nonce"}`, headerDPoPNonce, "n1"))
	q := a.request(t, nil)
	q.dpop = newTestProver(t)
	q.dpop.learn(q.meta.TokenEndpoint, nonceHeader("n1"))
	if _, err := requestToken(t.Context(), q, url.Values{}); !errors.Is(err, &oauth.Error{Code: oauth.UseDPoPNonce}) {
		t.Errorf("error %v", err)
	}
	if n := len(a.requests()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// Any status of success with an access token is one, whatever is asked for it, and so it is
// for a device code; an error in such an answer stays one.
func TestUnusualStatusOfSuccess(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 201, 202, 203, 206} {
		a := newAnswering(t, func(w http.ResponseWriter, r *http.Request) {
			said := goodToken
			switch {
			case r.URL.Path == "/device":
				said = `{"device_code":"d","user_code":"u","verification_uri":"https://as.example/v","expires_in":60}`
			case r.PostForm.Get("grant_type") == "refused":
				said = `{"error":"invalid_grant"}`
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(said))
		})
		q := a.request(t, &Credentials{ClientID: "id", Secret: "s"})
		q.meta.DeviceAuthorizationEndpoint = a.URL + "/device"
		for _, grant := range []string{
			oauth.GrantAuthorizationCode, oauth.GrantRefreshToken, oauth.GrantClientCredentials, oauth.GrantDeviceCode, oauth.GrantTokenExchange,
		} {
			if got, err := requestToken(t.Context(), q, q.form(grant)); err != nil || got.AccessToken != "at" {
				t.Errorf("%d to %s: %v", status, grant, err)
			}
		}
		if _, err := requestToken(t.Context(), q, q.form("refused")); !errors.As(err, new(*oauth.Error)) {
			t.Errorf("%d with an error: %v, want the error", status, err)
		}
		if _, err := requestDevice(t.Context(), q); err != nil {
			t.Errorf("%d to a request for a device code: %v", status, err)
		}
	}
}
