package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
)

// The exit codes of failures that have no server to answer, or one that does not.
func TestInspectExitCodes(t *testing.T) {
	t.Parallel()
	// The system never picks port 1 for a listener, so nothing answers there.
	const nowhere = "http://127.0.0.1:1/mcp"
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	answering := func(status int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(s.Close)
		return s.URL + "/mcp"
	}
	for name, test := range map[string]struct {
		args []string
		exit int
		code string
	}{
		"unreachable":    {[]string{nowhere}, 4, "unreachable"},
		"silent":         {[]string{"--connect-timeout", "50", "http://" + silent.Addr().String() + "/mcp"}, 4, "unreachable"},
		"silent command": {[]string{"--connect-timeout", "50ms", "--", "sleep", "100"}, 4, "unreachable"},
		"unauthorized":   {[]string{answering(http.StatusUnauthorized)}, 3, "auth_required"},
		"forbidden":      {[]string{answering(http.StatusForbidden)}, 3, "auth_required"},
		"no endpoint":    {[]string{answering(http.StatusNotFound)}, 1, "http_status"},
		"no command":     {[]string{"--", "no-such-command"}, 1, "command_not_started"},
		"ends at once":   {[]string{"--", "false"}, 1, "server_exited"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exit, out, stderr := command(t, append([]string{"inspect", "--json", "--method", "tools/list"}, test.args...)...)
			var told struct {
				Error struct{ Code, Message string }
			}
			if err := json.Unmarshal([]byte(stderr), &told); err != nil {
				t.Fatalf("exit code %d, standard error is not one object: %v\n%s", exit, err, stderr)
			}
			if exit != test.exit || told.Error.Code != test.code || told.Error.Message == "" || out != "" {
				t.Errorf("exit code %d and %+v, want %d and %s; printed %q", exit, told.Error, test.exit, test.code, out)
			}
		})
	}
}

// At a terminal a failure is told in words, unless a format is chosen; what a server wrote is
// escaped.
func TestInspectAtTerminal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		flags []string
		want  string
	}{
		{nil, "parley: the server lists no tool"},
		{[]string{"--json"}, `{"error":{`},
		{[]string{"--format", "text"}, `{"error":{`},
	} {
		var stderr bytes.Buffer
		args := append([]string{"inspect", "--method", "tools/call", "--tool-name", "nope"}, append(test.flags, "everything")...)
		exit := cli.Main(t.Context(), args, &kit.Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &stderr, ErrTerminal: true})
		if exit != 5 || !strings.HasPrefix(stderr.String(), test.want) {
			t.Errorf("%v: exit code %d and %q, want 5 and %q", test.flags, exit, stderr.String(), test.want)
		}
	}
	var stdout bytes.Buffer
	exit := cli.Main(t.Context(), []string{"inspect", "--json", "--method", "tools/call", "--tool-name", "echo", "--tool-args-json", `{"message":"a\u009b31mb"}`, "everything"},
		&kit.Streams{In: strings.NewReader(""), Out: &stdout, Err: &bytes.Buffer{}, OutTerminal: true})
	if exit != 0 || strings.Contains(stdout.String(), "\u009b") {
		t.Errorf("exit code %d, and at a terminal %q", exit, stdout.String())
	}
}

// Ctrl-C ends watching, which is no failure.
func TestInspectWatchInterrupted(t *testing.T) {
	t.Parallel()
	interrupts := make(chan os.Signal, 1)
	out := new(output)
	go func() {
		out.wait("resources/updated", t.Context().Done())
		interrupts <- os.Interrupt
	}()
	exit := cli.Main(t.Context(), []string{"inspect", "--method", "watch", "--uri", "demo://ticks", "everything"}, &kit.Streams{
		In: strings.NewReader(""), Out: out, Err: io.Discard, Interrupts: interrupts,
	})
	if exit != 0 {
		t.Errorf("exit code %d", exit)
	}
}

