package login_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/login"
)

// Proves: C14: registered beforehand, then a document, then dynamic
// registration, then an error that says what to give.
func TestRegistrationOrder(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	const document = "https://app.example/client.json"
	mine := login.Credentials{Issuer: as.issuer(), ClientID: "mine", RedirectURIs: []string{"http://127.0.0.1:7777/cb"}}
	foreign := login.Credentials{Issuer: "https://other.example", ClientID: "foreign"}
	forIssuer := func(issuer string) *login.Credentials {
		if issuer != as.issuer() {
			return nil
		}
		return &login.Credentials{Issuer: "https://other.example", ClientID: "for it"}
	}
	forNone := func(string) *login.Credentials { return nil }
	tests := []struct {
		name     string
		o        login.Options
		document bool // the server takes documents
		want     string
	}{
		{"beforehand", login.Options{Credentials: []login.Credentials{foreign, mine}, DocumentURL: document}, true, "mine"},
		{"for the issuer", login.Options{Credentials: []login.Credentials{foreign}, CredentialsFor: forIssuer, DocumentURL: document}, true, "for it"},
		{"in the list and for the issuer", login.Options{Credentials: []login.Credentials{mine}, CredentialsFor: forIssuer}, true, "mine"},
		{"for none", login.Options{CredentialsFor: forNone}, true, "dynamic"},
		{"document", login.Options{Credentials: []login.Credentials{foreign}, DocumentURL: document}, true, document},
		{"document not taken", login.Options{DocumentURL: document}, false, "dynamic"},
		{"dynamic", login.Options{}, true, "dynamic"},
	}
	for _, test := range tests {
		as.override["client_id_metadata_document_supported"] = test.document
		as.clientID = "dynamic"
		c, _ := newClient(t, test.o)
		welcome(t, c.HTTPClient(nil), rs.url())
		authorize, _, registered, _ := as.seen()
		if got := authorize[len(authorize)-1].Get("client_id"); got != test.want {
			t.Errorf("%s: client_id %q, want %q", test.name, got, test.want)
		}
		if test.want != "dynamic" && len(registered) != 0 {
			t.Errorf("%s: registered all the same", test.name)
		}
		as.registered = nil
	}
	c, b := newClient(t, login.Options{NoRegistration: true})
	stops := func() {
		t.Helper()
		_, _, err := get(t, c.HTTPClient(nil), rs.url())
		var d *login.DiscoveryError
		if !errors.As(err, &d) || d.Step != login.StepRegister || !strings.Contains(d.Advice, "Credentials") || b.visits() != 0 {
			t.Errorf("error %v, want advice to give credentials", err)
		}
	}
	stops()
	as.override["registration_endpoint"] = nil
	c, b = newClient(t, login.Options{})
	stops()
}

// Proves: C15: the client id of a document is an https URL with a path.
func TestDocumentURL(t *testing.T) {
	t.Parallel()
	as := newAuthServer(t, "")
	as.override["client_id_metadata_document_supported"] = true
	rs := newResource(t, as)
	for _, bad := range []string{"https://app.example", "https://app.example/", "http://app.example/client.json", "client.json"} {
		c, b := newClient(t, login.Options{DocumentURL: bad})
		_, _, err := get(t, c.HTTPClient(nil), rs.url())
		var d *login.DiscoveryError
		if !errors.As(err, &d) || d.Step != login.StepRegister || b.visits() != 0 {
			t.Errorf("%s: %v, want a DiscoveryError", bad, err)
		}
	}
}

