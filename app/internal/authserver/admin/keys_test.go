package admin_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/authserver/admin"
	"github.com/parley-mcp/parley/app/internal/authserver/userauth"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// newKeySite makes a site whose servers and administration have one clock, which the test sets forward
// and back.
func newKeySite(t *testing.T, dsn string, clock func() time.Time) (s *site, shift func(time.Duration)) {
	t.Helper()
	s = &site{t: t, db: openDB(t, dsn), audit: new(acts), clock: clock}
	front := httptest.NewUnstartedServer(nil)
	s.first = "http://" + front.Listener.Addr().String()
	handler := func() http.Handler {
		db := openDB(t, dsn)
		server, err := issuer.New(s.first, db, userauth.NewPasswords(db, nil), &issuer.Options{
			Resources: []issuer.Resource{{URI: resource, Scopes: []issuer.Scope{{Name: "read"}}, Introspectors: []string{"guard"}}},
			Clients: []issuer.StaticClient{{ID: "guard", Secret: "secret-of-guard", Metadata: oauth.ClientMetadata{
				TokenEndpointAuthMethod: oauth.AuthSecretBasic, GrantTypes: []string{oauth.GrantClientCredentials},
			}}},
			AccessLifetime: time.Hour, Now: s.now, RateLimit: -1,
		})
		if err != nil {
			t.Fatal(err)
		}
		return server
	}
	front.Config.Handler = handler()
	front.Start()
	t.Cleanup(front.Close)
	other := httptest.NewServer(handler())
	t.Cleanup(other.Close)
	s.second = other.URL
	s.administers = "unix:" + filepath.Join(t.TempDir(), "s")
	s.operator = administer(t, s.administers, admin.New(s.db, &admin.Options{Audit: s.audit.add, Now: s.now}))
	return s, func(d time.Duration) { s.passed.Add(int64(d)) }
}

// early is a clock that stands still two days after a period of keys began: in its last days, which come
// in the calendar, the key of the next one is there, too.
func early() func() time.Time {
	const lifetime, day = 30 * 24 * 60 * 60, 24 * 60 * 60 // of a key by default, in seconds
	began := time.Now().Unix() / lifetime * lifetime
	return func() time.Time { return time.Unix(began+2*day, 0) }
}

// mint gets an access token of a server, with the ID of the key that signed it.
func (s *site) mint(server string) (token, key string) {
	s.t.Helper()
	token, key, err := s.tryMint(server)
	if err != nil {
		s.t.Fatal(err)
	}
	return token, key
}

func (s *site) tryMint(server string) (token, key string, err error) {
	form := url.Values{"grant_type": {oauth.GrantClientCredentials}, "resource": {resource}}
	r, err := http.NewRequestWithContext(context.WithoutCancel(s.t.Context()), http.MethodPost, server+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		return "", "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth("guard", "secret-of-guard")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", "", err
	}
	defer response.Body.Close()
	var a answer
	if err := json.NewDecoder(response.Body).Decode(&a); err != nil {
		return "", "", err
	}
	head, _, _ := strings.Cut(a.Access, ".")
	raw, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil || a.Access == "" {
		return "", "", fmt.Errorf("the server issues no token: %+v, %w", a, err)
	}
	var header struct{ Kid string }
	if err := json.Unmarshal(raw, &header); err != nil || header.Kid == "" {
		return "", "", fmt.Errorf("the token names no key: %s", raw)
	}
	return a.Access, header.Kid, nil
}

// signer is the key that both servers sign with, and a token of it.
func (s *site) signer() (key, token string) {
	s.t.Helper()
	token, key = s.mint(s.first)
	if _, other := s.mint(s.second); other != key {
		s.t.Errorf("two servers sign with %s and %s", key, other)
	}
	return key, token
}

