package guard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// proof makes a proof for a POST to the resource.
func (b *bench) proof(k *jwt.Key, nonce, token string) string {
	return b.proofFor(k, http.MethodPost, resource, nonce, token)
}

func (b *bench) proofFor(k *jwt.Key, method, url, nonce, token string) string {
	b.t.Helper()
	p, err := k.NewProof(method, url, nonce, token, b.clock.Now())
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// bound is a token that is bound to k.
func (b *bench) bound(k *jwt.Key, more claims) string {
	c := claims{"cnf": map[string]string{"jkt": k.Thumbprint()}}
	for name, v := range more {
		c[name] = v
	}
	return b.token(c)
}

// A bound token counts with a fresh proof of its key for this very request, and
// in no other way (RFC 9449, sections 4.3 and 7). Attack: stolen token, replay.
func TestDPoP(t *testing.T) {
	t.Parallel()
	b := setUp(t, &guard.Options{Scopes: []string{"mcp"}})
	client, thief := newKey(t, "ES256"), newKey(t, "EdDSA")
	token, free := b.bound(client, nil), b.token(nil)
	another := b.bound(client, claims{"jti": "2"})
	used := b.proof(client, "", token)
	b.passed(b.do("Authorization", "DPoP "+token, "DPoP", used))

	old := clocktest.New(epoch)
	old.Add(-5*time.Minute - time.Second)
	late, early := &bench{t: t, clock: old}, &bench{t: t, clock: clocktest.New(epoch)}
	early.clock.Add(5*time.Minute + time.Second)
	fresh := func(k *jwt.Key, method, url string) string { return b.proofFor(k, method, url, "", token) }
	tests := []struct {
		name, scheme, token string
		proofs              []string
		code                string // "": passes
	}{
		{"good", "DPoP", token, []string{b.proof(client, "", token)}, ""},
		{"scheme in lower case", "dpop", token, []string{b.proof(client, "", token)}, ""},
		{"query does not count", "DPoP", token, []string{fresh(client, "POST", resource+"?a=b")}, ""},
		{"replayed", "DPoP", token, []string{used}, "invalid_dpop_proof"},
		{"as bearer", "Bearer", token, []string{b.proof(client, "", token)}, "invalid_token"},
		{"as bearer without proof", "Bearer", token, nil, "invalid_token"},
		{"no proof", "DPoP", token, nil, "invalid_dpop_proof"},
		{"two proofs", "DPoP", token, []string{b.proof(client, "", token), b.proof(client, "", token)}, "invalid_dpop_proof"},
		{"another key", "DPoP", token, []string{b.proof(thief, "", token)}, "invalid_dpop_proof"},
		{"another method", "DPoP", token, []string{fresh(client, "GET", resource)}, "invalid_dpop_proof"},
		{"another path", "DPoP", token, []string{fresh(client, "POST", resource+"/x")}, "invalid_dpop_proof"},
		{"another host", "DPoP", token, []string{fresh(client, "POST", "https://evil.example/mcp")}, "invalid_dpop_proof"},
		{"another token's proof", "DPoP", token, []string{b.proof(client, "", another)}, "invalid_dpop_proof"},
		{"no token's proof", "DPoP", token, []string{b.proof(client, "", "")}, "invalid_dpop_proof"},
		{"too old", "DPoP", token, []string{late.proof(client, "", token)}, "invalid_dpop_proof"},
		{"from the future", "DPoP", token, []string{early.proof(client, "", token)}, "invalid_dpop_proof"},
		{"token as proof", "DPoP", token, []string{token}, "invalid_dpop_proof"},
		{"garbage", "DPoP", token, []string{"x"}, "invalid_dpop_proof"},
		{"too long", "DPoP", token, []string{strings.Repeat("x", 9<<10)}, "invalid_dpop_proof"},
		{"token bound to nothing", "DPoP", free, []string{b.proof(client, "", free)}, "invalid_token"},
		{"lacks scopes", "DPoP", b.bound(client, claims{"scope": "x"}), nil, "insufficient_scope"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b.t = t
			if test.code == "insufficient_scope" {
				test.proofs = []string{b.proof(client, "", test.token)}
			}
			headers := []string{"Authorization", test.scheme + " " + test.token}
			for _, p := range test.proofs {
				headers = append(headers, "DPoP", p)
			}
			w := b.do(headers...)
			if test.code == "" {
				p := b.passed(w)
				if got := parseChallenge(t, p.Challenge([]string{"x"})); got["scheme"] != "DPoP" || got["scope"] != "mcp x" {
					t.Errorf("challenge: %v", got)
				}
				return
			}
			status := 401
			if test.code == "insufficient_scope" {
				status = 403
			}
			if got := b.refused(w, status, test.code); got["scheme"] != "DPoP" || got["algs"] == "" || got["resource_metadata"] != metadata {
				t.Errorf("challenge: %v", got)
			}
		})
	}
}

// Proofs are about the URL that is configured, whatever the request says of
// its host. Attack: Host header.
func TestAttackProofForAnotherHost(t *testing.T) {
	t.Parallel()
	b := setUp(t, nil)
	client := newKey(t, "ES256")
	token := b.bound(client, nil)
	send := func(host, proof string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", nil)
		r.Host = host
		r.Header.Set("Authorization", "DPoP "+token)
		r.Header.Set("DPoP", proof)
		w := httptest.NewRecorder()
		b.h.ServeHTTP(w, r)
		return w.Code
	}
	if code := send("evil.example", b.proofFor(client, "POST", "https://evil.example/mcp", "", token)); code != 401 {
		t.Errorf("a proof for another host passes: %d", code)
	}
	if code := send("10.0.0.7:8080", b.proof(client, "", token)); code != 200 {
		t.Errorf("a proof for the public URL does not pass behind a proxy: %d", code)
	}
}

