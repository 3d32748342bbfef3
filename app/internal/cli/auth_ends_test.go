package cli_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/oauth"
)

// A fate is what an act does to something that a person has.
type fate string

const (
	stays    fate = "stays"
	ends     fate = "ends"
	narrowed fate = "has a scope less"
	asked    fate = "is asked"   // the browser is signed in, and the person is asked once more
	refused  fate = "is refused" // the browser is signed in, and the client gets no code
)

// fates are those of the columns of the guide, and of a stream.
type fates struct{ browser, code, refresh, access, stream fate }

// An endsRow is an act.
type endsRow struct {
	what string
	act  func(s *endsSite, h *holder)
	want fates
	// scope is what the user's client has: "read" if it is "".
	scope string
	// doomed says that the tokens are for the MCP server that is removed.
	doomed bool
	// seen is how long the act takes to be seen by the authorization servers.
	seen time.Duration
}

// operator does an act at the first server. NAME stands for the user, which is also the client.
func operator(words string) func(s *endsSite, h *holder) {
	return func(s *endsSite, h *holder) { s.operate(h.fill(words)...) }
}

func onDatabase(words string) func(s *endsSite, h *holder) {
	return func(s *endsSite, h *holder) { s.onDatabase(h.fill(words)...) }
}

func (h *holder) fill(words string) []string {
	filled := strings.NewReplacer("NAME", h.name, "MCP", h.mcp, "FILE", h.site.otherFile).Replace(words)
	return strings.Fields(filled)
}

var (
	nothingEnds = fates{stays, stays, stays, stays, stays}
	personEnds  = fates{ends, ends, ends, ends, ends}
	grantEnds   = fates{stays, ends, ends, ends, ends}
	clientEnds  = fates{refused, ends, ends, ends, ends}
)

// endsRows are the rows of the guide.
var endsRows = []endsRow{
	{what: "nothing", act: func(*endsSite, *holder) {}, want: nothingEnds},
	{what: "user disabled", act: operator("user disable NAME"), want: personEnds},
	{what: "user disabled by a command on the database", act: onDatabase("user disable NAME"), want: personEnds},
	{what: "user removed", act: operator("user remove NAME"), want: personEnds},
	{what: "user signed out", act: operator("user signout NAME"), want: personEnds},
	{what: "user given another password", act: operator("user password NAME --password-file FILE"), want: personEnds},
	{what: "user changes the own password", act: changePassword, want: personEnds},
	{what: "session revoked", act: func(s *endsSite, h *holder) {
		s.operate("session", "revoke", "--id", h.session())
	}, want: fates{ends, stays, stays, stays, stays}},
	{what: "application revoked by the person", act: revokeApplication, want: fates{asked, ends, ends, ends, ends}},
	{what: "grant revoked", act: operator("grant revoke --user NAME"), want: grantEnds},
	{what: "grants of a client revoked on the database", act: onDatabase("grant revoke --client NAME"), want: grantEnds},
	{what: "client disabled", act: operator("client disable NAME"), want: clientEnds},
	{what: "client removed", act: onDatabase("client remove NAME"), want: clientEnds},
	{
		what: "user taken out of a group", act: operator("group remove editors NAME"), scope: "read grouped",
		want: fates{stays, narrowed, narrowed, narrowed, ends},
	},
	{what: "consent revoked", act: operator("consent revoke --user NAME"), want: fates{asked, stays, stays, stays, stays}},
	{
		what: "scope removed", act: operator("resource scope MCP dropped --remove"), scope: "read dropped", seen: time.Second,
		want: fates{asked, narrowed, narrowed, narrowed, ends},
	},
	{what: "resource removed", act: operator("resource remove MCP"), doomed: true, seen: time.Second, want: clientEnds},
	{what: "key retired", act: func(s *endsSite, h *holder) { s.operate("key", "retire", h.key()) }, want: nothingEnds},
}

// keyRow comes last: it ends the tokens of all.
var keyRow = endsRow{
	what: "key revoked", act: func(s *endsSite, h *holder) { s.onDatabase("key", "revoke", h.key()) },
	seen: 2 * time.Second, want: fates{stays, stays, stays, ends, ends},
}

// changePassword has the person change the password in another browser, which stays signed in.
func changePassword(s *endsSite, h *holder) {
	s.t.Helper()
	other := browserOf()
	h.signIn(other)
	form := h.page(other.Open(s.t.Context(), s.issuer+"/account/password"))
	done := h.page(other.Submit(s.t.Context(), form, url.Values{
		"old": {"correct-horse"}, "new": {"battery-staple"}, "again": {"battery-staple"},
	}))
	if !strings.Contains(done.Body, "Your password is changed.") {
		s.t.Errorf("the password is not changed: %d %s", done.Status, done.Body)
	}
	if p := h.page(other.Open(s.t.Context(), s.first+"/account")); !strings.Contains(p.Body, "Your account") {
		s.t.Errorf("the browser of the change is signed out: %s", p.Body)
	}
}

// revokeApplication has the person revoke the access of the client.
func revokeApplication(s *endsSite, h *holder) {
	s.t.Helper()
	page := h.page(h.Open(s.t.Context(), s.issuer+"/account"))
	if done := h.page(h.Submit(s.t.Context(), page, url.Values{"client": {h.name}})); !strings.Contains(done.Body, "has no access any more") {
		s.t.Errorf("the application is not revoked: %d %s", done.Status, done.Body)
	}
}

