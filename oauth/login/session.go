package login

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// Kinds of records in a Store.
const (
	kindBinding = "resource"
	kindTokens  = "tokens"
	kindClient  = "client"
)

// storeName is the name of a record: a hash, which suits file systems and tells nothing.
func storeName(kind string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return kind + "." + hex.EncodeToString(sum[:])
}

// binding says which authorization server and client a resource is used with.
type binding struct {
	// ID is the canonical form of Resource. A resource without metadata is its whole origin.
	ID string `json:"id"`
	// Resource is the identifier as the resource names itself; empty for one without metadata.
	Resource string `json:"resource,omitzero"`
	// Metadata is where the document about the resource lay, which only a challenge may name.
	Metadata string `json:"metadata,omitzero"`
	Issuer   string `json:"issuer"`
	ClientID string `json:"client_id,omitzero"`
	// Requested are all scopes that were asked for. They outlast the tokens.
	Requested []string `json:"requested,omitzero"`
}

// tokensName is the name of the record of the tokens.
func (b *binding) tokensName() string { return storeName(kindTokens, b.Issuer, b.ClientID, b.ID) }

// tokens are what one authorization server gave one client for one resource. They never change.
type tokens struct {
	binding
	// Generation tells it from those before and after.
	Generation string `json:"generation"`
	// TokenEndpoint is where the tokens came from. A refresh token is sent nowhere else.
	TokenEndpoint string   `json:"token_endpoint"`
	Access        string   `json:"access_token"`
	Type          string   `json:"token_type"`
	Refresh       string   `json:"refresh_token,omitzero"`
	Granted       []string `json:"granted,omitzero"`
	// Issued and Expires are when Access was given and ends, in seconds since 1970; 0 is unknown.
	Issued  int64 `json:"issued,omitzero"`
	Expires int64 `json:"expires,omitzero"`
	// Key is the private key that the tokens are bound to, if they are.
	Key wire.RawValue `json:"key,omitzero"`
}

// registration is what a dynamic registration gave.
type registration struct {
	Issuer   string `json:"issuer"`
	ClientID string `json:"client_id"`
	Secret   string `json:"client_secret,omitzero"`
	Method   string `json:"method,omitzero"`
	// TokenEndpoint and DeviceEndpoint are where the secret may be sent.
	TokenEndpoint  string   `json:"token_endpoint"`
	DeviceEndpoint string   `json:"device_authorization_endpoint,omitzero"`
	RedirectURIs   []string `json:"redirect_uris,omitzero"`
	Expires        int64    `json:"expires,omitzero"`
}

func (r *registration) credentials() *Credentials {
	return &Credentials{
		Issuer: r.Issuer, ClientID: r.ClientID, Secret: r.Secret, Method: r.Method,
		RedirectURIs: slices.Clone(r.RedirectURIs), Dynamic: true, Expires: unixTime(r.Expires),
	}
}

