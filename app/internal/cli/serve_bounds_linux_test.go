package cli_test

import (
	"encoding/json"
	"slices"
	"testing"
)

// unboundedStrings are the strings without a maximum, by server, tool and place in the schema, and the
// reason. All of them together have at most the bytes of a message (stdio.Options.MaxMessage, 4 MiB).
var unboundedStrings = map[string]string{
	"filesystem write_file /properties/content":                       contents,
	"filesystem edit_file /properties/edits/items/properties/oldText": contents,
	"filesystem edit_file /properties/edits/items/properties/newText": contents,
	"filesystem read_multiple_files /properties/paths/items":          "a path is checked against MaxPath, and one that is too long fails alone",
	"filesystem directory_tree /properties/excludePatterns/items":     "glob.Compile checks each",
	"filesystem search_files /properties/excludePatterns/items":       "glob.Compile checks each",
	"git git_add /properties/files/items":                             "the paths of a repository have no maximum",

	"memory create_entities /properties/entities/items/properties/name":                    recorded,
	"memory create_entities /properties/entities/items/properties/entityType":              recorded,
	"memory create_entities /properties/entities/items/properties/observations/items":      recorded,
	"memory create_relations /properties/relations/items/properties/from":                  recorded,
	"memory create_relations /properties/relations/items/properties/to":                    recorded,
	"memory create_relations /properties/relations/items/properties/relationType":          recorded,
	"memory add_observations /properties/observations/items/properties/entityName":         recorded,
	"memory add_observations /properties/observations/items/properties/contents/items":     recorded,
	"memory delete_entities /properties/entityNames/items":                                 recorded,
	"memory delete_observations /properties/deletions/items/properties/entityName":         recorded,
	"memory delete_observations /properties/deletions/items/properties/observations/items": recorded,
	"memory delete_relations /properties/relations/items/properties/from":                  recorded,
	"memory delete_relations /properties/relations/items/properties/to":                    recorded,
	"memory delete_relations /properties/relations/items/properties/relationType":          recorded,
	"memory open_nodes /properties/names/items":                                            recorded,
}

const (
	contents = "a part of a file"
	recorded = "the file of the memory may have texts of any length, and each can be deleted"
)

// Every list and every string in the arguments of a built-in server's tools has a maximum, which its schema
// names, except for unboundedStrings.
//
// Proves: SEC-DOS-1.
func TestBuiltinBounds(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	found := make(map[string]bool)
	args := map[string]string{"filesystem": " " + t.TempDir(), "git": " --repository " + t.TempDir()}
	for _, name := range builtinNames {
		code, out, said := run(t, "", "tools", "--json", "--server", "parley serve "+name+args[name])
		var list struct {
			Tools []struct {
				Tool struct {
					Name        string
					InputSchema any
				}
			}
		}
		if err := json.Unmarshal([]byte(out), &list); code != 0 || err != nil || len(list.Tools) == 0 {
			t.Fatalf("%s: exit code %d, %v, %d tools\n%s", name, code, err, len(list.Tools), said)
		}
		for _, tool := range list.Tools {
			for _, place := range unbounded(tool.Tool.InputSchema, "") {
				at := name + " " + tool.Tool.Name + " " + place
				if unboundedStrings[at] == "" {
					t.Errorf("%s has no maximum", at)
				}
				found[at] = true
			}
		}
	}
	for at := range unboundedStrings {
		if !found[at] {
			t.Errorf("%s has a maximum, or does not exist: take it off the list", at)
		}
	}
}

// unbounded returns the places of the lists and strings in a schema that have no maximum.
func unbounded(schema any, at string) (places []string) {
	switch s := schema.(type) {
	case map[string]any:
		kinds, listed := s["type"].([]any)
		if !listed {
			kinds = []any{s["type"]}
		}
		for kind, bound := range map[string]string{"array": "maxItems", "string": "maxLength"} {
			most, bounded := s[bound].(float64)
			if slices.Contains(kinds, any(kind)) && s["enum"] == nil && (!bounded || most < 1) {
				places = append(places, at)
			}
		}
		for name, below := range s {
			places = append(places, unbounded(below, at+"/"+name)...)
		}
	case []any:
		for _, below := range s {
			places = append(places, unbounded(below, at)...)
		}
	}
	slices.Sort(places)
	return places
}
