package login

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

var errRefused = errors.New("the person said no")

// had is what is known of a resource, by name: its tokens are of generation g1 at issuer "as", were
// asked for with scope "a", and have an hour left.
func had(t *testing.T, names string, now time.Time) *entry {
	t.Helper()
	b := binding{ID: "res", Issuer: "as", Requested: []string{"a"}}
	tok := &tokens{
		binding: b, Generation: "g1", Access: "x", Refresh: "r",
		Issued: now.Unix(), Expires: now.Add(time.Hour).Unix(),
	}
	s := &session{binding: b, tokens: tok}
	s.accepted.Store(true)
	e := &entry{session: s}
	for name := range strings.FieldsSeq(names) {
		switch name {
		case "nothing":
			e.session = nil
		case "binding":
			s.tokens = nil
		case "tokens":
		case "due":
			tok.Expires = now.Add(10 * time.Second).Unix()
			tok.Issued = now.Add(-time.Hour).Unix()
		case "ended":
			tok.Expires = now.Unix()
			tok.Issued = now.Add(-time.Hour).Unix()
		case "unrefreshable":
			tok.Refresh = ""
		case "bound":
			s.dpop = &dpopSigner{}
		case "cooling":
			e.refreshFailed = now.Add(-refreshBackoff + 1)
		case "cooled":
			e.refreshFailed = now.Add(-refreshBackoff)
		case "flying":
			e.flight = &flight[*outcome]{}
		case "unproven":
			s.accepted.Store(false)
			s.signedIn, s.signInBackoff = now.Add(-time.Minute+1), time.Minute
		case "doubted":
			s.accepted.Store(false)
			s.signedIn, s.signInBackoff = now.Add(-time.Minute), time.Minute
		case "moved":
			e.servers = []string{"other"}
		case "named":
			e.servers = []string{"other", "as"}
		case "refused":
			e.refused = refusal{now.Add(-refusalBackoff + 1), errRefused}
		case "excused":
			e.refused = refusal{now.Add(-refusalBackoff), errRefused}
		case "later":
			e.refused = refusal{now.Add(time.Minute), errRefused}
		case "stepped":
			e.stepUps = map[string]int{"op": 3}
		case "exhausted":
			e.stepUps = map[string]int{"op": 4}
		case "stepping":
			e.stepUps = map[string]int{"op": 2}
		default:
			t.Fatalf("what is %q?", name)
		}
	}
	return e
}

// asked are the challenges, by name.
var asked = map[string]challenge{
	"none":        {},
	"401":         {status: http.StatusUnauthorized},
	"foreign":     {status: http.StatusUnauthorized, foreign: true},
	"nonce":       {status: http.StatusUnauthorized, code: oauth.UseDPoPNonce},
	"403 plain":   {status: http.StatusForbidden},
	"403 empty":   {status: http.StatusForbidden, code: oauth.InsufficientScope},
	"403 a":       {status: http.StatusForbidden, code: oauth.InsufficientScope, scopes: []string{"a"}},
	"403 b":       {status: http.StatusForbidden, code: oauth.InsufficientScope, scopes: []string{"b"}},
	"403 foreign": {status: http.StatusForbidden, code: oauth.InsufficientScope, scopes: []string{"b"}, foreign: true},
}

