package interop_test

import (
	"errors"
	"html/template"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/issuer"
	"github.com/parley-mcp/parley/oauth/login"
	"github.com/parley-mcp/parley/transport/streamable"
)

// desk is the login of the test: one button, no password.
type desk struct{}

func (desk) External() bool { return false }

func (desk) ServeLogin(w http.ResponseWriter, r *http.Request, v *issuer.Visit) {
	if r.Method == http.MethodPost {
		v.Done(w, r, issuer.Person{Subject: person, Name: "Ada Lovelace"})
		return
	}
	form := template.HTML(`<form method="post" action="` + template.HTMLEscapeString(v.Action("")) + `">` +
		`<input type="hidden" name="csrf" value="` + template.HTMLEscapeString(v.CSRF()) + `">` +
		`<div class="row"><button class="key" id="enter">Sign in as Ada</button></div></form>`)
	v.Page(w, http.StatusOK, "Sign in", form)
}

// ourIssuer serves our authorization server for the scene. documents fetches
// metadata documents of clients; nil takes none.
func ourIssuer(t *testing.T, s *scene, documents *oauth.Fetcher) {
	t.Helper()
	o := &issuer.Options{
		Resources: []issuer.Resource{
			{URI: s.uri(), Name: "Files", NoRefresh: s.noRefresh, Scopes: []issuer.Scope{
				{Name: scopeRead, Description: "Read your files"},
				{Name: scopeWrite, Description: "Change your files"},
			}},
			{URI: elsewhere, Scopes: []issuer.Scope{{Name: scopeRead}, {Name: scopeWrite}}},
		},
		Registration: issuer.RegistrationPolicy{On: true},
		Documents:    issuer.DocumentPolicy{Off: documents == nil, Fetch: documents},
		RateLimit:    -1,
	}
	for _, id := range []string{"desk", "other"} {
		o.Clients = append(o.Clients, issuer.StaticClient{ID: id, Metadata: oauth.ClientMetadata{
			ClientName: "Interop", RedirectURIs: []string{redirectURI}, ApplicationType: "native",
			GrantTypes: []string{oauth.GrantAuthorizationCode, oauth.GrantRefreshToken}, TokenEndpointAuthMethod: oauth.AuthNone,
		}})
	}
	as, err := issuer.New(s.issuer.url, issuer.NewMemory(), desk{}, o)
	if err != nil {
		t.Fatal(err)
	}
	s.issuer.serve(as)
}

// elsewhere is a second resource that authorization servers know.
const elsewhere = "https://elsewhere.example/mcp"

// preRegistered is a login whose client the authorization server knows.
func preRegistered(issuer string) login.Options {
	return login.Options{Credentials: []login.Credentials{{
		Issuer: issuer, ClientID: "desk", Method: oauth.AuthNone, RedirectURIs: []string{redirectURI},
	}}}
}

// Our client, our guard, our authorization server. Proves: FLOW-AUTH, with the
// servers of others below; of the client C2 to C4, C7, C8, C11, C12, C14, C19,
// C22 to C25, of the resource server R1 to R4, R6, R7.
func TestAuthOurs(t *testing.T) {
	t.Run("pre-registered", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		ourIssuer(t, s, nil)
		s.protect(t, guard.JWT(s.issuer.url, nil), guard.Options{})
		s.flow(t, preRegistered(s.issuer.url),
			caller{Issuer: s.issuer.url, Subject: person, Client: "desk"}, lacks{})
	})
	t.Run("dynamic", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		ourIssuer(t, s, nil)
		s.protect(t, guard.JWT(s.issuer.url, nil), guard.Options{})
		s.flow(t, login.Options{},
			caller{Issuer: s.issuer.url, Subject: person}, lacks{})
	})
	t.Run("key", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		s.dpop = true
		ourIssuer(t, s, nil)
		s.protect(t, guard.JWT(s.issuer.url, nil), guard.Options{DPoPRequired: true})
		s.flow(t, login.Options{}, caller{Issuer: s.issuer.url, Subject: person}, lacks{})
	})
	t.Run("document", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		id, _, fetch := serveDocument(t, redirectURI)
		ourIssuer(t, s, fetch)
		s.protect(t, guard.JWT(s.issuer.url, nil), guard.Options{})
		s.flow(t, login.Options{DocumentURL: id, DocumentRedirects: []string{redirectURI}},
			caller{Issuer: s.issuer.url, Subject: person, Client: id}, lacks{})
	})
}

// A person who says no, or who meets a page that leads nowhere, is asked once:
// the sign-in is not begun again because another revision might work.
func TestAuthDenied(t *testing.T) {
	t.Parallel()
	for name, fill := range map[string]map[string]string{
		"denied":   {"answer": "deny"},
		"dead end": {"csrf": "another", "answer": "approve"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			ourIssuer(t, s, nil)
			s.protect(t, guard.JWT(s.issuer.url, nil), guard.Options{})
			b := newBrowser(t, fill)
			d := streamable.URL(s.uri())
			d.Client = s.signIn(t, b, preRegistered(s.issuer.url)).HTTPClient(nil)
			_, err := client.Connect(bounded(t), d, &client.Options{Eras: client.NewEraMemory(), DiscoverProbe: patience})
			if name == "denied" {
				if refused := (*login.AuthorizationError)(nil); !errors.As(err, &refused) || refused.Code != oauth.AccessDenied {
					t.Errorf("the error is %v", err)
				}
			} else if dead := (*deadEnd)(nil); !errors.As(err, &dead) || dead.status < 400 {
				t.Errorf("the error is %v", err)
			}
			if diff := cmp.Diff([]string{"authorize"}, steps(s.issuer.visits(), false)); diff != "" {
				t.Errorf("the steps differ (-want +got):\n%s", diff)
			}
		})
	}
}
