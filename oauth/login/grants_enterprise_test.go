package login

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

const goodJAG = `{"access_token":"id.jag","issued_token_type":"urn:ietf:params:oauth:token-type:id-jag","token_type":"N_A","scope":"read","expires_in":300}`

// provider is an identity provider: metadata, then the exchange.
func provider(t testing.TB, jag func(http.ResponseWriter, *http.Request)) *answering {
	t.Helper()
	var a *answering
	a = newAnswering(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			webtest.Answer(200, marshal(t, map[string]any{
				"issuer": a.URL, "token_endpoint": a.URL + "/exchange", "authorization_endpoint": a.URL + "/authorize",
			}))(w, r)
		case "/exchange":
			jag(w, r)
		default:
			http.NotFound(w, r)
		}
	})
	return a
}

// exchanges are the requests to the identity provider's token endpoint.
func exchanges(a *answering) []noted {
	var out []noted
	for _, s := range a.requests() {
		if s.path == "/exchange" {
			out = append(out, s)
		}
	}
	return out
}

// Proves: extension enterprise-managed-authorization, sections 4 and 5: the ID
// token goes to the identity provider with the client's credentials there, for
// an assertion that goes to the authorization server with those there.
func TestEnterpriseManaged(t *testing.T) {
	t.Parallel()
	for _, given := range []bool{false, true} {
		idp := provider(t, webtest.Answer(200, goodJAG))
		as := newAnswering(t, webtest.Answer(200, goodToken))
		q := as.request(t, &Credentials{Issuer: as.URL, ClientID: "at-as", Secret: "as-secret"})
		q.dpop = newTestProver(t)
		o := EnterpriseOptions{
			IDToken:     func(context.Context) (string, error) { return "id.token", nil },
			Issuer:      idp.URL,
			Credentials: &Credentials{ClientID: "at-idp", Secret: "idp-secret", Method: oauth.AuthSecretPost},
		}
		if given {
			o.Issuer, o.TokenEndpoint = "", idp.URL+"/exchange"
		}
		got, err := EnterpriseManaged(o).obtain(t.Context(), q)
		if err != nil || got.AccessToken != "at" {
			t.Fatalf("%+v, %v", got, err)
		}
		want := url.Values{
			"grant_type": {oauth.GrantTokenExchange}, "requested_token_type": {oauth.TokenTypeIDJAG},
			"audience": {as.URL}, "resource": {"https://mcp.example/mcp"}, "scope": {"read write"},
			"subject_token": {"id.token"}, "subject_token_type": {oauth.TokenTypeIDToken},
			"client_id": {"at-idp"}, "client_secret": {"idp-secret"},
		}
		sent := exchanges(idp)
		if len(sent) != 1 || sent[0].authorization != "" {
			t.Fatalf("exchanges %+v", sent)
		}
		if diff := cmp.Diff(want, sent[0].form); diff != "" {
			t.Error(diff)
		}
		seen := as.requests()
		if len(seen) != 1 {
			t.Fatalf("%d requests", len(seen))
		}
		want = url.Values{
			"grant_type": {oauth.GrantJWTBearer}, "assertion": {"id.jag"},
			"resource": {"https://mcp.example/mcp"}, "scope": {"read write"},
		}
		if diff := cmp.Diff(want, seen[0].form); diff != "" {
			t.Error(diff)
		}
		if seen[0].authorization != basic("at-as", "as-secret") {
			t.Errorf("authorization %q", seen[0].authorization)
		}
		if _, err := jwt.VerifyProof(seen[0].proof, &jwt.ProofCheck{Method: "POST", URL: q.meta.TokenEndpoint, Now: time.Now()}); err != nil {
			t.Error(err)
		}
	}
}

// Attack: an identity provider that is misled, or misleads: nothing but an
// ID-JAG reaches the authorization server, and no secret an error.
func TestEnterpriseManagedRefusals(t *testing.T) {
	t.Parallel()
	token := func(context.Context) (string, error) { return "hush", nil }
	for _, tt := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request)
		change func(o *EnterpriseOptions)
		has    string
	}{
		{"access token instead", webtest.Answer(200, `{"access_token":"hush","token_type":"Bearer","issued_token_type":"urn:ietf:params:oauth:token-type:access_token"}`), nil, "it issued a token of type"},
		{"type not said", webtest.Answer(200, `{"access_token":"hush","token_type":"N_A"}`), nil, "it issued a token of type"},
		{"denied", webtest.Answer(400, `{"error":"access_denied","error_description":"policy"}`), nil, "policy"},
		{"another issuer", webtest.Answer(200, goodJAG), func(o *EnterpriseOptions) { o.Issuer += "/tenant" }, "no metadata was found"},
		{"nothing given", webtest.Answer(200, goodJAG), func(o *EnterpriseOptions) { o.Issuer = "" }, "Issuer or its TokenEndpoint"},
		{"bad endpoint", webtest.Answer(200, goodJAG), func(o *EnterpriseOptions) { o.TokenEndpoint = "file:///x" }, "token endpoint"},
		{"no function", webtest.Answer(200, goodJAG), func(o *EnterpriseOptions) { o.IDToken = nil }, "IDToken"},
		{"no ID token", webtest.Answer(200, goodJAG), func(o *EnterpriseOptions) {
			o.IDToken = func(context.Context) (string, error) { return "", nil }
		}, "sign in at the identity provider"},
		{"ID token fails", webtest.Answer(200, goodJAG), func(o *EnterpriseOptions) {
			o.IDToken = func(context.Context) (string, error) { return "", errors.New("boom") }
		}, "boom"},
		{"foreign credentials", webtest.Answer(200, goodJAG), func(o *EnterpriseOptions) {
			o.Credentials = &Credentials{Issuer: "https://other.example", ClientID: "id", Secret: "hush"}
		}, "https://other.example"},
		{"key without issuer", webtest.Answer(200, goodJAG), func(o *EnterpriseOptions) {
			o.TokenEndpoint, o.Issuer = o.Issuer+"/exchange", ""
			o.Credentials = &Credentials{ClientID: "id", Signer: newECKey(t)}
		}, "needs the issuer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			idp, as := provider(t, tt.answer), newAnswering(t, webtest.Answer(200, goodToken))
			o := EnterpriseOptions{IDToken: token, Issuer: idp.URL}
			if tt.change != nil {
				tt.change(&o)
			}
			_, err := EnterpriseManaged(o).obtain(t.Context(), as.request(t, &Credentials{ClientID: "id", Secret: "hush"}))
			if err == nil || !strings.Contains(err.Error(), tt.has) || strings.Contains(err.Error(), "hush") {
				t.Errorf("error %v, want one that says %q", err, tt.has)
			}
			if n := len(as.requests()); n != 0 {
				t.Errorf("%d requests reached the authorization server", n)
			}
		})
	}
}

// Proves: the options are copied.
func TestEnterpriseOptionsAreCopied(t *testing.T) {
	t.Parallel()
	c := &Credentials{ClientID: "id"}
	grant := EnterpriseManaged(EnterpriseOptions{Credentials: c}).(enterpriseManaged)
	c.ClientID = "other"
	if grant.o.Credentials.ClientID != "id" {
		t.Error("the grant changed with what it was made of")
	}
}
