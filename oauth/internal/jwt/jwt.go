// Package jwt signs and verifies the JSON Web Tokens of OAuth (RFC 7515, 7517,
// 7519, 7638, 9068, 9449) with go-jose underneath: algorithms come from the
// caller, never from the token, and keys never from a token's header, except
// for DPoP proofs, whose point that is.
package jwt

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"slices"

	"github.com/go-jose/go-jose/v4"
)

// Types of tokens, as the typ header names them. They are compared without
// regard to case and without "application/".
const (
	TypeAccessToken = "at+jwt"
	TypeDPoP        = "dpop+jwt"
	TypeIDJAG       = "oauth-id-jag+jwt"
	TypeJWT         = "JWT"
)

// DefaultAlgorithms are the asymmetric algorithms that are taken where nothing
// else was configured: ES256, ES384, ES512, EdDSA, RS256, RS384, RS512, PS256,
// PS384, PS512. "none" and HMAC are refused everywhere. The slice is the
// caller's.
func DefaultAlgorithms() []string { return slices.Clone(algorithms) }

// algorithms never changes.
var algorithms = []string{
	string(jose.ES256), string(jose.ES384), string(jose.ES512), string(jose.EdDSA),
	string(jose.RS256), string(jose.RS384), string(jose.RS512),
	string(jose.PS256), string(jose.PS384), string(jose.PS512),
}

// RSA moduli have at least so many bits as RFC 7518, section 3.3, demands, and
// at most so many as go-jose reads, since their length is what a check costs.
const (
	minRSABits = 2048
	maxRSABits = 4096
)

// usualAlgorithm is the algorithm that a public key is most often used with, or "" if
// the key is of no use here.
func usualAlgorithm(public crypto.PublicKey) string {
	switch k := public.(type) {
	case *ecdsa.PublicKey:
		if k == nil {
			return ""
		}
		switch k.Curve {
		case elliptic.P256():
			return string(jose.ES256)
		case elliptic.P384():
			return string(jose.ES384)
		case elliptic.P521():
			return string(jose.ES512)
		}
	case ed25519.PublicKey:
		if len(k) == ed25519.PublicKeySize {
			return string(jose.EdDSA)
		}
	case *rsa.PublicKey:
		if soundRSA(k) {
			return string(jose.RS256)
		}
	}
	return ""
}

// fits reports whether a public key may verify with an algorithm.
func fits(public crypto.PublicKey, algorithm string) bool {
	switch u := usualAlgorithm(public); u {
	case "":
		return false
	case string(jose.RS256):
		return len(algorithm) == 5 && (algorithm[:2] == "RS" || algorithm[:2] == "PS") &&
			slices.Contains(algorithms, algorithm)
	default:
		return algorithm == u
	}
}

// soundRSA reports whether a key has a usual length and an odd exponent that
// does something.
func soundRSA(k *rsa.PublicKey) bool {
	if k == nil || k.N == nil || k.N.Sign() <= 0 {
		return false
	}
	bits := k.N.BitLen()
	return bits >= minRSABits && bits <= maxRSABits && k.N.Bit(0) == 1 &&
		k.E >= 3 && k.E&1 == 1 && int64(k.E) < 1<<31
}
