package login

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

func newTestProver(t testing.TB) *dpopSigner {
	t.Helper()
	key, err := jwt.NewKey("ES256")
	if err != nil {
		t.Fatal(err)
	}
	return newDPoPSigner(key)
}

func nonceHeader(nonce string) http.Header {
	h := http.Header{}
	h.Set(headerDPoPNonce, nonce)
	return h
}

// Proves: RFC 9449, sections 4.2, 8 and 9: a proof for this request with the
// nonce of its origin, and none of another origin.
func TestProof(t *testing.T) {
	t.Parallel()
	p, now := newTestProver(t), time.Now()
	p.learn("https://AS.example/token", nonceHeader("n1"))
	p.learn("https://as.example:443/other", nonceHeader("n1"))
	if len(p.nonces) != 1 {
		t.Errorf("%d nonces are kept for one origin", len(p.nonces))
	}
	for _, tt := range []struct{ url, want string }{
		{"https://as.example/token?x=1", "n1"},
		{"https://as.example:444/token", ""},
		{"http://as.example/token", ""},
		{"https://as.example.evil/token", ""},
	} {
		proof, used, err := p.proof("POST", tt.url, "token", now)
		if err != nil {
			t.Fatal(err)
		}
		got, err := jwt.VerifyProof(proof, &jwt.ProofCheck{Method: "POST", URL: tt.url, AccessToken: "token", Now: now})
		if err != nil {
			t.Fatalf("%s: %v", tt.url, err)
		}
		if got.Nonce != tt.want || used != tt.want || got.Thumbprint != p.key.Thumbprint() {
			t.Errorf("%s: nonce %q, want %q", tt.url, got.Nonce, tt.want)
		}
		if again, _, err := p.proof("POST", tt.url, "token", now); err != nil || again == proof {
			t.Errorf("%s: the proof is used twice (%v)", tt.url, err)
		}
	}
}

// Attack: a server that hands out nonces to fill memory or to break headers.
func TestNonceBounds(t *testing.T) {
	t.Parallel()
	p := newTestProver(t)
	for _, bad := range []string{"", strings.Repeat("n", maxNonce+1), "a b", "a\"b", `a\b`, "a\nb", "é"} {
		if p.learn("https://as.example/", nonceHeader(bad)); len(p.nonces) > 0 {
			t.Errorf("nonce %.10q was taken", bad)
		}
	}
	p.learn("not a url\x7f", nonceHeader("n"))
	if p.learn("file:///etc", nonceHeader("n")); len(p.nonces) > 0 {
		t.Error("a nonce of no origin was taken")
	}
	for i := range 3 * maxNonces {
		p.learn(fmt.Sprintf("https://h%d.example/", i), nonceHeader("n"))
		p.learn("https://kept.example/", nonceHeader(fmt.Sprint(i)))
	}
	if len(p.nonces) != maxNonces {
		t.Errorf("%d nonces are kept, want %d", len(p.nonces), maxNonces)
	}
	if got := p.nonce("https://kept.example/"); got != fmt.Sprint(3*maxNonces-1) {
		t.Errorf("the origin that is in use has nonce %q", got)
	}
	if p.nonce("https://h0.example/") != "" {
		t.Error("the oldest origin was kept")
	}
}

func TestProverAtOnce(t *testing.T) {
	t.Parallel()
	p := newTestProver(t)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 20 {
				target := fmt.Sprintf("https://h%d.example/", (i+j)%8)
				p.learn(target, nonceHeader(fmt.Sprint(j)))
				if _, _, err := p.proof("GET", target, "", time.Now()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
