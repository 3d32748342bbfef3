package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-mcp/parley/app/internal/printable"
	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

var resourceVerbs = []*Verb{
	verb("resource add", "Add an MCP server that tokens are issued for", addResource),
	reading(verb("resource list", "List the MCP servers in the database", listResources)),
	reading(verb("resource show", "Show an MCP server and its scopes", showResource)),
	verb("resource change", "Change the given settings of an MCP server", changeResource),
	verb("resource scope", "Add a scope to an MCP server, change the given settings of a scope, or remove it", setScope),
	verb("resource remove", "Remove an MCP server with its grants and consents", removeResource),
}

// A ProtectedResource is an MCP server that tokens are issued for, for operators.
type ProtectedResource struct {
	URI    string           `json:"uri"`
	Name   string           `json:"name"`
	Scopes []DescribedScope `json:"scopes"`
	// Default are the scopes of a request that names none.
	Default []string `json:"default_scopes,omitzero"`
	// Introspectors are the clients that may introspect its tokens.
	Introspectors []string `json:"introspectors,omitzero"`
	// AccessSeconds and RefreshSeconds are how long its tokens are good; 0: as long as others.
	AccessSeconds  int64 `json:"access_seconds,omitzero"`
	RefreshSeconds int64 `json:"refresh_seconds,omitzero"`
	NoRefresh      bool  `json:"no_refresh,omitzero"`
	DPoP           bool  `json:"dpop,omitzero"`
}

// A DescribedScope is a scope, with what people are told of it.
type DescribedScope struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitzero"`
	Implies     []string `json:"implies,omitzero"`
	// Groups are those whose people alone may grant it; empty: everybody may.
	Groups []string `json:"groups,omitzero"`
}

func resourceOf(r *issuer.Resource) ProtectedResource {
	out := ProtectedResource{
		URI: r.URI, Name: r.Name, Scopes: []DescribedScope{}, Default: r.Default, Introspectors: r.Introspectors,
		AccessSeconds: int64(r.AccessLifetime / time.Second), RefreshSeconds: int64(r.RefreshLifetime / time.Second),
		NoRefresh: r.NoRefresh, DPoP: r.DPoP,
	}
	for _, s := range r.Scopes {
		out.Scopes = append(out.Scopes, DescribedScope{s.Name, s.Description, s.Implies, s.Groups})
	}
	return out
}

// A ResourceList are all resources.
type ResourceList struct {
	Resources []ProtectedResource `json:"resources"`
}

// Text implements Result.
func (l *ResourceList) Text() string {
	rows := make([][]string, 0, len(l.Resources))
	for _, r := range l.Resources {
		names := make([]string, len(r.Scopes))
		for i, s := range r.Scopes {
			names[i] = s.Name
		}
		rows = append(rows, []string{r.URI, r.Name, strings.Join(names, " ")})
	}
	return columns(rows)
}

type noParameters struct{}

func listResources(ctx context.Context, a *Admin, _ *noParameters) (*ResourceList, error) {
	all, err := a.db.Resources(ctx)
	if err != nil {
		return nil, err
	}
	out := &ResourceList{Resources: []ProtectedResource{}}
	for i := range all {
		out.Resources = append(out.Resources, resourceOf(&all[i]))
	}
	return out, nil
}

// A ResourceDetail is what is known of a resource.
type ResourceDetail struct {
	Resource ProtectedResource `json:"resource"`
}

