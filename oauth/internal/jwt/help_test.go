package jwt_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

const (
	issuer   = "https://as.example"
	audience = "https://mcp.example/mcp"
)

// noon is when all of these tests take place.
var noon = time.Unix(1_790_000_000, 0)

// TestMain expects that no fetch of a Remote is left when all is done.
func TestMain(m *testing.M) {
	code := m.Run()
	stacks := make([]byte, 1<<20)
	n := runtime.Stack(stacks, true)
	if bytes.Contains(stacks[:n], []byte("jwt.(*Remote)")) {
		_, _ = os.Stderr.Write(stacks[:n])
		code = 1
	}
	os.Exit(code)
}

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func unb64(t testing.TB, s string) string {
	t.Helper()
	out, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// newKey makes a Key for an algorithm.
func newKey(t testing.TB, algorithm string) *jwt.Key {
	t.Helper()
	k, err := jwt.NewKey(algorithm)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// curveKey is a key that the tests can sign anything with: always the same, so
// that what a fuzzer has found is found by all of its processes.
var curveKey = sync.OnceValue(func() *ecdsa.PrivateKey {
	scalar := sha256.Sum256([]byte("known to everybody"))
	k, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar[:])
	if err != nil {
		panic(err)
	}
	return k
})

// forge makes a compact JWS of any header and payload, rightly signed with
// curveKey.
func forge(t testing.TB, header, payload string) string {
	t.Helper()
	input := b64(header) + "." + b64(payload)
	return input + "." + b64(rawSign(t, input))
}

func rawSign(t testing.TB, input string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(input))
	r, s, err := ecdsa.Sign(rand.Reader, curveKey(), sum[:])
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, 64)
	r.FillBytes(out[:32])
	s.FillBytes(out[32:])
	return string(out)
}

// keyOf is curveKey as a Key.
func keyOf(t testing.TB, id string) *jwt.Key {
	t.Helper()
	k, err := jwt.KeyOf(curveKey(), "", id)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func setOf(t testing.TB, keys ...*jwt.Key) *jwt.Set {
	t.Helper()
	s, err := jwt.ParseSet(jwt.SetJSON(keys...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// claims are those of a usual access token.
func claims() *jwt.Claims {
	return &jwt.Claims{
		Issuer:   issuer,
		Subject:  "ada",
		Audience: []string{audience},
		Expiry:   noon.Add(10 * time.Minute),
		IssuedAt: noon,
		ID:       "t1",
		ClientID: "c1",
		Scope:    "tools:read tools:call",
	}
}

// check takes those claims.
func check() *jwt.Check {
	return &jwt.Check{
		Algorithms: jwt.DefaultAlgorithms(),
		Types:      []string{jwt.TypeAccessToken},
		Issuer:     issuer,
		Audience:   []string{audience},
		Now:        noon,
		NeedExpiry: true,
	}
}

// with returns a JWK with members changed; a nil value removes one.
func with(t testing.TB, jwk []byte, changes map[string]any) []byte {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(jwk, &m); err != nil {
		t.Fatal(err)
	}
	for name, v := range changes {
		if v == nil {
			delete(m, name)
		} else {
			m[name] = v
		}
	}
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// elsewhere is a signer that hides its key, as those in hardware do.
type elsewhere struct{ crypto.Signer }
