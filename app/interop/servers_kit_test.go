package interop_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-mcp/parley/app/interop/gosdk"
	"github.com/parley-mcp/parley/app/interop/mcpgo"
	"github.com/parley-mcp/parley/app/interop/script"
)

// A useCase is what each client of others does with one built-in server: it connects, lists the
// tools, makes the calls in order, and reads a resource.
type useCase struct {
	// args are those of 'parley serve': the name of the server, and what it needs.
	args []string
	// env is added to the environment of the server, as "key=value".
	env []string
	// tools are the names of all tools, in any order.
	tools []string
	calls []useCall
	// read is the URI of a resource whose text contains readWant; none is read if it is empty.
	read, readWant string
}

// A useCall is a call of a tool. The text of its first content contains want.
type useCall struct {
	tool   string
	args   map[string]any
	want   string
	failed bool // the tool fails, and says so in its result
}

// useBuiltin has every client go through a use case with a built-in server, over stdio and HTTP, in
// each revision or era that the client speaks. Each gets a use case, and a server, of its own. The
// clients in Go need nothing but this module; the others need PARLEY_TEST_PEERS.
func useBuiltin(t *testing.T, newUse func(t *testing.T) useCase) {
	t.Helper()
	parley, err := buildParley()
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range append([]string{modern}, handshakes...) {
		t.Run("go-sdk stdio "+version, func(t *testing.T) {
			t.Parallel()
			s := newUse(t)
			cmd := exec.Command(parley, s.command()...)
			cmd.Env = s.environment(t)
			c, err := gosdk.Connect(bounded(t), &mcp.CommandTransport{Command: cmd}, version)
			s.byGo(t, c, err, version)
		})
		t.Run("go-sdk http "+version, func(t *testing.T) {
			t.Parallel()
			s := newUse(t)
			c, err := gosdk.Connect(bounded(t), &mcp.StreamableClientTransport{Endpoint: s.serve(t)}, version)
			s.byGo(t, c, err, version)
		})
		t.Run("mcp-go stdio "+version, func(t *testing.T) {
			t.Parallel()
			s := newUse(t)
			c, err := mcpgo.Connect(bounded(t), transport.NewStdio(parley, s.environment(t), s.command()...), version)
			s.byGo(t, c, err, version)
		})
		t.Run("mcp-go http "+version, func(t *testing.T) {
			t.Parallel()
			s := newUse(t)
			c, err := mcpgo.Connect(bounded(t), dialMCPGo(t, s.serve(t)), version)
			s.byGo(t, c, err, version)
		})
	}
	for _, transport := range []string{"stdio", "http"} {
		t.Run("TypeScript v1 "+transport, func(t *testing.T) {
			t.Parallel()
			peersDir(t)
			u := newUse(t)
			u.byNode(t, transport, map[string]any{"sdk": "v1"}, legacy)
		})
		for name, era := range map[string]struct {
			mode    any
			version string
		}{"legacy": {"legacy", legacy}, "auto": {"auto", modern}, "pinned": {map[string]string{"pin": modern}, modern}} {
			t.Run("TypeScript v2 "+transport+" "+name, func(t *testing.T) {
				t.Parallel()
				peersDir(t)
				u := newUse(t)
				u.byNode(t, transport, map[string]any{"sdk": "v2", "mode": era.mode}, era.version)
			})
		}
		for _, era := range []string{"legacy", "auto", "modern"} {
			t.Run("Inspector "+transport+" "+era, func(t *testing.T) {
				t.Parallel()
				peersDir(t)
				u := newUse(t)
				u.byInspector(t, transport, era)
			})
		}
	}
}

// command is what parley is started with for stdio.
func (s *useCase) command() []string { return append([]string{"serve"}, s.args...) }

// environment is the whole environment of the server, with settings of its own.
func (s *useCase) environment(t *testing.T) []string {
	t.Helper()
	home := t.TempDir()
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + home}, s.env...)
}

// serve starts the server over HTTP, which ends with the test.
func (s *useCase) serve(t *testing.T) (url string) {
	t.Helper()
	return serveBuiltin(t, s.env, s.args...)
}

// serveBuiltin starts 'parley serve' with the arguments over HTTP, which ends with the test.
func serveBuiltin(t *testing.T, env []string, args ...string) (url string) {
	t.Helper()
	parley, err := buildParley()
	if err != nil {
		t.Fatal(err)
	}
	s := useCase{args: append(slices.Clone(args), "--http", "127.0.0.1:0"), env: env}
	cmd := exec.Command(parley, s.command()...)
	cmd.Env = s.environment(t)
	cmd.WaitDelay = 5 * time.Second
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	drained := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-drained
		_ = cmd.Wait()
	})
	said := ""
	for err == nil && url == "" {
		var line string
		line, err = lines.ReadString('\n')
		said += line
		if _, rest, found := strings.Cut(line, " at "); found {
			url, _, _ = strings.Cut(rest, ";")
		}
	}
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, lines)
	}()
	if url == "" {
		t.Fatalf("parley serve told no URL: %v\n%s", err, said)
	}
	return url
}

