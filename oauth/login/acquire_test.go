package login_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/oauth/login"
)

// refreshes are the refresh requests that a server saw.
func refreshes(as *authServer) []url.Values {
	_, tokens, _, _ := as.seen()
	return slices.DeleteFunc(tokens, func(v url.Values) bool { return v.Get("grant_type") != "refresh_token" })
}

// Proves: C25: a token is refreshed before it ends, with the rotated refresh
// token each time.
func TestRefreshEarly(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	now := clocktest.New(time.Now())
	c, b := newClient(t, login.Options{Now: now.Now})
	h := c.HTTPClient(nil)
	welcome(t, h, rs.url())
	now.Add(50 * time.Minute)
	welcome(t, h, rs.url())
	if n := len(refreshes(as)); n != 0 {
		t.Fatalf("%d refreshes too early", n)
	}
	now.Add(10*time.Minute - 20*time.Second) // within the margin
	welcome(t, h, rs.url())
	now.Add(2 * time.Hour)
	welcome(t, h, rs.url())
	if n := len(refreshes(as)); n != 2 || b.visits() != 1 {
		t.Errorf("%d refreshes, %d visits; want 2 and 1", n, b.visits())
	}
	calls := rs.calls()
	if slices.Contains(calls[1:], "") {
		t.Error("a request went without token")
	}
}

// A server that answers a registration, a code or a refresh with another status of success
// than usual has answered.
func TestUnusualSuccess(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 201, 202, 203} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			as, rs := newServers(t)
			change(as, func() { as.status = status })
			c, b := newClient(t, login.Options{})
			h := c.HTTPClient(nil)
			welcome(t, h, rs.url())
			as.expire(false)
			welcome(t, h, rs.url())
			if n := len(refreshes(as)); n != 1 || b.visits() != 1 {
				t.Errorf("%d refreshes, %d visits; want one each", n, b.visits())
			}
		})
	}
}

// Trouble at the server costs nothing as long as the token lasts.
func TestRefreshTrouble(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	now := clocktest.New(time.Now())
	c, b := newClient(t, login.Options{Now: now.Now})
	h := c.HTTPClient(nil)
	welcome(t, h, rs.url())
	change(as, func() { as.down = true })
	now.Add(time.Hour - 20*time.Second)
	welcome(t, h, rs.url())
	welcome(t, h, rs.url())
	if n := len(refreshes(as)); n != 1 {
		t.Errorf("%d refreshes, want 1: there is a pause", n)
	}
	now.Add(time.Minute) // it has ended
	if _, _, err := get(t, h, rs.url()); err == nil || b.visits() != 1 {
		t.Errorf("error %v after %d visits, want one after 1: a person does not help", err, b.visits())
	}
	change(as, func() { as.down = false })
	welcome(t, h, rs.url())
	if b.visits() != 1 {
		t.Errorf("%d visits, want 1", b.visits())
	}
}

// Proves: C25: no refresh token is no trouble, an invalid one neither.
func TestRefreshImpossible(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	c, b := newClient(t, login.Options{})
	h := c.HTTPClient(nil)
	welcome(t, h, rs.url())
	as.expire(true)
	change(as, func() { as.norefrsh = true })
	welcome(t, h, rs.url()) // invalid_grant, then anew
	as.expire(true)
	welcome(t, h, rs.url()) // none, then anew
	if b.visits() != 3 || len(refreshes(as)) != 1 {
		t.Errorf("%d visits, %d refreshes; want 3 and 1", b.visits(), len(refreshes(as)))
	}
}

// A server that does not rotate leaves the refresh token valid.
func TestRefreshWithoutRotation(t *testing.T) {
	t.Parallel()
	as := newAuthServer(t, "")
	as.norotate = true
	rs := newResource(t, as)
	c, b := newClient(t, login.Options{})
	h := c.HTTPClient(nil)
	for range 3 {
		welcome(t, h, rs.url())
		as.expire(false)
	}
	if b.visits() != 1 {
		t.Errorf("%d visits, want 1", b.visits())
	}
}

// Two Clients on one store refresh once between them: the lock is taken and
// the store read again behind it. A refresh token that is used twice would
// end the family.
func TestRefreshAcrossClients(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	store := login.NewMemory()
	first, b1 := newClient(t, login.Options{Store: store})
	second, b2 := newClient(t, login.Options{Store: store})
	h1, h2 := first.HTTPClient(nil), second.HTTPClient(nil)
	welcome(t, h1, rs.url())
	welcome(t, h2, rs.url())
	for round := range 5 {
		as.expire(false)
		var wg sync.WaitGroup
		wg.Go(func() { parallel(t, h1, 8, rs.url()) })
		wg.Go(func() { parallel(t, h2, 8, rs.url()) })
		wg.Wait()
		if n := len(refreshes(as)); n != round+1 {
			t.Fatalf("%d refreshes after round %d", n, round+1)
		}
	}
	if b1.visits() != 1 || b2.visits() != 0 {
		t.Errorf("%d and %d visits, want 1 and 0", b1.visits(), b2.visits())
	}
	// Two sign-ins at once are one as well.
	as.expire(true)
	var wg sync.WaitGroup
	wg.Go(func() { parallel(t, h1, 8, rs.url()) })
	wg.Go(func() { parallel(t, h2, 8, rs.url()) })
	wg.Wait()
	if n := b1.visits() + b2.visits(); n != 2 {
		t.Errorf("%d visits, want 2", n)
	}
}

