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

// A Verifier verifies access tokens. Its methods are called by many goroutines at
// once.
type Verifier interface {
	// Issuers are the authorization servers whose tokens it verifies. It always
	// returns the same.
	Issuers() []string
	// Verify returns what a token says, if it is genuine: issued by one of the
	// issuers, unchanged, not revoked. The guard itself compares audience,
	// times and scopes with its own configuration. An error that wraps
	// ErrUnavailable means that this is not known now; every other refuses the
	// token. Callers are never shown errors; the log is. ctx ends with the
	// request, or when it has waited too long.
	Verify(ctx context.Context, token string) (*Token, error)
}

// A Token is what a verifier says of an access token.
type Token struct {
	// Issuer is one of the verifier's; Subject is the user or client of the token, and
	// Client the OAuth client that it was given to. One of the two is needed.
	Issuer, Subject, Client string
	// Audience is the resources the token is for. A token without is refused.
	Audience []string
	// Scopes are what it allows.
	Scopes []string
	// Groups are the subject's groups or roles, for [principal.Principal]. A
	// verifier made by [Func] may set them; the others leave them empty.
	Groups []string
	// Expiry is when it ends, and NotBefore when it begins, with tolerance for
	// clocks that differ, if any. The zero time is unknown.
	Expiry, NotBefore time.Time
	// Thumbprint is that of the key that the token is bound to (cnf.jkt, RFC
	// 9449, section 6). Empty: a bearer token.
	Thumbprint string
}

// ErrUnavailable says that a token cannot be verified at the moment, because an
// authorization server does not answer for instance. The request is answered
// 503, so that its client does not throw a good token away.
var ErrUnavailable = errors.New("tokens cannot be judged")

// builtinVerifier is a verifier of this package: its options may be wrong, and it may have
// something to close.
type builtinVerifier interface {
	check() error
	close()
}

// Func makes a verifier of a function. A token that it returns without issuer
// gets issuer.
func Func(issuer string, verify func(ctx context.Context, token string) (*Token, error)) Verifier {
	return &function{issuer, verify}
}

type function struct {
	issuer string
	verify func(ctx context.Context, token string) (*Token, error)
}

func (f *function) Issuers() []string { return []string{f.issuer} }

func (f *function) Verify(ctx context.Context, token string) (*Token, error) {
	t, err := f.verify(ctx, token)
	if err == nil && t != nil && t.Issuer == "" {
		named := *t
		named.Issuer = f.issuer
		t = &named
	}
	return t, err
}

// Any accepts what one of several verifiers accepts. A JWT is shown to those of
// its issuer alone. What is no JWT is shown to all, one after the other, also
// to those that ask their server by introspection: put only servers together
// that may see each other's tokens.
func Any(verifiers ...Verifier) Verifier { return anyOf(slices.Clone(verifiers)) }

type anyOf []Verifier

func (a anyOf) Issuers() []string {
	var all []string
	for _, v := range a {
		for _, issuer := range v.Issuers() {
			if !slices.Contains(all, issuer) {
				all = append(all, issuer)
			}
		}
	}
	return all
}

func (a anyOf) check() error {
	for _, v := range a {
		if v == nil {
			return errors.New("nil")
		}
		if v, ok := v.(builtinVerifier); ok {
			if err := v.check(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a anyOf) close() {
	for _, v := range a {
		if v, ok := v.(builtinVerifier); ok {
			v.close()
		}
	}
}

func (a anyOf) Verify(ctx context.Context, token string) (*Token, error) {
	issuer := ""
	if t, err := jwt.Peek(token); err == nil {
		issuer = t.Claims.Issuer
	}
	var refusals []error
	for _, v := range a {
		if issuer != "" && !slices.Contains(v.Issuers(), issuer) {
			continue
		}
		t, err := v.Verify(ctx, token)
		switch {
		case err != nil:
			refusals = append(refusals, err)
		case t == nil || !slices.Contains(v.Issuers(), t.Issuer):
			refusals = append(refusals, errors.New("the issuer is none of the verifier's"))
		default:
			return t, nil
		}
	}
	if refusals == nil {
		return nil, errors.New("nobody knows the issuer of the token")
	}
	return nil, errors.Join(refusals...)
}

// A metadataFinder finds the metadata of an issuer.
type metadataFinder struct {
	fetch  *oauth.Fetcher
	issuer string
	mine   bool // fetch is not shared
}

// newFinder makes a finder. A server on this machine may be asked over
// loopback, and no other.
func newFinder(issuer string, fetch *oauth.Fetcher, loopback bool) metadataFinder {
	f := metadataFinder{fetch, issuer, fetch == nil}
	if fetch == nil {
		f.fetch = oauth.NewFetcher(nil)
	}
	if loopback {
		f.fetch = f.fetch.Loopback()
	}
	return f
}

func (f metadataFinder) close() {
	if f.mine {
		f.fetch.Close()
	}
}

// find fetches the metadata: the first document that is there and is that of
// the issuer.
func (f metadataFinder) find(ctx context.Context) (*oauth.ServerMetadata, error) {
	places, err := oauth.ServerMetadataURLs(f.issuer)
	if err != nil {
		return nil, fmt.Errorf("metadata of %s: %w", f.issuer, err)
	}
	var errs []error
	for _, place := range places {
		r, err := f.fetch.Get(ctx, place, nil)
		if err == nil && (r.Status != 200 || !r.JSON()) {
			err = fmt.Errorf("%s: status %d and no JSON document", place, r.Status)
		}
		var m *oauth.ServerMetadata
		if err == nil {
			m, err = oauth.ParseServerMetadata(r.Body, f.issuer)
		}
		if err == nil {
			return m, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("metadata of %s: %w", f.issuer, errors.Join(errs...))
}

// onLoopback reports whether a URL that is an endpoint is on this machine.
func onLoopback(raw string) bool {
	u, err := oauth.CheckEndpoint(raw)
	return err == nil && oauth.LoopbackHost(u.Hostname())
}

// tolerance fills in how far clocks may differ.
func tolerance(skew time.Duration) time.Duration {
	if skew == 0 {
		return 30 * time.Second
	}
	return max(skew, 0)
}
