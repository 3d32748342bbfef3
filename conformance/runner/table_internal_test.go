package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	toolsList = scenario{leg: legServer, revision: "2025-11-25", name: "tools-list"}
	caching   = scenario{leg: legServer, revision: "2026-07-28", name: "caching"}
	toolsCall = scenario{leg: legClient, revision: "2025-11-25", name: "tools_call"}
	codeGrant = scenario{leg: legIssuer, revision: "2026-07-28", name: "authorization-code-grant"}
)

func TestTable(t *testing.T) {
	committed := table{
		codeGrant: {success: 1},
		toolsCall: {success: 2},
		caching:   {success: 14, skipped: 3},
		toolsList: {success: 4},
	}
	text := committed.String()
	_, lines, _ := strings.Cut(text, "\n#leg")
	want := strings.Join([]string{
		"                  revision    scenario                  success  skipped",
		"server                2025-11-25  tools-list                4        0",
		"server                2026-07-28  caching                   14       3",
		"client                2025-11-25  tools_call                2        0",
		"authorization-server  2026-07-28  authorization-code-grant  1        0",
		"",
	}, "\n")
	if lines != want {
		t.Errorf("the table is\n%s\nwant\n%s", lines, want)
	}
	back, err := parseTable(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(back, committed) {
		t.Errorf("read back: %v, want %v", back, committed)
	}
}

func TestParseTableRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"a line too short":     "server 2025-11-25 ping 1\n",
		"a line too long":      "server 2025-11-25 ping 1 0 0\n",
		"words for numbers":    "server 2025-11-25 ping one 0\n",
		"no success":           "server 2025-11-25 ping 0 1\n",
		"another leg":          "gateway 2025-11-25 ping 1 0\n",
		"a scenario twice":     "server 2025-11-25 ping 1 0\nserver 2025-11-25 ping 2 0\n",
		"words for the second": "server 2025-11-25 ping 1 none\n",
	} {
		if got, err := parseTable(strings.NewReader(text)); err == nil {
			t.Errorf("%s: no error, but %v", name, got)
		}
	}
}

// What is bad never becomes expected, and what is gone is forgotten.
func TestUpdate(t *testing.T) {
	gone := scenario{leg: legServer, revision: "2025-11-25", name: "gone"}
	silent := scenario{leg: legServer, revision: "2025-11-25", name: "silent"}
	idle := scenario{leg: legServer, revision: "2025-11-25", name: "idle"}
	committed := table{
		gone:      {success: 1},
		silent:    {success: 2},
		toolsList: {success: 3},
		caching:   {success: 4},
	}
	committed.update([]scenario{silent, idle, toolsList, caching, toolsCall}, map[scenario]*result{
		idle:      {counts: counts{skipped: 1}},
		toolsList: {counts: counts{success: 2, warning: 1}},
		caching:   {counts: counts{success: 5, skipped: 1}},
		toolsCall: {counts: counts{success: 6, failure: 1}},
	})
	want := table{silent: {success: 2}, toolsList: {success: 3}, caching: {success: 5, skipped: 1}}
	if !maps.Equal(committed, want) {
		t.Errorf("updated to %v, want %v", committed, want)
	}
}

// The committed table can be read, is as it would be written, and has lines
// for all legs of each revision.
func TestExpected(t *testing.T) {
	path := filepath.Join("..", "expected.txt")
	expected, err := readTable(path)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != expected.String() {
		t.Errorf("expected.txt is not as -update writes it (%v):\n%s", err, expected)
	}
	newest := revisions[len(revisions)-1]
	want := []scenario{
		{leg: legClient, revision: oldestRevision, name: "auth/2025-03-26-oauth-endpoint-fallback"},
		{leg: legIssuer, revision: newest, name: "authorization-server-metadata-endpoint"},
		{leg: legIssuer, revision: newest, name: "authorization-code-grant"},
	}
	for _, revision := range revisions {
		want = append(
			want,
			scenario{leg: legServer, revision: revision, name: "tools-list"},
			scenario{leg: legClient, revision: revision, name: "tools_call"},
			scenario{leg: legClient, revision: revision, name: "auth/metadata-default"},
			scenario{leg: legClient, revision: revision, name: "auth/dpop-nonce"}, // an extension
		)
	}
	for _, s := range want {
		if expected[s].success == 0 {
			t.Errorf("nothing is expected of %s", s)
		}
	}
}
