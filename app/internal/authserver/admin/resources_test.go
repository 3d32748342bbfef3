package admin_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/authserver/admin"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/oauth"
)

const notes = "https://notes.example/mcp"

// visible waits until what an operator changed of resources is seen by all servers.
func (s *site) visible() { s.passed.Add(int64(time.Second)) }

// grantNotes has a user grant scopes of the resource notes to the client "app".
func (s *site) grantNotes(p *person, scopes string) *answer {
	s.t.Helper()
	code := p.authorizeFor(s.first, "app", notes, scopes, url.Values{"answer": {"approve"}})
	form := byCode(code)
	form.Set("resource", notes)
	return s.token(s.second, "app", form)
}

func (s *site) refreshNotes(server, token string) *answer {
	s.t.Helper()
	form := byRefresh(token)
	form.Set("resource", notes)
	return s.token(server, "app", form)
}

// scopeOf is what introspection at a server says of the scopes of a token; "" if it is not active.
func (s *site) scopeOf(server, token string) string {
	s.t.Helper()
	var a struct{ Scope string }
	s.post(server+"/introspect", url.Values{"token": {token}}, true, &a)
	return a.Scope
}

// What ends when a resource or a scope is removed, in two servers at once, and that it does not come back.
// Proves: what the guide says that ends, in docs/guide/authorization-users.md
func TestResourceEnds(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := newSite(t, dsn)
		s.addUser("ada")
		p := s.signIn("app", "ada")
		bystander := s.signIn("app", "ada")
		const add = `{"uri":"` + notes + `","name":"Notes","introspector":["guard"],"scope":["read","write"]}`
		s.do("resource add", add)
		s.do("resource scope", `{"uri":"`+notes+`","scope":"write","description":"Change your notes","implies":["read"]}`)
		s.visible()

		asked, err := p.FillIn(t.Context(), s.second+"/authorize?"+url.Values{
			"response_type": {"code"}, "client_id": {"app"}, "redirect_uri": {redirect}, "scope": {"write"}, "resource": {notes},
			"code_challenge": {oauth.ChallengeS256(verifier)}, "code_challenge_method": {"S256"},
		}.Encode(), nil)
		if err != nil || !strings.Contains(asked.Body, "Change your notes") || !strings.Contains(asked.Body, "Notes") {
			t.Fatalf("the consent page shows %v %s", err, asked.Body)
		}
		got := s.grantNotes(p, "read write")
		if got.Scope != "read write" || s.scopeOf(s.first, got.Access) != "read write" {
			t.Fatalf("the grant is %+v", got)
		}

		// Who may introspect changes, and the name with it; the rest stays.
		s.do("resource change", `{"uri":"`+notes+`","introspector":["other"]}`)
		s.visible()
		if s.active(s.second, got.Access) {
			t.Error("a client may introspect that may not any more")
		}
		s.do("resource change", `{"uri":"`+notes+`","introspector":["other","guard"],"refresh_lifetime":"24h"}`)
		s.visible()
		shown := s.do("resource show", `{"uri":"`+notes+`"}`).(*admin.ResourceDetail).Resource
		if !s.active(s.second, got.Access) || shown.Name != "Notes" || shown.RefreshSeconds != 24*60*60 || len(shown.Scopes) != 2 {
			t.Errorf("the resource is %+v", shown)
		}
		s.do("resource change", `{"uri":"`+notes+`","introspector":["guard"]}`)

		// A scope goes, and comes back: what was granted has it no more, and people are asked again.
		s.do("resource scope", `{"uri":"`+notes+`","scope":"write","remove":true}`)
		s.visible()
		if scope := s.scopeOf(s.second, got.Access); scope != "read" {
			t.Errorf("without the scope the access token has %q", scope)
		}
		if code := p.authorizeFor(s.second, "app", notes, "write", nil); code != "" {
			t.Error("a code is issued for the scope that is gone")
		}
		s.do("resource scope", `{"uri":"`+notes+`","scope":"write"}`)
		s.visible()
		if scope := s.scopeOf(s.second, got.Access); scope != "read" {
			t.Errorf("once the scope is there again the access token has %q", scope)
		}
		renewed := s.refreshNotes(s.second, got.Refresh)
		if renewed.Scope != "read" {
			t.Errorf("once the scope is there again refreshing gives %+v", renewed)
		}
		if code := p.authorizeFor(s.first, "app", notes, "read write", nil); code != "" {
			t.Error("nobody is asked again for the scope")
		}

		// Of a server that has not seen that a resource went, within its second, comes nothing that lasts.
		stale := p.authorizeFor(s.first, "app", notes, "read", url.Values{"answer": {"approve"}})
		s.do("resource remove", `{"uri":"`+notes+`"}`)
		form := byCode(stale)
		form.Set("resource", notes)
		late := s.token(s.first, "app", form)
		s.do("resource add", add)
		s.visible()
		if a := s.refreshNotes(s.second, late.Refresh); a.Access != "" || late.Access != "" && s.active(s.second, late.Access) {
			t.Errorf("a grant of a server that had not seen the removal lasts: %+v", a)
		}
		s.passed.Add(int64(3 * time.Second))
		renewed = s.grantNotes(p, "read")

		// The resource goes, and comes back.
		pending := p.authorizeFor(s.first, "app", notes, "read", url.Values{"answer": {"approve"}})
		s.do("resource remove", `{"uri":"`+notes+`"}`)
		s.visible()
		ended := func(when string) {
			t.Helper()
			for _, server := range []string{s.first, s.second} {
				if s.active(server, renewed.Access) {
					t.Errorf("%s the access token is active", when)
				}
				if a := s.refreshNotes(server, renewed.Refresh); a.Access != "" {
					t.Errorf("%s refreshing gives %+v", when, a)
				}
			}
			form := byCode(pending)
			form.Set("resource", notes)
			if a := s.token(s.second, "app", form); a.Access != "" {
				t.Errorf("%s a code gives %+v", when, a)
			}
		}
		ended("without the resource")
		if code := p.authorizeFor(s.second, "app", notes, "read", url.Values{"answer": {"approve"}}); code != "" {
			t.Error("a code is issued for a resource that is gone")
		}
		s.do("resource add", add)
		s.visible()
		ended("once the resource is there again")
		if code := p.authorizeFor(s.first, "app", notes, "read", nil); code != "" {
			t.Error("nobody is asked again for the resource")
		}
		s.passed.Add(int64(3 * time.Second)) // until then it could be of a server that had not seen the removal
		if again := s.grantNotes(p, "read"); !s.active(s.second, again.Access) {
			t.Errorf("the resource is there again, and gives %+v", again)
		}
		code := bystander.authorize(s.first, "app", nil)
		if got := s.ended(s.second, bystander, code); got != (ends{}) {
			t.Errorf("of another resource %+v ended", got)
		}
		s.checkChangesAtOnce()
	})
}

