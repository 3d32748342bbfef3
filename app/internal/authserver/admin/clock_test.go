package admin_test

import (
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// The clock of the servers steps back an hour: what people have goes on, new sign-ins work, and nothing
// that ended, was spent or expired comes back.
func TestClockStepsBack(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := newSite(t, dsn)
		s.passed.Store(int64(2 * time.Hour))
		for _, name := range []string{"ada", "disabled", "signedout", "revoked"} {
			s.addUser(name)
		}
		ada, disabled, signedOut, revoked := s.signIn("app", "ada"), s.signIn("app", "disabled"), s.signIn("app", "signedout"), s.signIn("app", "revoked")
		spent := ada.authorize(s.first, "app", nil)
		second := s.token(s.first, "app", byCode(spent))
		rotated := second.Refresh
		if second = s.token(s.first, "app", byRefresh(rotated)); second.Refresh == "" {
			t.Fatalf("a refresh gives %+v", second)
		}
		waiting := ada.authorize(s.first, "app", nil)
		s.do("user disable", `{"name":"disabled"}`)
		s.do("user signout", `{"name":"signedout"}`)
		s.do("grant revoke", `{"user":"revoked"}`)

		s.passed.Store(int64(time.Hour))
		for what, p := range map[string]*person{"disabled": disabled, "signed out": signedOut, "revoked": revoked} {
			for _, server := range []string{s.first, s.second} {
				if s.active(server, p.access) || s.token(server, "app", byRefresh(p.refresh)).Error != oauth.InvalidGrant {
					t.Errorf("what a user who is %s had comes back", what)
				}
				if code := p.authorize(server, "app", nil); (code != "") != (what == "revoked") {
					t.Errorf("the browser of a user who is %s gets the code %q", what, code)
				}
			}
		}
		if got := s.ended(s.second, ada, waiting); got != (ends{}) {
			t.Errorf("of a user of whom nothing ended: %+v", got)
		}
		if got := s.token(s.second, "app", byCode(spent)); got.Error != oauth.InvalidGrant {
			t.Errorf("a code that was spent: %+v", got)
		}
		if got := s.token(s.second, "app", byRefresh(rotated)); got.Error != oauth.InvalidGrant {
			t.Errorf("a refresh token that was rotated: %+v", got)
		}
		again := s.signIn("app", "signedout")
		if !s.active(s.second, again.access) {
			t.Error("who signs in anew gets nothing")
		}
		s.do("user signout", `{"name":"signedout"}`)
		if s.active(s.second, again.access) || again.authorize(s.second, "app", nil) != "" {
			t.Error("who is signed out after the step stays")
		}
	})
}