// Proves: C16, C25, C27: what a dynamic registration says.
func TestDynamicRegistration(t *testing.T) {
	t.Parallel()
	for redirect, kind := range map[string]string{"": "native", "localhost": "native"} {
		as, rs := newServers(t)
		c, _ := newClient(t, login.Options{
			Authorizer: &browser{host: redirect}, ClientName: "My app", SoftwareID: "app",
		})
		welcome(t, c.HTTPClient(nil), rs.url())
		_, _, registered, _ := as.seen()
		host := redirect
		if host == "" {
			host = "127.0.0.1"
		}
		want := map[string]any{
			"client_name": "My app", "software_id": "app", "application_type": kind,
			"redirect_uris":              []any{"http://" + host + ":5555/callback"},
			"grant_types":                []any{"authorization_code", "refresh_token"},
			"response_types":             []any{"code"},
			"token_endpoint_auth_method": "none",
		}
		if diff := cmp.Diff(want, registered[0]); diff != "" {
			t.Errorf("registration (-want +got):\n%s", diff)
		}
	}
}

// Proves: C16: a refused redirect URI is tried once in another form; the error
// says what the server said.
func TestRedirectURIRefused(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	as.redirect = func(uri string) bool { return strings.HasPrefix(uri, "http://localhost:") }
	c, _ := newClient(t, login.Options{})
	welcome(t, c.HTTPClient(nil), rs.url())
	authorize, _, _, _ := as.seen()
	if got := authorize[0].Get("redirect_uri"); got != "http://localhost:5555/callback" {
		t.Errorf("redirect_uri %q", got)
	}

	as.redirect = func(string) bool { return false }
	c, _ = newClient(t, login.Options{})
	_, _, err := get(t, c.HTTPClient(nil), rs.url())
	if !errors.Is(err, &oauth.Error{Code: oauth.InvalidRedirectURI}) || !strings.Contains(err.Error(), "not that one") {
		t.Errorf("error %v, want what the server said", err)
	}
	_, _, registered, _ := as.seen()
	if len(registered) != 4 { // two with success, two in vain
		t.Errorf("%d registrations, want 4", len(registered))
	}
}

// Proves: C14: how the client authenticates follows the server. Matches the
// official suite's token-endpoint-auth scenarios.
func TestTokenEndpointAuth(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"none", "client_secret_basic", "client_secret_post"} {
		as := newAuthServer(t, "")
		as.override["token_endpoint_auth_methods_supported"] = []string{method}
		as.method, as.clientID = method, "me"
		if method != "none" {
			as.secret = "s3cret"
		}
		rs := newResource(t, as)
		c, _ := newClient(t, login.Options{})
		welcome(t, c.HTTPClient(nil), rs.url())
		_, tokens, registered, _ := as.seen()
		if got := registered[0]["token_endpoint_auth_method"]; got != method {
			t.Errorf("registered with %v, want %s", got, method)
		}
		got := "none"
		switch form := tokens[0]; {
		case form.Get("basic") == "me:s3cret":
			got = "client_secret_basic"
		case form.Get("client_secret") == "s3cret":
			got = "client_secret_post"
		}
		if got != method {
			t.Errorf("authenticated with %s, want %s", got, method)
		}
	}
}

// Proves: C17: a registration is kept by issuer, used by the next process, and
// made anew once the server has forgotten it, it has ended, or its secret would
// go elsewhere.
func TestRegistrationReused(t *testing.T) {
	t.Parallel()
	as := newAuthServer(t, "")
	rs1, rs2, rs3 := newResource(t, as), newResource(t, as), newResource(t, as)
	store := login.NewMemory()
	registrations := func() int {
		_, _, registered, _ := as.seen()
		return len(registered)
	}
	c, _ := newClient(t, login.Options{Store: store})
	welcome(t, c.HTTPClient(nil), rs1.url())
	c, b := newClient(t, login.Options{Store: store})
	welcome(t, c.HTTPClient(nil), rs2.url())
	if registrations() != 1 || b.visits() != 1 {
		t.Fatalf("%d registrations, want 1", registrations())
	}
	change(as, func() { as.fail["authorization_code"] = "invalid_client" })
	welcome(t, c.HTTPClient(nil), rs3.url())
	if registrations() != 2 || b.visits() != 3 {
		t.Errorf("%d registrations, %d visits; want 2 and 3", registrations(), b.visits())
	}
	// A receiver that got another port needs another registration.
	c, _ = newClient(t, login.Options{Store: store, Authorizer: &browser{port: "6666", fixed: true}})
	welcome(t, c.HTTPClient(nil), newResource(t, as).url())
	if registrations() != 3 {
		t.Errorf("%d registrations, want 3", registrations())
	}
	// Attack: the issuer stays, the token endpoint moves.
	change(as, func() { as.override["token_endpoint"] = as.URL + "/elsewhere" })
	c, _ = newClient(t, login.Options{Store: store})
	_, _, _ = get(t, c.HTTPClient(nil), newResource(t, as).url())
	if registrations() != 4 {
		t.Errorf("%d registrations, want 4", registrations())
	}
}

