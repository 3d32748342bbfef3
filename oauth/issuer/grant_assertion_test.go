package issuer_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
	"github.com/parley-mcp/parley/oauth/issuer"
)

const (
	enterprise = "https://idp.example"
	platform   = "https://platform.example"
)

// A provider signs assertions.
type provider struct {
	d   *desk
	key *jwt.Key
	typ string
	iss string
}

// newEnterprise makes a desk that trusts an enterprise's identity provider.
func newEnterprise(t *testing.T) (*desk, *provider) {
	t.Helper()
	idp := &provider{key: newKey(t), typ: jwt.TypeIDJAG, iss: enterprise}
	idp.d = newDesk(t, nil, func(o *issuer.Options) {
		o.Assertions = []issuer.AssertionIssuer{{Issuer: enterprise, JWKS: jwt.SetJSON(idp.key), IDJAG: true}}
	})
	return idp.d, idp
}

func newPlatform(t *testing.T) (*desk, *provider) {
	t.Helper()
	p := &provider{key: newKey(t), typ: jwt.TypeJWT, iss: platform}
	p.d = newDesk(t, nil, func(o *issuer.Options) {
		o.Assertions = []issuer.AssertionIssuer{{
			Issuer: platform, JWKS: jwt.SetJSON(p.key),
			Workload: func(_ context.Context, subject string, _ []byte) (*issuer.WorkloadGrant, error) {
				if subject != "pod" {
					return nil, errors.New("not known: " + subject)
				}
				return &issuer.WorkloadGrant{ClientID: "workload", Subject: "the pod", Scopes: []string{"write"}}, nil
			},
		}}
	})
	return p.d, p
}

// grant is a token request with an assertion of good claims, changed.
func (p *provider) grant(change func(*jwt.Claims)) url.Values {
	p.d.t.Helper()
	now := p.d.clock.Now()
	claims := &jwt.Claims{
		Issuer: p.iss, Subject: "pod", Audience: []string{deskIssuer}, IssuedAt: now, Expiry: now.Add(5 * time.Minute),
	}
	if p.typ == jwt.TypeIDJAG {
		claims.Subject, claims.ID, claims.ClientID = "ada", oauth.NewSecret(), "agent"
		claims.Resource, claims.Scope = []string{mcpServer}, "read write"
	}
	if change != nil {
		change(claims)
	}
	signed, err := p.key.Sign(p.typ, claims)
	if err != nil {
		p.d.t.Fatal(err)
	}
	form := params("grant_type", oauth.GrantJWTBearer, "assertion", signed)
	if p.typ != jwt.TypeIDJAG {
		form.Set("resource", mcpServer)
	}
	return form
}

