package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// A Token is an access token. No text form shows the secret, which Access and Header return.
type Token struct {
	// Access is the secret.
	Access string
	// Type is "Bearer", or "DPoP" if each request needs a proof, as [Client.HTTPClient] makes it.
	Type string
	// Expires is when it ends; zero is unknown.
	Expires time.Time
	// Scopes are those granted, as far as the server said.
	Scopes []string
}

// Header is the value of the Authorization header.
func (t Token) Header() string { return t.Type + " " + t.Access }

// String says what it is without the secret.
func (t Token) String() string { return t.Type + " token" }

// Format is String for each verb, so that %+v and %#v show no secret either.
func (t Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// MarshalText is String, for logs and JSON.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

func (t *tokens) token() *Token {
	kind := "Bearer"
	if strings.EqualFold(t.Type, "DPoP") {
		kind = "DPoP"
	}
	return &Token{Access: t.Access, Type: kind, Expires: unixTime(t.Expires), Scopes: slices.Clone(t.Granted)}
}

// A Source gives tokens for one resource. It may be used by many goroutines.
type Source struct {
	c        *Client
	resource string
}

// Source returns a source of tokens for a resource, for uses besides [Client.HTTPClient].
func (c *Client) Source(resource string) *Source { return &Source{c: c, resource: resource} }

// Format writes what it is for each verb: its client has secrets.
func (s *Source) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "source of tokens for "+redactURL(s.resource))
}

// Token returns a token that lasts for a request: known, refreshed, or from a sign-in.
func (s *Source) Token(ctx context.Context) (*Token, error) {
	return s.c.token(ctx, s.resource, &need{purpose: forToken})
}

// SignInOptions adjust one SignIn. The zero value, and nil, work.
type SignInOptions struct {
	// Scopes are needed besides those that the resource names. Default none.
	Scopes []string
	// Force signs in anew even if there are tokens that last. Default false.
	Force bool
}

// SignIn makes sure that there is a token for a resource, a URL, and returns it. A person is asked
// if it must be, also one who refused a moment ago, whom requests leave in peace for a minute.
func (c *Client) SignIn(ctx context.Context, resource string, o *SignInOptions) (*Token, error) {
	n := &need{purpose: forSignIn}
	if o != nil {
		n.scopes = o.Scopes
		if o.Force {
			n.purpose = forNewSignIn
		}
	}
	return c.token(ctx, resource, n)
}

// AskAgain forgets that the person did not complete sign-ins a moment ago: the next request
// that needs one asks them. It is for when they say that they want to try again.
func (c *Client) AskAgain() {
	c.resources.each(func(r *entry) { r.refused = refusal{} })
}

func (c *Client) token(ctx context.Context, resource string, n *need) (*Token, error) {
	at, err := c.parseResource(resource)
	if err != nil {
		return nil, err
	}
	s, err := c.find(ctx, at.url)
	act := fail
	if err == nil {
		s, act, err = c.refreshIfDue(ctx, s, n)
	}
	if err == nil && act != send {
		if n.purpose >= forSignIn {
			c.resetStepUps()
		}
		if s != nil {
			at.known = s.Metadata // there is no challenge that names it
		}
		s, err = c.acquire(ctx, at, n)
	}
	if err != nil {
		return nil, newError(ctx, resource, "sign in to "+redactURL(resource), err)
	}
	return s.tokens.token(), nil
}

// parseResource reads the URL of a resource that a user gave.
func (c *Client) parseResource(resource string) (*challenge, error) {
	u, err := url.Parse(resource)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("resource %q: not an absolute URL", redactURL(resource))
	}
	if !isSecure(u) {
		return nil, fmt.Errorf("resource %q: tokens are sent over https, or within this machine, alone", redactURL(resource))
	}
	return newChallenge(u, c.o.ProtocolVersion), nil
}

// A Status says what is stored for a resource. There are no secrets in it.
type Status struct {
	// Resource is the identifier of the resource.
	Resource string
	// Issuer is the authorization server, and ClientID what it knows this client by.
	Issuer, ClientID string
	// Scopes are those granted; Requested those asked for.
	Scopes, Requested []string
	// Expires is when the access token ends; zero is unknown.
	Expires time.Time
	// Refreshable says that there is a refresh token; Bound that the tokens are bound to a key.
	Refreshable, Bound bool
	// Current says that these are in use: others may be of servers that were named before.
	Current bool
}

