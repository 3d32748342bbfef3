package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The server of a file, with its roots and headers; those of the command line take their place.
func TestInspectConfig(t *testing.T) {
	t.Parallel()
	heard := make(chan http.Header, 100)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard <- r.Header.Clone()
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(site.Close)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(strings.NewReplacer("SELF", filepath.ToSlash(self), "SITE", site.URL).Replace(text)), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	one := write("one.json", `{"mcpServers":{"own":{"command":"SELF","args":["serve","everything"],"protocolEra":"legacy","roots":[{"uri":"file:///work","name":"work"}]}}}`)
	two := write("two.json", `{"mcpServers":{"own":{"command":"SELF","args":["serve","everything"]},"far":{"url":"SITE/mcp","headers":{"X-Key":"of-the-file","X-Other":"b"}}}}`)
	for _, test := range []struct {
		args []string
		exit int
		want string
	}{
		{[]string{"--config", one, "--method", "initialize"}, 0, `"protocolVersion":"2025-11-25"`},
		{[]string{"--catalog", one, "--server", "own", "--method", "tools/call", "--tool-name", "get-roots-list"}, 0, "file:///work"},
		{[]string{"--config", one, "--method", "roots/list"}, 0, `{"roots":[{"uri":"file:///work","name":"work"}]}`},
		{[]string{"--config", one, "--method", "roots/set", "--roots-json", `[{"uri":"file:///other"}]`}, 0, `{"roots":[{"uri":"file:///other"}]}`},
		{[]string{"--config", two, "--server", "own", "--method", "initialize"}, 0, `"name":"everything"`},
		{[]string{"--config", two, "--method", "initialize"}, 1, "has 2 servers; name one with --server: own, far"},
		{[]string{"--config", two, "--server", "nope", "--method", "initialize"}, 1, `has no server \"nope\"; it has: own, far`},
		{[]string{"--config", two, "--server", "own", "--server", "far", "--method", "initialize"}, 1, "--server can be used only once"},
		{[]string{"--config", two, "--server", "own", "--header", "A: b", "--method", "initialize"}, 1, "--header requires a server at a URL"},
		{[]string{"--config", two, "--server", "far", "--header", "A", "--method", "initialize"}, 1, "must have the form 'Name: value'"},
		{[]string{"--config", filepath.Join(dir, "none.json"), "--method", "initialize"}, 1, "--config: "},
		{[]string{"--config", write("empty.json", `{"mcpServers":{}}`), "--method", "initialize"}, 1, "no server in the file"},
		{[]string{"--config", write("cut.json", `{"mcpServers":{`), "--method", "initialize"}, 1, "--config: "},
		{[]string{"--config", write("roots.json", `{"mcpServers":{"s":{"command":"x","roots":[{"uri":"https://a.example"}]}}}`), "--method", "roots/list"}, 1, "uri must begin with file://"},
		{[]string{"--config", write("no uri.json", `{"mcpServers":{"s":{"command":"x","roots":["file:///"]}}}`), "--method", "roots/list"}, 1, "a root is an object with uri"},
		{[]string{"--config", one, "--catalog", one, "--method", "initialize"}, 1, "cannot be used together"},
		{[]string{"--config", one, "--method", "initialize", "everything"}, 1, "--config reads the server from a file"},
		{[]string{"--method", "roots/set", "everything"}, 1, "roots/set requires --roots-json"},
		{[]string{"--method", "roots/set", "--roots-json", "{}", "everything"}, 1, "must be a JSON array such as"},
		{[]string{"--method", "roots/set", "--roots-json", `[{"uri":"a"}]`, "everything"}, 1, "item 0: uri must begin with file://"},
		{[]string{"--method", "tools/list", "--elicit", "some", "everything"}, 1, "must be one of off, form, url, both"},
	} {
		exit, out, stderr := command(t, append([]string{"inspect", "--json"}, test.args...)...)
		if exit != test.exit || !strings.Contains(out+stderr, test.want) {
			t.Errorf("%v: exit code %d, no %q in\n%s%s", test.args, exit, test.want, out, stderr)
		}
	}
	if len(heard) > 0 {
		t.Errorf("a command line that is wrong was sent to the server")
	}
	exit, _, stderr := command(t, "inspect", "--json", "--config", two, "--server", "far", "--header", "X-Key: given", "--method", "initialize")
	if exit != 1 || !strings.Contains(stderr, `"http_status"`) {
		t.Errorf("exit code %d: %s", exit, stderr)
	}
	if h := <-heard; strings.Join(h.Values("X-Key"), "|") != "given" || h.Get("X-Other") != "b" {
		t.Errorf("headers %v", h)
	}
}

// Flags take several words, as in the Inspector; the word that is none of theirs is the server.
func TestInspectSeveralWords(t *testing.T) {
	t.Parallel()
	url := "http://" + serveHTTP(t) + "/mcp"
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"tools/call", "--tool-name", "add", "--tool-arg", "a=2", "b=3", url}, `"sum":5`},
		{[]string{"tools/call", "--tool-name", "add", url, "--tool-arg", "a=2", "b=3", "--protocol-era", "legacy"}, `"sum":5`},
		{[]string{"tools/call", "--tool-name", "add", "--tool-arg", "a=2", "b=3", "--tool-metadata", "com.example/x=1", "com.example/y=2", "--header", "A: b", "B: c=d", url}, `"sum":5`},
		{[]string{"prompts/get", "--prompt-name", "greeting", "--metadata", "com.example/x=1", "com.example/y=2", "--prompt-args", "name=Ada", "style=formal", url}, "Ada"},
		{[]string{"tools/call", "--tool-name", "echo", "--tool-arg", "message=a=b", url + "?x=1"}, `"text":"a=b"`},
	} {
		exit, out, stderr := command(t, append([]string{"inspect", "--json", "--method"}, test.args...)...)
		if exit != 0 || !strings.Contains(out, test.want) || stderr != "" {
			t.Errorf("%v: exit code %d\n%s%s", test.args, exit, out, stderr)
		}
	}
	exit, _, stderr := command(t, "inspect", "--json", "--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=1", "bee", "everything")
	if exit != 1 || !strings.Contains(stderr, "too many servers") {
		t.Errorf("two servers: exit code %d\n%s", exit, stderr)
	}
}
