package issuer

import (
	"context"
	"fmt"
	"slices"

	"github.com/parley-mcp/parley/oauth"
)

// groupsOf are the groups that a person is in now; login are those that the person had when signing in.
func (s *Server) groupsOf(ctx context.Context, subject string, login []string) ([]string, error) {
	if s.opts.Groups == nil {
		return login, nil
	}
	groups, err := s.opts.Groups(ctx, subject, login)
	if err != nil {
		return nil, fmt.Errorf("asking for the groups of a person: %w", err)
	}
	return groups, nil
}

// limits are the scopes for groups that a scope is or includes.
func (r *Resource) limits(name string) []*Scope {
	var found []*Scope
	for _, included := range r.impliedScopes([]string{name}) {
		if i := slices.IndexFunc(r.Scopes, func(s Scope) bool { return s.Name == included }); len(r.Scopes[i].Groups) > 0 {
			found = append(found, &r.Scopes[i])
		}
	}
	return found
}

// stands says whether a scope of a grant has not been removed since.
func (r *Resource) stands(name string, g *Grant) bool {
	i := slices.IndexFunc(r.Scopes, func(s Scope) bool { return s.Name == name })
	return i < 0 || g.Created.IsZero() || !g.Created.Before(r.Scopes[i].Since)
}

// errNoneOfScopes says that somebody else would have to be asked.
var errNoneOfScopes = &oauth.Error{Code: oauth.AccessDenied, Description: "the person may grant none of these scopes"}

// grantFor returns the resource of an interaction, and what its person may grant there of what the
// client asks for. As long as nobody has signed in, that is all. The error is an *oauth.Error:
// errNoneOfScopes if nothing is left.
func (s *Server) grantFor(ctx context.Context, c *Client, it *interaction) (*Resource, []string, error) {
	res, err := s.resourceFor(ctx, it.Resource, c)
	if err != nil {
		return nil, nil, err
	}
	asked := intersect(it.Scopes, allowedScopes(res, c)) // some may have been removed meanwhile
	if len(asked) == 0 && len(it.Scopes) > 0 {
		return nil, nil, errScope("none of the scopes may be had any more")
	}
	if it.Person == nil {
		return res, asked, nil
	}
	person := &Grant{Subject: it.Person.Subject, Groups: it.Person.Groups}
	scopes, err := s.allowed(ctx, &access{grant: person, client: c, resource: res}, asked)
	switch {
	case err != nil:
		return nil, nil, s.broken(ctx, "looking what a person may grant", err)
	case len(scopes) == 0 && len(asked) > 0:
		return res, nil, errNoneOfScopes
	}
	return res, scopes, nil
}