// fullStore takes nothing.
type fullStore struct{ login.Store }

func (fullStore) Set(context.Context, string, []byte) error { return errors.New("disk full") }

// A store that takes nothing costs the next process a sign-in, not this one.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	store := fullStore{login.NewMemory()}
	c, b := newClient(t, login.Options{Store: store})
	h := c.HTTPClient(nil)
	for range 3 {
		welcome(t, h, rs.url())
		as.expire(false)
	}
	if b.visits() != 1 {
		t.Errorf("%d visits, want 1", b.visits())
	}
}

// fillingStore takes nothing any more once it is full.
type fillingStore struct {
	login.Store
	full atomic.Bool
}

func (s *fillingStore) Set(ctx context.Context, name string, value []byte) error {
	if s.full.Load() {
		return errors.New("disk full")
	}
	return s.Store.Set(ctx, name, value)
}

// A rotated token that the store did not take is not mixed up with the old one
// that it still has, and is revoked when the person signs out.
func TestStoreFillsUp(t *testing.T) {
	t.Parallel()
	as := newAuthServer(t, "")
	as.override["revocation_endpoint"] = as.URL + "/revoke"
	rs := newResource(t, as)
	store := &fillingStore{Store: login.NewMemory()}
	c, b := newClient(t, login.Options{Store: store})
	h := c.HTTPClient(nil)
	welcome(t, h, rs.url())
	store.full.Store(true)
	for range 3 {
		as.expire(false)
		welcome(t, h, rs.url())
	}
	if b.visits() != 1 || len(refreshes(as)) != 3 {
		t.Errorf("%d visits, %d refreshes; want 1 and 3", b.visits(), len(refreshes(as)))
	}
	calls := rs.calls()
	if err := c.SignOut(t.Context(), rs.url()); err != nil {
		t.Fatal(err)
	}
	if as.revoked[0].Get("token") != strings.TrimPrefix(calls[len(calls)-1], "Bearer ") {
		t.Errorf("revoked %v, want the token in use", as.revoked)
	}
	if names, err := store.Names(t.Context()); err != nil || len(names) != 0 {
		t.Errorf("%q are left: %v", names, err)
	}
}

// invalid_grant deletes the generation that failed, and no newer one.
func TestInvalidGrantKeepsNewer(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	store := login.NewMemory()
	stale, _ := newClient(t, login.Options{Store: store, NonInteractive: true})
	fresh, b := newClient(t, login.Options{Store: store})
	welcome(t, fresh.HTTPClient(nil), rs.url())
	h := stale.HTTPClient(nil)
	welcome(t, h, rs.url()) // has the first generation
	as.expire(true)
	welcome(t, fresh.HTTPClient(nil), rs.url()) // a second one
	welcome(t, h, rs.url())                     // must take that up
	all, err := stale.Status(t.Context())
	if err != nil || len(all) != 1 || b.visits() != 2 {
		t.Errorf("status %+v %v after %d visits", all, err, b.visits())
	}
}

// Attack: a server whose metadata moves the token endpoint does not get the
// refresh token there.
func TestRefreshTokenEndpointMoved(t *testing.T) {
	t.Parallel()
	for _, registered := range []bool{false, true} {
		as, evil := newAuthServer(t, ""), newAuthServer(t, "")
		rs := newResource(t, as)
		o := login.Options{}
		if registered {
			o.Credentials = []login.Credentials{{Issuer: as.issuer(), ClientID: "mine"}}
		}
		c, b := newClient(t, o)
		h := c.HTTPClient(nil)
		welcome(t, h, rs.url())
		as.expire(false)
		change(as, func() { as.override["token_endpoint"] = evil.URL + "/token" })
		_, _, _ = get(t, h, rs.url())
		for _, form := range refreshes(evil) {
			t.Errorf("the other endpoint saw %v", form)
		}
		if b.visits() != 2 {
			t.Errorf("%d visits, want 2: a person decides", b.visits())
		}
	}
}

// A client that the server has forgotten is registered anew.
func TestRefreshInvalidClient(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	c, b := newClient(t, login.Options{})
	h := c.HTTPClient(nil)
	welcome(t, h, rs.url())
	as.expire(false)
	change(as, func() { as.fail["refresh_token"] = "invalid_client" })
	welcome(t, h, rs.url())
	if _, _, registered, _ := as.seen(); len(registered) != 2 || b.visits() != 2 {
		t.Errorf("%d registrations, %d visits; want 2 and 2", len(registered), b.visits())
	}
}

