package front

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/transport/streamable"
)

// guardFlags is the guard in front of the endpoints, if there is to be one.
type guardFlags struct {
	console    *kit.Console
	flags      *Flags
	name       string       // of what is guarded, for people
	writeScope string       // what tools that change something need, or ""
	guard      *guard.Guard // nil: no authentication
	fetch      *oauth.Fetcher
	// introspected are the issuers that are asked about tokens.
	introspected map[string]bool
	err          error // why there is none
	// strays says that no client that calls by the address of this machine finds
	// tokens that are good.
	strays bool
}

// checkAuth refuses what could not work, before anything is served.
func (s *Flags) checkAuth() error {
	if len(s.Auth) == 0 {
		return nil
	}
	if kit.ListensEverywhere(s.HTTP) && s.resource == "" {
		return kit.Usagef("--http %q is reachable from other machines; set its public URL with --resource https://…", s.HTTP)
	}
	for i, issuer := range s.Auth {
		if _, err := oauth.CheckIssuer(issuer); err != nil {
			return kit.Usagef("--auth %q: %w", issuer, err)
		}
		if slices.Contains(s.Auth[:i], issuer) {
			return kit.Usagef("--auth %q: duplicate issuer", issuer)
		}
	}
	if err := checkPrivate(s.allowPrivate); err != nil {
		return err
	}
	if _, err := s.introspecting(); err != nil {
		return err
	}
	if s.resource != "" {
		if _, err := oauth.CanonicalResource(s.resource); err != nil {
			return kit.Usagef("--resource %q: %w", s.resource, err)
		}
	}
	if u, err := url.Parse(s.resource); err == nil && u.Hostname() != "" && !oauth.LoopbackHost(u.Hostname()) && !kit.ListensEverywhere(s.HTTP) {
		// Under this name a proxy in front asks; see web.Access.Hosts.
		if len(s.hosts) == 0 {
			s.hosts = []string{"localhost", "127.0.0.1", "[::1]"}
		}
		s.hosts = append(s.hosts, u.Host)
	}
	for _, scope := range s.scopes {
		if list, err := oauth.ParseScope(scope); err != nil || len(list) != 1 {
			return kit.Usagef("--scope %q: must be one scope; repeat --scope for each", scope)
		}
	}
	return nil
}

// protect puts the guard in front of the endpoints at addr, and serves its
// metadata. What is wrong with the authorization servers is told at once.
func (g *guardFlags) protect(ctx context.Context, endpoints http.Handler, addr string) (http.Handler, error) {
	if len(g.flags.Auth) == 0 {
		return endpoints, nil
	}
	resource := g.flags.resource
	if resource == "" {
		resource = "http://" + addr + streamable.Path
	}
	verifier, err := g.verifier()
	if err != nil {
		g.err = err
		return nil, g.err
	}
	made, err := guard.New(resource, verifier, &guard.Options{
		Scopes:       g.flags.scopes,
		Audiences:    g.flags.audiences,
		Name:         g.name,
		Origins:      g.flags.origins,
		RequireFresh: g.flags.requireFresh,
		Logger:       g.console.LogFrom(slog.LevelInfo), // without it nobody could find out which check refused a token
	})
	if err != nil {
		g.err = kit.Usagef("--auth and --resource: %w", err)
		return nil, g.err
	}
	g.strays = isForeignToken(made.Resource(), "http://"+addr+streamable.Path)
	g.guard = made
	if g.err = g.check(ctx); g.err != nil {
		return nil, g.err
	}
	mux := http.NewServeMux()
	mux.Handle("/", made.Protect(endpoints))
	for _, path := range made.MetadataPaths() {
		mux.Handle(path, made.Metadata())
	}
	return mux, nil
}

// verifier verifies the tokens of each authorization server as the flags say.
func (g *guardFlags) verifier() (guard.Verifier, error) {
	clients, err := g.flags.introspecting()
	if err != nil {
		return nil, err
	}
	g.fetch = oauth.NewFetcher(&oauth.FetchOptions{AllowHosts: g.flags.allowPrivate})
	g.introspected = make(map[string]bool)
	var all []guard.Verifier
	for _, issuer := range g.flags.Auth {
		if c := clients[issuer]; c != nil {
			c.Fetch, g.introspected[issuer] = g.fetch, true
			all = append(all, guard.Introspection(issuer, c))
			continue
		}
		all = append(all, guard.JWT(issuer, &guard.JWTOptions{Types: g.flags.types(), Fetch: g.fetch, KeysMaxAge: g.flags.keysMaxAge}))
	}
	return guard.ByIssuer(all...), nil
}

