package login

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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

// storeName is the name of a record. It is made of a hash, so that it has one
// length, suits file systems and tells nothing.
func storeName(kind string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return kind + "." + hex.EncodeToString(sum[:])
}

// binding says which authorization server and client a resource is used with.
type binding struct {
	// ID is the canonical form of Resource. A resource without metadata is its
	// whole origin.
	ID string `json:"id"`
	// Resource is the identifier as the resource names itself, which is sent
	// as the resource parameter; empty for one without metadata.
	Resource string `json:"resource,omitzero"`
	Issuer   string `json:"issuer"`
	ClientID string `json:"client_id,omitzero"`
	// Requested are all scopes that were asked for; step-ups add to them, and
	// they outlast the tokens.
	Requested []string `json:"requested,omitzero"`
}

// tokens are what one authorization server gave one client for one resource:
// one generation, which is replaced whole. They never change.
type tokens struct {
	// Generation tells it from those before and after.
	Generation string `json:"generation"`
	ID         string `json:"id"`
	Resource   string `json:"resource,omitzero"`
	Issuer     string `json:"issuer"`
	ClientID   string `json:"client_id,omitzero"`
	// TokenEndpoint is where the tokens came from. A refresh token is sent
	// nowhere else, whatever the metadata says by then.
	TokenEndpoint string   `json:"token_endpoint"`
	Access        string   `json:"access_token"`
	Type          string   `json:"token_type"`
	Refresh       string   `json:"refresh_token,omitzero"`
	Granted       []string `json:"granted,omitzero"`
	// Requested are the scopes that these tokens were asked for with.
	Requested []string `json:"requested,omitzero"`
	// Issued and Expires are when Access was given and ends, in seconds since
	// 1970; 0 is unknown.
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
	// TokenEndpoint is where the secret may be sent.
	TokenEndpoint string   `json:"token_endpoint"`
	RedirectURIs  []string `json:"redirect_uris,omitzero"`
	Expires       int64    `json:"expires,omitzero"`
}

func (r *registration) credentials() *Credentials {
	c := &Credentials{
		Issuer: r.Issuer, ClientID: r.ClientID, Secret: r.Secret, Method: r.Method,
		RedirectURIs: slices.Clone(r.RedirectURIs), Dynamic: true,
	}
	if r.Expires != 0 {
		c.Expires = time.Unix(r.Expires, 0)
	}
	return c
}

func (t *tokens) expiry() time.Time {
	if t.Expires == 0 {
		return time.Time{}
	}
	return time.Unix(t.Expires, 0)
}

// lasts reports whether the access token is good for at least d from now.
func (t *tokens) lasts(now time.Time, d time.Duration) bool {
	return t.Expires == 0 || now.Add(d).Before(t.expiry())
}

// due reports whether it is time to replace the access token: a margin before
// its end, but not in the first half of a short life.
func (t *tokens) due(now time.Time, margin time.Duration) bool {
	if life := time.Duration(t.Expires-t.Issued) * time.Second; t.Issued != 0 && life > 0 {
		margin = min(margin, life/2)
	}
	return !t.lasts(now, margin)
}

func (t *tokens) name() string { return storeName(kindTokens, t.Issuer, t.ClientID, t.ID) }

// read reads a record into v, a pointer, and reports whether there is one. One
// that cannot be read is as good as none: it is replaced in time.
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

// write writes a record.
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

// session is what is known of a resource: a binding and its tokens. It never
// changes but for the prover's nonces and the probe; a new one takes its place.
type session struct {
	binding
	tokens *tokens // nil: none
	prover *prover // nil: bearer tokens
	probe  *probe
}

// load reads what the store has of a resource; nil if nothing.
func (c *Client) load(ctx context.Context, id string) (*session, error) {
	s := &session{probe: &probe{}}
	ok, err := c.read(ctx, storeName(kindBinding, id), &s.binding)
	if err != nil || !ok || s.ID != id {
		return nil, err
	}
	t := &tokens{ID: id, Issuer: s.Issuer, ClientID: s.ClientID}
	ok, err = c.read(ctx, t.name(), t)
	if err != nil || !ok || t.ID != id || t.Issuer != s.Issuer || t.ClientID != s.ClientID {
		return s, err
	}
	made, err := s.with(t)
	if err != nil || !sendable(t.Access) || !sendable(t.Refresh) {
		c.log.WarnContext(ctx, "stored tokens are of no use", "resource", id)
		return s, nil //nolint:nilerr // as good as none: see read
	}
	return made, nil
}

