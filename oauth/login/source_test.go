package login_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/oauth/login"
)

func TestSource(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	rs.prm["scopes_supported"] = []string{"read"}
	now := clocktest.New(time.Now())
	c, b := newClient(t, login.Options{Now: now.Now})
	source := c.Source(rs.url())
	first, err := source.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := source.Token(t.Context()); err != nil || again.Access != first.Access {
		t.Errorf("%v %v, want the same token", again, err)
	}
	status, _, err := get(t, c.HTTPClient(nil), rs.url(), "Authorization", first.Header())
	if status != 200 || err != nil {
		t.Errorf("%d %v, want 200", status, err)
	}
	if !slices.Equal(first.Scopes, []string{"read"}) || first.Type != "Bearer" || first.Expires.Before(now.Now().Add(59*time.Minute)) {
		t.Errorf("token %v %v", first.Scopes, first.Expires)
	}
	for _, form := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(form, first); strings.Contains(text, first.Access) {
			t.Errorf("%s shows the secret: %s", form, text)
		}
	}
	now.Add(2 * time.Hour)
	second, err := source.Token(t.Context())
	if err != nil || second.Access == first.Access || b.visits() != 1 {
		t.Errorf("%v %v after %d visits, want another token without a visit", second, err, b.visits())
	}
	as.expire(true)
	now.Add(2 * time.Hour)
	if _, err := source.Token(t.Context()); err != nil || b.visits() != 2 {
		t.Errorf("%v after %d visits, want a sign-in", err, b.visits())
	}
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	rs := newResource(t, newAuthServer(t, ""))
	c, b := newClient(t, login.Options{})
	steps := []struct {
		o      *login.SignInOptions
		visits int
		scope  string
	}{
		{nil, 1, ""},
		{nil, 1, ""},
		{&login.SignInOptions{Scopes: []string{"a"}}, 2, "a"},
		{&login.SignInOptions{Scopes: []string{"a"}}, 2, "a"},
		{&login.SignInOptions{Scopes: []string{"b"}}, 3, "a b"},
		{&login.SignInOptions{Force: true}, 4, "a b"},
	}
	for i, step := range steps {
		if _, err := c.SignIn(t.Context(), rs.url(), step.o); err != nil {
			t.Fatal(err)
		}
		if got := b.urls[len(b.urls)-1].Query().Get("scope"); b.visits() != step.visits || got != step.scope {
			t.Errorf("step %d: %d visits, scope %q; want %d, %q", i, b.visits(), got, step.visits, step.scope)
		}
	}
	for _, bad := range []string{"", "files", "http://api.example/mcp", "ftp://api.example", "//api.example"} {
		if _, err := c.SignIn(t.Context(), bad, nil); err == nil {
			t.Errorf("%q was taken for a resource", bad)
		}
	}
}

