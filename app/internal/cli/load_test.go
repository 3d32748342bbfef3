package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/load"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A counted is a server that counts the calls of its tool.
type counted struct {
	url   string
	calls atomic.Int64
}

type failIn struct {
	Fail bool `json:"fail,omitzero"`
}

func newCounted(t *testing.T) *counted {
	t.Helper()
	c := &counted{}
	s := server.New("counted", "1", &server.Options{Logger: slog.New(slog.DiscardHandler)})
	s.Add(server.Tool("count", "Counts, and fails if it is told to.", func(_ context.Context, in failIn) (string, error) {
		c.calls.Add(1)
		if in.Fail {
			return "", errors.New("as was asked for")
		}
		return "counted", nil
	}))
	h := streamable.NewHandler(s, nil)
	site := httptest.NewServer(h)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = h.Shutdown(ctx) // the error is that of ctx
		site.Close()
	})
	c.url = site.URL + streamable.Path
	return c
}

// What is told is what the server counted, in each era, over any number of clients, with a rate
// and without.
func TestLoad(t *testing.T) {
	for _, flags := range [][]string{
		{"--requests", "200"},
		{"--requests", "200", "--clients", "7", "--protocol", "2025-11-25"},
		{"--requests", "100", "--clients", "3", "--rate", "2000", "--protocol", "2026-07-28"},
		{"--duration", "300ms", "--clients", "2"},
		{"--duration", "300ms", "--clients", "2", "--rate", "100"},
	} {
		c := newCounted(t)
		var r load.Report
		code, out, err := run(t, "", slices.Concat([]string{"load", "--json", "--call", "count"}, flags, []string{"fail=false", c.url})...)
		if jsonErr := json.Unmarshal([]byte(out), &r); jsonErr != nil || code != 0 {
			t.Fatalf("%q: exit code %d, %v\n%s%s", flags, code, jsonErr, out, err)
		}
		if n := c.calls.Load(); r.Requests != n || r.OK != n || n == 0 || len(r.Errors) > 0 || r.Latency == nil || r.Latency.P50 > r.Latency.Max {
			t.Errorf("%q: %s; the server counted %d", flags, out, n)
		}
		if flags[0] == "--requests" && flags[1] != "0" && r.OK != c.calls.Load() {
			t.Errorf("%q: %d calls", flags, r.OK)
		}
	}
}

// Errors are told by kind, and give an exit code where nothing succeeded.
func TestLoadErrors(t *testing.T) {
	c := newCounted(t)
	code, out, err := run(t, "", "load", "--requests", "20", "--call", "count", "fail=true", c.url)
	if code != 5 || !strings.Contains(out, "errors   20  the tool failed") || strings.Contains(out, "latency") {
		t.Errorf("exit code %d\n%s%s", code, out, err)
	}
	code, out, err = run(t, "", "load", "--requests", "5", "--method", "no/such", c.url)
	if code != 5 || !strings.Contains(out, "errors   5  error -32601") {
		t.Errorf("exit code %d\n%s%s", code, out, err)
	}
}

// A load by 'parley inspect' is what the server counted, in the members of the MCP Inspector, and
// succeeds also where all calls fail.
func TestInspectLoad(t *testing.T) {
	for _, test := range []struct {
		flags []string
		want  string // the beginning of the summary
	}{
		{[]string{"--json", "--load-requests", "50"}, `{"tool":"count","concurrency":10,"requestLimit":50,"requests":50,"ok":50,"toolErrors":0,"errors":0,"errorRate":0,"elapsedMs":`},
		{
			[]string{"--format", "json", "--protocol-era", "legacy", "--load-requests", "20", "--load-concurrency", "3", "--load-rate", "5000", "--load-duration", "1m"},
			`{"result":{"tool":"count","concurrency":3,"durationMs":60000,"requestLimit":20,"rate":5000,"requests":20,"ok":20,"toolErrors":0,"errors":0,"errorRate":0,"elapsedMs":`,
		},
		{
			[]string{"--json", "--load-requests", "7", "--tool-arg", "fail=true"},
			`{"tool":"count","concurrency":10,"requestLimit":7,"requests":7,"ok":0,"toolErrors":7,"errors":0,"errorRate":1,"elapsedMs":`,
		},
	} {
		c := newCounted(t)
		code, out, err := run(t, "", slices.Concat([]string{"inspect", "--method", "tools/call", "--tool-name", "count", "--load"}, test.flags, []string{c.url})...)
		if code != 0 || !strings.HasPrefix(out, test.want) || !strings.Contains(out, `"latencyMs":{"min":`) || !strings.Contains(out, `"errorMessages":[]`) {
			t.Errorf("%q: exit code %d\n%s%s", test.flags, code, out, err)
		}
		var told struct {
			Requests int64
			Result   struct{ Requests int64 }
		}
		if err := json.Unmarshal([]byte(out), &told); err != nil || max(told.Requests, told.Result.Requests) != c.calls.Load() {
			t.Errorf("%q: the server counted %d, %v\n%s", test.flags, c.calls.Load(), err, out)
		}
	}
}