// Text implements Result.
func (d *ResourceDetail) Text() string {
	r := &d.Resource
	rows := [][]string{{"uri", r.URI}, {"name", r.Name}}
	for _, row := range [][]string{
		{"introspectors", strings.Join(r.Introspectors, " ")},
		{"access tokens", atMost(r.AccessSeconds)},
		{"refresh tokens", atMost(r.RefreshSeconds)},
	} {
		if row[1] != "" {
			rows = append(rows, row)
		}
	}
	if r.NoRefresh {
		rows = append(rows, []string{"refresh tokens", "none"})
	}
	if r.DPoP {
		rows = append(rows, []string{"bearer tokens", "refused (DPoP)"})
	}
	width := len("scope") // of the labels, in both tables
	for _, row := range rows {
		width = max(width, len(row[0]))
	}
	rows[0][0] = fmt.Sprintf("%-*s", width, rows[0][0])
	text := columns(rows)
	rows = nil
	for _, s := range r.Scopes {
		row := []string{fmt.Sprintf("%-*s", width, "scope"), s.Name, s.Description}
		if len(s.Implies) > 0 {
			row[2] += " (implies " + strings.Join(s.Implies, ", ") + ")"
		}
		if len(s.Groups) > 0 {
			row[2] += " (for " + strings.Join(s.Groups, ", ") + ")"
		}
		if slices.Contains(r.Default, s.Name) {
			row[2] += " (default)"
		}
		row[2] = strings.TrimPrefix(row[2], " ")
		rows = append(rows, row)
	}
	return text + columns(rows)
}

type resourceURI struct {
	URI string `json:"uri" arg:"URI"`
}

func (in *resourceURI) canonical() (string, error) {
	uri, err := oauth.CanonicalResource(in.URI)
	if err != nil {
		return "", errorf(Invalid, "resource %q: %w", in.URI, err)
	}
	return uri, nil
}

func showResource(ctx context.Context, a *Admin, in *resourceURI) (*ResourceDetail, error) {
	uri, err := in.canonical()
	if err != nil {
		return nil, err
	}
	r, err := a.db.Resource(ctx, uri)
	if err != nil {
		return nil, noResource(uri, err)
	}
	return &ResourceDetail{resourceOf(r)}, nil
}

// A ResourceChange is what was done to a resource.
type ResourceChange struct {
	Did   string `json:"did"`
	URI   string `json:"uri"`
	Scope string `json:"scope,omitzero"`
}

// Text implements Result.
func (c *ResourceChange) Text() string {
	if c.Scope != "" {
		return columns([][]string{{c.Did + " scope " + c.Scope + " of " + c.URI}})
	}
	return columns([][]string{{c.Did + " " + c.URI}})
}

type newResource struct {
	resourceURI
	Name            string   `json:"name" help:"\x60NAME\x60 that people are shown (default: the host)"`
	Scopes          []string `json:"scope" help:"\x60SCOPE\x60 of it, which 'auth resource scope' describes"`
	Introspectors   []string `json:"introspector" help:"\x60ID\x60 of a client that may introspect its tokens"`
	AccessLifetime  string   `json:"access_lifetime" help:"\x60TIME\x60 that its access tokens are good, such as 5m; at most that of the server"`
	RefreshLifetime string   `json:"refresh_lifetime" help:"\x60TIME\x60 after which people sign in again, such as 24h"`
	NoRefresh       bool     `json:"no_refresh" help:"issue no refresh tokens"`
	DPoP            bool     `json:"dpop" help:"issue only tokens that are bound to a key of the client (DPoP)"`
}

// Bounds of what an operator says of a resource.
const (
	maxScopes      = 200
	maxDescription = 300 // characters
)

func addResource(ctx context.Context, a *Admin, in *newResource) (*ResourceChange, error) {
	r := issuer.Resource{URI: in.URI, Name: in.Name, Introspectors: in.Introspectors, NoRefresh: in.NoRefresh, DPoP: in.DPoP}
	for _, name := range in.Scopes {
		r.Scopes = append(r.Scopes, issuer.Scope{Name: name})
	}
	err := checkText("name", in.Name, maxClientName)
	if err == nil {
		r.AccessLifetime, r.RefreshLifetime, err = lifetimes(in.AccessLifetime, in.RefreshLifetime)
	}
	if err == nil {
		err = checkScopeCount(&r)
	}
	var checked *issuer.Resource
	if err == nil {
		checked, err = issuer.CheckResource(r)
	}
	if err != nil {
		return nil, errorf(Invalid, "%w", err)
	}
	switch err := a.db.CreateResource(ctx, checked, a.opts.Now()); {
	case errors.Is(err, records.ErrExists):
		return nil, errorf(Conflict, "resource %s already exists; run 'parley auth resource scope' to change its scopes", checked.URI)
	case errors.Is(err, records.ErrTooMany):
		return nil, errorf(Conflict, "%w", records.ErrTooMany)
	case err != nil:
		return nil, err
	}
	return &ResourceChange{Did: "added", URI: checked.URI}, nil
}

