package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/cli"
)

// command runs the program without a person.
func command(t *testing.T, args ...string) (code int, out, err string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.Main(t.Context(), args, &cli.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

// serveHTTP serves the built-in server as the command does, until the test
// ends, and returns its address without a scheme.
func serveHTTP(t *testing.T, flags ...string) string {
	t.Helper()
	interrupts := make(chan os.Signal, 1)
	said, w := io.Pipe()
	done := make(chan int, 1)
	go func() {
		args := append([]string{"serve", "everything", "--http", "127.0.0.1:0"}, flags...)
		done <- cli.Main(context.Background(), args, &cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: w, Interrupts: interrupts})
		w.Close()
	}()
	lines := bufio.NewReader(said)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	rest := make(chan struct{})
	go func() {
		defer close(rest)
		_, _ = io.Copy(io.Discard, lines)
	}()
	t.Cleanup(func() {
		interrupts <- os.Interrupt
		if code := <-done; code != 0 {
			t.Errorf("the server ended with %d", code)
		}
		<-rest
	})
	address := regexp.MustCompile(`http://([^/]+)/mcp;`).FindStringSubmatch(line)
	if address == nil {
		t.Fatalf("no address in %q", line)
	}
	return address[1]
}

// Every command can be about a server at a URL, of every revision and over
// every transport. Proves: PART-SERVER (remote), FLOW-INIT, FLOW-SHUTDOWN.
func TestServersAtURLs(t *testing.T) {
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
		// A server of its own for each, since it limits how often it is asked.
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
	nothing := httptest.NewServer(http.NotFoundHandler())
	defer nothing.Close()
	for _, tt := range []struct {
		args  []string
		code  int
		words string
	}{
		{[]string{"--server", closed.URL}, 4, "connection refused"},
		{[]string{"--server", refusing.URL}, 3, "authorization"},
		{[]string{"--server", moved.URL}, 4, "https://elsewhere.example/mcp"},
		{[]string{"--server", nothing.URL}, 4, "404"},
		{[]string{"--server", "http://"}, 1, "names no host"},
		{[]string{"--server", "ftp://example.com/"}, 1, "scheme"},
		{[]string{"--server", "https://ada:secret@example.com/"}, 1, "--header"},
		{[]string{"--server", "http://example.com/", "--header", "A: secret"}, 1, "unencrypted"},
		{[]string{"--server", closed.URL, "--header", "secret"}, 1, "Name: value"},
		{[]string{"--server", closed.URL, "--server", "https://other.example", "--header", "A: secret"}, 1, "one server"},
	} {
		code, out, err := command(t, append([]string{"tools"}, tt.args...)...)
		if code != tt.code || !strings.Contains(err, tt.words) || out != "" {
			t.Errorf("parley tools %v: exit code %d, %q\n%s", tt.args, code, out, err)
		}
		if strings.Contains(err, "secret") && !strings.Contains(tt.words, "--header") {
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
	for _, args := range [][]string{
		{"serve", "everything", "--allow-host", "x"},
		{"serve", "everything", "--http", "8080"},
	} {
		if code, _, err := command(t, args...); code != 1 {
			t.Errorf("parley %v: exit code %d\n%s", args, code, err)
		}
	}
}
