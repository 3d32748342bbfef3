package login_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/pausetimer"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
	"github.com/parley-mcp/parley/oauth/login"
)

// An authServer is an authorization server with switches for misbehaviour. The
// switches are set before requests come, or with lock held.
type authServer struct {
	*httptest.Server
	sync.Mutex

	path       string         // of the issuer, such as /tenant1
	places     []string       // of metadata; nil: RFC 8414's
	override   map[string]any // members of metadata; nil removes one
	handlers   map[string]http.HandlerFunc
	iss        string // in responses: "", "omit" or a value
	denies     string // error of the authorization endpoint
	clientID   string // that registrations give; "": client-N
	secret     string // that registrations give
	secretEnds int64
	method     string            // that registrations return
	redirect   func(string) bool // which redirect URIs are registered
	expires    int64             // expires_in
	norotate   bool              // refreshing gives no new refresh token
	norefrsh   bool              // no refresh tokens at all
	nonce      string            // that DPoP proofs must have
	bearer     bool              // ignores DPoP proofs
	status     int               // of answers that succeed; 0: as specified
	fail       map[string]string // by grant type: error to answer with, once
	down       bool              // the token endpoint answers 503
	answer     map[string]any    // members of token responses; nil removes one
	refused    http.HandlerFunc  // answers refreshes
	noResource string            // error of a refresh with resource

	clients    map[string]url.Values // by id: registered redirect URIs
	codes      map[string]url.Values // by code: the authorization request
	access     map[string]*grant     // by access token
	refresh    map[string]*grant     // by refresh token
	hits       []string              // method and path of all requests
	headers    []http.Header
	authorize  []url.Values
	tokens     []url.Values // forms of token requests
	registered []map[string]any
	revoked    []url.Values
	count      int
}

type grant struct {
	scope, resource, client, jkt string
}

func newAuthServer(t *testing.T, path string) *authServer {
	t.Helper()
	a := &authServer{path: path, expires: 3600}
	a.prepare()
	a.Server = webtest.Serve(t, a)
	return a
}

func (a *authServer) prepare() {
	a.clients, a.codes = map[string]url.Values{}, map[string]url.Values{}
	a.access, a.refresh = map[string]*grant{}, map[string]*grant{}
	a.handlers, a.fail, a.override = map[string]http.HandlerFunc{}, map[string]string{}, map[string]any{}
}

func (a *authServer) issuer() string { return a.URL + a.path }

func (a *authServer) metadata() map[string]any {
	m := map[string]any{
		"issuer": a.issuer(), "authorization_endpoint": a.issuer() + "/authorize", "token_endpoint": a.issuer() + "/token",
		"registration_endpoint": a.issuer() + "/register", "response_types_supported": []string{"code"},
		"code_challenge_methods_supported":               []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"none"},
		"authorization_response_iss_parameter_supported": true,
	}
	for name, value := range a.override {
		if m[name] = value; value == nil {
			delete(m, name)
		}
	}
	return m
}

func (a *authServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.Lock()
	defer a.Unlock()
	a.hits = append(a.hits, r.Method+" "+r.URL.Path)
	a.headers = append(a.headers, r.Header.Clone())
	if h := a.handlers[r.URL.Path]; h != nil {
		h(w, r)
		return
	}
	places := a.places
	if places == nil {
		places = []string{"/.well-known/oauth-authorization-server" + a.path}
	}
	switch {
	case slices.Contains(places, r.URL.Path):
		reply(w, 200, a.metadata())
	case r.URL.Path == a.path+"/authorize":
		a.serveAuthorize(w, r)
	case r.URL.Path == a.path+"/token":
		a.serveToken(w, r)
	case r.URL.Path == a.path+"/register":
		a.serveRegister(w, r)
	case r.URL.Path == a.path+"/revoke":
		_ = r.ParseForm()
		a.revoked = append(a.revoked, r.PostForm)
	default:
		http.NotFound(w, r)
	}
}

