package mcp_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/mcp"
)

// Structured content is told by a text that is the same value, or its only member. A large one beside
// many short texts, which would take minutes if it were compared with each, is not.
func TestUntold(t *testing.T) {
	t.Parallel()
	spaces := strings.Repeat(" ", 2000)
	large := `{"a":[` + strings.Repeat("1,", 1<<20) + `1]}`
	for _, test := range []struct {
		structured string
		texts      []string
		told       bool
	}{
		{`{"a":1}`, []string{"x", `{"a": 1.0}`}, true},
		{`{"a":1}`, []string{"1"}, true},
		{`{"a":1}`, []string{"2", "{}"}, false},
		{`{"result":""}`, []string{""}, true},
		{`{"result":"a\nb"}`, []string{"a\nb"}, true},
		{`{"result":"` + strings.Repeat(`\u0061`, 5000) + `"}`, []string{strings.Repeat("a", 5000)}, true},
		{`{"a":1}`, []string{`{` + spaces + `"a":1}`}, true},
		{large, []string{large[:len(large)-1] + " }"}, true},
		{large, slices.Repeat([]string{"1"}, 20_000), false},
		{large, slices.Repeat([]string{"[]"}, 20_000), false},
		{large, slices.Repeat([]string{`{"a":[1,1]}`}, 20_000), false},
	} {
		r := &mcp.CallToolResult{StructuredContent: mcp.RawValue(test.structured)}
		for _, text := range test.texts {
			r.Content = append(r.Content, &mcp.TextContent{Text: text})
		}
		if got := r.Untold(); (got == nil) != test.told {
			t.Errorf("%.40s beside %d texts such as %.40q: %.40q", test.structured, len(test.texts), test.texts[0], got)
		}
	}
}
