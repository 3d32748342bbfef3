package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
)

// command runs the program without a person.
func command(t *testing.T, args ...string) (code int, out, err string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.Main(t.Context(), args, &kit.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

// serveHTTP serves the built-in server as the command does, until the test
// ends, and returns its address without a scheme.
func serveHTTP(t *testing.T, flags ...string) string {
	t.Helper()
	address, stop := startHTTP(t, flags...)
	t.Cleanup(stop)
	return address
}

// startHTTP is serveHTTP for tests that end the server themselves, with stop,
// which waits for its end.
func startHTTP(t *testing.T, flags ...string) (address string, stop func()) {
	t.Helper()
	return start(t, `http://([^/]+)/mcp;`, io.Discard, append([]string{"serve", "everything", "--http", "127.0.0.1:0"}, flags...)...)
}

// A server at a name below localhost is on this machine, for commands that use it as for those that
// examine it, whether resolvers know the name or not.
func TestNamesBelowLocalhost(t *testing.T) {
	t.Parallel()
	address := "http://app.localhost" + strings.TrimPrefix(serveHTTP(t), "127.0.0.1") + "/mcp"
	if code, out, said := command(t, "tools", "--server", address); code != 0 || !strings.Contains(out, "echo") {
		t.Errorf("tools ended with %d\n%s%s", code, out, said)
	}
	if code, out, said := command(t, "auth", "doctor", address); code != 0 || !strings.Contains(out, "not 401") {
		t.Errorf("auth doctor ended with %d\n%s%s", code, out, said)
	}
}

// What is under way when the person ends the server finishes, over every
// transport. Proves: FLOW-SHUTDOWN.
func TestServeHTTPFinishes(t *testing.T) {
	for _, url := range []string{"http://ADDRESS/mcp", "http://ADDRESS/sse", "ws://ADDRESS/ws"} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			address, stop := startHTTP(t)
			defer stop()
			said, w := io.Pipe()
			var out bytes.Buffer
			done := make(chan int, 1)
			go func() {
				args := []string{"call", "trigger-long-running-operation", "duration=1", "steps=10", "--server", strings.Replace(url, "ADDRESS", address, 1)}
				done <- cli.Main(context.Background(), args, &kit.Streams{In: strings.NewReader(""), Out: &out, Err: w})
				w.Close()
			}()
			lines := bufio.NewReader(said)
			if first, err := lines.ReadString('\n'); err != nil || !strings.Contains(first, "1 of 10") {
				t.Fatalf("the call said %q, error %v, want its progress", first, err)
			}
			rest := make(chan string, 1)
			go func() {
				text, _ := io.ReadAll(lines)
				rest <- string(text)
			}()
			stop()
			if code := <-done; code != 0 || !strings.HasPrefix(out.String(), "done") {
				t.Errorf("the call ended with %d and gave %q\n%s", code, out.String(), <-rest)
			}
		})
	}
}

// Every command can be about a server at a URL, of every revision and over
// every transport. Proves: PART-SERVER (remote), FLOW-INIT, FLOW-SHUTDOWN.
func TestServersAtURLs(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	for _, target := range [][]string{
		{"http://ADDRESS/mcp"},
		{"http://ADDRESS/sse"},
		{"http://ADDRESS/mcp", "--protocol", "2026-07-28"},
		{"http://ADDRESS/mcp", "--protocol", "2025-11-25"},
		{"http://ADDRESS/mcp", "--protocol", "2025-06-18"},
		{"http://ADDRESS/mcp", "--protocol", "2025-03-26"},
		{"http://ADDRESS/mcp", "--protocol", "2024-11-05"},
		{"ws://ADDRESS/ws"},
		{"it=http://ADDRESS/mcp", "--header", "Authorization: Bearer secret", "--header", "X-Other: 1"},
	} {
		// A server of its own for each, since it limits how often it is asked, and settings
		// of its own, since an older revision says less of the tools that were agreed to.
		t.Setenv("XDG_CONFIG_HOME", t.TempDir())
		target[0] = strings.Replace(target[0], "ADDRESS", serveHTTP(t), 1)
		for _, c := range []struct {
			args []string
			out  string
		}{
			{[]string{"call", "add", "a=2", "b=3"}, "5\n"},
			{[]string{"run", "--allow", "*", "add 2 and 3"}, "5\n"},
			{[]string{"read", "demo://text"}, "This text does not change.\n"},
			{[]string{"tools"}, "add(a: number, b: number)"},
			{[]string{"prompt", "greeting", "name=Ada", "style=formal"}, "Ada"},
			{[]string{"complete", "prompt", "greeting", "style=fo"}, "formal"},
		} {
			args := append(append(append([]string{}, c.args...), "--server"), target...)
			code, out, err := command(t, args...)
			if code != 0 || !strings.Contains(out, c.out) {
				t.Errorf("parley %s: exit code %d, %q\n%s", strings.Join(args, " "), code, out, err)
			}
			if strings.Contains(out+err, "secret") {
				t.Errorf("parley %s shows a secret:\n%s%s", strings.Join(args, " "), out, err)
			}
		}
	}
}

