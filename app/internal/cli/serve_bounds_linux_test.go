package cli_test

import (
	"encoding/json"
	"slices"
	"testing"
)

// Every list in the arguments of a built-in server's tools has a maximum, which its schema names.
//
// Proves: SEC-DOS-1.
func TestBuiltinBounds(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
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
				t.Errorf("%s: the list %s of %s has no maxItems", name, place, tool.Tool.Name)
			}
		}
	}
}

// unbounded returns the places of the lists in a schema that have no maximum.
func unbounded(schema any, at string) (places []string) {
	switch s := schema.(type) {
	case map[string]any:
		kinds, _ := s["type"].([]any)
		if most, ok := s["maxItems"].(float64); (s["type"] == "array" || slices.Contains(kinds, any("array"))) && (!ok || most < 1) {
			places = append(places, at)
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
