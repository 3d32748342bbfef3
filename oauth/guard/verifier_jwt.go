package guard

import (
	"context"
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
// fetched when first needed, remembered for an hour at most, and used on for a
// day while fetching fails. o may be nil.
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
	end    func() // ends keys
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
	remote := jwt.NewRemote(f.fetch, func(ctx context.Context) (string, error) {
		if v.opts.JWKSURI != "" {
			return v.opts.JWKSURI, nil
		}
		m, err := f.find(ctx)
		if err == nil && m.JWKSURI == "" {
			err = fmt.Errorf("the metadata of %s names no keys", v.issuer)
		}
		if err != nil {
			return "", err
		}
		return m.JWKSURI, nil
	}, &jwt.RemoteOptions{Now: v.opts.Now})
	v.end = func() {
		remote.Close()
		f.close()
	}
	return remote, nil
}

func (v *jwtVerifier) check() error { return v.err }

func (v *jwtVerifier) close() {
	if v.end != nil {
		v.end()
	}
}

// Issuers is part of Verifier.
func (v *jwtVerifier) Issuers() []string { return []string{v.issuer} }

// refused reports whether an error of package jwt is the token's own fault;
// with every other the keys could not be had.
func refused(err error) bool {
	for _, reason := range []error{
		jwt.ErrMalformed, jwt.ErrAlgorithm, jwt.ErrType, jwt.ErrNoKey, jwt.ErrSignature,
		jwt.ErrExpired, jwt.ErrNotYet, jwt.ErrIssuer, jwt.ErrAudience,
	} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// Verify is part of Verifier.
func (v *jwtVerifier) Verify(ctx context.Context, token string) (*Token, error) {
	if v.err != nil {
		return nil, v.err
	}
	got, err := jwt.Verify(ctx, token, v.keys, &jwt.Check{
		Algorithms: v.opts.Algorithms, Types: v.opts.Types, Issuer: v.issuer,
		Skew: v.opts.Skew, Now: v.opts.Now(), NeedExpiry: true,
	})
	if err != nil {
		if refused(err) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if got.OtherKey {
		return nil, errors.New("the token is bound to a key in a way that is not checked here")
	}
	c := &got.Claims
	t := &Token{
		Issuer: c.Issuer, Subject: c.Subject, Client: c.ClientID, Audience: c.Audience, Thumbprint: c.JKT,
		Expiry: later(c.Expiry, v.opts.Skew), NotBefore: later(c.NotBefore, -v.opts.Skew),
	}
	if t.Scopes, err = oauth.ParseScope(c.Scope); err != nil {
		return nil, fmt.Errorf("scope: %w", err)
	}
	if v.opts.Extend != nil {
		if err := v.opts.Extend(got.Raw, t); err != nil {
			return nil, fmt.Errorf("extended check: %w", err)
		}
	}
	return t, nil
}

// later moves a time that is known.
func later(t time.Time, d time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(d)
}