// Every row of: challenge, what is had, what is wanted, and what follows.
func TestNext(t *testing.T) {
	t.Parallel()
	request := need{operation: "op"}
	sentNothing, sentOne := request, request
	sentNothing.rounds, sentOne.rounds = 1, 1
	sentOne.generation = "g1"
	changed := func(n need, f func(*need)) need { f(&n); return n }
	tried := changed(sentOne, func(n *need) { n.refreshed = true })
	older := changed(sentOne, func(n *need) { n.generation = "g0" })
	last := changed(tried, func(n *need) { n.rounds = maxRounds })
	over := changed(older, func(n *need) { n.rounds = maxRounds + 1 })
	lastStep := changed(sentOne, func(n *need) { n.rounds = 3 + maxRounds })
	overStep := changed(sentOne, func(n *need) { n.rounds = 3 + maxRounds + 1 })
	fresh := changed(sentOne, func(n *need) { n.newNonce, n.rounds = true, 0 })
	token, explicit, force := need{purpose: forToken}, need{purpose: forSignIn}, need{purpose: forNewSignIn}
	wants := func(n need, scope string) need { n.scopes = []string{scope}; return n }
	again := func(n need) need { n.refreshed = true; return n }

	for _, row := range []struct {
		challenge, had string
		wanted         need
		want           action
		err            error
	}{
		// Nothing was sent: a request goes with what there is.
		{"none", "nothing", request, send, nil},
		{"none", "binding", request, send, nil},
		{"none", "tokens", request, send, nil},
		{"none", "tokens refused", request, send, nil},
		{"none", "tokens unproven", request, send, nil},
		{"none", "due", request, refresh, nil},
		{"none", "due cooling", request, send, nil},
		{"none", "due cooled", request, refresh, nil},
		{"none", "due flying", request, send, nil},
		{"none", "due unrefreshable", request, send, nil},
		{"none", "due moved", request, send, nil},
		{"none", "due", again(request), send, nil},
		{"none", "ended", request, refresh, nil},
		{"none", "ended cooling", request, refresh, nil},
		{"none", "ended flying", request, refresh, nil},
		{"none", "ended unrefreshable", request, send, nil},
		{"none", "ended", again(request), send, nil},
		{"none", "ended refused", again(request), send, nil},

		// There must be a token.
		{"none", "nothing", token, signIn, nil},
		{"none", "nothing refused", token, fail, errRefused},
		{"none", "nothing excused", token, signIn, nil},
		{"none", "nothing later", token, signIn, nil},
		{"none", "binding", token, signIn, nil},
		{"none", "tokens", token, send, nil},
		{"none", "tokens refused", token, send, nil},
		{"none", "tokens named", token, send, nil},
		{"none", "tokens moved", token, signIn, nil},
		{"none", "due", token, refresh, nil},
		{"none", "due cooling", token, send, nil},
		{"none", "due flying", token, send, nil},
		{"none", "ended", token, refresh, nil},
		{"none", "ended moved", token, signIn, nil},
		{"none", "ended", again(token), signIn, nil},
		{"none", "ended unrefreshable", token, signIn, nil},

		// Somebody signs in.
		{"none", "nothing", explicit, signIn, nil},
		{"none", "nothing refused", explicit, signIn, nil},
		{"none", "tokens", explicit, send, nil},
		{"none", "tokens", wants(explicit, "a"), send, nil},
		{"none", "tokens", wants(explicit, "b"), stepUp, nil},
		{"none", "tokens refused", wants(explicit, "b"), stepUp, nil},
		{"none", "tokens stepped", wants(explicit, "b"), stepUp, nil},
		{"none", "tokens moved", wants(explicit, "b"), signIn, nil},
		{"none", "binding", wants(explicit, "b"), signIn, nil},
		{"none", "ended", wants(explicit, "b"), refresh, nil},
		{"none", "ended", again(wants(explicit, "b")), signIn, nil},
		{"none", "tokens", force, signIn, nil},
		{"none", "due", force, signIn, nil},
		{"none", "ended refused", force, signIn, nil},
		{"none", "tokens", wants(force, "b"), stepUp, nil},

		// 401.
		{"foreign", "nothing", sentNothing, fail, errNoBetterTokens},
		{"foreign", "tokens", older, fail, errNoBetterTokens},
		{"401", "nothing", sentNothing, signIn, nil},
		{"401", "nothing refused", sentNothing, fail, errRefused},
		{"401", "nothing excused", sentNothing, signIn, nil},
		{"401", "nothing moved", sentNothing, signIn, nil},
		{"401", "binding", sentNothing, signIn, nil},
		{"401", "binding unproven", sentNothing, signIn, nil},
		{"401", "tokens", sentNothing, send, nil},
		{"401", "ended", sentNothing, refresh, nil},
		{"401", "tokens", older, send, nil},
		{"401", "tokens named", older, send, nil},
		{"401", "tokens moved", older, signIn, nil},
		{"401", "tokens unproven", older, send, nil},
		{"401", "due", older, send, nil},
		{"401", "tokens", over, fail, errNoBetterTokens},
		{"401", "tokens", sentOne, refresh, nil},
		{"401", "tokens refused", sentOne, refresh, nil},
		{"401", "tokens cooling", sentOne, refresh, nil},
		{"401", "tokens unproven", sentOne, fail, errNoBetterTokens},
		{"401", "tokens doubted", sentOne, refresh, nil},
		{"401", "tokens moved", sentOne, signIn, nil},
		{"401", "tokens unrefreshable", sentOne, signIn, nil},
		{"401", "tokens", tried, signIn, nil},
		{"401", "tokens", last, signIn, nil},
		{"401", "tokens refused", tried, fail, errRefused},
		{"401", "tokens stepped", tried, signIn, nil},

		// A nonce is used once.
		{"nonce", "tokens bound", fresh, send, nil},
		{"nonce", "due bound", fresh, send, nil},
		{"nonce", "tokens bound", changed(fresh, func(n *need) { n.newNonce = false }), fail, errNoBetterTokens},
		{"nonce", "tokens", sentOne, refresh, nil},

		// 403.
		{"403 plain", "tokens", sentOne, fail, errNoBetterTokens},
		{"403 empty", "tokens", sentOne, fail, errNoBetterTokens},
		{"403 foreign", "tokens", sentOne, fail, errNoBetterTokens},
		{"403 b", "nothing", sentNothing, fail, errNoBetterTokens},
		{"403 b", "tokens", sentOne, stepUp, nil},
		{"403 b", "tokens named", sentOne, stepUp, nil},
		{"403 b", "tokens moved", sentOne, signIn, nil},
		{"403 b", "binding", sentOne, signIn, nil},
		{"403 b", "tokens unproven", sentOne, stepUp, nil},
		{"403 b", "tokens refused", sentOne, fail, errRefused},
		{"403 b", "tokens excused", sentOne, stepUp, nil},
		{"403 b", "tokens stepping", sentOne, stepUp, nil},
		{"403 b", "tokens stepped", sentOne, stepUp, nil}, // what the resource names is not known
		{"403 b", "tokens exhausted", sentOne, fail, errNoBetterTokens},
		{"403 b", "tokens named stepped", sentOne, fail, errNoBetterTokens},
		{"403 b", "tokens moved stepped", sentOne, signIn, nil},
		{"403 b", "tokens named stepped refused", sentOne, fail, errNoBetterTokens},
		{"403 b", "tokens", lastStep, stepUp, nil},
		{"403 b", "tokens", overStep, fail, errNoBetterTokens},
		{"403 b", "tokens", older, stepUp, nil},
		{"403 a", "tokens", sentOne, stepUp, nil},
		{"403 a", "tokens", older, send, nil},
		{"403 a", "ended", older, stepUp, nil},
	} {
		now := time.Unix(2_000_000_000, 0)
		r, ch, n := had(t, row.had, now), asked[row.challenge], row.wanted
		got, err := policy{now: now, margin: 30 * time.Second, stepUps: 3}.next(r, &ch, &n)
		if got != row.want || !errors.Is(err, row.err) || (err != nil) != (row.err != nil) {
			t.Errorf("%s, with %s, wanted %+v: %d %v, want %d %v", row.challenge, row.had, row.wanted, got, err, row.want, row.err)
		}
	}
	// -1 is no step-up at all.
	ch, n := asked["403 b"], sentOne
	if got, err := (policy{now: time.Unix(0, 0), stepUps: -1}).next(had(t, "tokens", time.Unix(0, 0)), &ch, &n); got != fail || !errors.Is(err, errNoBetterTokens) {
		t.Errorf("%d %v, want none", got, err)
	}
}

