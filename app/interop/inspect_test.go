package interop_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/interop/script"
)

// What each server is asked. Values are the flags, by a name.
type asks map[string][]string

// everyServer are methods that every server takes.
var everyServer = asks{
	"initialize": {"--method", "initialize"},
	"tools":      {"--method", "tools/list"},
	"resources":  {"--method", "resources/list"},
	"templates":  {"--method", "resources/templates/list"},
	"prompts":    {"--method", "prompts/list"},
}

// referenceAsks are for server-everything of npm.
var referenceAsks = asks{
	"call":            {"--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=héllo"},
	"call json":       {"--method", "tools/call", "--tool-name", "get-sum", "--tool-args-json", `{"a":2,"b":3.5}`},
	"call structured": {"--method", "tools/call", "--tool-name", "get-structured-content", "--tool-arg", "location=Chicago"},
	"call image":      {"--method", "tools/call", "--tool-name", "get-tiny-image"},
	"call annotated":  {"--method", "tools/call", "--tool-name", "get-annotated-message", "--tool-arg", "messageType=error", "--tool-arg", "includeImage=true"},
	"call wrong":      {"--method", "tools/call", "--tool-name", "get-sum", "--tool-arg", "a=true"},
	"call as a task":  {"--method", "tools/call", "--tool-name", "simulate-research-query", "--tool-arg", "topic=tides"},
	"read":            {"--method", "resources/read", "--uri", "demo://resource/static/document/features.md"},
	"prompt":          {"--method", "prompts/get", "--prompt-name", "args-prompt", "--prompt-args", "city=Oslo", "--prompt-args", "state=5"},
	"prompt, words":   {"--method", "prompts/get", "--prompt-name", "args-prompt", "--prompt-args", "city=Oslo", "state=5"},
	"level":           {"--method", "logging/setLevel", "--log-level", "debug"},
	"strict":          {"--method", "tools/list", "--strict"},
}

// ownAsks are for 'parley serve everything'.
var ownAsks = asks{
	"call":            {"--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=héllo"},
	"call structured": {"--method", "tools/call", "--tool-name", "add", "--tool-args-json", `{"a":2,"b":3.5}`},
	"call wrong":      {"--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=true", "--tool-arg", "b=2"},
	"call, words":     {"--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=2", "b=3", "--tool-metadata", "com.example/x=1", "com.example/y=2", "--metadata", "com.example/z=1"},
	"call fails":      {"--method", "tools/call", "--tool-name", "fail"},
	"call image":      {"--method", "tools/call", "--tool-name", "get-tiny-image"},
	"load at a rate":  {"--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=héllo", "--load", "--load-requests", "9", "--load-rate", "200", "--load-duration", "60.5", "--load-concurrency", "3"},
	"load fails":      {"--method", "tools/call", "--tool-name", "fail", "--load", "--load-requests", "5"},
	"app":             {"--method", "tools/call", "--tool-name", "show-palette", "--app-info"},
	"apps":            {"--method", "tools/list", "--app-info"},
	"no app":          {"--method", "tools/call", "--tool-name", "add", "--app-info"},
	"read":            {"--method", "resources/read", "--uri", "demo://cities/Peru/Lima"},
	"read bytes":      {"--method", "resources/read", "--uri", "demo://image"},
	"prompt":          {"--method", "prompts/get", "--prompt-name", "greeting", "--prompt-args", "name=Ada"},
	"level":           {"--method", "logging/setLevel", "--log-level", "debug"},
	"skills":          {"--method", "skills/list"},
	"verified":        {"--method", "skills/list", "--verify", "--require-digests"},
	"skill":           {"--method", "skills/get", "--uri", "skill://table-review/SKILL.md"},
	"folder":          {"--method", "resources/directory/read", "--uri", "skill://table-review"},
}

// scriptAsks are for the scripts of this module.
var scriptAsks = asks{
	"call structured": {"--method", "tools/call", "--tool-name", script.Add, "--tool-arg", "a=2", "--tool-arg", "b=3"},
	"call fails":      {"--method", "tools/call", "--tool-name", script.Fail, "--tool-arg", "reason=late"},
	"call wrong":      {"--method", "tools/call", "--tool-name", script.Add, "--tool-arg", "a=true"},
	"read":            {"--method", "resources/read", "--uri", script.Item},
	"prompt":          {"--method", "prompts/get", "--prompt-name", script.Review, "--prompt-args", script.Language + "=go"},
	"level":           {"--method", "logging/setLevel", "--log-level", "debug"},
}

