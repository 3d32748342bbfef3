package issuer_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

// Who can read the store, and not the keys in it, cannot find a user code by its hash (RFC 8628,
// section 5.1): what is stored under is no hash that can be computed from the code alone. A code
// from before the change of the secret that it is hashed with is good to its end.
func TestUserCodeIsKeyed(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, func(o *issuer.Options) { devices(o); o.KeyLifetime = time.Hour })
	s.clock.Add(59*time.Minute + 30*time.Second)
	code := s.device().text("user_code")
	for _, text := range []string{code, strings.ReplaceAll(code, "-", "")} {
		if _, err := s.store.Record(t.Context(), "user-code", issuer.Hash(text), s.clock.Now()); !errors.Is(err, issuer.ErrNotFound) {
			t.Errorf("the code is found by the hash of %s: error %v", text, err)
		}
		if free, err := s.store.UseID(t.Context(), "user-code", issuer.Hash(text), s.clock.Now().Add(time.Minute), s.clock.Now()); err != nil || !free {
			t.Errorf("the hash of %s is in use: %v, error %v", text, free, err)
		}
	}
	s.clock.Add(9 * time.Minute)
	if got := s.person().enter(code, "ada"); !strings.Contains(got.body, "Telly") {
		t.Errorf("9 minutes later: %d %s", got.status, got.body)
	}
	s.clock.Add(2 * time.Minute)
	if got := s.person().enter(code, "ada"); !strings.Contains(got.body, "No device waits") {
		t.Errorf("after its end: %d %s", got.status, got.body)
	}
}
