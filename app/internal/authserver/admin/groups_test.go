package admin_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/authserver/admin"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
)

// What a user has of a scope that is for a group, while in it and afterwards, in two servers at once.
// Proves: what the guide says that ends, in docs/guide/authorization-users.md
func TestGroupEnds(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := newSite(t, dsn)
		s.addUser("ada")
		p := s.signIn("app", "ada")
		s.do("resource add", `{"uri":"`+notes+`","name":"Notes","introspector":["guard"],"scope":["read"]}`)
		s.do("resource scope", `{"uri":"`+notes+`","scope":"write","group":["editors, of notes"]}`)
		s.visible()
		if code := p.authorizeFor(s.first, "app", notes, "write", url.Values{"answer": {"approve"}}); code != "" {
			t.Error("who is not in the group gets its scope")
		}
		s.do("group add", `{"group":"editors, of notes","user":"Ada"}`)
		s.do("group add", `{"group":"editors, of notes","user":"ada"}`) // once more
		got := s.grantNotes(p, "read write")
		if got.Scope != "read write" || s.scopeOf(s.first, got.Access) != "read write" {
			t.Fatalf("who is in the group gets %+v", got)
		}
		listed := s.do("group list", `{"user":"ada"}`).(*admin.GroupList).Members
		if len(listed) != 1 || listed[0].User != "ada" || listed[0].Group != "editors, of notes" {
			t.Errorf("the list is %+v", listed)
		}
		if shown := s.do("user show", `{"name":"ada"}`).(*admin.UserDetail); len(shown.Groups) != 1 {
			t.Errorf("the user is shown as %+v", shown)
		}
		s.do("group remove", `{"group":"editors, of notes","user":"ada"}`)
		for _, server := range []string{s.first, s.second} {
			if scope := s.scopeOf(server, got.Access); scope != "read" {
				t.Errorf("who left the group has a token for %q", scope)
			}
		}
		if next := s.refreshNotes(s.second, got.Refresh); next.Scope != "read" {
			t.Errorf("who left the group refreshes to %+v", next)
		}
		// A user of the same name later is another person.
		s.do("group add", `{"group":"editors, of notes","user":"ada"}`)
		s.do("user remove", `{"name":"ada"}`)
		s.addUser("ada")
		if all := s.do("group list", `{}`).(*admin.GroupList).Members; len(all) != 0 {
			t.Errorf("after the user was removed: %+v", all)
		}
		s.do("group add", `{"group":"a","user":"https://login.example|7"}`)
		s.do("group add", `{"group":"b","user":"https://login.example|7"}`)
		page := s.do("group list", `{"limit":1}`).(*admin.GroupList)
		rest := s.do("group list", `{"after":"`+page.Next+`"}`).(*admin.GroupList)
		if len(page.Members) != 1 || page.Members[0].Group != "a" || len(rest.Members) != 1 || rest.Members[0].Group != "b" || rest.Next != "" {
			t.Errorf("the pages are %+v and %+v", page, rest)
		}
	})
}

// Bad input: names with line breaks, look-alikes, people who are not there, too many groups.
func TestGroupRefuses(t *testing.T) {
	t.Parallel()
	s := newSite(t, databasetest.All["sqlite"](t))
	s.addUser("ada")
	s.do("group add", `{"group":"admins","user":"ada"}`)
	for _, test := range []struct {
		verb, parameters string
		code             admin.Code
		want             string
	}{
		{"group add", `{"group":"a\nb","user":"ada"}`, admin.Invalid, "name of a group"},
		{"group add", `{"group":" a","user":"ada"}`, admin.Invalid, "name of a group"},
		{"group add", `{"group":"a\u0000","user":"ada"}`, admin.Invalid, "name of a group"},
		{"group add", `{"group":"` + strings.Repeat("a", 256) + `","user":"ada"}`, admin.Invalid, "name of a group"},
		{"group add", `{"group":"Admins","user":"ada"}`, admin.Conflict, "looks like it"},
		{"group add", `{"group":"аdmins","user":"ada"}`, admin.Conflict, "looks like it"},
		{"group add", `{"group":"admins","user":"eve"}`, admin.NotFound, "not found"},
		{"group remove", `{"group":"admins","user":"eve"}`, admin.NotFound, "not in the group"},
		{"group remove", `{"group":"Admins","user":"ada"}`, admin.NotFound, "not in the group"},
		{"group list", `{"user":"a\u0000"}`, admin.Invalid, "cannot be stored"},
		{"resource scope", `{"uri":"` + notes + `","scope":"a","group":["a\nb"]}`, admin.Invalid, "name of a group"},
	} {
		_, err := s.try(test.verb, strings.ReplaceAll(test.parameters, "\n", `\n`))
		e, ok := errors.AsType[*admin.Error](err)
		if !ok || e.Code != test.code || !strings.Contains(e.Message, test.want) {
			t.Errorf("%s %s: %v, want %s and %q", test.verb, test.parameters, err, test.code, test.want)
		}
	}
	for i := range 200 {
		_, err := s.try("group add", `{"group":"g`+strings.Repeat("x", i)+`","user":"ada"}`)
		if e, ok := errors.AsType[*admin.Error](err); (i < 199) != (err == nil) || i == 199 && (!ok || e.Code != admin.Conflict) {
			t.Fatalf("group %d: %v", i+2, err)
		}
	}
}
