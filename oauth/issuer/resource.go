package issuer

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/parley-mcp/parley/oauth"
)

// A registry knows the protected resources. It never changes.
type registry struct {
	byURI map[string]*Resource
	order []*Resource
}

// newRegistry checks resources and brings their identifiers into canonical
// form.
func newRegistry(resources []Resource) (*registry, error) {
	g := &registry{byURI: map[string]*Resource{}}
	for _, given := range resources {
		r, err := checkResource(given)
		if err != nil {
			return nil, err
		}
		if g.byURI[r.URI] != nil {
			return nil, fmt.Errorf("resource %q is there twice", r.URI)
		}
		g.byURI[r.URI] = r
		g.order = append(g.order, r)
	}
	for _, r := range g.order {
		for i, target := range r.ExchangeTo {
			uri, err := oauth.CanonicalResource(target)
			if err != nil || g.byURI[uri] == nil {
				return nil, fmt.Errorf("resource %q: tokens are exchanged for %q, which is no resource", r.URI, target)
			}
			r.ExchangeTo[i] = uri
		}
	}
	return g, nil
}

func checkResource(r Resource) (*Resource, error) {
	uri, err := oauth.CanonicalResource(r.URI)
	if err != nil {
		return nil, fmt.Errorf("resource %q: %w", r.URI, err)
	}
	r.URI = uri
	if r.Name == "" {
		u, err := url.Parse(uri)
		if err != nil {
			return nil, fmt.Errorf("resource %q: %w", uri, err)
		}
		r.Name = u.Host
	}
	r.ExchangeTo = slices.Clone(r.ExchangeTo)
	r.Scopes, r.Default, r.Introspectors = slices.Clone(r.Scopes), slices.Clone(r.Default), slices.Clone(r.Introspectors)
	names := map[string]bool{}
	for i, scope := range r.Scopes {
		if parsed, err := oauth.ParseScope(scope.Name); err != nil || len(parsed) != 1 {
			return nil, fmt.Errorf("resource %q: %q is no scope", uri, scope.Name)
		}
		if scope.Name == oauth.ScopeOfflineAccess {
			return nil, fmt.Errorf("resource %q: %s is no scope of a resource", uri, scope.Name)
		}
		if names[scope.Name] {
			return nil, fmt.Errorf("resource %q: scope %q is there twice", uri, scope.Name)
		}
		names[scope.Name] = true
		if scope.Description == "" {
			r.Scopes[i].Description = scope.Name
		}
	}
	for _, scope := range r.Scopes {
		for _, narrower := range scope.Implies {
			if !names[narrower] {
				return nil, fmt.Errorf("resource %q: scope %q implies %q, which is no scope", uri, scope.Name, narrower)
			}
		}
	}
	for _, scope := range r.Default {
		if !names[scope] {
			return nil, fmt.Errorf("resource %q: default scope %q is no scope", uri, scope)
		}
	}
	return &r, nil
}

// resourceFor returns the resource that a client names, or the only one that
// it may have, if it names none. The error is an *oauth.Error, invalid_target
// (RFC 8707, section 2).
func (s *Server) resourceFor(uri string, c *Client) (*Resource, error) {
	if uri == "" {
		return s.onlyResource(c)
	}
	canonical, err := oauth.CanonicalResource(uri)
	if err != nil {
		return nil, errTarget("the resource is not an absolute URL without fragment")
	}
	r := s.resources.byURI[canonical]
	if r == nil || !s.mayHave(c, r) {
		return nil, errTarget("no tokens are issued for this resource")
	}
	return r, nil
}

func (s *Server) onlyResource(c *Client) (*Resource, error) {
	var only *Resource
	for _, r := range s.resources.order {
		if !s.mayHave(c, r) {
			continue
		}
		if only != nil {
			return nil, errTarget("the request names no resource")
		}
		only = r
	}
	if only == nil {
		return nil, errTarget("there is no resource for this client")
	}
	return only, nil
}

