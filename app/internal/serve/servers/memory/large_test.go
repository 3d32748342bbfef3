package memory_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/serve/servers/memory"
)

// With 100,000 entities and as many relations every tool answers, and what does not fit into a result comes
// in pages.
func TestManyEntities(t *testing.T) {
	racetest.SkipSerial(t)
	const many = 100_000
	var lines strings.Builder
	for i := range many {
		fmt.Fprintf(&lines, `{"type":"entity","name":"thing %d","entityType":"thing","observations":["has number %d","is one of many"]}`+"\n", i, i)
	}
	for i := range many {
		fmt.Fprintf(&lines, `{"type":"relation","from":"thing %d","to":"thing %d","relationType":"comes_before"}`+"\n", i, (i+1)%many)
	}
	path := fileOf(t, lines.String())
	c := connect(t, path, nil)
	for _, test := range []struct{ tool, args, want string }{
		{"read_graph", `{}`, "This is a part: "},
		{"read_graph", `{"offset":199990}`, `"thing 99999"`},
		{"search_nodes", `{"query":"NUMBER 4711"}`, `"thing 4711"`},
		{"search_nodes", `{"query":"thing"}`, "This is a part: "},
		{"open_nodes", `{"names":["thing 4711"]}`, `"has number 4711"`},
		{"create_entities", `{"entities":[{"name":"new","entityType":"t","observations":[]}]}`, `"new"`},
		{"create_relations", `{"relations":[{"from":"new","to":"thing 1","relationType":"r"}]}`, `"new"`},
		{"add_observations", `{"observations":[{"entityName":"new","contents":["one"]}]}`, `"one"`},
		{"delete_observations", `{"deletions":[{"entityName":"new","observations":["one"]}]}`, "deleted"},
		{"delete_relations", `{"relations":[{"from":"new","to":"thing 1","relationType":"r"}]}`, "deleted"},
		{"delete_entities", `{"entityNames":["new"]}`, "deleted"},
	} {
		began := time.Now()
		got := call(t, c, test.tool, test.args)
		t.Logf("%s %s: %v, %d bytes", test.tool, test.args, time.Since(began), len(got)) // for the reader; nothing depends on it
		if strings.HasPrefix(got, "error") || !strings.Contains(got, test.want) {
			t.Errorf("%s %s: %.200s", test.tool, test.args, got)
		}
		if len(got) > 3*memory.DefaultMaxResult { // it is indented
			t.Errorf("%s %s: a result of %d bytes", test.tool, test.args, len(got))
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != lines.String() {
		t.Errorf("what was added and deleted changed the rest: %d bytes, were %d, %v", len(got), lines.Len(), err)
	}
}

// 100,000 relations between entities that do not exist, which other versions wrote, are served and deleted.
func TestRelationsToNothing(t *testing.T) {
	racetest.SkipSerial(t)
	const many = 100_000
	var lines strings.Builder
	for i := range many {
		fmt.Fprintf(&lines, `{"type":"relation","from":"%d","to":"nothing","relationType":"leads_to"}`+"\n", i)
	}
	path := fileOf(t, lines.String())
	c := connect(t, path, nil)
	for _, test := range []struct{ tool, args, want string }{
		{"read_graph", `{}`, " relations of 100000 in all. Call it again with offset "},
		{"read_graph", `{"offset":99999}`, `"from": "99999"`},
		{"search_nodes", `{"query":"nothing"}`, `"relations": []`},
		{"create_entities", `{"entities":[{"name":"nothing","entityType":"t","observations":[]}]}`, `"nothing"`},
		{"open_nodes", `{"names":["nothing"]}`, " relations of 100001 in all. "},
		{"create_relations", `{"relations":[{"from":"nothing","to":"7","relationType":"r"}]}`, "Entity with name 7 not found"},
		{"delete_entities", `{"entityNames":["7"]}`, "Entities deleted successfully"},
		{"delete_entities", `{"entityNames":["7"]}`, `Deleted 0 of 1 entities. Not found: "7"`},
		{"delete_entities", `{"entityNames":["nothing"]}`, "Entities deleted successfully"},
		{"read_graph", `{}`, `"relations": []`},
	} {
		got := call(t, c, test.tool, test.args)
		if !strings.Contains(got, test.want) || len(got) > 3*memory.DefaultMaxResult {
			t.Errorf("%s %s: %d bytes: %.200s", test.tool, test.args, len(got), got)
		}
	}
	if got, err := os.ReadFile(path); err != nil || len(got) != 0 {
		t.Errorf("%d bytes are left, %v", len(got), err)
	}
}
