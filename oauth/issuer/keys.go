package issuer

import (
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

const (
	// keysMaxAge is how long a resource server may keep the published keys.
	keysMaxAge = 5 * time.Minute
	// keysReload is how old a process's view of the store's keys may be, and
	// keysRetry how soon an unknown key id makes it look again.
	keysReload = time.Minute
	keysRetry  = 5 * time.Second
	// clockSlack is how far the clocks of verifiers may be behind.
	clockSlack = 5 * time.Minute
	// secretAlgorithm marks what is no signing key but a secret of the issuer.
	secretAlgorithm = "secret"
)

// A keyring holds the signing keys and secrets of an issuer. The store decides
// which there are: time is cut into periods of KeyLifetime, each period has
// one slot for each algorithm, and the first process fills it, so that all
// processes on one store sign with the same key.
type keyring struct {
	store     Store
	now       func() time.Time
	algorithm string
	period    time.Duration
	keep      time.Duration // how long a key verifies after it signed last
	ahead     time.Duration // how long a key is published before it signs

	mu      sync.Mutex
	keys    map[string]*heldKey // by slot
	public  []byte              // the JWK set
	source  *jwt.Set
	loaded  time.Time
	secrets map[string]*Key

	others sources // of the keys that others sign with
}

// A heldKey is a signing key, parsed.
type heldKey struct {
	*jwt.Key
	created, expires time.Time
}

// newKeyring makes a keyring; it reads the store when it is first used.
func newKeyring(s *Server) *keyring {
	lifetime := s.opts.AccessLifetime
	for _, r := range s.opts.Resources {
		lifetime = max(lifetime, r.AccessLifetime)
	}
	period := max(s.opts.KeyLifetime.Truncate(time.Second), time.Second)
	keep := lifetime + clockSlack
	return &keyring{
		store:     s.store,
		now:       s.now,
		algorithm: s.opts.SigningAlgorithm,
		period:    period,
		keep:      keep,
		// A resource server that read the keys just before the new one was there
		// reads them again before the new one signs.
		ahead:   min(period, max(period/8, keep+keysMaxAge)),
		keys:    map[string]*heldKey{},
		secrets: map[string]*Key{},
	}
}

// slot is the slot and the start of the period that t is in.
func (k *keyring) slot(algorithm string, t time.Time) (string, time.Time) {
	length := int64(k.period / time.Second)
	n := t.Unix() / length
	name := algorithm + "/" + strconv.FormatInt(length, 10) + "/" + strconv.FormatInt(n, 10)
	return name, time.Unix(n*length, 0).UTC()
}

// signing returns the key that signs now.
func (k *keyring) signing(ctx context.Context) (*jwt.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	slot, _ := k.slot(k.algorithm, now)
	if key := k.keys[slot]; key != nil {
		return key.Key, nil
	}
	if err := k.load(ctx, now); err != nil {
		return nil, err
	}
	key := k.keys[slot]
	if key == nil {
		return nil, errors.New("the store has no key for this time")
	}
	return key.Key, nil
}

// maintain makes the keys that are due; Run calls it at least once a minute.
func (k *keyring) maintain(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.load(ctx, k.now())
}

// load reads the keys of the store and adds those that are missing: that of
// this period and, when its time has come, that of the next.
func (k *keyring) load(ctx context.Context, now time.Time) error {
	stored, err := k.store.Keys(ctx, now)
	if err != nil {
		return fmt.Errorf("reading the keys: %w", err)
	}
	slot, start := k.slot(k.algorithm, now)
	next := start.Add(k.period)
	slots := map[string]time.Time{slot: start}
	if !now.Before(next.Add(-k.ahead)) {
		name, _ := k.slot(k.algorithm, next)
		slots[name] = next
	}
	for _, key := range stored {
		delete(slots, key.Slot)
	}
	for name, start := range slots {
		key, err := k.fill(ctx, name, start, now)
		if err != nil {
			return err
		}
		stored = append(stored, key)
	}
	return k.use(stored, now)
}

// fill makes a key for a slot and returns the one that is in it then.
func (k *keyring) fill(ctx context.Context, slot string, start, now time.Time) (*Key, error) {
	fresh, err := jwt.NewKey(k.algorithm)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	private, err := fresh.Private()
	if err != nil {
		return nil, fmt.Errorf("writing a key: %w", err)
	}
	retires := start.Add(k.period)
	key, err := k.store.AddKey(ctx, &Key{
		ID: fresh.ID(), Slot: slot, Algorithm: k.algorithm, Private: private,
		Created: now, Retires: retires, Expires: retires.Add(k.keep),
	}, now)
	if err != nil {
		return nil, fmt.Errorf("storing a key: %w", err)
	}
	return key, nil
}

// use takes over what the store has; keys that are known are not parsed again.
func (k *keyring) use(stored []*Key, now time.Time) error {
	keys := make(map[string]*heldKey, len(stored))
	var list []*heldKey
	for _, key := range stored {
		if key.Algorithm == secretAlgorithm {
			continue
		}
		held := k.keys[key.Slot]
		if held == nil || held.ID() != key.ID {
			parsed, err := jwt.ParseKey(key.Private)
			if err != nil {
				return fmt.Errorf("reading key %q: %w", key.ID, err)
			}
			held = &heldKey{parsed, key.Created, key.Expires}
		}
		keys[key.Slot] = held
		list = append(list, held)
	}
	slices.SortFunc(list, func(a, b *heldKey) int { return b.created.Compare(a.created) })
	public := make([]*jwt.Key, len(list))
	for i, key := range list {
		public[i] = key.Key
	}
	set := jwt.SetJSON(public...)
	source, err := jwt.ParseSet(set)
	if err != nil {
		return fmt.Errorf("reading the public keys: %w", err)
	}
	k.keys, k.public, k.source, k.loaded = keys, set, source, now
	return nil
}

// set returns the published keys, not older than age.
func (k *keyring) set(ctx context.Context, age time.Duration) ([]byte, *jwt.Set, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if passed := now.Sub(k.loaded); k.source == nil || passed >= age || passed < 0 {
		if err := k.load(ctx, now); err != nil {
			return nil, nil, err
		}
	}
	return k.public, k.source, nil
}

// Find makes a keyring the source of the keys of its own tokens.
func (k *keyring) Find(ctx context.Context, id, algorithm string) ([]crypto.PublicKey, error) {
	var found []crypto.PublicKey
	// The second look is for a key that another process has just made.
	for _, age := range []time.Duration{keysReload, keysRetry} {
		_, source, err := k.set(ctx, age)
		if err != nil {
			return nil, err
		}
		if found, err = source.Find(ctx, id, algorithm); err != nil || len(found) > 0 {
			return found, err
		}
	}
	return found, nil
}

// secret returns 256 bits that only the processes on this store know: those of
// the period that t is in, the same whenever they are asked for.
func (k *keyring) secret(ctx context.Context, t time.Time) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	slot, start := k.slot(secretAlgorithm, t)
	now := k.now()
	if secret := k.secrets[slot]; secret != nil && now.Before(secret.Expires) {
		return secret.Private, nil
	}
	retires := start.Add(k.period)
	key, err := k.store.AddKey(ctx, &Key{
		ID: slot, Slot: slot, Algorithm: secretAlgorithm, Private: []byte(oauth.NewSecret()),
		Created: now, Retires: retires, Expires: later(retires, now).Add(k.period),
	}, now)
	if err != nil {
		return nil, fmt.Errorf("storing a secret: %w", err)
	}
	if len(key.Private) < 32 {
		return nil, errors.New("secret of the store is too short")
	}
	if len(k.secrets) >= 16 {
		clear(k.secrets)
	}
	k.secrets[slot] = key
	return key.Private, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// derive is a value that cannot be computed without the secret of t's period:
// 256 bits made from purpose and value, in base64url.
func (k *keyring) derive(ctx context.Context, t time.Time, purpose, value string) (string, error) {
	secret, err := k.secret(ctx, t)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(purpose))
	mac.Write([]byte{0})
	mac.Write([]byte(value))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// serveKeys answers with the public keys (RFC 7517).
func (s *Server) serveKeys(w http.ResponseWriter, r *http.Request) {
	set, _, err := s.keys.set(r.Context(), keysReload)
	if err != nil {
		s.refuseJSON(w, r, failure(), err.Error())
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/jwk-set+json")
	h.Set("Cache-Control", "public, max-age="+strconv.Itoa(int(keysMaxAge/time.Second)))
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(set) // a client that went away misses nothing
}