// Proves: C6, C17 and SEP-2352. Attack: credential theft at rediscovery: when
// a resource names another server, that one sees no token and no registration
// of the old one; the person is told.
func TestServerMigration(t *testing.T) {
	t.Parallel()
	as1, as2 := newAuthServer(t, ""), newAuthServer(t, "")
	as1.clientID, as1.secret, as1.method = "leaked-id", "leaked-secret", "client_secret_post"
	as1.override["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"}
	rs := newResource(t, as1)
	var prompts []login.Prompt
	c, b := newClient(t, login.Options{Confirm: func(_ context.Context, p login.Prompt) error {
		prompts = append(prompts, p)
		return nil
	}})
	h := c.HTTPClient(nil)
	welcome(t, h, rs.url())
	change(rs, func() { rs.as = []*authServer{as2} })
	welcome(t, h, rs.url())
	if b.visits() != 2 {
		t.Errorf("%d visits, want 2", b.visits())
	}
	want := []login.Prompt{
		{Resource: rs.url(), Issuer: as1.issuer(), Why: login.ReasonSignIn},
		{Resource: rs.url(), Issuer: as2.issuer(), Why: login.ReasonServerChanged, PreviousIssuer: as1.issuer()},
	}
	if diff := cmp.Diff(want, prompts); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
	authorize, tokens, registered, _ := as2.seen()
	if len(registered) != 1 {
		t.Errorf("%d registrations at the new server, want 1", len(registered))
	}
	for _, values := range append(slices.Clone(authorize), tokens...) {
		if text := url.Values(values).Encode(); strings.Contains(text, "leaked") || strings.Contains(text, "refresh-") {
			t.Errorf("the new server saw %s", text)
		}
	}
}

// Proves: C17: credentials registered beforehand do not move along.
func TestMigrationOfRegistered(t *testing.T) {
	t.Parallel()
	as1, as2 := newAuthServer(t, ""), newAuthServer(t, "")
	rs := newResource(t, as1)
	c, b := newClient(t, login.Options{Credentials: []login.Credentials{{Issuer: as1.issuer(), ClientID: "mine"}}})
	h := c.HTTPClient(nil)
	welcome(t, h, rs.url())
	change(rs, func() { rs.as = []*authServer{as2} })
	_, _, err := get(t, h, rs.url())
	var d *login.DiscoveryError
	if !errors.As(err, &d) || d.Step != login.StepChoice || b.visits() != 1 {
		t.Errorf("error %v, want a DiscoveryError", err)
	}
	if _, _, _, hits := as2.seen(); len(hits) != 0 {
		t.Errorf("the new server saw %q", hits)
	}
}

// Registrations end.
func TestRegistrationExpires(t *testing.T) {
	t.Parallel()
	as := newAuthServer(t, "")
	as.secret, as.method = "s", "client_secret_post"
	now := clocktest.New(time.Now())
	as.secretEnds = now.Now().Add(time.Hour).Unix()
	store := login.NewMemory()
	for i, want := range []int{1, 1, 2} {
		if i == 2 {
			now.Add(2 * time.Hour)
		}
		c, _ := newClient(t, login.Options{Store: store, Now: now.Now})
		welcome(t, c.HTTPClient(nil), newResource(t, as).url())
		if _, _, registered, _ := as.seen(); len(registered) != want {
			t.Errorf("sign-in %d: %d registrations, want %d", i, len(registered), want)
		}
	}
}