// Status lists what is stored, by resource and issuer.
func (c *Client) Status(ctx context.Context) ([]Status, error) {
	var all []Status
	err := c.eachTokens(ctx, func(_ string, t *tokens) error {
		var b binding
		if _, err := c.read(ctx, storeName(kindBinding, t.ID), &b); err != nil {
			return err
		}
		all = append(all, Status{
			Resource: t.ID, Issuer: t.Issuer, ClientID: t.ClientID, Scopes: t.Granted, Requested: t.Requested,
			Expires: unixTime(t.Expires), Refreshable: t.Refresh != "", Bound: len(t.Key) > 0,
			Current: b.Issuer == t.Issuer && b.ClientID == t.ClientID,
		})
		return nil
	})
	slices.SortFunc(all, func(a, b Status) int {
		return strings.Compare(a.Resource+"\x00"+a.Issuer, b.Resource+"\x00"+b.Issuer)
	})
	return all, err
}

// eachTokens calls f for each generation of tokens in the store.
func (c *Client) eachTokens(ctx context.Context, f func(name string, t *tokens) error) error {
	names, err := c.o.Store.Names(ctx)
	if err != nil {
		return fmt.Errorf("list the store of tokens: %w", err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, kindTokens+".") {
			continue
		}
		var t tokens
		ok, err := c.read(ctx, name, &t)
		if err == nil && ok && t.tokensName() == name {
			err = f(name, &t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// SignOut asks the authorization servers of a resource to revoke its tokens (RFC 7009), then
// forgets them, as [Client.Forget] does, also if that fails.
func (c *Client) SignOut(ctx context.Context, resource string) error {
	return c.forget(ctx, resource, true)
}

// Forget deletes the tokens of a resource, and dynamic registrations that nothing else uses.
func (c *Client) Forget(ctx context.Context, resource string) error {
	return c.forget(ctx, resource, false)
}

func (c *Client) forget(ctx context.Context, resource string, revoke bool) error {
	r, err := c.parseResource(resource)
	if err != nil {
		return err
	}
	s, err := c.find(ctx, r.url)
	if err != nil {
		return err
	}
	id, err := oauth.CanonicalResource(r.url.String())
	if s != nil {
		id = s.ID
	} else if err != nil {
		return fmt.Errorf("resource %q: %w", redactURL(resource), err)
	}
	unlock, err := c.lock(ctx, id, func() {})
	if err != nil {
		return err
	}
	defer unlock()
	type client struct{ issuer, id string }
	used, kept := map[client]bool{}, map[client]bool{}
	if s != nil {
		used[client{s.Issuer, s.ClientID}] = true
	}
	var trouble []error
	err = c.eachTokens(ctx, func(name string, t *tokens) error {
		by := client{t.Issuer, t.ClientID}
		if t.ID != id {
			kept[by] = true
			return nil
		}
		used[by] = true
		if revoke {
			trouble = append(trouble, c.revoke(ctx, t))
		}
		return c.o.Store.Delete(ctx, name)
	})
	trouble = append(trouble, err, c.o.Store.Delete(ctx, storeName(kindBinding, id)))
	for by := range used {
		if !kept[by] {
			trouble = append(trouble, c.dropRegistration(ctx, by.issuer, by.id))
		}
	}
	c.resources.with(id, func(r *entry) { r.session, r.loaded, r.refused = nil, true, refusal{} })
	c.resetStepUps()
	return errors.Join(trouble...)
}

// revoke revokes one generation of tokens.
func (c *Client) revoke(ctx context.Context, t *tokens) error {
	d := c.storedDiscovery(&t.binding)
	m, _, err := c.server(ctx, d, t.Issuer)
	if err != nil {
		return fmt.Errorf("revoke the tokens of %s: %w", redactURL(t.ID), err)
	}
	if slices.Contains(m.Ignored, "revocation_endpoint") {
		return fmt.Errorf("revoke the tokens of %s: the server has %s", redactURL(t.ID), absence(m, "revocation_endpoint"))
	}
	// A server that moved its endpoints gets no tokens: see tryRefresh.
	if m.RevocationEndpoint == "" || m.TokenEndpoint != t.TokenEndpoint {
		return nil
	}
	creds, err := c.credentialsOf(ctx, m, &session{binding: t.binding, tokens: t})
	if err != nil {
		return err
	}
	q := c.request(d, m, creds, nil)
	// The access token first: with the refresh token it would end, and be unknown.
	err = errors.Join(revokeToken(ctx, q, t.Access, "access_token"), revokeToken(ctx, q, t.Refresh, "refresh_token"))
	if errors.Is(err, &oauth.Error{Code: oauth.UnsupportedTokenType}) { // RFC 7009, section 2.2.1: fine for access tokens
		return nil
	}
	return err
}
