package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/safefile"
	"github.com/parley-mcp/parley/app/internal/serve/servers/memory"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// connect makes a server of a file and connects to it.
func connect(t *testing.T, path string, o *memory.Options) *client.Client {
	t.Helper()
	s, err := memory.New("1.0.0", path, o)
	if err != nil {
		t.Fatal(err)
	}
	return mcptest.Client(t, s)
}

// fileOf makes a file with a content, in a folder of its own.
func fileOf(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "memory.jsonl")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// call calls a tool and returns its text, with "error: " before that of a failure or refusal.
func call(t *testing.T, c *client.Client, tool, args string) string {
	t.Helper()
	result, err := c.CallTool(t.Context(), tool, mcp.RawValue(args), nil)
	if err != nil {
		return "error: " + err.Error()
	}
	var texts []string
	for _, content := range result.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	all := strings.Join(texts, "\n")
	if result.IsError {
		return "error: " + all
	}
	return all
}

// compact takes white space out of JSON.
func compact(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%q is no JSON: %v", text, err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// What each tool gives, in every revision and over every transport.
func TestTools(t *testing.T) {
	var files sync.Map // the file of each test, which may make a server for each request
	build := func(tb testing.TB, o *server.Options) *server.Server {
		path, _ := files.LoadOrStore(tb.Name(), filepath.Join(tb.TempDir(), "memory.jsonl"))
		s, err := memory.New("1.0.0", path.(string), &memory.Options{Server: o})
		if err != nil {
			tb.Fatal(err)
		}
		return s
	}
	steps := []struct{ tool, args, want string }{
		{"read_graph", `{}`, `{"entities":[],"relations":[]}`},
		{
			"create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["likes <tea> & \u2028"]},{"name":"Acme","entityType":"firm","observations":[]},{"name":"Bob","entityType":"person","observations":[]}]}`,
			`[{"entityType":"person","name":"Ada","observations":["likes <tea> & ` + "\u2028" + `"]},{"entityType":"firm","name":"Acme","observations":[]},{"entityType":"person","name":"Bob","observations":[]}]`,
		},
		{"create_entities", `{"entities":[{"name":"Ada","entityType":"cat","observations":[]}]}`, `[]`},
		{
			"create_relations", `{"relations":[{"from":"Ada","to":"Acme","relationType":"works_at"},{"from":"Bob","to":"Acme","relationType":"owns"}]}`,
			`[{"from":"Ada","relationType":"works_at","to":"Acme"},{"from":"Bob","relationType":"owns","to":"Acme"}]`,
		},
		{"create_relations", `{"relations":[{"from":"Ada","to":"Acme","relationType":"works_at"}]}`, `[]`},
		{
			"add_observations", `{"observations":[{"entityName":"Acme","contents":["makes tea","makes tea"]},{"entityName":"Ada","contents":[]}]}`,
			`[{"addedObservations":["makes tea"],"entityName":"Acme"},{"addedObservations":[],"entityName":"Ada"}]`,
		},
		{"search_nodes", `{"query":"TEA"}`, ""},
		{
			"search_nodes", `{"query":"firm"}`,
			`{"entities":[{"entityType":"firm","name":"Acme","observations":["makes tea"]}],"relations":[{"from":"Ada","relationType":"works_at","to":"Acme"},{"from":"Bob","relationType":"owns","to":"Acme"}]}`,
		},
		{
			"open_nodes", `{"names":["nobody","Ada"]}`,
			`{"entities":[{"entityType":"person","name":"Ada","observations":["likes <tea> & ` + "\u2028" + `"]}],"relations":[{"from":"Ada","relationType":"works_at","to":"Acme"}]}`,
		},
		{"delete_observations", `{"deletions":[{"entityName":"Acme","observations":["makes tea","no such"]},{"entityName":"nobody","observations":["x"]}]}`, `Deleted 1 of 3 observations. Not found: "Acme: no such", "nobody: x"`},
		{"delete_relations", `{"relations":[{"from":"Bob","to":"Acme","relationType":"owns"}]}`, "Relations deleted successfully"},
		{"delete_entities", `{"entityNames":["Ada","nobody"]}`, `Deleted 1 of 2 entities. Not found: "nobody"`},
		{"delete_entities", `{"entityNames":["Bob"]}`, "Entities deleted successfully"},
		{"read_graph", `{}`, `{"entities":[{"entityType":"firm","name":"Acme","observations":[]}],"relations":[]}`},
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		for _, step := range steps {
			got := call(t, c, step.tool, step.args)
			if strings.HasPrefix(step.want, "{") || strings.HasPrefix(step.want, "[") {
				got, step.want = compact(t, got), compact(t, step.want)
			}
			if step.want != "" && got != step.want {
				t.Errorf("%s %s:\n%s\nwant\n%s", step.tool, step.args, got, step.want)
			}
		}
	})
}

