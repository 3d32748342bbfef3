package guard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// maxProof is the size in bytes of the longest DPoP proof, maxProofID that of
// the longest jti.
const (
	maxProof   = 8 << 10
	maxProofID = 256
)

// prove checks that the sender of a token has the key it is bound to (RFC 9449,
// sections 4.3 and 7). kindNone means that it is so.
func (g *Guard) prove(w http.ResponseWriter, r *http.Request, v *verified, token string, now time.Time) kind {
	if v.thumbprint == "" {
		g.logRefused(r.Context(), "proof", "presented with a DPoP proof, but bound to no key")
		return kindInvalid
	}
	proof, reason := g.proof(r, v, token, now)
	if reason != "" {
		g.log.InfoContext(r.Context(), "proof refused", "reason", reason)
		return kindProof
	}
	if g.nonces != nil {
		age := g.nonces.age(proof.Nonce, now)
		if age < 0 {
			return kindNonce
		}
		if age > 0 { // RFC 9449, section 8.2: the next one, in good time
			w.Header().Set("DPoP-Nonce", g.nonces.fresh(now))
		}
	}
	switch g.proofs.use(proof, now, proof.IssuedAt.Add(g.opts.DPoPWindow)) {
	case proofSeen:
		g.log.WarnContext(r.Context(), "proof refused", "reason", "it was used before")
		return kindProof
	case proofNoRoom:
		g.log.ErrorContext(r.Context(), "proof not judged", "reason", "too many proofs to remember")
		return kindUnavailable
	default:
		return kindNone
	}
}

// proof reads the proof of a request, or says what is wrong with it.
func (g *Guard) proof(r *http.Request, v *verified, token string, now time.Time) (_ *jwt.Proof, reason string) {
	headers := r.Header["Dpop"]
	if len(headers) != 1 || len(headers[0]) > maxProof {
		return nil, "there is not exactly one proof of a usual size"
	}
	p, err := jwt.VerifyProof(headers[0], &jwt.ProofCheck{
		Method: r.Method, URL: g.publicURL(r), AccessToken: token, Window: g.opts.DPoPWindow, Now: now,
	})
	switch {
	case err != nil:
		return nil, redact(err, headers[0])
	case p.Thumbprint != v.thumbprint:
		return nil, "it is of another key than the token's"
	case p.ID == "" || len(p.ID) > maxProofID:
		return nil, "it has no jti of a usual size"
	}
	return p, ""
}

// proofs remembers the proofs that were used, for as long as they would count.
type proofs struct {
	mu          sync.Mutex
	keys        map[string]map[proofDigest]int64 // by thumbprint, then jti; the end in Unix seconds
	count       int
	most, share int // of all keys, and of one
	swept       time.Time
}

// A proofDigest stands for a jti.
type proofDigest [16]byte

// What using a proof comes to.
const (
	proofFresh = iota
	proofSeen
	proofNoRoom
)

// sweepEvery is how often proofs are looked through for those that have ended.
const sweepEvery = 15 * time.Second

func (s *proofs) init(most int) {
	s.keys = make(map[string]map[proofDigest]int64)
	s.most, s.share = most, max(1, most/8)
}

// use remembers a proof until its end, if it is fresh.
func (s *proofs) use(p *jwt.Proof, now, end time.Time) int {
	sum := sha256.Sum256([]byte(p.ID))
	id := proofDigest(sum[:len(proofDigest{})])
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.swept) >= sweepEvery {
		s.sweep(now)
	}
	ids := s.keys[p.Thumbprint]
	if _, seen := ids[id]; seen {
		return proofSeen
	}
	if s.count >= s.most || len(ids) >= s.share {
		return proofNoRoom
	}
	if ids == nil {
		ids = make(map[proofDigest]int64)
		s.keys[p.Thumbprint] = ids
	}
	ids[id] = end.Unix() + 1
	s.count++
	return proofFresh
}

// sweep forgets the proofs that have ended.
func (s *proofs) sweep(now time.Time) {
	s.swept = now
	for key, ids := range s.keys {
		for id, end := range ids {
			if end < now.Unix() {
				delete(ids, id)
				s.count--
			}
		}
		if len(ids) == 0 {
			delete(s.keys, key)
		}
	}
}

// nonces makes nonces that change with time, and knows its own without keeping
// any: each is an HMAC of its time (RFC 9449, section 8).
type nonces struct {
	key  []byte
	span time.Duration
}

// minNonceKey is the size in bytes of the shortest key.
const minNonceKey = 32

func newNonces(key []byte, span time.Duration) (*nonces, error) {
	if key == nil {
		key = make([]byte, minNonceKey)
		_, _ = rand.Read(key) // never fails
	}
	if len(key) < minNonceKey {
		return nil, errors.New("guard: DPoPNonceKey is shorter than 32 bytes")
	}
	return &nonces{append([]byte(nil), key...), span}, nil
}

// fresh is the nonce of now.
func (n *nonces) fresh(now time.Time) string { return n.of(n.epoch(now)) }

// age says how many spans ago a nonce was handed out: 0 or 1, or -1 for one
// that does not count.
func (n *nonces) age(nonce string, now time.Time) int {
	for back := range 2 {
		if hmac.Equal([]byte(nonce), []byte(n.of(n.epoch(now)-int64(back)))) {
			return back
		}
	}
	return -1
}

func (n *nonces) epoch(now time.Time) int64 { return now.UnixNano() / int64(n.span) }

func (n *nonces) of(epoch int64) string {
	mac := hmac.New(sha256.New, n.key)
	mac.Write(binary.BigEndian.AppendUint64([]byte("DPoP-Nonce "), uint64(epoch)))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:18])
}
