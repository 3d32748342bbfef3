package jwt_test

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// Keys of every kind sign what Verify takes, also after they were written and
// read, and also behind a crypto.Signer that hides them.
func TestKeySigns(t *testing.T) {
	t.Parallel()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve := func(c elliptic.Curve) crypto.Signer {
		k, err := ecdsa.GenerateKey(c, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	for _, c := range []struct {
		algorithm, want string
		signer          crypto.Signer
	}{
		{"", "ES256", curve(elliptic.P256())},
		{"", "ES384", curve(elliptic.P384())},
		{"ES512", "ES512", curve(elliptic.P521())},
		{"", "EdDSA", ed},
		{"", "RS256", rsaKey},
		{"RS384", "RS384", rsaKey},
		{"RS512", "RS512", rsaKey},
		{"PS256", "PS256", rsaKey},
		{"PS384", "PS384", rsaKey},
		{"PS512", "PS512", rsaKey},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			k, err := jwt.KeyOf(c.signer, c.algorithm, "")
			if err != nil {
				t.Fatal(err)
			}
			if k.ID() != k.Thumbprint() || k.Algorithm() != c.want {
				t.Errorf("key %q for %s, want its thumbprint %q for %s", k.ID(), k.Algorithm(), k.Thumbprint(), c.want)
			}
			text, err := k.Private()
			if err != nil {
				t.Fatal(err)
			}
			again, err := jwt.ParseKey(text)
			if err != nil {
				t.Fatal(err)
			}
			hidden, err := jwt.KeyOf(elsewhere{c.signer}, c.algorithm, "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := hidden.Private(); err == nil {
				t.Error("a key that is held elsewhere was written")
			}
			for _, k := range []*jwt.Key{k, again, hidden} {
				token, err := k.Sign(jwt.TypeAccessToken, claims())
				if err != nil {
					t.Fatal(err)
				}
				got, err := jwt.Verify(t.Context(), token, setOf(t, k), check())
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(claims(), &got.Claims); diff != "" {
					t.Error(diff)
				}
				if got.Type != jwt.TypeAccessToken || got.Algorithm != c.want || got.KeyID != k.ID() {
					t.Errorf("token of type %q, algorithm %q, key %q", got.Type, got.Algorithm, got.KeyID)
				}
			}
		})
	}
}

// Proves: what is published has nothing private in it.
func TestKeyPublic(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{"ES256", "EdDSA", "RS256"} {
		k := newKey(t, algorithm)
		var set struct{ Keys []map[string]any }
		if err := json.Unmarshal(jwt.SetJSON(k, k), &set); err != nil {
			t.Fatal(err)
		}
		if len(set.Keys) != 2 {
			t.Fatalf("%d keys, want 2", len(set.Keys))
		}
		for _, m := range set.Keys {
			for _, name := range []string{"d", "p", "q", "dp", "dq", "qi", "k"} {
				if _, ok := m[name]; ok {
					t.Errorf("%s: a set has %q", algorithm, name)
				}
			}
			if m["use"] != "sig" || m["alg"] != algorithm || m["kid"] != k.ID() {
				t.Errorf("%s: use %v, alg %v, kid %v", algorithm, m["use"], m["alg"], m["kid"])
			}
		}
	}
	if got := string(jwt.SetJSON()); got != `{"keys":[]}` {
		t.Errorf("no keys: %s", got)
	}
}

func TestKeyRefused(t *testing.T) {
	t.Parallel()
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Skip("1,024 bits are not made here:", err)
	}
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		signer    crypto.Signer
		algorithm string
	}{
		"none":         {nil, ""},
		"short RSA":    {small, "RS256"},
		"P-224":        {p224, ""},
		"other curve":  {curveKey(), "ES384"},
		"other family": {curveKey(), "RS256"},
		"HMAC":         {curveKey(), "HS256"},
		"alg none":     {curveKey(), "none"},
		"short Ed":     {ed25519.PrivateKey{1, 2}, ""},
	} {
		if _, err := jwt.KeyOf(c.signer, c.algorithm, ""); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	for _, algorithm := range []string{"", "none", "HS256", "ES384"} {
		if _, err := jwt.NewKey(algorithm); err == nil {
			t.Errorf("NewKey(%q) made one", algorithm)
		}
	}
	k := keyOf(t, "")
	for _, v := range []any{nil, 1, "text", []string{"a"}, func() {}} {
		if _, err := k.Sign("", v); err == nil {
			t.Errorf("%T was signed", v)
		}
	}
}

func TestParseKeyRefused(t *testing.T) {
	t.Parallel()
	k := keyOf(t, "")
	private, err := k.Private()
	if err != nil {
		t.Fatal(err)
	}
	other, err := newKey(t, "ES256").Private()
	if err != nil {
		t.Fatal(err)
	}
	var o struct{ D string }
	if err := json.Unmarshal(other, &o); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"nothing":      "",
		"no object":    "[]",
		"public":       string(k.Public()),
		"symmetric":    `{"kty":"oct","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}`,
		"unknown kind": `{"kty":"XX"}`,
		"two keys":     string(with(t, private, map[string]any{"d": o.D})),
		"wrong alg":    string(with(t, private, map[string]any{"alg": "HS256"})),
		"duplicate":    strings.Replace(string(private), "{", `{"kty":"EC",`, 1),
		"large":        `{"kty":"` + strings.Repeat("x", 40<<10) + `"}`,
	} {
		if _, err := jwt.ParseKey([]byte(text)); err == nil {
			t.Errorf("%s: taken", name)
		} else if strings.Contains(err.Error(), o.D) {
			t.Errorf("%s: the error shows the key", name)
		}
	}
}

func TestParsePEM(t *testing.T) {
	t.Parallel()
	pkcs8, err := x509.MarshalPKCS8PrivateKey(curveKey())
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(curveKey())
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	parameters := block("EC PARAMETERS", []byte{6, 8})
	for name, c := range map[string]struct {
		text []byte
		want crypto.PublicKey // nil: refused
	}{
		"PKCS 8":          {block("PRIVATE KEY", pkcs8), curveKey().Public()},
		"SEC 1":           {append(parameters, block("EC PRIVATE KEY", sec1)...), curveKey().Public()},
		"PKCS 1":          {block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey)), rsaKey.Public()},
		"encrypted":       {block("ENCRYPTED PRIVATE KEY", pkcs8), nil},
		"of another kind": {block("EC PRIVATE KEY", pkcs8), nil},
		"parameters only": {parameters, nil},
		"nothing":         {nil, nil},
		"something else":  {[]byte("key"), nil},
		"agreement only":  {block("PRIVATE KEY", x25519(t)), nil},
	} {
		signer, err := jwt.ParsePEM(c.text)
		if (err == nil) != (c.want != nil) {
			t.Errorf("%s: %v", name, err)
		} else if err == nil && !signer.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(c.want) {
			t.Errorf("%s: another key", name)
		}
	}
}

// Proves: the answer of RFC 7638, section 3.1.
func TestThumbprint(t *testing.T) {
	t.Parallel()
	set, err := jwt.ParseSet([]byte(`{"kty":"RSA","alg":"RS256","kid":"2011-04-29","e":"AQAB","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"}`))
	if err != nil {
		t.Fatal(err)
	}
	keys, _ := set.Find(t.Context(), "2011-04-29", "RS256")
	if len(keys) != 1 {
		t.Fatalf("%d keys, want 1", len(keys))
	}
	got, err := jwt.Thumbprint(keys[0])
	if want := "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// x25519 is a private key that signs nothing.
func x25519(t *testing.T) []byte {
	t.Helper()
	k, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return der
}
