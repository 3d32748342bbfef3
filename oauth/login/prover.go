package login

import (
	"net/http"
	"net/url"
	"sync"
	"time"

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

// A prover makes DPoP proofs (RFC 9449) and remembers the nonces that servers
// handed out, by origin: at most 64. It may be used by many goroutines at once.
type prover struct {
	key *jwt.Key

	mu     sync.Mutex
	nonces map[string]string
	recent []string // the origins of nonces, the one learnt last at the end
}

func newProver(key *jwt.Key) *prover {
	return &prover{key: key, nonces: map[string]string{}}
}

// proof makes a fresh proof for one request, with the nonce of the URL's
// origin if there is one. accessToken is empty at the token endpoint.
func (p *prover) proof(method, url, accessToken string, now time.Time) (string, error) {
	return p.key.NewProof(method, url, p.nonce(url), accessToken, now)
}

// nonce is what the next proof for this URL will carry; it may be empty.
func (p *prover) nonce(url string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nonces[originOf(url)]
}

// learn remembers the nonce of a response (RFC 9449, sections 8 and 9), and
// reports whether it is a new one for this origin. A nonce that is too long, or
// that no proof may carry, is ignored.
//
// That it is not new does not mean that a proof made earlier had it: another
// goroutine may have learnt it since. Whoever wants to know compares with the
// nonce that the proof was made with.
func (p *prover) learn(url string, h http.Header) bool {
	nonce := nonceIn(h)
	origin := originOf(url)
	if nonce == "" || origin == "" {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nonces[origin] == nonce {
		return false
	}
	p.remember(origin, nonce)
	return true
}

// remember is called with mu held.
func (p *prover) remember(origin, nonce string) {
	for i, o := range p.recent {
		if o == origin {
			p.recent = append(p.recent[:i], p.recent[i+1:]...)
			break
		}
	}
	if len(p.recent) == maxNonces {
		delete(p.nonces, p.recent[0])
		p.recent = append(p.recent[:0], p.recent[1:]...)
	}
	p.recent = append(p.recent, origin)
	p.nonces[origin] = nonce
}

// nonceIn is the nonce of a response, or empty: RFC 9449, section 8.1, has it
// made of visible ASCII without quote and backslash.
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
	return origin(u)
}
