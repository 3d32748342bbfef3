package admin

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

var keyVerbs = []*Verb{
	reading(verb("key list", "List the keys that sign access tokens, without their private parts", listKeys)),
	verb("key rotate", "Replace the signing key as planned: publish its successor before it signs", rotateKeys),
	verb("key retire", "Stop signing with a key immediately; its existing signatures stay valid", retireKey),
	verb("key revoke", "Reject everything a key signed, immediately, and remove its private part: for a stolen key", revokeKey),
}

const (
	// minOverlap is long enough for all servers to publish a successor.
	minOverlap = 5 * time.Second
	// maxPublished is how many keys are published at most, retired ones too. Servers that verify tokens
	// refuse lists of more than 100.
	maxPublished = 50
)

// The states of a key.
const (
	keyNext    = "next"    // published, signs later
	keySigning = "signing" // signs now
	keyRetired = "retired" // verifies what it signed
	keyRevoked = "revoked" // verifies nothing
)

// A Key is a key that signs access tokens, for operators. It has no private part.
type Key struct {
	ID        string    `json:"id"`
	Algorithm string    `json:"algorithm"`
	State     string    `json:"state"`
	Created   time.Time `json:"created"`
	Signs     time.Time `json:"signsUntil"`
	Verifies  time.Time `json:"verifiesUntil"`
}

// keyOf is the key for operators. signers are those that sign now.
func keyOf(k *issuer.Key, signers []*issuer.Key, now time.Time) Key {
	out := Key{k.ID, k.Algorithm, keyNext, k.Created, k.Retires, k.Expires}
	switch {
	case k.State == issuer.KeyRevoked:
		out.State = keyRevoked
		if out.Signs.Before(out.Verifies) {
			out.Verifies = out.Signs
		}
	case slices.ContainsFunc(signers, func(s *issuer.Key) bool { return s.Slot == k.Slot }):
		out.State = keySigning
	case k.State == issuer.KeyRetired, !now.Before(k.Retires):
		out.State = keyRetired
	}
	return out
}

// times says until when the key does what, for people.
func (k *Key) times() []string {
	switch k.State {
	case keyRevoked:
		return []string{"signs no more", "verifies nothing"}
	case keyRetired:
		return []string{"signs no more", "verifies until " + minute(k.Verifies)}
	}
	return []string{"signs until " + minute(k.Signs), "verifies until " + minute(k.Verifies)}
}

// A KeyList is the keys that have not expired, oldest first.
type KeyList struct {
	Keys []Key `json:"keys"`
}

// Text implements Result.
func (l *KeyList) Text() string {
	rows := make([][]string, 0, len(l.Keys))
	for _, k := range l.Keys {
		rows = append(rows, append([]string{k.ID, k.Algorithm, k.State}, k.times()...))
	}
	return columns(rows)
}

func listKeys(ctx context.Context, a *Admin, _ *struct{}) (*KeyList, error) {
	now := a.opts.Now()
	stored, err := a.signingKeys(ctx, now)
	if err != nil {
		return nil, err
	}
	out := &KeyList{Keys: []Key{}}
	signers := issuer.Signers(stored, now)
	for _, k := range stored {
		out.Keys = append(out.Keys, keyOf(k, signers, now))
	}
	return out, nil
}

// signingKeys are the keys of the database that are no secrets.
func (a *Admin) signingKeys(ctx context.Context, now time.Time) ([]*issuer.Key, error) {
	stored, err := a.db.KeyList(ctx, now)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(stored, func(k *issuer.Key) bool { return k.Algorithm == issuer.SecretAlgorithm }), nil
}

// A KeyChange is what was done to keys.
type KeyChange struct {
	Did  string `json:"did"`
	Keys []Key  `json:"keys"`
}

// Text implements Result.
func (c *KeyChange) Text() string {
	rows := make([][]string, 0, len(c.Keys))
	for _, k := range c.Keys {
		rows = append(rows, append([]string{c.Did, k.ID, k.Algorithm}, k.times()...))
	}
	return columns(rows)
}

type rotation struct {
	Overlap string `json:"overlap" help:"\x60TIME\x60 that the key signs on while its successor is published (default 10m): as long as servers keep the published keys, and a while"`
}

func rotateKeys(ctx context.Context, a *Admin, in *rotation) (*KeyChange, error) {
	overlap := issuer.KeyOverlap
	if in.Overlap != "" {
		var err error
		if overlap, err = time.ParseDuration(in.Overlap); err != nil {
			return nil, errorf(Invalid, "overlap %q: must be a number with a unit, such as 10m", in.Overlap)
		}
		if overlap < minOverlap {
			return nil, errorf(Invalid, "overlap is %v, but must be at least %v; to replace a key immediately, run 'parley auth key retire'", overlap, minOverlap)
		}
	}
	now := a.opts.Now()
	stored, err := a.signingKeys(ctx, now)
	if err != nil {
		return nil, err
	}
	signers := issuer.Signers(stored, now)
	if len(signers) == 0 {
		return nil, errorf(Conflict, "no key signs now, so there is nothing to replace; a server creates a key when it starts")
	}
	if err := roomForKey(stored); err != nil {
		return nil, err
	}
	out := &KeyChange{Did: "rotated"}
	for _, signer := range signers {
		k, err := a.db.RetireKey(ctx, signer.ID, now.Add(overlap), now)
		if err != nil {
			return nil, noKey(signer.ID, err)
		}
		out.Keys = append(out.Keys, keyOf(k, signers, now))
	}
	return out, nil
}

type keyID struct {
	ID string `json:"id" arg:"ID"`
}

func retireKey(ctx context.Context, a *Admin, in *keyID) (*KeyChange, error) {
	if err := storable(in.ID); err != nil {
		return nil, err
	}
	now := a.opts.Now()
	stored, err := a.signingKeys(ctx, now)
	if err != nil {
		return nil, err
	}
	if err := roomForKey(stored); err != nil {
		return nil, err
	}
	k, err := a.db.RetireKey(ctx, in.ID, now, now)
	if err != nil {
		return nil, noKey(in.ID, err)
	}
	return &KeyChange{"retired", []Key{keyOf(k, nil, now)}}, nil
}

func revokeKey(ctx context.Context, a *Admin, in *keyID) (*KeyChange, error) {
	if err := storable(in.ID); err != nil {
		return nil, err
	}
	now := a.opts.Now()
	k, err := a.db.RevokeKey(ctx, in.ID, now)
	if err != nil {
		return nil, noKey(in.ID, err)
	}
	return &KeyChange{"revoked", []Key{keyOf(k, nil, now)}}, nil
}

// roomForKey refuses what would have servers publish one more key if there are many.
func roomForKey(stored []*issuer.Key) error {
	published := 0
	for _, k := range stored {
		if k.State != issuer.KeyRevoked {
			published++
		}
	}
	if published >= maxPublished {
		return errorf(Conflict, "%d keys are published, the maximum; wait until some have expired, see 'parley auth key list'", published)
	}
	return nil
}

func noKey(id string, err error) error {
	if errors.Is(err, issuer.ErrRevoked) {
		return errorf(Conflict, "the key %q was revoked and signs nothing", id)
	}
	return absent(err, "key %q not found; run 'parley auth key list' to list keys", id)
}