// Text is indented as that of the reference server, and structured content has the members of its
// output schemas.
func TestResultsHaveTheOriginalForm(t *testing.T) {
	c := connect(t, fileOf(t, ""), nil)
	result, err := c.CallTool(t.Context(), "create_entities", mcp.RawValue(`{"entities":[{"name":"A","entityType":"t","observations":["o"]}]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, ok := result.Content[0].(*mcp.TextContent)
	want := "[\n  {\n    \"name\": \"A\",\n    \"entityType\": \"t\",\n    \"observations\": [\n      \"o\"\n    ]\n  }\n]"
	if !ok || text.Text != want {
		t.Errorf("%+v, want %s", result.Content[0], want)
	}
	if got := string(result.StructuredContent); got != `{"entities":[{"name":"A","entityType":"t","observations":["o"]}]}` {
		t.Error(got)
	}
}

// What is wrong is refused or bounded, with words that say so, and the file stays as it was.
func TestBadInput(t *testing.T) {
	const good = `{"type":"entity","name":"A","entityType":"t","observations":["o"]}`
	for name, test := range map[string]struct {
		file       string
		o          memory.Options
		tool, args string
		want       string
	}{
		"nothing but half a line":     {file: good[:30], tool: "read_graph", args: `{}`, want: "line 1: it is not a JSON object, or was cut off"},
		"a file of another program":   {file: "[memory]\npath = \"x\"\n", tool: "read_graph", args: `{}`, want: "no line of it is a record of a memory (line 1: "},
		"JSON of another program":     {file: "[\n{\"id\":1},\n{\"id\":2}\n]\n", tool: "create_entities", args: `{"entities":[{"name":"B","entityType":"t","observations":[]}]}`, want: "no line of it is a record of a memory (line 1: "},
		"half a line, and a change":   {file: good[:30], tool: "create_entities", args: `{"entities":[{"name":"B","entityType":"t","observations":[]}]}`, want: "left as it is"},
		"an entity without a name":    {file: `{"type":"entity","entityType":"t","observations":[]}`, tool: "read_graph", args: `{}`, want: "line 1: an entity has"},
		"a name that is a number":     {file: `{"type":"entity","name":5,"entityType":"t","observations":[]}`, tool: "read_graph", args: `{}`, want: "line 1: an entity has"},
		"a relation without an end":   {file: `{"type":"relation","from":"A","relationType":"r"}`, tool: "read_graph", args: `{}`, want: "line 1: a relation has"},
		"an observation that is null": {file: `{"type":"entity","name":"A","entityType":"t","observations":[null]}`, tool: "read_graph", args: `{}`, want: "line 1: an entity has"},
		"a large file":                {file: strings.Repeat(good+"\n", 100), o: memory.Options{MaxFile: 1000}, tool: "read_graph", args: `{}`, want: "at most 1000 are read"},
		"a change that is too large":  {file: good, o: memory.Options{MaxFile: 200}, tool: "add_observations", args: `{"observations":[{"entityName":"A","contents":["` + strings.Repeat("x", 200) + `"]}]}`, want: "at most 200 are allowed; nothing was changed"},
		"an unknown entity":           {file: good, tool: "add_observations", args: `{"observations":[{"entityName":"A","contents":["new"]},{"entityName":"B","contents":["new"]}]}`, want: "Entity with name B not found"},
		"a relation from nowhere":     {file: good, tool: "create_relations", args: `{"relations":[{"from":"A","to":"A","relationType":"r"},{"from":"B","to":"A","relationType":"r"}]}`, want: "Entity with name B not found. Nothing was added"},
		"a relation to nowhere":       {file: good, tool: "create_relations", args: `{"relations":[{"from":"A","to":"B","relationType":"r"}]}`, want: "Entity with name B not found. Nothing was added"},
		"relations to nowhere":        {file: good, tool: "create_relations", args: `{"relations":[{"from":"B","to":"C","relationType":"r"},{"from":"D","to":"B","relationType":"r"}]}`, want: `Entities not found: "B", "C", "D". Nothing was added`},
		"an unknown member":           {file: good, tool: "search_nodes", args: `{"query":"A","fuzzy":true}`, want: `unknown member "fuzzy"`},
		"a missing member":            {file: good, tool: "create_entities", args: `{"entities":[{"name":"B","observations":[]}]}`, want: "entityType"},
		"a wrong type":                {file: good, tool: "open_nodes", args: `{"names":"A"}`, want: "/names"},
		"a negative offset":           {file: good, tool: "read_graph", args: `{"offset":-1}`, want: "/offset"},
	} {
		t.Run(name, func(t *testing.T) {
			path := fileOf(t, test.file)
			c := connect(t, path, &test.o)
			if got := call(t, c, test.tool, test.args); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, test.want) {
				t.Errorf("%q does not fail with %q", got, test.want)
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != test.file {
				t.Errorf("the file is %q, %v", after, err)
			}
		})
	}
}

func TestBadPaths(t *testing.T) {
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "no", "such.jsonl")} {
		if _, err := memory.New("1.0.0", path, nil); err == nil {
			t.Errorf("%s is served", path)
		}
	}
}

// Lines of other programs, and members that they have added, are kept; a byte order mark and CR LF do
// no harm.
func TestLinesOfOthersAreKept(t *testing.T) {
	path := fileOf(t, "\xef\xbb\xbf"+strings.Join([]string{
		`{"type":"note","text":"of another program"}`,
		`{"type":"entity","name":"A","entityType":"t","observations":["one"],"createdAt":"today","score":1.50}`,
		``,
		`{"type":"relation","from":"A","to":"B","relationType":"r","weight":3}`,
	}, "\r\n"))
	c := connect(t, path, nil)
	if got := call(t, c, "add_observations", `{"observations":[{"entityName":"A","contents":["two"]}]}`); strings.HasPrefix(got, "error") {
		t.Fatal(got)
	}
	want := strings.Join([]string{
		`{"type":"entity","name":"A","entityType":"t","observations":["one","two"],"createdAt":"today","score":1.50}`,
		`{"type":"relation","from":"A","to":"B","relationType":"r","weight":3}`,
		`{"type":"note","text":"of another program"}`,
	}, "\n") + "\n"
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s\nwant\n%s\n%v", got, want, err)
	}
}

// Members whose names differ from ours in case alone are another program's, as for the original.
func TestNamesOfMembersAreExact(t *testing.T) {
	const file = `{"type":"entity","name":"A","Name":"B","NAME":5,"entityType":"t","entitytype":"u","observations":["one"],"Observations":["two"],"Type":"relation","huge":1e999}
{"type":"relation","from":"A","From":"B","to":"A","TO":null,"relationType":"r","relationtype":"s"}
{"Type":"entity","Name":"C","entityType":"t","observations":[]}`
	path := fileOf(t, file)
	c := connect(t, path, nil)
	const graph = `{"entities":[{"entityType":"t","name":"A","observations":["one"]}],"relations":[{"from":"A","relationType":"r","to":"A"}]}`
	if got := compact(t, call(t, c, "read_graph", `{}`)); got != graph {
		t.Errorf("%s, want %s", got, graph)
	}
	if got := call(t, c, "add_observations", `{"observations":[{"entityName":"A","contents":["new"]}]}`); strings.HasPrefix(got, "error") {
		t.Error(got)
	}
	const first = `{"type":"entity","name":"A","entityType":"t","observations":["one","new"],"NAME":5,"Name":"B","Observations":["two"],"Type":"relation","entitytype":"u","huge":1e999}`
	_, others, _ := strings.Cut(file, "\n")
	if got, err := os.ReadFile(path); err != nil || string(got) != first+"\n"+others+"\n" {
		t.Errorf("the file is %s, %v", got, err)
	}
}

// A link to the file stays a link, and the permissions stay.
func TestLinkStays(t *testing.T) {
	path := fileOf(t, "")
	link := filepath.Join(t.TempDir(), "link.jsonl")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	c := connect(t, link, nil)
	call(t, c, "create_entities", `{"entities":[{"name":"A","entityType":"t","observations":[]}]}`)
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%v, %v", info, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestReadOnly(t *testing.T) {
	c := connect(t, fileOf(t, ""), &memory.Options{ReadOnly: true})
	var names []string
	for tool, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if diff := cmp.Diff([]string{"open_nodes", "read_graph", "search_nodes"}, names); diff != "" {
		t.Error(diff)
	}
}

// Two servers with one file see what the other does, and lose nothing when both write at once.
func TestTwoServers(t *testing.T) {
	path := fileOf(t, "")
	const each = 40
	var wg sync.WaitGroup
	clients := []*client.Client{connect(t, path, nil), connect(t, path, nil)}
	for i, c := range clients {
		wg.Go(func() {
			for n := range each {
				_, err := c.CallTool(t.Context(), "create_entities", mcp.RawValue(fmt.Sprintf(`{"entities":[{"name":"%d-%d","entityType":"t","observations":[]}]}`, i, n)), nil)
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, c := range clients {
		graph, err := client.Call[memory.Graph](t.Context(), c, "read_graph", nil)
		if err != nil || len(graph.Entities) != 2*each {
			t.Errorf("%d entities, %v", len(graph.Entities), err)
		}
	}
}

// A change that another process holds up for long fails with words that say so.
func TestLocked(t *testing.T) {
	path := fileOf(t, "")
	unlock, err := safefile.Lock(t.Context(), path+".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	c := connect(t, path, &memory.Options{LockWait: time.Millisecond})
	if got := call(t, c, "create_entities", `{"entities":[]}`); !strings.Contains(got, "another process has been using") {
		t.Error(got)
	}
}

// A graph that does not fit into a result comes in pages, in which everything is once.
func TestPages(t *testing.T) {
	path := fileOf(t, "")
	c := connect(t, path, &memory.Options{MaxResult: 2000, MaxResource: 2000})
	var entities []memory.Entity
	var relations []memory.Relation
	for i := range 50 {
		entities = append(entities, memory.Entity{Name: fmt.Sprint("e", i), EntityType: "t", Observations: []string{"some text"}})
		relations = append(relations, memory.Relation{From: fmt.Sprint("e", i), To: "e0", RelationType: "r"})
	}
	for _, step := range []struct {
		tool string
		args any
	}{{"create_entities", map[string]any{"entities": entities}}, {"create_relations", map[string]any{"relations": relations}}} {
		if res, err := c.CallTool(t.Context(), step.tool, step.args, nil); err != nil || res.IsError {
			t.Fatal(res, err)
		}
	}
	for name, limit := range map[string]int{"as many as fit": 0, "seven": 7} {
		var got memory.Graph
		pages := 0
		for args := map[string]any{}; ; args["offset"] = got.NextOffset {
			if limit > 0 {
				args["limit"] = limit
			}
			part, err := client.Call[memory.Graph](t.Context(), c, "read_graph", args)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(part.Entities) + len(part.Relations); n == 0 || limit > 0 && n > limit {
				t.Fatalf("%s: a page of %d", name, n)
			}
			got.Entities, got.Relations = append(got.Entities, part.Entities...), append(got.Relations, part.Relations...)
			pages++
			if got.NextOffset = part.NextOffset; got.NextOffset == 0 {
				break
			}
		}
		if diff := cmp.Diff(memory.Graph{Entities: entities, Relations: relations}, got); diff != "" || pages < 4 {
			t.Errorf("%s: %d pages, %s", name, pages, diff)
		}
	}
	if got := call(t, c, "search_nodes", `{"query":"some","limit":2}`); !strings.Contains(got, "This is a part: 2 entities and 0 relations of 100 in all. Call it again with offset 2 for more.") {
		t.Error(got)
	}
	if _, err := c.ReadResource(t.Context(), memory.GraphURI, nil); err == nil || !strings.Contains(err.Error(), "read_graph") {
		t.Errorf("the resource: %v", err)
	}
}

// The graph and its entities are resources, and names are completed.
func TestResources(t *testing.T) {
	c := connect(t, fileOf(t, `{"type":"entity","name":"Ada L.","entityType":"person","observations":[]}`+"\n"+`{"type":"entity","name":"Bob","entityType":"person","observations":[]}`), nil)
	for uri, want := range map[string]string{
		memory.GraphURI:            `{"entities":[{"entityType":"person","name":"Ada L.","observations":[]},{"entityType":"person","name":"Bob","observations":[]}],"relations":[]}`,
		"memory://entity/Ada%20L.": `{"entities":[{"entityType":"person","name":"Ada L.","observations":[]}],"relations":[]}`,
	} {
		res, err := c.ReadResource(t.Context(), uri, nil)
		if err != nil || len(res.Contents) != 1 || res.Contents[0].MIMEType != "application/json" || compact(t, res.Contents[0].Text) != want {
			t.Errorf("%s: %+v, %v", uri, res, err)
		}
	}
	if res, err := c.ReadResource(t.Context(), "memory://entity/nobody", nil); err == nil {
		t.Errorf("%+v", res)
	}
	got, err := c.Complete(t.Context(), &mcp.CompleteParams{
		Ref: mcp.ResourceRef("memory://entity/{name}"), Argument: mcp.CompletionArgument{Name: "name", Value: "ad"},
	})
	if err != nil || !cmp.Equal(got.Values, []string{"Ada L."}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// Subscribers of the graph hear of changes of this process and of others.
func TestSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := fileOf(t, "")
		s, err := memory.New("1.0.0", path, nil)
		if err != nil {
			t.Fatal(err)
		}
		updated := make(chan string, 16)
		c, err := client.Connect(t.Context(), mem.New(s, nil), &client.Options{
			OnResourceUpdated: func(_ context.Context, uri string) { updated <- uri },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		sub, err := c.Subscribe(t.Context(), memory.GraphURI)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		call(t, c, "create_entities", `{"entities":[{"name":"A","entityType":"t","observations":[]}]}`)
		if uri := <-updated; uri != memory.GraphURI {
			t.Error(uri)
		}
		time.Sleep(10 * time.Second) // of the bubble: the file is looked at
		call(t, c, "create_entities", `{"entities":[{"name":"A","entityType":"t","observations":[]}]}`)
		time.Sleep(10 * time.Second)
		if n := len(updated); n != 0 {
			t.Errorf("told of its own change %d times more, or of none", n)
		}
		if err := os.WriteFile(path, []byte(`{"type":"entity","name":"of another","entityType":"t","observations":[]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		<-updated
		if got := call(t, c, "read_graph", `{}`); !strings.Contains(got, "of another") {
			t.Error(got)
		}
		if err := sub.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Where there can be no lock, as in a folder that may not be written to, the memory is read all the
// same, and not changed.
func TestNoLock(t *testing.T) {
	const line = `{"type":"entity","name":"Ada","entityType":"person","observations":[]}`
	path := fileOf(t, line)
	if err := os.Mkdir(path+".lock", 0o700); err != nil {
		t.Fatal(err)
	}
	c := connect(t, path, nil)
	if got := call(t, c, "read_graph", `{}`); !strings.Contains(got, `"Ada"`) {
		t.Errorf("reading: %s", got)
	}
	if got := call(t, c, "delete_entities", `{"entityNames":["Ada"]}`); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, "nothing was changed") {
		t.Errorf("deleting: %s", got)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != line {
		t.Errorf("%q, %v", data, err)
	}
}

// A call that names an entity very often does not go through its observations each time, which would
// take hours and keep all others waiting.
func TestEntityNamedOften(t *testing.T) {
	const many = 10_000 // the most that a call can have
	var observations, adding, deleting []string
	for i := range 4 * many {
		observations = append(observations, fmt.Sprintf(`"%d"`, i))
	}
	for i := range many {
		adding = append(adding, fmt.Sprintf(`{"entityName":"Ada","contents":["%d"]}`, 4*many+i/2))
		deleting = append(deleting, fmt.Sprintf(`{"entityName":"Ada","observations":["%d"]}`, i))
	}
	path := fileOf(t, `{"type":"entity","name":"Ada","entityType":"person","observations":[`+strings.Join(observations, ",")+`]}`)
	c := connect(t, path, nil)
	if got := call(t, c, "add_observations", `{"observations":[`+strings.Join(adding, ",")+`]}`); strings.HasPrefix(got, "error") || strings.Count(got, "entityName") != many {
		t.Errorf("adding: %.200s", got)
	}
	if got := call(t, c, "delete_observations", `{"deletions":[`+strings.Join(deleting, ",")+`]}`); strings.HasPrefix(got, "error") {
		t.Errorf("deleting: %.200s", got)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var left memory.Entity
	if err := json.Unmarshal(data, &left); err != nil || len(left.Observations) != 3*many+many/2 || left.Observations[0] != fmt.Sprint(many) {
		t.Errorf("%d left, %v", len(left.Observations), err)
	}
}

// With Confirm the person is asked before something that is there goes, if the client can ask; without an
// answer nothing happens.
func TestConfirm(t *testing.T) {
	const file = `{"type":"entity","name":"Ada","entityType":"person","observations":["likes tea"]}
{"type":"relation","from":"Ada","to":"Bob","relationType":"knows"}`
	for _, agree := range []bool{false, true} {
		var asked []string
		path := fileOf(t, file)
		o := &client.Options{OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			asked = append(asked, r.Params.Message)
			return client.Accept(map[string]bool{"sure": agree})
		}}
		build := func(tb testing.TB, so *server.Options) *server.Server {
			s, err := memory.New("1.0.0", path, &memory.Options{Confirm: true, Server: so})
			if err != nil {
				tb.Fatal(err)
			}
			return s
		}
		mcptest.EachEra(t, build, o, func(t *testing.T, _ mcptest.Era, c *client.Client) {
			if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, test := range []struct{ tool, args, question string }{
				{"delete_observations", `{"deletions":[{"entityName":"Ada","observations":["likes tea","is tall"]},{"entityName":"Eve","observations":["x"]}]}`, `Forget these observations: "Ada: likes tea"?`},
				{"delete_relations", `{"relations":[{"from":"Ada","to":"Bob","relationType":"knows"},{"from":"Ada","to":"Bob","relationType":"likes"}]}`, `Forget these relations: "Ada knows Bob"?`},
				{"delete_entities", `{"entityNames":["Ada","Eve"]}`, `Forget these entities: "Ada"?`},
			} {
				asked = nil
				if got := call(t, c, test.tool, test.args); strings.HasPrefix(got, "error") == agree {
					t.Errorf("%s: %s", test.tool, got)
				}
				if diff := cmp.Diff([]string{test.question}, asked); diff != "" {
					t.Errorf("%s: %s", test.tool, diff)
				}
			}
			asked = nil
			if got := call(t, c, "delete_entities", `{"entityNames":["Eve"]}`); strings.HasPrefix(got, "error") || asked != nil {
				t.Errorf("what is not there: %s, asked %q", got, asked)
			}
			want := map[bool]string{true: "", false: file}[agree]
			if got, err := os.ReadFile(path); err != nil || string(got) != want {
				t.Errorf("%s, %v", got, err)
			}
		}, mcptest.Over("mem"), mcptest.In("2026-07-28", "2025-11-25", "2025-06-18")) // those that have forms
	}
	path := fileOf(t, file)
	if got := call(t, connect(t, path, &memory.Options{Confirm: true}), "delete_entities", `{"entityNames":["Ada"]}`); got != "Entities deleted successfully" {
		t.Errorf("a client that cannot ask: %s", got)
	}
}

// A long list is shown in part.
func TestConfirmMany(t *testing.T) {
	var lines, names []string
	for i := range 100 {
		name := fmt.Sprintf("%s%d", strings.Repeat("x", 200), i)
		lines = append(lines, fmt.Sprintf(`{"type":"entity","name":%q,"entityType":"t","observations":[]}`, name))
		names = append(names, fmt.Sprintf("%q", name))
	}
	asked := ""
	s, err := memory.New("1.0.0", fileOf(t, strings.Join(lines, "\n")), &memory.Options{Confirm: true})
	if err != nil {
		t.Fatal(err)
	}
	c := mcptest.Client(t, s, &client.Options{OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
		asked = r.Params.Message
		return client.Decline()
	}})
	got := call(t, c, "delete_entities", `{"entityNames":[`+strings.Join(names, ",")+`]}`)
	if !strings.HasPrefix(got, "error: the person did not agree") || len(asked) > 1000 || !strings.HasSuffix(asked, " and 90 more?") {
		t.Errorf("%s; asked %s", got, asked)
	}
}
