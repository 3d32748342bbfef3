package cli

import (
	"net/http"
	"net/url"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/transport/streamable"
)

// guardFlags is the guard in front of the endpoints, if there is to be one.
type guardFlags struct {
	p          *program
	flags      *httpFlags
	name       string       // of what is guarded, for people
	writeScope string       // what tools that change something need, or ""
	guard      *guard.Guard // nil: no authentication
	err        error        // why there is none
	// strays says that no client that calls by the address of this machine finds
	// tokens that are good.
	strays bool
}

// checkAuth refuses what could not work, before anything is served.
func (s *httpFlags) checkAuth() error {
	if s.auth == "" {
		return nil
	}
	if listensEverywhere(s.http) && s.resource == "" {
		return usagef("--http %q can be reached from other machines; give its public URL with --resource https://…", s.http)
	}
	if _, err := oauth.CheckIssuer(s.auth); err != nil {
		return usagef("--auth %q: %w", s.auth, err)
	}
	if s.resource != "" {
		if _, err := oauth.CanonicalResource(s.resource); err != nil {
			return usagef("--resource %q: %w", s.resource, err)
		}
	}
	if u, err := url.Parse(s.resource); err == nil && u.Hostname() != "" && !oauth.LoopbackHost(u.Hostname()) && !listensEverywhere(s.http) {
		// Under this name a proxy in front asks; see web.Access.Hosts.
		if len(s.hosts) == 0 {
			s.hosts = []string{"localhost", "127.0.0.1", "[::1]"}
		}
		s.hosts = append(s.hosts, u.Host)
	}
	for _, scope := range s.scopes {
		if list, err := oauth.ParseScope(scope); err != nil || len(list) != 1 {
			return usagef("--scope %q: write one scope, and --scope once for each", scope)
		}
	}
	return nil
}

// protect puts the guard in front of the endpoints at addr, and serves its
// metadata.
func (g *guardFlags) protect(endpoints http.Handler, addr string) (http.Handler, error) {
	if g.flags.auth == "" {
		return endpoints, nil
	}
	resource := g.flags.resource
	if resource == "" {
		resource = "http://" + addr + streamable.Path
	}
	made, err := guard.New(resource, guard.JWT(g.flags.auth, nil), &guard.Options{
		Scopes:  g.flags.scopes,
		Name:    g.name,
		Origins: g.flags.origins,
		Logger:  g.p.serverLogger(),
	})
	if err != nil {
		g.err = usagef("--auth and --resource: %w", err)
		return nil, g.err
	}
	g.strays = isForeignToken(made.Resource(), "http://"+addr+streamable.Path)
	g.guard = made
	mux := http.NewServeMux()
	mux.Handle("/", made.Protect(endpoints))
	for _, path := range made.MetadataPaths() {
		mux.Handle(path, made.Metadata())
	}
	return mux, nil
}

// isForeignToken reports whether tokens for a resource on this machine are not for the
// endpoint there. One elsewhere is behind a proxy, with addresses of its own.
func isForeignToken(resource, endpoint string) bool {
	u, err := url.Parse(resource)
	if err != nil || !oauth.LoopbackHost(u.Hostname()) {
		return false
	}
	at, err := url.Parse(endpoint)
	return err == nil && !covers(resource, at)
}

// announce prints which callers are admitted.
func (g *guardFlags) announce() {
	if g.guard == nil {
		if listensEverywhere(g.flags.http) {
			g.p.note("parley: other machines can reach it, and nobody is asked who they are")
		}
		return
	}
	g.p.note("parley: callers need a token of %s for %s", host.EscapeLine(g.flags.auth), g.guard.Resource())
	for _, path := range g.guard.MetadataPaths() {
		g.p.note("parley: clients find that out at %s", path)
	}
	if g.strays {
		g.p.note("parley: clients must call it as %s, or below: tokens are for nothing else", g.guard.Resource())
	}
	if g.writeScope != "" {
		g.p.note("parley: tools that change something need the scope %s", g.writeScope)
	}
}

// close ends what the guard has under way.
func (g *guardFlags) close() {
	if g.guard != nil {
		g.guard.Close()
	}
}
