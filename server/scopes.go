package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
)

// NeedScopes is the error of a request whose caller was not granted what it
// needs: a handler or middleware returns it, wrapped or not, to decide by the
// arguments. scopes are all that the request needs, those that the caller has
// too, so that the client can ask for them at once. Clients get it as an error
// of the protocol, also in answer to tools/call, and over HTTP with status 403.
// See principal.Principal.Has for who has a scope.
//
// spec 2026-07-28, basic/authorization, Scope Challenge Handling. SEC-TOOL-2.
func NeedScopes(scopes ...string) error {
	list := append([]string{}, scopes...) // not null without any
	noun := "scope"
	if len(list) > 1 {
		noun = "scopes"
	}
	return mcp.NewError(mcp.CodeInsufficientScope, "this call needs the %s %s", noun, strings.Join(list, ", ")).
		With(mcp.InsufficientScopeData{Scopes: list})
}

// granted refuses the call if its caller lacks any of the scopes.
func (c *Call) granted(scopes []string) error {
	if len(scopes) == 0 {
		return nil
	}
	if who := c.Principal(); slices.ContainsFunc(scopes, func(scope string) bool { return !who.Has(scope) }) {
		return NeedScopes(scopes...)
	}
	return nil
}

// MayCall reports whether the caller of the request could call a tool: nil, [ErrNotFound] if
// there is none of this name for it, or the error of [NeedScopes] that such a call gets. It
// is for an extension that answers in the place of a tool, or tells of what one gave, so that
// it tells nobody what Server.Visible hides.
func (c *Call) MayCall(tool string) error {
	t, ok := c.srv.allTools().byKey[tool]
	if !ok || !c.seesOffered(t) {
		return fmt.Errorf("tool %q: %w", clip(tool), ErrNotFound)
	}
	return c.granted(t.item.Scopes)
}

// grantedEarly is granted for requests that an extension may take in the place of the
// feature: what it answers may come too late for a refusal.
func (c *Call) grantedEarly() error {
	switch p := c.params.(type) {
	case *mcp.CallToolParams:
		if err := c.MayCall(p.Name); !errors.Is(err, ErrNotFound) {
			return err
		}
	case *mcp.GetPromptParams:
		if f, ok := c.srv.allPrompts().byKey[p.Name]; ok && c.seesOffered(f) {
			return c.granted(f.item.Scopes)
		}
	case *mcp.ReadResourceParams:
		if f, ok := c.find(p.URI); ok {
			return c.granted(f.scopes)
		}
	}
	return nil
}

// checkScopes refuses a feature that needs what no token can grant (RFC 6749,
// section 3.3).
func checkScopes(what string, scopes []string) error {
	for _, scope := range scopes {
		if !principal.ValidScope(scope) {
			return fmt.Errorf("%s: scope %q: use visible ASCII without quotes, backslashes and blanks", what, scope)
		}
	}
	return nil
}
