package main

import (
	"strings"
	"testing"
)

func TestCompare(t *testing.T) {
	planned := []scenario{toolsList, caching, toolsCall}
	good := func() map[scenario]*result {
		return map[scenario]*result{
			toolsList: {counts: counts{success: 4}},
			caching:   {counts: counts{success: 14, skipped: 3}},
			toolsCall: {counts: counts{success: 2}},
		}
	}
	for name, test := range map[string]struct {
		change func(table, map[scenario]*result)
		want   string
	}{
		"as expected": {func(table, map[scenario]*result) {}, ""},
		"a tick that checks nothing": {func(_ table, got map[scenario]*result) {
			got[toolsList] = new(result)
		}, "server 2025-11-25 tools-list: 0 successes, want 4"},
		"one success fewer": {func(_ table, got map[scenario]*result) {
			got[caching].success--
		}, "server 2026-07-28 caching: 13 successes, want 14"},
		"one success more": {func(_ table, got map[scenario]*result) {
			got[toolsCall].success++
		}, "client 2025-11-25 tools_call: 3 successes, want 2"},
		"skipped in place of success": {func(_ table, got map[scenario]*result) {
			got[caching].counts = counts{success: 13, skipped: 4}
		}, "server 2026-07-28 caching: 13 successes, want 14|server 2026-07-28 caching: 4 skipped, want 3"},
		"a warning beside all successes": {func(_ table, got map[scenario]*result) {
			got[toolsList].warning = 1
		}, "server 2025-11-25 tools-list: 0 failed, 1 warned"},
		"a failure beside all successes": {func(_ table, got map[scenario]*result) {
			got[toolsCall].failure = 1
		}, "client 2025-11-25 tools_call: 1 failed, 0 warned"},
		"no report": {func(_ table, got map[scenario]*result) {
			delete(got, caching)
		}, "server 2026-07-28 caching: did not report"},
		"a new scenario": {func(t table, _ map[scenario]*result) {
			delete(t, toolsList)
		}, "server 2025-11-25 tools-list: is not in the table; it gave 4 successes, 0 skipped"},
		"a scenario that is gone": {func(t table, _ map[scenario]*result) {
			t[scenario{leg: legClient, revision: "2025-11-25", name: "gone"}] = quota{success: 1}
		}, "client 2025-11-25 gone: is expected, but the suite does not list it"},
		"one that is not planned": {func(_ table, got map[scenario]*result) {
			got[scenario{leg: legServer, revision: "2026-07-28", name: "tasks-lifecycle"}] = &result{counts: counts{failure: 1}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			committed := table{toolsList: {success: 4}, caching: {success: 14, skipped: 3}, toolsCall: {success: 2}}
			got := good()
			test.change(committed, got)
			var lines []string
			for _, p := range compare(committed, planned, got) {
				lines = append(lines, p.scenario.String()+": "+p.what)
			}
			if text := strings.Join(lines, "|"); text != test.want {
				t.Errorf("problems are %q, want %q", text, test.want)
			}
		})
	}
}

func TestReport(t *testing.T) {
	got := report([]problem{
		{scenario: toolsList, what: "1 failed, 0 warned", details: []string{"failed: ToolsList: no tools"}},
		{scenario: toolsCall, what: "did not report"},
	})
	want := `server  2025-11-25  tools-list  1 failed, 0 warned
client  2025-11-25  tools_call  did not report
server 2025-11-25 tools-list: failed: ToolsList: no tools
`
	if got != want {
		t.Errorf("written:\n%s\nwant:\n%s", got, want)
	}
}