type changedResource struct {
	resourceURI
	Name            string   `json:"name" help:"\x60NAME\x60 that people are shown"`
	Introspectors   []string `json:"introspector" help:"\x60ID\x60 of a client that may introspect its tokens, in the place of those before"`
	AccessLifetime  string   `json:"access_lifetime" help:"\x60TIME\x60 that its access tokens are good, such as 5m; at most that of the server"`
	RefreshLifetime string   `json:"refresh_lifetime" help:"\x60TIME\x60 after which people sign in again, such as 24h"`
}

func changeResource(ctx context.Context, a *Admin, in *changedResource) (*ResourceChange, error) {
	uri, err := in.canonical()
	if err != nil {
		return nil, err
	}
	if in.Name == "" && len(in.Introspectors) == 0 && in.AccessLifetime == "" && in.RefreshLifetime == "" {
		return nil, errorf(Invalid, "missing change: name, introspector, access_lifetime or refresh_lifetime")
	}
	err = checkText("name", in.Name, maxClientName)
	var access, refresh time.Duration
	if err == nil {
		access, refresh, err = lifetimes(in.AccessLifetime, in.RefreshLifetime)
	}
	if err != nil {
		return nil, errorf(Invalid, "%w", err)
	}
	err = a.db.ChangeResource(ctx, uri, a.opts.Now(), func(r *issuer.Resource) error {
		r.Name = cmp.Or(in.Name, r.Name)
		r.AccessLifetime, r.RefreshLifetime = cmp.Or(access, r.AccessLifetime), cmp.Or(refresh, r.RefreshLifetime)
		if len(in.Introspectors) > 0 {
			r.Introspectors = in.Introspectors
		}
		return nil
	})
	if err != nil {
		return nil, noResource(uri, err)
	}
	return &ResourceChange{Did: "changed", URI: uri}, nil
}

func checkScopeCount(r *issuer.Resource) error {
	if len(r.Scopes) > maxScopes {
		return fmt.Errorf("a resource can have at most %d scopes", maxScopes)
	}
	return nil
}

// checkText refuses what people cannot be shown in a line.
func checkText(name, text string, longest int) error {
	if utf8.RuneCountInString(text) > longest || strings.TrimSpace(text) != text || !printable.Line(text) {
		return fmt.Errorf("%s must have at most %d printable characters, without surrounding spaces", name, longest)
	}
	return nil
}

type newScope struct {
	resourceURI
	Scope       string   `json:"scope" arg:"SCOPE"`
	Description string   `json:"description" help:"\x60TEXT\x60 that tells people what it allows (default: the name)"`
	Implies     []string `json:"implies" help:"narrower \x60SCOPE\x60 that it includes"`
	Groups      []string `json:"group" help:"\x60GROUP\x60 whose people alone may grant it in the place of those before (default: everybody may)"`
	Everybody   bool     `json:"everybody" help:"let everybody grant it again"`
	Default     bool     `json:"default" help:"grant it to clients that ask for no scope"`
	NotDefault  bool     `json:"not_default" help:"grant it to those no more"`
	Remove      bool     `json:"remove" help:"take it away, also from what was granted"`
}

