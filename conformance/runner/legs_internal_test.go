package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/parley-mcp/parley/mcptest"
)

// program writes a program for the shell.
func program(t *testing.T, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there is no shell")
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// A server that does not say where it listens, or does not end well, fails.
func TestStartServer(t *testing.T) {
	for name, test := range map[string]struct {
		text       string
		start, end bool
	}{
		"ends when told to":        {"trap 'exit 0' TERM; echo http://127.0.0.1:1/mcp; while :; do sleep 0.01; done", true, true},
		"ends with an error":       {"trap 'exit 3' TERM; echo http://127.0.0.1:1/mcp; while :; do sleep 0.01; done", true, false},
		"ends before it listens":   {"exit 0", false, false},
		"fails before it listens":  {"echo oh >&2; exit 1", false, false},
		"has ended with an error":  {"echo http://127.0.0.1:1/mcp; exit 1", true, false},
		"ends by the signal alone": {"echo http://127.0.0.1:1/mcp; exec sleep 60", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			var log bytes.Buffer
			url, stop, err := startServer(t.Context(), program(t, test.text), nil, &log)
			if (err == nil) != test.start {
				t.Fatalf("started with %v, want success: %t", err, test.start)
			}
			if err != nil {
				return
			}
			if url != "http://127.0.0.1:1/mcp" {
				t.Errorf("the URL is %q", url)
			}
			if err := stop(); (err == nil) != test.end {
				t.Errorf("ended with %v, want success: %t", err, test.end)
			}
		})
	}
}

// The fixture is told its arguments, and does not outlive what is done with it;
// how it ends counts too.
func TestWithServer(t *testing.T) {
	server := func(status int) string {
		return program(t, fmt.Sprintf(`trap 'exit %d' TERM; echo oh >&2; echo "http://127.0.0.1:1/$*"; while :; do sleep 0.01; done`, status))
	}
	failed := errors.New("failed")
	for name, test := range map[string]struct {
		status   int
		err      error
		complain string
	}{
		"all is well":                {0, nil, ""},
		"what is done fails":         {0, failed, "failed"},
		"it ends badly":              {3, nil, "the fixture program ended badly: exit status 3"},
		"it fails and it ends badly": {3, failed, "failed\nthe fixture program ended badly: exit status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			log := filepath.Join(t.TempDir(), "log")
			err := withServer(t.Context(), server(test.status), []string{"--client", "c"}, log, func(url string) error {
				if url != "http://127.0.0.1:1/--http 127.0.0.1:0 --client c" {
					t.Errorf("the fixture was told %q", url)
				}
				return test.err
			})
			if text := fmt.Sprint(err); text != test.complain && (err != nil || test.complain != "") {
				t.Errorf("the error is %q, want %q", text, test.complain)
			}
			if said, err := os.ReadFile(log); err != nil || string(said) != "oh\n" {
				t.Errorf("the log is %q, %v", said, err)
			}
		})
	}
}

// fakeSuite is a suite whose scenarios for clients give one success, but for
// "silent", which leaves no result, and "crash", whose client fails.
const fakeSuite = `
while [ $# -gt 0 ]; do
	case $1 in
	--scenario) name=$2 ;;
	-o) dir=$2 ;;
	esac
	shift
done
echo "running $name"
[ "$name" = silent ] && exit 0
mkdir -p "$dir/$name-2026-11-20T12-34-56-789Z"
echo '[{"name":"A","status":"SUCCESS"}]' >"$dir/$name-2026-11-20T12-34-56-789Z/checks.json"
[ "$name" = crash ] && exit 1
exit 0
`

func TestRunClient(t *testing.T) {
	sc := func(leg, name string) scenario {
		return scenario{leg: leg, revision: "2026-07-28", name: name}
	}
	fine, silent, crash := sc(legClient, "fine"), sc(legClient, "silent"), sc(legClient, "crash")
	got := make(map[scenario]*result)
	output := t.TempDir()
	planned := []scenario{sc(legServer, "other"), fine, silent, crash}
	if err := runClient(t.Context(), &suite{node: program(t, fakeSuite), script: "index.js"}, "client", output, planned, got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[fine] == nil || got[fine].counts != (counts{success: 1}) {
		t.Errorf("results are %v, want one success of %v and one failure of %v", got, fine, crash)
	}
	if r := got[crash]; r == nil || r.failure != 1 || len(r.complaints) != 1 {
		t.Errorf("a client that fails gives %+v, want a failure", r)
	}
	log, err := os.ReadFile(filepath.Join(output, "client-2026-07-28", "fine", "suite.log"))
	if err != nil || string(log) != "running fine\n" {
		t.Errorf("the log is %q, %v", log, err)
	}
}
