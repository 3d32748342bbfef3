package jwt_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// fuzzHeaders are headers that a token may come with.
var fuzzHeaders = []string{
	`{"alg":"ES256","typ":"at+jwt","kid":"k"}`,
	`{"alg":"none"}`,
	`{"alg":"ES256","typ":"at+jwt","crit":["b64"],"b64":false}`,
	`{"alg":"ES256","typ":"at+jwt","jwk":{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}}`,
	`{"alg":"ES256","typ":"at+jwt","x5c":["MIIB"],"x5u":"http://a","jku":"http://a","nonce":1}`,
}

// No token makes Verify panic, and what it takes is what we signed, for the
// fuzzer has no key: this very header and payload. (Of a signature of ECDSA
// there is a second form that everybody can make.)
func FuzzVerify(f *testing.F) {
	k := keyOf(f, "k")
	signed, err := k.Sign(jwt.TypeAccessToken, claims())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(signed)
	for _, h := range fuzzHeaders {
		f.Add(forge(f, h, `{"iss":"a","aud":["b"],"exp":1e9,"cnf":{"jkt":"x"}}`))
	}
	f.Add("..")
	set, c := setOf(f, k), check()
	input := signed[:strings.LastIndexByte(signed, '.')+1]
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := jwt.Verify(t.Context(), token, set, c); err == nil && !strings.HasPrefix(token, input) {
			t.Errorf("taken though nobody signed it: %q", token)
		}
		got, err := jwt.Peek(token)
		if err != nil {
			return
		}
		// What is read is written so that it is read the same.
		text, err := got.Claims.AppendJSON(nil)
		if err != nil {
			t.Fatalf("claims that were read are not written: %v", err)
		}
		again, err := jwt.Peek(b64(`{}`) + "." + b64(string(text)) + ".AA")
		if err != nil {
			t.Fatalf("claims that were written are not read: %v: %s", err, text)
		}
		second, err := again.Claims.AppendJSON(nil)
		if err != nil || !wire.Equal(text, second) {
			t.Errorf("%s becomes %s, %v", text, second, err)
		}
	})
}

// No header and payload make VerifyProof panic; and a proof that it takes has
// the thumbprint of the key that signed.
func FuzzProof(f *testing.F) {
	k := keyOf(f, "")
	jwk := string(k.Public())
	good := `{"jti":"j","htm":"POST","htu":"` + target + `","iat":1790000000}`
	f.Add(`{"alg":"ES256","typ":"dpop+jwt","jwk":`+jwk+`}`, good)
	f.Add(`{"alg":"ES256","typ":"dpop+jwt","jwk":{"kty":"EC","crv":"P-256","x":"","y":""}}`, good)
	f.Add(`{"alg":"RS256","typ":"dpop+jwt","jwk":{"kty":"RSA","n":"AQAB","e":"AQAB"}}`, `{}`)
	f.Add(`{"alg":"EdDSA","typ":"dpop+jwt","jwk":{"kty":"OKP","crv":"Ed25519","x":"AA"}}`, `{"htu":"https://%zz"}`)
	f.Add(`{"alg":"ES256","typ":"dpop+jwt","jwk":`+jwk+`}`, `{"jti":"j","htm":"POST","htu":"https://MCP.example:443/%6Dcp","iat":1.79e9,"nonce":"n"}`)
	c := &jwt.ProofCheck{Method: "POST", URL: target, Now: noon}
	f.Fuzz(func(t *testing.T, header, payload string) {
		got, err := jwt.VerifyProof(forge(t, header, payload), c)
		if err == nil && (got.Thumbprint != k.Thumbprint() || got.ID == "" || got.IssuedAt.Sub(noon).Abs().Minutes() > 5) {
			t.Errorf("taken: %+v from %q %q", got, header, payload)
		}
	})
}

// No set makes ParseSet panic, and all that stays has a thumbprint and verifies
// nothing that was not signed.
func FuzzSet(f *testing.F) {
	for _, algorithm := range []string{"ES256", "EdDSA", "RS256"} {
		f.Add(jwt.SetJSON(newKey(f, algorithm)))
	}
	private, err := newKey(f, "ES256").Private()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(private)
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},{"kty":"RSA","n":"AA","e":"AA"},{"kty":"OKP","crv":"Ed25519","x":"AA"},null,1]}`))
	algorithms := jwt.DefaultAlgorithms()
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := jwt.ParseSet(data)
		if err != nil {
			return
		}
		for _, algorithm := range append([]string{"none", "HS256", ""}, algorithms...) {
			keys, err := set.Find(t.Context(), "", algorithm)
			if err != nil {
				t.Fatal(err)
			}
			if len(keys) > 0 && (algorithm == "" || strings.HasPrefix(algorithm, "HS") || algorithm == "none") {
				t.Errorf("%d keys for %q", len(keys), algorithm)
			}
			for _, k := range keys {
				if jkt, err := jwt.Thumbprint(k); err != nil || len(jkt) != base64.RawURLEncoding.EncodedLen(32) {
					t.Errorf("thumbprint %q, %v", jkt, err)
				}
			}
		}
	})
}
