package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
)

// A site that gives what is no answer ends each command in its time, with the exit code of the guide
// and words of what was wrong. Nothing is sent to another origin.
//
// Attack: malicious servers, token leak on redirect.
func TestRogueSites(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s went elsewhere", r.Method, r.URL) }))
	t.Cleanup(elsewhere.Close)
	body := func(media, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			_, _ = io.WriteString(w, text)
		}
	}
	const answer = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"logging":{}},"serverInfo":{"name":"x","version":"1"}}}`
	type site struct {
		handler        http.HandlerFunc
		inspect, other int // exit codes, and those of trace and record
		said           string
	}
	sites := map[string]site{
		"HTML":             {body("text/html", "<h1>It works!</h1>"), 1, 4, "no MCP endpoint is there, but a page for people"},
		"10 MiB of HTML":   {body("text/html", strings.Repeat("<p>", 3<<20)), 1, 4, "no MCP endpoint is there, but a page for people"},
		"wrong type":       {body("text/plain", "Hello."), 4, 4, "neither JSON nor an event stream (it says: Hello.)"},
		"JSON as text":     {body("text/plain", answer), 0, 0, ""},
		"no type":          {body("", answer), 0, 0, ""},
		"half":             {body("application/json", answer[:40]), 4, 4, "malformed message of the server: parse error"},
		"empty":            {body("application/json", ""), 4, 4, "with status 200 and nothing else"},
		"another id":       {body("application/json", strings.Replace(answer, `"id":1`, `"id":7`, 1)), 4, 4, "no response to the request"},
		"no object":        {body("application/json", `[1]`), 4, 4, "malformed message of the server"},
		"broken UTF-8":     {body("application/json", strings.Replace(answer, `"x"`, "\"\xff\"", 1)), 0, 0, ""},
		"events end":       {body("text/event-stream", ": nothing\n\n"), 4, 4, "the server ended the stream"},
		"an event is HTML": {body("text/event-stream", "data: <h1>\n\n"), 4, 4, "malformed message of the server: parse error"},
		"redirect elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, 1, 4, "which is another origin"},
		"redirect in circle": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusPermanentRedirect)
		}, 1, 4, "which was not followed"},
		"redirect nowhere": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusFound) }, 1, 4, "the server answered 302 Found"},
		"cut off":          {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 4, 4, "connection ended before the answer"},
	}
	for _, status := range []int{
		101, 201, 202, 204, 205, 206, 300, 304, 400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 413, 414, 415, 418, 421, 422, 425, 426,
		428, 429, 431, 451, 499, 500, 501, 502, 503, 504, 505, 511, 520, 599,
	} {
		s := site{func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d Odd\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", status)
			_ = conn.Close()
		}, 1, 4, fmt.Sprint("the server answered ", status)}
		switch {
		case status/100 == 2:
			s.inspect, s.said = 4, fmt.Sprintf("with status %d and nothing else", status)
		case status == http.StatusUnauthorized:
			s.inspect, s.other, s.said = 3, 3, "sign in"
		case status == http.StatusForbidden:
			s.inspect, s.other = 3, 3
		}
		sites[fmt.Sprint("status ", status)] = s
	}
	for name, s := range sites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := httptest.NewServer(s.handler)
			t.Cleanup(at.Close)
			for _, args := range [][]string{
				{"inspect", "--json", "--protocol-era", "legacy", "--connect-timeout", "4m", "--method", "tools/list"},
				{"trace", "--protocol", "2025-11-25", "--timeout", "4m"},
				{"record", "--protocol", "2025-11-25", "--timeout", "4m", "--list", "--out", filepath.Join(t.TempDir(), "cassette")},
			} {
				ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("the command hangs"))
				var out, said output
				exit := cli.Main(ctx, append(args, at.URL+"/mcp"), &kit.Streams{In: strings.NewReader(""), Out: &out, Err: &said})
				if ctx.Err() != nil {
					t.Errorf("%s hangs", args[0])
				}
				cancel()
				want := s.other
				if args[0] == "inspect" {
					want = s.inspect
				}
				if exit != want || !strings.Contains(said.String(), s.said) {
					t.Errorf("%s: exit code %d, want %d and %q\n%s", args[0], exit, want, s.said, said.String())
				}
			}
		})
	}
}
