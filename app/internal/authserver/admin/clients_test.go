package admin_test

import (
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/authserver/admin"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// register stores a client as the registration endpoint does.
func (s *site) register(id string) {
	s.t.Helper()
	now := time.Now()
	_, err := s.db.AddClient(s.t.Context(), &issuer.Client{
		ID: id, Dynamic: true, Digest: id, Created: now, Expires: now.Add(time.Hour),
		Metadata: oauth.ClientMetadata{
			ClientName: "notes", RedirectURIs: []string{redirect}, ApplicationType: "native",
			GrantTypes:              []string{oauth.GrantAuthorizationCode, oauth.GrantRefreshToken},
			TokenEndpointAuthMethod: oauth.AuthNone,
		},
	}, 0)
	if err != nil {
		s.t.Fatal(err)
	}
}

// What ends when a client is disabled or removed, in two servers at once, and that it does not come back.
// Proves: what the guide says that ends, in docs/guide/authorization-users.md
func TestClientEnds(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := newSite(t, dsn)
		s.addUser("ada")
		bystander := s.signIn("app", "ada")
		s.register("other")
		for _, act := range []string{"disable", "remove"} {
			s.register("c")
			p := s.signIn("c", "ada")
			codes := map[string]string{}
			for _, server := range []string{s.first, s.second} {
				codes[server] = p.authorize(s.first, "c", url.Values{"answer": {"approve"}})
			}
			if codes[s.first] == "" || codes[s.second] == "" || !s.active(s.second, p.access) {
				t.Fatalf("before %s: the client gets nothing", act)
			}
			s.do("client "+act, `{"id":"c"}`)
			for server, code := range codes {
				if s.active(server, p.access) {
					t.Errorf("after %s its access token is active", act)
				}
				if got := s.token(server, "c", byCode(code)).Error; got != oauth.InvalidClient {
					t.Errorf("after %s a code gives %q", act, got)
				}
				if got := s.token(server, "c", byRefresh(p.refresh)).Error; got != oauth.InvalidClient {
					t.Errorf("after %s a refresh token gives %q", act, got)
				}
				if p.authorize(server, "c", url.Values{"answer": {"approve"}}) != "" {
					t.Errorf("after %s it gets a code", act)
				}
			}
			if act == "disable" {
				s.do("client enable", `{"id":"c"}`)
			} else {
				s.register("c")
			}
			if s.active(s.second, p.access) || s.token(s.second, "c", byRefresh(p.refresh)).Error != oauth.InvalidGrant {
				t.Errorf("%s: what ended comes back", act)
			}
			if again := s.signIn("c", "ada"); !s.active(s.second, again.access) {
				t.Errorf("%s: the client is there again, and gets nothing", act)
			}
			code := bystander.authorize(s.first, "app", nil)
			if got := s.ended(s.second, bystander, code); got != (ends{}) {
				t.Errorf("%s: of another client %+v ended", act, got)
			}
		}
		s.checkClientVerbs()
	})
}

// checkClientVerbs checks what operators see of the clients "c" and "other".
func (s *site) checkClientVerbs() {
	t := s.t
	first := s.do("client list", `{"limit":1}`).(*admin.ClientList)
	if len(first.Clients) != 1 || first.Clients[0].ID != "c" || first.Next == "" {
		t.Fatalf("the first page is %+v", first)
	}
	second := s.do("client list", `{"after":"`+first.Next+`"}`).(*admin.ClientList)
	if len(second.Clients) != 1 || second.Clients[0].ID != "other" || second.Next != "" {
		t.Errorf("the second page is %+v", second)
	}
	s.do("client disable", `{"id":"other"}`)
	shown := s.do("client show", `{"id":"other"}`).(*admin.ClientDetail).Client
	if !shown.Disabled || !shown.Registered || shown.Name != "notes" || len(shown.RedirectURIs) != 1 {
		t.Errorf("the client is shown as %+v", shown)
	}
	for _, act := range []string{"show", "disable", "enable", "remove"} {
		for _, id := range []string{"nobody", `\u0000`, "c' OR 1=1"} {
			_, err := s.try("client "+act, `{"id":"`+id+`"}`)
			if e, ok := errors.AsType[*admin.Error](err); !ok || e.Code != admin.NotFound {
				t.Errorf("client %s %q: %v", act, id, err)
			}
		}
	}
}
