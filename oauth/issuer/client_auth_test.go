package issuer_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// Proves: S1, RFC 6749 section 2.3: one method, the registered one.
func TestClientAuthentication(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	grant := params("grant_type", oauth.GrantClientCredentials, "resource", mcpServer)
	with := func(pairs ...string) url.Values { return change(grant, pairs...) }
	raw := func(text string) extra {
		return header("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(text)))
	}
	for name, tt := range map[string]struct {
		form   url.Values
		extras []extra
		want   string
	}{
		"basic":                          {grant, []extra{basic("basic", secret)}, "ok"},
		"basic, and the id in the form":  {with("client_id", "basic"), []extra{basic("basic", secret)}, "ok"},
		"basic, another id in the form":  {with("client_id", "post"), []extra{basic("basic", secret)}, oauth.InvalidRequest},
		"basic, wrong secret":            {grant, []extra{basic("basic", secret+"x")}, oauth.InvalidClient},
		"basic, no secret":               {grant, []extra{basic("basic", "")}, oauth.InvalidClient},
		"basic, hash as secret":          {grant, []extra{basic("basic", issuer.Hash(secret))}, oauth.InvalidClient},
		"basic, not form-encoded":        {grant, []extra{raw("basic:%zz")}, oauth.InvalidClient},
		"basic, no colon":                {grant, []extra{raw("basic")}, oauth.InvalidClient},
		"basic, no base64":               {grant, []extra{header("Authorization", "Basic !!!")}, oauth.InvalidClient},
		"basic, empty id":                {grant, []extra{raw(":" + secret)}, oauth.InvalidClient},
		"basic twice":                    {grant, []extra{basic("basic", secret), header("Authorization", "Basic eDp5")}, oauth.InvalidClient},
		"bearer":                         {grant, []extra{header("Authorization", "Bearer x")}, oauth.InvalidClient},
		"basic for a post client":        {grant, []extra{basic("post", secret)}, oauth.InvalidClient},
		"post":                           {with("client_id", "post", "client_secret", secret), nil, "ok"},
		"post, wrong secret":             {with("client_id", "post", "client_secret", "x"), nil, oauth.InvalidClient},
		"post, no id":                    {with("client_secret", secret), nil, oauth.InvalidClient},
		"post for a basic client":        {with("client_id", "basic", "client_secret", secret), nil, oauth.InvalidClient},
		"no method registered, basic":    {grant, []extra{basic("narrow", secret)}, "ok"},
		"no method registered, post":     {with("client_id", "narrow", "client_secret", secret), nil, oauth.InvalidClient},
		"both":                           {with("client_secret", secret), []extra{basic("narrow", secret)}, oauth.InvalidRequest},
		"assertion too":                  {with("client_assertion", "x", "client_assertion_type", oauth.ClientAssertionJWT), []extra{basic("narrow", secret)}, oauth.InvalidRequest},
		"id alone of a confidential one": {with("client_id", "post"), nil, oauth.InvalidClient},
		"secret for a public one":        {with("client_id", "public", "client_secret", "x"), nil, oauth.InvalidClient},
		"basic for a public one":         {grant, []extra{basic("public", "")}, oauth.InvalidClient},
		"public":                         {with("client_id", "public"), nil, oauth.UnauthorizedClient},
		"nobody":                         {grant, nil, oauth.InvalidClient},
		"unknown":                        {with("client_id", "x"), nil, oauth.InvalidClient},
		"endless":                        {with("client_id", strings.Repeat("x", 5000)), nil, oauth.InvalidClient},
		"another type of assertion":      {with("client_id", "signer", "client_assertion", "x", "client_assertion_type", "saml"), nil, oauth.InvalidClient},
		"assertion without type":         {with("client_id", "signer", "client_assertion", "x"), nil, oauth.InvalidClient},
		"type without assertion":         {with("client_id", "signer", "client_assertion_type", oauth.ClientAssertionJWT), nil, oauth.InvalidClient},
		"no JWT":                         {with("client_assertion", "x", "client_assertion_type", oauth.ClientAssertionJWT), nil, oauth.InvalidClient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := d.token(tt.form, tt.extras...)
			if got := a.brief(); got != tt.want {
				t.Errorf("answer %d %s, want %s", a.Status, a.Raw, tt.want)
			}
			if (a.text("error") == oauth.InvalidClient) != (a.Status == http.StatusUnauthorized) {
				t.Errorf("status %d with %s", a.Status, a.Raw)
			}
			if challenge := a.Header.Get("WWW-Authenticate"); (a.Status == http.StatusUnauthorized) != strings.HasPrefix(challenge, "Basic ") {
				t.Errorf("WWW-Authenticate is %q", challenge)
			}
		})
	}
}