// What is wrong with a URL, or with the server there, is said with the way out.
func TestFaultsOfURLs(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer refusing.Close()
	moved := httptest.NewServer(http.RedirectHandler("https://elsewhere.example/mcp?token=secret", http.StatusTemporaryRedirect))
	defer moved.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!doctype html><title>Welcome</title>")
	}))
	defer page.Close()
	nothing := httptest.NewServer(http.NotFoundHandler())
	defer nothing.Close()
	for _, tt := range []struct {
		args  []string
		code  int
		words string
	}{
		{[]string{"--server", closed.URL}, 4, "connection refused\n  Check the address"},
		{[]string{"--server", "ws" + strings.TrimPrefix(closed.URL, "http")}, 4, "connection refused\n  Check the address"},
		{[]string{"--server", "https" + strings.TrimPrefix(nothing.URL, "http")}, 4, "write http:// or ws://"},
		{[]string{"--server", strings.TrimPrefix(nothing.URL, "http://") + "/mcp"}, 1, "the complete URL"},
		{[]string{"--server", refusing.URL}, 3, "wants you to sign in: run 'parley login " + refusing.URL + "'; if it uses a key instead, send it with --header 'Name: value'"},
		{[]string{"--server", refusing.URL, "--header", "X-Api-Key: wrong"}, 3, "send it with --header"},
		{[]string{"--server", moved.URL}, 4, "https://elsewhere.example/mcp"},
		{[]string{"--server", nothing.URL}, 4, "404"},
		{[]string{"--server", page.URL}, 4, "initialize: the server does not speak this transport: no MCP endpoint is there, but a page for people (text/html): check the URL"},
		{[]string{"--server", page.URL, "--protocol", "2026-07-28"}, 4, "check the URL"},
		{[]string{"--server", "http://"}, 1, "missing host in the URL"},
		{[]string{"--server", "ftp://example.com/"}, 1, "scheme"},
		{[]string{"--server", "https://ada:secret@example.com/"}, 1, "use --header instead"},
		{[]string{"--server", "it=https://ada:secret@example.com/mcp?key=secret"}, 1, `"it=https://…@example.com/mcp?…"`},
		{[]string{"--server", "http://[::1/mcp?key=secret"}, 1, "missing ']' in host"},
		{[]string{"--server", "http://ada:sec/ret@example.com"}, 1, "not a URL; write it like"},
		{[]string{"--server", "http://example.com/", "--header", "A: secret"}, 1, "unencrypted"},
		{[]string{"--server", closed.URL, "--header", "secret"}, 1, "Name: value"},
		{[]string{"--server", closed.URL, "--header", "Na(me: secret"}, 1, "Name: value"},
		{[]string{"--server", closed.URL, "--header", "Name: x\r\nOther: secret"}, 1, "Name: value"},
		{[]string{"--server", closed.URL, "--header", "host: secret"}, 1, "cannot set Host, which comes from the URL"},
		{[]string{"--header", "A: secret"}, 1, "exactly one server, at a URL"},
		{[]string{"--server", "everything", "--header", "A: secret"}, 1, "exactly one server, at a URL"},
		{[]string{"--server", closed.URL, "--server", "https://other.example", "--header", "A: secret"}, 1, "one server"},
	} {
		code, out, err := command(t, append([]string{"tools"}, tt.args...)...)
		if code != tt.code || !strings.Contains(err, tt.words) || out != "" {
			t.Errorf("parley tools %v: exit code %d, %q\n%s", tt.args, code, out, err)
		}
		if strings.Contains(err, "secret") {
			t.Errorf("parley tools %v shows a secret:\n%s", tt.args, err)
		}
		if n := strings.Count(err, "404 Not Found"); n > 1 {
			t.Errorf("the same is said %d times:\n%s", n, err)
		}
	}
}

