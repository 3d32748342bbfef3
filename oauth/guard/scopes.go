package guard

import (
	"fmt"
	"slices"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/principal"
)

// A hierarchy gives all scopes that one includes, also by way of others. spec
// 2026-07-28, basic/authorization, Step-Up Authorization Flow: servers MUST
// account for scope hierarchies.
type hierarchy map[string][]string

func newHierarchy(implies map[string][]string) (hierarchy, error) {
	h := make(hierarchy, len(implies))
	for broad, narrow := range implies {
		if err := checkScopes(append([]string{broad}, narrow...)); err != nil {
			return nil, err
		}
		all := []string{broad}
		for i := 0; i < len(all); i++ {
			all = oauth.UnionScopes(all, implies[all[i]])
		}
		h[broad] = all
	}
	return h, nil
}

// expand returns scopes with all that they include.
func (h hierarchy) expand(scopes []string) []string {
	out := slices.Clone(scopes)
	for _, scope := range scopes {
		out = append(out, h[scope]...)
	}
	return oauth.UnionScopes(out)
}

// checkScopes checks scopes that the operator wrote.
func checkScopes(scopes []string) error {
	for _, scope := range scopes {
		if one, err := oauth.ParseScope(scope); err != nil || len(one) != 1 || one[0] != scope {
			return fmt.Errorf("guard: %q is not a scope", scope)
		}
		// spec 2026-07-28, basic/authorization, Refresh Tokens: SHOULD NOT be
		// in challenges and metadata of servers.
		if scope == oauth.ScopeOfflineAccess {
			return fmt.Errorf("guard: %s is between client and authorization server, no scope of a resource", scope)
		}
	}
	return nil
}

// Allows reports whether p has every one of scopes; principal.Local, the owner
// of the pipe, has them all. It is made for server.Server.Visible, where it
// hides from callers what they may not use:
//
//	s.Visible(func(ctx context.Context, it server.Item) bool {
//		return guard.Allows(server.Caller(ctx), it.Scopes...)
//	})
//
// Without it everything is listed, and a caller that lacks scopes is told which.
func Allows(p *principal.Principal, scopes ...string) bool {
	return !slices.ContainsFunc(scopes, func(scope string) bool { return !p.Has(scope) })
}