// noType is the --token-type of tokens that name none.
const noType = "none"

// types are those of --token-type, as the library has them; nil if there are none.
func (s *Flags) types() []string {
	types := slices.Clone(s.tokenTypes)
	for i, name := range types {
		if name == noType {
			types[i] = ""
		}
	}
	return types
}

// admitsIDTokens reports whether an ID token may pass for an access token: it has the same type as
// those that are taken, and no scope is needed, which it would lack.
func (g *guardFlags) admitsIDTokens() bool {
	return len(g.flags.scopes) == 0 && len(g.flags.Auth) > len(g.introspected) &&
		slices.ContainsFunc(g.flags.types(), func(name string) bool {
			// RFC 7515, section 4.1.9: application/JWT is the same type.
			return name == "" || strings.TrimPrefix(strings.ToLower(name), "application/") == "jwt"
		})
}

// issuerCheckTime is how long the authorization servers are waited for at the start. Requests that
// come meanwhile wait a little longer.
const issuerCheckTime = kit.ShutdownTime - time.Second

// check tries what the guard needs of the authorization servers. What may pass is told, and is no
// error.
func (g *guardFlags) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, issuerCheckTime)
	defer cancel()
	err := g.guard.Check(ctx)
	switch {
	case err == nil:
	case errors.Is(err, guard.ErrUnavailable):
		g.console.Note("parley: cannot check tokens now; requests get 503 until this works: %s", host.EscapeLine(joinedLines(err)))
	default:
		return kit.Usagef("--auth: %s", joinedLines(err))
	}
	return nil
}

// healthChecks say for each authorization server whether its tokens can be judged.
func (g *guardFlags) healthChecks() []HealthCheck {
	checks := make([]HealthCheck, 0, len(g.flags.Auth))
	for _, issuer := range g.flags.Auth {
		name := "keys of " + issuer
		if g.introspected[issuer] {
			name = "introspection at " + issuer
		}
		checks = append(checks, HealthCheck{Name: name, Check: func(ctx context.Context) error { return g.guard.Ready(ctx, issuer) }})
	}
	return checks
}

// joinedLines is the text of an error that may be several, with the flag in place of the option that
// the library names.
func joinedLines(err error) string {
	return strings.NewReplacer("\n", "; ", "AllowHosts can allow it", "--auth-allow-private can allow it").Replace(err.Error())
}

// isForeignToken reports whether tokens for a resource on this machine are not for the
// endpoint there. One elsewhere is behind a proxy, with addresses of its own.
func isForeignToken(resource, endpoint string) bool {
	u, err := url.Parse(resource)
	if err != nil || !oauth.LoopbackHost(u.Hostname()) {
		return false
	}
	at, err := url.Parse(endpoint)
	return err == nil && !kit.Covers(resource, at)
}

// announce prints which callers are admitted.
func (g *guardFlags) announce() {
	if g.guard == nil {
		if kit.ListensEverywhere(g.flags.HTTP) {
			g.console.Note("parley: other machines can reach the server, and it does not authenticate callers")
		}
		return
	}
	g.console.Note("parley: callers need a token from %s for %s", host.EscapeLine(strings.Join(g.flags.Auth, " or ")), g.guard.Resource())
	if g.flags.requireFresh > 0 {
		g.console.Note("parley: requests with a revoked token end within %v", g.flags.requireFresh)
	}
	for _, path := range g.guard.MetadataPaths() {
		g.console.Note("parley: clients discover this at %s", path)
	}
	if g.admitsIDTokens() {
		g.console.Note("parley: --token-type also admits ID tokens for the same audience; use --scope to reject them")
	}
	if g.strays {
		g.console.Note("parley: clients must call the server as %s, or below: tokens are valid only there", g.guard.Resource())
	}
	if g.writeScope != "" {
		g.console.Note("parley: tools that change data require the scope %s", g.writeScope)
	}
}

// close ends what the guard has under way.
func (g *guardFlags) close() {
	if g.guard != nil {
		g.guard.Close()
	}
	if g.fetch != nil {
		g.fetch.Close()
	}
}
