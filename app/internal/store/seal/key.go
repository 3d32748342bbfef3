package seal

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
)

// A Key is a Wrapper whose key is in this process. It wraps by AES-256-GCM with a random nonce.
type Key struct {
	key []byte
	id  []byte
}

var _ Wrapper = (*Key)(nil)

// errKey says how a key is written.
var errKey = errors.New("a key is 32 random bytes in hexadecimal or base64, in one line; make one with 'openssl rand -hex 32'")

// ParseKey reads a key: KeySize bytes in hexadecimal, or in base64 of either alphabet, with or
// without padding. White space around it does not count. The error does not contain what was read.
func ParseKey(text string) (*Key, error) {
	text = strings.TrimSpace(text)
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != KeySize {
		plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
		key, err = base64.RawStdEncoding.DecodeString(plain)
	}
	if err != nil || len(key) != KeySize || bytes.Count(key, key[:1]) == KeySize {
		return nil, errKey
	}
	return newKey(key), nil
}

// GenerateKey makes a key, and the text that ParseKey reads.
func GenerateKey() (k *Key, text string) {
	key := make([]byte, KeySize)
	_, _ = rand.Read(key) // it never fails
	return newKey(key), hex.EncodeToString(key)
}

// idSize is the size of the identifier of a key in bytes.
const idSize = 8

func newKey(key []byte) *Key {
	sum := sha256.Sum256(append([]byte("parley key id\x00"), key...))
	return &Key{key, sum[:idSize]}
}

// ID identifies the key, and does not tell it: 16 hexadecimal digits.
func (k *Key) ID() string { return hex.EncodeToString(k.id) }

// wrapVersion begins what Wrap returns.
const wrapVersion = 1

// Wrap implements Wrapper: the result is the version of the format in one byte, the identifier of
// the key, a nonce of 12 bytes, and the encrypted key with its tag.
func (k *Key) Wrap(_ context.Context, name string, key []byte) ([]byte, error) {
	head := append([]byte{wrapVersion}, k.id...)
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce) // it never fails
	return gcm(k.key).Seal(append(head, nonce...), nonce, key, append(head, name...)), nil
}

// Unwrap implements Wrapper.
func (k *Key) Unwrap(_ context.Context, name string, wrapped []byte) ([]byte, error) {
	const head = 1 + idSize
	if len(wrapped) < head+nonceSize+tagSize || wrapped[0] != wrapVersion {
		return nil, ErrDamaged
	}
	if !bytes.Equal(wrapped[1:head], k.id) {
		return nil, ErrWrongKey
	}
	bound := append(bytes.Clone(wrapped[:head]), name...)
	key, err := gcm(k.key).Open(nil, wrapped[head:head+nonceSize], wrapped[head+nonceSize:], bound)
	if err != nil {
		return nil, ErrDamaged
	}
	return key, nil
}

// WrappedBy is the identifier of the Key that wrapped a data key, "" if it was another Wrapper.
func WrappedBy(wrapped string) string {
	raw, err := decode(base64.RawStdEncoding, wrapped)
	if err != nil || len(raw) != 1+idSize+nonceSize+KeySize+tagSize || raw[0] != wrapVersion {
		return ""
	}
	return hex.EncodeToString(raw[1 : 1+idSize])
}
