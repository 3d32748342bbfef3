package issuer_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
	"github.com/parley-mcp/parley/oauth/issuer"
)

const (
	deskIssuer  = "https://as.example/tenant"
	otherServer = "https://other.example/mcp"
	secret      = "s3cret with spaces & ümläuts"
)

// A desk is an issuer whose back offices are under test: requests go to the
// handler directly, codes straight into the store.
type desk struct {
	t      *testing.T
	server *issuer.Server
	store  issuer.Store
	clock  *clocktest.Clock
	events *events
	signer *jwt.Key // of the client "signer"
}

// newDesk makes a desk; change may be nil, store too.
func newDesk(t *testing.T, store issuer.Store, change func(*issuer.Options)) *desk {
	t.Helper()
	if store == nil {
		store = issuer.NewMemory()
	}
	d := &desk{
		t: t, store: store, events: new(events), signer: newKey(t),
		clock: clocktest.New(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)),
	}
	d.server = d.open(change)
	return d
}

// open makes one more server on the same store.
func (d *desk) open(change func(*issuer.Options)) *issuer.Server {
	d.t.Helper()
	user := []string{oauth.GrantAuthorizationCode, oauth.GrantRefreshToken}
	o := &issuer.Options{
		Resources: []issuer.Resource{{
			URI: mcpServer,
			Scopes: []issuer.Scope{
				{Name: "read"},
				{Name: "write"},
				{Name: "admin", Implies: []string{"write", "read"}},
			},
			Default: []string{"read"}, Introspectors: []string{"rs"}, ExchangeTo: []string{otherServer},
		}, {
			URI: otherServer, Scopes: []issuer.Scope{{Name: "other"}}, Default: []string{"other"},
			Introspectors: []string{"rs2"},
		}},
		Clients: []issuer.StaticClient{
			{ID: "public", Metadata: oauth.ClientMetadata{GrantTypes: user, RedirectURIs: []string{webRedirect}}},
			{ID: "thief", Metadata: oauth.ClientMetadata{GrantTypes: user, RedirectURIs: []string{webRedirect}}},
			{ID: "code only", Metadata: oauth.ClientMetadata{GrantTypes: user[:1:1], RedirectURIs: []string{webRedirect}}},
			{ID: "usual", Metadata: oauth.ClientMetadata{RedirectURIs: []string{webRedirect}}},
			{ID: "web", Secret: secret, Metadata: oauth.ClientMetadata{GrantTypes: user, RedirectURIs: []string{webRedirect}}},
			{ID: "basic", Secret: secret, Metadata: machine(oauth.AuthSecretBasic)},
			{ID: "post", Secret: secret, Metadata: machine(oauth.AuthSecretPost), Subject: "robot"},
			{ID: "narrow", Secret: secret, Metadata: machine(""), Resources: []string{mcpServer}, Scopes: []string{"write"}},
			{ID: "signer", Metadata: func() oauth.ClientMetadata {
				m := machine(oauth.AuthPrivateKeyJWT)
				m.JWKS = jwt.SetJSON(d.signer)
				return m
			}()},
			{ID: "rs", Secret: secret, Metadata: oauth.ClientMetadata{GrantTypes: []string{oauth.GrantTokenExchange}}},
			{ID: "rs2", Secret: secret, Metadata: oauth.ClientMetadata{GrantTypes: []string{oauth.GrantTokenExchange}}},
			{ID: "poster", Secret: secret, Metadata: oauth.ClientMetadata{
				TokenEndpointAuthMethod: oauth.AuthSecretPost, GrantTypes: append(user, oauth.GrantJWTBearer), RedirectURIs: []string{webRedirect},
			}},
			{ID: "agent", Secret: secret, Metadata: oauth.ClientMetadata{GrantTypes: []string{oauth.GrantJWTBearer}}},
		},
		RateLimit: -1,
		Now:       d.clock.Now,
		Logger:    d.events.Logger(),
		Audit: func(_ context.Context, e issuer.Event) {
			d.events.add(e)
		},
	}
	if change != nil {
		change(o)
	}
	server, err := issuer.New(deskIssuer, d.store, formLogin{}, o)
	if err != nil {
		d.t.Fatal(err)
	}
	return server
}

