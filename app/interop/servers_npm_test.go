package interop_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/doctor"
)

// An npmServer is a server that people use, from npm, and what is known of it.
type npmServer struct {
	// name is that of the package, and bin its program.
	name, bin string
	// args and env are given to it. $DIR is a folder of the test, which is a repository of git.
	args []string
	env  map[string]string
	// call is a harmless call, as arguments of 'parley call', and want what it prints. An away one needs a
	// network, a key or a cluster: without, it fails, and its words say so.
	call         []string
	want         string
	failed, away bool
	// codes are the findings of the doctor. Each is true of the server.
	codes []string
}

// referenceServers come with the other peers.
var referenceServers = []npmServer{
	{
		name: "@modelcontextprotocol/server-everything", bin: "dist/index.js", args: []string{"stdio"},
		call: []string{"echo", "message=hello"}, want: "Echo: hello",
		codes: []string{"MCP-ERA-008", "MCP-MODEL-002", "MCP-PAGE-006", "MCP-PROMPT-006", "MCP-SCHEMA-006", "MCP-SCHEMA-013"},
	},
	{
		name: "@modelcontextprotocol/server-filesystem", bin: "dist/index.js", args: []string{"$DIR"},
		call: []string{"list_allowed_directories"}, want: "$DIR",
		codes: []string{"MCP-PAGE-006", "MCP-SCHEMA-006", "MCP-SCHEMA-013"},
	},
	{
		name: "@modelcontextprotocol/server-memory", bin: "dist/index.js",
		call: []string{"read_graph"}, want: "entities",
		codes: []string{"MCP-PAGE-006", "MCP-SCHEMA-006", "MCP-SCHEMA-013"},
	},
	{
		name: "@modelcontextprotocol/server-sequential-thinking", bin: "dist/index.js",
		call: []string{"sequentialthinking", "thought=a", "nextThoughtNeeded=false", "thoughtNumber=1", "totalThoughts=1"}, want: "thoughtHistoryLength",
		codes: []string{"MCP-PAGE-006", "MCP-SCHEMA-013", "MCP-TOOL-007"},
	},
}

// popularServers are in peers/servers, which only "make soak-servers" installs.
var popularServers = []npmServer{
	{
		name: "@modelcontextprotocol/server-pdf", bin: "dist/index.js", args: []string{"--stdio"},
		call: []string{"list_pdfs"}, want: "localFiles",
		codes: []string{"MCP-MODEL-002", "MCP-MODEL-004", "MCP-PAGE-006", "MCP-TOOL-007"},
	},
	{
		name: "@playwright/mcp", bin: "cli.js", args: []string{"--headless", "--executable-path", "/usr/bin/chromium", "--no-sandbox"},
		call: []string{"browser_close"}, want: "No open tabs",
		codes: []string{"MCP-MODEL-002", "MCP-PAGE-006", "MCP-TOOL-012"},
	},
	{
		name: "chrome-devtools-mcp", bin: "build/src/bin/chrome-devtools-mcp.js",
		args: []string{"--no-usage-statistics", "--headless", "--isolated", "--executablePath", "/usr/bin/chromium", "--chromeArg=--no-sandbox"},
		call: []string{"list_pages"}, want: "about:blank",
		codes: []string{"MCP-MODEL-002", "MCP-PAGE-006", "MCP-TOOL-009"},
	},
	{
		name: "@antv/mcp-server-chart", bin: "build/index.js",
		call: []string{"generate_line_chart", "--args", `{"data":[{"time":"2024","value":1}]}`}, away: true,
		codes: []string{"MCP-MODEL-002", "MCP-PAGE-006", "MCP-SCHEMA-013"},
	},
	{
		name: "@upstash/context7-mcp", bin: "dist/index.js",
		call: []string{"resolve-library-id", "query=a", "libraryName=go"}, away: true,
		codes: []string{"MCP-CAP-004", "MCP-PAGE-006", "MCP-TOOL-007"},
	},
	{
		name: "@kazuph/mcp-taskmanager", bin: "dist/index.js",
		call: []string{"list_requests"}, want: "requests_listed",
		codes: []string{"MCP-PAGE-006", "MCP-SCHEMA-006", "MCP-TOOL-007"},
	},
	{
		name: "@negokaz/excel-mcp-server", bin: "dist/launcher.js",
		call: []string{"excel_describe_sheets", "fileAbsolutePath=$DIR/none.xlsx"}, want: "none.xlsx", failed: true,
		codes: []string{"MCP-MODEL-002"},
	},
	{
		name: "mcp-server-kubernetes", bin: "dist/index.js",
		// There is no cluster, so that no resource can be read.
		call:  []string{"ping"},
		codes: []string{"MCP-MODEL-002", "MCP-PAGE-006", "MCP-RES-008", "MCP-SCHEMA-006"},
	},
	{
		name: "@coo-quack/calc-mcp", bin: "dist/index.js",
		call: []string{"math", "expression=6*7"}, want: "42",
		codes: []string{"MCP-PAGE-006", "MCP-SCHEMA-012", "MCP-SCHEMA-013"},
	},
	{
		name: "@cyanheads/git-mcp-server", bin: "dist/index.js", env: map[string]string{"MCP_TRANSPORT_TYPE": "stdio", "MCP_LOG_LEVEL": "error"},
		call: []string{"git_status", "path=$DIR"}, want: "main",
		codes: []string{"MCP-MODEL-002", "MCP-PAGE-006"},
	},
	{
		name: "figma-developer-mcp", bin: "dist/bin.js", args: []string{"--stdio", "--figma-api-key=none"}, env: map[string]string{"DO_NOT_TRACK": "1"},
		call: []string{"get_figma_data", "fileKey=abc"}, away: true,
		codes: []string{"MCP-MODEL-002", "MCP-PAGE-006", "MCP-SCHEMA-013"},
	},
}