// assertion is a client assertion with good claims, changed.
func (d *desk) assertion(key *jwt.Key, typ string, change func(*jwt.Claims)) url.Values {
	d.t.Helper()
	now := d.clock.Now()
	claims := &jwt.Claims{
		Issuer: "signer", Subject: "signer", Audience: []string{deskIssuer}, ID: oauth.NewSecret(),
		IssuedAt: now, Expiry: now.Add(time.Minute),
	}
	if change != nil {
		change(claims)
	}
	signed, err := key.Sign(typ, claims)
	if err != nil {
		d.t.Fatal(err)
	}
	return params("grant_type", oauth.GrantClientCredentials, "resource", mcpServer,
		"client_assertion", signed, "client_assertion_type", oauth.ClientAssertionJWT)
}

// Proves: RFC 7523 section 3, with the audience of RFC 7523bis.
func TestClientAssertion(t *testing.T) {
	t.Parallel()
	type claims = jwt.Claims
	for name, tt := range map[string]struct {
		typ    string
		change func(*claims)
		want   string
	}{
		"good":                     {"JWT", nil, "ok"},
		"no type":                  {"", nil, "ok"},
		"its own type":             {"client-authentication+jwt", nil, "ok"},
		"an access token's type":   {"at+jwt", nil, oauth.InvalidClient},
		"a trailing slash":         {"JWT", func(c *claims) { c.Audience = []string{deskIssuer + "/"} }, "ok"},
		"two trailing slashes":     {"JWT", func(c *claims) { c.Audience = []string{deskIssuer + "//"} }, oauth.InvalidClient},
		"the token endpoint":       {"JWT", func(c *claims) { c.Audience = []string{deskIssuer + "/token"} }, oauth.InvalidClient},
		"another audience":         {"JWT", func(c *claims) { c.Audience = []string{"https://evil.example"} }, oauth.InvalidClient},
		"another audience besides": {"JWT", func(c *claims) { c.Audience = []string{deskIssuer, "https://evil.example"} }, oauth.InvalidClient},
		"no audience":              {"JWT", func(c *claims) { c.Audience = nil }, oauth.InvalidClient},
		"another issuer":           {"JWT", func(c *claims) { c.Issuer = "basic" }, oauth.InvalidClient},
		"another subject":          {"JWT", func(c *claims) { c.Subject = "basic" }, oauth.InvalidClient},
		"no jti":                   {"JWT", func(c *claims) { c.ID = "" }, oauth.InvalidClient},
		"expired":                  {"JWT", func(c *claims) { c.Expiry = c.Expiry.Add(-2 * time.Minute) }, oauth.InvalidClient},
		"no expiry":                {"JWT", func(c *claims) { c.Expiry = time.Time{} }, oauth.InvalidClient},
		"good for a day":           {"JWT", func(c *claims) { c.Expiry = c.Expiry.Add(24 * time.Hour) }, oauth.InvalidClient},
		"not yet":                  {"JWT", func(c *claims) { c.NotBefore = c.IssuedAt.Add(time.Hour) }, oauth.InvalidClient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, nil, nil)
			form := d.assertion(d.signer, tt.typ, tt.change)
			a := d.token(form)
			if got := a.brief(); got != tt.want {
				t.Errorf("answer %d %s, want %s", a.Status, a.Raw, tt.want)
			}
			if got := d.token(form).brief(); got != oauth.InvalidClient {
				t.Errorf("the same assertion again: %s", got)
			}
		})
	}
	d := newDesk(t, nil, func(o *issuer.Options) { o.TokenEndpointAudience = true })
	if got := d.token(d.assertion(newKey(t), "JWT", nil)).brief(); got != oauth.InvalidClient {
		t.Errorf("signed with another key: %s", got)
	}
	endpoint := d.assertion(d.signer, "JWT", func(c *claims) { c.Audience = []string{deskIssuer + "/token"} })
	if got := d.token(change(endpoint, "client_id", "basic")).brief(); got != oauth.InvalidClient {
		t.Errorf("for another client: %s", got)
	}
	about := d.assertion(d.signer, "JWT", func(c *claims) { c.Subject = "basic" })
	if got := d.token(change(about, "client_id", "signer")).brief(); got != oauth.InvalidClient {
		t.Errorf("about another client: %s", got)
	}
	if got := d.token(change(endpoint, "client_id", "signer")).brief(); got != "ok" {
		t.Errorf("the token endpoint as audience, with the option: %s", got)
	}
}

