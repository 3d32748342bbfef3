package servers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/app/internal/serve/servers/everything"
	"github.com/parley-mcp/parley/app/internal/serve/servers/fetch"
	"github.com/parley-mcp/parley/app/internal/serve/servers/linediff"
	"github.com/parley-mcp/parley/app/internal/serve/servers/memory"
	"github.com/parley-mcp/parley/app/internal/serve/servers/thinking"
	"github.com/parley-mcp/parley/app/internal/serve/servers/timezone"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// A polled context counts how often it is asked whether it is cancelled, and is so from a poll on.
type polled struct {
	context.Context //nolint:containedctx // it is a context

	polls atomic.Int64
	at    int64 // 0 is never
}

func (p *polled) Err() error {
	if n := p.polls.Add(1); p.at > 0 && n >= p.at {
		return context.Canceled
	}
	return p.Context.Err()
}

// Steps poll the context at once, and again after each CostPerPoll.
func TestSteps(t *testing.T) {
	p := &polled{Context: t.Context(), at: 4}
	steps := servers.NewSteps(p)
	cost := 0
	for range 1_000_000 {
		if err := steps.Add(100); err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			break
		}
		cost += 64 + 100
	}
	if least, most := 3*servers.CostPerPoll-200, 3*servers.CostPerPoll+1000; cost < least || cost > most {
		t.Errorf("stopped after a cost of %d, want %d to %d", cost, least, most)
	}
}

// A comparison of texts polls the context while it chooses the lines to compare, which takes up to 200
// steps for a line that both texts often have.
func TestDiffPolls(t *testing.T) {
	same := slices.Repeat([][]byte{[]byte("a\n"), []byte("b\n")}, 50_000)
	a := slices.Concat([][]byte{[]byte("begin\n")}, same, [][]byte{[]byte("end\n")})
	b := slices.Concat([][]byte{[]byte("start\n")}, same, [][]byte{[]byte("stop\n")})
	p := &polled{Context: t.Context()}
	if _, err := linediff.Compare(p, a, b); err != nil {
		t.Fatal(err)
	}
	const each, passes = 4096, 4 // lines between two polls, and passes over one of the texts
	if polls, least := p.polls.Load(), int64(passes*len(a)/each); polls < least {
		t.Errorf("%d polls, want %d at least", polls, least)
	}
}

// many is the number of small entities in manyFacts, and of relations.
const many = 5_000