// published are the keys that a server publishes.
func (s *site) published(server string) []string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, server+"/jwks", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	var set struct{ Keys []struct{ Kid string } }
	if err := json.NewDecoder(response.Body).Decode(&set); err != nil {
		s.t.Fatal(err)
	}
	var ids []string
	for _, k := range set.Keys {
		ids = append(ids, k.Kid)
	}
	slices.Sort(ids)
	return ids
}

// states are those of the keys, by ID.
func (s *site) states() map[string]string {
	s.t.Helper()
	states := map[string]string{}
	for _, k := range s.do("key list", `{}`).(*admin.KeyList).Keys {
		states[k.ID] = k.State
	}
	return states
}

// keyIs checks what is true of a key two seconds after an act, in both servers.
func (s *site) keyIs(what, key, token, state string, published, active bool) {
	s.t.Helper()
	if got := s.states()[key]; got != state {
		s.t.Errorf("%s: the state of the key is %q, want %q", what, got, state)
	}
	for _, server := range []string{s.first, s.second} {
		if got := slices.Contains(s.published(server), key); got != published {
			s.t.Errorf("%s: the key is published: %v, want %v", what, got, published)
		}
		if got := s.active(server, token); got != active {
			s.t.Errorf("%s: what the key signed is active: %v, want %v", what, got, active)
		}
	}
}

const reload = 2 * time.Second // within it each server sees what was done

// What each act does to a key, within two seconds in both of two servers.
// Proves: what the guide says of keys, in docs/guide/authorization-keys.md
func TestKeyActs(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		s, shift := newKeySite(t, dsn, early())

		// Planned: the successor is published before it signs.
		first, token := s.signer()
		for range 2 { // another operator does the same
			change := s.do("key rotate", `{}`).(*admin.KeyChange)
			if len(change.Keys) != 1 || change.Keys[0].ID != first || change.Keys[0].State != "signing" ||
				change.Keys[0].Signs.Sub(change.Keys[0].Verifies) != -65*time.Minute {
				t.Errorf("rotate: %+v", change)
			}
			shift(reload)
		}
		if got, _ := s.signer(); got != first || len(s.published(s.first)) != 2 || len(s.states()) != 2 {
			t.Errorf("after rotate %s signs, want %s; states %v", got, first, s.states())
		}
		shift(issuer.KeyOverlap)
		second, later := s.signer()
		if second == first {
			t.Error("the key signs after its time")
		}
		s.keyIs("rotated", first, token, "retired", true, true)
		shift(-time.Hour)
		if got, _ := s.signer(); got != second {
			t.Errorf("after the clock stepped back %s signs, want %s", got, second)
		}
		shift(time.Hour)

		s.do("key retire", `{"id":"`+second+`"}`)
		shift(reload)
		third, last := s.signer()
		s.keyIs("retired", second, later, "retired", true, true)

		s.do("key revoke", `{"id":"`+third+`"}`)
		shift(reload)
		fourth, _ := s.signer()
		s.keyIs("revoked", third, last, "revoked", false, false)
		s.do("key revoke", `{"id":"`+second+`"}`)
		shift(reload)
		s.keyIs("retired and revoked", second, later, "revoked", false, false)
		shift(-time.Hour)
		s.keyIs("revoked, and the clock stepped back", third, last, "revoked", false, false)
		if got, _ := s.signer(); got != fourth {
			t.Errorf("after the clock stepped back %s signs, want %s", got, fourth)
		}
		shift(time.Hour)

		// The successor, before it signs; then all that are left.
		s.do("key rotate", `{"overlap":"30m"}`)
		shift(reload)
		s.signer()
		for key, state := range s.states() {
			if state == "next" {
				s.do("key retire", `{"id":"`+key+`"}`)
			}
		}
		shift(reload)
		if got, _ := s.signer(); got != fourth || len(s.published(s.second)) != 4 {
			t.Errorf("%s signs, want %s; states %v", got, fourth, s.states())
		}
		_, token = s.signer()
		for key := range s.states() {
			s.do("key revoke", `{"id":"`+key+`"}`)
		}
		shift(reload)
		s.keyIs("the last", fourth, token, "revoked", false, false)
		if key, token := s.signer(); s.states()[key] != "signing" || !s.active(s.second, token) || len(s.published(s.first)) != 1 {
			t.Errorf("after all were revoked: states %v", s.states())
		}
		for _, act := range s.audit.take() {
			if text := act.Verb + " " + act.Outcome; strings.HasSuffix(act.Verb, "list") || !strings.HasSuffix(text, " ok") {
				t.Errorf("audit: %+v", act)
			} else if _, named := act.Parameters["id"]; !named && act.Verb != "key rotate" {
				t.Errorf("the audit does not name the key: %+v", act)
			}
		}
	})
}

