package guard

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
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
	// Recheck is when the token must be verified anew at the latest, if that is
	// before Options.CacheAge is over. The zero time: then.
	Recheck time.Time

	nominal time.Time // Expiry without tolerance, if it has some
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
	// seesRevocation reports whether a token that was revoked is refused when it is verified.
	seesRevocation() bool
	// try tries what verification needs of the issuers; see Guard.Check.
	try(ctx context.Context) []error
	// ready says whether tokens of one of its issuers can be judged; see Guard.Ready.
	ready(ctx context.Context, issuer string, within time.Duration) error
	Issuers() []string
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
// that may see each other's tokens. For servers that may not there is [ByIssuer].
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

func (a anyOf) seesRevocation() bool {
	return !slices.ContainsFunc(a, func(v Verifier) bool {
		b, ok := v.(builtinVerifier)
		return ok && !b.seesRevocation()
	})
}

// try tries all at once.
func (a anyOf) try(ctx context.Context) []error {
	errs := make([][]error, len(a))
	var trying sync.WaitGroup
	for i, v := range a {
		if v, ok := v.(builtinVerifier); ok {
			trying.Go(func() { errs[i] = v.try(ctx) })
		}
	}
	trying.Wait()
	return slices.Concat(errs...)
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
		return nil, foreignIssuer(issuer, a.Issuers())
	}
	return nil, errors.Join(refusals...)
}

// ByIssuer shows each token to one verifier alone: a JWT to that of the issuer that it names, and
// what names no issuer to the only one of verifiers that is not made by [JWT]. If there are several
// of those, such a token is refused, since the wrong one would get hold of it. No two verifiers may
// have an issuer in common; issuers are compared letter by letter (RFC 8414, section 3.3).
func ByIssuer(verifiers ...Verifier) Verifier { return &byIssuer{anyOf: slices.Clone(verifiers)} }

type byIssuer struct{ anyOf }

func (b *byIssuer) check() error {
	if err := b.anyOf.check(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, v := range b.anyOf {
		for _, issuer := range v.Issuers() {
			if seen[issuer] {
				return fmt.Errorf("two verifiers are for %s", issuer)
			}
			seen[issuer] = true
		}
	}
	return nil
}

func (b *byIssuer) Verify(ctx context.Context, token string) (*Token, error) {
	v, err := b.of(token)
	if err != nil {
		return nil, err
	}
	t, err := v.Verify(ctx, token)
	if err == nil && (t == nil || !slices.Contains(v.Issuers(), t.Issuer)) {
		return nil, errors.New("the issuer is none of the verifier's")
	}
	return t, err
}

// of is the verifier that a token is shown to.
func (b *byIssuer) of(token string) (Verifier, error) {
	if t, err := jwt.Peek(token); err == nil && t.Claims.Issuer != "" {
		for _, v := range b.anyOf {
			if slices.Contains(v.Issuers(), t.Claims.Issuer) {
				return v, nil
			}
		}
		return nil, foreignIssuer(t.Claims.Issuer, b.Issuers())
	}
	var only Verifier
	for _, v := range b.anyOf {
		if _, ok := v.(*jwtVerifier); ok {
			continue
		}
		if only != nil {
			return nil, failed("issuer", "the token names no issuer, and several could be asked about it")
		}
		only = v
	}
	if only == nil {
		return nil, failed("form", "the token is no JWT that names its issuer")
	}
	return only, nil
}

// foreignIssuer is the error of a token of an issuer that no verifier knows.
func foreignIssuer(issuer string, known []string) error {
	return failed("issuer", "the token is of %.200q, and those trusted are %s", issuer, quoted(known))
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

// A setupError is one that does not pass by itself: an operator has to change something.
type setupError struct{ error }

func (e *setupError) Unwrap() error { return e.error }

// unavailable says that tokens cannot be verified now, because of err.
func unavailable(err error) error {
	if _, ok := errors.AsType[*setupError](err); ok {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// find fetches the metadata: the first document that is there and is that of
// the issuer. The error is a *setupError if a document or an address is a wrong one, or no document
// is there.
func (f metadataFinder) find(ctx context.Context) (*oauth.ServerMetadata, error) {
	places, err := oauth.ServerMetadataURLs(f.issuer)
	if err != nil {
		return nil, fmt.Errorf("metadata of %s: %w", f.issuer, err)
	}
	var wrong, absent, passing []error
	for _, place := range places {
		r, err := f.fetch.Get(ctx, place, nil)
		switch {
		case err == nil && r.Status == http.StatusOK && r.Document():
			m, err := oauth.ParseServerMetadata(r.Body, f.issuer)
			if err == nil && m.Issuer != f.issuer {
				// Its tokens have its own spelling, and clients of others compare that with ours.
				err = fmt.Errorf("%w: write the issuer as it does", &oauth.IssuerError{Want: f.issuer, Got: m.Issuer})
			}
			if err == nil {
				return m, nil
			}
			wrong = append(wrong, fmt.Errorf("%s: %w", place, err))
		case err == nil && r.Status < http.StatusInternalServerError && r.Status != http.StatusTooManyRequests:
			absent = append(absent, fmt.Errorf("%s: status %d and no JSON document", place, r.Status))
		case err == nil:
			passing = append(passing, fmt.Errorf("%s: status %d", place, r.Status))
		case errors.As(err, new(*oauth.BlockedError)), errors.As(err, new(*tls.CertificateVerificationError)):
			wrong = append(wrong, err)
		default:
			passing = append(passing, err)
		}
	}
	err = fmt.Errorf("metadata of %s: %w", f.issuer, errors.Join(slices.Concat(wrong, passing, absent)...))
	if len(wrong) > 0 || len(passing) == 0 {
		err = &setupError{err}
	}
	return nil, err
}

// absence says that metadata have none of something, or an endpoint for it that was passed over.
func absence(m *oauth.ServerMetadata, endpoint, none string) string {
	if slices.Contains(m.Ignored, endpoint) {
		return "no " + endpoint + " that can be used: it must be an https URL"
	}
	return none
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
