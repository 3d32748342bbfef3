package issuer_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

const cursorRedirect = "cursor://anysphere.cursor-mcp/oauth/callback"

func schemes(list ...string) *issuer.Options {
	return &issuer.Options{Registration: issuer.RegistrationPolicy{Schemes: list}}
}

// Schemes without a dot are for those whom the operator lets have them,
// however the client is known, and exact.
func TestSchemes(t *testing.T) {
	t.Parallel()
	host := publish(t, func(w http.ResponseWriter, r *http.Request) {
		document(w, r, "redirect_uris", []string{cursorRedirect, "vscode://other/cb"})
	})
	allow := func(o *issuer.Options) {
		o.Registration.On, o.Registration.Schemes = true, []string{"cursor"}
		o.Clients = append(o.Clients, issuer.StaticClient{ID: "static", Metadata: oauth.ClientMetadata{RedirectURIs: []string{cursorRedirect}}})
	}
	s := newSite(t, "", formLogin{}, allow)
	dynamic := s.registerClient(`{"redirect_uris":["` + cursorRedirect + `"],"token_endpoint_auth_method":"none"}`)
	for _, id := range []string{dynamic, "static", host.URL + "/client.json"} {
		p := s.person()
		question := p.signIn(s.request("client_id", id, "redirect_uri", cursorRedirect), "ada")
		for _, want := range []string{"app on this device", ">cursor:<", cursorRedirect} {
			if !strings.Contains(question.body, want) {
				t.Errorf("%s: page lacks %q:\n%s", id, want, question.body)
			}
		}
		got := p.submit(question, "answer", "approve")
		p.code(got)
		if !strings.HasPrefix(got.away.String(), cursorRedirect+"?code=") {
			t.Errorf("%s: sent to %v", id, got.away)
		}
		for _, other := range []string{"cursor://anysphere.cursor-mcp/oauth/callback/", "cursor://evil/oauth/callback", "cursor://x@anysphere.cursor-mcp/oauth/callback", "vscode://other/cb", "CURSOR://anysphere.cursor-mcp/oauth/callback"} {
			if got := p.open(s.request("client_id", id, "redirect_uri", other)); got.away != nil || got.status != http.StatusBadRequest {
				t.Errorf("%s: %s: %d %v", id, other, got.status, got.away)
			}
		}
	}
	for _, body := range []string{
		`{"redirect_uris":["cursor:javascript"]}`, `{"redirect_uris":["cursor://a@b/cb"]}`, `{"redirect_uris":["cursor://a/cb#x"]}`,
		`{"redirect_uris":["cursor://a/../cb"]}`, `{"redirect_uris":["cursor://*/cb"]}`, `{"redirect_uris":["vscode://a/cb"]}`,
		`{"redirect_uris":["cursorx://a/cb"]}`, `{"redirect_uris":["cursor://a/cb"],"application_type":"web"}`,
		`{"redirect_uris":["cursor://a/cb?code=1"]}`, `{"redirect_uris":["javascript:alert(1)"],"application_type":"native"}`,
		`{"redirect_uris":["private.cursor"]}`,
	} {
		if status, answer := s.post("/register", "application/json", body); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}

	off := newSite(t, "", formLogin{}, registering)
	for _, id := range []string{host.URL + "/client.json"} {
		if got := off.person().open(off.request("client_id", id, "redirect_uri", cursorRedirect)); got.away != nil || got.status != http.StatusBadRequest {
			t.Errorf("%s, by default: %d %v", id, got.status, got.away)
		}
	}
	_, err := issuer.New("https://as.example", issuer.NewMemory(), formLogin{}, &issuer.Options{Clients: []issuer.StaticClient{
		{ID: "static", Metadata: oauth.ClientMetadata{RedirectURIs: []string{cursorRedirect}}},
	}})
	if err == nil {
		t.Error("a client of the configuration has a scheme that nobody permits")
	}
}
