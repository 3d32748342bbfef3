package issuer_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// swap exchanges a token of mcpServer for one of otherServer.
func (d *desk) swap(token string, extras ...string) *answer {
	d.t.Helper()
	form := params("grant_type", oauth.GrantTokenExchange, "subject_token", token,
		"subject_token_type", oauth.TokenTypeAccessToken, "resource", otherServer)
	return d.token(change(form, extras...), basic("rs", secret))
}

// told is what a server says of a token to the guard of otherServer.
func told(server http.Handler, token string) *answer {
	return send(server, "introspect", params("token", token), basic("rs2", secret))
}

// A token that was exchanged is worth no more than the grant that it came from: it is void once the client of
// the grant, or the resource that was granted, is taken out of the configuration or was removed since.
func TestExchangedTokenOfWhatIsGone(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	token := d.signIn("public").text("access_token")
	exchanged := d.swap(token).text("access_token")
	later := d.clock.Now().Add(time.Second)
	for what, tt := range map[string]struct {
		change func(*issuer.Options)
		active bool
	}{
		"as it was":            {func(*issuer.Options) {}, true},
		"the client is gone":   {func(o *issuer.Options) { o.Clients = o.Clients[1:] }, false},
		"for another resource": {func(o *issuer.Options) { o.Clients[0].Resources = []string{otherServer} }, false},
		"no first resource": {func(o *issuer.Options) {
			o.Resources = o.Resources[1:]
			for i := range o.Clients {
				o.Clients[i].Resources = nil
			}
		}, false},
		"another first one":  {func(o *issuer.Options) { o.Resources[0].Since = later }, false},
		"another second one": {func(o *issuer.Options) { o.Resources[1].Since = later }, false},
	} {
		if a := told(d.open(tt.change), exchanged); a.Body["active"] != tt.active {
			t.Errorf("%s: %s", what, a.Raw)
		}
	}
	// What is there again since the grant, and before the exchange, is what was exchanged for.
	d.clock.Add(time.Minute)
	d.server = d.open(func(o *issuer.Options) { o.Resources[1].Since, o.Resources[1].Scopes[0].Since = later, later })
	if a := told(d.server, exchanged); a.Body["active"] != false {
		t.Errorf("the token from before: %s", a.Raw)
	}
	if a := told(d.server, d.swap(token).text("access_token")); a.text("scope") != "other" {
		t.Errorf("a token of now: %s", a.Raw)
	}
}

// The token of a workload, and what it is exchanged for, is void once its platform is not trusted, also
// where a client of the configuration has its ID.
func TestWorkloadOfNoPlatform(t *testing.T) {
	t.Parallel()
	d, p := newPlatform(t)
	token := d.want(p.grant(nil)).text("access_token")
	exchanged := d.swap(token).text("access_token")
	if !d.active(token) || told(d.server, exchanged).Body["active"] != true {
		t.Fatalf("the tokens are not good: %s", told(d.server, exchanged).Raw)
	}
	d.server = d.open(func(o *issuer.Options) {
		o.Clients = append(o.Clients, issuer.StaticClient{ID: "workload", Secret: secret, Metadata: machine("")})
	})
	if d.active(token) || told(d.server, exchanged).Body["active"] != false {
		t.Errorf("tokens of a platform that nobody trusts: %s", told(d.server, exchanged).Raw)
	}
}

// A person who is gone is gone for resource servers too, whether the login gave a stamp or not; for those
// whom another issuer asserts, nobody here is asked.
func TestTokenWithoutStamp(t *testing.T) {
	t.Parallel()
	all := &people{stamps: map[string]string{"ada": ""}}
	idp := &provider{key: newKey(t), typ: jwt.TypeIDJAG, iss: enterprise}
	d := newDesk(t, nil, func(o *issuer.Options) {
		o.Subjects = all
		o.Assertions = []issuer.AssertionIssuer{{Issuer: enterprise, JWKS: jwt.SetJSON(idp.key), IDJAG: true}}
	})
	idp.d = d
	token := d.signIn("public").text("access_token")
	asserted := d.want(idp.grant(nil), basic("agent", secret)).text("access_token")
	machine := d.want(params("grant_type", oauth.GrantClientCredentials, "resource", mcpServer), basic("basic", secret)).text("access_token")
	if !d.active(token) {
		t.Error("the token of a person who is there is not active")
	}
	all.set("ada", "another")
	if d.active(token) {
		t.Error("the token of a person who is gone is active")
	}
	if !d.active(asserted) || !d.active(machine) {
		t.Errorf("without a person here: asserted %v, client %v", d.active(asserted), d.active(machine))
	}
}

