package cli_test

import (
	"math/rand/v2"
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

// PostgreSQL goes away and comes back, several times, while clients refresh: requests fail as the fault
// of the server, which says that it is not ready and why, and goes on by itself. No client loses its
// sign-in: neither where a rotation was not stored, nor where the answer of the database to it was lost.
func TestDatabaseGoesAway(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	dsn, err := url.Parse(databasetest.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	r := newRelay(t, dsn.Host)
	dsn.Host = r.address
	p := newProcess(t, dsn.String(), "--refresh-grace", "10m") // the database is away for less, however slow the machine
	verifier := oauth.NewVerifier()
	tokens := make([]string, 3) // of clients
	var codes []string
	for i := range tokens {
		var trouble string
		if tokens[i], trouble = p.redeem(p.code(verifier), verifier); trouble != "" {
			t.Fatal(trouble)
		}
	}
	start := time.Now()
	if tokens[0], _ = p.refresh(tokens[0]); tokens[0] == "" {
		t.Fatal("no refresh token")
	}
	usual := time.Since(start)
	for range 3 {
		waiting := p.code(verifier)
		var group sync.WaitGroup
		for i := range tokens {
			group.Go(func() { tokens[i] = p.refreshOr(tokens[i], oauth.ServerError) })
		}
		<-time.After(rand.N(usual)) // so that it falls within a refresh
		r.goAway()
		group.Wait()
		if _, trouble := p.refresh(tokens[0]); trouble != oauth.ServerError {
			t.Errorf("a refresh: %q", trouble)
		}
		body := (&place{t: t}).eventually(p.url+"/readyz", http.StatusServiceUnavailable, `"database":"failed"`)
		if strings.Contains(body, "connect") {
			t.Errorf("not ready: %s", body)
		}
		if code, page := newVisitor(t, p.url).authorize(verifier, nil); code != "" || !strings.Contains(page, "error=server_error") {
			t.Errorf("a sign-in: %s", page)
		}
		if _, trouble := p.redeem(waiting, verifier); trouble != oauth.ServerError {
			t.Errorf("a code: %q", trouble)
		}
		if status, _ := get(t, p.url+"/livez", ""); status != http.StatusOK {
			t.Errorf("not alive: %d", status)
		}
		r.comeBack()
		(&place{t: t}).eventually(p.url+"/readyz", http.StatusOK, "")
		for i := range tokens {
			tokens[i] = p.refreshOr(tokens[i], "")
		}
		if _, trouble := p.redeem(waiting, verifier); trouble != "" {
			t.Errorf("the code that waited: %q", trouble)
		}
		codes = append(codes, waiting)
	}
	said := p.said.String()
	for _, want := range []string{`msg="not ready" check=database`, `msg="ready again" check=database`} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	for _, secret := range append(codes, verifier, tokens[0]) {
		if strings.Contains(said, secret) {
			t.Errorf("a secret is shown:\n%s", said)
		}
	}
}

// refreshOr is the next token, or the same one if the server answers with an error that is expected.
func (p *process) refreshOr(token, expected string) string {
	p.t.Helper()
	next, trouble, answered := p.tryRefresh(token)
	switch {
	case !answered || trouble != "" && trouble != expected:
		p.t.Errorf("a refresh: %q, answered: %v", trouble, answered)
	case trouble == "":
		return next
	}
	return token
}
