package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/oauth"
)

// killCount is how often a test kills: usual, or as PARLEY_TEST_KILLS says.
func killCount(t *testing.T, usual int) int {
	t.Helper()
	text := os.Getenv(killsEnv)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", killsEnv, err)
	}
	return n
}

// tryRefresh is one request of a client that gives up when its server dies: the answer is whole,
// or there is none.
func (p *process) tryRefresh(token string) (refresh, trouble string, answered bool) {
	p.t.Helper()
	form := url.Values{
		"grant_type": {oauth.GrantRefreshToken}, "refresh_token": {token}, "client_id": {killClient}, "resource": {killResource},
	}
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.url+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		p.t.Error(err)
		return "", "", false
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", "", false
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	var answer struct {
		Refresh string `json:"refresh_token"`
		Error   string `json:"error"`
	}
	if err != nil || json.NewDecoder(bytes.NewReader(raw)).Decode(&answer) != nil {
		return "", "", false
	}
	return answer.Refresh, answer.Error, true
}

// A server is killed while its client refreshes, again and again, and the client tries again with
// the token that it has: within the grace, which is longer than any start takes, it stays signed in. What it
// had at first, in the hands of a thief, still ends the family. PARLEY_TEST_KILLS is how often; default 4.
func TestKilledRefresh(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	for name, database := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProcess(t, database(t), "--refresh-grace", "10m")
			verifier := oauth.NewVerifier()
			token, trouble := p.redeem(p.code(verifier), verifier)
			if trouble != "" {
				t.Fatal(trouble)
			}
			// How long a refresh takes here, so that the kill comes within it.
			start := time.Now()
			stolen := token
			if token, trouble = p.refresh(token); trouble != "" {
				t.Fatal(trouble)
			}
			usual := time.Since(start)
			lost := 0
			for round := range killCount(t, 4) {
				type outcome struct {
					next, trouble string
					answered      bool
				}
				answers := make(chan outcome, 1)
				dies := time.NewTimer(rand.N(usual + usual/2))
				go func() {
					next, trouble, answered := p.tryRefresh(token)
					answers <- outcome{next, trouble, answered}
				}()
				<-dies.C
				p.kill()
				got := <-answers
				if !got.answered {
					lost++
					got.next, got.trouble, got.answered = p.tryRefresh(token)
				}
				if !got.answered || got.trouble != "" || got.next == "" {
					t.Fatalf("round %d: the client lost its sign-in: %+v", round, got)
				}
				token = got.next
			}
			t.Logf("%d answers were lost", lost)
			if _, trouble := p.refresh(stolen); trouble != oauth.InvalidGrant {
				t.Errorf("a stolen token: %q", trouble)
			}
			if _, trouble := p.refresh(token); trouble != oauth.InvalidGrant {
				t.Errorf("the family of a stolen token: %q", trouble)
			}
		})
	}
}
