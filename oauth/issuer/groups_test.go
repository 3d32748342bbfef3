package issuer_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// groups tells the groups of people, as they are now.
type groups struct {
	mu sync.Mutex
	of map[string][]string
}

func (g *groups) set(subject string, names ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of[subject] = names
}

func (g *groups) tell(_ context.Context, subject string, login []string) ([]string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Concat(login, g.of[subject]), nil
}

// limitTo makes the scope notes:write of the first resource one for a group.
func limitTo(group string) func(*issuer.Options) {
	return func(o *issuer.Options) {
		for i := range o.Resources[0].Scopes {
			if o.Resources[0].Scopes[i].Name == "notes:write" {
				o.Resources[0].Scopes[i].Groups = []string{group}
			}
		}
	}
}

// A scope that is for a group is granted by its people alone, and goes when they leave it: from new tokens,
// from refreshed ones, and from those that are introspected.
func TestGroups(t *testing.T) {
	t.Parallel()
	of := &groups{of: map[string][]string{}}
	s := newSite(t, "", formLogin{}, func(o *issuer.Options) {
		limitTo("editors, of notes")(o)
		o.Groups = of.tell
		o.Resources[0].Introspectors = []string{"guard"}
		o.Clients = append(o.Clients, issuer.StaticClient{
			ID: "guard", Secret: "secret of the guard", Metadata: oauth.ClientMetadata{GrantTypes: []string{oauth.GrantClientCredentials}},
		})
	})
	of.set("ada", "editors, of notes")
	sign := func(user, scope string) (*page, *person) {
		p := s.person()
		return p.signIn(s.request("scope", scope), user), p
	}
	introspected := func(token string) string {
		return s.form("/introspect", params("token", token), basic("guard", "secret of the guard")).text("scope")
	}
	refreshed := func(token string) *answer {
		return s.form("/token", params("grant_type", oauth.GrantRefreshToken, "client_id", "web", "refresh_token", token))
	}

	question, _ := sign("bob", "notes:read notes:write")
	if strings.Contains(question.body, "notes:write") || !strings.Contains(question.body, "Read your notes") {
		t.Errorf("who is not in the group is asked %s", question.body)
	}
	// What bob may not grant, another account may.
	refused, bob := sign("bob", "notes:write")
	if !strings.Contains(refused.body, "Nothing of what it asks for") || strings.Contains(refused.body, `value="approve"`) {
		t.Errorf("who is not in the group asks for its scope alone: %d %v %s", refused.status, refused.away, refused.body)
	}
	if got := bob.submit(refused, "answer", "switch"); !strings.Contains(got.body, "Sign in") {
		t.Errorf("another account: %d %s", got.status, got.body)
	}
	refused, bob = sign("bob", "notes:write")
	if got := bob.submit(refused, "answer", "approve"); got.away == nil || got.away.Query().Get("error") != oauth.AccessDenied {
		t.Errorf("a form that approves all the same: %d %v %s", got.status, got.away, got.body)
	}
	question, p := sign("ada", "notes:read notes:write")
	code := p.code(p.submit(question, "answer", "approve"))
	got := s.form("/token", params("grant_type", oauth.GrantAuthorizationCode, "client_id", "web", "code", code, "code_verifier", verifier, "redirect_uri", webRedirect))
	if got.text("scope") != "notes:read notes:write" || introspected(got.text("access_token")) != "notes:read notes:write" {
		t.Fatalf("who is in the group gets %d %s, %q", got.Status, got.Raw, introspected(got.text("access_token")))
	}
	of.set("ada", "EDITORS, of notes", "editors", "of notes", "\u0435ditors, of notes") // none of which is that one
	if scope := introspected(got.text("access_token")); scope != "notes:read" {
		t.Errorf("who left the group has a token for %q", scope)
	}
	next := refreshed(got.text("refresh_token"))
	if next.text("scope") != "notes:read" {
		t.Errorf("who left the group refreshes to %d %s", next.Status, next.Raw)
	}
	of.set("ada", "editors, of notes")
	if again := refreshed(next.text("refresh_token")); again.Status != http.StatusOK || again.text("scope") != "notes:read notes:write" {
		t.Errorf("who is in the group again refreshes to %d %s", again.Status, again.Raw)
	}
	for scope, want := range map[string]string{"notes:write": oauth.InvalidScope, "notes:read": "ok"} {
		form := params("grant_type", oauth.GrantClientCredentials, "resource", mcpServer, "scope", scope)
		if got := s.form("/token", form, basic("guard", "secret of the guard")).brief(); got != want {
			t.Errorf("a client that acts for itself asks for %s: %s, want %s", scope, got, want)
		}
	}
}