func machine(method string) oauth.ClientMetadata {
	return oauth.ClientMetadata{TokenEndpointAuthMethod: method, GrantTypes: []string{oauth.GrantClientCredentials}}
}

func newKey(t testing.TB) *jwt.Key {
	t.Helper()
	key, err := jwt.NewKey("ES256")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// An answer is what an endpoint said.
type answer struct {
	Status int
	Header http.Header
	Raw    string
	Body   map[string]any
}

func (a *answer) text(name string) string {
	s, _ := a.Body[name].(string)
	return s
}

// brief is status and error code.
func (a *answer) brief() string {
	if a.Status == http.StatusOK {
		return "ok"
	}
	return a.text("error")
}

// params makes a form of pairs of names and values.
func params(pairs ...string) url.Values {
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return form
}

// change returns a form with pairs of names and values set; "-" removes one.
func change(form url.Values, pairs ...string) url.Values {
	out := url.Values{}
	for name, values := range form {
		out[name] = values
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if out.Del(pairs[i]); pairs[i+1] != "-" {
			out.Set(pairs[i], pairs[i+1])
		}
	}
	return out
}

// An extra changes a request before it is sent.
type extra func(*http.Request)

func basic(id, password string) extra {
	return func(r *http.Request) { r.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(password)) }
}

func header(name, value string) extra {
	return func(r *http.Request) { r.Header.Add(name, value) }
}

