package issuer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// newRoutes maps paths to handlers. Paths are compared as they are, without
// cleaning: what is not listed is not there.
func (s *Server) newRoutes() (map[string]http.Handler, error) {
	routes := map[string]http.Handler{
		s.path("token"):      open(s.serveToken, http.MethodPost),
		s.path("revoke"):     open(s.serveRevoke, http.MethodPost),
		s.path("introspect"): open(s.serveIntrospect, http.MethodPost),
		s.path("jwks"):       open(s.serveKeys, http.MethodGet),
		s.path("authorize"):  s.browser("authorize", s.serveAuthorize),
		s.path("consent"):    s.browser("consent", s.serveConsent),
		s.path("login"):      s.browser("login", s.serveLogin),
	}
	if s.opts.Registration.On {
		routes[s.path("register")] = open(s.serveRegister, http.MethodPost)
	}
	if s.opts.Device.On {
		routes[s.path("device_authorization")] = open(s.serveDeviceAuthorization, http.MethodPost)
		routes[s.path("device")] = s.browser("device", s.serveDevice)
	}
	if err := s.addAccount(routes); err != nil {
		return nil, err
	}
	places, err := oauth.ServerMetadataURLs(s.issuer)
	if err != nil {
		return nil, fmt.Errorf("issuer: %w", err)
	}
	for _, place := range places {
		u, err := url.Parse(place)
		if err != nil {
			return nil, fmt.Errorf("issuer: %w", err)
		}
		routes[u.EscapedPath()] = open(s.serveMetadata, http.MethodGet)
	}
	return routes, nil
}

// Paths are the paths that the server answers, for a mux in front of it. One
// that ends in a slash stands for everything below it. Requests must arrive
// with their path whole, nothing stripped.
func (s *Server) Paths() []string {
	return append(slices.Sorted(maps.Keys(s.routes)), s.path("login/"))
}

// ServeHTTP answers all of the issuer's endpoints and nothing else.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.isOwnHost(r) {
		http.Error(w, "this server has another name", http.StatusMisdirectedRequest)
		return
	}
	path := r.URL.EscapedPath()
	if strings.HasPrefix(path, s.path("login/")) {
		path = s.path("login")
	}
	if h, ok := s.routes[path]; ok {
		h.ServeHTTP(w, r)
		return
	}
	http.NotFound(w, r)
}

// isOwnHost says whether a request may be meant for this issuer. One on loopback is
// asked only by names of loopback: any other was made to lead here by its owner
// (DNS rebinding), whose pages would be of one origin with this server.
func (s *Server) isOwnHost(r *http.Request) bool {
	if !s.local {
		return true
	}
	host, err := url.Parse("http://" + r.Host)
	return err == nil && oauth.LoopbackHost(host.Hostname())
}

// sweepInterval is how often Run looks for what is due.
const sweepInterval = time.Minute

// Run sweeps the store, makes the signing keys and tells the counts of the audit that are due, until
// ctx ends. It then returns nil: what goes wrong on the way is logged and tried again. A
// server works without Run, but its store grows.
func (s *Server) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		s.maintain(ctx)
		select {
		case <-ctx.Done():
			s.tellCounted(context.WithoutCancel(ctx), true)
			return nil
		case <-tick.C:
		}
	}
}

func (s *Server) maintain(ctx context.Context) {
	s.tellCounted(ctx, false)
	if err := s.keys.maintain(ctx); err != nil && !errors.Is(err, context.Canceled) {
		s.log.ErrorContext(ctx, "making signing keys", "error", err.Error())
	}
	switch n, err := s.store.Sweep(ctx, s.now()); {
	case err != nil && !errors.Is(err, context.Canceled):
		s.log.ErrorContext(ctx, "sweeping the store", "error", err.Error())
	case n > 0:
		s.log.DebugContext(ctx, "swept the store", "records", n)
	}
}

// open makes an endpoint one that pages of every origin may use: it knows no
// cookies, so a page has nothing that its user's browser adds. The methods of
// GET endpoints include HEAD.
func open(h http.HandlerFunc, method string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Access-Control-Allow-Origin", "*")
		header.Set("Access-Control-Expose-Headers", "DPoP-Nonce, Retry-After, WWW-Authenticate")
		switch {
		case r.Method == http.MethodOptions:
			header.Set("Access-Control-Allow-Methods", method)
			header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, DPoP, MCP-Protocol-Version")
			header.Set("Access-Control-Max-Age", "3600")
			w.WriteHeader(http.StatusNoContent)
		case r.Method == method, method == http.MethodGet && r.Method == http.MethodHead:
			h(w, r)
		default:
			header.Set("Allow", method)
			answerJSON(w, http.StatusMethodNotAllowed, &oauth.Error{
				Code: oauth.InvalidRequest, Description: "use " + method,
			})
		}
	})
}

// maxForm is the size in bytes of the largest form that a browser sends here,
// and of the longest query.
const maxForm = 16 << 10

// browser makes an endpoint one for people: its answers are for no
// cache, frame or referrer, requests are bounded, counted by address, and their
// forms are parsed.
func (s *Server) browser(endpoint string, h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guardPage(w.Header())
		if r.Method != http.MethodGet && r.Method != http.MethodPost {
			w.Header().Set("Allow", "GET, POST")
			s.refusePage(w, r, http.StatusMethodNotAllowed, "This page cannot be used in this way.")
			return
		}
		if wait, ok := s.allow(r, endpoint, ""); !ok {
			if endpoint == "login" {
				s.audit(r.Context(), Event{
					Name: "login", Outcome: oauth.AccessDenied, Remote: s.opts.Remote(r), Reason: "too many requests",
				})
			}
			setRetryAfter(w.Header(), wait)
			s.refusePage(w, r, http.StatusTooManyRequests, "Too many requests came from your network. Wait a little and try again.")
			return
		}
		if len(r.URL.RawQuery) > maxForm {
			s.refusePage(w, r, http.StatusRequestURITooLong, "The address of this request is too long.")
			return
		}
		body, err := readBody(w, r, maxForm)
		if err == nil {
			r.Body = io.NopCloser(bytes.NewReader(body))
			err = r.ParseForm()
		}
		if err != nil {
			s.refusePage(w, r, bodyStatus(err), "This request cannot be read.")
			return
		}
		h(w, r)
	})
}
