package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	r, err := readChecks(strings.NewReader(`[
		{"name": "A", "description": "a is", "status": "SUCCESS"},
		{"name": "B", "description": "b is", "status": "INFO"},
		{"name": "C", "description": "c is", "status": "SKIPPED", "errorMessage": "not asked"},
		{"name": "D", "description": "d is", "status": "WARNING"},
		{"name": "E", "description": "e is", "status": "FAILURE", "errorMessage": "it is not"},
		{"name": "F", "description": "f is", "status": "SUCCESS"}
	]`))
	if err != nil {
		t.Fatal(err)
	}
	if want := (counts{success: 2, failure: 1, warning: 1, skipped: 1}); r.counts != want {
		t.Errorf("counts are %+v, want %+v", r.counts, want)
	}
	if got, want := strings.Join(r.complaints, "|"), "warned: D: d is|failed: E: it is not"; got != want {
		t.Errorf("complaints are %q, want %q", got, want)
	}
}

func TestReadRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"a status that is not known": `[{"name": "A", "status": "PERHAPS"}]`,
		"no status":                  `[{"name": "A"}]`,
		"half a file":                `[{"name": "A", "status": "SUCCESS"}`,
		"nothing":                    ``,
	} {
		if _, err := readChecks(strings.NewReader(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// results makes a folder of results as the suite leaves it.
func results(t *testing.T, folders ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range folders {
		if err := os.MkdirAll(filepath.Join(dir, f), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f, "checks.json"), []byte(`[{"name": "A", "status": "SUCCESS"}]`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReadDir(t *testing.T) {
	const stamp = "-2026-11-20T12-34-56-789Z"
	for name, test := range map[string]struct{ folder, leg, want string }{
		"server":          {"server-tools-list" + stamp, legServer, "tools-list"},
		"server, doubled": {"server-server-initialize" + stamp, legServer, "server-initialize"},
		"client":          {"tools_call" + stamp, legClient, "tools_call"},
		"issuer":          {"authorization-server-authorization-code-grant" + stamp, legIssuer, "authorization-code-grant"},
		"client, nested":  {"auth/metadata-default" + stamp, legClient, "auth/metadata-default"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readResults(results(t, test.folder), test.leg)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 1 || got[test.want] == nil || got[test.want].success != 1 {
				t.Errorf("got %v, want one result for %q", got, test.want)
			}
		})
	}
}

func TestReadDirRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		leg     string
		folders []string
	}{
		"two results of one scenario": {legClient, []string{"ping-2026-11-20T12-34-56-789Z", "ping-2026-11-20T12-34-57-000Z"}},
		"a folder of the other leg":   {legServer, []string{"ping-2026-11-20T12-34-56-789Z"}},
		"a folder of another leg":     {legIssuer, []string{"server-ping-2026-11-20T12-34-56-789Z"}},
	} {
		if got, err := readResults(results(t, test.folders...), test.leg); err == nil {
			t.Errorf("%s: no error, but %v", name, got)
		}
	}
}