// Operators who do the same or different things at once end up with one key that signs, in both
// servers.
func TestKeyActsAtOnce(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		s, shift := newKeySite(t, dsn, early())
		seen := map[string]bool{}
		for round, verbs := range [][]string{
			{"key rotate"}, {"key retire"}, {"key revoke"}, {"key retire", "key revoke"}, {"key rotate", "key retire", "key revoke"},
		} {
			signer, token := s.signer()
			if seen[signer] {
				t.Errorf("round %d: the key signs again", round)
			}
			seen[signer] = true
			var operators sync.WaitGroup
			for _, verb := range verbs {
				for range 4 {
					operators.Go(func() {
						parameters := `{"id":"` + signer + `"}`
						if verb == "key rotate" {
							parameters = `{"overlap":"5s"}`
						}
						_, err := s.operator.Run(t.Context(), admin.Find(verb), []byte(parameters))
						if e, ok := errors.AsType[*admin.Error](err); err != nil && (!ok || e.Code != admin.Conflict) {
							t.Errorf("round %d: %s: %v", round, verb, err)
						}
					})
				}
			}
			operators.Wait()
			shift(reload)
			s.signer()
			shift(5 * time.Second)
			s.signer()
			if revoked := slices.Contains(verbs, "key revoke"); s.active(s.first, token) == revoked || s.active(s.second, token) == revoked {
				t.Errorf("round %d: a token of the key is active: %v", round, revoked)
			}
		}
		signing := 0
		for _, state := range s.states() {
			if state == "signing" {
				signing++
			}
		}
		if signing != 1 {
			t.Errorf("%d keys sign: %v", signing, s.states())
		}
	})
}

// What cannot be done is refused, with what to do.
func TestKeyRefusals(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		s, shift := newKeySite(t, dsn, early())
		refused := func(path, parameters string, code admin.Code, want string) {
			t.Helper()
			_, err := s.try(path, parameters)
			if e, ok := errors.AsType[*admin.Error](err); !ok || e.Code != code || !strings.Contains(e.Message, want) {
				t.Errorf("%s %s: %v, want %s %q", path, parameters, err, code, want)
			}
		}
		refused("key rotate", `{}`, admin.Conflict, "creates a key when it starts")
		key, _ := s.signer()
		secret := &issuer.Key{
			ID: "secret/9/9", Slot: "secret/9/9", Algorithm: issuer.SecretAlgorithm, Private: []byte("x"),
			Retires: time.Now().Add(time.Hour), Expires: time.Now().Add(time.Hour),
		}
		if _, err := s.db.AddKey(t.Context(), secret, time.Now()); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"key retire", "key revoke"} {
			refused(verb, `{}`, admin.Invalid, `"id"`)
			refused(verb, `{"id":"none"}`, admin.NotFound, "run 'parley auth key list' to list keys")
			refused(verb, `{"id":"secret/9/9"}`, admin.NotFound, "not found")
			refused(verb, `{"id":"\u0000"}`, admin.Invalid, "cannot be stored")
			refused(verb, `{"id":"`+key+`%"}`, admin.NotFound, "not found")
		}
		refused("key rotate", `{"overlap":"soon"}`, admin.Invalid, "such as 10m")
		refused("key rotate", `{"overlap":"4s"}`, admin.Invalid, "at least 5s")
		refused("key rotate", `{"overlap":"-1h"}`, admin.Invalid, "at least 5s")
		s.do("key revoke", `{"id":"`+key+`"}`)
		refused("key retire", `{"id":"`+key+`"}`, admin.Conflict, "was revoked")
		s.do("key revoke", `{"id":"`+key+`"}`)
		for range 50 {
			shift(reload)
			_, id := s.mint(s.first)
			if _, err := s.try("key retire", `{"id":"`+id+`"}`); err != nil {
				break
			}
		}
		shift(reload)
		_, id := s.mint(s.first)
		refused("key retire", `{"id":"`+id+`"}`, admin.Conflict, "50 keys are published")
		refused("key rotate", `{}`, admin.Conflict, "wait until some have expired")
		s.do("key revoke", `{"id":"`+id+`"}`) // which is never refused
		if got := len(s.published(s.second)); got > 50 {
			t.Errorf("%d keys are published", got)
		}
	})
}

