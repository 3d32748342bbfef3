package cli_test

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/cli"
)

// The exit codes of failures that have no server to answer, or one that does not.
func TestInspectExitCodes(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nowhere := "http://" + closed.Addr().String() + "/mcp"
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
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
		exit := cli.Main(t.Context(), args, &cli.Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &stderr, ErrTerminal: true})
		if exit != 5 || !strings.HasPrefix(stderr.String(), test.want) {
			t.Errorf("%v: exit code %d and %q, want 5 and %q", test.flags, exit, stderr.String(), test.want)
		}
	}
	var stdout bytes.Buffer
	exit := cli.Main(t.Context(), []string{"inspect", "--json", "--method", "tools/call", "--tool-name", "echo", "--tool-args-json", `{"message":"a\u009b31mb"}`, "everything"},
		&cli.Streams{In: strings.NewReader(""), Out: &stdout, Err: &bytes.Buffer{}, OutTerminal: true})
	if exit != 0 || strings.Contains(stdout.String(), "\u009b") {
		t.Errorf("exit code %d, and at a terminal %q", exit, stdout.String())
	}
}