// An inspection is what a program gave: the lines of its standard output, and its exit code.
type inspection struct {
	lines []string
	exit  int
	code  string // of the error object
	all   string // for people
}

// inspectWith runs the Inspector or 'parley inspect'.
func inspectWith(t *testing.T, cmd *exec.Cmd) inspection {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	if err != nil && !ended {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	a := inspection{all: stdout.String() + stderr.String()}
	if ended {
		a.exit = exit.ExitCode()
	}
	if text := strings.TrimSpace(stdout.String()); text != "" {
		a.lines = strings.Split(text, "\n")
	}
	if text := strings.TrimSpace(stderr.String()); text != "" {
		lines := strings.Split(text, "\n")
		var told struct {
			Error struct{ Code string }
		}
		if json.Unmarshal([]byte(lines[len(lines)-1]), &told) == nil {
			a.code = told.Error.Code
		}
	}
	return a
}

// bothInspect asks a server with both programs.
func bothInspect(t *testing.T, target []string, flags ...string) (theirs, ours inspection) {
	t.Helper()
	parley, err := buildParley()
	if err != nil {
		t.Fatal(err)
	}
	words := append(append(slices.Clone(flags), "--quiet"), target...)
	theirs = inspectWith(t, node(t, append([]string{inspectorJS, "--cli"}, words...)...))
	cmd := exec.CommandContext(bounded(t), parley, append([]string{"inspect"}, words...)...)
	cmd.Dir, cmd.WaitDelay = peersDir(t), 5*time.Second
	home := t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + home}
	ours = inspectWith(t, cmd)
	return theirs, ours
}

// inspectDifferences are the members in which the two programs may differ, in objects that
// also have another member, and why. There are no others; the guide lists them.
var inspectDifferences = []struct{ member, beside, reason string }{
	{"resultType", "", "the Inspector takes it out of some results; 'parley inspect' leaves results as they came"},
	{"io.modelcontextprotocol/related-task", "", "it is about the way of a call that was a task, which both wait for; only the Inspector has it"},
	{"issue", "rule", "findings of --strict are in words of their own"},
	{"suggestion", "rule", "findings of --strict are in words of their own"},
	{"message", "severity", "findings of --verify are in words of their own"},
	{"reason", "status", "findings of --verify are in words of their own"},
}

// measuredTimes are members of the summary of a load whose numbers differ in each run.
var measuredTimes = []string{"elapsedMs", "throughput", "min", "mean", "p50", "p90", "p99", "max"}

// comparable is a value without the members that may differ, and with the same number for each time
// that was measured.
func comparable(t *testing.T, line string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(line))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	var prune func(v any)
	prune = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				prune(item)
			}
		case map[string]any:
			for _, d := range inspectDifferences {
				if _, ok := v[d.beside]; ok || d.beside == "" {
					delete(v, d.member)
				}
			}
			for name, item := range v {
				prune(item)
				if _, number := item.(json.Number); number && slices.Contains(measuredTimes, name) {
					v[name] = "a number"
				}
				if inner, ok := item.(map[string]any); name == "_meta" && ok && len(inner) == 0 {
					delete(v, name)
				}
			}
		}
	}
	prune(v)
	return v
}

// sameAnswer says how two answers differ, or "".
func sameAnswer(t *testing.T, theirs, ours inspection) string {
	t.Helper()
	if theirs.exit != ours.exit {
		return fmt.Sprintf("exit codes %d and %d", theirs.exit, ours.exit)
	}
	if len(theirs.lines) != len(ours.lines) {
		return "different numbers of lines"
	}
	for i := range theirs.lines {
		if diff := cmp.Diff(comparable(t, theirs.lines[i]), comparable(t, ours.lines[i])); diff != "" {
			return "(-Inspector +parley)\n" + diff
		}
	}
	return ""
}

