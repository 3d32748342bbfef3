package userauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"
)

// Bounds of a password.
const (
	minPassword = 8    // characters
	maxPassword = 1024 // bytes
)

// Parameters of Argon2id: the second choice of RFC 9106, section 4, for when
// memory is scarce. The time that it takes is meant.
const (
	argonPasses  = 3
	argonThreads = 4
	argonSalt    = 16
	argonKey     = 32
)

// argonMemory is in KiB. Only CheapHashes changes it.
var argonMemory uint32 = 64 << 10

// CheapHashes makes hashes take a thousandth of the memory and of the time, for tests with many
// users. They do not protect passwords. It must be called before any other function of the package.
func CheapHashes() { argonMemory = 64 }

// HashPassword returns what is stored of a password: Argon2id with its
// parameters and its salt, as a PHC string. It takes 64 MiB of memory. A
// password has at least 8 characters, and at most 1,024 bytes of UTF-8.
func HashPassword(password string) (string, error) {
	if err := checkPassword(password); err != nil {
		return "", err
	}
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt) // which never fails
	key := argon2.IDKey([]byte(normalPassword(password)), salt, argonPasses, argonMemory, argonThreads, argonKey)
	return argonText(salt, key), nil
}

// checkPassword says what is wrong with a new password.
func checkPassword(password string) error {
	if !possiblePassword(password) || utf8.RuneCountInString(normalPassword(password)) < minPassword {
		return errors.New(passwordRules)
	}
	return nil
}

var passwordRules = fmt.Sprintf("a password has at least %d characters, and at most %d bytes", minPassword, maxPassword)

// possiblePassword reports whether anybody can have this password. Earlier versions took 8 bytes,
// which may be fewer characters.
func possiblePassword(password string) bool {
	return len(password) >= minPassword && len(password) <= maxPassword && utf8.ValidString(password)
}

// normalPassword is the form in which a password is hashed, as RFC 8265, section 4.2, has it: some
// keyboards make an umlaut of two characters, or a blank that is not that of ASCII.
func normalPassword(password string) string {
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Zs, r) {
			return ' '
		}
		return r
	}, password))
}

var phc = base64.RawStdEncoding.Strict()

// dummyHash returns the hash of no known password: its salt and key are zeros. Its parameters are
// those of HashPassword.
func dummyHash() string { return argonText(make([]byte, argonSalt), make([]byte, argonKey)) }

// argonText returns the PHC string of a hash with the parameters of HashPassword.
func argonText(salt, key []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonPasses, argonThreads,
		phc.EncodeToString(salt), phc.EncodeToString(key))
}

// An argonHash is a PHC string that was read.
type argonHash struct {
	memory, passes uint32
	threads        uint8
	salt, key      []byte
}

var errHash = errors.New("stored hash of a password cannot be read")

// parseHash reads a PHC string, with bounds that keep one that is wrong from
// taking the machine.
func parseHash(text string) (*argonHash, error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return nil, errHash
	}
	h := new(argonHash)
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.passes, &h.threads); err != nil || n != 3 ||
		parts[3] != fmt.Sprintf("m=%d,t=%d,p=%d", h.memory, h.passes, h.threads) {
		return nil, errHash
	}
	var err error
	if h.salt, err = phc.DecodeString(parts[4]); err != nil {
		return nil, errHash
	}
	if h.key, err = phc.DecodeString(parts[5]); err != nil {
		return nil, errHash
	}
	if h.memory < 8 || h.memory > 1<<20 || h.passes < 1 || h.passes > 16 || h.threads < 1 || h.threads > 16 ||
		len(h.salt) < 8 || len(h.salt) > 64 || len(h.key) < 16 || len(h.key) > 64 {
		return nil, errHash
	}
	return h, nil
}

// A hashing computes hashes, a few at a time: each takes memory, which a flood of
// sign-ins would otherwise exhaust.
type hashing struct {
	queue   chan struct{} // requests that wait or compute
	workers chan struct{} // requests that compute
}

const (
	hashesAtOnce  = 2
	hashesWaiting = 32
	// maxQueueTime is how long a request waits for a worker.
	maxQueueTime = 10 * time.Second
)

func newHashing() *hashing {
	return &hashing{
		queue:   make(chan struct{}, hashesAtOnce+hashesWaiting),
		workers: make(chan struct{}, hashesAtOnce),
	}
}

var errBusy = errors.New("too many passwords are checked already")

// verify reports whether this is the password of a hash; errBusy if it cannot
// find out for now.
func (h *hashing) verify(ctx context.Context, hash, password string) (bool, error) {
	want, err := parseHash(hash)
	if err != nil {
		return false, err
	}
	leave, err := h.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	normal := normalPassword(password)
	// Earlier versions hashed a password as it was typed.
	return want.matches(normal) || normal != password && want.matches(password), nil
}

func (h *argonHash) matches(password string) bool {
	got := argon2.IDKey([]byte(password), h.salt, h.passes, h.memory, h.threads, uint32(len(h.key)))
	return subtle.ConstantTimeCompare(got, h.key) == 1
}

// hash is HashPassword, a few at a time; errBusy if it cannot be done for now.
func (h *hashing) hash(ctx context.Context, password string) (string, error) {
	leave, err := h.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	return HashPassword(password)
}

// enter waits for a worker, which leave frees again, or returns errBusy.
func (h *hashing) enter(ctx context.Context) (leave func(), err error) {
	select {
	case h.queue <- struct{}{}:
	default:
		return nil, errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, maxQueueTime)
	defer cancel()
	select {
	case h.workers <- struct{}{}:
		return func() { <-h.workers; <-h.queue }, nil
	case <-ctx.Done():
		<-h.queue
		return nil, errBusy
	}
}
