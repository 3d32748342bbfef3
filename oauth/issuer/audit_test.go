package issuer_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// times is how many events of a kind the audit has, those that were counted included, and lines how
// many lines it has of them.
func (e *events) times(name, outcome string) (times, lines int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.list {
		if event.Name == name && event.Outcome == outcome {
			times += max(1, event.Count)
			lines++
		}
	}
	return times, lines
}

// Attack: refusals without end, to fill the disk with lines of the audit, or to hide others among
// them. All are counted, and each kind of event has a rate limit of its own.
func TestAttackAuditFlood(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	ctx, stop := context.WithCancel(t.Context())
	expect := func(when, outcome string, times, lines int) {
		t.Helper()
		if gotTimes, gotLines := d.events.times("token.refused", outcome); gotTimes != times || gotLines != lines {
			t.Errorf("%s: %d times %s in %d lines, want %d in %d", when, gotTimes, outcome, gotLines, times, lines)
		}
	}
	made := params("grant_type", "made up")
	for range 1000 {
		d.token(made)
	}
	expect("at once", oauth.UnsupportedGrantType, 100, 100)
	d.token(params("grant_type", oauth.GrantRefreshToken, "client_id", "nobody"))
	expect("another kind", oauth.InvalidClient, 1, 1)
	good := d.signIn("public").text("refresh_token")
	for range 200 {
		good = d.want(refreshWith("public", good)).text("refresh_token")
	}
	if times, lines := d.events.times("token.issued", "ok"); times != 201 || lines != 201 {
		t.Errorf("what is no refusal: %d times in %d lines", times, lines)
	}
	d.clock.Add(time.Minute)
	d.token(made)
	expect("a minute later", oauth.UnsupportedGrantType, 1001, 102) // the count, and the one that told it
	for range 50 {
		d.token(made)
	}
	expect("in the new room", oauth.UnsupportedGrantType, 1010, 111)
	ended := make(chan error)
	go func() { ended <- d.server.Run(ctx) }()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	expect("when the server ends", oauth.UnsupportedGrantType, 1051, 112)
}

// What needs neither a person nor a grant is bounded too where it is no refusal, and so is the log
// that stands in for an audit.
func TestAuditOfStrangers(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	for range 300 {
		if a := send(d.server, "revoke", params("client_id", "public", "token", "made up")); a.Status != http.StatusOK {
			t.Fatalf("revocation: %d", a.Status)
		}
	}
	if _, lines := d.events.times("token.revoked", "ok"); lines != 100 {
		t.Errorf("%d lines of tokens that are none", lines)
	}
	logged := newDesk(t, nil, func(o *issuer.Options) { o.Audit = nil })
	for range 150 {
		logged.token(params("grant_type", "made up"))
	}
	logged.clock.Add(time.Minute)
	logged.token(params("grant_type", "made up"))
	if log := logged.events.String(); !strings.Contains(log, "count=50") {
		t.Error("the count is not in the log")
	}
}

// Observe is told of every event at once, of those too that the audit is only told a count of.
func TestObserve(t *testing.T) {
	t.Parallel()
	var observed events
	d := newDesk(t, nil, func(o *issuer.Options) {
		o.Observe = func(_ context.Context, e issuer.Event) { observed.add(e) }
	})
	for range 150 {
		d.token(params("grant_type", "made up"))
	}
	d.signIn("public")
	d.clock.Add(time.Minute)
	d.token(params("grant_type", "made up"))
	if times, lines := observed.times("token.refused", oauth.UnsupportedGrantType); times != 151 || lines != 151 {
		t.Errorf("observed %d times in %d events", times, lines)
	}
	if n := observed.count("token.issued", "ok"); n != 1 {
		t.Errorf("observed %d tokens", n)
	}
}
