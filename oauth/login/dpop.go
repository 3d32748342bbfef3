package login

import (
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

const (
	// maxNonces is how many origins a prover remembers a nonce for.
	maxNonces = 64
	// maxNonce is the length in bytes of the longest nonce that is taken.
	maxNonce = 512

	headerDPoP      = "DPoP"
	headerDPoPNonce = "DPoP-Nonce"
)

// A dpopProver makes DPoP proofs (RFC 9449) and remembers the nonces that servers handed out, by
// origin: at most 64. It may be used by many goroutines at once.
type dpopProver struct {
	key *jwt.Key

	mu     sync.Mutex
	nonces []nonce // the one learnt last at the end
}

type nonce struct{ origin, value string }

func newDPoPProver(key *jwt.Key) *dpopProver { return &dpopProver{key: key} }

// proof makes a fresh proof for one request, with the nonce of the URL's origin if there is one.
// accessToken is empty at the token endpoint.
func (p *dpopProver) proof(method, url, accessToken string, now time.Time) (string, error) {
	return p.key.NewProof(method, url, p.nonce(url), accessToken, now)
}

// nonce is what the next proof for this URL will carry; it may be empty.
func (p *dpopProver) nonce(url string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.find(originOf(url)); i >= 0 {
		return p.nonces[i].value
	}
	return ""
}

func (p *dpopProver) find(origin string) int {
	return slices.IndexFunc(p.nonces, func(n nonce) bool { return n.origin == origin })
}

// learn remembers the nonce of a response (RFC 9449, sections 8 and 9), and reports whether it is a
// new one for this origin. A nonce that is too long, or that no proof may carry, is ignored.
//
// That it is not new does not mean that a proof made earlier had it: another goroutine may have
// learnt it since. To know, compare with the nonce that the proof was made with.
func (p *dpopProver) learn(url string, h http.Header) bool {
	n := nonce{originOf(url), nonceIn(h)}
	if n.value == "" || n.origin == "" {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.find(n.origin)
	switch {
	case i >= 0 && p.nonces[i] == n:
		return false
	case i < 0 && len(p.nonces) == maxNonces:
		i = 0
	}
	if i >= 0 {
		p.nonces = slices.Delete(p.nonces, i, i+1)
	}
	p.nonces = append(p.nonces, n)
	return true
}

// nonceIn is the nonce of a response; empty if it breaks the syntax of RFC 9449, section 8.1.
func nonceIn(h http.Header) string {
	nonce := h.Get(headerDPoPNonce)
	if len(nonce) > maxNonce {
		return ""
	}
	for i := range len(nonce) {
		if c := nonce[i]; c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return ""
		}
	}
	return nonce
}

// originOf is the origin of a URL; it is empty for what is no http URL.
func originOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return oauth.Origin(u)
}