// What is not under way is evicted, the entry that was used the longest ago first.
func TestTable(t *testing.T) {
	t.Parallel()
	var tab table
	id := func(i int) string { return "r" + strings.Repeat("x", i) }
	tab.with("flying", func(r *entry) { r.flight = &flight[*outcome]{cancel: func(error) {}} })
	tab.with("searching", func(r *entry) { r.discovery = &flight[*discovery]{cancel: func(error) {}} })
	for i := range 3 * maxResources {
		tab.with(id(i), func(r *entry) { r.stepUps = map[string]int{"op": i} })
		tab.with("kept", func(r *entry) { r.refused.err = errRefused })
	}
	if len(tab.byID) != maxResources || tab.recent.Len() != maxResources {
		t.Errorf("%d entries, want %d", len(tab.byID), maxResources)
	}
	for _, name := range []string{"flying", "searching", "kept", id(3*maxResources - 1), id(2*maxResources + 3)} {
		if tab.byID[name] == nil {
			t.Errorf("%.10s… was evicted", name)
		}
	}
	if tab.byID[id(2*maxResources+2)] != nil {
		t.Error("the entry that was used the longest ago is there")
	}
	// More flights than there is room for are all kept, until they have ended.
	var flying []*entry
	for i := range 2 * maxResources {
		tab.with("f"+id(i), func(r *entry) {
			r.flight = &flight[*outcome]{cancel: func(error) {}}
			flying = append(flying, r)
		})
	}
	if len(tab.byID) < 2*maxResources {
		t.Errorf("%d entries: flights were evicted", len(tab.byID))
	}
	for _, r := range flying {
		r.flight = nil
	}
	tab.with("next", func(*entry) {})
	if len(tab.byID) != maxResources {
		t.Errorf("%d entries after the flights, want %d", len(tab.byID), maxResources)
	}
}

