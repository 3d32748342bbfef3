package admin_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/authserver/admin"
	"github.com/parley-mcp/parley/oauth"
)

// ends are what an act of an operator ends. browser says that it gets no code without the
// person.
type ends struct{ browser, code, access, refresh bool }

var everything = ends{true, true, true, true}

// endings are acts and what they end. NAME stands for the user in letters of another case, SESSION for
// the ID of the browser's session.
var endings = []struct {
	what string
	acts [][2]string
	want ends
	// back says that the user can sign in again.
	back bool
}{
	{"nothing", nil, ends{}, true},
	{"user disabled", [][2]string{{"user disable", `{"name":"NAME"}`}}, everything, false},
	{"user disabled and enabled", [][2]string{
		{"user disable", `{"name":"NAME"}`}, {"user enable", `{"name":"NAME"}`},
	}, everything, true},
	{"user removed", [][2]string{{"user remove", `{"name":"NAME"}`}}, everything, false},
	{"user removed and added", [][2]string{
		{"user remove", `{"name":"NAME"}`}, {"user add", `{"name":"NAME","password":"` + password + `"}`},
	}, everything, true},
	{"another password", [][2]string{{"user password", `{"name":"NAME","password":"battery-staple"}`}}, everything, false},
	{"the same password", [][2]string{{"user password", `{"name":"NAME","password":"` + password + `"}`}}, everything, true},
	{"session revoked", [][2]string{{"session revoke", `{"id":"SESSION"}`}}, ends{browser: true}, true},
	{"sessions revoked", [][2]string{{"session revoke", `{"user":"NAME"}`}}, ends{browser: true}, true},
	{"grants revoked", [][2]string{{"grant revoke", `{"user":"NAME"}`}}, ends{false, true, true, true}, true},
	{"grants of client and resource revoked", [][2]string{
		{"grant revoke", `{"user":"NAME","client":"app","resource":"` + resource + `"}`},
	}, ends{false, true, true, true}, true},
	{"grants of another client revoked", [][2]string{{"grant revoke", `{"user":"NAME","client":"other"}`}}, ends{}, true},
	// The person is signed in, but asked.
	{"consent revoked", [][2]string{{"consent revoke", `{"user":"NAME"}`}}, ends{browser: true}, true},
	{"user signed out", [][2]string{{"user signout", `{"name":"NAME"}`}}, everything, true},
}

// act does acts to a user, who has one session.
func (s *site) act(acts [][2]string, user string) {
	s.t.Helper()
	sessions := s.do("session list", `{"user":"`+user+`"}`).(*admin.SessionList).Sessions
	if len(sessions) != 1 || sessions[0].User != user || sessions[0].Remote != "127.0.0.1" {
		s.t.Fatalf("sessions %+v", sessions)
	}
	fill := strings.NewReplacer("NAME", strings.ToUpper(user), "SESSION", sessions[0].ID)
	for _, act := range acts {
		s.do(act[0], fill.Replace(act[1]))
	}
}

// What each act ends, at once and in both of two servers, and nothing else.
// Proves: what the guide says that ends, in docs/guide/authorization-users.md
func TestEnds(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := newSite(t, dsn)
		s.addUser("bystander")
		bystander := s.signIn("app", "bystander")
		for i, tt := range endings {
			user := "user" + string(rune('a'+i))
			s.addUser(user)
			p := s.signIn("app", user)
			codes := map[string]string{}
			for _, server := range []string{s.first, s.second} {
				codes[server] = p.authorize(s.first, "app", nil)
			}
			if codes[s.first] == "" || codes[s.second] == "" || !s.active(s.second, p.access) {
				t.Fatalf("%s: the user is not signed in", tt.what)
			}
			s.act(tt.acts, user)
			for server, code := range codes {
				if got := s.ended(server, p, code); got != tt.want {
					t.Errorf("%s: ended %+v, want %+v", tt.what, got, tt.want)
				}
			}
			if got := s.canSignIn(user); got != tt.back {
				t.Errorf("%s: the user can sign in: %v, want %v", tt.what, got, tt.back)
			}
			code := bystander.authorize(s.first, "app", nil)
			if got := s.ended(s.second, bystander, code); got != (ends{}) {
				t.Errorf("%s: of another user %+v ended", tt.what, got)
			}
		}
	})
}

func byRefresh(token string) url.Values {
	return url.Values{"grant_type": {oauth.GrantRefreshToken}, "refresh_token": {token}}
}

// ended tries at a server what a person has.
func (s *site) ended(server string, p *person, code string) ends {
	s.t.Helper()
	out := ends{
		browser: p.authorize(server, "app", nil) == "",
		access:  !s.active(server, p.access),
		code:    s.token(server, "app", byCode(code)).Error == oauth.InvalidGrant,
	}
	next := s.token(server, "app", byRefresh(p.refresh))
	out.refresh = next.Error == oauth.InvalidGrant
	if next.Refresh != "" {
		p.access, p.refresh = next.Access, next.Refresh
	}
	return out
}

// canSignIn says whether a user can sign in with the password of this package.
func (s *site) canSignIn(name string) bool {
	s.t.Helper()
	p := &person{Browser: s.browser(), s: s}
	return p.authorize(s.first, "app", url.Values{"name": {name}, "password": {password}, "answer": {"approve"}}) != ""
}
