//go:build unix

package cli_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-mcp/parley/app/cli"
)

// A server that does something wrong at one method never hangs a command, which ends with the exit
// code of the guide and words of what was wrong, and leaves no process.
//
// Attack: malicious servers, resource exhaustion.
func TestRogueServers(t *testing.T) {
	if raceDetector {
		t.Skip("it starts many programs; go test work runs it")
	}
	t.Parallel()
	const list, call, open = "tools/list", "tools/call", "initialize"
	const fast, slow = "300ms", "30s" // for what waits in vain, and for what ends by itself
	const silent, reading, ended, round = "nothing heard for 300ms", "reading the response: ", "(exit status 3): out of memory", "the cursors go round in circles"
	for _, test := range []struct {
		at, does, limit string
		inspect, other  int    // exit codes, and those of trace and record
		said            string // by all, but for inspect at open if it waits in vain
		code            string // of inspect
	}{
		{open, "silent", fast, 4, 4, silent, "unreachable"},
		{list, "silent", fast, 4, 5, silent, "timeout"},
		{call, "silent", fast, 4, 5, silent, "timeout"},
		{call, "another id", fast, 4, 5, silent, "timeout"},
		{open, "no line end", fast, 4, 4, silent, "unreachable"},
		{call, "no line end", fast, 4, 5, silent, "timeout"},
		{call, "no result", fast, 4, 5, silent, "timeout"},
		{call, "HTML", fast, 4, 5, silent, "timeout"},
		{open, "twice", slow, 0, 0, "", ""},
		{call, "twice", slow, 0, 0, "", ""},
		{call, "logs", slow, 0, 0, "", ""},
		{call, "floods", slow, 0, 0, "", ""},
		{open, "10 MiB", slow, 0, 0, "", ""},
		{call, "10 MiB", slow, 0, 0, "", ""},
		{open, "half", slow, 1, 4, reading + "parse error: unexpected end of text", "bad_result"},
		{call, "half", slow, 1, 5, reading + "parse error: unexpected end of text", "bad_result"},
		{open, "broken UTF-8", slow, 1, 4, reading + "parse error: string is not valid UTF-8", "bad_result"},
		{call, "broken UTF-8", slow, 1, 5, reading + "parse error: string is not valid UTF-8", "bad_result"},
		{open, "no object", slow, 1, 4, `must be an object`, "bad_result"},
		{list, "no object", slow, 1, 5, `must be an object`, "bad_result"},
		{list, "endless list", slow, 1, 5, "more than 10000 pages", "bad_result"},
		{list, "list in a circle", slow, 1, 5, round, "bad_result"},
		{open, "dies", slow, 1, 4, ended, "server_exited"},
		{list, "dies", slow, 1, 4, ended, "server_exited"},
		{call, "dies", slow, 1, 4, ended, "server_exited"},
	} {
		t.Run(test.does+" at "+test.at, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			at := []string{"--", "rogue", filepath.Join(dir, "pid"), test.at, test.does}
			what := []string{"--call", "look"}
			if test.at == list {
				what = []string{"--list"}
			}
			for _, args := range [][]string{
				{"inspect", "--json", "--protocol-era", "legacy", "--timeout", test.limit, "--connect-timeout", test.limit, "--method", "tools/call", "--tool-name", "look"},
				append([]string{"trace", "--json", "--protocol", "2025-11-25", "--timeout", test.limit}, what...),
				append([]string{"record", "--protocol", "2025-11-25", "--timeout", test.limit, "--out", filepath.Join(dir, "cassette")}, what...),
			} {
				if test.does == "endless list" && args[0] == "record" {
					continue // it takes long, and is as trace
				}
				exit, out, said := against(t, append(args, at...))
				switch {
				case args[0] != "inspect":
					if exit != test.other || !strings.Contains(said, test.said) {
						t.Errorf("%s: exit code %d, want %d and %q\n%s", args[0], exit, test.other, test.said, said)
					}
				case exit != test.inspect, !strings.Contains(said, test.code), test.code != "unreachable" && !strings.Contains(said, strings.ReplaceAll(test.said, `"`, `\"`)):
					t.Errorf("inspect: exit code %d, want %d, %s and %q\n%s", exit, test.inspect, test.code, test.said, said)
				case (out != "") != (exit == 0):
					t.Errorf("inspect: exit code %d, and it wrote %d bytes", exit, len(out))
				}
			}
		})
	}
}

// A server that asks without end is given up.
func TestRogueAsks(t *testing.T) {
	t.Parallel()
	at := []string{"--", "rogue", filepath.Join(t.TempDir(), "pid"), "tools/call", "asks"}
	exit, _, said := against(t, append([]string{"inspect", "--json", "--protocol-era", "legacy", "--method", "tools/call", "--tool-name", "look"}, at...))
	if exit != 1 || !strings.Contains(said, `"code":"too_many_questions"`) || strings.Count(said, "And now?") != 100 {
		t.Errorf("exit code %d, %d questions\n%.2000s", exit, strings.Count(said, "And now?"), said)
	}
}

// against runs a command against a rogue, which must be gone afterwards.
func against(t *testing.T, args []string) (exit int, out, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), rogueTime, errors.New("the command hangs"))
	defer cancel()
	var stdout, stderr output
	exit = cli.Main(ctx, args, &cli.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	if ctx.Err() != nil {
		t.Errorf("%s hangs", args[0])
	}
	gone(t, args[len(args)-3])
	return exit, stdout.String(), stderr.String()
}

// gone fails if a process is left whose id is in a file.
func gone(t *testing.T, file string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the server is still there: %v", err)
	}
}