// byGo goes through it with a client in Go; err is that of its connection.
func (s *useCase) byGo(t *testing.T, c script.Client, err error, version string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	ctx := bounded(t)
	defer func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	if got := c.Version(); got != version {
		t.Errorf("version %s, want %s", got, version)
	}
	tools, err := c.Tools(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s.checkTools(t, tools)
	for _, call := range s.calls {
		got, err := c.Call(ctx, call.tool, call.args, nil)
		if err != nil {
			t.Fatalf("%s: %v", call.tool, err)
		}
		call.check(t, got.Text, got.Failed)
	}
	if s.read != "" {
		text, err := c.Read(ctx, s.read)
		if err != nil {
			t.Fatal(err)
		}
		s.checkRead(t, text)
	}
}

// byNode goes through it with a client of a TypeScript SDK. Every mode must agree on version.
func (s *useCase) byNode(t *testing.T, transport string, options map[string]any, version string) {
	t.Helper()
	options["transport"] = transport
	if transport == "http" {
		options["url"] = s.serve(t)
	} else {
		parley, err := buildParley()
		if err != nil {
			t.Fatal(err)
		}
		options["command"], options["args"], options["env"] = parley, s.command(), s.environment(t)
	}
	calls := make([]map[string]any, 0, len(s.calls))
	for _, call := range s.calls {
		calls = append(calls, map[string]any{"name": call.tool, "arguments": call.args})
	}
	options["calls"], options["read"] = calls, s.read
	argument, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	cmd := node(t, "builtin-client.mjs", string(argument))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the client failed: %v\n%s%s", err, out, stderr.Bytes())
	}
	var saw struct {
		Version string
		Tools   []string
		Calls   []struct {
			Text   string
			Failed bool
		}
		Read string
	}
	if err := json.Unmarshal(out, &saw); err != nil {
		t.Fatalf("the client printed %q: %v", out, err)
	}
	if saw.Version != version {
		t.Errorf("version %s, want %s", saw.Version, version)
	}
	s.checkTools(t, saw.Tools)
	if len(saw.Calls) != len(s.calls) {
		t.Fatalf("%d calls, want %d", len(saw.Calls), len(s.calls))
	}
	for i, call := range s.calls {
		call.check(t, saw.Calls[i].Text, saw.Calls[i].Failed)
	}
	if s.read != "" {
		s.checkRead(t, saw.Read)
	}
}

// byInspector has the Inspector list the tools with a check of their schemas, and make the first
// call: it connects anew for each.
func (s *useCase) byInspector(t *testing.T, transport, era string) {
	t.Helper()
	var target []string
	if transport == "http" {
		target = []string{s.serve(t), "--transport", "http"}
	} else {
		parley, err := buildParley()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range s.environment(t) {
			target = append(target, "-e", e)
		}
		target = append(append(target, parley), s.command()...)
	}
	var list struct{ Tools []struct{ Name string } }
	inspector(t, era, target, &list, "--method", "tools/list", "--strict")
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	s.checkTools(t, names)
	if len(s.calls) == 0 || s.calls[0].failed { // the Inspector's exit code tells of failures
		return
	}
	args := s.calls[0].args
	if args == nil {
		args = map[string]any{}
	}
	arguments, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	inspector(t, era, target, &result, "--method", "tools/call", "--tool-name", s.calls[0].tool, "--tool-args-json", string(arguments))
	if len(result.Content) == 0 {
		t.Fatalf("%s: no content", s.calls[0].tool)
	}
	s.calls[0].check(t, result.Content[0].Text, result.IsError)
}

func (s *useCase) checkTools(t *testing.T, got []string) {
	t.Helper()
	if diff := cmp.Diff(slices.Sorted(slices.Values(s.tools)), slices.Sorted(slices.Values(got))); diff != "" {
		t.Errorf("the tools differ (-want +got):\n%s", diff)
	}
}

func (s *useCase) checkRead(t *testing.T, text string) {
	t.Helper()
	if !strings.Contains(text, s.readWant) {
		t.Errorf("%s: %q does not contain %q", s.read, text, s.readWant)
	}
}

func (c *useCall) check(t *testing.T, text string, failed bool) {
	t.Helper()
	if failed != c.failed || !strings.Contains(text, c.want) {
		t.Errorf("%s %v: failed %v, want %v; %q must contain %q", c.tool, c.args, failed, c.failed, text, c.want)
	}
}
