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
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

const (
	// keysMaxAge is how long a resource server may keep the published keys.
	keysMaxAge = 5 * time.Minute
	// keysReload is how old a process's view of the store's keys may be.
	keysReload = 2 * time.Second
	// clockSlack is how far the clocks of verifiers may be behind.
	clockSlack = 5 * time.Minute
	// maxFills is how many slots are tried for a new key. Each that is taken was taken meanwhile.
	maxFills = 100
)

// A keyring holds the signing keys and secrets of an issuer. The store decides
// which there are: time is cut into periods of KeyLifetime, each period has
// slots for each algorithm, and the first process fills the next one that is
// due, so that all processes on one store sign with the same key.
type keyring struct {
	store     Store
	now       func() time.Time
	algorithm string
	period    time.Duration
	keep      time.Duration // how long a key verifies after it signed last
	ahead     time.Duration // how long a key is published before it signs

	mu      sync.Mutex
	stored  []*Key              // as the store had them
	keys    map[string]*heldKey // by ID, those that are not revoked
	signer  *heldKey            // signs now, or nil
	public  *publicKeys
	loaded  time.Time
	secrets map[string]*Key // by slot

	others sources // of the keys that others sign with
}

// A heldKey is a signing key, parsed.
type heldKey struct {
	*jwt.Key
	created, retires, expires time.Time
}

// publicKeys are the published keys.
type publicKeys struct {
	set    []byte // a JWK set
	tag    string // an entity tag of it
	source *jwt.Set
}

// newKeyring makes a keyring; it reads the store when it is first used.
func newKeyring(s *Server) *keyring {
	period := max(s.opts.KeyLifetime.Truncate(time.Second), time.Second)
	keep := (s.longestAccess() + clockSlack + time.Second - 1).Truncate(time.Second)
	return &keyring{
		store:     s.store,
		now:       s.now,
		algorithm: s.opts.SigningAlgorithm,
		period:    period,
		keep:      keep,
		// A resource server that read the keys just before the new one was there
		// reads them again before the new one signs.
		ahead: min(period, max(period/8, keep+keysMaxAge)),
	}
}

// signing returns the key that signs now, and when what it signs must have ended.
func (k *keyring) signing(ctx context.Context) (*jwt.Key, time.Time, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if !k.fresh(now, keysReload) || k.signer == nil || !now.Before(k.signer.retires) {
		if err := k.load(ctx, now); err != nil {
			return nil, time.Time{}, err
		}
	}
	if k.signer == nil {
		return nil, time.Time{}, errors.New("the store has no key for this time")
	}
	return k.signer.Key, k.signer.expires.Add(-clockSlack), nil
}

// maintain makes the keys that are due; Run calls it at least once a minute.
func (k *keyring) maintain(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.load(ctx, k.now())
}

// load reads the keys of the store and adds those that are missing: for this
// period and, when its time has come, for the next.
func (k *keyring) load(ctx context.Context, now time.Time) error {
	stored, err := k.store.Keys(ctx, now)
	if err != nil {
		return fmt.Errorf("reading the keys: %w", err)
	}
	first := slotAt(k.algorithm, k.period, now)
	if stored, err = k.cover(ctx, stored, first, now); err != nil {
		return err
	}
	if next := first.end(); !now.Before(next.Add(-k.ahead)) {
		if stored, err = k.cover(ctx, stored, slotAt(k.algorithm, k.period, next), now); err != nil {
			return err
		}
	}
	if stored, err = k.supersede(ctx, stored, first, now); err != nil {
		return err
	}
	return k.use(stored, now)
}

