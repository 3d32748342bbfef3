package thinking_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/serve/servers/thinking"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// think makes a call and returns its structured content, or the refusal after "error: ".
func think(t *testing.T, c *client.Client, args string) string {
	t.Helper()
	result, err := c.CallTool(t.Context(), "sequentialthinking", mcp.RawValue(args), nil)
	if err != nil {
		return "error: " + err.Error()
	}
	if len(result.Content) != 1 {
		t.Fatalf("%+v", result)
	}
	text, ok := result.Content[0].(*mcp.TextContent)
	if !ok {
		t.Fatalf("%+v", result)
	}
	if result.IsError {
		return "error: " + text.Text
	}
	compact := strings.NewReplacer("\n", "", "  ", "", ": ", ":").Replace(text.Text)
	if got := string(result.StructuredContent); got != "" && got != compact { // older revisions have text alone
		t.Errorf("%s is not %s", text.Text, got)
	}
	return compact
}

// In every revision the tool says where the model is.
func TestThinking(t *testing.T) {
	build := func(_ testing.TB, o *server.Options) *server.Server {
		return thinking.New("1.0.0", &thinking.Options{Server: o})
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		for i, step := range []struct{ args, want string }{
			{`{"thought":"a","nextThoughtNeeded":true,"thoughtNumber":1,"totalThoughts":3}`, `{"thoughtNumber":1,"totalThoughts":3,"nextThoughtNeeded":true,"branches":[],"thoughtHistoryLength":1}`},
			{`{"thought":"b","nextThoughtNeeded":"TRUE","thoughtNumber":"4","totalThoughts":"3"}`, `{"thoughtNumber":4,"totalThoughts":4,"nextThoughtNeeded":true,"branches":[],"thoughtHistoryLength":2}`},
			{`{"thought":"c","nextThoughtNeeded":"false","thoughtNumber":5.0,"totalThoughts":5,"branchFromThought":1,"branchId":"x"}`, `{"thoughtNumber":5,"totalThoughts":5,"nextThoughtNeeded":false,"branches":["x"],"thoughtHistoryLength":3}`},
			{`{"thought":"d","nextThoughtNeeded":false,"thoughtNumber":6,"totalThoughts":6,"branchFromThought":1,"branchId":"x"}`, `{"thoughtNumber":6,"totalThoughts":6,"nextThoughtNeeded":false,"branches":["x"],"thoughtHistoryLength":4}`},
			{`{"thought":"e","nextThoughtNeeded":false,"thoughtNumber":7,"totalThoughts":7,"isRevision":true,"revisesThought":2,"branchId":"y","needsMoreThoughts":"true"}`, `{"thoughtNumber":7,"totalThoughts":7,"nextThoughtNeeded":false,"branches":["x"],"thoughtHistoryLength":5}`},
		} {
			want := step.want
			if era.Fresh { // a server for each request remembers nothing
				want = strings.Replace(want, fmt.Sprintf(`"thoughtHistoryLength":%d`, i+1), `"thoughtHistoryLength":1`, 1)
				if !strings.Contains(step.args, "branchFromThought") {
					want = strings.Replace(want, `["x"]`, `[]`, 1)
				}
			}
			if got := think(t, c, step.args); got != want {
				t.Errorf("%s:\n%s\nwant\n%s", step.args, got, want)
			}
		}
	})
}

// What is wrong is refused or bounded, with words that say so.
func TestBadInput(t *testing.T) {
	c := mcptest.Client(t, thinking.New("1.0.0", &thinking.Options{MaxThought: 100, MaxBranches: 2}))
	with := func(more string) string {
		return `{"thought":"a","nextThoughtNeeded":true,"thoughtNumber":1,"totalThoughts":1` + more + `}`
	}
	for args, want := range map[string]string{
		`{}`:                               "thought",
		with(`,"colour":"red"`):            `unknown member "colour"`,
		with(`,"revisesThought":0`):        "/revisesThought",
		with(`,"revisesThought":1.5`):      "/revisesThought",
		with(`,"revisesThought":"two"`):    "/revisesThought",
		with(`,"revisesThought":"0"`):      "revisesThought",
		with(`,"revisesThought":null`):     "/revisesThought",
		with(`,"isRevision":"yes"`):        "/isRevision",
		with(`,"isRevision":1`):            "/isRevision",
		with(`,"branchFromThought":1e300`): "/branchFromThought",
		with(`,"branchId":7`):              "/branchId",
		strings.Replace(with(``), `"a"`, `"`+strings.Repeat("a", 101)+`"`, 1): "/thought: must have at most 100 characters",
		strings.Replace(with(``), `"a"`, `"`+strings.Repeat("ä", 51)+`"`, 1):  "the thought has 102 bytes, and at most 100 are accepted",
		with(`,"branchId":"` + strings.Repeat("a", 1001) + `"`):               "/branchId: must have at most 1000 characters",
		with(`,"revisesThought":9007199254740992`):                            "/revisesThought",
		with(`,"revisesThought":"9007199254740992"`):                          "revisesThought",
	} {
		if got := think(t, c, args); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, want) {
			t.Errorf("%s: %q does not fail with %q", args, got, want)
		}
	}
	for _, branch := range []string{"a", "b"} {
		think(t, c, with(`,"branchFromThought":1,"branchId":"`+branch+`"`))
	}
	if got := think(t, c, with(`,"branchFromThought":1,"branchId":"c"`)); !strings.Contains(got, "2 branches already") {
		t.Error(got)
	}
}