// A lateStore does something right before a grant is stored.
type lateStore struct {
	issuer.Store

	before func()
}

func (l *lateStore) AddGrant(ctx context.Context, g *issuer.Grant) error {
	l.before()
	return l.Store.AddGrant(ctx, g)
}

// Attack: a client is disabled at the moment at which something is granted to it, and gets that once it is
// enabled again.
func TestAttackGrantToDisabledClient(t *testing.T) {
	t.Parallel()
	store := &lateStore{Store: issuer.NewMemory(), before: func() {}}
	s := newSiteOn(t, "", store, formLogin{}, devices)
	put := func(disabled bool) {
		c, err := issuer.NewClient(issuer.StaticClient{ID: "stored", Secret: secret, Metadata: oauth.ClientMetadata{
			RedirectURIs: []string{webRedirect},
			GrantTypes:   []string{oauth.GrantAuthorizationCode, oauth.GrantDeviceCode, oauth.GrantClientCredentials},
		}}, nil)
		if err == nil {
			c.Disabled = disabled
			_, err = store.AddClient(t.Context(), c, 0)
		}
		if err != nil {
			t.Error(err)
		}
	}
	disable := func() {
		put(true)
		if _, err := store.RevokeGrants(t.Context(), "", "stored", s.clock.Now()); err != nil {
			t.Error(err)
		}
	}
	request, ask := s.request("client_id", "stored"), func() *answer {
		return s.form("/token", params("grant_type", oauth.GrantClientCredentials, "resource", mcpServer), basic("stored", secret))
	}
	device := func() *answer {
		return s.form("/device_authorization", params("resource", mcpServer), basic("stored", secret))
	}
	poll := func(a *answer) *answer {
		return s.form("/token", params("grant_type", oauth.GrantDeviceCode, "device_code", a.text("device_code")), basic("stored", secret))
	}
	put(false)
	p := s.person()
	p.code(p.submit(p.signIn(request, "ada"), "answer", "approve"))
	if got := ask(); got.brief() != "ok" {
		t.Fatalf("while nothing happens: %s", got.Raw)
	}
	for what, happens := range map[string]func(){
		"disabled":             disable,
		"disabled and enabled": func() { disable(); put(false) },
	} {
		put(false)
		a := device()
		question, wanted := p.open(s.request("client_id", "stored", "prompt", "consent")), p.enter(a.text("user_code"), "")
		store.before = happens
		if got := p.submit(question, "answer", "approve"); got.away != nil && got.away.Query().Has("code") {
			t.Errorf("%s: a code at %v", what, got.away)
		}
		put(false)
		if got := p.submit(wanted, "answer", "approve"); strings.Contains(got.body, "connected") {
			t.Errorf("%s: the device is connected", what)
		}
		put(false)
		if got := ask(); got.brief() != oauth.InvalidGrant {
			t.Errorf("%s: %d %s", what, got.Status, got.Raw)
		}
		store.before = func() {}
		put(false)
		if got := poll(a); got.brief() != oauth.AuthorizationPending {
			t.Errorf("%s: the device is told %d %s", what, got.Status, got.Raw)
		}
		if all, _, err := store.ConnectionsOf(t.Context(), "ada", "", 10, s.clock.Now()); err != nil || len(all) != 0 {
			t.Errorf("%s: there is a grant that is good: %v, %v", what, all, err)
		}
	}
}