func send(server http.Handler, endpoint string, form url.Values, extras ...extra) *answer {
	r := httptest.NewRequest(http.MethodPost, deskIssuer+"/"+endpoint, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, e := range extras {
		e(r)
	}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	a := &answer{Status: w.Code, Header: w.Header(), Raw: w.Body.String()}
	_ = json.Unmarshal(w.Body.Bytes(), &a.Body) // what is no JSON has no members
	return a
}

func (d *desk) token(form url.Values, extras ...extra) *answer {
	return send(d.server, "token", form, extras...)
}

// want sends a token request that must succeed.
func (d *desk) want(form url.Values, extras ...extra) *answer {
	d.t.Helper()
	a := d.token(form, extras...)
	if a.Status != http.StatusOK {
		d.t.Fatalf("token endpoint: %d %s", a.Status, a.Raw)
	}
	return a
}

// active asks the resource server's question about an access token.
func (d *desk) active(token string) bool {
	d.t.Helper()
	a := send(d.server, "introspect", params("token", token), basic("rs", secret))
	if a.Status != http.StatusOK {
		d.t.Fatalf("introspection: %d %s", a.Status, a.Raw)
	}
	return a.Body["active"] == true
}

// code stores a code, and its grant, as /authorize does.
func (d *desk) code(client string, changes ...func(*issuer.Grant, *issuer.Code)) string {
	d.t.Helper()
	now := d.clock.Now()
	code := oauth.NewSecret()
	g := &issuer.Grant{
		ID: oauth.NewSecret(), ClientID: client, Subject: "ada", Scopes: []string{"admin"}, Resource: mcpServer,
		AuthTime: now.Add(-time.Minute), Created: now, Expires: now.Add(30 * 24 * time.Hour), Claims: []byte(`{"name":"Ada","iss":"evil"}`),
	}
	c := &issuer.Code{
		Grant: g.ID, ClientID: client, RedirectURI: webRedirect, Challenge: oauth.ChallengeS256(verifier),
		Resource: mcpServer, Expires: now.Add(time.Minute),
	}
	for _, f := range changes {
		f(g, c)
	}
	if err := d.store.AddGrant(d.t.Context(), g); err != nil {
		d.t.Fatal(err)
	}
	if err := d.store.AddCode(d.t.Context(), issuer.Hash(code), c); err != nil {
		d.t.Fatal(err)
	}
	return code
}

// bound is a change to a code that binds it to a DPoP key.
func bound(key *jwt.Key) func(*issuer.Grant, *issuer.Code) {
	return func(g *issuer.Grant, c *issuer.Code) { g.Key, c.Key = key.Thumbprint(), key.Thumbprint() }
}

func redeem(client, code string) url.Values {
	return params("grant_type", oauth.GrantAuthorizationCode, "client_id", client, "code", code,
		"redirect_uri", webRedirect, "code_verifier", verifier, "resource", mcpServer)
}

func refreshWith(client, token string) url.Values {
	return params("grant_type", oauth.GrantRefreshToken, "client_id", client, "refresh_token", token)
}

// signIn gets the first tokens of a fresh family.
func (d *desk) signIn(client string) *answer {
	d.t.Helper()
	return d.want(redeem(client, d.code(client)))
}

// claims verifies an access token as a resource server does, with the
// published keys.
func (d *desk) claims(raw string) *jwt.Token {
	d.t.Helper()
	r := httptest.NewRequest(http.MethodGet, deskIssuer+"/jwks", nil)
	w := httptest.NewRecorder()
	d.server.ServeHTTP(w, r)
	set, err := jwt.ParseSet(w.Body.Bytes())
	if err != nil {
		d.t.Fatalf("published keys: %v", err)
	}
	token, err := jwt.Verify(d.t.Context(), raw, set, &jwt.Check{
		Algorithms: jwt.DefaultAlgorithms(), Types: []string{jwt.TypeAccessToken}, Issuer: deskIssuer,
		Now: d.clock.Now(), NeedExpiry: true,
	})
	if err != nil {
		d.t.Fatalf("access token: %v", err)
	}
	return token
}

// Proves: S1, S8 and RFC 9068: what a code is exchanged for.
func TestRedeemCode(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	a := d.signIn("public")
	if got := a.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control is %q", got)
	}
	if a.text("refresh_token") == "" || a.text("token_type") != "Bearer" || a.text("scope") != "admin" || a.Body["expires_in"] != 600.0 {
		t.Errorf("answer %s", a.Raw)
	}
	token := d.claims(a.text("access_token"))
	now := d.clock.Now()
	got := token.Claims
	if got.ID == "" || got.Grant == "" {
		t.Errorf("jti %q, gid %q", got.ID, got.Grant)
	}
	got.ID, got.Grant = "", ""
	want := jwt.Claims{
		Issuer: deskIssuer, Subject: "ada", Audience: []string{mcpServer}, ClientID: "public", Scope: "admin",
		IssuedAt: now, Expiry: now.Add(10 * time.Minute), AuthTime: now.Add(-time.Minute),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if !strings.Contains(string(token.Raw), `"name":"Ada"`) {
		t.Errorf("the grant's own claims are missing in %s", token.Raw)
	}
	if d.events.count("token.issued", "ok") != 1 {
		t.Error("the audit log has not one event")
	}
	if a := d.want(redeem("code only", d.code("code only"))); a.text("refresh_token") != "" {
		t.Error("a client that is not registered for refresh tokens got one")
	}
	if a := d.want(change(redeem("public", d.code("public")), "resource", "-")); a.text("access_token") == "" {
		t.Error("a request without resource is refused")
	}
}

func TestCodeIsChecked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change []string
		want   string
		burnt  bool
	}{
		"no code":               {[]string{"code", "-"}, oauth.InvalidRequest, false},
		"no verifier":           {[]string{"code_verifier", "-"}, oauth.InvalidRequest, false},
		"another code":          {[]string{"code", "x"}, oauth.InvalidGrant, false},
		"another verifier":      {[]string{"code_verifier", strings.Repeat("b", 43)}, oauth.InvalidGrant, true},
		"challenge as verifier": {[]string{"code_verifier", oauth.ChallengeS256(verifier)}, oauth.InvalidGrant, true},
		"another redirect":      {[]string{"redirect_uri", webRedirect + "/"}, oauth.InvalidGrant, true},
		"another redirect host": {[]string{"redirect_uri", "https://evil.example/cb"}, oauth.InvalidGrant, true},
		"another resource":      {[]string{"resource", otherServer}, oauth.InvalidTarget, true},
		"an unknown resource":   {[]string{"resource", "https://evil.example"}, oauth.InvalidTarget, true},
		"no resource at all":    {[]string{"resource", "::"}, oauth.InvalidTarget, true},
		"same resource":         {[]string{"resource", "HTTPS://MCP.example:443/mcp"}, "ok", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, nil, nil)
			code := d.code("public")
			if got := d.token(change(redeem("public", code), tt.change...)).brief(); got != tt.want {
				t.Errorf("answer %s, want %s", got, tt.want)
			}
			want := "ok"
			if tt.burnt {
				want = oauth.InvalidGrant
			}
			if got := d.token(redeem("public", code)).brief(); got != want {
				t.Errorf("the code afterwards: %s, want %s", got, want)
			}
		})
	}
	d := newDesk(t, nil, nil)
	code := d.code("public")
	d.clock.Add(61 * time.Second)
	if got := d.token(redeem("public", code)).brief(); got != oauth.InvalidGrant {
		t.Errorf("an expired code: %s", got)
	}
	code = d.code("public", func(_ *issuer.Grant, c *issuer.Code) { c.RedirectURI = "" })
	if got := d.token(change(redeem("public", code), "redirect_uri", "-")).brief(); got != "ok" {
		t.Errorf("no redirect URI in either request: %s", got)
	}
	// OAuth 2.1, section 4.1.3: the parameter is gone.
	if got := d.token(change(redeem("public", d.code("public")), "redirect_uri", "-")).brief(); got != "ok" {
		t.Errorf("no redirect URI in the token request: %s", got)
	}
}