// cover adds a key to a period, unless there is one that signs until its end.
// One that is retired as planned, and signs until then, has a lower number. So
// is one that verifies for too short a time, of a server whose tokens ended
// earlier.
func (k *keyring) cover(ctx context.Context, stored []*Key, first slot, now time.Time) ([]*Key, error) {
	covers := func(key *Key) bool {
		return key.State == KeyActive && !key.Retires.Before(first.end()) && !key.Expires.Before(key.Retires.Add(k.keep))
	}
	number := 0
	for i, key := range stored {
		s, ok := parseSlot(key.Slot)
		if !ok || s.with(0) != first {
			continue
		}
		if covers(key) {
			return stored, nil
		}
		number = max(number, s.number+1)
		if key.State == KeyActive {
			retired, err := k.retire(ctx, key, later(now, first.start()).Add(KeyOverlap), now)
			if err != nil {
				return nil, err
			}
			stored[i] = retired
		}
	}
	for range maxFills {
		key, err := k.fill(ctx, first.with(number), now)
		if err != nil {
			return nil, err
		}
		if stored = append(stored, key); covers(key) {
			return stored, nil
		}
		number++
	}
	return nil, errors.New("keys of the store are retired or revoked as fast as they are made")
}

// fill makes a key for a slot and returns the one that is in it then.
func (k *keyring) fill(ctx context.Context, s slot, now time.Time) (*Key, error) {
	fresh, err := newSigningKey(k.algorithm)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	private, err := fresh.Private()
	if err != nil {
		return nil, fmt.Errorf("writing a key: %w", err)
	}
	key, err := k.store.AddKey(ctx, &Key{
		ID: fresh.ID(), Slot: s.String(), Algorithm: k.algorithm, Private: private,
		Created: now, Retires: s.end(), Expires: s.end().Add(k.keep),
	}, now)
	if err != nil {
		return nil, fmt.Errorf("storing a key: %w", err)
	}
	return key, nil
}

// newSigningKey makes a key whose ID can be an argument of a command.
func newSigningKey(algorithm string) (*jwt.Key, error) {
	for {
		key, err := jwt.NewKey(algorithm)
		if err != nil || !strings.HasPrefix(key.ID(), "-") {
			return key, err
		}
	}
}

// supersede retires the keys of a period whose time to retire has come, so that
// a clock that steps back does not bring them back.
func (k *keyring) supersede(ctx context.Context, stored []*Key, first slot, now time.Time) ([]*Key, error) {
	for i, key := range stored {
		s, ok := parseSlot(key.Slot)
		if !ok || s.with(0) != first || key.State != KeyActive || now.Before(key.Retires) {
			continue
		}
		retired, err := k.retire(ctx, key, now, now)
		if err != nil {
			return nil, err
		}
		stored[i] = retired
	}
	return stored, nil
}

// retire has a key sign no more from a time on, and returns it as it is then.
func (k *keyring) retire(ctx context.Context, key *Key, from, now time.Time) (*Key, error) {
	retired, err := k.store.RetireKey(ctx, key.ID, from, now)
	switch {
	case err == nil, errors.Is(err, ErrRevoked):
		return retired, nil
	case errors.Is(err, ErrNotFound):
		return key, nil // it has expired meanwhile
	}
	return nil, fmt.Errorf("retiring a key: %w", err)
}

// use takes over what the store has.
func (k *keyring) use(stored []*Key, now time.Time) error {
	if k.public == nil || !slices.EqualFunc(k.stored, stored, sameKey) {
		if err := k.parse(stored); err != nil {
			return err
		}
	}
	k.signer, k.loaded = nil, now
	first := slotAt(k.algorithm, k.period, now)
	for _, key := range Signers(stored, now) {
		if s, ok := parseSlot(key.Slot); ok && s.with(0) == first {
			k.signer = k.keys[key.ID]
		}
	}
	return nil
}

func sameKey(a, b *Key) bool {
	return a.ID == b.ID && a.Slot == b.Slot && a.State == b.State &&
		a.Created.Equal(b.Created) && a.Retires.Equal(b.Retires) && a.Expires.Equal(b.Expires)
}