// For every method that the Inspector has on its command line the result is the same JSON
// value, of every server in each era. With -short each is asked of one server only: the
// methods of a list are dealt out to its servers.
func TestInspectAsInspector(t *testing.T) {
	node := nodePath(t, peersDir(t))
	parley, err := buildParley()
	if err != nil {
		t.Fatal(err)
	}
	type server struct {
		name, era string
		target    func(t *testing.T) []string
	}
	everythingStdio := server{"server-everything stdio", "legacy", func(*testing.T) []string {
		return []string{"--", node, everythingJS, "stdio"}
	}}
	everythingHTTP := server{"server-everything http", "auto", func(t *testing.T) []string {
		return []string{startServer(t, nil, "--import", "./loopback.mjs", everythingJS, "streamableHttp"), "--transport", "http"}
	}}
	sdkStdio := server{"sdk 2.4.0 stdio", "legacy", func(*testing.T) []string {
		return []string{"--", node, "v2-server.mjs", "stdio"}
	}}
	sdkHTTP := server{"sdk 2.4.0 http", "modern", func(t *testing.T) []string {
		return []string{startServer(t, nil, "v2-server.mjs", "http"), "--transport", "http"}
	}}
	oursStdio := server{"ours stdio", "modern", func(*testing.T) []string {
		return []string{"--", parley, "serve", "everything"}
	}}
	oursHTTP := func(era string) server {
		return server{"ours http", era, func(t *testing.T) []string { return []string{serveParley(t), "--transport", "http"} }}
	}
	for list, test := range map[string]struct {
		asks    asks
		servers []server
	}{
		"every server": {everyServer, []server{everythingStdio, everythingHTTP, sdkStdio, sdkHTTP, oursStdio, oursHTTP("legacy"), oursHTTP("auto")}},
		"few":          {asks{"call": referenceAsks["call"], "read": referenceAsks["read"]}, []server{everythingStdio}},
		"reference":    {referenceAsks, []server{everythingHTTP}},
		"own":          {ownAsks, []server{oursStdio, oursHTTP("legacy"), oursHTTP("auto")}},
		"script":       {scriptAsks, []server{sdkStdio, sdkHTTP}},
	} {
		names := slices.Sorted(maps.Keys(test.asks))
		for i, server := range test.servers {
			if testing.Short() && i >= len(names) {
				continue
			}
			t.Run(list+", "+server.name+" "+server.era, func(t *testing.T) {
				t.Parallel()
				target := server.target(t)
				for k, name := range names {
					if testing.Short() && k%len(test.servers) != i {
						continue
					}
					theirs, ours := bothInspect(t, target, append([]string{"--format", "json", "--protocol-era", server.era}, test.asks[name]...)...)
					if diff := sameAnswer(t, theirs, ours); diff != "" {
						t.Errorf("%s: %s\nInspector: %s\nparley:    %s", name, diff, theirs.all, ours.all)
					}
				}
			})
		}
	}
}

// The server of a file, its roots and its era are the same in both programs, and so is what is
// refused.
func TestInspectConfigAsInspector(t *testing.T) {
	node := nodePath(t, peersDir(t))
	parley, err := buildParley()
	if err != nil {
		t.Fatal(err)
	}
	write := func(v any) string {
		t.Helper()
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "servers.json")
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	type object = map[string]any
	roots := []object{{"uri": "file:///srv/notes", "name": "notes"}, {"uri": "file:///srv/more"}}
	own := object{"command": parley, "args": []string{"serve", "everything"}, "protocolEra": "legacy", "roots": roots}
	foreign := object{"command": node, "args": []string{everythingJS, "stdio"}, "roots": roots}
	one, two := write(object{"mcpServers": object{"own": own}}), write(object{"mcpServers": object{"own": own, "foreign": foreign}})
	for name, flags := range map[string][]string{
		"of the catalog": {"--catalog", one, "--server", "own", "--method", "initialize"},
		"told":           {"--config", one, "--method", "tools/call", "--tool-name", "get-roots-list"},
		"named":          {"--config", two, "--server", "foreign", "--protocol-era", "legacy", "--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=x"},
		"told the other": {"--config", two, "--server", "foreign", "--protocol-era", "legacy", "--method", "tools/call", "--tool-name", "get-roots-list"},
		"not named":      {"--config", two, "--method", "tools/list"},
		"none of it":     {"--config", two, "--server", "nope", "--method", "tools/list"},
		"no file":        {"--config", filepath.Join(t.TempDir(), "none.json"), "--method", "tools/list"},
		"both":           {"--config", one, "--catalog", one, "--method", "tools/list"},
		"and a command":  {"--config", one, "--method", "tools/list", "--", parley, "serve", "everything"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			theirs, ours := bothInspect(t, nil, append([]string{"--format", "json"}, flags...)...)
			if diff := sameAnswer(t, theirs, ours); diff != "" {
				t.Errorf("%s\nInspector: %s\nparley:    %s", diff, theirs.all, ours.all)
			}
		})
	}
}

