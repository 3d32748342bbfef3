package jwt

import (
	"context"
	"crypto"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/parley-mcp/parley/internal/wire"
)

// Check says what a token must be.
type Check struct {
	// Algorithms and Types are what is taken; both are required. Type ""
	// stands for a token without typ. Algorithms that are not among
	// DefaultAlgorithms are refused even if they are named here.
	Algorithms []string
	Types      []string
	// Issuer must be the token's, if not empty.
	Issuer string
	// Audience: one of them must be among the token's, if there are any.
	Audience []string
	// Skew is how far clocks may differ. Default 0.
	Skew time.Duration
	// Now is the time. Default time.Now().
	Now time.Time
	// NeedExpiry refuses tokens without exp, with ErrExpired.
	NeedExpiry bool
}

// A Token is a verified token.
type Token struct {
	// Type is the one of Check.Types that the token has; from Peek what the
	// token says.
	Type, KeyID, Algorithm string
	Claims                 Claims
	// OtherKey says that the token is bound to a key in another way than by
	// cnf.jkt, such as to a certificate (RFC 8705). A verifier that cannot check that
	// must not take it for a bearer token.
	OtherKey bool
	// Raw is the payload, for claims that are not in Claims.
	Raw wire.RawValue
}

// Verification fails for one of these reasons, to be found with errors.Is.
var (
	ErrMalformed = errors.New("not a signed token")
	ErrAlgorithm = errors.New("algorithm is not allowed")
	ErrType      = errors.New("type of token is not allowed")
	ErrNoKey     = errors.New("no key fits")
	ErrSignature = errors.New("signature is wrong")
	ErrExpired   = errors.New("token has expired")
	ErrNotYet    = errors.New("token is not valid yet")
	ErrIssuer    = errors.New("issuer is another")
	ErrAudience  = errors.New("audience is another")
)