// Proves: extension enterprise-managed-authorization: typ, aud, client_id,
// resource, scope, jti.
func TestIDJAG(t *testing.T) {
	t.Parallel()
	type claims = jwt.Claims
	for name, tt := range map[string]struct {
		change func(*claims)
		pairs  []string
		want   string
		scope  string
	}{
		"good":                      {nil, nil, "ok", "read write"},
		"narrower":                  {nil, []string{"scope", "read"}, "ok", "read"},
		"wider, cut":                {nil, []string{"scope", "read admin"}, "ok", "read"},
		"nothing in common":         {nil, []string{"scope", "admin"}, oauth.InvalidScope, ""},
		"scopes that are not ours":  {func(c *claims) { c.Scope = "read chat.history" }, nil, "ok", "read"},
		"no scopes":                 {func(c *claims) { c.Scope = "" }, nil, "ok", "read"},
		"no scopes, more asked":     {func(c *claims) { c.Scope = "" }, []string{"scope", "read write"}, "ok", "read"},
		"no scopes, others asked":   {func(c *claims) { c.Scope = "" }, []string{"scope", "admin"}, oauth.InvalidScope, ""},
		"the resource named":        {nil, []string{"resource", mcpServer}, "ok", "read write"},
		"another resource named":    {nil, []string{"resource", otherServer}, oauth.InvalidTarget, ""},
		"another server's resource": {func(c *claims) { c.Resource = []string{"https://evil.example"} }, nil, oauth.InvalidTarget, ""},
		"no resource":               {func(c *claims) { c.Resource = nil }, []string{"resource", mcpServer}, oauth.InvalidGrant, ""},
		"two resources":             {func(c *claims) { c.Resource = []string{mcpServer, otherServer} }, nil, oauth.InvalidTarget, ""},
		"two resources, one named":  {func(c *claims) { c.Resource = []string{otherServer, mcpServer} }, []string{"resource", mcpServer}, "ok", "read write"},
		"another audience":          {func(c *claims) { c.Audience = []string{"https://evil.example"} }, nil, oauth.InvalidGrant, ""},
		"no audience":               {func(c *claims) { c.Audience = nil }, nil, oauth.InvalidGrant, ""},
		"another issuer":            {func(c *claims) { c.Issuer = platform }, nil, oauth.InvalidGrant, ""},
		"no client":                 {func(c *claims) { c.ClientID = "" }, nil, oauth.InvalidGrant, ""},
		"no subject":                {func(c *claims) { c.Subject = "" }, nil, oauth.InvalidGrant, ""},
		"no jti":                    {func(c *claims) { c.ID = "" }, nil, oauth.InvalidGrant, ""},
		"no expiry":                 {func(c *claims) { c.Expiry = time.Time{} }, nil, oauth.InvalidGrant, ""},
		"expired":                   {func(c *claims) { c.Expiry = c.IssuedAt.Add(-time.Minute) }, nil, oauth.InvalidGrant, ""},
		"good for a day":            {func(c *claims) { c.Expiry = c.IssuedAt.Add(24 * time.Hour) }, nil, oauth.InvalidGrant, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, idp := newEnterprise(t)
			form := change(idp.grant(tt.change), tt.pairs...)
			a := d.token(form, basic("agent", secret))
			if a.brief() != tt.want || a.text("scope") != tt.scope {
				t.Errorf("answer %d %s, want %s %q", a.Status, a.Raw, tt.want, tt.scope)
			}
			if tt.want == "ok" {
				got := d.claims(a.text("access_token")).Claims
				if got.Subject != enterprise+"|ada" || got.ClientID != "agent" || !slices.Equal(got.Audience, []string{mcpServer}) {
					t.Errorf("claims %+v", got)
				}
				if a.text("refresh_token") != "" {
					t.Error("it came with a refresh token")
				}
				if got := d.token(form, basic("agent", secret)).brief(); got != oauth.InvalidGrant {
					t.Errorf("the same assertion again: %s", got)
				}
			}
		})
	}
	d, idp := newEnterprise(t)
	if got := d.token(idp.grant(nil)).brief(); got != oauth.InvalidClient {
		t.Errorf("without a client: %s", got)
	}
	if got := d.token(change(idp.grant(nil), "client_id", "public")).brief(); got != oauth.UnauthorizedClient {
		t.Errorf("from a public client: %s", got)
	}
	idp.typ = jwt.TypeJWT
	if got := d.token(idp.grant(nil), basic("agent", secret)).brief(); got != oauth.InvalidGrant {
		t.Errorf("of another type: %s", got)
	}
	idp.typ, idp.key = jwt.TypeIDJAG, newKey(t)
	if got := d.token(idp.grant(nil), basic("agent", secret)).brief(); got != oauth.InvalidGrant {
		t.Errorf("signed with another key: %s", got)
	}
}