// unixTime is a time in seconds since 1970; 0 is unknown.
func unixTime(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// lasts reports whether the access token is good for at least d from now.
func (t *tokens) lasts(now time.Time, d time.Duration) bool {
	return t.Expires == 0 || now.Add(d).Before(unixTime(t.Expires))
}

// due reports whether to refresh: a margin before the end, but not in the first half of a life.
func (t *tokens) due(now time.Time, margin time.Duration) bool {
	if life := time.Duration(t.Expires-t.Issued) * time.Second; t.Issued != 0 && life > 0 {
		margin = min(margin, life/2)
	}
	return !t.lasts(now, margin)
}

// read reads a record into v, a pointer, and reports whether there is one. One that cannot be read
// is as good as none: it is replaced in time.
func (c *Client) read(ctx context.Context, name string, v any) (bool, error) {
	data, err := c.o.Store.Get(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the store of tokens: %w", err)
	}
	if err := wire.Decode(data, v); err != nil {
		c.log.WarnContext(ctx, "stored record is unreadable", "name", name)
		return false, nil //nolint:nilerr // see above
	}
	return true, nil
}

func (c *Client) write(ctx context.Context, name string, v any) error {
	data, err := wire.Marshal(v)
	if err == nil {
		err = c.o.Store.Set(ctx, name, data)
	}
	if err != nil {
		return fmt.Errorf("write the store of tokens: %w", err)
	}
	return nil
}

// session is a binding and its tokens. It never changes but for nonces and worked.
type session struct {
	binding
	tokens *tokens     // nil: none
	dpop   *dpopSigner // nil: bearer tokens

	signedIn      time.Time     // when there was a sign-in for the tokens, in this process
	signInBackoff time.Duration // until another one, if the tokens do not work
	accepted      atomic.Bool   // a resource took the tokens
}

// load reads what the store has of a resource; nil if nothing.
func (c *Client) load(ctx context.Context, id string) (*session, error) {
	s := &session{}
	ok, err := c.read(ctx, storeName(kindBinding, id), &s.binding)
	if err != nil || !ok || s.ID != id {
		return nil, err
	}
	t := &tokens{}
	ok, err = c.read(ctx, s.tokensName(), t)
	if err != nil || !ok || t.tokensName() != s.tokensName() {
		return s, err
	}
	made, err := s.with(t)
	if err != nil || !fitsHeader(t.Access) || !fitsHeader(t.Refresh) {
		c.log.WarnContext(ctx, "stored tokens are of no use", "resource", id)
		return s, nil //nolint:nilerr // as good as none: see read
	}
	return made, nil
}

// fitsHeader reports whether a header can carry a token.
func fitsHeader(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// with is a session with other tokens of the same sign-in; t may be nil.
func (s *session) with(t *tokens) (*session, error) {
	made := &session{binding: s.binding, tokens: t, signedIn: s.signedIn, signInBackoff: s.signInBackoff}
	made.accepted.Store(s.accepted.Load())
	switch {
	case t == nil || len(t.Key) == 0:
	case s.dpop != nil && s.tokens != nil && string(s.tokens.Key) == string(t.Key):
		made.dpop = s.dpop // it knows the nonces
	default:
		key, err := jwt.ParseKey(t.Key)
		if err != nil {
			return nil, errors.New("read the key of stored tokens: not a private key")
		}
		made.dpop = newDPoPSigner(key)
	}
	return made, nil
}

// save makes a session the one of its resource, in the store first. A rotated refresh token cannot
// be had again, so that the end of ctx does not stop it.
func (c *Client) save(ctx context.Context, s *session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	err := errors.Join(c.write(ctx, s.tokensName(), s.tokens), c.write(ctx, storeName(kindBinding, s.ID), &s.binding))
	if err != nil {
		c.log.ErrorContext(ctx, "tokens are kept in memory alone", "resource", s.ID, "error", err)
	}
	c.cache(s.ID, s)
}

// dropTokens forgets one generation of tokens, and returns the session without them: if the store
// has another generation by now, that stays. The lock of the resource is held.
func (c *Client) dropTokens(ctx context.Context, failed *session) *session {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	var now tokens
	ok, err := c.read(ctx, failed.tokensName(), &now)
	if err == nil && ok && now.Generation == failed.tokens.Generation {
		err = c.o.Store.Delete(ctx, failed.tokensName())
	}
	if err != nil {
		c.log.WarnContext(ctx, "stored tokens were not deleted", "resource", failed.ID, "error", err)
	}
	left, _ := failed.with(nil)
	c.cache(failed.ID, left)
	return left
}

// generationOf is the generation of a session's tokens, or "".
func generationOf(s *session) string {
	if s == nil || s.tokens == nil {
		return ""
	}
	return s.tokens.Generation
}

// newTokens makes a generation of a response.
func newTokens(b *binding, endpoint string, r *oauth.TokenResponse, now time.Time) *tokens {
	t := &tokens{
		binding: *b, Generation: oauth.NewSecret(), TokenEndpoint: endpoint,
		Access: r.AccessToken, Type: r.TokenType, Refresh: r.RefreshToken, Granted: b.Requested,
	}
	if granted, err := oauth.ParseScope(r.Scope); err == nil && len(granted) > 0 {
		t.Granted = granted
	}
	if r.ExpiresIn > 0 {
		t.Issued = now.Unix()
		t.Expires = now.Add(time.Duration(min(r.ExpiresIn, maxLife)) * time.Second).Unix()
	}
	return t
}

// maxLife is the longest life of a token that is believed, in seconds.
const maxLife = 10 * 365 * 24 * 60 * 60
