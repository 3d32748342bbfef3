package login

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

func newECKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newRSAKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestMethod(t *testing.T) {
	t.Parallel()
	signer := newECKey(t)
	const (
		basic, post, key, none = oauth.AuthSecretBasic, oauth.AuthSecretPost, oauth.AuthPrivateKeyJWT, oauth.AuthNone
	)
	for _, tt := range []struct {
		name   string
		creds  Credentials
		listed []string
		want   string
		errHas []string
	}{
		{"secret, nothing listed", Credentials{Secret: "s"}, nil, basic, nil},
		{"secret, both listed", Credentials{Secret: "s"}, []string{post, basic}, basic, nil},
		{"secret, post alone", Credentials{Secret: "s"}, []string{none, post}, post, nil},
		{"secret, public clients alone", Credentials{Secret: "s"}, []string{none}, none, nil},
		{"secret, keys alone", Credentials{Secret: "s"}, []string{key}, "", []string{`takes only "private_key_jwt"`, "give a Signer"}},
		{"signer, nothing listed", Credentials{Signer: signer}, nil, key, nil},
		{"signer, listed", Credentials{Signer: signer, Secret: "s"}, []string{basic, key}, key, nil},
		{"signer not taken, but a secret", Credentials{Signer: signer, Secret: "s"}, []string{post}, post, nil},
		{"signer, secrets alone", Credentials{Signer: signer}, []string{basic, post}, "", []string{"takes only", "give a Secret"}},
		{"signer, unknown alone", Credentials{Signer: signer}, []string{"tls_client_auth\n"}, "", []string{`"tls_client_auth\n"`, "none of which is supported"}},
		{"nothing, nothing listed", Credentials{}, nil, none, nil},
		{"nothing, none listed", Credentials{}, []string{basic, none}, none, nil},
		{"nothing, none not listed", Credentials{}, []string{basic}, none, nil},
		{"explicit, not listed", Credentials{Method: post, Secret: "s"}, []string{basic}, post, nil},
		{"explicit none with secret", Credentials{Method: none, Secret: "s"}, nil, none, nil},
		{"explicit basic without secret", Credentials{Method: basic}, nil, "", []string{"needs a client secret"}},
		{"explicit post without secret", Credentials{Method: post}, nil, "", []string{"needs a client secret"}},
		{"explicit key without signer", Credentials{Method: key, Secret: "s"}, nil, "", []string{"needs a private key"}},
		{"explicit unknown", Credentials{Method: "client_secret_jwt", Secret: "s"}, nil, "", []string{`"client_secret_jwt" is not supported`, basic}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.creds.method(&oauth.ServerMetadata{TokenEndpointAuthMethodsSupported: tt.listed})
			if len(tt.errHas) > 0 {
				if err == nil {
					t.Fatalf("method %q, want an error", got)
				}
				for _, want := range tt.errHas {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("error %q does not say %q", err, want)
					}
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("method %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

// Proves: RFC 6749, section 2.3.1: id and secret are form-encoded before base64.
func TestBasicEncoding(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ id, secret, want string }{
		{"client", "secret", "client:secret"},
		{"https://app.example/client.json", "a:b", "https%3A%2F%2Fapp.example%2Fclient.json:a%3Ab"},
		{"two words", "p+q%&=é", "two+words:p%2Bq%25%26%3D%C3%A9"},
		{"id", "", "id:"},
	} {
		encoded, ok := strings.CutPrefix(basic(tt.id, tt.secret), "Basic ")
		if !ok {
			t.Fatal("no Basic scheme")
		}
		got, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || string(got) != tt.want {
			t.Errorf("basic(%q, %q) is %q, %v; want %q", tt.id, tt.secret, got, err, tt.want)
		}
	}
}

// Proves: oauth.md 1.4 trap (0), RFC 7523 section 3: the audience is the issuer,
// for a minute, once; and the id of the client stands in the assertion alone.
func TestPrivateKeyJWT(t *testing.T) {
	t.Parallel()
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey := newRSAKey(t)
	now := time.Now().Truncate(time.Second)
	for _, tt := range []struct {
		name   string
		creds  Credentials
		listed []string
		want   string
		errHas string
	}{
		{"EC", Credentials{Signer: newECKey(t)}, nil, "ES256", ""},
		{"EC, listed", Credentials{Signer: newECKey(t)}, []string{"RS256", "ES256"}, "ES256", ""},
		{"Ed25519", Credentials{Signer: edKey, KeyID: "own"}, []string{"EdDSA"}, "EdDSA", ""},
		{"RSA", Credentials{Signer: rsaKey}, nil, "RS256", ""},
		{"RSA, PSS alone", Credentials{Signer: rsaKey}, []string{"ES256", "PS256"}, "PS256", ""},
		{"RSA, named", Credentials{Signer: rsaKey, Algorithm: "PS256"}, nil, "PS256", ""},
		{"RSA, named and not taken", Credentials{Signer: rsaKey, Algorithm: "PS256"}, []string{"RS256"}, "", "PS256"},
		{"none is never picked", Credentials{Signer: rsaKey}, []string{"none", "HS256"}, "", `"none", "HS256"`},
		{"wrong kind of key", Credentials{Signer: rsaKey, Algorithm: "ES256"}, nil, "", "key of the client"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.creds.ClientID = "the-client"
			meta := &oauth.ServerMetadata{
				Issuer: "https://as.example/tenant", TokenEndpoint: "https://as.example/tenant/token",
				TokenEndpointAuthSigningAlgValuesSupported: tt.listed,
			}
			q := &grantRequest{meta: meta, creds: &tt.creds, now: func() time.Time { return now }}
			form, header := url.Values{}, http.Header{}
			method, err := q.authenticate(form, header)
			if tt.errHas != "" {
				if err == nil || !strings.Contains(err.Error(), tt.errHas) {
					t.Fatalf("error %v, want one with %q", err, tt.errHas)
				}
				return
			}
			if err != nil || method != oauth.AuthPrivateKeyJWT {
				t.Fatalf("method %q, %v", method, err)
			}
			if form.Has("client_id") || form.Has("client_secret") || len(header) > 0 {
				t.Errorf("more than the assertion was sent: %v %v", form, header)
			}
			if got := form.Get("client_assertion_type"); got != oauth.ClientAssertionJWT {
				t.Errorf("assertion type %q", got)
			}
			token := verifyBy(t, tt.creds.Signer, tt.creds.KeyID, tt.want, form.Get("client_assertion"), meta.Issuer, now)
			c := token.Claims
			if c.Issuer != "the-client" || c.Subject != "the-client" || len(c.Audience) != 1 || len(c.ID) < 22 {
				t.Errorf("claims %+v", c)
			}
			if !c.IssuedAt.Equal(now) || !c.Expiry.Equal(now.Add(time.Minute)) {
				t.Errorf("from %v to %v, want %v and a minute", c.IssuedAt, c.Expiry, now)
			}
			again := url.Values{}
			if _, err := q.authenticate(again, http.Header{}); err != nil || again.Get("client_assertion") == form.Get("client_assertion") {
				t.Errorf("the assertion is used twice (%v)", err)
			}
		})
	}
}

// verifyBy checks a JWT with a key, as a server would.
func verifyBy(t testing.TB, signer crypto.Signer, kid, algorithm, token, audience string, now time.Time) *jwt.Token {
	t.Helper()
	key, err := jwt.KeyOf(signer, algorithm, kid)
	if err != nil {
		t.Fatal(err)
	}
	set, err := jwt.ParseSet(jwt.SetJSON(key))
	if err != nil {
		t.Fatal(err)
	}
	got, err := jwt.Verify(t.Context(), token, set, &jwt.Check{
		Algorithms: []string{algorithm}, Types: []string{jwt.TypeJWT}, Audience: []string{audience}, Now: now, NeedExpiry: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Attack: credentials of one authorization server asked for by another.
// Proves: C17.
func TestCredentialsStayWithTheirIssuer(t *testing.T) {
	t.Parallel()
	q := &grantRequest{
		meta:  &oauth.ServerMetadata{Issuer: "https://evil.example", TokenEndpoint: "https://evil.example/token"},
		creds: &Credentials{Issuer: "https://as.example", ClientID: "id", Secret: "hush"},
		now:   time.Now,
	}
	// Without a Fetcher: nothing is sent.
	_, err := requestToken(t.Context(), q, url.Values{})
	if err == nil || !strings.Contains(err.Error(), "https://as.example") || strings.Contains(err.Error(), "hush") {
		t.Errorf("error %v", err)
	}
	q.meta.RevocationEndpoint = "https://evil.example/revoke"
	if err := revokeToken(t.Context(), q, "token", ""); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("revocation: error %v", err)
	}
}
