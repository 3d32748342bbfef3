package inspect

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/mcp"
)

func TestArguments(t *testing.T) {
	const schema = `{"properties":{"n":{"type":"number"},"b":{"type":"boolean"},"s":{"type":"string"}}}`
	for pair, want := range map[string]string{
		"s=hello": `"hello"`, "s=5": `5`, `s="5"`: `"5"`, "n=5": `5`, `n="5"`: `5`, "n=012": `12`, "n=x": `"x"`, "n=1e999": `1e999`,
		"b=true": `true`, "b=True": `true`, "b=yes": `"yes"`, `s={"a": 1}`: `{"a":1}`, "s=": `""`, "other=[1,2]": `[1,2]`, "s=a=b": `"a=b"`,
	} {
		p, ok := ParsePair(pair)
		if !ok {
			t.Fatal(pair)
		}
		got, err := (&Args{Pairs: []Pair{p}}).arguments(t.Context(), mcp.RawValue(schema))
		if diff := cmp.Diff(`{"`+p.Name+`":`+want+`}`, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", pair, err, diff)
		}
	}
	if _, ok := ParsePair("=x"); ok {
		t.Error("a pair without a name")
	}
	if diff := cmp.Diff(map[string]string{"a": "x y", "b": "5", "c": "null"}, texts([]Pair{{"a", `"x y"`}, {"b", "5"}, {"c", "null"}})); diff != "" {
		t.Error(diff)
	}
}
