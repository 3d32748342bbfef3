package guard

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// metadataAge is how many seconds metadata may be kept.
const metadataAge = 300

// A document is the metadata of a resource, made once.
type document struct {
	url   string   // where challenges say it is
	paths []string // of url, then at the root of the origin
	body  []byte
}

// describe makes the metadata (RFC 9728, section 2; spec 2026-07-28,
// basic/authorization/authorization-server-discovery: MUST).
func (g *Guard) describe() error {
	urls, err := oauth.ResourceMetadataURLs(g.resource)
	if err != nil {
		return fmt.Errorf("guard: metadata: %w", err)
	}
	for _, place := range urls {
		u, err := url.Parse(place)
		if err != nil {
			return fmt.Errorf("guard: metadata: %w", err)
		}
		g.document.paths = append(g.document.paths, u.EscapedPath())
	}
	g.document.url = urls[0]
	g.document.body, err = wire.Marshal(&oauth.ResourceMetadata{
		Resource:                      g.resource,
		AuthorizationServers:          g.opts.AuthorizationServers,
		ScopesSupported:               g.opts.ScopesSupported,
		BearerMethodsSupported:        []string{"header"},
		ResourceName:                  g.opts.Name,
		ResourceDocumentation:         g.opts.Documentation,
		DPoPBoundAccessTokensRequired: g.opts.DPoPRequired,
		DPoPSigningAlgValuesSupported: jwt.DefaultAlgorithms(),
	})
	if err != nil {
		return fmt.Errorf("guard: metadata: %w", err)
	}
	return nil
}

// MetadataPaths are the paths under which clients look for the metadata: with
// the path of the resource, which challenges name, and, if it has one, at the
// root of the origin. Of several guards of one origin all have the first, and
// one can have the root.
func (g *Guard) MetadataPaths() []string { return append([]string(nil), g.document.paths...) }

// Metadata serves the metadata at any path. Any client may read
// it, also pages of other origins.
func (g *Guard) Metadata() http.Handler { return http.HandlerFunc(g.serveMetadata) }

func (g *Guard) serveMetadata(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		h.Set("Content-Type", "application/json")
		h.Set("Cache-Control", "public, max-age="+strconv.Itoa(metadataAge))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Length", strconv.Itoa(len(g.document.body)))
		_, _ = w.Write(g.document.body) // the client may have gone
	case http.MethodOptions:
		h.Set("Access-Control-Allow-Methods", "GET, HEAD")
		h.Set("Access-Control-Allow-Headers", "*") // such as MCP-Protocol-Version
		h.Set("Access-Control-Max-Age", strconv.Itoa(metadataAge))
		w.WriteHeader(http.StatusNoContent)
	default:
		h.Set("Allow", "GET, HEAD, OPTIONS")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

// Handler serves the resource: endpoint, behind the guard, at the path of the
// resource, and the metadata at both of its places. Everything else is 404.
func (g *Guard) Handler(endpoint http.Handler) http.Handler {
	behind := g.Protect(endpoint)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.EscapedPath()
		if path == g.path || path == "" && g.path == "/" {
			behind.ServeHTTP(w, r)
			return
		}
		for _, place := range g.document.paths {
			if path == place {
				g.serveMetadata(w, r)
				return
			}
		}
		http.NotFound(w, r)
	})
}
