package interop_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/chaos"
	"github.com/parley-mcp/parley/app/interop/ours"
	"github.com/parley-mcp/parley/transport/streamable"
)

// seedsEnv is with how many seeds the clients of others are tried; default 5.
const seedsEnv = "PARLEY_TEST_SEEDS"

func seeds(t *testing.T) int {
	t.Helper()
	text := os.Getenv(seedsEnv)
	if text == "" {
		return 5
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is no number of seeds", seedsEnv, text)
	}
	return n
}

// A trial is one client at one proxy, as chaos.mjs takes it.
type trial struct {
	Name    string   `json:"name"`
	URL     string   `json:"url,omitempty"`
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
}

// An outcome is how something ended, as chaos.mjs tells.
type outcome struct {
	Key   string  `json:"key"`
	Text  string  `json:"text"`
	Error *string `json:"error"`
	Hang  bool    `json:"hang"`
}

type trialReport struct {
	Name    string    `json:"name"`
	Connect *outcome  `json:"connect"`
	Calls   []outcome `json:"calls"`
	Close   outcome   `json:"close"`
}

// A callCounter counts the calls of a tool by their keys.
type callCounter struct {
	mu    sync.Mutex
	calls map[string]int
}

func (c *callCounter) add(key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = make(map[string]int)
	}
	c.calls[key]++
	return nil
}

// addFile adds the keys in a file of a process that has ended.
func (c *callCounter) addFile(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for key := range strings.FieldsSeq(string(text)) {
		_ = c.add(key) // never fails
	}
}

func (c *callCounter) count(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[key]
}

// clientsOfTypeScript are the clients of both SDKs, as chaos.mjs takes them.
var clientsOfTypeScript = map[string]map[string]any{
	"v1":        {"sdk": 1},
	"v2 legacy": {"sdk": 2, "mode": "legacy"},
	"v2 modern": {"sdk": 2, "mode": map[string]string{"pin": modern}},
}

// The clients of the TypeScript SDKs end each call in its time under each fault of HTTP, and run none
// twice. A result is the right one.
func TestChaosTypeScriptHTTP(t *testing.T) {
	for name, options := range clientsOfTypeScript {
		t.Run(name, func(t *testing.T) {
			peersDir(t)
			counter := new(callCounter)
			trials := httpTrials(t, counter)
			checkTrials(t, counter, trials, runTrials(t, trials, 16, options))
		})
	}
}

// So do they under each fault of a pipe, with "parley chaos" in the place of the server.
func TestChaosTypeScriptStdio(t *testing.T) {
	for name, options := range clientsOfTypeScript {
		t.Run(name, func(t *testing.T) {
			peersDir(t)
			parley, err := buildParley()
			if err != nil {
				t.Fatal(err)
			}
			counted := filepath.Join(t.TempDir(), "counted")
			trials := stdioTrials(t, parley, counted)
			reports := runTrials(t, trials, 4, options)
			counter := new(callCounter)
			counter.addFile(t, counted)
			checkTrials(t, counter, trials, reports)
		})
	}
}

// stdioTrials start a server of their own behind a proxy for each fault and seed.
func stdioTrials(t *testing.T, parley, counted string) (trials []trial) {
	t.Helper()
	for _, f := range chaos.Faults() {
		if !f.Pipe {
			continue
		}
		for seed := range seeds(t) {
			args := []string{"chaos", "--seed", strconv.Itoa(seed), "--fault", string(f.Fault) + "=0.1", "--delay", "50ms"}
			if f.Fault == chaos.Duplicate {
				args = append(args, "--to", "client")
			}
			trials = append(trials, trial{
				Name: fmt.Sprintf("%s-%d", f.Fault, seed), Command: parley, Args: append(args, "--", program, "count", counted),
			})
		}
	}
	return trials
}

// httpTrials starts a server, and a proxy in front of it for each fault and seed.
func httpTrials(t *testing.T, counter *callCounter) (trials []trial) {
	t.Helper()
	endpoint := streamable.NewHandler(ours.NewCounter(counter.add), &streamable.Options{Logger: slog.New(slog.DiscardHandler)})
	site := httptest.NewServer(endpoint)
	t.Cleanup(site.Close)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = endpoint.Shutdown(ctx) // the error is that of ctx
	})
	target, err := url.Parse(site.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range chaos.Faults() {
		for seed := range seeds(t) {
			o := chaos.Options{Seed: uint64(seed), Rates: chaos.Rates{f.Fault: 0.15}, MaxDelay: 50 * time.Millisecond}
			if f.Fault == chaos.Duplicate { // no client can help what reaches a server twice
				o.To = chaos.ToClient
			}
			proxy := httptest.NewUnstartedServer(chaos.New(o).Handler(target, nil))
			proxy.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			proxy.Start()
			t.Cleanup(proxy.Close)
			trials = append(trials, trial{Name: fmt.Sprintf("%s-%d", f.Fault, seed), URL: proxy.URL + streamable.Path})
		}
	}
	return trials
}

// runTrials runs chaos.mjs to its end.
func runTrials(t *testing.T, trials []trial, atOnce int, client map[string]any) (reports []trialReport) {
	t.Helper()
	options := map[string]any{"trials": trials, "calls": 5, "timeout": 1000, "limit": 20000, "atOnce": atOnce}
	maps.Copy(options, client)
	input, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	dir := peersDir(t)
	cmd := exec.CommandContext(t.Context(), nodePath(t, dir), "chaos.mjs")
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(input)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("chaos.mjs: %v\n%s", err, stderr.Bytes())
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		var r trialReport
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("chaos.mjs printed %q: %v", lines.Text(), err)
		}
		reports = append(reports, r)
	}
	if stderr.Len() > 0 {
		t.Logf("on standard error: %s", stderr.Bytes())
	}
	return reports
}

// checkTrials checks what came of all trials.
func checkTrials(t *testing.T, counter *callCounter, trials []trial, reports []trialReport) {
	t.Helper()
	if len(reports) != len(trials) {
		t.Errorf("%d reports of %d trials", len(reports), len(trials))
	}
	succeeded, failed, unconnected := 0, 0, 0
	for _, r := range reports {
		n := checkTrial(t, counter, r)
		succeeded += n
		failed += len(r.Calls) - n
		if r.Connect != nil {
			unconnected++
		}
	}
	t.Logf("%d trials, of which %d did not connect; %d calls gave their result, %d an error", len(reports), unconnected, succeeded, failed)
	if succeeded < len(trials) {
		t.Errorf("only %d calls of %d trials succeeded", succeeded, len(trials))
	}
}

// checkTrial holds a client to what was promised, and returns how many calls succeeded.
func checkTrial(t *testing.T, counter *callCounter, r trialReport) (succeeded int) {
	t.Helper()
	if r.Connect != nil && r.Connect.Hang || r.Close.Hang {
		t.Errorf("%s: connecting or closing had no end: %+v, %+v", r.Name, r.Connect, r.Close)
	}
	for _, c := range r.Calls {
		n := counter.count(c.Key)
		switch {
		case c.Hang:
			t.Errorf("%s: the call had no end", c.Key)
		case n > 1:
			t.Errorf("%s: the call ran %d times", c.Key, n)
		case c.Error == nil && (n != 1 || c.Text != "counted "+c.Key):
			t.Errorf("%s: the call ran %d times, and gave %q", c.Key, n, c.Text)
		case c.Error == nil:
			succeeded++
		}
	}
	return succeeded
}