// A proxy may change paths, if the configuration says how.
func TestPublicURL(t *testing.T) {
	t.Parallel()
	b := setUp(t, &guard.Options{PublicURL: func(r *http.Request) string { return "https://api.example/team" + r.URL.Path }})
	client := newKey(t, "ES256")
	token := b.bound(client, nil)
	b.passed(b.do("Authorization", "DPoP "+token, "DPoP", b.proofFor(client, "POST", "https://api.example/team/mcp", "", token)))
}

// Where DPoP is required no bearer token counts, and the challenge says so.
func TestDPoPRequired(t *testing.T) {
	t.Parallel()
	b := setUp(t, &guard.Options{DPoPRequired: true})
	client := newKey(t, "ES256")
	for _, headers := range [][]string{nil, {"Authorization", "Bearer"}, {"Authorization", "Bearer " + b.token(nil)}} {
		if got := challengeOf(t, b.do(headers...)); got["scheme"] != "DPoP" || b.seen != nil {
			t.Errorf("%q: %v", headers, got)
		}
	}
	token := b.bound(client, nil)
	b.passed(b.do("Authorization", "DPoP "+token, "DPoP", b.proof(client, "", token)))
}

// A proof is not taken twice for as long as its time would do, and room for
// them is bounded: for one key, and for all.
func TestProofsAreBounded(t *testing.T) {
	t.Parallel()
	b := setUp(t, &guard.Options{MaxProofs: 16, CacheAge: time.Hour})
	clients := make([]*jwt.Key, 9)
	tokens := make([]string, len(clients))
	for i := range clients {
		clients[i] = newKey(t, "ES256")
		tokens[i] = b.bound(clients[i], nil)
	}
	send := func(i int, proof string) int {
		return b.do("Authorization", "DPoP "+tokens[i], "DPoP", proof).Code
	}
	first := b.proof(clients[0], "", tokens[0])
	second := b.proof(clients[0], "", tokens[0])
	got := []int{send(0, first), send(0, second), send(0, b.proof(clients[0], "", tokens[0]))}
	if fmt.Sprint(got) != "[200 200 503]" {
		t.Errorf("one key has more than its share: %v", got)
	}
	for i := 1; i < 8; i++ {
		if a, c := send(i, b.proof(clients[i], "", tokens[i])), send(i, b.proof(clients[i], "", tokens[i])); a != 200 || c != 200 {
			t.Errorf("key %d: %d, %d", i, a, c)
		}
	}
	if code := send(8, b.proof(clients[8], "", tokens[8])); code != 503 {
		t.Errorf("there is no bound: %d", code)
	}
	b.clock.Add(5 * time.Minute) // the window's last moment
	if code := send(0, first); code != 401 {
		t.Errorf("a proof counts twice: %d", code)
	}
	b.clock.Add(20 * time.Second)
	if code := send(8, b.proof(clients[8], "", tokens[8])); code != 200 {
		t.Errorf("room is not given back: %d", code)
	}
}

// Nonces are the guard's own, change with time, and count for a while after
// that (RFC 9449, section 8 and 9).
func TestDPoPNonce(t *testing.T) {
	t.Parallel()
	key := []byte(strings.Repeat("k", 32))
	b := setUp(t, &guard.Options{DPoPNonce: true, DPoPNonceKey: key})
	client := newKey(t, "ES256")
	token := b.bound(client, nil)
	send := func(nonce string) *httptest.ResponseRecorder {
		return b.do("Authorization", "DPoP "+token, "DPoP", b.proof(client, nonce, token))
	}
	w := send("")
	b.refused(w, 401, "use_dpop_nonce")
	nonce := w.Header().Get("DPoP-Nonce")
	for _, wrong := range []string{"x", nonce + "A", nonce[:len(nonce)-1], strings.ToUpper(nonce)} {
		w := send(wrong)
		b.refused(w, 401, "use_dpop_nonce")
		if w.Header().Get("DPoP-Nonce") != nonce {
			t.Errorf("nonce: %v", w.Header())
		}
	}
	w = send(nonce)
	b.passed(w)
	if w.Header().Get("DPoP-Nonce") != "" {
		t.Error("a nonce that is fresh is changed")
	}
	b.clock.Add(time.Minute)
	w = send(nonce)
	b.passed(w)
	next := w.Header().Get("DPoP-Nonce")
	if next == "" || next == nonce {
		t.Errorf("the next nonce is %q", next)
	}
	b.clock.Add(time.Minute)
	b.refused(send(nonce), 401, "use_dpop_nonce")
	b.passed(send(next))

	other := setUp(t, &guard.Options{DPoPNonce: true})
	if w := other.do("Authorization", "DPoP "+other.bound(client, nil), "DPoP", other.proof(client, next, other.bound(client, nil))); w.Code != 401 {
		t.Errorf("a nonce of another key counts: %d", w.Code)
	}
}

// Of many requests at once with one proof a single one passes. Attack: replay
// by a race.
func TestAttackProofRace(t *testing.T) {
	t.Parallel()
	b := setUp(t, nil)
	client := newKey(t, "ES256")
	token := b.bound(client, nil)
	h := b.guard.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 5 {
		proof := b.proof(client, "", token)
		var passed atomic.Int32
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, resource, nil)
				r.Header.Set("Authorization", "DPoP "+token)
				r.Header.Set("DPoP", proof)
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code == http.StatusOK {
					passed.Add(1)
				}
			})
		}
		wg.Wait()
		if n := passed.Load(); n != 1 {
			t.Errorf("%d requests passed with one proof", n)
		}
	}
}