// A workload needs no registration and no secret; its assertion may come back.
func TestWorkload(t *testing.T) {
	t.Parallel()
	type claims = jwt.Claims
	d, p := newPlatform(t)
	for name, tt := range map[string]struct {
		change func(*claims)
		pairs  []string
		want   string
		scope  string
	}{
		"good":                     {nil, nil, "ok", "write"},
		"its client":               {nil, []string{"client_id", "workload"}, "ok", "write"},
		"another client":           {nil, []string{"client_id", "public"}, oauth.InvalidGrant, ""},
		"a scope that is not its":  {nil, []string{"scope", "admin"}, oauth.InvalidScope, ""},
		"no resource":              {nil, []string{"resource", "-"}, oauth.InvalidTarget, ""},
		"unknown to the mapping":   {func(c *claims) { c.Subject = "stranger" }, nil, oauth.InvalidGrant, ""},
		"another audience":         {func(c *claims) { c.Audience = []string{"https://evil.example"} }, nil, oauth.InvalidGrant, ""},
		"expired":                  {func(c *claims) { c.Expiry = c.IssuedAt.Add(-time.Minute) }, nil, oauth.InvalidGrant, ""},
		"no expiry":                {func(c *claims) { c.Expiry = time.Time{} }, nil, oauth.InvalidGrant, ""},
		"an issuer nobody trusts":  {func(c *claims) { c.Issuer = "https://evil.example" }, nil, oauth.InvalidClient, ""},
		"an issuer, and a client":  {func(c *claims) { c.Issuer = "https://evil.example" }, []string{"client_id", "poster", "client_secret", secret}, oauth.InvalidGrant, ""},
		"no assertion":             {nil, []string{"assertion", "-"}, oauth.InvalidClient, ""},
		"no assertion, a client":   {nil, []string{"assertion", "-", "client_id", "poster", "client_secret", secret}, oauth.InvalidRequest, ""},
		"good, with offline scope": {nil, []string{"scope", "write offline_access"}, "ok", "write"},
	} {
		form := change(p.grant(tt.change), tt.pairs...)
		for range 2 {
			a := d.token(form)
			if a.brief() != tt.want || a.text("scope") != tt.scope {
				t.Errorf("%s: %d %s, want %s %q", name, a.Status, a.Raw, tt.want, tt.scope)
			}
			if tt.want == "ok" {
				if got := d.claims(a.text("access_token")).Claims; got.Subject != "the pod" || got.ClientID != "workload" {
					t.Errorf("%s: claims %+v", name, got)
				}
			}
		}
	}
	p.typ = jwt.TypeIDJAG
	if got := d.token(p.grant(nil), basic("agent", secret)).brief(); got != oauth.InvalidGrant {
		t.Errorf("an ID-JAG of a platform: %s", got)
	}
	p.typ, p.key = jwt.TypeJWT, newKey(t)
	if got := d.token(p.grant(nil)).brief(); got != oauth.InvalidGrant {
		t.Errorf("signed with another key: %s", got)
	}
}

// The keys of an issuer are found by its metadata.
func TestAssertionKeysAreDiscovered(t *testing.T) {
	t.Parallel()
	p := &provider{key: newKey(t), typ: jwt.TypeIDJAG}
	mux := http.NewServeMux()
	idp := webtest.Serve(t, mux)
	p.iss = idp.URL
	answer := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(text))
		}
	}
	mux.Handle("/.well-known/openid-configuration", answer(`{"issuer":"`+idp.URL+`","jwks_uri":"`+idp.URL+`/keys"}`))
	mux.Handle("/keys", answer(string(jwt.SetJSON(p.key))))
	p.d = newDesk(t, nil, func(o *issuer.Options) {
		o.Loopback = true
		o.Assertions = []issuer.AssertionIssuer{{Issuer: idp.URL, IDJAG: true, Workload: func(_ context.Context, subject string, _ []byte) (*issuer.WorkloadGrant, error) {
			return &issuer.WorkloadGrant{Subject: "mapped " + subject, Scopes: []string{"read"}}, nil
		}}}
	})
	a := p.d.want(p.grant(nil), basic("agent", secret))
	if got := p.d.claims(a.text("access_token")).Claims; got.Subject != "mapped ada" || got.Scope != "read" {
		t.Errorf("claims %+v", got)
	}
	idp.Close()
	if a := p.d.token(p.grant(nil), basic("agent", secret)); a.brief() != "ok" {
		t.Errorf("the keys are not remembered: %d %s", a.Status, a.Raw)
	}
}