func setScope(ctx context.Context, a *Admin, in *newScope) (*ResourceChange, error) {
	uri, err := in.canonical()
	if err != nil {
		return nil, err
	}
	if err := checkText("the description", in.Description, maxDescription); err != nil {
		return nil, errorf(Invalid, "%w", err)
	}
	if i := slices.IndexFunc(in.Groups, func(g string) bool { return !records.GoodGroup(g) }); i >= 0 {
		return nil, errorf(Invalid, "group %q: %w", in.Groups[i], records.ErrGroupName)
	}
	switch {
	case in.Default && in.NotDefault, in.Everybody && len(in.Groups) > 0:
		return nil, errorf(Invalid, "use only one of default and not_default, and only one of group and everybody")
	case slices.Contains(in.Implies, in.Scope):
		return nil, errorf(Invalid, "the scope %q includes itself; name narrower ones", in.Scope)
	case in.Remove && (in.Default || in.NotDefault || in.Everybody || len(in.Groups) > 0):
		return nil, errorf(Invalid, "remove cannot be used with other settings")
	}
	did := &ResourceChange{Did: "added", URI: uri, Scope: in.Scope}
	err = a.db.ChangeResource(ctx, uri, a.opts.Now(), func(r *issuer.Resource) error {
		i := slices.IndexFunc(r.Scopes, func(s issuer.Scope) bool { return s.Name == in.Scope })
		if in.Remove {
			did.Did = "removed"
			return in.remove(r, i)
		}
		if i < 0 {
			i = len(r.Scopes)
			r.Scopes = append(r.Scopes, issuer.Scope{Name: in.Scope})
		} else {
			did.Did = "changed"
		}
		in.change(r, &r.Scopes[i])
		err := checkScopeCount(r)
		if err == nil {
			_, err = issuer.CheckResource(*r)
		}
		if err != nil {
			return errorf(Invalid, "%w", err)
		}
		return nil
	})
	if err != nil {
		return nil, noResource(uri, err)
	}
	return did, nil
}

// change gives a scope of a resource what is given.
func (in *newScope) change(r *issuer.Resource, scope *issuer.Scope) {
	scope.Description = cmp.Or(in.Description, scope.Description)
	if len(in.Implies) > 0 {
		scope.Implies = in.Implies
	}
	if len(in.Groups) > 0 || in.Everybody {
		scope.Groups = in.Groups
	}
	if in.Default || in.NotDefault {
		r.Default = slices.DeleteFunc(r.Default, func(name string) bool { return name == in.Scope })
	}
	if in.Default {
		r.Default = append(r.Default, in.Scope)
	}
}

// remove takes the scope with an index away, which is negative if there is no such scope.
func (in *newScope) remove(r *issuer.Resource, i int) error {
	if in.Description != "" || len(in.Implies) > 0 {
		return errorf(Invalid, "remove cannot be used with other settings")
	}
	if i < 0 {
		return errorf(NotFound, "the resource %s has no scope %q", r.URI, in.Scope)
	}
	for _, s := range r.Scopes {
		if slices.Contains(s.Implies, in.Scope) && s.Name != in.Scope {
			return errorf(Conflict, "the scope %q implies %q; change that one first", s.Name, in.Scope)
		}
	}
	r.Scopes = slices.Delete(r.Scopes, i, i+1)
	r.Default = slices.DeleteFunc(r.Default, func(name string) bool { return name == in.Scope })
	return nil
}

func removeResource(ctx context.Context, a *Admin, in *resourceURI) (*ResourceChange, error) {
	uri, err := in.canonical()
	if err != nil {
		return nil, err
	}
	if err := a.db.RemoveResource(ctx, uri, a.opts.Now()); err != nil {
		return nil, noResource(uri, err)
	}
	return &ResourceChange{Did: "removed", URI: uri}, nil
}

func noResource(uri string, err error) error {
	return absent(err, "resource %s not found in the database; run 'parley auth resource list' to list resources", uri)
}
