// Package seal encrypts single values of a database with a data key, which is itself encrypted by a key
// that is kept elsewhere: in a file, in a keyring, or by a key management service.
package seal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Wrapper encrypts data keys, of which a database has one or two, with a key that never leaves
// it. A key management service is one with these two operations. name says which data key it is,
// the same in both: a Wrapper refuses to unwrap a data key under another name (in the words of such
// services, it is the encryption context, or the additional authenticated data). Errors must not
// contain keys. A Wrapper may be used by many goroutines at once.
type Wrapper interface {
	// Wrap encrypts a data key of KeySize bytes.
	Wrap(ctx context.Context, name string, key []byte) ([]byte, error)
	// Unwrap returns what Wrap encrypted. If it was another key that wrapped it, that is
	// ErrWrongKey, as far as it can be told.
	Unwrap(ctx context.Context, name string, wrapped []byte) ([]byte, error)
}

// KeySize is the size of keys, in bytes.
const KeySize = 32

// Errors of sealed values, for errors.Is.
var (
	// ErrWrongKey says that a data key was wrapped by another key than the one that is to unwrap it.
	ErrWrongKey = errors.New("another key encrypted it")
	// ErrDamaged says that a value is not what was sealed at this place: it was changed, cut off,
	// or moved.
	ErrDamaged = errors.New("it was changed, cut off, or moved from another place")
)

// prefix begins every sealed value. The number is the version of the format.
const prefix = "sealed:1:"

// saltSize and nonceSize are the sizes in bytes of what is random in each value. The key of a value
// is derived from the data key and the salt, so that there is no limit to how many values a data
// key seals (with random nonces alone AES-GCM has one, of 2^32; NIST SP 800-38D, section 8.3).
const (
	saltSize  = 20
	nonceSize = 12
	tagSize   = 16
)

// A DataKey seals the values of one database, by AES-256-GCM. It may be used by many goroutines at
// once.
type DataKey struct {
	id  int64
	key []byte
}

// NewDataKey makes a data key with a number, which is in all that it seals. Numbers are positive.
func NewDataKey(id int64) *DataKey {
	key := make([]byte, KeySize)
	_, _ = rand.Read(key) // it never fails
	return &DataKey{id, key}
}

// ID is the number of the key.
func (k *DataKey) ID() int64 { return k.id }

// name is the name of a data key for a Wrapper.
func name(id int64) string { return "parley data key " + strconv.FormatInt(id, 10) }

// Wrap encrypts the key with that of a Wrapper.
func (k *DataKey) Wrap(ctx context.Context, w Wrapper) (string, error) {
	wrapped, err := w.Wrap(ctx, name(k.id), k.key)
	if err != nil {
		return "", fmt.Errorf("wrap data key %d: %w", k.id, err)
	}
	return base64.RawStdEncoding.EncodeToString(wrapped), nil
}

// Unwrap returns the data key with a number that Wrap encrypted.
func Unwrap(ctx context.Context, w Wrapper, id int64, wrapped string) (*DataKey, error) {
	raw, err := decode(base64.RawStdEncoding, wrapped)
	if err != nil {
		return nil, fmt.Errorf("unwrap data key %d: %w", id, err)
	}
	key, err := w.Unwrap(ctx, name(id), raw)
	if err == nil && len(key) != KeySize {
		err = ErrDamaged
	}
	if err != nil {
		return nil, fmt.Errorf("unwrap data key %d: %w", id, err)
	}
	return &DataKey{id, key}, nil
}

// Bridge seals a data key with the one before, for processes that have that one and not the key
// that wraps.
func (k *DataKey) Bridge(before *DataKey) string { return before.Seal(k.key, "bridge", name(k.id)) }

// Cross returns the data key with a number that Bridge sealed.
func Cross(before *DataKey, id int64, bridge string) (*DataKey, error) {
	key, err := before.Open(bridge, "bridge", name(id))
	if err == nil && len(key) != KeySize {
		err = ErrDamaged
	}
	if err != nil {
		return nil, err
	}
	return &DataKey{id, key}, nil
}

// Seal encrypts a value for a place: table, column and row, say. The result is text: the version of
// the format, the number of the key, and in base64url without padding a salt of 20 bytes, a nonce
// of 12 and the encrypted value with its tag.
func (k *DataKey) Seal(value []byte, place ...string) string {
	head := prefix + strconv.FormatInt(k.id, 10) + ":"
	random := make([]byte, saltSize+nonceSize, saltSize+nonceSize+len(value)+tagSize)
	_, _ = rand.Read(random) // it never fails
	sealed := k.cipher(random[:saltSize]).Seal(random, random[saltSize:], value, bound(head, place))
	return head + base64.RawURLEncoding.EncodeToString(sealed)
}

// Open decrypts what Seal made for the same place. All else is ErrDamaged.
func (k *DataKey) Open(sealed string, place ...string) ([]byte, error) {
	id, err := KeyOf(sealed)
	if err != nil || id != k.id {
		return nil, ErrDamaged
	}
	head := prefix + strconv.FormatInt(id, 10) + ":"
	raw, err := decode(base64.RawURLEncoding, sealed[len(head):])
	if err != nil || len(raw) < saltSize+nonceSize+tagSize {
		return nil, ErrDamaged
	}
	value, err := k.cipher(raw[:saltSize]).Open(nil, raw[saltSize:saltSize+nonceSize], raw[saltSize+nonceSize:], bound(head, place))
	if err != nil {
		return nil, ErrDamaged
	}
	return value, nil
}

// decode reads base64, of which each value has one form.
func decode(encoding *base64.Encoding, text string) ([]byte, error) {
	raw, err := encoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") { // which the decoder skips
		return nil, ErrDamaged
	}
	return raw, nil
}

// cipher is that of a value.
func (k *DataKey) cipher(salt []byte) cipher.AEAD {
	key, err := hkdf.Key(sha256.New, k.key, salt, prefix, KeySize)
	if err != nil {
		panic(err) // it is short enough
	}
	return gcm(key)
}

// gcm is AES-256-GCM.
func gcm(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // keys have their size
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has the size of block that GCM wants
	}
	return aead
}

// bound is what a value is bound to: its head and its place, of which no two read alike.
func bound(head string, place []string) []byte {
	text := []byte(head)
	for _, part := range place {
		text = append(strconv.AppendInt(text, int64(len(part)), 10), ':')
		text = append(text, part...)
	}
	return text
}

// IsSealed says whether a value begins as sealed ones do.
func IsSealed(value string) bool { return strings.HasPrefix(value, "sealed:") }

// KeyOf is the number of the data key that sealed a value, or ErrDamaged.
func KeyOf(sealed string) (int64, error) {
	rest, ok := strings.CutPrefix(sealed, prefix)
	number, _, found := strings.Cut(rest, ":")
	id, err := strconv.ParseInt(number, 10, 64)
	if !ok || !found || err != nil || id < 1 || strconv.FormatInt(id, 10) != number {
		return 0, ErrDamaged
	}
	return id, nil
}
