package issuer

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// A registry knows protected resources. It never changes.
type registry struct {
	byURI map[string]*Resource
	order []*Resource
}

// newRegistry checks resources and brings their identifiers into canonical
// form.
func newRegistry(resources []Resource) (*registry, error) {
	g := &registry{byURI: map[string]*Resource{}}
	for _, given := range resources {
		if err := g.add(given); err != nil {
			return nil, err
		}
	}
	for _, r := range g.order {
		if err := g.checkTargets(r); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (g *registry) add(given Resource) error {
	r, err := CheckResource(given)
	if err != nil {
		return err
	}
	if g.byURI[r.URI] != nil {
		return fmt.Errorf("resource %q is there twice", r.URI)
	}
	g.byURI[r.URI] = r
	g.order = append(g.order, r)
	return nil
}

// checkTargets brings ExchangeTo into canonical form.
func (g *registry) checkTargets(r *Resource) error {
	for i, target := range r.ExchangeTo {
		uri, err := oauth.CanonicalResource(target)
		if err != nil || g.byURI[uri] == nil {
			return fmt.Errorf("resource %q: tokens are exchanged for %q, which is no resource", r.URI, target)
		}
		r.ExchangeTo[i] = uri
	}
	return nil
}

// sourceAge is how old what Options.MoreResources said may be.
const sourceAge = time.Second

// resources are those of the configuration, and those of a source, which is asked again
// when what it said is too old.
type resources struct {
	fixed  *registry
	source func(ctx context.Context) ([]Resource, error) // or nil
	log    *slog.Logger
	now    func() time.Time

	mu     sync.Mutex
	all    *registry // nil before the source was asked
	read   time.Time
	asking *sourceAnswer // nil if the source is not being asked
}

// A sourceAnswer is what a source says to all who wait for it.
type sourceAnswer struct {
	done chan struct{} // closed once the others are set
	all  *registry
	err  error
}

// sourceTime is how long a source may take.
const sourceTime = 5 * time.Second

// last are the resources as far as they are known, without asking the source.
func (r *resources) last() *registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Or(r.all, r.fixed)
}

// current are the resources as they are. However many need them, the source is asked once, and
// nobody waits longer than for the own context.
func (r *resources) current(ctx context.Context) (*registry, error) {
	if r.source == nil {
		return r.fixed, nil
	}
	r.mu.Lock()
	now := r.now()
	if age := now.Sub(r.read); r.all != nil && age >= 0 && age < sourceAge {
		defer r.mu.Unlock()
		return r.all, nil
	}
	answer := r.asking
	if answer == nil {
		answer = &sourceAnswer{done: make(chan struct{})}
		r.asking = answer
		go r.ask(context.WithoutCancel(ctx), answer, now)
	}
	r.mu.Unlock()
	select {
	case <-answer.done:
		return answer.all, answer.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// ask asks the source for all who wait for an answer.
func (r *resources) ask(ctx context.Context, answer *sourceAnswer, now time.Time) {
	defer close(answer.done)
	ctx, cancel := context.WithTimeout(ctx, sourceTime)
	defer cancel()
	more, err := r.source(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking = nil
	if err != nil {
		answer.err = err
		return
	}
	r.all, r.read = r.merge(ctx, more), now
	answer.all = r.all
}

// merge adds resources to those of the configuration, as far as they can be.
func (r *resources) merge(ctx context.Context, more []Resource) *registry {
	all := &registry{byURI: maps.Clone(r.fixed.byURI), order: slices.Clone(r.fixed.order)}
	for _, given := range more {
		if err := all.add(given); err != nil {
			r.log.DebugContext(ctx, "resource is left out", "reason", err.Error())
		}
	}
	for _, one := range all.order[len(r.fixed.order):] {
		one.ExchangeTo = slices.DeleteFunc(one.ExchangeTo, func(target string) bool {
			uri, err := oauth.CanonicalResource(target)
			return err != nil || all.byURI[uri] == nil || uri != target
		})
	}
	return all
}

// CheckResource returns a resource with its URI in canonical form and the defaults in place.
// The error says what is wrong with it; that the URIs of ExchangeTo are those of resources is
// not asked.
func CheckResource(r Resource) (*Resource, error) {
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
		if slices.Contains(scope.Groups, "") {
			return nil, fmt.Errorf("resource %q: a group of scope %q has no name", uri, scope.Name)
		}
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
// (RFC 8707, section 2), or server_error.
func (s *Server) resourceFor(ctx context.Context, uri string, c *Client) (*Resource, error) {
	all, err := s.resources.current(ctx)
	if err != nil {
		return nil, s.broken(ctx, "asking for the resources", err)
	}
	if uri == "" {
		return all.only(c)
	}
	canonical, err := oauth.CanonicalResource(uri)
	if err != nil {
		return nil, errTarget("the resource is not an absolute URL without fragment")
	}
	r := all.byURI[canonical]
	if r == nil || !mayHave(c, r) {
		return nil, errTarget("no tokens are issued for this resource")
	}
	return r, nil
}

func (g *registry) only(c *Client) (*Resource, error) {
	var only *Resource
	for _, r := range g.order {
		if !mayHave(c, r) {
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

// mayHave says whether a client may have tokens for a resource at all.
func mayHave(c *Client, r *Resource) bool {
	return c == nil || len(c.Resources) == 0 || slices.Contains(c.Resources, r.URI)
}

// grantableScopes returns the scopes that a client gets when it asks for
// these: the defaults of the resource, as far as the client may have them, if
// it asks for none. offline_access is dropped: whether there is a refresh token
// is for the client's grant types to say. The error is an *oauth.Error,
// invalid_scope.
func (s *Server) grantableScopes(res *Resource, c *Client, asked []string) ([]string, error) {
	asked = withoutOffline(asked)
	allowed := allowedScopes(res, c)
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
func allowedScopes(res *Resource, c *Client) []string {
	if c != nil && len(c.Scopes) > 0 {
		return res.impliedScopes(c.Scopes)
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