// sendable reports whether a header can carry a token: what is stored may have
// been written by others.
func sendable(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// with is a session with other tokens.
func (s *session) with(t *tokens) (*session, error) {
	made := &session{binding: s.binding, tokens: t, probe: &probe{}}
	if len(t.Key) == 0 {
		return made, nil
	}
	if s.prover != nil && s.tokens != nil && string(s.tokens.Key) == string(t.Key) {
		made.prover = s.prover // it knows the nonces
		return made, nil
	}
	key, err := jwt.ParseKey(t.Key)
	if err != nil {
		return nil, errors.New("read the key of stored tokens: not a private key")
	}
	made.prover = newProver(key)
	return made, nil
}

// save makes a session the one of its resource, in the store first. A store
// that fails costs the next process a sign-in, but not this one: a rotated
// refresh token cannot be had again.
func (c *Client) save(ctx context.Context, s *session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	err := c.write(ctx, s.tokens.name(), s.tokens)
	if err == nil {
		err = c.write(ctx, storeName(kindBinding, s.ID), &s.binding)
	}
	if err != nil {
		s.probe.unsaved.Store(true)
		c.log.ErrorContext(ctx, "tokens are kept in memory alone", "resource", s.ID, "error", err)
	}
	c.remember(s.ID, s)
}

// storeTimeout bounds what is stored for nobody who waits.
const storeTimeout = 30 * time.Second

// dropTokens forgets one generation of tokens: if the store has another one by
// now, that stays. The lock of the resource is held.
func (c *Client) dropTokens(ctx context.Context, failed *session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	var now tokens
	ok, err := c.read(ctx, failed.tokens.name(), &now)
	if err == nil && ok && now.Generation == failed.tokens.Generation {
		err = c.o.Store.Delete(ctx, failed.tokens.name())
	}
	if err != nil {
		c.log.WarnContext(ctx, "stored tokens were not deleted", "resource", failed.ID, "error", err)
	}
	c.remember(failed.ID, &session{binding: failed.binding, probe: &probe{}})
}

// maxSessions bounds what is remembered of resources and operations that
// others name; the store knows the rest.
const maxSessions = 1024

func (c *Client) remember(id string, s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(id, s)
}

// put is remember with mu held. What is not there, and then what the store has
// as well, makes room: neither the only copy of tokens.
func (c *Client) put(id string, s *session) {
	if len(c.sessions) >= maxSessions {
		maps.DeleteFunc(c.sessions, func(_ string, s *session) bool { return s == nil })
	}
	if len(c.sessions) >= maxSessions {
		maps.DeleteFunc(c.sessions, func(_ string, s *session) bool { return !s.probe.unsaved.Load() })
	}
	c.sessions[id] = s
}

// recall is what is remembered of a resource, from the store if it was never
// looked up; nil if nothing.
func (c *Client) recall(ctx context.Context, id string) (*session, error) {
	c.mu.Lock()
	s, known := c.sessions[id]
	c.mu.Unlock()
	if known {
		return s, nil
	}
	s, err := c.load(ctx, id)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if newer, known := c.sessions[id]; known {
		return newer, nil
	}
	c.put(id, s)
	return s, nil
}

// generationOf is the generation of a session's tokens, or "".
func generationOf(s *session) string {
	if s == nil || s.tokens == nil {
		return ""
	}
	return s.tokens.Generation
}

// newTokens makes a generation of a response.
func newTokens(b *binding, endpoint string, r *oauth.TokenResponse, requested []string, now time.Time) *tokens {
	t := &tokens{
		Generation: oauth.NewSecret(), ID: b.ID, Resource: b.Resource, Issuer: b.Issuer, ClientID: b.ClientID,
		TokenEndpoint: endpoint, Access: r.AccessToken, Type: r.TokenType, Refresh: r.RefreshToken,
		Requested: requested, Granted: requested,
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
