package jwt_test

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

func rsaJWK(n *big.Int, e string) string {
	return fmt.Sprintf(`{"kty":"RSA","n":%q,"e":%q}`, base64.RawURLEncoding.EncodeToString(n.Bytes()), e)
}

// Keys that must not verify anything are left out; the others stay.
func TestParseSetLeavesOut(t *testing.T) {
	t.Parallel()
	ec := []byte(keyOf(t, "k").Public())
	ecPrivate, err := keyOf(t, "k").Private()
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	large := new(big.Int).SetBit(big.NewInt(1), 8192, 1)
	short := new(big.Int).SetBit(big.NewInt(1), 1023, 1)
	other := newKey(t, "ES256").Public()
	var o struct{ Y string }
	if err := json.Unmarshal(other, &o); err != nil {
		t.Fatal(err)
	}
	change := func(changes map[string]any) string { return string(with(t, ec, changes)) }
	for name, c := range map[string]struct {
		jwk       string
		algorithm string
		want      int
	}{
		"as it is":              {string(ec), "ES256", 1},
		"without hints":         {change(map[string]any{"use": nil, "alg": nil, "kid": nil}), "ES256", 1},
		"no alg, other asked":   {change(map[string]any{"alg": nil}), "ES384", 0},
		"verify":                {change(map[string]any{"key_ops": []string{"verify"}}), "ES256", 1},
		"certificates":          {change(map[string]any{"x5c": []string{"no certificate"}, "x5t": "?", "x5u": "::"}), "ES256", 1},
		"use enc":               {change(map[string]any{"use": "enc"}), "ES256", 0},
		"use is a number":       {change(map[string]any{"use": 1}), "ES256", 0},
		"sign only":             {change(map[string]any{"key_ops": []string{"sign"}}), "ES256", 0},
		"no operation":          {change(map[string]any{"key_ops": []string{}}), "ES256", 0},
		"alg of another kind":   {change(map[string]any{"alg": "RS256"}), "RS256", 0},
		"alg of another curve":  {change(map[string]any{"alg": "ES384"}), "ES384", 0},
		"alg HMAC":              {change(map[string]any{"alg": "HS256"}), "HS256", 0},
		"alg none":              {change(map[string]any{"alg": "none"}), "none", 0},
		"kid is a number":       {change(map[string]any{"kid": 7}), "ES256", 0},
		"private":               {string(ecPrivate), "ES256", 0},
		"not on the curve":      {change(map[string]any{"y": o.Y}), "ES256", 0},
		"another curve":         {change(map[string]any{"crv": "P-384"}), "ES256", 0},
		"unknown curve":         {change(map[string]any{"crv": "secp256k1"}), "ES256", 0},
		"no y":                  {change(map[string]any{"y": nil}), "ES256", 0},
		"infinity":              {change(map[string]any{"x": "", "y": ""}), "ES256", 0},
		"unknown kind":          {`{"kty":"XX"}`, "ES256", 0},
		"symmetric":             {`{"kty":"oct","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}`, "HS256", 0},
		"symmetric, asymmetric": {`{"kty":"oct","alg":"ES256","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}`, "ES256", 0},
		"Ed25519":               {string(newKey(t, "EdDSA").Public()), "EdDSA", 1},
		"X25519":                {`{"kty":"OKP","crv":"X25519","x":"3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08"}`, "EdDSA", 0},
		"short Ed25519":         {`{"kty":"OKP","crv":"Ed25519","x":"AAAA"}`, "EdDSA", 0},
		"RSA":                   {rsaJWK(rsaKey.N, "AQAB"), "PS512", 1},
		"RSA, other algorithm":  {strings.Replace(rsaJWK(rsaKey.N, "AQAB"), "{", `{"alg":"RS256",`, 1), "PS256", 0},
		"RSA, exponent 4":       {rsaJWK(rsaKey.N, "BA"), "RS256", 0},
		"RSA, exponent 1":       {rsaJWK(rsaKey.N, "AQ"), "RS256", 0},
		"RSA, exponent even":    {rsaJWK(rsaKey.N, "Ag"), "RS256", 0},
		"RSA, exponent long":    {rsaJWK(rsaKey.N, "AQAAAAE"), "RS256", 0},
		"RSA, 1,024 bits":       {rsaJWK(short, "AQAB"), "RS256", 0},
		"RSA, 8,193 bits":       {rsaJWK(large, "AQAB"), "RS256", 0},
		"RSA, modulus even":     {rsaJWK(new(big.Int).Lsh(rsaKey.N, 1), "AQAB"), "RS256", 0},
		"not an object":         {`"text"`, "ES256", 0},
		"duplicate":             {strings.Replace(string(ec), "{", `{"kty":"RSA",`, 1), "ES256", -1},
	} {
		// Beside it stands a key that always stays.
		set, err := jwt.ParseSet([]byte(`{"keys":[` + c.jwk + `,` + string(other) + `]}`))
		if c.want < 0 {
			if err == nil {
				t.Errorf("%s: taken", name)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := c.want
		if c.algorithm == "ES256" {
			want++
		}
		if keys, err := set.Find(t.Context(), "", c.algorithm); err != nil || len(keys) != want {
			t.Errorf("%s: %d keys, %v; want %d", name, len(keys), err, want)
		}
	}
}

func TestParseSetRefused(t *testing.T) {
	t.Parallel()
	key := string(keyOf(t, "k").Public())
	many := func(n int) string { return `{"keys":[` + strings.TrimSuffix(strings.Repeat(key+",", n), ",") + `]}` }
	if _, err := jwt.ParseSet([]byte(many(100))); err != nil {
		t.Errorf("100 keys: %v", err)
	}
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"nothing":     {"", wire.ErrSyntax},
		"HTML":        {"<html>", wire.ErrSyntax},
		"a list":      {"[" + key + "]", wire.ErrNotObject},
		"neither":     {`{"error":"x"}`, nil},
		"no list":     {`{"keys":{}}`, wire.ErrNotArray},
		"101 keys":    {many(101), wire.ErrCount},
		"large":       {`{"keys":[],"x":"` + strings.Repeat("x", 1<<20) + `"}`, wire.ErrSize},
		"two of keys": {`{"keys":[],"keys":[` + key + `]}`, wire.ErrDuplicate},
		"trailing":    {`{"keys":[]} {}`, wire.ErrSyntax},
	} {
		if _, err := jwt.ParseSet([]byte(c.text)); err == nil || (c.want != nil && !errors.Is(err, c.want)) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// An id finds its key alone; none finds all that fit; a single JWK is a set.
func TestSetFind(t *testing.T) {
	t.Parallel()
	a, b := keyOf(t, "a"), newKey(t, "EdDSA")
	set := setOf(t, a, b)
	for _, c := range []struct {
		id, algorithm string
		want          int
	}{
		{"a", "ES256", 1},
		{"", "ES256", 1},
		{"", "EdDSA", 1},
		{"a", "EdDSA", 0},
		{"A", "ES256", 0},
		{"a ", "ES256", 0},
		{"", "", 0},
	} {
		if keys, err := set.Find(t.Context(), c.id, c.algorithm); err != nil || len(keys) != c.want {
			t.Errorf("%q, %q: %d keys, %v; want %d", c.id, c.algorithm, len(keys), err, c.want)
		}
	}
	one, err := jwt.ParseSet(a.Public())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := one.Find(t.Context(), "a", "ES256")
	if err != nil || len(keys) != 1 || !keys[0].(*ecdsa.PublicKey).Equal(curveKey().Public()) {
		t.Errorf("single key: %v, %v", keys, err)
	}
}
