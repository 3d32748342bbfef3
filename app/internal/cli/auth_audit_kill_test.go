package cli_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/app/internal/audit"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/oauth"
)

// refreshUntilKilled refreshes until there is no answer, or ctx has ended, and returns the token that the
// client has then. said is told of each answer, and is closed at the end.
func refreshUntilKilled(ctx context.Context, p *process, token string, said chan<- struct{}) string {
	defer close(said)
	for ctx.Err() == nil {
		next, trouble, answered := p.tryRefresh(token)
		if trouble != "" {
			p.t.Errorf("a refresh: %s", trouble)
		}
		if !answered || trouble != "" {
			return token
		}
		token = next
		said <- struct{}{}
	}
	return token
}

// Two servers on one database append to one audit file, and rename it every few lines, while both are
// killed again and again: the chain is whole, and each answer has its line. PARLEY_TEST_KILLS is how
// often each is killed; default 4.
func TestKilledAudit(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	for name, database := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn, file := database(t), filepath.Join(t.TempDir(), "audit")
			flags := []string{"--audit-file", file, "--audit-max-size", "4KiB", "--audit-keep", "0", "--refresh-grace", "10m"}
			first := newProcess(t, dsn, flags...)
			servers := []*process{first, newProcess(t, dsn, append(flags, "--issuer", first.url)...)}
			var group sync.WaitGroup
			var answers atomic.Int64
			tokens := make([]string, len(servers))
			for i := range servers {
				verifier, trouble := oauth.NewVerifier(), ""
				if tokens[i], trouble = first.redeem(first.code(verifier), verifier); trouble != "" {
					t.Fatal(trouble)
				}
			}
			for i, p := range servers {
				group.Go(func() {
					for range killCount(t, 4) {
						said, last := make(chan struct{}), make(chan string, 1)
						ctx, killed := context.WithCancel(t.Context())
						go func() { last <- refreshUntilKilled(ctx, p, tokens[i], said) }()
						left := 1 + rand.N(20)
						for range said {
							answers.Add(1)
							if left--; left == 0 {
								p.kill()
								killed()
							}
						}
						tokens[i] = <-last
						killed() // again
					}
				})
			}
			group.Wait()
			chain, err := audit.Verify(t.Context(), file, nil)
			if err != nil && chain.Last > 0 { // a line that was being written when the last one was killed
				if _, trouble := first.refresh("made up"); trouble != oauth.InvalidGrant {
					t.Error(trouble)
				}
				chain, err = audit.Verify(t.Context(), file, nil)
			}
			if err != nil || chain.First != 1 {
				t.Errorf("%+v, %v", chain, err)
			}
			lines := 0
			if _, err := audit.Query(t.Context(), file, &audit.Filter{Event: "token.issued"}, func([]byte, *audit.Line) error {
				lines++
				return nil
			}); err != nil {
				t.Error(err)
			}
			if lines < int(answers.Load())+len(servers) {
				t.Errorf("%d lines of %d answers", lines, answers.Load())
			}
			t.Logf("%d answers, %d lines in all", answers.Load(), chain.Lines)
		})
	}
}