func (a *authServer) serveRegister(w http.ResponseWriter, r *http.Request) {
	var m map[string]any
	_ = json.NewDecoder(r.Body).Decode(&m)
	a.registered = append(a.registered, m)
	var redirects []string
	list, _ := m["redirect_uris"].([]any) // devices have none
	for _, v := range list {
		redirects = append(redirects, v.(string))
	}
	if a.redirect != nil && !a.redirect(redirects[0]) {
		reply(w, 400, map[string]any{"error": "invalid_redirect_uri", "error_description": "not that one"})
		return
	}
	a.count++
	id := a.clientID
	if id == "" {
		id = fmt.Sprintf("client-%d", a.count)
	}
	a.clients[id] = url.Values{"redirect_uri": redirects}
	answer := map[string]any{"client_id": id, "redirect_uris": redirects}
	if a.secret != "" {
		answer["client_secret"], answer["client_secret_expires_at"] = a.secret, a.secretEnds
	}
	if a.method != "" {
		answer["token_endpoint_auth_method"] = a.method
	}
	reply(w, cmp.Or(a.status, 201), answer)
}

func (a *authServer) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a.authorize = append(a.authorize, q)
	back, _ := url.Parse(q.Get("redirect_uri"))
	answer := url.Values{"state": {q.Get("state")}}
	switch {
	case a.denies != "":
		answer.Set("error", a.denies)
		answer.Set("error_description", "said the server")
	default:
		a.count++
		code := fmt.Sprintf("code-%d", a.count)
		a.codes[code] = q
		answer.Set("code", code)
	}
	switch a.iss {
	case "":
		answer.Set("iss", a.issuer())
	case "omit":
	default:
		answer.Set("iss", a.iss)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (a *authServer) serveToken(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	form := maps.Clone(r.PostForm)
	if id, secret, ok := r.BasicAuth(); ok {
		form.Set("basic", id+":"+secret)
	}
	a.tokens = append(a.tokens, form)
	kind := form.Get("grant_type")
	if a.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if code := a.fail[kind]; code != "" {
		delete(a.fail, kind)
		status := 400
		if code == "invalid_client" {
			status = 401
		}
		reply(w, status, map[string]any{"error": code})
		return
	}
	if kind == "refresh_token" && a.refused != nil {
		a.refused(w, r)
		return
	}
	if kind == "refresh_token" && a.noResource != "" && form.Has("resource") {
		reply(w, 400, map[string]any{"error": a.noResource})
		return
	}
	g := &grant{client: form.Get("client_id"), resource: form.Get("resource"), scope: form.Get("scope")}
	switch kind {
	case "authorization_code":
		q, ok := a.codes[form.Get("code")]
		delete(a.codes, form.Get("code"))
		if !ok || !oauth.VerifyS256(form.Get("code_verifier"), q.Get("code_challenge")) ||
			form.Get("redirect_uri") != q.Get("redirect_uri") || form.Get("resource") != q.Get("resource") {
			reply(w, 400, map[string]any{"error": "invalid_grant"})
			return
		}
		g.scope = q.Get("scope")
		g.jkt = q.Get("dpop_jkt")
	case "refresh_token":
		old, ok := a.refresh[form.Get("refresh_token")]
		if !ok {
			reply(w, 400, map[string]any{"error": "invalid_grant"})
			return
		}
		if !a.norotate {
			delete(a.refresh, form.Get("refresh_token"))
		}
		*g = *old
	}
	proof := r.Header.Get("DPoP")
	if proof != "" && !a.bearer {
		p, err := jwt.VerifyProof(proof, &jwt.ProofCheck{Method: "POST", URL: a.issuer() + "/token", Now: time.Now()})
		if err != nil || g.jkt != "" && g.jkt != p.Thumbprint {
			reply(w, 400, map[string]any{"error": "invalid_dpop_proof"})
			return
		}
		if a.nonce != "" && p.Nonce != a.nonce {
			a.codes[form.Get("code")] = a.authorize[len(a.authorize)-1]
			w.Header().Set("DPoP-Nonce", a.nonce)
			reply(w, 400, map[string]any{"error": "use_dpop_nonce"})
			return
		}
		g.jkt = p.Thumbprint
	}
	a.issue(w, g, kind)
}

func (a *authServer) issue(w http.ResponseWriter, g *grant, kind string) {
	a.count++
	access := fmt.Sprintf("access-%d-%s", a.count, a.Listener.Addr())
	if a.bearer {
		g.jkt = ""
	}
	a.access[access] = g
	answer := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": a.expires}
	if g.jkt != "" {
		answer["token_type"] = "DPoP"
	}
	if kind != "client_credentials" && !a.norefrsh && (kind != "refresh_token" || !a.norotate) {
		refresh := fmt.Sprintf("refresh-%d", a.count)
		a.refresh[refresh] = g
		answer["refresh_token"] = refresh
	}
	if g.scope != "" {
		answer["scope"] = g.scope
	}
	for name, value := range a.answer {
		if answer[name] = value; value == nil && name != "expires_in" {
			delete(answer, name)
		}
	}
	reply(w, cmp.Or(a.status, 200), answer)
}

// seen is a copy of what came in.
func (a *authServer) seen() (authorize, tokens []url.Values, registered []map[string]any, hits []string) {
	a.Lock()
	defer a.Unlock()
	return slices.Clone(a.authorize), slices.Clone(a.tokens), slices.Clone(a.registered), slices.Clone(a.hits)
}

// expire makes all access tokens invalid; cut all refresh tokens too.
func (a *authServer) expire(cut bool) {
	a.Lock()
	defer a.Unlock()
	clear(a.access)
	if cut {
		clear(a.refresh)
	}
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// A resourceServer is a protected resource at /mcp with switches.
type resourceServer struct {
	*httptest.Server
	sync.Mutex

	as       []*authServer // whose tokens are taken, and which are named
	prmPath  string        // "none": no metadata
	resource string        // in the metadata; "": URL/mcp
	prm      map[string]any
	silent   bool              // no resource_metadata in challenges
	header   string            // the whole challenge of a 401; "": made, "-": none
	scope    string            // in the 401 challenge
	needs    map[string]string // by Mcp-Name: scopes needed
	nonce    string            // that DPoP proofs must have
	handlers map[string]http.HandlerFunc
	inner    *authServer  // serves what is not the resource's, as in the oldest revision
	next     http.Handler // serves what is let in

	requests []*http.Request
	bodies   []string
}

func newResource(t *testing.T, as ...*authServer) *resourceServer {
	t.Helper()
	s := &resourceServer{as: as, prmPath: "/.well-known/oauth-protected-resource/mcp"}
	s.prepare()
	s.Server = webtest.Serve(t, s)
	return s
}

// newServers makes an authorization server and a resource that takes its tokens.
func newServers(t *testing.T) (*authServer, *resourceServer) {
	t.Helper()
	as := newAuthServer(t, "")
	return as, newResource(t, as)
}

// change sets switches of a server between requests.
func change(s sync.Locker, set func()) {
	s.Lock()
	defer s.Unlock()
	set()
}

// newLegacy makes a resource of the oldest revision: no metadata of its own, and
// its origin is its authorization server.
func newLegacy(t *testing.T) (*resourceServer, *authServer) {
	t.Helper()
	as, rs := newServers(t)
	as.Close()
	as.Server = rs.Server
	rs.prmPath, rs.inner = "none", as
	return rs, as
}

func (s *resourceServer) prepare() {
	s.needs, s.handlers, s.prm = map[string]string{}, map[string]http.HandlerFunc{}, map[string]any{}
}

func (s *resourceServer) url() string { return s.URL + "/mcp" }

func (s *resourceServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Lock()
	defer s.Unlock()
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.requests, s.bodies = append(s.requests, r), append(s.bodies, string(body))
	if h := s.handlers[r.URL.Path]; h != nil {
		h(w, r)
		return
	}
	switch {
	case r.URL.Path == s.prmPath:
		s.serveMetadata(w)
	case r.URL.Path == "/mcp" || strings.HasPrefix(r.URL.Path, "/mcp/"):
		s.serve(w, r)
	case s.inner != nil:
		s.inner.ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (s *resourceServer) serveMetadata(w http.ResponseWriter) {
	m := map[string]any{"resource": s.resource}
	if s.resource == "" {
		m["resource"] = s.url()
	}
	var issuers []string
	for _, a := range s.as {
		issuers = append(issuers, a.issuer())
	}
	m["authorization_servers"] = issuers
	maps.Copy(m, s.prm)
	reply(w, 200, m)
}

func (s *resourceServer) serve(w http.ResponseWriter, r *http.Request) {
	challenge := func(status int, params string) {
		scheme := "Bearer "
		if s.prm["dpop_bound_access_tokens_required"] == true {
			scheme = "DPoP "
		}
		if !s.silent && s.prmPath != "none" {
			params += `, resource_metadata="` + s.URL + s.prmPath + `"`
		}
		value := scheme + strings.TrimPrefix(params, ", ")
		if s.header != "" && status == 401 {
			value = s.header
		}
		if value != "-" {
			w.Header().Set("WWW-Authenticate", value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "refused")
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	var g *grant
	for _, a := range s.as {
		a.Lock()
		if g == nil {
			g = a.access[token]
		}
		a.Unlock()
	}
	if g == nil || g.jkt != "" && scheme != "DPoP" {
		params := ""
		if s.scope != "" {
			params = `, scope="` + s.scope + `"`
		}
		if token != "" {
			params += `, error="invalid_token"`
		}
		challenge(401, params)
		return
	}
	if g.jkt != "" {
		p, err := jwt.VerifyProof(r.Header.Get("DPoP"), &jwt.ProofCheck{
			Method: r.Method, URL: s.URL + r.URL.Path, AccessToken: token, Now: time.Now(),
		})
		if err != nil || p.Thumbprint != g.jkt {
			challenge(401, `, error="invalid_dpop_proof"`)
			return
		}
		if s.nonce != "" && p.Nonce != s.nonce {
			w.Header().Set("DPoP-Nonce", s.nonce)
			w.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
			w.WriteHeader(401)
			return
		}
	}
	for _, need := range strings.Fields(s.needs[r.Header.Get("Mcp-Name")]) {
		if !slices.Contains(strings.Fields(g.scope), need) {
			challenge(403, `, error="insufficient_scope", scope="`+s.needs[r.Header.Get("Mcp-Name")]+`"`)
			return
		}
	}
	if s.next != nil {
		s.Unlock()
		defer s.Lock()
		s.next.ServeHTTP(w, r)
		return
	}
	_, _ = io.WriteString(w, "welcome "+r.URL.Path)
}

// calls are the requests to the resource proper, by their Authorization.
func (s *resourceServer) calls() (auth []string) {
	s.Lock()
	defer s.Unlock()
	for _, r := range s.requests {
		if strings.HasPrefix(r.URL.Path, "/mcp") {
			auth = append(auth, r.Header.Get("Authorization"))
		}
	}
	return auth
}

// newClient makes a Client with a browser of its own unless the options have one.
func newClient(t *testing.T, o login.Options) (*login.Client, *browser) {
	t.Helper()
	b, ok := o.Authorizer.(*browser)
	if !ok {
		b = &browser{}
		o.Authorizer = b
	}
	c := login.New(&o)
	t.Cleanup(func() { _ = c.Close() })
	return c, b
}

// get makes a request and returns status and body.
func get(t *testing.T, h *http.Client, target string, header ...string) (int, string, error) {
	t.Helper()
	r, err := webtest.Read(h, webtest.NewRequest(t, t.Context(), http.MethodGet, target, "", header...))
	return r.Status, r.Body, err
}

// post sends a text and returns status and body.
func post(t *testing.T, h *http.Client, target, body string) (int, string, error) {
	t.Helper()
	r, err := webtest.Read(h, webtest.NewRequest(t, t.Context(), http.MethodPost, target, body))
	return r.Status, r.Body, err
}

// postOnce is post for a body that can be read only once.
func postOnce(t *testing.T, h *http.Client, target, body string) (int, string, error) {
	t.Helper()
	req := webtest.NewRequest(t, t.Context(), http.MethodPost, target, body)
	req.GetBody, req.ContentLength = nil, -1
	r, err := webtest.Read(h, req)
	return r.Status, r.Body, err
}

// welcome makes a request that must succeed.
func welcome(t *testing.T, h *http.Client, target string, header ...string) {
	t.Helper()
	status, body, err := get(t, h, target, header...)
	if err != nil || status != 200 {
		t.Fatalf("GET %s: %d %q %v, want 200", target, status, body, err)
	}
}

// A timeLimit is the clock of who waits for a request.
type timeLimit struct{ pause, resume func() }

func (l timeLimit) Pause()  { l.pause() }
func (l timeLimit) Resume() { l.resume() }

// limited is a context whose time limit tells of its pauses; either may be nil.
func limited(ctx context.Context, pause, resume func()) context.Context {
	l := timeLimit{func() {}, func() {}}
	if pause != nil {
		l.pause = pause
	}
	if resume != nil {
		l.resume = resume
	}
	return context.WithValue(ctx, pausetimer.Key{}, l)
}