// A server that ends while it is watched is a failure.
func TestInspectWatchLost(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	exit, _, stderr := command(t, "inspect", "--json", "--method", "watch", "--protocol-era", "legacy", "--", "sh", "-c", `for n in 1 2; do IFS= read -r line; printf '%s\n' "$line"; done | "$0" serve everything`, self)
	if exit == 0 || exit == 70 || !strings.HasPrefix(stderr, `{"error":{"code":"server_exited",`) {
		t.Errorf("exit code %d, %q", exit, stderr)
	}
}

// At a terminal the arguments of a tool are asked for, if none are given.
func TestInspectForm(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		input string
		flags []string
		exit  int
		out   string
		asked string
	}{
		"filled in":    {"two\n2\n3\n", nil, 0, `"sum": 5`, "a (a number"},
		"input ended":  {"2\n", nil, 1, "", "the input ended before all arguments were given"},
		"arguments":    {"", []string{"--tool-arg", "a=1", "--tool-arg", "b=2"}, 0, `"sum": 3`, ""},
		"for a script": {"", []string{"--json"}, 5, `"isError":true`, "tool_is_error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exit, out, stderr := run(t, test.input, append(append([]string{"inspect", "--method", "tools/call", "--tool-name", "add"}, test.flags...), "everything")...)
			if exit != test.exit || !strings.Contains(out, test.out) || !strings.Contains(stderr, test.asked) {
				t.Errorf("exit code %d\n%s\n%s", exit, out, stderr)
			}
		})
	}
	// A choice by its number, and a default.
	exit, out, stderr := run(t, "7\n3\n\n", "inspect", "--method", "tools/call", "--tool-name", "get-annotated-message", "everything")
	if exit != 0 || strings.Contains(out, "image/png") || !strings.Contains(stderr, "  3 debug\n") || !strings.Contains(stderr, "Enter for false") {
		t.Errorf("exit code %d\n%s\n%s", exit, out, stderr)
	}
}

// Each method over HTTP.
func TestInspectMethods(t *testing.T) {
	url := "http://" + serveHTTP(t) + "/mcp"
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"resources/list"}, `{"resources":[{"uri":"demo://image","name":"image",`},
		{[]string{"resources/templates/list"}, `"uriTemplate":"demo://cities/`},
		{[]string{"resources/read", "--uri", "demo://cities/Peru/Lima"}, `"text":"Lima in Peru is known for fog.\n"`},
		{[]string{"prompts/list"}, `{"prompts":[{"name":"args-prompt"`},
		{[]string{"prompts/get", "--prompt-name", "greeting", "--prompt-args", "name=Ada"}, `"text":"Please greet Ada."`},
		{[]string{"completion/complete", "--prompt-name", "briefing", "--complete-arg-name", "city", "--complete-arg-value", "m", "--prompt-args", "country=Japan"}, `"completion":{"values":[`},
		{[]string{"prompts/complete", "--complete-ref-type", "ref/resource", "--complete-ref", "demo://cities/{country}/{city}", "--complete-arg-name", "country", "--complete-arg-value", "p"}, `"values":["Peru"]`},
		{[]string{"logging/setLevel", "--log-level", "debug", "--protocol-era", "legacy"}, `{}`},
		{[]string{"ping"}, `{}`},
		{[]string{"tools/call", "--tool-name", "weather", "--tool-arg", "city=Oslo", "--metadata", "com.example/trace=7", "--tool-metadata", `com.example/why="test"`}, `"structuredContent"`},
	} {
		exit, out, stderr := command(t, append([]string{"inspect", "--json", "--server-url", url, "--method"}, test.args...)...)
		if exit != 0 || !strings.Contains(out, test.want) || stderr != "" {
			t.Errorf("%v: exit code %d\n%s%s", test.args, exit, out, stderr)
		}
	}
}

