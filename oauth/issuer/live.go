package issuer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/parley-mcp/parley/oauth"
)

// A grant stores what was granted. What it is worth later is decided in this file: for a client
// that redeems it, and for a resource server that introspects or exchanges a token of it.

// Why nothing is left of a grant.
var (
	errPersonGone   = errors.New("the person is not there any more, or has another password")
	errResourceGone = errors.New("resource was removed since, or is not for this client any more")
)

// errNoScopes says that nothing is left of the scopes that were wanted.
func errNoScopes() error { return errScope("none of the scopes may be had") }

// personStays says whether the person who signed in for a grant is still there. Nobody signed in
// for a client that acts for itself, nor where another issuer asserted who the person is.
func (s *Server) personStays(ctx context.Context, g *Grant) (bool, error) {
	if g.Subject == "" || g.Asserted {
		return true, nil
	}
	return s.current(ctx, g.Subject, g.Stamp)
}

// isServed says whether a client may still have a resource by a grant.
func (a *access) isServed() bool {
	return a.resource != nil && mayHave(a.client, a.resource) && !a.grant.Created.Before(a.resource.Since)
}

// allowed are those of some scopes that an access may have now: which the resource has, and the
// client may have, which were not removed since the grant was made, and which are not for the groups of
// other people. A client that acts for itself is in no group, and has what it is bounded to by name. What a
// workload may do its mapping says.
func (s *Server) allowed(ctx context.Context, a *access, scopes []string) ([]string, error) {
	res, g := a.resource, a.grant
	scopes = slices.DeleteFunc(intersect(scopes, allowedScopes(res, a.client)), func(name string) bool { return !res.stands(name, g) })
	isLimited := func(name string) bool { return len(res.limits(name)) > 0 }
	if a.platform != "" || !slices.ContainsFunc(scopes, isLimited) {
		return scopes, nil
	}
	var groups []string
	if g.Subject != "" {
		var err error
		if groups, err = s.groupsOf(ctx, g.Subject, g.Groups); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(scopes, func(name string) bool {
		return slices.ContainsFunc(res.limits(name), func(limit *Scope) bool {
			if g.Subject == "" {
				return !slices.Contains(a.client.Scopes, limit.Name)
			}
			return len(intersect(limit.Groups, groups)) == 0
		})
	}), nil
}

// allowedSome is allowed, and an error if nothing is left: an answer without scopes cannot be told from
// one with all of them.
func (s *Server) allowedSome(ctx context.Context, a *access, wanted []string) ([]string, error) {
	scopes, err := s.allowed(ctx, a, wanted)
	if err == nil && len(scopes) == 0 && len(wanted) > 0 {
		err = errNoScopes()
	}
	return scopes, err
}

// redeemable is what the client of a request may have now by the grant of a code, a device or a refresh
// token: all that was granted, or what is asked for, if the grant includes it (RFC 6749, section 6: never
// more). If the person is gone, the grant is revoked. refused is what the client is told if nothing is left.
func (s *Server) redeemable(ctx context.Context, q *tokenRequest, g *Grant, asked []string, refused string) (*access, error) {
	res, err := s.grantedResource(q, g)
	if err != nil {
		return nil, err
	}
	a := &access{grant: g, client: q.client, resource: res}
	if !a.isServed() {
		return nil, refuse(oauth.InvalidGrant, refused, errResourceGone)
	}
	stays, err := s.personStays(ctx, g)
	if err != nil {
		return nil, err
	}
	if !stays {
		return nil, refuse(oauth.InvalidGrant, refused, errors.Join(errPersonGone, s.store.RevokeGrant(ctx, g.ID, q.now)))
	}
	wanted := oauth.UnionScopes(withoutOffline(asked))
	if len(wanted) == 0 {
		wanted = g.Scopes
	} else if !includes(res.impliedScopes(g.Scopes), wanted) {
		return nil, errScope("more scopes than were granted")
	}
	a.scopes, err = s.allowedSome(ctx, a, wanted)
	return a, err
}

// introspected is what a token says now to a client that may see into the tokens for its resource; nil if
// that is nothing.
func (s *Server) introspected(ctx context.Context, t *ownToken, c *Client) (*access, error) {
	all, err := s.resources.current(ctx)
	if err != nil {
		return nil, s.broken(ctx, "asking for the resources", err)
	}
	granted := &access{grant: t.grant, client: t.granted, resource: all.byURI[t.grant.Resource]}
	a := &access{grant: t.grant, client: t.client, resource: all.byURI[t.Claims.Audience[0]], platform: t.platform}
	if a.resource == nil || !slices.Contains(a.resource.Introspectors, c.ID) || !granted.isServed() {
		return nil, nil
	}
	if a.scopes, err = oauth.ParseScope(t.Claims.Scope); err != nil {
		return nil, fmt.Errorf("reading the scopes of a token: %w", err)
	}
	if granted.resource == a.resource {
		// The grant may have fewer scopes than when the token was issued.
		a.scopes = intersect(a.scopes, a.resource.impliedScopes(t.grant.Scopes))
	} else {
		// What the person granted is for another resource: this one counts from the exchange.
		exchanged := *t.grant
		exchanged.Created = t.Claims.IssuedAt
		a.grant = &exchanged
	}
	if !a.isServed() {
		return nil, nil
	}
	a.scopes, err = s.allowed(ctx, a, a.scopes)
	return a, err
}