// The list has the states of the keys, and neither private parts nor secrets of the issuer.
func TestKeyList(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := openDB(t, dsn)
		now := time.Now().UTC().Truncate(time.Second)
		for i, k := range []struct {
			id, slot string
			state    issuer.KeyState
			retires  time.Duration
		}{
			{"stolen", "ES256/1000000000/1", issuer.KeyRevoked, time.Hour},
			{"old", "ES256/1000000000/1/1", issuer.KeyActive, -time.Minute},
			{"ended", "ES256/1000000000/1/2", issuer.KeyRetired, time.Hour},
			{"now", "ES256/1000000000/1/3", issuer.KeyActive, time.Minute},
			{"coming", "ES256/1000000000/1/10", issuer.KeyActive, 2 * time.Hour},
			{"hidden", "secret/1000000000/1", issuer.KeyActive, time.Hour},
		} {
			algorithm, _, _ := strings.Cut(k.slot, "/")
			_, err := db.AddKey(t.Context(), &issuer.Key{
				ID: k.id, Slot: k.slot, Algorithm: algorithm, Private: []byte("private-" + k.id), State: k.state,
				Created: now.Add(time.Duration(i) * time.Second), Retires: now.Add(k.retires), Expires: now.Add(5 * time.Hour),
			}, now)
			if err != nil {
				t.Fatal(err)
			}
		}
		result, err := admin.New(db, nil).Run(context.WithoutCancel(t.Context()), "test", admin.Find("key list"), []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		var states []string
		for _, k := range result.(*admin.KeyList).Keys {
			states = append(states, k.ID+" "+k.State)
		}
		if want := []string{"stolen revoked", "old retired", "ended retired", "now signing", "coming next"}; !slices.Equal(states, want) {
			t.Errorf("keys %q, want %q", states, want)
		}
		raw, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		if shown := string(raw) + result.Text(); strings.Contains(shown, "rivate") || strings.Contains(shown, "hidden") {
			t.Errorf("the list shows what is private: %s", shown)
		}
	})
}

// A key that is revoked or retired ends access tokens or nothing, and no person has to sign in again.
func TestEndsOfKeys(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		s := newSite(t, dsn)
		s.addUser("ada")
		p := s.signIn("app", "ada")
		for _, tt := range []struct {
			act  string
			want ends
		}{{"key retire", ends{}}, {"key revoke", ends{access: true}}} {
			codes := map[string]string{}
			for _, server := range []string{s.first, s.second} {
				codes[server] = p.authorize(s.first, "app", nil)
			}
			for key, state := range s.states() {
				if state == "signing" {
					s.do(tt.act, `{"id":"`+key+`"}`)
				}
			}
			s.passed.Add(int64(reload)) // which the guide promises
			access := p.access
			for server, code := range codes {
				p.access = access // that of before the act
				if got := s.ended(server, p, code); got != tt.want {
					t.Errorf("%s: ended %+v, want %+v", tt.act, got, tt.want)
				}
			}
		}
	})
}