// A wrong command line is told with what to do, and exit code 1.
func TestInspectUsage(t *testing.T) {
	t.Parallel()
	const own = "-- parley serve everything"
	for line, want := range map[string]string{
		"--method nosuch everything":                                                            "unknown method",
		"--method tools/list --format xml everything":                                           "--format",
		"--method tools/list --nosuch everything":                                               "unknown flag: --nosuch",
		"--method resources/read everything":                                                    "resources/read requires --uri",
		"--method prompts/get everything":                                                       "prompts/get requires --prompt-name",
		"--method tools/call everything":                                                        "tools/call requires --tool-name",
		"--method completion/complete everything":                                               "requires --prompt-name or --uri",
		"--method tools/call --tool-name add --tool-args-json [ everything":                     "must be a JSON object",
		"--method tools/call --tool-name add --tool-arg a everything":                           "must be NAME=VALUE",
		"--method tools/call --tool-name add --tool-arg a=1 --tool-args-json {} everything":     "cannot be used together",
		"--method tools/list --connect-timeout soon everything":                                 "must be milliseconds",
		"--method tools/list --header A:b " + own:                                               "requires a server at a URL",
		"--method tools/list -e A=b http://127.0.0.1:1/mcp":                                     "requires the command",
		"--method tools/list --cwd /tmp http://127.0.0.1:1/mcp":                                 "requires the command",
		"--method tools/list --transport sse " + own:                                            "requires a URL",
		"--method tools/list --transport stdio http://127.0.0.1:1/mcp":                          "requires the command",
		"--method tools/list --protocol 2025-11-25 --protocol-era modern everything":            "is not a version of --protocol-era modern",
		"--method tools/list --server-url nowhere":                                              "invalid URL",
		"--method tools/list --server-url http://127.0.0.1:1/mcp everything":                    "must be named once",
		"--method tools/list":                                                                   "missing server",
		"--method tools/list nosuch":                                                            "not in your configuration",
		"--method prompts/list --strict everything":                                             "--strict requires --method tools/list",
		"--method prompts/list --app-info everything":                                           "--app-info requires",
		"--method tools/list --verify everything":                                               "--verify requires",
		"--method skills/list --require-digests everything":                                     "requires --verify",
		"--method tools/list --output-format raw everything":                                    "requires --output",
		"--method tools/list --output x --output-format raw everything":                         "requires tools/call or resources/read",
		"--method watch --count -1 everything":                                                  "must be at least 1",
		"--method logging/setLevel --log-level loud everything":                                 "must be one of",
		"--method tools/list --load everything":                                                 "--load requires --method tools/call",
		"--method tools/call --load everything":                                                 "tools/call requires --tool-name",
		"--method tools/call --tool-name add --load-rate 3 everything":                          "--load-rate requires --load",
		"--method tools/call --tool-name add --load --load-rate 0 everything":                   "must be above 0",
		"--method tools/call --tool-name add --load --load-requests 0 everything":               "must be at least 1",
		"--method tools/call --tool-name add --load --load-concurrency 0 everything":            "must be at least 1",
		"--method tools/call --tool-name add --load --load-concurrency 1001 everything":         "1 to 1000",
		"--method tools/call --tool-name add --load --load-duration -1 everything":              "a number of seconds above 0",
		"--method tools/call --tool-name add --load --app-info everything":                      "--app-info cannot be used with --load",
		"--method tools/call --tool-name add --load --output x everything":                      "--output cannot be used with --load",
		"--method tools/call --tool-name add --load http://load.example/mcp":                    "is not on this machine",
		"--method tools/call --tool-name add --metadata io.modelcontextprotocol/x=1 everything": "is reserved",
	} {
		exit, out, stderr := command(t, append([]string{"inspect"}, strings.Fields(line)...)...)
		if exit != 1 || out != "" || !strings.HasPrefix(stderr, `{"error":{"code":"error",`) || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d\n%s%s", line, exit, out, stderr)
		}
	}
}
