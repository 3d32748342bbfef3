package cli_test

import (
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/oauth"
)

// restoredRows are what people have, when they signed in before the backup or after it, once a server
// of the restored database answers in the place of the one before.
var (
	restoredBefore  = endsRow{what: "signed in before the backup", want: nothingEnds}
	restoredAfter   = endsRow{what: "signed in after the backup", want: personEnds}
	restoredSignOut = endsRow{what: "after --sign-out", want: personEnds}
)

// moved has a server of a restored database answer from now on.
func (s *endsSite) moved(backup string, flags ...string) {
	s.t.Helper()
	database := filepath.Join(s.t.TempDir(), "restored.db")
	s.run(append([]string{"restore", backup, "--database", database}, flags...))
	s.first = s.serve(database)
	s.to(s.first)
}

// A server of a database that was restored is at the time of the backup, for browsers, clients and
// guards: what was issued since is not good, and its streams end within the time that the guards promise.
// A user who was removed since is there again, but after --sign-out nobody is signed in.
// Proves: Backup and recovery, in docs/guide/authorization.md
func TestRestoredWhileTokensAreOut(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	s := newEndsSite(t, databasetest.SQLite(t))
	removed, early := s.newHolder("removed", "read", s.mcp), s.newHolder("early", "read", s.mcp)
	goneLater, earlyToo := s.newHolder("gonelater", "read", s.mcp), s.newHolder("earlytoo", "read", s.mcp)
	for _, h := range []*holder{early, goneLater, earlyToo} {
		h.waitingCode()
	}
	backup := filepath.Join(t.TempDir(), "issuer.backup")
	s.run([]string{"backup", backup, "--database", s.database})
	old := removed.key()
	s.operate("key", "retire", old)
	if !within(time.Now(), 2*time.Second, func() bool { removed.renew(); return removed.key() != old }) {
		t.Error("a key that was retired signs")
	}
	late := s.newHolder("late", "read", s.mcp) // with a token of a key that is not in the backup
	s.operate("user", "remove", removed.name)
	s.operate("user", "remove", goneLater.name)
	late.waitingCode()

	s.moved(backup)
	var guards sync.WaitGroup
	check := func(h *holder, row *endsRow) {
		h.acted = time.Now()
		h.asked, _ = s.count(h.access)
		h.checkIssuer(row)
		guards.Go(func() { h.checkGuard(row) })
	}
	check(early, &restoredBefore)
	check(late, &restoredAfter)
	if got := removed.browserFate(s.issuer, "read"); got != stays {
		t.Errorf("the browser of a user who was removed since the backup %s", got)
	}
	guards.Wait()

	s.moved(backup, "--sign-out")
	check(earlyToo, &restoredSignOut)
	check(goneLater, &restoredSignOut)
	if got := early.refreshFate(); got != ends {
		t.Errorf("after --sign-out a refresh token of the other database %s", got)
	}
	guards.Wait()
	early.code = early.signIn(browserOf()) // with the password
	if got := early.tokenFate(early.token(early.byCode())); got != stays {
		t.Errorf("after --sign-out a code of a new sign-in %s", got)
	}
}

// renew refreshes.
func (h *holder) renew() {
	h.site.t.Helper()
	a := h.token(url.Values{"grant_type": {oauth.GrantRefreshToken}, "refresh_token": {h.refresh}})
	if a.Refresh == "" {
		h.site.t.Fatalf("a refresh gives %+v", a)
	}
	h.access, h.refresh = a.Access, a.Refresh
}
