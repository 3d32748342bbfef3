//go:build unix

package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/racetest"
)

// wrongs are what a fake server does wrong in place of an answer.
var wrongs = map[string]string{
	"silent":           "",
	"twice":            "	line {answer}\n	line {answer}",
	"another id":       `	line {"jsonrpc":"2.0","id":"nobody's","result":{}}`,
	"half":             `	write {"jsonrpc":"2.0","id":{id},"result":{"con` + "\n	exit 0",
	"no line end":      "	write {answer}",
	"10 MiB":           "	more {10 MiB}",
	"endless list":     `	next {"tools":[],"nextCursor":"{n}"}`,
	"list in a circle": `	result {"tools":[],"nextCursor":"again"}`,
	"broken UTF-8":     `	more "\xff\xfe"`,
	"logs":             "	write \"starting up\\n[info] \\x1b[2Jready {\\n\\n\"\n	line {answer}\n	line done",
	"no result":        `	line {"jsonrpc":"2.0","id":{id}}`,
	"no object":        "	result [1]",
	"HTML":             "	line <html><body>It works!</body></html>",
	"dies":             "	stderr out of memory\n	exit 3",
	"floods":           `	repeat 20000 line {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"flood {n}"}}` + "\n	line {answer}",
}

// A rogueCase is what a server does wrong at a method, and how commands end that meet it.
type rogueCase struct {
	at, does       string
	limits         []string // of the time that commands wait; the next one is for who fails with the first
	inspect, other int      // exit codes, and those of trace and record
	said           string   // by all, but for inspect at initialize if it waits in vain
	code           string   // of inspect
}

// try says what is wrong with how a command ends that waits for so long.
func (c *rogueCase) try(t *testing.T, command, limit string) error {
	t.Helper()
	dir := t.TempDir()
	what := []string{"--call", "look"}
	if c.at == "tools/list" {
		what = []string{"--list"}
	}
	args := map[string][]string{
		"inspect": {"--json", "--protocol-era", "legacy", "--connect-timeout", limit, "--method", "tools/call", "--tool-name", "look"},
		"trace":   append([]string{"--json", "--protocol", "2025-11-25"}, what...),
		"record":  append([]string{"--protocol", "2025-11-25", "--out", filepath.Join(dir, "cassette")}, what...),
	}[command]
	args = slices.Concat([]string{command, "--timeout", limit}, args)
	exit, out, said, err := against(t, args, "answer "+c.at, wrongs[c.does])
	switch {
	case err != nil:
		return err
	case command != "inspect":
		if exit != c.other || !strings.Contains(said, c.said) {
			return fmt.Errorf("%s: exit code %d, want %d and %q\n%s", command, exit, c.other, c.said, said)
		}
	case exit != c.inspect, !strings.Contains(said, c.code), c.code != "unreachable" && !strings.Contains(said, strings.ReplaceAll(c.said, `"`, `\"`)):
		return fmt.Errorf("inspect: exit code %d, want %d, %s and %q\n%s", exit, c.inspect, c.code, c.said, said)
	case (out != "") != (exit == 0):
		return fmt.Errorf("inspect: exit code %d, and it wrote %d bytes", exit, len(out))
	}
	return nil
}

