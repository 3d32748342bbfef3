package login

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

const (
	// maxNonces is how many origins a signer remembers a nonce for.
	maxNonces = 64
	// maxNonce is the length in bytes of the longest nonce that is taken.
	maxNonce = 512

	headerDPoP      = "DPoP"
	headerDPoPNonce = "DPoP-Nonce"
)

// A dpopSigner makes DPoP proofs (RFC 9449) and remembers the nonces that servers handed out, by
// origin: at most 64. It may be used by many goroutines at once.
type dpopSigner struct {
	key *jwt.Key

	mu     sync.Mutex
	nonces []nonce // the one learnt last at the end
}

type nonce struct{ origin, value string }

func newDPoPSigner(key *jwt.Key) *dpopSigner { return &dpopSigner{key: key} }

// proof makes a fresh proof for one request, with the nonce of the URL's origin, if there is one,
// which it returns. accessToken is empty at the token endpoint.
func (p *dpopSigner) proof(method, url, accessToken string, now time.Time) (proof, nonce string, err error) {
	nonce = p.nonce(url)
	proof, err = p.key.NewProof(method, url, nonce, accessToken, now)
	return proof, nonce, err
}

// nonce is what the next proof for this URL will carry; it may be empty.
func (p *dpopSigner) nonce(url string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	origin := originOf(url)
	if i := slices.IndexFunc(p.nonces, func(n nonce) bool { return n.origin == origin }); i >= 0 {
		return p.nonces[i].value
	}
	return ""
}

// learn remembers the nonce of a response (RFC 9449, sections 8 and 9). One that is too long, or
// that no proof may carry, is ignored.
func (p *dpopSigner) learn(url string, h http.Header) {
	n := nonce{originOf(url), nonceIn(h)}
	if n.value == "" || n.origin == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nonces = slices.DeleteFunc(p.nonces, func(old nonce) bool { return old.origin == n.origin })
	if len(p.nonces) == maxNonces {
		p.nonces = slices.Delete(p.nonces, 0, 1)
	}
	p.nonces = append(p.nonces, n)
}

// nonceIn is the nonce of a response; empty if it breaks the syntax of RFC 9449, section 8.1.
func nonceIn(h http.Header) string {
	nonce := h.Get(headerDPoPNonce)
	if len(nonce) > maxNonce || !fitsHeader(nonce) || strings.ContainsAny(nonce, `"\`) {
		return ""
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