// The keys of a client come from its jwks_uri too, and are remembered.
func TestClientKeysByURL(t *testing.T) {
	t.Parallel()
	key, fetched := newKey(t), make(chan struct{}, 10)
	keys := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetched <- struct{}{}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(jwt.SetJSON(key))
	}))
	d := newDesk(t, nil, func(o *issuer.Options) {
		o.Loopback = true
		for i := range o.Clients {
			if o.Clients[i].ID == "signer" {
				o.Clients[i].Metadata.JWKS = nil
				o.Clients[i].Metadata.JWKSURI = keys.URL
			}
		}
	})
	for range 3 {
		if a := d.token(d.assertion(key, "JWT", nil)); a.brief() != "ok" {
			t.Errorf("answer %d %s", a.Status, a.Raw)
		}
	}
	if got := d.token(d.assertion(newKey(t), "JWT", nil)).brief(); got != oauth.InvalidClient {
		t.Errorf("signed with another key: %s", got)
	}
	if len(fetched) != 1 {
		t.Errorf("keys were fetched %d times", len(fetched))
	}
}

// Whoever fails to authenticate is counted by address, so that guessing ends:
// after too many failures not even the right secret is told from a wrong one.
// Attack: guessing a client's secret (RFC 6749, section 2.3.1: MUST).
func TestGuessingIsLimited(t *testing.T) {
	t.Parallel()
	var remote string
	d := newDesk(t, nil, func(o *issuer.Options) {
		o.RateLimit, o.Remote = 5, func(*http.Request) string { return remote }
	})
	form := params("grant_type", oauth.GrantClientCredentials, "resource", mcpServer)
	for range 5 {
		if a := d.token(form, basic("basic", "guess")); a.Status != http.StatusUnauthorized {
			t.Fatalf("a guess: %d %s", a.Status, a.Raw)
		}
	}
	a := d.token(form, basic("basic", "guess"))
	if a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
		t.Errorf("one guess more: %d %s", a.Status, a.Raw)
	}
	if a := d.token(form, basic("basic", secret)); a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") != "12" {
		t.Errorf("the right guess, too late: %d %s", a.Status, a.Raw)
	}
	for range 6 {
		send(d.server, "introspect", params("token", "x"), basic("rs", "guess"))
	}
	if a := send(d.server, "introspect", params("token", "x"), basic("rs", secret)); a.Status != http.StatusTooManyRequests {
		t.Errorf("the right guess at another endpoint: %d %s", a.Status, a.Raw)
	}
	remote = "192.0.2.7"
	if a := d.token(form, basic("basic", secret)); a.Status != http.StatusOK {
		t.Errorf("the client itself: %d %s", a.Status, a.Raw)
	}
	remote = ""
	d.clock.Add(12 * time.Second)
	if a := d.token(form, basic("basic", secret)); a.Status != http.StatusOK {
		t.Errorf("after the wait: %d %s", a.Status, a.Raw)
	}
}

// Whoever registered itself, or by a document that anybody can publish, may
// authenticate, but is nobody whom the operator lets act for itself.
func TestClientsAreVouchedFor(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	dynamic := &issuer.Client{
		ID: "dynamic", SecretHash: issuer.Hash(secret), Dynamic: true, Created: d.clock.Now(), Expires: d.clock.Now().Add(time.Hour),
		Metadata: oauth.ClientMetadata{GrantTypes: []string{
			oauth.GrantClientCredentials, oauth.GrantTokenExchange, oauth.GrantAuthorizationCode, oauth.GrantRefreshToken,
		}},
	}
	byHand := &issuer.Client{ID: "by hand", SecretHash: issuer.Hash(secret), Created: d.clock.Now(), Metadata: machine("")}
	for _, c := range []*issuer.Client{dynamic, byHand} {
		if _, err := d.store.AddClient(t.Context(), c, 0); err != nil {
			t.Fatal(err)
		}
	}
	form := params("grant_type", oauth.GrantClientCredentials, "resource", mcpServer)
	if got := d.token(form, basic("dynamic", secret)).brief(); got != oauth.UnauthorizedClient {
		t.Errorf("a dynamic client for itself: %s", got)
	}
	if got := d.token(form, basic("by hand", secret)).brief(); got != "ok" {
		t.Errorf("a client of the operator: %s", got)
	}
	form = change(form, "grant_type", oauth.GrantTokenExchange)
	if got := d.token(form, basic("dynamic", secret)).brief(); got != oauth.UnauthorizedClient {
		t.Errorf("a dynamic client exchanges: %s", got)
	}
	a := d.want(redeem("dynamic", d.code("dynamic")), basic("dynamic", secret))
	d.clock.Add(30 * 24 * time.Hour / 3)
	if got := d.token(refreshWith("dynamic", a.text("refresh_token")), basic("dynamic", secret)).brief(); got != "ok" {
		t.Errorf("a dynamic client that was used, later: %s", got)
	}
}