// manyFacts writes a file of a memory, of some megabytes.
func manyFacts(t *testing.T) string {
	t.Helper()
	var lines strings.Builder
	for i := range many {
		fmt.Fprintf(&lines, `{"type":"entity","name":"%d","entityType":"thing","observations":["has the number %d","is one of many things"]}`+"\n", i, i)
	}
	observations, _ := json.Marshal(texts("seen", 10_000))
	fmt.Fprintf(&lines, `{"type":"entity","name":"large","entityType":"thing","observations":%s}`+"\n", observations)
	for i := range many {
		fmt.Fprintf(&lines, `{"type":"relation","from":"%d","to":"%d","relationType":"comes_before"}`+"\n", i, (i+1)%many)
	}
	path := filepath.Join(t.TempDir(), "memory.jsonl")
	if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// texts returns so many different texts.
func texts(text string, many int) (list []string) {
	for i := range many {
		list = append(list, fmt.Sprint(text, i))
	}
	return list
}

// each makes a list of so many items.
func each(many int, item func(i int) map[string]any) (list []map[string]any) {
	for i := range many {
		list = append(list, item(i))
	}
	return list
}

// A cancelled call stops at the next poll, with the largest arguments that its schema allows over
// large data: of every tool whose work grows with them. The others have no loop over arguments or
// data.
func TestCancelledCallsStop(t *testing.T) {
	racetest.SkipSerial(t)
	path := manyFacts(t)
	const most = 10_000
	page := "<html><body><article>" + strings.Repeat("<p>The bridge spans the river, <b>and</b> the road.</p>\n", 10_000) + "</article></body></html>"
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(site.Close)
	newMemory := func() (*server.Server, error) { return memory.New("1.0.0", path, nil) }
	newFetch := func() (*server.Server, error) {
		return fetch.New("1.0.0", &fetch.Options{AllowPrivate: []string{"127.0.0.1"}, IgnoreRobots: true}), nil
	}
	for _, test := range []struct {
		tool  string
		open  func() (*server.Server, error)
		args  map[string]any
		least int64 // polls of a whole call
	}{
		{"create_entities", newMemory, map[string]any{"entities": each(most, func(i int) map[string]any {
			return map[string]any{"name": fmt.Sprint("new", i), "entityType": "t", "observations": []string{"o"}}
		})}, 8},
		{"create_entities", newMemory, map[string]any{"entities": each(1, func(int) map[string]any {
			return map[string]any{"name": "new", "entityType": "t", "observations": texts("o", most)}
		})}, 8},
		{"create_relations", newMemory, map[string]any{"relations": each(most, func(i int) map[string]any {
			return map[string]any{"from": fmt.Sprint(i % many), "to": "large", "relationType": "r"}
		})}, 8},
		{"add_observations", newMemory, map[string]any{"observations": each(most, func(i int) map[string]any {
			return map[string]any{"entityName": fmt.Sprint(i % many), "contents": []string{"new"}}
		})}, 8},
		{"add_observations", newMemory, map[string]any{"observations": each(1, func(int) map[string]any {
			return map[string]any{"entityName": "large", "contents": texts("new", most)}
		})}, 8},
		{"delete_entities", newMemory, map[string]any{"entityNames": texts("", most)}, 8},
		{"delete_observations", newMemory, map[string]any{"deletions": each(most, func(i int) map[string]any {
			return map[string]any{"entityName": fmt.Sprint(i), "observations": []string{"is one of many things"}}
		})}, 8},
		{"delete_observations", newMemory, map[string]any{"deletions": each(1, func(int) map[string]any {
			return map[string]any{"entityName": "large", "observations": texts("seen", most)}
		})}, 8},
		{"delete_relations", newMemory, map[string]any{"relations": each(most, func(i int) map[string]any {
			return map[string]any{"from": fmt.Sprint(i), "to": fmt.Sprint(i + 1), "relationType": "comes_before"}
		})}, 8},
		{"read_graph", newMemory, map[string]any{"offset": 9_000}, 8},
		{"search_nodes", newMemory, map[string]any{"query": strings.Repeat("a ", 500)}, 100},
		{"open_nodes", newMemory, map[string]any{"names": texts("", most)}, 8},
		{"fetch", newFetch, map[string]any{"url": site.URL, "max_length": 999_999}, 5},
		{"fetch", newFetch, map[string]any{"url": site.URL, "max_length": 999_999, "raw": true}, 3},
	} {
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("%s %.60v", test.tool, test.args)
		total := cancelledAt(t, test.open, test.tool, test.args, 0)
		if total < test.least {
			t.Errorf("%s polls %d times, want %d at least", name, total, test.least)
		}
		for _, at := range []int64{1, total / 3, total * 2 / 3} {
			if err := os.WriteFile(path, before, 0o600); err != nil {
				t.Fatal(err)
			}
			if polls := cancelledAt(t, test.open, test.tool, test.args, max(1, at)); polls > at+maxMore {
				t.Errorf("%s is cancelled at poll %d of %d, and polls %d times", name, at, total, polls)
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
				t.Errorf("%s is cancelled at poll %d, and changed the file: %d bytes, were %d, %v", name, at, len(after), len(before), err)
			}
		}
	}
}

// maxMore is how often a call looks at its context again while it returns the error.
const maxMore = 8

// cancelledAt calls a tool whose context is cancelled at a poll, 0 for never, and returns the number
// of polls.
func cancelledAt(t *testing.T, open func() (*server.Server, error), tool string, args map[string]any, at int64) int64 {
	t.Helper()
	s, err := open()
	if err != nil {
		t.Fatal(err)
	}
	var p *polled
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			p = &polled{Context: c, at: at}
			return next(c.WithContext(p))
		}
	})
	c := mcptest.Client(t, s)
	res, err := c.CallTool(t.Context(), tool, args, nil)
	failed := err != nil || res.IsError
	if failed != (at > 0) {
		t.Errorf("%s cancelled at poll %d: failed: %t, %v, %.300v", tool, at, failed, err, res)
	}
	return p.polls.Load()
}

// Every list in the arguments of a tool has a bound in its schema, and a call beyond it is refused.
func TestListsAreBounded(t *testing.T) {
	mem, err := memory.New("1.0.0", manyFacts(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	zones, err := timezone.New("1.0.0", &timezone.Options{Local: "UTC"})
	if err != nil {
		t.Fatal(err)
	}
	lists := 0
	for _, s := range []*server.Server{mem, zones, thinking.New("1.0.0", nil), fetch.New("1.0.0", nil), everything.New("1.0.0", nil)} {
		c := mcptest.Client(t, s)
		for tool, err := range c.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			var schema any
			if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
				t.Fatal(err)
			}
			lists += bounded(t, tool.Name, schema)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if lists < 10 {
		t.Errorf("there are %d lists", lists)
	}
	c := mcptest.Client(t, mem)
	beyond(t, c, "open_nodes", map[string]any{"names": texts("n", 10_001)}, "/names: must have at most 10000 items")
	beyond(t, c, "create_entities", map[string]any{"entities": each(1, func(int) map[string]any {
		return map[string]any{"name": "new", "entityType": "t", "observations": texts("o", 10_001)}
	})}, "/entities/0/observations: must have at most 10000 items")
}

// bounded wants maxItems of each array in a schema, and returns how many there are.
func bounded(t *testing.T, tool string, schema any) (lists int) {
	t.Helper()
	switch s := schema.(type) {
	case map[string]any:
		if s["type"] == "array" {
			lists++
			if s["maxItems"] == nil {
				t.Errorf("%s: a list without a bound: %v", tool, s)
			}
		}
		for _, part := range s {
			lists += bounded(t, tool, part)
		}
	case []any:
		for _, part := range s {
			lists += bounded(t, tool, part)
		}
	}
	return lists
}

// beyond wants a call to be refused.
func beyond(t *testing.T, c *client.Client, tool string, args map[string]any, want string) {
	t.Helper()
	res, err := c.CallTool(t.Context(), tool, args, nil)
	got := fmt.Sprint(err)
	if err == nil && res.IsError {
		got = fmt.Sprint(res.Content[0])
	}
	if !strings.Contains(got, want) {
		t.Errorf("%s: %.300s, want %q", tool, got, want)
	}
}
