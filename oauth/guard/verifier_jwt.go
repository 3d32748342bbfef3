package guard

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// JWTOptions adjust JWT. The zero value, and nil, fit servers that keep to RFC
// 9068.
type JWTOptions struct {
	// JWKS are the keys of the issuer, as a JWK set. JWKSURI is where they are
	// fetched. Default: where the metadata of the issuer says.
	JWKS    []byte
	JWKSURI string
	// Algorithms that the issuer may sign with. Default: all asymmetric ones
	// of JOSE; nothing else is ever taken.
	Algorithms []string
	// Types are the types of tokens, as their header names them. Default:
	// "at+jwt" alone (RFC 9068). Many servers write "JWT", or nothing, which is
	// "": then ID tokens look like access tokens, and only the audience tells
	// them.
	Types []string
	// Skew is how far the clock of the issuer may differ. Default 30 s; -1: not at all.
	Skew time.Duration
	// KeysMaxAge bounds how long a key that the issuer has dropped is taken: by all caches together,
	// Options.CacheAge too, at most this long, and one fetch longer. The keys are fetched anew when
	// half of the time is over, while there are requests; if they cannot be had within it, tokens
	// cannot be judged (503). A stream that was let in before goes on until its token ends. A second
	// or more. Default 0: as [JWT] says.
	KeysMaxAge time.Duration
	// Extend, if not nil, reads what the usual claims do not say out of the
	// payload, such as roles, and may change or refuse the token. Default nil.
	Extend func(payload []byte, t *Token) error
	// Fetch gets metadata and keys. Default: oauth.NewFetcher(nil), which
	// never reaches into private networks.
	Fetch *oauth.Fetcher
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// JWT verifies tokens that are JWTs signed by issuer (RFC 9068). Keys are
// fetched when first needed, and again when a token names one that is not known, at most once in
// 10 s; until then such a token is not judged (503). A key that the issuer has dropped is taken for
// an hour at most, or for as long as the issuer's Cache-Control says if that is less, plus
// Options.CacheAge; for a day while the keys cannot be fetched. KeysMaxAge bounds all that. o may be
// nil.
func JWT(issuer string, o *JWTOptions) Verifier {
	v := &jwtVerifier{issuer: issuer}
	if o != nil {
		v.opts = *o
	}
	v.opts.Skew = tolerance(v.opts.Skew)
	if v.opts.Algorithms == nil {
		v.opts.Algorithms = jwt.DefaultAlgorithms()
	}
	if v.opts.Types == nil {
		v.opts.Types = []string{jwt.TypeAccessToken}
	}
	if v.opts.Now == nil {
		v.opts.Now = time.Now
	}
	v.keys, v.err = v.source()
	return v
}

type jwtVerifier struct {
	issuer string
	opts   JWTOptions
	keys   jwt.Source
	remote *jwt.Remote // keys, if they are fetched
	end    func()      // ends keys
	err    error
}

// source says where the keys come from.
func (v *jwtVerifier) source() (jwt.Source, error) {
	if _, err := oauth.CheckIssuer(v.issuer); err != nil {
		return nil, fmt.Errorf("issuer: %w", err)
	}
	for _, name := range v.opts.Algorithms {
		if !slices.Contains(jwt.DefaultAlgorithms(), name) {
			return nil, fmt.Errorf("algorithm %q is not for tokens", name)
		}
	}
	switch d := v.opts.KeysMaxAge; {
	case d != 0 && v.opts.JWKS != nil:
		return nil, errors.New("KeysMaxAge is for keys that are fetched, not for those of JWKS")
	case d != 0 && d < time.Second:
		return nil, fmt.Errorf("KeysMaxAge is %v, and must be a second at least", d)
	}
	if v.opts.JWKS != nil {
		set, err := jwt.ParseSet(v.opts.JWKS)
		if err != nil {
			return nil, fmt.Errorf("keys of %s: %w", v.issuer, err)
		}
		return set, nil
	}
	where := v.issuer
	if v.opts.JWKSURI != "" {
		if _, err := oauth.CheckEndpoint(v.opts.JWKSURI); err != nil {
			return nil, fmt.Errorf("keys of %s: %w", v.issuer, err)
		}
		where = v.opts.JWKSURI
	}
	f := newFinder(v.issuer, v.opts.Fetch, onLoopback(where))
	v.remote = jwt.NewRemote(f.fetch, func(ctx context.Context) (string, error) {
		if v.opts.JWKSURI != "" {
			return v.opts.JWKSURI, nil
		}
		m, err := f.find(ctx)
		if err == nil && m.JWKSURI == "" {
			err = fmt.Errorf("the metadata of %s names %s", v.issuer, absence(m, "jwks_uri", "no keys"))
		}
		if err != nil {
			return "", err
		}
		return m.JWKSURI, nil
	}, &jwt.RemoteOptions{Now: v.opts.Now, Limit: v.opts.KeysMaxAge})
	v.end = func() {
		v.remote.Close()
		f.close()
	}
	return v.remote, nil
}

func (v *jwtVerifier) check() error { return v.err }

func (v *jwtVerifier) close() {
	if v.end != nil {
		v.end()
	}
}

func (v *jwtVerifier) seesRevocation() bool { return false }

// try fetches the metadata and the keys.
func (v *jwtVerifier) try(ctx context.Context) []error {
	if _, err := v.keys.Find(ctx, "", jwt.DefaultAlgorithms()[0]); err != nil && !errors.As(err, new(*jwt.DoubtError)) {
		return []error{unavailable(err)}
	}
	return nil
}

// Issuers is part of Verifier.
func (v *jwtVerifier) Issuers() []string { return []string{v.issuer} }

// Verify is part of Verifier.
func (v *jwtVerifier) Verify(ctx context.Context, token string) (*Token, error) {
	if v.err != nil {
		return nil, v.err
	}
	keys := v.keys
	limited := &limitedKeys{remote: v.remote}
	if v.opts.KeysMaxAge > 0 {
		keys = limited
	}
	got, err := jwt.Verify(ctx, token, keys, &jwt.Check{
		Algorithms: v.opts.Algorithms, Types: v.opts.Types, Issuer: v.issuer,
		Skew: v.opts.Skew, Now: v.opts.Now(), NeedExpiry: true,
	})
	if err != nil {
		if jwt.Refused(err) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if got.OtherKey {
		return nil, failed("proof", "the token is bound to a key in a way that is not checked here")
	}
	c := &got.Claims
	t := &Token{
		nominal: c.Expiry,
		Issuer:  c.Issuer, Subject: c.Subject, Client: c.ClientID, Audience: c.Audience, Thumbprint: c.JKT,
		Expiry: later(c.Expiry, v.opts.Skew), NotBefore: later(c.NotBefore, -v.opts.Skew), Recheck: limited.until,
	}
	if t.Scopes, err = oauth.ParseScope(c.Scope); err != nil {
		return nil, failed("scope", "scope: %w", err)
	}
	if v.opts.Extend != nil {
		if err := v.opts.Extend(got.Raw, t); err != nil {
			return nil, fmt.Errorf("extended check: %w", err)
		}
	}
	return t, nil
}

// limitedKeys are the keys for one token, which say until when they may be used.
type limitedKeys struct {
	remote *jwt.Remote
	until  time.Time
}

// Find implements jwt.Source.
func (l *limitedKeys) Find(ctx context.Context, id, algorithm string) (keys []crypto.PublicKey, err error) {
	keys, l.until, err = l.remote.FindUntil(ctx, id, algorithm)
	return keys, err
}

// later moves a time that is known.
func later(t time.Time, d time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(d)
}