// An assertion whose keys cannot be had now is not called a bad one, and the operator is told. One
// whose key may have been published a moment ago is not either.
func TestAssertionKeysAreAway(t *testing.T) {
	t.Parallel()
	var answer webtest.Switch
	keys := webtest.Serve(t, &answer)
	idp := &provider{key: newKey(t), typ: jwt.TypeIDJAG, iss: enterprise}
	d := newDesk(t, nil, func(o *issuer.Options) {
		o.Loopback = true
		o.Assertions = []issuer.AssertionIssuer{{Issuer: enterprise, JWKSURI: keys.URL, IDJAG: true}}
	})
	idp.d = d
	answer.Set(webtest.Answer(http.StatusBadGateway, ""))
	form := idp.grant(nil)
	if a := d.token(form, basic("agent", secret)); a.Status != http.StatusServiceUnavailable || a.brief() != oauth.TemporarilyUnavailable {
		t.Errorf("without keys: %d %s", a.Status, a.Raw)
	}
	if log := d.events.String(); !strings.Contains(log, `level=ERROR msg="request failed"`) || !strings.Contains(log, "status 502") {
		t.Errorf("the operator was not told: %s", log)
	}
	answer.Set(webtest.Answer(http.StatusOK, string(jwt.SetJSON(newKey(t)))))
	d.clock.Add(10 * time.Second)
	if got := d.token(form, basic("agent", secret)).brief(); got != oauth.InvalidGrant {
		t.Errorf("a key that is not published: %s", got)
	}
	d.clock.Add(time.Second)
	answer.Set(webtest.Answer(http.StatusOK, string(jwt.SetJSON(idp.key))))
	idp.key = newKey(t)
	fresh := idp.grant(nil)
	if a := d.token(fresh, basic("agent", secret)); a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") != "9" {
		t.Errorf("a key that may be new: %d %s, Retry-After %q", a.Status, a.Raw, a.Header.Get("Retry-After"))
	}
	answer.Set(webtest.Answer(http.StatusOK, string(jwt.SetJSON(idp.key))))
	d.clock.Add(9 * time.Second)
	d.want(fresh, basic("agent", secret))
}

// What is wrong with an issuer of assertions is said when the server starts,
// not when the first assertion comes.
func TestAssertionIssuersAreChecked(t *testing.T) {
	t.Parallel()
	keys := jwt.SetJSON(newKey(t))
	maps := func(context.Context, string, []byte) (*issuer.WorkloadGrant, error) { return nil, nil }
	for name, tt := range map[string]struct {
		list []issuer.AssertionIssuer
		ok   bool
	}{
		"keys":             {[]issuer.AssertionIssuer{{Issuer: "kubernetes", JWKS: keys, Workload: maps}}, true},
		"discovered":       {[]issuer.AssertionIssuer{{Issuer: enterprise, IDJAG: true}}, true},
		"both kinds":       {[]issuer.AssertionIssuer{{Issuer: enterprise, IDJAG: true}, {Issuer: enterprise, Workload: maps}}, true},
		"no name":          {[]issuer.AssertionIssuer{{JWKS: keys, IDJAG: true}}, false},
		"no mapping":       {[]issuer.AssertionIssuer{{Issuer: platform, JWKS: keys}}, false},
		"broken keys":      {[]issuer.AssertionIssuer{{Issuer: enterprise, JWKS: []byte(`{`), IDJAG: true}}, false},
		"no keys in them":  {[]issuer.AssertionIssuer{{Issuer: enterprise, JWKS: []byte(`{"keys":[]}`), IDJAG: true}}, false},
		"keys twice":       {[]issuer.AssertionIssuer{{Issuer: enterprise, JWKS: keys, JWKSURI: "https://idp.example/jwks", IDJAG: true}}, false},
		"keys over http":   {[]issuer.AssertionIssuer{{Issuer: enterprise, JWKSURI: "http://idp.example/jwks", IDJAG: true}}, false},
		"nothing to go by": {[]issuer.AssertionIssuer{{Issuer: "kubernetes", Workload: maps}}, false},
		"twice":            {[]issuer.AssertionIssuer{{Issuer: enterprise, IDJAG: true}, {Issuer: enterprise, IDJAG: true, JWKS: keys}}, false},
		"algorithm":        {[]issuer.AssertionIssuer{{Issuer: enterprise, IDJAG: true, Algorithms: []string{"HS256"}}}, false},
	} {
		if _, err := issuer.New(deskIssuer, issuer.NewMemory(), formLogin{}, &issuer.Options{Assertions: tt.list}); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