func TestTokenRequests(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	machine := params("grant_type", oauth.GrantClientCredentials, "client_id", "post", "client_secret", secret, "resource", mcpServer)
	body := func(media, text string) extra {
		return func(r *http.Request) {
			r.Header.Set("Content-Type", media)
			*r = *httptest.NewRequest(r.Method, r.URL.String(), strings.NewReader(text))
			r.Header.Set("Content-Type", media)
		}
	}
	const media = "application/x-www-form-urlencoded"
	for name, tt := range map[string]struct {
		form   url.Values
		extra  extra
		status int
		want   string
	}{
		"good":                  {machine, nil, 200, ""},
		"charset":               {machine, body(media+"; charset=UTF-8", machine.Encode()), 200, ""},
		"GET":                   {machine, func(r *http.Request) { r.Method = http.MethodGet }, 405, oauth.InvalidRequest},
		"PUT":                   {machine, func(r *http.Request) { r.Method = http.MethodPut }, 405, oauth.InvalidRequest},
		"JSON":                  {machine, body("application/json", "{}"), 415, oauth.InvalidRequest},
		"no media type":         {machine, body("", machine.Encode()), 415, oauth.InvalidRequest},
		"too large":             {machine, body(media, machine.Encode()+"&x="+strings.Repeat("x", 64<<10)), 413, oauth.InvalidRequest},
		"too many":              {machine, body(media, machine.Encode()+"&"+many(100)), 400, oauth.InvalidRequest},
		"broken escape":         {machine, body(media, "grant_type=%zz"), 400, oauth.InvalidRequest},
		"empty":                 {nil, nil, 400, oauth.InvalidRequest},
		"empty grant type":      {change(machine, "grant_type", ""), nil, 400, oauth.InvalidRequest},
		"unknown grant type":    {change(machine, "grant_type", "password"), nil, 400, oauth.UnsupportedGrantType},
		"implicit":              {change(machine, "grant_type", "implicit"), nil, 400, oauth.UnsupportedGrantType},
		"not registered":        {change(machine, "grant_type", oauth.GrantRefreshToken, "refresh_token", "x"), nil, 400, oauth.UnauthorizedClient},
		"twice":                 {machine, body(media, machine.Encode()+"&scope=read&scope=read"), 400, oauth.InvalidRequest},
		"twice, once empty":     {machine, body(media, machine.Encode()+"&scope=read&scope="), 400, oauth.InvalidRequest},
		"two resources":         {machine, body(media, machine.Encode()+"&resource=https://other.example/mcp"), 400, oauth.InvalidTarget},
		"unknown resource":      {change(machine, "resource", "https://evil.example"), nil, 400, oauth.InvalidTarget},
		"no resource of two":    {change(machine, "resource", "-"), nil, 400, oauth.InvalidTarget},
		"unknown scope":         {change(machine, "scope", "read root"), nil, 400, oauth.InvalidScope},
		"scope of another":      {change(machine, "scope", "other"), nil, 400, oauth.InvalidScope},
		"broken scope":          {change(machine, "scope", `"`), nil, 400, oauth.InvalidScope},
		"offline_access":        {change(machine, "scope", "read offline_access"), nil, 200, ""},
		"unknown parameter":     {change(machine, "x", "y"), nil, 200, ""},
		"parameters in the URL": {nil, func(r *http.Request) { r.URL.RawQuery = machine.Encode() }, 400, oauth.InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var extras []extra
			if tt.extra != nil {
				extras = append(extras, tt.extra)
			}
			a := d.token(tt.form, extras...)
			if a.Status != tt.status || a.text("error") != tt.want {
				t.Errorf("%d %s, want %d %s", a.Status, a.Raw, tt.status, tt.want)
			}
			if got := a.Header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("Cache-Control is %q", got)
			}
			if a.text("refresh_token") != "" {
				t.Error("client_credentials gave a refresh token")
			}
		})
	}
}

