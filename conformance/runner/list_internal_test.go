package main

import (
	"slices"
	"strings"
	"testing"
)

const list = `Required for 2026-07-28 (5 scenarios, frozen; run at the 2026-07-28 wire):

Server scenarios (test against a server):
  - server-stateless
  - tools-list

Client scenarios (test against a client):
  - tools_call
  - auth/metadata-default

Run and reported, but never scored:
  extension (2):
    - auth/dpop [client]
    - tasks-lifecycle [server]
  added-after-release (1):
    - json-schema-2020-12-preservation [client]
  pending (1):
    - http-header-validation [server]
`

func TestParseList(t *testing.T) {
	got, err := parseList(strings.NewReader(list), "2026-07-28")
	if err != nil {
		t.Fatal(err)
	}
	want := []scenario{
		{leg: legServer, revision: "2026-07-28", name: "server-stateless"},
		{leg: legServer, revision: "2026-07-28", name: "tools-list"},
		{leg: legClient, revision: "2026-07-28", name: "tools_call"},
		{leg: legClient, revision: "2026-07-28", name: "auth/metadata-default"},
		{leg: legClient, revision: "2026-07-28", name: "auth/dpop"},
		{leg: legClient, revision: "2026-07-28", name: "json-schema-2020-12-preservation"},
		{leg: legServer, revision: "2026-07-28", name: "http-header-validation"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// Lists that are not of a set tell the revisions of each scenario.
func TestParseListOfRevision(t *testing.T) {
	got, err := parseList(strings.NewReader(`Server scenarios (test against a server):
  - server-session-lifecycle [2025-03-26,2025-06-18]

Client scenarios (test against a client):
  - auth/2025-03-26-oauth-endpoint-fallback [2025-03-26]

Authorization server scenarios (test against an authorization server):
  - authorization-code-grant [2025-03-26,2026-07-28]
`), "2025-03-26")
	if err != nil {
		t.Fatal(err)
	}
	want := []scenario{
		{leg: legServer, revision: "2025-03-26", name: "server-session-lifecycle"},
		{leg: legClient, revision: "2025-03-26", name: "auth/2025-03-26-oauth-endpoint-fallback"},
		{leg: legIssuer, revision: "2025-03-26", name: "authorization-code-grant"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestParseListRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                   "",
		"an error of the suite":     "Unknown revision\n",
		"a scenario of no heading":  "  - tools-list\n",
		"a scenario of no leg":      strings.Replace(list, " [server]\n  added", "\n  added", 1),
		"headings in another style": strings.ReplaceAll(list, "Server scenarios (", "Servers ("),
	} {
		if got, err := parseList(strings.NewReader(text), "2026-07-28"); err == nil {
			t.Errorf("%s: no error, but %v", name, got)
		}
	}
}
