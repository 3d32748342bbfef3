package server

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// minKey is the least number of bytes of a state key that an operator gives.
const minKey = 16

// errSeal is every reason for which sealed bytes are refused; a peer learns no more.
var errSeal = errors.New("not sealed by this server for this use")

// A sealer makes opaque strings that only a holder of its keys can read or
// make: the requestState of an asked request, the cursor of a list. It is
// AES-256-GCM with a ring of keys: the first seals, each of them opens.
//
// spec 2026-07-28, basic/patterns/mrtr: servers "MUST protect its integrity
// (e.g. HMAC or AEAD) and MUST reject state that fails verification".
type sealer struct {
	ring []key
}

type key struct {
	id   byte
	aead cipher.AEAD
}

// newSealer derives the ring from the operator's keys, or makes one random key
// for the life of the process.
func newSealer(keys [][]byte) (*sealer, error) {
	if len(keys) == 0 {
		random := make([]byte, 32)
		rand.Read(random)
		keys = [][]byte{random}
	}
	s := &sealer{}
	for i, k := range keys {
		if len(k) < minKey {
			return nil, fmt.Errorf("state key %d has %d bytes: at least %d random ones are needed", i, len(k), minKey)
		}
		// The id and the key are both digests of the operator's bytes under
		// different labels, so the id tells nothing of the key.
		secret := sha256.Sum256(append([]byte("parley state key\x00"), k...))
		id := sha256.Sum256(append([]byte("parley key id\x00"), k...))
		block, err := aes.NewCipher(secret[:])
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, err
		}
		s.ring = append(s.ring, key{id: id[0], aead: aead})
	}
	return s, nil
}

// seal seals for the client of a call. Over HTTP the client may bring it to
// another process, which a key of this one alone would disappoint.
func (c *Call) seal(plain, bound []byte) string {
	if c.x.Route.Carried && len(c.srv.opts.StateKeys) == 0 {
		c.srv.warnKeys.Do(func() {
			c.srv.log.Warn("state is sealed with a random key: it will not outlive this process nor be understood by others; set server.Options.StateKeys")
		})
	}
	return c.srv.seal.seal(plain, bound)
}

// seal makes an opaque string of plain, good only together with bound.
func (s *sealer) seal(plain, bound []byte) string {
	k := s.ring[0]
	out := make([]byte, 1+k.aead.NonceSize(), 1+k.aead.NonceSize()+len(plain)+k.aead.Overhead())
	out[0] = k.id
	rand.Read(out[1:])
	out = k.aead.Seal(out, out[1:], plain, bound)
	return base64.RawURLEncoding.EncodeToString(out)
}

// sealedLen is the length of what seal makes of n bytes.
func sealedLen(n int) int {
	const id, nonce, tag = 1, 12, 16 // of AES-GCM as cipher.NewGCM makes it
	return base64.RawURLEncoding.EncodedLen(id + nonce + n + tag)
}

// open returns what seal was given, or errSeal.
func (s *sealer) open(sealed string, bound []byte) ([]byte, error) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil || len(data) == 0 {
		return nil, errSeal
	}
	for _, k := range s.ring {
		n := k.aead.NonceSize()
		if k.id != data[0] || len(data) < 1+n {
			continue
		}
		if plain, err := k.aead.Open(nil, data[1:1+n], data[1+n:], bound); err == nil {
			return plain, nil
		}
	}
	return nil, errSeal
}

// binding makes the bytes that a seal is bound to out of its parts. Each part
// carries its length, so that no two lists of parts give the same bytes.
func binding(parts ...string) []byte {
	var b []byte
	for _, p := range parts {
		b = fmt.Appendf(b, "%d:", len(p))
		b = append(b, p...)
	}
	return b
}
