package config_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/config"
)

// An entry is started as its own client would start it.
func TestExpand(t *testing.T) {
	t.Parallel()
	d := fullDesk(t)
	maps.Copy(d.env, map[string]string{
		"GITHUB_TOKEN": "gh$HOME", "FIGMA_ID": "fid", "FIGMA_SECRET": "fsecret", "FETCH_TOKEN": "ft${USER}",
		"SENTRY_CLIENT": "sc", "NOTES_TOKEN": "nt", "SHELL_KEY": "sk", "CACHE_DIR": "",
	})
	inputs := map[string]string{"key": "typed ${USER}", "perplexity-key": "pk"}
	home, project := d.path("home"), d.path("home/project")
	tests := map[string]config.Server{
		"filesystem": {Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "/home/ada/Documents", "/home/ada/Desktop"}},
		"sqlite": {
			Command: "uvx", Args: []string{"mcp-server-sqlite", "--db-path", "/home/ada/${NOT_A_VARIABLE}.db"}, Env: map[string]string{"LOG": "debug"},
		},
		"memory": {
			Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-memory"},
			Env: map[string]string{"MEMORY_FILE_PATH": home + "/memory.json", "CACHE": "/tmp/cache", "LITERAL": "$HOME"},
		},
		"linear": {URL: "https://mcp.linear.app/sse"},
		"atlassian": {
			URL:   "https://mcp.atlassian.example/v1/mcp",
			OAuth: &config.OAuth{ClientID: "parley-client", CallbackPort: 8123, Scopes: []string{"read", "write"}},
		},
		"perplexity": {
			Command: "npx", Args: []string{"-y", "server-perplexity-ask", "--region=eu"},
			Env: map[string]string{"PERPLEXITY_API_KEY": "pk", "REGION_HINT": "north", "QUOTED": "two\nlines"},
		},
		"playwright": {Command: "npx", Args: []string{"@playwright/mcp@latest", "--output-dir", home + "/out"}},
		"context7":   {URL: "https://mcp.context7.com/mcp"},
		"figma":      {URL: "https://mcp.figma.com/mcp", OAuth: &config.OAuth{ClientID: "fid", ClientSecret: "fsecret", Scopes: []string{"file:read"}}},
		"browser":    {Command: home + "/bin/browser-mcp", Args: []string{"--profile", "ada"}},
		"typos":      {Command: "typo-server", Env: map[string]string{"A": "1"}},
		"fetch":      {Command: "uvx", Args: []string{"mcp-server-fetch"}, Env: map[string]string{"UA": "parley", "FETCH_TOKEN": "ft${USER}"}},
		"deepwiki":   {URL: "https://mcp.deepwiki.com/mcp", Headers: []config.Header{{Name: "X-Team", Value: "red"}}},
		"sentry":     {URL: "https://mcp.sentry.dev/mcp", OAuth: &config.OAuth{ClientID: "sc", Scopes: []string{"org:read", "project:read"}}},
		"everything": {Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-everything"}, Env: map[string]string{"KEY": "from-a-file"}},
		"time":       {Command: "uvx", Args: []string{"mcp-server-time"}},
		"gopls":      {Command: "gopls", Args: []string{"mcp"}},
		"shellvar":   {URL: "https://shell.example/sse?key=sk", Headers: []config.Header{{Name: "X-Key", Value: "sk"}}},
		"notes":      {Command: "notes-mcp", Args: []string{"--dir", "/tmp/notes"}, Env: map[string]string{"DEBUG": "true", "LEVEL": "3"}},
		"remote-notes": {
			URL: "https://notes.example/mcp", Headers: []config.Header{{Name: "Authorization", Value: "Bearer nt"}, {Name: "X-Team", Value: "red"}},
		},
		"everything-http": {URL: "http://localhost:3001/mcp"},
		"files":           {Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", home + "/work"}},
		"tickets":         {URL: "https://tickets.example/mcp", Headers: []config.Header{{Name: "X-Team", Value: "red"}}},
		"team-tool":       {Command: "node", Args: []string{project + "/tool.js", "ada"}, Env: map[string]string{"TOKEN": "gh$HOME"}},
		"workspace-tool": {
			Command: "node", Args: []string{project + "/server.js", "project"}, Env: map[string]string{"FROM_FILE": "yes"}, Dir: project + "/sub",
		},
		"workspace-http": {URL: "https://w.example/mcp", Headers: []config.Header{{Name: "X-Key", Value: "typed ${USER}"}}},
	}
	c := d.load()
	for name, want := range tests {
		s := d.server(c, name)
		e, err := s.Expand(inputs)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := config.Server{Command: e.Command, Args: e.Args, Env: e.Env, Dir: e.Dir, URL: e.URL, Headers: e.Headers, OAuth: e.OAuth}
		if len(got.Args) == 0 {
			got.Args = nil
		}
		if len(got.Env) == 0 {
			got.Env = nil
		}
		if len(got.Headers) == 0 {
			got.Headers = nil
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(config.Server{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, name := range []string{"workspace-http", "perplexity"} {
		if _, err := d.server(c, name).Expand(nil); err == nil || !strings.Contains(err.Error(), "answer it first") {
			t.Errorf("%s without an answer: %v", name, err)
		}
	}
	if _, err := d.server(c, "perplexity").Expand(map[string]string{"perplexity-key": "pk", "region": "mars"}); err == nil {
		t.Error("a value that is no option was taken")
	}
}

// One entry per line: client, text of the entry, and what comes of it. The environment has
// SET=sesame and EMPTY=.
func TestVariables(t *testing.T) {
	t.Parallel()
	const unset = "the variable UNSET is not set: set it"
	tests := []struct {
		file, entry string
		want        string // the first argument, or the URL
		fails       string
	}{
		{file: ".claude.json", entry: `{"command":"x","args":["${SET}"]}`, want: "sesame"},
		{file: ".claude.json", entry: `{"command":"x","args":["a${SET}b${SET}c"]}`, want: "asesamebsesamec"},
		{file: ".claude.json", entry: `{"command":"x","args":["${UNSET:-d}"]}`, want: "d"},
		{file: ".claude.json", entry: `{"command":"x","args":["${UNSET:-}"]}`, want: ""},
		{file: ".claude.json", entry: `{"command":"x","args":["${EMPTY}"]}`, want: ""},
		{file: ".claude.json", entry: `{"command":"x","args":["${EMPTY:-d}"]}`, want: "d"},
		{file: ".claude.json", entry: `{"command":"x","args":["${UNSET:-${SET}}"]}`, want: "${SET}"},
		{file: ".claude.json", entry: `{"command":"x","args":["$SET"]}`, want: "$SET"},
		{file: ".claude.json", entry: `{"command":"x","args":["${SET"]}`, want: "${SET"},
		{file: ".claude.json", entry: `{"command":"x","args":["${a b}$(x)"]}`, want: "${a b}$(x)"},
		{file: ".claude.json", entry: `{"command":"x","args":["${REF}"]}`, want: "${SET}"},
		{file: ".claude.json", entry: `{"command":"x","args":["${UNSET}"]}`, fails: unset + ", or write ${UNSET:-default}"},
		{file: ".claude.json", entry: `{"command":"x","args":["${env:SET}"]}`, fails: "a variable of another client"},
		{file: ".claude.json", entry: `{"url":"https://${SET}.example/?k=${SET}"}`, want: "https://sesame.example/?k=sesame"},
		{file: ".claude.json", entry: `{"command":"${UNSET:-}"}`, fails: "it is empty once its variables are expanded"},
		{file: ".cursor/mcp.json", entry: `{"command":"x","args":["${env:SET}${/}${userHome}"]}`, want: "sesame/HOME"},
		{file: ".cursor/mcp.json", entry: `{"command":"x","args":["${SET}"]}`, want: "${SET}"},
		{file: ".cursor/mcp.json", entry: `{"command":"x","args":["${env:UNSET}"]}`, fails: unset},
		{file: ".cursor/mcp.json", entry: `{"command":"x","args":["${input:none}"]}`, fails: `the input "none" is not declared`},
		{file: ".cursor/mcp.json", entry: `{"command":"x","args":["${command:a.b}"]}`, fails: "known to the editor alone"},
		{file: ".cursor/mcp.json", entry: `{"command":"x","args":["${workspaceFolder:sub}"]}`, want: "PROJECT"},
		{file: ".mcphost.json", entry: `{"command":"x","args":["${env://SET} ${env://UNSET:-d} ${SET}"]}`, want: "sesame d ${SET}"},
		{file: ".mcphost.json", entry: `{"command":"x","args":["${env://UNSET}"]}`, fails: unset},
		{file: ".config/opencode/opencode.json", entry: `{"command":["x","{env:SET}{a:b}{\"k\":1}"]}`, want: `sesame{a:b}{"k":1}`},
		{file: ".config/opencode/opencode.json", entry: `{"command":["x","{env:UNSET}"]}`, fails: unset},
		{file: ".config/opencode/opencode.json", entry: `{"command":["x","{file:~/secret.txt}"]}`, want: "of a file"},
		{file: ".config/opencode/opencode.json", entry: `{"command":["x","{file:../../secret.txt}"]}`, want: "of a file"},
		{file: ".config/opencode/opencode.json", entry: `{"command":["x","{file:none}"]}`, fails: `reading "{file:none}": no such file`},
		{file: ".config/opencode/opencode.json", entry: `{"command":["x","{file:..}"]}`, fails: "no regular file"},
		{file: ".config/crush/crush.json", entry: `{"command":"x","args":["$SET-${SET}-${UNSET:-d}-$"]}`, want: "sesame-sesame-d-$"},
		{file: ".config/crush/crush.json", entry: `{"command":"x","args":["$(cat /etc/passwd)"]}`, fails: "$(…) is a command, which is not run"},
		{file: ".config/crush/crush.json", entry: `{"command":"x","args":["$UNSET"]}`, fails: unset},
		{file: ".mcp-inspector/mcp.json", entry: `{"command":"x","args":["${SET} {env:SET}"]}`, want: "${SET} {env:SET}"},
		// Files that others wrote.
		{file: "project/.mcp.json", entry: `{"command":"x","args":["${SET}"]}`, want: "sesame"},
		{file: "project/.mcp.json", entry: `{"url":"https://a.example/${SET}"}`, fails: "may not put a variable into the URL"},
		{file: "project/.mcp.json", entry: `{"url":"https://a.example/${UNSET:-x}"}`, fails: "may not put a variable into the URL"},
		{file: "project/.mcp.json", entry: `{"url":"https://a.example/${CLAUDE_PROJECT_DIR}"}`, fails: "may not put a variable into the URL"},
		{file: "project/.mcp.json", entry: `{"url":"https://a.example/","headers":{"X":"${SET}"}}`, fails: "may not put a variable into the URL"},
		{file: "project/.mcp.json", entry: `{"url":"https://a.example/","oauth":{"clientId":"${SET}"}}`, fails: "may not put a variable into the URL"},
		{file: "project/.mcp.json", entry: `{"url":"https://a.example/","oauth":{"authServerMetadataUrl":"https://b.example/${SET}"}}`, fails: "may not put a variable into the URL"},
		{file: "project/.mcp.json", entry: `{"url":"https://a.example/$SET"}`, want: "https://a.example/$SET"},
		{file: "project/.vscode/mcp.json", entry: `{"url":"https://a.example/${userHome}"}`, fails: "may not put a variable into the URL"},
		{file: "project/.vscode/mcp.json", entry: `{"url":"https://a.example/${/}"}`, fails: "may not put a variable into the URL"},
		{file: "project/.cursor/mcp.json", entry: `{"url":"https://a.example/","headers":{"X":"${env:UNSET}"}}`, fails: "may not put a variable into the URL"},
		{file: "project/.kit.json", entry: `{"url":"https://a.example/","headers":["X: ${env://SET}"]}`, fails: "may not put a variable into the URL"},
		{file: "project/opencode.json", entry: `{"url":"https://a.example/{env:SET}"}`, fails: "may not put a variable into the URL"},
		{file: "project/opencode.json", entry: `{"url":"https://a.example/","headers":{"X":"{file:~/secret.txt}"}}`, fails: "may not put a variable into the URL"},
		{file: "project/opencode.json", entry: `{"command":["x","{file:../secret.txt}"]}`, fails: "the file is outside of the project"},
		{file: "project/opencode.json", entry: `{"command":["x","{file:~/secret.txt}"]}`, fails: "the file is outside of the project"},
		{file: "project/crush.json", entry: `{"url":"https://a.example/$SET"}`, fails: "may not put a variable into the URL"},
		{file: "project/crush.json", entry: `{"url":"https://a.example/$(id)"}`, fails: "is a command, which is not run"},
		{file: "project/librechat.yaml", entry: `{"url":"https://a.example/${SET}"}`, fails: "may not put a variable into the URL"},
		{file: "project/.parley.jsonc", entry: `{"url":"https://a.example/${SET}"}`, fails: "may not put a variable into the URL"},
		{file: "project/.vscode/mcp.json", entry: `{"command":"x","envFile":"../secret.txt"}`, fails: "the file is outside of the project"},
	}
	for _, test := range tests {
		t.Run(test.file+" "+test.entry, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			maps.Copy(d.env, map[string]string{"SET": "sesame", "EMPTY": "", "REF": "${SET}"})
			d.write("home/secret.txt", " of a file\n")
			key := "mcpServers"
			switch base := filepath.Base(test.file); {
			case strings.Contains(test.file, ".vscode"), base == ".parley.jsonc":
				key = "servers"
			case base == "opencode.json", base == "crush.json":
				key = "mcp"
			}
			d.write("home/"+test.file, `{"`+key+`": {"s": `+test.entry+`}}`)
			s := d.server(d.load(), "s")
			e, err := s.Expand(nil)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Fatalf("error %v, want %q", err, test.fails)
				}
				if strings.Contains(err.Error(), "sesame") || strings.Contains(err.Error(), "of a file") {
					t.Errorf("the error shows a value: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := e.URL
			if e.Command != "" {
				got = e.Args[0]
			}
			if got = strings.NewReplacer(d.path("home/project"), "PROJECT", d.path("home"), "HOME").Replace(got); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// What each user of LibreChat is asked for, the person is asked for.
func TestLibreChat(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.env["OPERATOR"] = "op"
	d.write("given/librechat.yaml", `
version: 1.2.1
mcpServers:
  custom:
    type: streamable-http
    url: "https://libre.example/${OPERATOR}"
    initTimeout: 5000
    timeout: 60000
    headers: {X-Key: "{{MY_KEY}}", X-User: fixed}
    customUserVars:
      MY_KEY: {title: "My key", description: "From the account page"}
  keyed:
    url: https://libre.example/b
    apiKey: {source: admin, authorization_type: custom, custom_header: X-Api-Key, key: "${OPERATOR}"}
  of-user:
    url: https://libre.example/c
    headers: {X-User: "{{LIBRECHAT_USER_ID}}"}
  socket:
    type: websocket
    url: wss://libre.example/d
    requiresOAuth: false
    obo: {scopes: a}
`)
	c, err := config.LoadFile(d.path("given/librechat.yaml"), d.options)
	if err != nil {
		t.Fatal(err)
	}
	custom, err := d.server(c, "custom").Expand(map[string]string{"MY_KEY": "k"})
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Header{{Name: "X-Key", Value: "k"}, {Name: "X-User", Value: "fixed"}}
	if custom.URL != "https://libre.example/op" || !slices.Equal(custom.Headers, want) || custom.ConnectTimeout.Seconds() != 5 || custom.CallTimeout.Seconds() != 60 {
		t.Errorf("%+v", custom)
	}
	if keyed, err := d.server(c, "keyed").Expand(nil); err != nil || keyed.Headers[0] != (config.Header{Name: "X-Api-Key", Value: "op"}) {
		t.Errorf("%v %v", keyed, err)
	}
	if err := d.server(c, "of-user").Err; err == nil || !strings.Contains(err.Error(), "a value of a user of LibreChat") {
		t.Errorf("of-user: %v", err)
	}
	if s := d.server(c, "socket"); s.Transport != config.TransportWebSocket || !s.NoOAuth || len(s.Notes) != 1 || s.Err != nil {
		t.Errorf("%+v", s)
	}
}

// The digest changes with everything that is started, and with nothing else.
func TestDigest(t *testing.T) {
	t.Parallel()
	const entry = `{"command":"x","args":["a","${V}"],"env":{"A":"1","B":"2"},"envFile":".env"}`
	digest := func(entry, v, envFile string) string {
		d := newDesk(t)
		d.env["V"] = v
		d.write("home/project/.env", envFile)
		d.write("home/project/.vscode/mcp.json", `{"servers":{"s":`+strings.ReplaceAll(entry, "${V}", "${env:V}")+`}}`)
		s := d.server(d.load(), "s")
		if s.Err != nil {
			t.Fatal(s.Err)
		}
		return s.Digest
	}
	first := digest(entry, "v", "C=3")
	for name, other := range map[string]string{
		"order of env": digest(`{"command":"x","args":["a","${V}"],"env":{"B":"2","A":"1"},"envFile":".env"}`, "v", "C=3"),
		"title":        digest(`{"title":"t","command":"x","args":["a","${V}"],"env":{"A":"1","B":"2"},"envFile":".env"}`, "v", "C=3"),
		"an array":     digest(`{"command":["x","a","${V}"],"env":{"A":"1","B":"2"},"envFile":".env"}`, "v", "C=3"),
	} {
		if other != first {
			t.Errorf("%s changes the digest", name)
		}
	}
	for name, other := range map[string]string{
		"command":      digest(`{"command":"y","args":["a","${V}"],"env":{"A":"1","B":"2"},"envFile":".env"}`, "v", "C=3"),
		"argument":     digest(`{"command":"x","args":["b","${V}"],"env":{"A":"1","B":"2"},"envFile":".env"}`, "v", "C=3"),
		"split":        digest(`{"command":"x","args":["a${V}"],"env":{"A":"1","B":"2"},"envFile":".env"}`, "v", "C=3"),
		"name in env":  digest(`{"command":"x","args":["a","${V}"],"env":{"A":"1","C":"2"},"envFile":".env"}`, "v", "C=3"),
		"value in env": digest(`{"command":"x","args":["a","${V}"],"env":{"A":"1","B":"3"},"envFile":".env"}`, "v", "C=3"),
		"folder":       digest(`{"command":"x","args":["a","${V}"],"env":{"A":"1","B":"2"},"envFile":".env","cwd":"d"}`, "v", "C=3"),
		"variable":     digest(entry, "w", "C=3"),
		"envFile":      digest(entry, "v", "C=4"),
		"url":          digest(`{"url":"https://a.example/"}`, "v", "C=3"),
		"header":       digest(`{"url":"https://a.example/","headers":{"A":"b"}}`, "v", "C=3"),
	} {
		if other == first {
			t.Errorf("%s does not change the digest", name)
		}
	}
}

// What is started is what the digest is of, though a file changes in between.
func TestFrozen(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("home/project/.env", "A=agreed")
	d.write("home/project/.vscode/mcp.json", `{"servers":{"s":{"command":"x","envFile":"${workspaceFolder}/.env"}}}`)
	s := d.server(d.load(), "s")
	d.write("home/project/.env", "A=changed")
	e, err := s.Expand(nil)
	if err != nil || e.Env["A"] != "agreed" {
		t.Errorf("%v %v", e, err)
	}
}