// checkChangesAtOnce has operators change one resource at once: each change is there afterwards.
func (s *site) checkChangesAtOnce() {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if _, err := s.try("resource scope", `{"uri":"`+notes+`","scope":"s`+string(rune('a'+i))+`"}`); err != nil {
				s.t.Error(err)
			}
		})
	}
	all.Wait()
	shown := s.do("resource show", `{"uri":"`+notes+`"}`).(*admin.ResourceDetail).Resource
	if len(shown.Scopes) != 10 || shown.Name != "Notes" || !slices.Equal(shown.Introspectors, []string{"guard"}) {
		s.t.Errorf("the resource is %+v", shown)
	}
}

// Bad input: what no resource or scope can be is refused with what is wrong.
func TestResourceRefuses(t *testing.T) {
	t.Parallel()
	s := newSite(t, databasetest.All["sqlite"](t))
	s.do("resource add", `{"uri":"`+notes+`","scope":["read","write"]}`)
	s.do("resource scope", `{"uri":"`+notes+`","scope":"write","implies":["read"],"group":["editors"],"default":true}`)
	s.do("resource scope", `{"uri":"`+notes+`","scope":"write","description":"Change your notes"}`)
	write := s.do("resource show", `{"uri":"`+notes+`"}`).(*admin.ResourceDetail).Resource
	if w := write.Scopes[1]; w.Description != "Change your notes" || len(w.Groups) != 1 || len(w.Implies) != 1 || len(write.Default) != 1 {
		t.Errorf("what was not given did not stay: %+v", write)
	}
	s.do("resource scope", `{"uri":"`+notes+`","scope":"write","everybody":true,"not_default":true}`)
	write = s.do("resource show", `{"uri":"`+notes+`"}`).(*admin.ResourceDetail).Resource
	if w := write.Scopes[1]; w.Description != "Change your notes" || len(w.Groups) != 0 || len(w.Implies) != 1 || len(write.Default) != 0 {
		t.Errorf("open to everybody: %+v", write)
	}
	for _, test := range []struct {
		verb, parameters string
		code             admin.Code
		want             string
	}{
		{"add", `{"uri":"notes"}`, admin.Invalid, `resource "notes"`},
		{"add", `{"uri":"` + notes + `#x"}`, admin.Invalid, "fragment"},
		{"add", `{"uri":"HTTPS://NOTES.example/mcp"}`, admin.Conflict, "already"},
		{"add", `{"uri":"https://a.example","scope":["a b"]}`, admin.Invalid, "no scope"},
		{"add", `{"uri":"https://a.example","scope":["a","a"]}`, admin.Invalid, "twice"},
		{"add", `{"uri":"https://a.example","scope":["offline_access"]}`, admin.Invalid, "no scope of a resource"},
		{"add", `{"uri":"https://a.example","name":"a\u202eb"}`, admin.Invalid, "name"},
		{"add", `{"uri":"https://a.example","access_lifetime":"soon"}`, admin.Invalid, "access_lifetime"},
		{"scope", `{"uri":"https://a.example","scope":"a"}`, admin.NotFound, "not found"},
		{"scope", `{"uri":"` + notes + `","scope":"a b"}`, admin.Invalid, "no scope"},
		{"scope", `{"uri":"` + notes + `","scope":"a","implies":["b"]}`, admin.Invalid, "implies"},
		{"scope", `{"uri":"` + notes + `","scope":"a","implies":["a"]}`, admin.Invalid, "includes itself"},
		{"scope", `{"uri":"` + notes + `","scope":"a","description":"x\ny"}`, admin.Invalid, "description"},
		{"scope", `{"uri":"` + notes + `","scope":"a","remove":true}`, admin.NotFound, "no scope"},
		{"scope", `{"uri":"` + notes + `","scope":"read","remove":true}`, admin.Conflict, `"write" implies "read"`},
		{"scope", `{"uri":"` + notes + `","scope":"read","remove":true,"default":true}`, admin.Invalid, "cannot be used with other settings"},
		{"show", `{"uri":"https://a.example"}`, admin.NotFound, "not found"},
		{"scope", `{"uri":"` + notes + `","scope":"write","everybody":true,"group":["a"]}`, admin.Invalid, "everybody"},
		{"change", `{"uri":"` + notes + `"}`, admin.Invalid, "missing change"},
		{"change", `{"uri":"` + notes + `","access_lifetime":"0s"}`, admin.Invalid, "access_lifetime"},
		{"change", `{"uri":"https://a.example","name":"A"}`, admin.NotFound, "not found"},
		{"remove", `{"uri":"https://a.example"}`, admin.NotFound, "not found"},
		{"remove", `{"uri":"https://a.example/\u0000"}`, admin.Invalid, "resource"},
	} {
		_, err := s.try("resource "+test.verb, test.parameters)
		e, ok := errors.AsType[*admin.Error](err)
		if !ok || e.Code != test.code || !strings.Contains(e.Message, test.want) {
			t.Errorf("resource %s %s: %v, want %s and %q", test.verb, test.parameters, err, test.code, test.want)
		}
	}
	if all := s.do("resource list", `{}`).(*admin.ResourceList).Resources; len(all) != 1 || len(all[0].Scopes) != 2 {
		t.Errorf("the resources are %+v", all)
	}
}

// The labels of what is known of a resource are one column.
func TestResourceText(t *testing.T) {
	t.Parallel()
	scopes := []admin.DescribedScope{{Name: "read", Description: "Read your notes"}, {Name: "all", Implies: []string{"read"}}}
	for _, c := range []struct {
		introspectors []string
		want          string
	}{
		{nil, "uri    https://notes.example\nname   Notes\nscope  read  Read your notes (default)\nscope  all   (implies read)\n"},
		{
			[]string{"guard"},
			"uri            https://notes.example\nname           Notes\nintrospectors  guard\n" +
				"scope          read  Read your notes (default)\nscope          all   (implies read)\n",
		},
	} {
		d := &admin.ResourceDetail{Resource: admin.ProtectedResource{
			URI: "https://notes.example", Name: "Notes", Introspectors: c.introspectors, Scopes: scopes, Default: []string{"read"},
		}}
		if got := d.Text(); got != c.want {
			t.Errorf("shown as\n%s\nwant\n%s", got, c.want)
		}
	}
}
