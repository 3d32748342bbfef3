package everything_test

import (
	"flag"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/serve/servers/everything"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// The flag is read by package mcptest.
var _ = flag.Bool("update", false, "write the transcripts anew with what the server says")

// tick is how often the changing resource changes in these tests.
const tick = 5 * time.Millisecond

// newServer makes the server for a test: rates and times are those of a
// machine, not of a person.
func newServer(t testing.TB, limits server.Limits) *server.Server {
	t.Helper()
	limits.ToolRate, limits.ListRate = server.Unlimited, server.Unlimited
	limits.CompletionRate, limits.PingRate = server.Unlimited, server.Unlimited
	limits.LogRate = server.Unlimited
	return everything.New("1.0.0", &everything.Options{
		Tick: tick,
		Server: &server.Options{
			Limits:    limits,
			StateKeys: [][]byte{[]byte("a key that is for tests and for nothing else")},
			Logger:    slog.New(slog.DiscardHandler),
		},
	})
}

// Proves: FLOW-INIT, FLOW-TOOL, FLOW-RES, FLOW-SUB, FLOW-PROMPT, FLOW-SAMPLE-P,
// FLOW-ELICIT-P, FLOW-ROOTS, FLOW-LIST-CHANGED, FLOW-PROGRESS, FLOW-CANCEL,
// FLOW-LOG, FLOW-COMPLETE, FLOW-PING, FLOW-BATCH, SEC-PAGE-1, SEC-CAP-1: what a raw client of
// each revision says and hears, checked against the schema of that revision.
func TestTranscripts(t *testing.T) {
	const root = "testdata/transcripts"
	count := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".txtar" {
			return err
		}
		count++
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(path), root+"/"), ".txtar")
		t.Run(name, func(t *testing.T) {
			var limits server.Limits
			switch filepath.Base(path) {
			case "paging.txtar":
				limits.PageSize = 8
			case "batch.txtar":
				limits.MaxBatch = 4
			}
			s := newServer(t, limits)
			mcptest.NoLeaks(t)
			mcptest.Transcript(t, s, path)
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	revisions, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(revisions), len(newServer(t, server.Limits{}).Versions()); got != want {
		t.Errorf("there are transcripts of %d revisions, the server speaks %d", got, want)
	}
	if count < 40 {
		t.Errorf("only %d transcripts were found", count)
	}
}