// Pages of other sites are refused unless they are listed. Proves: SEC-HTTP-1.
func TestServeHTTPOrigins(t *testing.T) {
	address := serveHTTP(t, "--allow-origin", "https://app.example", "--allow-host", "mcp.example")
	for origin, want := range map[string]int{"https://app.example": http.StatusOK, "https://evil.example": http.StatusForbidden} {
		for _, host := range []string{"mcp.example", "evil.example"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/mcp", strings.NewReader(
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"page","version":"1"}}}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Origin", origin)
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			status := want
			if host == "evil.example" {
				status = http.StatusForbidden
			}
			if res.StatusCode != status {
				t.Errorf("Origin %s and Host %s: %s, want %d", origin, host, res.Status, status)
			}
		}
	}
}

// What could not work is said at once, with the way out.
func TestServeHTTPUsage(t *testing.T) {
	taken := serveHTTP(t)
	for _, tt := range []struct {
		args  []string
		words string
	}{
		{[]string{"--allow-host", "x"}, "require --http"},
		{[]string{"--sessionless"}, "requires --http"},
		{[]string{"--http", "8080"}, "HOST:PORT"},
		{[]string{"--http", ""}, "HOST:PORT"},
		{[]string{"--server", "everything"}, "unknown flag: --server"},
		{[]string{"--http", taken}, "choose another port"},
		{[]string{"--http", ":99999"}, "a free port"},
		{[]string{"--trusted-proxy", "127.0.0.1"}, "require --http"},
		{[]string{"--http", taken, "--trusted-proxy", "0.0.0.0/0"}, "name the network of the proxy alone"},
		{[]string{"--http", taken, "--trusted-proxy", "proxy.example"}, "write a network like 10.0.0.0/8"},
		{[]string{"--http", taken, "--allow-origin", "app.example"}, "like https://app.example"},
		{[]string{"--http", taken, "--allow-origin", "https://app.example/"}, "like https://app.example"},
		{[]string{"--http", taken, "--allow-origin", "*"}, "like https://app.example"},
		{[]string{"--http", taken, "--allow-origin", "https://*.example"}, "like https://app.example"},
		{[]string{"--http", taken, "--allow-host", "https://app.example"}, "like mcp.example"},
		{[]string{"--metrics", "9090"}, "HOST:PORT"},
		{[]string{"--metrics", ""}, "HOST:PORT"},
		{[]string{"--metrics", taken}, "choose another port"},
		{[]string{"--otlp", ""}, "like http://localhost:4318"},
		{[]string{"--otlp", "localhost:4318"}, "like http://localhost:4318"},
		{[]string{"--otlp", "http://me:secret@localhost:4318"}, "as a header"},
	} {
		code, _, err := command(t, append([]string{"serve", "everything"}, tt.args...)...)
		if code != 1 || !strings.Contains(err, tt.words) {
			t.Errorf("parley serve everything %v: exit code %d\n%s", tt.args, code, err)
		}
	}
}

// Without sessions a client of a revision that has them gets no id for one, and
// its calls are served all the same.
func TestServeSessionless(t *testing.T) {
	post := func(address, body string) (id, answer string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.Header.Get("Mcp-Session-Id"), string(text)
	}
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	if id, answer := post(serveHTTP(t), hello); id == "" {
		t.Errorf("by default there is no session: %s", answer)
	}
	address := serveHTTP(t, "--sessionless")
	if id, answer := post(address, hello); id != "" || !strings.Contains(answer, "2025-11-25") {
		t.Errorf("initialize: session %q, %s", id, answer)
	}
	if _, answer := post(address, list); !strings.Contains(answer, `"echo"`) {
		t.Errorf("the list is %s", answer)
	}
}