// An operation too many does not ask; those that are counted go on.
func TestOperationsBounded(t *testing.T) {
	t.Parallel()
	c := New(nil)
	t.Cleanup(func() { _ = c.Close() })
	for i := range 2 * maxOperations {
		operation := strings.Repeat("o", i+1)
		c.resources.with("res", func(r *entry) {
			if got := r.mayStepUp(operation, 3); got != (i < maxOperations) {
				t.Fatalf("operation %d may: %v", i, got)
			}
		})
		if i < maxOperations {
			c.countStepUp("res", operation, false)
		}
	}
	c.resources.with("res", func(r *entry) {
		if !r.mayStepUp("o", 3) {
			t.Error("an operation that is counted may not")
		}
	})
	c.resetStepUps()
}

// fickle is a store that does not always take what it is given.
type fickle struct {
	*Memory
	full bool
}

func (f *fickle) Set(ctx context.Context, name string, value []byte) error {
	if f.full {
		return errors.New("disk full")
	}
	return f.Memory.Set(ctx, name, value)
}

// What the store does not take is kept, until it does, and within bounds.
func TestKeeper(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	under := &fickle{Memory: NewMemory()}
	k := fallbackStore{under, NewMemory(), NewMemory()}
	get := func(want string) {
		t.Helper()
		if got, err := k.Get(ctx, "a"); string(got) != want || err != nil {
			t.Errorf("%q %v, want %q", got, err, want)
		}
	}
	if err := k.Set(ctx, "a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	under.full = true
	if err := k.Set(ctx, "a", []byte("2")); err == nil {
		t.Error("nobody is told")
	}
	get("2")
	_ = k.Set(ctx, "b", nil)
	if names, err := k.Names(ctx); err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("names %q %v", names, err)
	}
	// What another process writes since is newer.
	if err := under.Memory.Set(ctx, "a", []byte("theirs")); err != nil {
		t.Fatal(err)
	}
	get("theirs")
	under.full = false
	if err := k.Set(ctx, "a", []byte("3")); err != nil {
		t.Fatal(err)
	}
	get("3")
	if err := errors.Join(k.Delete(ctx, "a"), k.Delete(ctx, "b")); err != nil {
		t.Fatal(err)
	}
	if names, _ := k.Names(ctx); len(names) != 0 {
		t.Errorf("%q are left", names)
	}
	under.full = true
	for i := range maxFallback + 10 {
		_ = k.Set(ctx, strings.Repeat("n", i), nil)
	}
	if names, _ := k.Names(ctx); len(names) != maxFallback || len(k.stale.values) != maxFallback {
		t.Errorf("%d values and %d stale ones are kept, want %d", len(names), len(k.stale.values), maxFallback)
	}
}