// browserFate is that of the browser at a server.
func (h *holder) browserFate(server, scope string) fate {
	h.site.t.Helper()
	account := h.page(h.Open(h.site.t.Context(), server+"/account"))
	page := h.ask(server, scope)
	switch {
	case codeOf(page) != "":
		return stays
	case !strings.Contains(account.Body, "Your account"):
		return ends
	case page.HasForm():
		return asked
	}
	return refused
}

// tokenFate is that of what a token request gave.
func (h *holder) tokenFate(a tokenAnswer) fate {
	switch {
	case a.Error == oauth.InvalidGrant, a.Error == oauth.InvalidClient, a.Error == oauth.InvalidTarget:
		return ends
	case a.Error != "":
		return fate(a.Error)
	case a.Scope != h.scope:
		return narrowed
	}
	return stays
}

func (h *holder) refreshFate() fate {
	h.site.t.Helper()
	a := h.token(url.Values{"grant_type": {oauth.GrantRefreshToken}, "refresh_token": {h.refresh}})
	if a.Refresh != "" {
		h.refresh = a.Refresh
	}
	return h.tokenFate(a)
}

// checkIssuer checks, at the server where the act was not done, what the act has done. The code is
// tried last, when the server has seen the act, since it is good once.
func (h *holder) checkIssuer(row *endsRow) {
	t := h.site.t
	t.Helper()
	left := h.scope
	if row.want.code == narrowed {
		left = "read"
	}
	for _, server := range []string{h.site.issuer, h.site.first} {
		var got fate
		if !within(h.acted, row.seen, func() bool { got = h.browserFate(server, left); return got == row.want.browser }) {
			t.Errorf("%s: the browser %s, want that it %s", row.what, got, row.want.browser)
		}
	}
	var got fate
	if !within(h.acted, row.seen, func() bool { got = h.refreshFate(); return got == row.want.refresh }) {
		t.Errorf("%s: the refresh token %s, want that it %s", row.what, got, row.want.refresh)
	}
	if got := h.tokenFate(h.token(h.byCode())); got != row.want.code {
		t.Errorf("%s: the code %s, want that it %s", row.what, got, row.want.code)
	}
}

// checkGuard checks at the guard what the act has done. A stream that ends does so with the answer to the
// guard's first question about its token after the act, or the second where servers may have answered the
// first one before they had seen the act. How often the guard asks is for its own tests, which have a clock.
func (h *holder) checkGuard(row *endsRow) {
	t, bound := h.site.t, row.seen+endsFresh
	questions := 1
	if row.seen > 0 {
		questions = 2
	}
	if open := h.openAfter(questions); open != (row.want.stream == stays) {
		t.Errorf("%s: the stream is open after %d questions: %v", row.what, questions, open)
	}
	status, want := 0, http.StatusOK
	if row.want.access == ends {
		want = http.StatusUnauthorized
	}
	if !within(h.acted, bound, func() bool { status = present(t, h.mcp, h.access).StatusCode; return status == want }) {
		t.Errorf("%s: a request gets %d after %v, want %d", row.what, status, bound, want)
	}
}

// openAfter reports whether the stream is open once the guard has read the answers to n questions about its
// token that came after the act.
func (h *holder) openAfter(n int) bool {
	for {
		asked, more := h.site.count(h.access)
		if asked > h.asked+n {
			return h.streamOpen()
		}
		select {
		case <-h.stream:
			return false
		case <-more:
		}
	}
}

func (h *holder) streamOpen() bool {
	select {
	case <-h.stream:
		return false
	default:
		return true
	}
}

// do does the act of a row, and checks at once what the authorization servers make of it.
func (h *holder) do(row *endsRow) {
	h.site.t.Helper()
	h.waitingCode()
	row.act(h.site, h)
	h.acted = time.Now()
	h.asked, _ = h.site.count(h.access)
	h.checkIssuer(row)
}

// What each act ends, in other processes than the one that does it: browsers, codes and refresh
// tokens, access tokens and open streams at a guard, within the time that is promised, and nothing else.
// Proves: What ends, and when, in docs/guide/authorization.md
func TestEndsInProcesses(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	for name, database := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEndsSite(t, database(t))
			rows := append(endsRows[:len(endsRows):len(endsRows)], keyRow)
			holders := make([]*holder, len(rows))
			for i, row := range rows {
				scope, mcp := "read", s.mcp
				if row.scope != "" {
					scope = row.scope
				}
				if row.doomed {
					mcp = s.doomed
				}
				holders[i] = s.newHolder("user"+string(rune('a'+i)), scope, mcp)
			}
			var guards sync.WaitGroup
			for i, h := range holders[:len(endsRows)] {
				h.do(&rows[i])
				guards.Go(func() { h.checkGuard(&rows[i]) })
			}
			guards.Wait()
			for i, h := range holders[:len(endsRows)] { // nothing else ended since, and nothing came back
				if got := h.refreshFate(); got != rows[i].want.refresh {
					t.Errorf("%s: later the refresh token %s, want that it %s", rows[i].what, got, rows[i].want.refresh)
				}
				if open := h.streamOpen(); open != (rows[i].want.stream == stays) {
					t.Errorf("%s: later the stream is open: %v", rows[i].what, open)
				}
			}
			last := holders[len(endsRows)]
			last.do(&keyRow)
			last.checkGuard(&keyRow)
			if got := last.refreshFate(); got != stays {
				t.Errorf("later the refresh token %s", got)
			}
		})
	}
}