func many(n int) string {
	form := url.Values{}
	for i := range n {
		form.Set("p"+string(rune('0'+i/10))+string(rune('0'+i%10)), "x")
	}
	return form.Encode()
}

// FuzzToken proves that no form gets a token without a secret that exists,
// and that whatever goes wrong is said in fixed words.
func FuzzToken(f *testing.F) {
	for _, seed := range []string{
		redeem("public", "code").Encode(), refreshWith("public", "token").Encode(),
		"grant_type=client_credentials&client_id=post&client_secret=x", "grant_type=%75rn:ietf:params:oauth:grant-type:jwt-bearer&assertion=a.b.c",
		"grant_type=urn:ietf:params:oauth:grant-type:token-exchange&subject_token=x", "&&==%", "client_id=https://evil.example/x",
	} {
		f.Add(seed, "", "")
		f.Add(seed, "Basic cHVibGljOg==", "a.b.c")
	}
	d := &desk{events: new(events), store: issuer.NewMemory(), signer: newKey(f), clock: clocktest.New(time.Unix(1e9, 0))}
	d.t = new(testing.T)
	server := d.open(func(o *issuer.Options) {
		o.Documents.Off, o.Audit, o.Logger = true, func(context.Context, issuer.Event) {}, nil
	})
	f.Fuzz(func(t *testing.T, body, authorization, proof string) {
		r := httptest.NewRequest(http.MethodPost, deskIssuer+"/token", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if authorization != "" {
			r.Header["Authorization"] = []string{authorization}
		}
		if proof != "" {
			r.Header["Dpop"] = []string{proof}
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code < 400 || w.Code >= 500 {
			t.Fatalf("answer %d %s", w.Code, w.Body)
		}
		var e oauth.Error
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Code == "" || !fixedTexts[e.Description] {
			t.Fatalf("error is not in fixed words: %s", w.Body)
		}
	})
}
