package cli

import (
	"net/http"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/transport/streamable"
)

// writeScope is what callers need for tools that change something, if they are
// asked who they are.
const writeScope = bundled + ":write"

// guarding is the guard in front of the endpoints, if there is to be one.
type guarding struct {
	p     *program
	flags *serving
	guard *guard.Guard // nil: everybody may come
	err   error        // why there is none
}

// checkAuth refuses what could not work, before anything is served.
func (s *serving) checkAuth() error {
	if s.auth == "" {
		return nil
	}
	if everywhere(s.http) && s.resource == "" {
		return usagef("--http %q can be reached from other machines; give its public URL with --resource https://…", s.http)
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
func (g *guarding) protect(endpoints http.Handler, addr string) (http.Handler, error) {
	if g.flags.auth == "" {
		return endpoints, nil
	}
	resource := g.flags.resource
	if resource == "" {
		resource = "http://" + addr + streamable.Path
	}
	made, err := guard.New(resource, guard.JWT(g.flags.auth, nil), &guard.Options{
		Scopes:  g.flags.scopes,
		Name:    bundled,
		Origins: g.flags.origins,
		Logger:  g.p.logger(),
	})
	if err != nil {
		g.err = usagef("--auth: %w", err)
		return nil, g.err
	}
	g.guard = made
	mux := http.NewServeMux()
	mux.Handle("/", made.Protect(endpoints))
	for _, path := range made.MetadataPaths() {
		mux.Handle(path, made.Metadata())
	}
	return mux, nil
}

// announce says who may come.
func (g *guarding) announce() {
	if g.guard == nil {
		if everywhere(g.flags.http) {
			g.p.note("parley: other machines can reach it, and nobody is asked who they are")
		}
		return
	}
	g.p.note("parley: callers need a token of %s for %s", host.EscapeLine(g.flags.auth), g.guard.Resource())
	for _, path := range g.guard.MetadataPaths() {
		g.p.note("parley: clients find that out at %s", path)
	}
	g.p.note("parley: tools that change something need the scope %s", writeScope)
}

// close ends what the guard has under way.
func (g *guarding) close() {
	if g.guard != nil {
		g.guard.Close()
	}
}