// Failures end with the same exit code and, where the Inspector has a code for them, with
// the same code in the object on standard error.
func TestInspectFailsAsInspector(t *testing.T) {
	node := nodePath(t, peersDir(t))
	refusing := func(status int) string {
		return listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })) + "/mcp"
	}
	nowhere := "http://" + freeAddress(t) + "/mcp"
	own := []string{"--", program, "ours"}
	sdk := []string{"--", node, "v2-server.mjs", "stdio"}
	at := func(url string) []string { return []string{url, "--transport", "http", "--stored-auth-only"} }
	command := func(words ...string) []string { return append([]string{"--"}, words...) }
	list := []string{"--method", "tools/list"}
	for name, test := range map[string]struct {
		target []string
		flags  []string
		exit   int
		both   bool // eras
	}{
		"unreachable":         {at(nowhere), list, 4, false},
		"unauthorized":        {at(refusing(http.StatusUnauthorized)), list, 3, true},
		"forbidden":           {at(refusing(http.StatusForbidden)), list, 3, false},
		"no endpoint":         {at(refusing(http.StatusNotFound)), list, 1, false},
		"no answer":           {command("sleep", "100"), append([]string{"--connect-timeout", "700"}, list...), 4, false},
		"no command":          {command("no-such-command"), list, 1, false},
		"server ends":         {command("false"), list, 1, false},
		"unknown tool":        {sdk, []string{"--method", "tools/call", "--tool-name", "nope"}, 5, true},
		"tool fails":          {own, []string{"--method", "tools/call", "--tool-name", script.Fail, "--tool-arg", "reason=late"}, 5, false},
		"bad arguments":       {sdk, []string{"--method", "tools/call", "--tool-name", script.Add}, 5, false},
		"no arguments object": {own, []string{"--method", "tools/call", "--tool-name", script.Add, "--tool-args-json", "[1]"}, 1, false},
		"unknown resource":    {own, []string{"--method", "resources/read", "--uri", script.Missing}, 1, true},
		"unknown prompt":      {sdk, []string{"--method", "prompts/get", "--prompt-name", "nope"}, 1, false},
		"unknown method":      {own, []string{"--method", "tools/nope"}, 1, false},
		"missing flag":        {own, []string{"--method", "resources/read"}, 1, false},
		"bad flag":            {own, []string{"--method", "tools/list", "--protocol-era", "old"}, 1, false},
		"strict":              {command(node, "unportable.mjs"), []string{"--method", "tools/list", "--strict"}, 6, true},
		"no page":             {own, []string{"--method", "tools/call", "--tool-name", script.Add, "--app-info"}, 2, false},
		"no skills":           {own, []string{"--method", "skills/list"}, 1, true},
		"wrong skill":         {at(startServer(t, nil, "skills-server.mjs", "--tampered")), []string{"--method", "skills/list", "--verify"}, 7, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, era := range eras(test.both) {
				theirs, ours := bothInspect(t, test.target, append([]string{"--format", "json", "--protocol-era", era}, test.flags...)...)
				if theirs.exit != test.exit || ours.exit != test.exit {
					t.Errorf("%s: exit codes %d and %d, want %d\nInspector: %s\nparley:    %s", era, theirs.exit, ours.exit, test.exit, theirs.all, ours.all)
				}
				if theirs.exit == 6 || theirs.exit == 7 { // they print what they found
					if diff := sameAnswer(t, theirs, ours); diff != "" {
						t.Errorf("%s: %s", era, diff)
					}
				}
				if theirs.code != ours.code && theirs.code != "error" {
					t.Errorf("%s: codes %s and %s", era, theirs.code, ours.code)
				}
			}
		})
	}
}

// eras are the handshake era, or both.
func eras(both bool) []string {
	if both {
		return []string{"legacy", "modern"}
	}
	return []string{"legacy"}
}

// serveParley starts 'parley serve everything' over HTTP, which ends with the test.
func serveParley(t *testing.T, flags ...string) (url string) {
	t.Helper()
	return serveBuiltin(t, nil, append([]string{"everything"}, flags...)...)
}