// Refused reports whether an error of [Verify] is the token's own fault; with every other the keys
// could not be had, and the token may be good.
func Refused(err error) bool {
	for _, reason := range []error{
		ErrMalformed, ErrAlgorithm, ErrType, ErrNoKey, ErrSignature, ErrExpired, ErrNotYet, ErrIssuer, ErrAudience,
	} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

const (
	maxToken = 64 << 10
	// maxTries is how many keys are tried for a token that names none.
	maxTries = 16
)

// Verify checks a compact JWS of at most 64 KiB: form, type, algorithm, key,
// signature, then claims. Headers jku, jwk, x5u, x5c are ignored and crit is
// refused. The payload is strict JSON (no duplicate members). An error that is
// none of those above is the Source's: nothing else speaks against the token.
func Verify(ctx context.Context, token string, keys Source, c *Check) (*Token, error) {
	if c == nil {
		c = &Check{}
	}
	p, err := parse(token, maxToken)
	if err != nil {
		return nil, err
	}
	typ, ok := findType(p.typ, c.Types)
	if !ok {
		return nil, fmt.Errorf("%w: typ is %.64q, and these are taken: %q", ErrType, p.typ, c.Types)
	}
	if !allowed(p.algorithm, c.Algorithms) {
		return nil, fmt.Errorf("%w: %.32q", ErrAlgorithm, p.algorithm)
	}
	found, err := keys.Find(ctx, p.keyID, p.algorithm)
	if err != nil {
		return nil, p.withoutKey(c, fmt.Errorf("find the key of a token: %w", err))
	}
	if err := p.verify(found); err != nil {
		return nil, err
	}
	t, err := p.open()
	if err != nil {
		return nil, err
	}
	t.Type = typ
	if err := c.claims(&t.Claims); err != nil {
		return nil, err
	}
	return t, nil
}

// withoutKey is the error of a token whose key could not be had: its own fault if it would be
// refused with any key, such as a token of another issuer, else the failure to find the key.
func (p *parts) withoutKey(c *Check, failure error) error {
	t, err := p.open()
	if err == nil {
		err = c.claims(&t.Claims)
	}
	if err != nil {
		return err
	}
	return failure
}

// Peek reads the claims of a token without verifying anything: to choose the
// key source by issuer, never to decide.
func Peek(token string) (*Token, error) {
	p, err := parse(token, maxToken)
	if err != nil {
		return nil, err
	}
	return p.open()
}

// claims checks what a token says against what it must.
func (c *Check) claims(t *Claims) error {
	now := c.Now
	if now.IsZero() {
		now = time.Now()
	}
	if c.Issuer != "" && t.Issuer != c.Issuer {
		return fmt.Errorf("%w: %.200q, not %q", ErrIssuer, t.Issuer, c.Issuer)
	}
	if len(c.Audience) > 0 && !slices.ContainsFunc(t.Audience, func(a string) bool { return slices.Contains(c.Audience, a) }) {
		return ErrAudience
	}
	if t.Expiry.IsZero() {
		if c.NeedExpiry {
			return fmt.Errorf("no exp: %w", ErrExpired)
		}
	} else if !now.Before(t.Expiry.Add(c.Skew)) {
		// RFC 7519, section 4.1.4: on or after.
		return fmt.Errorf("%w: at %s", ErrExpired, t.Expiry.UTC().Format(time.RFC3339))
	}
	if now.Add(c.Skew).Before(t.NotBefore) {
		return fmt.Errorf("%w: before %s", ErrNotYet, t.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// parts is a token whose form is right, and of which nothing else is known.
type parts struct {
	token                 string
	header                wire.Object
	typ, keyID, algorithm string
	payload               []byte
}

// strict decodes base64url without padding, in which the bits that are left
// over are zero: a token has one spelling.
var strict = base64.RawURLEncoding.Strict()

// parse splits a compact JWS (RFC 7515, section 7.1). The JSON and other
// forms, crit and b64 are refused (sections 4.1.11 and RFC 7797).
func parse(token string, limit int) (*parts, error) {
	if len(token) > limit {
		return nil, fmt.Errorf("%w: too long", ErrMalformed)
	}
	// Go's decoder skips line breaks.
	if strings.ContainsAny(token, "\r\n") || strings.Count(token, ".") != 2 {
		return nil, ErrMalformed
	}
	head, rest, _ := strings.Cut(token, ".")
	body, signature, _ := strings.Cut(rest, ".")
	text, err := strict.DecodeString(head)
	if err != nil {
		return nil, ErrMalformed
	}
	p := &parts{token: token}
	if p.payload, err = strict.DecodeString(body); err != nil {
		return nil, ErrMalformed
	}
	if b, err := strict.DecodeString(signature); err != nil || len(b) == 0 {
		return nil, ErrMalformed
	}
	if p.header, err = wire.ParseObject(text, wire.Limits{}); err != nil {
		return nil, ErrMalformed
	}
	for _, name := range []string{"crit", "b64"} {
		if _, ok := p.header.Member(name); ok {
			return nil, fmt.Errorf("%w: it asks for an extension", ErrMalformed)
		}
	}
	r := reader{o: p.header}
	p.typ, p.keyID, p.algorithm = r.text("typ"), r.text("kid"), r.text("alg")
	return p, r.err
}

// verify checks the signature with the keys that fit, of which one must.
func (p *parts) verify(keys []crypto.PublicKey) error {
	jws, err := jose.ParseSignedCompact(p.token, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(p.algorithm)})
	if err != nil {
		// A header that is of no interest here, such as a jwk that is none.
		return fmt.Errorf("%w: header", ErrMalformed)
	}
	tries := 0
	for _, k := range keys {
		if !fits(k, p.algorithm) {
			continue
		}
		if tries++; tries > maxTries {
			break
		}
		if _, err := jws.Verify(k); err == nil {
			return nil
		}
	}
	if tries == 0 {
		return ErrNoKey
	}
	return ErrSignature
}

// open reads the payload.
func (p *parts) open() (*Token, error) {
	o, err := wire.ParseObject(p.payload, wire.Limits{})
	if err != nil {
		return nil, fmt.Errorf("%w: payload", ErrMalformed)
	}
	t := &Token{Type: p.typ, KeyID: p.keyID, Algorithm: p.algorithm, Raw: o.Raw()}
	if t.Claims, t.OtherKey, err = parseClaims(o); err != nil {
		return nil, err
	}
	return t, nil
}

// allowed reports whether an algorithm is among those listed and asymmetric
// (RFC 8725, section 3.1).
func allowed(algorithm string, list []string) bool {
	return slices.Contains(list, algorithm) && slices.Contains(algorithms, algorithm)
}

// findType returns the listed type that a typ header names (RFC 7515, section
// 4.1.9).
func findType(typ string, list []string) (string, bool) {
	for _, t := range list {
		if strings.EqualFold(bareType(t), bareType(typ)) {
			return t, true
		}
	}
	return "", false
}

func bareType(typ string) string {
	const prefix = "application/"
	if len(typ) > len(prefix) && strings.EqualFold(typ[:len(prefix)], prefix) {
		return typ[len(prefix):]
	}
	return typ
}