// The program lists all tools of the servers that people use, as many as the client of the
// TypeScript SDK and as the server sends, calls one, and examines them without a false finding.
// With PARLEY_TEST_NPX=all these are all servers of both tables.
func TestNPMServers(t *testing.T) {
	which := os.Getenv("PARLEY_TEST_NPX")
	if which == "" {
		t.Skip("PARLEY_TEST_NPX is not set: no servers from the network")
	}
	dir := peersDir(t)
	for _, s := range referenceServers {
		t.Run(s.name, func(t *testing.T) { s.test(t, dir) })
	}
	if which != "all" {
		return
	}
	for _, s := range popularServers {
		t.Run(s.name, func(t *testing.T) { s.test(t, filepath.Join(dir, "servers")) })
	}
}

func (s *npmServer) test(t *testing.T, installed string) {
	folder := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", "-b", "main", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	fill := strings.NewReplacer("$DIR", folder)
	filled := func(words []string) []string {
		words = slices.Clone(words)
		for i, word := range words {
			words[i] = fill.Replace(word)
		}
		return words
	}
	c := &chat{t: t, mark: rand.Text()}
	u := npmUse{
		chat: c, home: t.TempDir(), command: nodePath(t, peersDir(t)), env: s.env,
		args: append([]string{filepath.Join(installed, "node_modules", s.name, s.bin)}, filled(s.args)...),
	}
	begin := time.Now()
	sent := u.sent()
	listed := u.listed()
	if diff := cmp.Diff(sent, listed); diff != "" || len(sent) == 0 {
		t.Errorf("%d tools; the list of the program differs (-sent +listed):\n%s", len(sent), diff)
	}
	if theirs := u.theirs(); !slices.Equal(theirs, sent) {
		t.Errorf("the TypeScript SDK lists %q, not %q", theirs, sent)
	}
	exit, out := u.run(append([]string{"call", "--server", u.quoted()}, filled(s.call)...)...)
	const toolFailed = 5
	if exit != 0 && exit != toolFailed || !s.away && (exit != 0) != s.failed || out == "" || !strings.Contains(out, fill.Replace(s.want)) {
		t.Errorf("call: exit code %d, want %q\n%s", exit, fill.Replace(s.want), out)
	}
	codes := u.examined(s.codes)
	c.gone()
	t.Logf("%s: %d tools; call: exit code %d, %.200q; doctor: %q; %.1f s", s.name, len(sent), exit, out, codes, time.Since(begin).Seconds())
}

// An npmUse is the use of a server.
type npmUse struct {
	*chat
	command string
	args    []string
	env     map[string]string
	home    string
}

// environment is the whole environment of the server, and of the program that starts it.
func (u *npmUse) environment() []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + u.home, "XDG_CONFIG_HOME=" + u.home, markVar + "=" + u.mark}
	for name, value := range u.env {
		env = append(env, name+"="+value)
	}
	return env
}