// Attack: a scope without groups includes one that is for some.
func TestAttackGroupsImplied(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, func(o *issuer.Options) {
		limitTo("editors")(o)
		o.Resources[0].Scopes = append(o.Resources[0].Scopes, issuer.Scope{Name: "notes:all", Implies: []string{"notes:write", "notes:read"}})
		o.Clients = append(o.Clients, issuer.StaticClient{
			ID: "robot", Secret: "secret of the robot", Scopes: []string{"notes:all"},
			Metadata: oauth.ClientMetadata{GrantTypes: []string{oauth.GrantClientCredentials}},
		})
	})
	got := s.person().signIn(s.request("scope", "notes:all notes:read"), "bob")
	if strings.Contains(got.body, "notes:all") || !strings.Contains(got.body, "Read your notes") {
		t.Errorf("who is not in the group is asked %d %s", got.status, got.body)
	}
	form := params("grant_type", oauth.GrantClientCredentials, "resource", mcpServer, "scope", "notes:all")
	if got := s.form("/token", form, basic("robot", "secret of the robot")).brief(); got != oauth.InvalidScope {
		t.Errorf("a client that acts for itself, and is not named there: %s", got)
	}
}

// A device whose person may grant nothing waits for somebody else.
func TestDeviceNoGroup(t *testing.T) {
	t.Parallel()
	of := &groups{of: map[string][]string{"ada": {"editors"}}}
	s := newSite(t, "", formLogin{}, func(o *issuer.Options) {
		devices(o)
		limitTo("editors")(o)
		o.Groups = of.tell
	})
	a := s.device("scope", "notes:write")
	s.person().enter(a.text("user_code"), "bob")
	if got := s.poll(a).brief(); got != oauth.AuthorizationPending {
		t.Errorf("after a person who may not: %s", got)
	}
	p := s.person()
	p.submit(p.enter(a.text("user_code"), "ada"), "answer", "approve")
	s.clock.Add(5 * time.Second)
	if got := s.poll(a); got.text("scope") != "notes:write" {
		t.Errorf("after a person who may: %d %s", got.Status, got.Raw)
	}
}

// A token that would have none of the scopes that were asked for is refused: an answer without
// scope means all of them (RFC 6749, section 5.1).
func TestNoScopeLeft(t *testing.T) {
	t.Parallel()
	idp := &provider{key: newKey(t), typ: jwt.TypeIDJAG, iss: enterprise}
	idp.d = newDesk(t, nil, func(o *issuer.Options) {
		o.Assertions = []issuer.AssertionIssuer{{Issuer: enterprise, JWKS: jwt.SetJSON(idp.key), IDJAG: true}}
		o.Resources[0].Scopes[1].Groups = []string{"editors"}
	})
	if got := idp.d.token(change(idp.grant(nil), "scope", "write"), basic("agent", secret)); got.brief() != oauth.InvalidScope {
		t.Errorf("an assertion: %d %s", got.Status, got.Raw)
	}
	d := newDesk(t, nil, func(o *issuer.Options) { o.Resources[1].Scopes[0].Groups = []string{"editors"} })
	form := params("grant_type", oauth.GrantTokenExchange, "subject_token", d.signIn("public").text("access_token"), "scope", "other",
		"subject_token_type", oauth.TokenTypeAccessToken, "resource", otherServer)
	if got := d.token(form, basic("rs", secret)); got.brief() != oauth.InvalidScope {
		t.Errorf("an exchange: %d %s", got.Status, got.Raw)
	}
}

// A workload is bounded as the client of its id, of the store too, and disabled with it.
func TestWorkloadOfStoredClient(t *testing.T) {
	t.Parallel()
	for _, disabled := range []bool{false, true} {
		p := &provider{key: newKey(t), typ: jwt.TypeJWT, iss: platform}
		store := issuer.NewMemory()
		p.d = newDesk(t, store, func(o *issuer.Options) {
			o.Assertions = []issuer.AssertionIssuer{{
				Issuer: platform, JWKS: jwt.SetJSON(p.key),
				Workload: func(context.Context, string, []byte) (*issuer.WorkloadGrant, error) {
					return &issuer.WorkloadGrant{ClientID: "workload", Subject: "the pod", Scopes: []string{"read", "write"}}, nil
				},
			}}
		})
		c, err := issuer.NewClient(issuer.StaticClient{ID: "workload", Secret: "0123456789abcdef", Scopes: []string{"read"}, Metadata: machine("")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Disabled = disabled
		if _, err := store.AddClient(t.Context(), c, 0); err != nil {
			t.Fatal(err)
		}
		got := p.d.token(p.grant(nil))
		if disabled && got.brief() != oauth.InvalidGrant || !disabled && got.text("scope") != "read" {
			t.Errorf("disabled %v: %d %s", disabled, got.Status, got.Raw)
		}
	}
}
