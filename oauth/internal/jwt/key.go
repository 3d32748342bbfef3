package jwt

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/cryptosigner"

	"github.com/parley-mcp/parley/internal/wire"
)

// A Key signs. It may be used by many goroutines at once.
type Key struct {
	id, algorithm, thumbprint string
	// material is a private key, or an opaque signer if the key is held
	// elsewhere.
	material any
	public   wire.RawValue
}

// NewKey makes a fresh key for ES256, EdDSA or RS256 (2,048 bits); its id is the
// thumbprint.
func NewKey(algorithm string) (*Key, error) {
	var signer crypto.Signer
	var err error
	switch algorithm {
	case string(jose.ES256):
		signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case string(jose.EdDSA):
		_, signer, err = ed25519.GenerateKey(rand.Reader)
	case string(jose.RS256):
		signer, err = rsa.GenerateKey(rand.Reader, minRSABits)
	default:
		return nil, fmt.Errorf("make a key for %q: %w", algorithm, ErrAlgorithm)
	}
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return KeyOf(signer, algorithm, "")
}

// KeyOf makes a Key of a signer: an *ecdsa.PrivateKey, ed25519.PrivateKey or
// *rsa.PrivateKey (or another crypto.Signer with such a public key). An empty
// algorithm is the usual one of the key; an empty id the thumbprint. RSA keys
// have 2,048 to 4,096 bits.
func KeyOf(signer crypto.Signer, algorithm, id string) (*Key, error) {
	if signer == nil {
		return nil, errors.New("make a key: no signer")
	}
	if e, ok := signer.(ed25519.PrivateKey); ok && len(e) != ed25519.PrivateKeySize {
		return nil, errors.New("make a key: an Ed25519 key of a wrong length")
	}
	public := signer.Public()
	if algorithm == "" {
		algorithm = usualAlgorithm(public)
	}
	if !fits(public, algorithm) {
		return nil, fmt.Errorf("make a key: type or size of the key and %q: %w", algorithm, ErrAlgorithm)
	}
	jkt, err := thumbprint(public)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	k := &Key{id: id, algorithm: algorithm, thumbprint: jkt, material: signer}
	if id == "" {
		k.id = jkt
	}
	switch signer.(type) {
	case *ecdsa.PrivateKey, ed25519.PrivateKey, *rsa.PrivateKey:
	default:
		k.material = cryptosigner.Opaque(signer)
	}
	jwk := jose.JSONWebKey{Key: public, KeyID: k.id, Algorithm: algorithm, Use: "sig"}
	if k.public, err = jwk.MarshalJSON(); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return k, nil
}

// ParsePEM reads a private key in PEM: PKCS #8, or the older EC and RSA forms.
// Blocks of other kinds, such as parameters or certificates, are passed over;
// encrypted keys are refused.
func ParsePEM(data []byte) (crypto.Signer, error) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		var key any
		var err error
		switch block.Type {
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case "ENCRYPTED PRIVATE KEY":
			return nil, errors.New("read a private key: it is encrypted")
		default:
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read a private key: %w", err)
		}
		signer, ok := key.(crypto.Signer)
		if !ok {
			return nil, errors.New("read a private key: it does not sign")
		}
		return signer, nil
	}
	return nil, errors.New("read a private key: there is none in PEM")
}

// ParseKey reads what [Key.Private] wrote: one private JWK.
func ParseKey(jwk []byte) (*Key, error) {
	if _, err := wire.ParseObject(jwk, wire.Limits{Bytes: maxKeyBytes}); err != nil {
		return nil, fmt.Errorf("read a private key: %w", err)
	}
	// What go-jose says of a private key may show parts of it.
	var k jose.JSONWebKey
	if err := k.UnmarshalJSON(jwk); err != nil {
		return nil, errors.New("read a private key: not a JWK of a known kind")
	}
	signer, ok := k.Key.(crypto.Signer)
	if !ok {
		return nil, errors.New("read a private key: it does not sign")
	}
	if e, ok := signer.(*ecdsa.PrivateKey); ok && !isKeyPair(e) {
		return nil, errors.New("read a private key: its halves are of two keys")
	}
	return KeyOf(signer, k.Algorithm, k.KeyID)
}

// isKeyPair reports whether the public half belongs to the private one, which
// go-jose checks for other keys, not for those on curves.
func isKeyPair(k *ecdsa.PrivateKey) bool {
	scalar, err := k.Bytes()
	if err != nil {
		return false
	}
	again, err := ecdsa.ParseRawPrivateKey(k.Curve, scalar)
	return err == nil && again.PublicKey.Equal(&k.PublicKey)
}

// ID is the kid.
func (k *Key) ID() string { return k.id }

// Algorithm is the alg.
func (k *Key) Algorithm() string { return k.algorithm }

// Private is the key as a private JWK, unless it is held elsewhere; it is a
// secret.
func (k *Key) Private() ([]byte, error) {
	if _, opaque := k.material.(jose.OpaqueSigner); opaque {
		return nil, errors.New("write a private key: it is held by another signer")
	}
	jwk := jose.JSONWebKey{Key: k.material, KeyID: k.id, Algorithm: k.algorithm, Use: "sig"}
	text, err := jwk.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("write a private key: %w", err)
	}
	return text, nil
}

// Public is the key as a public JWK with use "sig". It must not be changed.
func (k *Key) Public() wire.RawValue { return k.public }

// Thumbprint is the SHA-256 thumbprint (RFC 7638) in base64url: the jkt of DPoP.
func (k *Key) Thumbprint() string { return k.thumbprint }

// Sign makes a compact JWS of claims, which are encoded with wire.Marshal and
// must be an object. The header has alg, typ (unless it is empty) and kid.
func (k *Key) Sign(typ string, claims any) (string, error) {
	o := &jose.SignerOptions{}
	if typ != "" {
		o = o.WithType(jose.ContentType(typ))
	}
	return k.sign(o.WithHeader("kid", k.id), claims)
}

func (k *Key) sign(o *jose.SignerOptions, claims any) (string, error) {
	payload, err := wire.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	if payload[0] != '{' {
		return "", errors.New("sign a token: its claims are not an object")
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(k.algorithm), Key: k.material}, o)
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	jws, err := s.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	token, err := jws.CompactSerialize()
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return token, nil
}

func thumbprint(public crypto.PublicKey) (string, error) {
	jwk := jose.JSONWebKey{Key: public}
	sum, err := jwk.Thumbprint(crypto.SHA256)
	if err != nil {
		return "", fmt.Errorf("thumbprint: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(sum), nil
}