// A client by document authenticates with the keys of its document.
func TestDocumentAuthenticates(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	var id string
	host := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"client_id": id, "client_name": "Document", "redirect_uris": []string{webRedirect},
			"grant_types":                []string{oauth.GrantAuthorizationCode, oauth.GrantClientCredentials},
			"token_endpoint_auth_method": oauth.AuthPrivateKeyJWT, "jwks": json.RawMessage(jwt.SetJSON(key)),
		})
	}))
	id = host.URL + "/client.json"
	s := newSite(t, "", formLogin{}, nil)
	d := &desk{t: t, store: s.store, clock: s.clock}
	ask := func(form url.Values, key *jwt.Key) (int, string) {
		signed := d.assertion(key, "JWT", func(c *jwt.Claims) { c.Issuer, c.Subject, c.Audience = id, id, []string{s.url} })
		form = change(form, "client_assertion", signed.Get("client_assertion"), "client_assertion_type", oauth.ClientAssertionJWT)
		return s.post("/token", "application/x-www-form-urlencoded", form.Encode())
	}
	reading := func(g *issuer.Grant, _ *issuer.Code) { g.Scopes = []string{"notes:read"} }
	if status, body := ask(redeem(id, d.code(id, reading)), key); status != http.StatusOK {
		t.Errorf("the client itself: %d %s", status, body)
	}
	if status, body := ask(redeem(id, d.code(id, reading)), newKey(t)); status != http.StatusUnauthorized {
		t.Errorf("another key: %d %s", status, body)
	}
	form := params("grant_type", oauth.GrantClientCredentials, "client_id", id, "resource", mcpServer)
	if status, body := ask(form, key); status != http.StatusBadRequest || !strings.Contains(body, oauth.UnauthorizedClient) {
		t.Errorf("for itself: %d %s", status, body)
	}
}

// Attack: nobody uses the token endpoint to flood a host with fetches of
// documents that are not there.
func TestAttackDocumentFlood(t *testing.T) {
	t.Parallel()
	fetched := make(chan struct{}, 100)
	host := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetched <- struct{}{}
		w.WriteHeader(http.StatusNotFound)
	}))
	s := newSite(t, "", formLogin{}, func(o *issuer.Options) { o.RateLimit = 5 })
	status := 0
	for i := range 20 {
		form := refreshWith(host.URL+"/client"+strings.Repeat("x", i), "token")
		status, _ = s.post("/token", "application/x-www-form-urlencoded", form.Encode())
	}
	if len(fetched) != 5 || status != http.StatusTooManyRequests {
		t.Errorf("%d documents were fetched, and the last answer is %d", len(fetched), status)
	}
}

// FuzzClientAuthentication proves that no Authorization header but the right
// one authenticates a client.
func FuzzClientAuthentication(f *testing.F) {
	for _, text := range []string{"basic:" + url.QueryEscape(secret), "basic:", ":", "%", "basic:%zz", "post:x", "https://evil.example/doc:x"} {
		f.Add("Basic " + base64.StdEncoding.EncodeToString([]byte(text)))
	}
	f.Add("Basic")
	f.Add("bAsIc  eDp5")
	d := &desk{t: new(testing.T), events: new(events), store: issuer.NewMemory(), signer: newKey(f), clock: clocktest.New(time.Unix(1e9, 0))}
	server := d.open(func(o *issuer.Options) { o.Documents.Off, o.Logger = true, nil })
	right := http.Header{}
	f.Fuzz(func(t *testing.T, authorization string) {
		a := send(server, "token", params("grant_type", oauth.GrantClientCredentials, "resource", mcpServer),
			func(r *http.Request) { r.Header["Authorization"] = []string{authorization} })
		if a.Status == http.StatusOK {
			right.Set("Authorization", authorization)
			r := http.Request{Header: right}
			id, password, _ := r.BasicAuth()
			if got, _ := url.QueryUnescape(password); got != secret {
				t.Fatalf("%q authenticated %q", authorization, id)
			}
			return
		}
		var e oauth.Error
		if err := json.Unmarshal([]byte(a.Raw), &e); err != nil || !fixedTexts[e.Description] {
			t.Fatalf("answer %d %s", a.Status, a.Raw)
		}
	})
}