// sent are the names of the tools in the messages of the server.
func (u *npmUse) sent() []string {
	cmd := exec.CommandContext(bounded(u.t), u.command, u.args...)
	cmd.Env = u.environment()
	in, err := cmd.StdinPipe()
	if err != nil {
		u.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		u.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		_ = cmd.Process.Kill() // it may not end by itself
		_ = cmd.Wait()
	}()
	lines := bufio.NewReader(out)
	u.ask(in, lines, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+legacy+
		`","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	u.write(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	var names []string
	for cursor := json.RawMessage(nil); ; {
		params := "{}"
		if cursor != nil {
			params = fmt.Sprintf(`{"cursor":%s}`, cursor)
		}
		var page struct {
			Tools      []struct{ Name string }
			NextCursor json.RawMessage
		}
		if err := json.Unmarshal(u.ask(in, lines, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":`+params+`}`), &page); err != nil {
			u.t.Fatal(err)
		}
		for _, tool := range page.Tools {
			names = append(names, tool.Name)
		}
		if cursor = page.NextCursor; cursor == nil {
			slices.Sort(names)
			return names
		}
	}
}

func (u *npmUse) write(in io.Writer, message string) {
	if _, err := io.WriteString(in, message+"\n"); err != nil {
		u.t.Fatal(err)
	}
}

// ask returns the result of a request, whose id is 1.
func (u *npmUse) ask(in io.Writer, lines *bufio.Reader, request string) json.RawMessage {
	u.write(in, request)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			u.t.Fatal(err)
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Result json.RawMessage
		}
		if json.Unmarshal(line, &m) == nil && m.Method == "" && string(m.ID) == "1" {
			return m.Result
		}
	}
}

// quoted is the command of the server as one argument.
func (u *npmUse) quoted() string {
	return "'" + strings.Join(append([]string{u.command}, u.args...), "' '") + "'"
}

// run runs the program, and returns its exit code and what it printed.
func (u *npmUse) run(args ...string) (exit int, printed string) {
	cmd := u.parley(args...)
	cmd.Env = u.environment()
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ended := new(exec.ExitError); err != nil && !errors.As(err, &ended) {
		u.t.Fatal(err)
	}
	if stderr.Len() > 0 {
		u.t.Logf("parley %s: %.2000s", args[0], &stderr)
	}
	if args[0] == "call" { // whose error is part of what is wanted
		stdout.Write(stderr.Bytes())
	}
	return cmd.ProcessState.ExitCode(), stdout.String()
}

// listed are the names of the tools in the list of the program.
func (u *npmUse) listed() []string {
	_, out := u.run("tools", "--json", "--server", u.quoted())
	var list struct {
		Tools []struct{ Tool struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		u.t.Errorf("%v: %s", err, out)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Tool.Name)
	}
	slices.Sort(names)
	return names
}

// theirs are the names of the tools in the list of the TypeScript SDK's client.
func (u *npmUse) theirs() []string {
	argument, err := json.Marshal(map[string]any{
		"sdk": "v1", "transport": "stdio", "command": u.command, "args": u.args, "env": u.environment(), "calls": []any{},
	})
	if err != nil {
		u.t.Fatal(err)
	}
	cmd := node(u.t, "builtin-client.mjs", string(argument))
	cmd.Stderr = u.t.Output()
	out, err := cmd.Output()
	if err != nil {
		u.t.Errorf("the TypeScript SDK: %v", err)
		return nil
	}
	var seen struct{ Tools []string }
	if err := json.Unmarshal(out, &seen); err != nil {
		u.t.Errorf("%v: %s", err, out)
	}
	slices.Sort(seen.Tools)
	return seen.Tools
}

// examined are the codes of the doctor's findings, which must be the expected ones. Whether a
// server ends with its input in time depends on the machine.
func (u *npmUse) examined(want []string) []string {
	exit, out := u.run(append([]string{"doctor", "--json", "--timeout", "1m", "--", u.command}, u.args...)...)
	var report doctor.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		u.t.Errorf("doctor: exit code %d, %v\n%s", exit, err, out)
		return nil
	}
	found := make(map[string]bool)
	for _, f := range report.Findings {
		if f.Code == "MCP-CONN-006" {
			continue
		}
		found[f.Code] = true
		if !slices.Contains(want, f.Code) {
			u.t.Errorf("doctor: %s at %s in %q: %s", f.Code, f.Where, f.Revisions, f.Reason)
		}
	}
	codes := slices.Sorted(maps.Keys(found))
	for _, code := range want {
		if !found[code] {
			u.t.Errorf("doctor: %s is not found", code)
		}
	}
	return codes
}
