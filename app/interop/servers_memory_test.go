package interop_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const memoryJS = "node_modules/@modelcontextprotocol/server-memory/dist/index.js"

// Clients of others use 'parley serve memory'.
func TestServersMemoryClients(t *testing.T) {
	useBuiltin(t, func(t *testing.T) useCase {
		entity := map[string]any{"name": "Ada", "entityType": "person", "observations": []string{"likes tea"}}
		return useCase{
			args: []string{"memory", "--file", filepath.Join(t.TempDir(), "memory.jsonl")},
			tools: []string{
				"add_observations", "create_entities", "create_relations", "delete_entities", "delete_observations",
				"delete_relations", "open_nodes", "read_graph", "search_nodes",
			},
			calls: []useCall{
				{tool: "create_entities", args: map[string]any{"entities": []any{entity}}, want: `"name": "Ada"`},
				{tool: "search_nodes", args: map[string]any{"query": "TEA"}, want: "likes tea"},
				{tool: "add_observations", args: map[string]any{"observations": []any{map[string]any{"entityName": "Bob", "contents": []string{"x"}}}}, want: "Entity with name Bob not found", failed: true},
			},
			read: "memory://knowledge-graph", readWant: `"likes tea"`,
		}
	})
}

// The same 500 calls of our memory and of the original, each with a file of its own: the same results,
// refusals and files. Halfway each gets the file that the other has written.
func TestServersMemoryDiffers(t *testing.T) {
	peersDir(t)
	dir := t.TempDir()
	oursFile, theirsFile := filepath.Join(dir, "ours.jsonl"), filepath.Join(dir, "theirs.jsonl")
	calls := 0
	d := &differential{
		ours:   builtinDialer(t, nil, "memory", "--file", oursFile),
		theirs: originalDialer(t, []string{"MEMORY_FILE_PATH=" + theirsFile}, memoryJS),
		seed:   6, next: memoryCall,
		allowed: []knownDifference{
			{"unknown arguments", func(in toolCall, ours, theirs *toolReply) bool {
				return in.args["fuzzy"] != nil && ours.Refused && !theirs.Refused
			}},
			// The package that is installed can be older than the mends of these reports.
			{"deletions report what does not exist (#4740)", func(in toolCall, ours, theirs *toolReply) bool {
				said, _ := ours.Structured.(map[string]any)
				return strings.HasPrefix(in.tool, "delete_") && said["deleted"] != nil && !theirs.Refused
			}},
			{"a search finds every word (#704)", func(in toolCall, ours, theirs *toolReply) bool {
				return in.tool == "search_nodes" && len(strings.Fields(fmt.Sprint(in.args["query"]))) > 1
			}},
			{"twice in one call", func(in toolCall, ours, theirs *toolReply) bool {
				return strings.Contains(fmt.Sprint(in.args), "twice") && in.tool != "delete_entities" && len(fmt.Sprint(ours.Content)) < len(fmt.Sprint(theirs.Content))
			}},
		},
	}
	d.each = func(t *testing.T, in toolCall) {
		t.Helper()
		if diff := cmp.Diff(memoryLines(t, theirsFile), memoryLines(t, oursFile)); diff != "" && !strings.Contains(fmt.Sprint(in.args), "twice") {
			t.Errorf("after %s %v the files differ: -theirs +ours\n%s", in.tool, in.args, diff)
		}
		if calls++; calls == 250 {
			swapFiles(t, oursFile, theirsFile)
		}
	}
	d.run(t)
}

// memoryCall makes calls about few names, so that they often meet.
func memoryCall(r *rand.Rand, i int) toolCall {
	name := func() string {
		return []string{"Ada", "Bob", "Acme", "naïve café", "日本", "a\nb", `quo"te\`, "", "<&>", "Zoë 🎈"}[r.IntN(10)]
	}
	texts := func() []string {
		list := []string{}
		for range r.IntN(3) {
			if text := fmt.Sprintf("fact %d of %s", r.IntN(6), name()); !strings.Contains(strings.Join(list, "|"), text) {
				list = append(list, text)
			}
		}
		return list
	}
	relation := func() map[string]any { // relations to entities that do not exist are refused (#4457)
		end := func() string { return []string{"Eve", "日本 ]", `quo"te`}[r.IntN(3)] }
		return map[string]any{"from": end(), "to": end(), "relationType": []string{"knows", "works_at"}[r.IntN(2)]}
	}
	if i == 0 {
		var ends []any
		for _, name := range []string{"Eve", "日本 ]", `quo"te`} {
			ends = append(ends, map[string]any{"name": name, "entityType": "person", "observations": texts()})
		}
		return toolCall{"create_entities", map[string]any{"entities": ends}}
	}
	switch i % 50 {
	case 40: // a name twice in one call, which the next one deletes
		e := map[string]any{"name": "twice", "entityType": "t", "observations": []string{}}
		return toolCall{"create_entities", map[string]any{"entities": []any{e, e}}}
	case 41:
		return toolCall{"delete_entities", map[string]any{"entityNames": []string{"twice"}}}
	case 42:
		return toolCall{"read_graph", map[string]any{"fuzzy": true}}
	case 43:
		return toolCall{"create_entities", []map[string]any{{}, {"entities": "Ada"}, {"entities": []any{map[string]any{"name": 5}}}, {"entities": []any{nil}}}[r.IntN(4)]}
	case 44:
		return toolCall{"search_nodes", map[string]any{"query": r.IntN(9)}}
	}
	switch r.IntN(9) {
	case 0, 1:
		var list []any
		for n, used := r.IntN(4), map[string]bool{}; len(list) < n; {
			e := name()
			if used[e] {
				continue
			}
			used[e] = true
			list = append(list, map[string]any{"name": e, "entityType": []string{"person", "Firm"}[r.IntN(2)], "observations": texts()})
		}
		return toolCall{"create_entities", map[string]any{"entities": append([]any{}, list...)}}
	case 2:
		return toolCall{"create_relations", map[string]any{"relations": []any{relation()}}}
	case 3:
		return toolCall{"add_observations", map[string]any{"observations": []any{map[string]any{"entityName": name(), "contents": texts()}}}}
	case 4:
		return toolCall{"delete_entities", map[string]any{"entityNames": []string{name()}}}
	case 5:
		return toolCall{"delete_observations", map[string]any{"deletions": []any{map[string]any{"entityName": name(), "observations": texts()}}}}
	case 6:
		return toolCall{"delete_relations", map[string]any{"relations": []any{relation(), relation()}}}
	case 7:
		return toolCall{"search_nodes", map[string]any{"query": []string{"", "FACT 1", "firm", "é", "none such", name()}[r.IntN(6)]}}
	}
	if r.IntN(2) == 0 {
		return toolCall{"read_graph", nil}
	}
	return toolCall{"open_nodes", map[string]any{"names": []string{name(), name()}}}
}

// memoryLines decodes the lines of a file, in order. There may be no file yet.
func memoryLines(t *testing.T, path string) []any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	list := []any{}
	for line := range bytes.Lines(data) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var v any
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("%s: %q: %v", path, line, err)
		}
		list = append(list, v)
	}
	return list
}

// swapFiles gives each file the content of the other.
func swapFiles(t *testing.T, a, b string) {
	t.Helper()
	first, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{a: second, b: first} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
