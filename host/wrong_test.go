package host_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// The line about a server states no number that is not known, and is short whatever names it quotes.
func TestWrong(t *testing.T) {
	t.Parallel()
	items := func(n int, effect client.Effect, name string) (list []client.Problem) {
		for i := range n {
			list = append(list, client.Problem{Method: mcp.MethodToolsList, Subject: strings.Repeat(name, i+1), Place: fmt.Sprintf("/tools/%d", i), Effect: effect, Why: "why"})
		}
		return list
	}
	const omitted = `("a", "aa", "aaa", "aaaa", "aaaaa" and 95 more)`
	for name, test := range map[string]struct {
		problems []client.Problem
		want     string
	}{
		"all are known": {
			items(100, client.Omitted, "a"),
			"100 of 110 tools are left out " + omitted,
		},
		"others are not reported": {
			append(items(100, client.Omitted, "a"), client.Problem{Method: mcp.MethodToolsList, Effect: client.Incomplete, Why: "3900 more parts of the same answer are wrong"}),
			"at least 100 tools are left out " + omitted + "; its list of tools may be incomplete (3900 more parts of the same answer are wrong)",
		},
		"one of a list that may be incomplete": {
			append(items(1, client.ArgumentsUnchecked, "a"), client.Problem{Method: mcp.MethodToolsList, Effect: client.Incomplete, Why: "others"}),
			`the arguments of at least 1 tool are not checked ("a": why); its list of tools may be incomplete (others)`,
		},
		"no list": {
			[]client.Problem{{Method: mcp.MethodToolsCall, Subject: "a", Effect: client.Incomplete, Why: "3 more parts of the same answer are wrong"}},
			`tools/call "a": 3 more parts of the same answer are wrong`,
		},
	} {
		s := host.ServerStatus{Tools: 10, Problems: test.problems}
		if got := s.Wrong(); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, test.want)
		}
	}
	long := host.ServerStatus{Problems: append(items(5, client.Omitted, strings.Repeat("\x01", 300)), items(5, client.ResultsUnchecked, strings.Repeat("b", 300))...)}
	long.Problems[1].Place = strings.Repeat("/c", 150)
	const want = "5 tools are left out (/tools/0, number 2 of them, /tools/2, /tools/3, /tools/4); " +
		"the results of 5 tools are not checked (/tools/0, /tools/1, /tools/2, /tools/3, /tools/4)"
	if got := long.Wrong(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
