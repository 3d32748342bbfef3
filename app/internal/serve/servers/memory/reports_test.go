package memory_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/serve/servers/memory"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// Lines that cannot be read stay in the file, are reported, and do not affect the others. Reports:
// modelcontextprotocol/servers#2044, #1818 and #3173.
func TestBadLinesAreKept(t *testing.T) {
	const (
		ada   = `{"type":"entity","name":"Ada","entityType":"person","observations":["likes tea"]}`
		bob   = `{"type":"entity","name":"Bob","entityType":"person","observations":[]}`
		knows = `{"type":"relation","from":"Ada","to":"Bob","relationType":"knows"}`
		added = `{"type":"entity","name":"new","entityType":"t","observations":[]}`
	)
	for name, test := range map[string]struct {
		file string
		bad  string // the lines that cannot be read, after a change; "" if there are none
		said string
	}{
		"half a line at the end":           {ada + "\n" + bob + "\n" + knows + "\n" + knows[:20], knows[:20] + "\n", "1; the first is line 4: it is not a JSON object, or was cut off."},
		"half a line in the middle":        {ada + "\n" + bob[:20] + "\n" + bob + "\n" + knows, bob[:20] + "\n", "1; the first is line 2: it is not a JSON object"},
		"an entity without a type":         {`{"type":"entity","name":"C","observations":[]}` + "\n" + ada + "\n" + bob + "\n" + knows, `{"type":"entity","name":"C","observations":[]}` + "\n", "line 1: an entity has the texts"},
		"an observation that is null":      {`{"type":"entity","name":"C","entityType":"t","observations":[null]}` + "\n" + ada + "\n" + bob + "\n" + knows, `{"type":"entity","name":"C","entityType":"t","observations":[null]}` + "\n", "line 1: an entity has the texts"},
		"a relation without a type":        {ada + "\n" + bob + "\n" + knows + "\n" + `{"type":"relation","from":"A","to":"B"}`, `{"type":"relation","from":"A","to":"B"}` + "\n", "line 4: a relation has the texts"},
		"a conflict of versions":           {"<<<<<<< HEAD\n" + ada + "\n=======\n" + bob + "\n" + knows + "\n>>>>>>> b\n", "<<<<<<< HEAD\n=======\n>>>>>>> b\n", "3; the first is line 1: "},
		"a line that begins with JSON":     {ada + "\n\"name\": \"Cy\",\n12:30 meeting\n" + bob + "\n" + knows, "\"name\": \"Cy\",\n12:30 meeting\n", "2; the first is line 2: "},
		"two records on a line":            {ada + "\n" + bob + knows, "", ""},
		"three records, with spaces":       {ada + " " + bob + "\t" + knows + "\r\n", "", ""},
		"a record with half another":       {ada + "\n" + bob + "\n" + knows + added[:30], added[:30] + "\n", "1; the first is line 3: "},
		"a record that lacks, and another": {ada + "\n" + bob + `{"type":"entity"}` + knows, `{"type":"entity"}` + "\n", "1; the first is line 2: an entity has"},
	} {
		t.Run(name, func(t *testing.T) {
			path := fileOf(t, test.file)
			var logged strings.Builder
			c := connect(t, path, &memory.Options{Server: &server.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))}})
			const graph = `{"entities":[{"entityType":"person","name":"Ada","observations":["likes tea"]},{"entityType":"person","name":"Bob","observations":[]}],"relations":[{"from":"Ada","relationType":"knows","to":"Bob"}]`
			got, note, _ := strings.Cut(call(t, c, "read_graph", `{}`), "\nLines of the memory's file that cannot be read, and were left out: ")
			if !strings.HasPrefix(compact(t, got), graph) || !strings.Contains(note, test.said) || strings.Contains(got, "unreadableLines") != (test.bad != "") {
				t.Errorf("%s\n%s", got, note)
			}
			if strings.Contains(logged.String(), "lines that cannot be read") != (test.bad != "") {
				t.Errorf("the log is %q", logged.String())
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != test.file {
				t.Errorf("reading changed the file to %q, %v", after, err)
			}
			if got := call(t, c, "create_entities", `{"entities":[{"name":"new","entityType":"t","observations":[]}]}`); strings.HasPrefix(got, "error") {
				t.Error(got)
			}
			want := ada + "\n" + bob + "\n" + added + "\n" + knows + "\n" + test.bad
			if after, err := os.ReadFile(path); err != nil || string(after) != want {
				t.Errorf("the file is %q, want %q, %v", after, want, err)
			}
		})
	}
}