// A program signs in by a grant: no browser, no registration, again when the
// token ends.
func TestGrant(t *testing.T) {
	t.Parallel()
	as := newAuthServer(t, "")
	as.override["code_challenge_methods_supported"] = nil
	as.override["authorization_endpoint"] = nil
	as.override["token_endpoint_auth_methods_supported"] = []string{"client_secret_basic"}
	rs := newResource(t, as)
	rs.scope = "a"
	rs.needs["x"] = "b"
	now := clocktest.New(time.Now())
	c, b := newClient(t, login.Options{
		Grant: login.ClientCredentials(), NonInteractive: true, Now: now.Now,
		Credentials: []login.Credentials{{Issuer: as.issuer(), ClientID: "me", Secret: "secret"}},
	})
	h := c.HTTPClient(nil)
	welcome(t, h, rs.url())
	now.Add(2 * time.Hour)
	welcome(t, h, rs.url())
	welcome(t, h, rs.url(), "Mcp-Name", "x")
	_, tokens, registered, _ := as.seen()
	if len(tokens) != 3 || len(registered) != 0 || b.begun != 0 {
		t.Errorf("%d token requests, %d registrations; want 3 and 0", len(tokens), len(registered))
	}
	for i, want := range []string{"a", "a", "a b"} {
		form := tokens[i]
		if form.Get("grant_type") != "client_credentials" || form.Get("resource") != rs.url() ||
			form.Get("scope") != want || form.Get("basic") != "me:secret" {
			t.Errorf("token request %v", form)
		}
	}
	c, _ = newClient(t, login.Options{Grant: login.ClientCredentials()})
	if _, _, err := get(t, c.HTTPClient(nil), rs.url()); err == nil || !strings.Contains(err.Error(), "credentials") {
		t.Errorf("error %v, want that there are no credentials", err)
	}
}

// Proves: C26 in part: what a Client stores is under names that tell nothing.
func TestStoredNames(t *testing.T) {
	t.Parallel()
	rs := newResource(t, newAuthServer(t, ""))
	store := login.NewMemory()
	c, _ := newClient(t, login.Options{Store: store})
	welcome(t, c.HTTPClient(nil), rs.url())
	names, err := store.Names(t.Context())
	if err != nil || len(names) != 4 {
		t.Fatalf("names %q %v, want four", names, err)
	}
	for _, name := range names {
		if strings.Contains(name, "127.0.0.1") || len(name) > 100 {
			t.Errorf("name %q", name)
		}
	}
	// A record that was damaged is as good as none.
	for _, name := range names {
		if err := store.Set(t.Context(), name, []byte("{")); err != nil {
			t.Fatal(err)
		}
	}
	c, b := newClient(t, login.Options{Store: store})
	welcome(t, c.HTTPClient(nil), rs.url())
	if b.visits() != 1 {
		t.Errorf("%d visits, want 1", b.visits())
	}
}

// Sign-ins at the same time, each at a port of its own, register one client
// each; tokens go on being refreshed by the client that they were given to.
func TestRegistrationsSideBySide(t *testing.T) {
	t.Parallel()
	as := newAuthServer(t, "")
	rs1, rs2 := newResource(t, as), newResource(t, as)
	b := &browser{fixed: true}
	c, _ := newClient(t, login.Options{Authorizer: b})
	h := c.HTTPClient(nil)
	welcome(t, h, rs1.url())
	b.port = "6666"
	welcome(t, h, rs2.url())
	as.expire(false)
	welcome(t, h, rs1.url())
	welcome(t, h, rs2.url())
	if _, _, registered, _ := as.seen(); len(registered) != 2 || b.visits() != 2 {
		t.Errorf("%d registrations, %d visits; want 2 and 2", len(registered), b.visits())
	}
	for i, form := range refreshes(as) {
		if want := []string{"client-1", "client-4"}[i]; form.Get("client_id") != want {
			t.Errorf("refresh %d by %s, want %s", i, form.Get("client_id"), want)
		}
	}
}

// A store that cannot be read does not get in the way of resources that want
// no token.
func TestStoreUnreadable(t *testing.T) {
	t.Parallel()
	rs := newResource(t, newAuthServer(t, ""))
	rs.handlers["/mcp"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) }
	c, b := newClient(t, login.Options{Store: lockedStore{login.NewMemory()}})
	h := c.HTTPClient(nil)
	welcome(t, h, rs.url())
	change(rs, func() { delete(rs.handlers, "/mcp") })
	if _, _, err := get(t, h, rs.url()); !errors.Is(err, errLocked) || b.visits() != 0 {
		t.Errorf("error %v after %d visits, want that of the store", err, b.visits())
	}
}

var errLocked = errors.New("keyring is locked")

type lockedStore struct{ login.Store }

func (lockedStore) Get(context.Context, string) ([]byte, error) { return nil, errLocked }