// parse reads keys; those that are known are not parsed again.
func (k *keyring) parse(stored []*Key) error {
	keys := make(map[string]*heldKey, len(stored))
	secrets := map[string]*Key{}
	var list []*heldKey
	for _, key := range stored {
		switch {
		case key.Algorithm == SecretAlgorithm:
			secrets[key.Slot] = key
			continue
		case key.State == KeyRevoked:
			continue
		}
		held := &heldKey{created: key.Created, retires: key.Retires, expires: key.Expires}
		if known := k.keys[key.ID]; known != nil {
			held.Key = known.Key
		} else {
			parsed, err := jwt.ParseKey(key.Private)
			if err != nil {
				return fmt.Errorf("reading key %q: %w", key.ID, err)
			}
			held.Key = parsed
		}
		keys[key.ID] = held
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
	sum := sha256.Sum256(set)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:]) + `"`
	k.stored, k.keys, k.secrets, k.public = stored, keys, secrets, &publicKeys{set, tag, source}
	return nil
}

// fresh says whether the keys were read from the store, less than age ago.
func (k *keyring) fresh(now time.Time, age time.Duration) bool {
	passed := now.Sub(k.loaded)
	return k.public != nil && 0 <= passed && passed < age
}

// set returns the published keys, not older than age.
func (k *keyring) set(ctx context.Context, age time.Duration) (*publicKeys, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if !k.fresh(now, age) {
		if err := k.load(ctx, now); err != nil {
			return nil, err
		}
	}
	return k.public, nil
}

// Find makes a keyring the source of the keys of its own tokens.
func (k *keyring) Find(ctx context.Context, id, algorithm string) ([]crypto.PublicKey, error) {
	var found []crypto.PublicKey
	// The second look is for a key that another process has just made. It is one query, of clients
	// that are known and whose requests are counted.
	for _, age := range []time.Duration{keysReload, 0} {
		public, err := k.set(ctx, age)
		if err != nil {
			return nil, err
		}
		if found, err = public.source.Find(ctx, id, algorithm); err != nil || len(found) > 0 {
			return found, err
		}
	}
	return found, nil
}

// secret returns 256 bits that only the processes on this store know: those of
// the period that t is in, the same whenever they are asked for, until a key
// is revoked.
func (k *keyring) secret(ctx context.Context, t time.Time) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if !k.fresh(now, keysReload) {
		if err := k.load(ctx, now); err != nil {
			return nil, err
		}
	}
	s := slotAt(SecretAlgorithm, k.period, t)
	name := s.String()
	if secret := k.secrets[name]; secret != nil && now.Before(secret.Expires) {
		return secret.Private, nil
	}
	key, err := k.store.AddKey(ctx, &Key{
		ID: name, Slot: name, Algorithm: SecretAlgorithm, Private: []byte(oauth.NewSecret()),
		Created: now, Retires: s.end(), Expires: later(s.end(), now).Add(k.period),
	}, now)
	if err != nil {
		return nil, fmt.Errorf("storing a secret: %w", err)
	}
	if len(key.Private) < 32 {
		return nil, errors.New("secret of the store is too short")
	}
	k.secrets[name] = key
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

// serveKeys answers with the public keys (RFC 7517), or, to who has them already,
// that they are still the same (RFC 9110, section 13.1.2).
func (s *Server) serveKeys(w http.ResponseWriter, r *http.Request) {
	public, err := s.keys.set(r.Context(), keysReload)
	if err != nil {
		s.refuseJSON(w, r, failure(), err.Error())
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "public, max-age="+strconv.Itoa(int(keysMaxAge/time.Second)))
	h.Set("ETag", public.tag)
	if hasTag(r.Header.Values("If-None-Match"), public.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", "application/jwk-set+json")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(public.set) // a client that went away misses nothing
}

// hasTag says whether a tag, which has no comma, is among those of If-None-Match. They are compared
// weakly, so that one which a proxy has weakened counts.
func hasTag(values []string, tag string) bool {
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimSpace(part); part == "*" || strings.TrimPrefix(part, "W/") == tag {
				return true
			}
		}
	}
	return false
}