// With SetAside lines that cannot be read are moved, also if the file that they are moved to was cut off.
func TestSetAside(t *testing.T) {
	const good, bad = `{"type":"entity","name":"A","entityType":"t","observations":[]}`, `{"type":"entity","na`
	path := fileOf(t, "")
	c := connect(t, path, &memory.Options{SetAside: true})
	for _, before := range []string{"", "cut off"} {
		if err := os.WriteFile(path+".rejected", []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(good+"\n"+bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := call(t, c, "open_nodes", `{"names":["A"]}`); !strings.Contains(got, `"A"`) || strings.Contains(got, "cannot be read") {
			t.Error(got)
		}
		if before != "" {
			before += "\n"
		}
		for file, want := range map[string]string{path: good + "\n", path + ".rejected": before + bad + "\n"} {
			if got, err := os.ReadFile(file); err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", file, got, err)
			}
		}
	}
}

// A deletion reports what was deleted and what does not exist. Report: modelcontextprotocol/servers#4740.
func TestDeleted(t *testing.T) {
	const file = `{"type":"entity","name":"Ada","entityType":"person","observations":["likes tea"]}
{"type":"relation","from":"Ada","to":"nobody","relationType":"knows"}
`
	for _, test := range []struct {
		tool, args string
		want       memory.Deleted
	}{
		{"delete_entities", `{"entityNames":["Ada","Alise"]}`, memory.Deleted{Success: true, Message: `Deleted 1 of 2 entities. Not found: "Alise"`, Deleted: []string{"Ada"}, NotFound: []string{"Alise"}}},
		{"delete_entities", `{"entityNames":["Alise"]}`, memory.Deleted{Message: `Deleted 0 of 1 entities. Not found: "Alise"`, Deleted: []string{}, NotFound: []string{"Alise"}}},
		{"delete_entities", `{"entityNames":["nobody"]}`, memory.Deleted{Success: true, Message: "Entities deleted successfully", Deleted: []string{"nobody"}, NotFound: []string{}}}, // its relation
		{"delete_entities", `{"entityNames":[]}`, memory.Deleted{Success: true, Message: "Entities deleted successfully", Deleted: []string{}, NotFound: []string{}}},
		{"delete_observations", `{"deletions":[{"entityName":"Ada","observations":["likes tea"]}]}`, memory.Deleted{Success: true, Message: "Observations deleted successfully", Deleted: []string{"Ada: likes tea"}, NotFound: []string{}}},
		{"delete_observations", `{"deletions":[{"entityName":"Ada","observations":["likes Tea"]},{"entityName":"Bob","observations":["x"]}]}`, memory.Deleted{Message: `Deleted 0 of 2 observations. Not found: "Ada: likes Tea", "Bob: x"`, Deleted: []string{}, NotFound: []string{"Ada: likes Tea", "Bob: x"}}},
		{"delete_relations", `{"relations":[{"from":"Ada","to":"nobody","relationType":"knows"},{"from":"nobody","to":"Ada","relationType":"knows"}]}`, memory.Deleted{Success: true, Message: `Deleted 1 of 2 relations. Not found: "nobody knows Ada"`, Deleted: []string{"Ada knows nobody"}, NotFound: []string{"nobody knows Ada"}}},
		{"delete_relations", `{"relations":[{"from":"nobody","to":"Ada","relationType":"knows"}]}`, memory.Deleted{Message: `Deleted 0 of 1 relations. Not found: "nobody knows Ada"`, Deleted: []string{}, NotFound: []string{"nobody knows Ada"}}},
	} {
		path := fileOf(t, file)
		c := connect(t, path, nil)
		got, err := client.Call[memory.Deleted](t.Context(), c, test.tool, mcp.RawValue(test.args))
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s %s: %v, %s", test.tool, test.args, err, diff)
		}
		if after, err := os.ReadFile(path); err != nil || (string(after) == file) != (len(test.want.Deleted) == 0) {
			t.Errorf("%s %s: the file is %q, %v", test.tool, test.args, after, err)
		}
	}
}

// A search finds the entities that have every word. Report: modelcontextprotocol/servers#704.
func TestSearchWords(t *testing.T) {
	c := connect(t, fileOf(t, `{"type":"entity","name":"Ada Lovelace","entityType":"Person","observations":["likes tea","wrote a program"]}
{"type":"entity","name":"Tea","entityType":"drink","observations":["is hot","ÄÖ ß"]}
`), nil)
	for query, want := range map[string][]string{
		"tea":                     {"Ada Lovelace", "Tea"},
		"program lovelace PERSON": {"Ada Lovelace"},
		"likes tea":               {"Ada Lovelace"},
		"tea\n\tdrink  ":          {"Tea"},
		"tea coffee":              {},
		"teawrote":                {},
		"äö":                      {"Tea"},
		"":                        {"Ada Lovelace", "Tea"},
		" ":                       {"Ada Lovelace", "Tea"},
	} {
		got, err := client.Call[memory.Graph](t.Context(), c, "search_nodes", map[string]any{"query": query})
		names := []string{}
		for _, e := range got.Entities {
			names = append(names, e.Name)
		}
		if diff := cmp.Diff(want, names); err != nil || diff != "" {
			t.Errorf("%q: %v, %s", query, err, diff)
		}
	}
}
