package jwt

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"

	"github.com/parley-mcp/parley/internal/wire"
)

// Bounds of what is read.
const (
	maxKeys     = 100
	maxSetBytes = 1 << 20
	maxKeyBytes = 32 << 10
)

// A Source finds the public keys that a token may have been signed with. It
// may be used by many goroutines at once.
type Source interface {
	// Find returns the keys with this id (an empty id: all) that fit the
	// algorithm. No key is no error.
	Find(ctx context.Context, id, algorithm string) ([]crypto.PublicKey, error)
}

// A Set is a fixed Source.
type Set struct{ keys []publicKey }

// publicKey is a JWK of which nothing is left but what is used.
type publicKey struct {
	id, algorithm string // either may be empty
	key           crypto.PublicKey
}

func (k *publicKey) fits(algorithm string) bool {
	return (k.algorithm == "" || k.algorithm == algorithm) && fits(k.key, algorithm)
}

// ParseSet reads a JWK set or a single JWK (RFC 7517) of at most 1 MiB: at most
// 100 keys; those that are no public signature keys, or of unknown kinds, are
// left out, and symmetric keys always. Left out are also RSA keys of less than
// 2,048 or more than 4,096 bits, points that are not on their curve, keys with
// another use than "sig", with key_ops that lack "verify", and with an alg that
// does not fit. Certificates in a key are not looked at.
func ParseSet(data []byte) (*Set, error) {
	o, err := wire.ParseObject(data, wire.Limits{Bytes: maxSetBytes})
	if err != nil {
		return nil, fmt.Errorf("read key set: %w", err)
	}
	list := []wire.RawValue{o.Raw()}
	if keys, ok := o.Member("keys"); ok {
		if list, err = wire.ParseArray(keys, wire.Limits{}, maxKeys); err != nil {
			return nil, fmt.Errorf("read key set: %w", err)
		}
	} else if _, ok := o.Member("kty"); !ok {
		return nil, errors.New("read key set: neither a set nor a key")
	}
	s := &Set{}
	for _, raw := range list {
		if k, ok := parsePublic(raw); ok {
			s.keys = append(s.keys, k)
		}
	}
	return s, nil
}

// Find returns the keys with this id that fit the algorithm. The error is
// always nil.
func (s *Set) Find(_ context.Context, id, algorithm string) ([]crypto.PublicKey, error) {
	return s.find(id, algorithm), nil
}

func (s *Set) find(id, algorithm string) []crypto.PublicKey {
	var found []crypto.PublicKey
	for i := range s.keys {
		if k := &s.keys[i]; (id == "" || k.id == id) && k.fits(algorithm) {
			found = append(found, k.key)
		}
	}
	return found
}

// SetJSON is a JWK set of public keys.
func SetJSON(keys ...*Key) []byte {
	out := []byte(`{"keys":[`)
	for i, k := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, k.public...)
	}
	return append(out, `]}`...)
}

// parsePublic reads a JWK, if it is a public key that verifies signatures.
func parsePublic(raw wire.RawValue) (publicKey, bool) {
	o, err := wire.ParseObject(raw, wire.Limits{Bytes: maxKeyBytes})
	if err != nil {
		return publicKey{}, false
	}
	// A published private half is no secret any more.
	for _, name := range []string{"d", "k", "p", "q", "dp", "dq", "qi", "oth", "priv"} {
		if _, ok := o.Member(name); ok {
			return publicKey{}, false
		}
	}
	r := reader{o: o}
	k := publicKey{id: r.text("kid"), algorithm: r.text("alg")}
	use, ops := r.text("use"), r.list("key_ops")
	kty := r.text("kty")
	if r.err != nil || (use != "" && use != "sig") || !mayVerify(o, ops) {
		return publicKey{}, false
	}
	if k.key = parseMaterial(&r, kty); k.key == nil {
		return publicKey{}, false
	}
	fit := k.algorithm
	if fit == "" {
		fit = usualAlgorithm(k.key)
	}
	return k, fits(k.key, fit)
}

func mayVerify(o wire.Object, ops []string) bool {
	_, told := o.Member("key_ops")
	return !told || slices.Contains(ops, "verify")
}

// parseMaterial reads the key itself. go-jose, which checks that a point is on
// its curve, sees nothing but the members that make the key: no certificates,
// which others made.
func parseMaterial(r *reader, kty string) crypto.PublicKey {
	var names []string
	switch kty {
	case "EC":
		names = []string{"kty", "crv", "x", "y"}
	case "OKP":
		names = []string{"kty", "crv", "x"}
	case "RSA":
		names = []string{"kty", "n", "e"}
	default:
		return nil
	}
	text := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			text = append(text, ',')
		}
		value := r.text(name)
		if r.err != nil || value == "" {
			return nil
		}
		text = append(wire.AppendString(text, name), ':')
		text = wire.AppendString(text, value)
	}
	var jwk jose.JSONWebKey
	if err := jwk.UnmarshalJSON(append(text, '}')); err != nil || !jwk.IsPublic() || !jwk.Valid() {
		return nil
	}
	return jwk.Key
}