// mayHave says whether a client may have tokens for a resource at all: those
// of the configuration may be bound to some.
func (s *Server) mayHave(c *Client, r *Resource) bool {
	config := s.configured(c)
	if config == nil || len(config.Resources) == 0 {
		return true
	}
	return slices.Contains(config.Resources, r.URI)
}

// configured is what the configuration says of a client; nil for others.
func (s *Server) configured(c *Client) *StaticClient {
	if c == nil {
		return nil
	}
	if r := s.static[c.ID]; r != nil {
		return &r.config
	}
	return nil
}

// grantableScopes returns the scopes that a client gets when it asks for
// these: the defaults of the resource, as far as the client may have them, if
// it asks for none. offline_access is dropped: whether there is a refresh token
// is for the client's grant types to say. The error is an *oauth.Error,
// invalid_scope.
func (s *Server) grantableScopes(res *Resource, c *Client, asked []string) ([]string, error) {
	asked = withoutOffline(asked)
	allowed := s.allowedScopes(res, c)
	if len(asked) == 0 {
		return intersect(res.Default, allowed), nil
	}
	granted := oauth.UnionScopes(asked)
	if !includes(allowed, granted) {
		return nil, errScope("a scope is unknown here, or not for this client")
	}
	return granted, nil
}

// allowedScopes are the scopes of a resource that a client may ever have.
func (s *Server) allowedScopes(res *Resource, c *Client) []string {
	if config := s.configured(c); config != nil && len(config.Scopes) > 0 {
		return res.impliedScopes(config.Scopes)
	}
	return res.names()
}

// names are all scopes of a resource.
func (r *Resource) names() []string {
	names := make([]string, len(r.Scopes))
	for i, scope := range r.Scopes {
		names[i] = scope.Name
	}
	return names
}

// impliedScopes returns the scopes of a resource that scopes include: themselves and
// what they imply, at any depth.
func (r *Resource) impliedScopes(scopes []string) []string {
	var out []string
	queue := slices.Clone(scopes)
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		i := slices.IndexFunc(r.Scopes, func(s Scope) bool { return s.Name == name })
		if i < 0 || slices.Contains(out, name) {
			continue
		}
		out = append(out, name)
		queue = append(queue, r.Scopes[i].Implies...)
	}
	return out
}

// narrowedScopes are those of a token that comes from a grant: all that was
// granted, or what is asked for, if the grant includes it (RFC 6749, section
// 6: never more). What a client may have no longer is left out; if nothing
// remains that is an error, since an answer cannot tell it from all.
func (s *Server) narrowedScopes(res *Resource, c *Client, granted, asked []string) ([]string, error) {
	wanted := oauth.UnionScopes(withoutOffline(asked))
	if len(wanted) == 0 {
		wanted = granted
	} else if !includes(res.impliedScopes(granted), wanted) {
		return nil, errScope("more scopes than were granted")
	}
	scopes := intersect(wanted, s.allowedScopes(res, c))
	if len(scopes) == 0 && len(wanted) > 0 {
		return nil, errScope("none of the scopes may be had")
	}
	return scopes, nil
}

// includes says whether all of scopes are within.
func includes(within, scopes []string) bool { return len(intersect(scopes, within)) == len(scopes) }

func withoutOffline(scopes []string) []string {
	return slices.DeleteFunc(slices.Clone(scopes), func(scope string) bool { return scope == oauth.ScopeOfflineAccess })
}

func intersect(scopes, allowed []string) []string {
	var out []string
	for _, scope := range scopes {
		if slices.Contains(allowed, scope) {
			out = append(out, scope)
		}
	}
	return out
}

func errTarget(text string) error { return &oauth.Error{Code: oauth.InvalidTarget, Description: text} }

func errScope(text string) error { return &oauth.Error{Code: oauth.InvalidScope, Description: text} }