// A server that does something wrong at one method never hangs a command, which ends with the exit
// code of the guide and words of what was wrong, and leaves no process.
//
// Attack: malicious servers, resource exhaustion.
func TestRogueServers(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	const list, call, open = "tools/list", "tools/call", "initialize"
	// slow is the limit for servers that end by themselves. fast are limits for servers that never answer:
	// a busy machine can take longer than the first ones to start a program.
	slow, fast := []string{"4m"}, []string{"300ms", "6s", "1m"}
	const silent, reading, ended = "nothing heard for ", "reading the response: ", "(exit status 3): out of memory"
	for _, test := range []rogueCase{
		{open, "silent", fast, 4, 4, silent, "unreachable"},
		{list, "silent", fast, 4, 5, silent, "timeout"},
		{call, "silent", fast, 4, 5, silent, "timeout"},
		{call, "another id", fast, 4, 5, silent, "timeout"},
		{open, "no line end", fast, 4, 4, silent, "unreachable"},
		{call, "no line end", fast, 4, 5, silent, "timeout"},
		{call, "no result", slow, 1, 5, reading + `invalid request: none of "method", "result" and "error" is there`, "bad_result"},
		{call, "HTML", fast, 4, 5, silent, "timeout"},
		{open, "twice", slow, 0, 0, "", ""},
		{call, "twice", slow, 0, 0, "", ""},
		{call, "logs", slow, 0, 0, "", ""},
		{call, "floods", slow, 0, 0, "", ""},
		{open, "10 MiB", slow, 0, 0, "", ""},
		{call, "10 MiB", slow, 0, 0, "", ""},
		{open, "half", slow, 1, 4, reading + "parse error: unexpected end of text", "bad_result"},
		{call, "half", slow, 1, 5, reading + "parse error: unexpected end of text", "bad_result"},
		{open, "broken UTF-8", slow, 0, 0, "", ""},
		{call, "broken UTF-8", slow, 0, 0, "", ""},
		{open, "no object", slow, 1, 4, `must be an object`, "bad_result"},
		{list, "no object", slow, 1, 5, `must be an object`, "bad_result"},
		{list, "endless list", slow, 1, 5, "more than 10000 pages", "bad_result"},
		{list, "list in a circle", slow, 5, 0, "", ""}, // the tool that is called is not in it
		{open, "dies", slow, 1, 4, ended, "server_exited"},
		{list, "dies", slow, 1, 4, ended, "server_exited"},
		{call, "dies", slow, 1, 4, ended, "server_exited"},
	} {
		t.Run(test.does+" at "+test.at, func(t *testing.T) {
			t.Parallel()
			for _, command := range []string{"inspect", "trace", "record"} {
				if test.does == "endless list" && command == "record" {
					continue // it takes long, and is as trace
				}
				err := test.try(t, command, test.limits[0])
				for _, limit := range test.limits[1:] {
					if err != nil {
						err = test.try(t, command, limit)
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A server that asks without end is given up.
func TestRogueAsks(t *testing.T) {
	t.Parallel()
	args := []string{"inspect", "--json", "--protocol-era", "legacy", "--method", "tools/call", "--tool-name", "look"}
	exit, _, said, err := against(t, args, "answer tools/call",
		`	repeat 1000000 ask elicitation/create {"message":"And now?","requestedSchema":{"type":"object","properties":{}}}`)
	if err != nil || exit != 1 || !strings.Contains(said, `"code":"too_many_questions"`) || strings.Count(said, "And now?") != 100 {
		t.Errorf("%v, exit code %d, %d questions\n%.2000s", err, exit, strings.Count(said, "And now?"), said)
	}
}

// against runs a command against the server look that does something wrong, and must be gone afterwards. The
// error says that it never began.
func against(t *testing.T, args []string, wrong ...string) (exit int, out, said string, err error) {
	t.Helper()
	pid := filepath.Join(t.TempDir(), "pid")
	server := fakeScript(t, slices.Concat(look, []string{"start", "\tappend " + pid + " {pid}"}, wrong)...)
	args = append(args, append([]string{"--"}, strings.Fields(server)...)...)
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("the command hangs"))
	defer cancel()
	var stdout, stderr output
	exit = cli.Main(ctx, args, &kit.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	if ctx.Err() != nil {
		t.Errorf("%s hangs", args[0])
	}
	return exit, stdout.String(), stderr.String(), gone(t, pid)
}

// gone fails if a process is left whose id is in a file. The error says that there is no file, or no id in it.
func gone(t *testing.T, file string) error {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("the server never began: %w", err)
	}
	for id := range strings.FieldsSeq(string(raw)) {
		pid, err := strconv.Atoi(id)
		if err != nil {
			return fmt.Errorf("the id of the server: %w", err)
		}
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("the server is still there: %v", err)
		}
	}
	return nil
}
