package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakeLists is a suite that lists one scenario or two, as it is asked.
const fakeLists = `
case "$*" in
"index.js list --client --spec-version 2025-03-26")
	echo "Client scenarios (test against a client):"
	echo "  - auth/old [2025-03-26]"
	echo "  - initialize [2025-03-26,2025-11-25]" ;;
"index.js list --requirements 2025-11-25" | "index.js list --requirements 2026-07-28")
	echo "Server scenarios (test against a server):"
	echo "  - ping"
	echo "Client scenarios (test against a client):"
	echo "  - auth/new" ;;
"index.js list --authorization --spec-version 2026-07-28")
	echo "Authorization server scenarios (test against an authorization server):"
	echo "  - grant [2025-03-26,2026-07-28]" ;;
"index.js list")
	echo "Server scenarios (test against a server):"
	echo "  - ping [2025-11-25]"
	echo "  - sep-2640-serve [extension]"
	echo "Client scenarios (test against a client):"
	echo "  - sep-2640-load [extension]" ;;
*) exit 1 ;;
esac
`

// Of the oldest revision authorization alone is run.
func TestPlan(t *testing.T) {
	s := &suite{node: program(t, fakeLists), script: "index.js"}
	got, err := s.plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []scenario{
		{leg: legClient, revision: "2025-03-26", name: "auth/old"},
		{leg: legServer, revision: "2025-11-25", name: "ping"},
		{leg: legClient, revision: "2025-11-25", name: "auth/new"},
		{leg: legServer, revision: "2026-07-28", name: "ping"},
		{leg: legClient, revision: "2026-07-28", name: "auth/new"},
		{leg: legProxy, revision: "2025-11-25", name: "ping"},
		{leg: legProxy, revision: "2026-07-28", name: "ping"},
		{leg: legProxyHandshake, revision: "2025-11-25", name: "ping"},
		{leg: legProxyHandshake, revision: "2026-07-28", name: "ping"},
		{leg: legServer, revision: "2026-07-28", name: "sep-2640-serve"},
		{leg: legClient, revision: "2026-07-28", name: "sep-2640-load"},
		{leg: legClient, revision: "2025-11-25", name: "sep-2640-load"},
		{leg: legIssuer, revision: "2026-07-28", name: "grant"},
		{leg: legOldServer, revision: "2025-11-25", name: "server-sse-multiple-streams"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("planned %v\nwant %v", got, want)
	}
}

// Nothing but the public registry is named, and everything by its digest.
func TestLock(t *testing.T) {
	lock, err := os.ReadFile(filepath.Join("..", "suite", "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Count(string(lock), `"resolved": `)
	if packages == 0 || packages != strings.Count(string(lock), `"resolved": "https://registry.npmjs.org/`) {
		t.Error("package-lock.json names another place than the public registry")
	}
	if n := strings.Count(string(lock), `"integrity": "sha512-`); n != packages {
		t.Errorf("%d packages, but %d digests", packages, n)
	}
}

// A proxy of a server with a handshake is not held to what needs the keys and the
// rounds of its handlers.
func TestProxied(t *testing.T) {
	var want []scenario
	planned := []scenario{{leg: legClient, revision: "2026-07-28", name: "auth/new"}}
	for _, name := range append([]string{"ping"}, askedInOrder...) {
		planned = append(planned, scenario{leg: legServer, revision: "2026-07-28", name: name})
		want = append(want, scenario{leg: legProxy, revision: "2026-07-28", name: name})
	}
	want = append(want, scenario{leg: legProxyHandshake, revision: "2026-07-28", name: "ping"})
	if got := proxied(planned, legProxy, legProxyHandshake); !slices.Equal(got, want) {
		t.Errorf("planned %v\nwant %v", got, want)
	}
}