// Who is signed in to an origin, and signs in to a resource beneath it, gets tokens for that one: what is
// known of the origin does not stand in its place.
func TestSignInBeneath(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	rs.handlers[prmRoot] = document(map[string]any{"resource": rs.URL, "authorization_servers": []string{as.URL}})
	c, _ := newClient(t, login.Options{})
	for _, resource := range []string{rs.URL, rs.url(), rs.url() + "?tenant=1"} {
		for range 2 { // also when it is known
			if _, err := c.SignIn(t.Context(), resource, &login.SignInOptions{Force: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got []string
	authorize, _, _, _ := as.seen()
	for _, q := range authorize {
		got = append(got, q.Get("resource"))
	}
	if want := []string{rs.URL, rs.URL, rs.url(), rs.url(), rs.url(), rs.url()}; !slices.Equal(got, want) {
		t.Errorf("tokens for %q, want %q", got, want)
	}
}

// A resource above the URL whose metadata a challenge alone can name is found again without one.
func TestSignInAbove(t *testing.T) {
	t.Parallel()
	_, rs := newServers(t)
	c, b := newClient(t, login.Options{})
	welcome(t, c.HTTPClient(nil), rs.url()+"/a/b")
	if _, err := c.SignIn(t.Context(), rs.url()+"/a/b", &login.SignInOptions{Scopes: []string{"more"}}); err != nil || b.visits() != 2 {
		t.Errorf("error %v after %d visits, want two", err, b.visits())
	}
}

// What is stored is listed without secrets, revoked and forgotten.
func TestSignOut(t *testing.T) {
	t.Parallel()
	as := newAuthServer(t, "")
	as.override["revocation_endpoint"] = as.URL + "/revoke"
	rs, other := newResource(t, as), newResource(t, as)
	rs.scope = "a"
	store := login.NewMemory()
	c, b := newClient(t, login.Options{Store: store})
	h := c.HTTPClient(nil)
	welcome(t, h, rs.url())
	welcome(t, h, other.url())
	all, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []login.Status{
		{Resource: rs.url(), Issuer: as.issuer(), ClientID: "client-1", Scopes: []string{"a"}, Requested: []string{"a"}, Refreshable: true, Current: true},
		{Resource: other.url(), Issuer: as.issuer(), ClientID: "client-1", Refreshable: true, Current: true},
	}
	slices.SortFunc(want, func(a, b login.Status) int { return strings.Compare(a.Resource, b.Resource) })
	if diff := cmp.Diff(want, all, cmpopts.IgnoreFields(login.Status{}, "Expires"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}

	if err := c.SignOut(t.Context(), rs.url()); err != nil {
		t.Fatal(err)
	}
	var hints []string
	for _, form := range as.revoked {
		hints = append(hints, form.Get("token_type_hint"))
		if form.Get("token") == "" || form.Get("client_id") != "client-1" {
			t.Errorf("revocation %v", form)
		}
	}
	if diff := cmp.Diff([]string{"access_token", "refresh_token"}, hints); diff != "" {
		t.Errorf("revoked (-want +got):\n%s", diff)
	}
	if all, _ := c.Status(t.Context()); len(all) != 1 || all[0].Resource != other.url() {
		t.Errorf("status %+v, want the other alone", all)
	}
	welcome(t, h, other.url())
	if b.visits() != 2 {
		t.Errorf("%d visits, want 2: the other resource is signed in to", b.visits())
	}
	welcome(t, h, rs.url())
	if _, _, registered, _ := as.seen(); b.visits() != 3 || len(registered) != 1 {
		t.Errorf("%d visits, %d registrations; want 3 and 1", b.visits(), len(registered))
	}
	for _, r := range []string{rs.url(), other.url()} {
		if err := c.Forget(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if names, _ := store.Names(t.Context()); len(names) != 0 {
		t.Errorf("%q is left", names)
	}
	if len(as.revoked) != 2 {
		t.Error("forgetting told the server")
	}
}

// What cannot be revoked is forgotten all the same.
func TestSignOutFails(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	store := login.NewMemory()
	c, _ := newClient(t, login.Options{Store: store})
	welcome(t, c.HTTPClient(nil), rs.url())
	as.Close()
	err := c.SignOut(t.Context(), rs.url())
	var d *login.DiscoveryError
	if !errors.As(err, &d) {
		t.Errorf("error %v, want that the server is not there", err)
	}
	if names, _ := store.Names(t.Context()); len(names) != 0 {
		t.Errorf("%q is left", names)
	}
}

// Tokens that could not be revoked, since the endpoint for that was passed over, are not said to be.
func TestSignOutWithoutEndpoint(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	as.override["revocation_endpoint"] = "http://plain.example/revoke"
	store := login.NewMemory()
	c, _ := newClient(t, login.Options{Store: store})
	welcome(t, c.HTTPClient(nil), rs.url())
	if err := c.SignOut(t.Context(), rs.url()); err == nil || !strings.Contains(err.Error(), "revocation_endpoint that cannot be used") {
		t.Errorf("error %v, want one about the endpoint", err)
	}
	if names, _ := store.Names(t.Context()); len(names) != 0 {
		t.Errorf("%q is left", names)
	}
}

func TestIssuers(t *testing.T) {
	t.Parallel()
	as1, as2 := newAuthServer(t, ""), newAuthServer(t, "/x")
	c, _ := newClient(t, login.Options{})
	got, err := c.Issuers(t.Context(), newResource(t, as1, as2).url())
	if diff := cmp.Diff([]string{as1.issuer(), as2.issuer()}, got); diff != "" || err != nil {
		t.Errorf("issuers %v (-want +got):\n%s", err, diff)
	}
}