// The definition bounds every argument, and does not claim that a repeated call changes nothing.
func TestDefinition(t *testing.T) {
	c := mcptest.Client(t, thinking.New("1.0.0", nil))
	for tool, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if a := tool.Annotations; a == nil || a.IdempotentHint == nil || *a.IdempotentHint {
			t.Errorf("annotations: %+v", a)
		}
		var schema struct{ Properties map[string]map[string]any }
		if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
			t.Fatal(err)
		}
		for name, p := range schema.Properties {
			if text := fmt.Sprint(p); !strings.Contains(text, "maxLength:") && !strings.Contains(text, "maximum:") && !strings.Contains(text, "pattern:") {
				t.Errorf("%s has no bound: %v", name, p)
			}
		}
		if got := schema.Properties["thought"]["maxLength"]; got != float64(thinking.DefaultMaxThought) {
			t.Errorf("maxLength of a thought: %v", got)
		}
	}
}

// Sessions have thoughts of their own, and so have callers where there are none; the oldest are
// forgotten when there are many.
func TestSessionsApart(t *testing.T) {
	h := streamable.NewHandler(thinking.New("1.0.0", &thinking.Options{MaxCallers: 2}), nil)
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		if err := h.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	connect := func(version string) *client.Client {
		c, err := client.Connect(t.Context(), streamable.URL(web.URL), &client.Options{Eras: client.NewEraMemory(), Versions: []string{version}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	a, b, stateless := connect("2025-11-25"), connect("2025-11-25"), connect("2026-07-28")
	for i, step := range []struct {
		c     *client.Client
		count int
	}{{a, 1}, {a, 2}, {b, 1}, {b, 2}, {stateless, 1}, {stateless, 2}, {b, 3}, {a, 1}} {
		want := fmt.Sprintf(`"thoughtHistoryLength":%d`, step.count)
		if got := think(t, step.c, `{"thought":"a","nextThoughtNeeded":true,"thoughtNumber":1,"totalThoughts":1}`); !strings.Contains(got, want) {
			t.Errorf("step %d: %s, want %s", i, got, want)
		}
	}
}

// People read thoughts in boxes, in which nothing reaches the terminal that it would obey.
func TestBoxes(t *testing.T) {
	var out strings.Builder
	c := mcptest.Client(t, thinking.New("1.0.0", &thinking.Options{Thoughts: &out}))
	think(t, c, `{"thought":"one\u001b[31m\ntwo","nextThoughtNeeded":true,"thoughtNumber":1,"totalThoughts":2}`)
	think(t, c, `{"thought":"x","nextThoughtNeeded":true,"thoughtNumber":2,"totalThoughts":2,"isRevision":true,"revisesThought":1}`)
	think(t, c, `{"thought":"y","nextThoughtNeeded":true,"thoughtNumber":3,"totalThoughts":3,"branchFromThought":1,"branchId":"b"}`)
	want := `
┌───────────────┐
│ 💭 Thought 1/2 │
├───────────────┤
│ one\u{1b}[31m │
│ two           │
└───────────────┘

┌─────────────────────────────────────┐
│ 🔄 Revision 2/2 (revising thought 1) │
├─────────────────────────────────────┤
│ x                                   │
└─────────────────────────────────────┘

┌──────────────────────────────────────┐
│ 🌿 Branch 3/3 (from thought 1, ID: b) │
├──────────────────────────────────────┤
│ y                                    │
└──────────────────────────────────────┘
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
