package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/policy"
)

// Files of a project, each read in its client's dialect.
var projectFiles = []string{
	".mcp.json", ".parley.jsonc", ".vscode/mcp.json", ".cursor/mcp.json", ".cursor/permissions.json", ".claude/settings.json",
	".claude/settings.local.json", "opencode.json", ".agents/mcp.json", "crush.json", ".kit.yml", ".kit.json", "librechat.yaml",
}

// No text of a project makes Load fail, allows anything, or puts anything of this machine
// into the URL or the headers of a server.
func FuzzLoad(f *testing.F) {
	for i, name := range projectFiles {
		data, err := os.ReadFile(filepath.Join("testdata", "project", name))
		if err == nil {
			f.Add(uint8(i), data)
		}
	}
	f.Add(uint8(0), []byte(`{"mcpServers":{"s":{"url":"https://a.example/${A}${A:-b}","headers":{"A":"$A","B":"${env:A}"}}}}`))
	f.Add(uint8(2), []byte(`{"inputs":[{"id":"a","type":"promptString"}],"servers":{"s":{"url":"https://a.example/${input:a}","headers":{"B":"${input:a}${/}"}}}}`))
	f.Add(uint8(7), []byte(`{"mcp":{"s":{"url":"https://a.example/{env:A}{file:x}"}},"permission":{"*":"deny","s_*":"allow"}}`))
	f.Add(uint8(10), []byte("a: &a {url: https://a.example}\nmcpServers:\n  s:\n    <<: *a\n    headers: ['A: ${env://A}']\n"))
	f.Add(uint8(12), []byte("mcpServers: {s: {url: 'https://a.example/{{A}}', customUserVars: {A: {title: t}}, apiKey: {source: user}}}"))
	const secret = "s3cret-of-the-machine"
	dir := f.TempDir()
	o := &config.Options{
		Home: filepath.Join(dir, secret), WorkDir: filepath.Join(dir, secret, "p"), Root: dir, GOOS: "linux",
		ConfigDir: filepath.Join(dir, "own"), Env: func(name string) (string, bool) {
			return secret, name != "CLAUDE_CONFIG_DIR" && !strings.HasSuffix(name, "UNSET") && !strings.HasPrefix(name, "MCP_") && !strings.HasPrefix(name, "XDG")
		},
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		name := filepath.Join(o.WorkDir, filepath.FromSlash(projectFiles[int(kind)%len(projectFiles)]))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(name) //nolint:errcheck // the next run writes it anew
		c, err := config.Load(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range c.Servers {
			checkForeign(t, s, secret)
		}
		for i := range c.Rules {
			if c.Rules[i].Effect == policy.Allow {
				t.Errorf("a project allows: %s", c.Rules[i].Source)
			}
		}
		if _, err := policy.New(c.Rules); err != nil {
			t.Errorf("rules that are not valid: %v", err)
		}
		if given, err := config.LoadFile(name, o); err == nil {
			for _, s := range given.Servers {
				_ = s.Address()
			}
		}
	})
}

func checkForeign(t *testing.T, s *config.Server, secret string) {
	t.Helper()
	if !s.NeedsConsent || s.Trusted || s.Digest == "" {
		t.Errorf("%q: consent %v, trusted %v, digest %q", s.Name, s.NeedsConsent, s.Trusted, s.Digest)
	}
	inputs := map[string]string{}
	for _, in := range s.Inputs {
		inputs[in.ID] = "typed"
		if len(in.Options) > 0 {
			inputs[in.ID] = in.Options[0]
		}
	}
	e, err := s.Expand(inputs)
	if err != nil || e.Transport == config.TransportStdio {
		return
	}
	if e.URL != s.URL || strings.Contains(e.URL, secret) {
		t.Errorf("%q: the URL %q is sent as %q", s.Name, s.URL, e.URL)
	}
	for _, h := range e.Headers {
		if strings.Contains(h.Value, secret) {
			t.Errorf("%q: the header %q has something of this machine", s.Name, h.Name)
		}
	}
	if len(e.Env) > 0 {
		t.Errorf("%q: env %v", s.Name, e.Env)
	}
}

// An edit of any text is refused, or adds that entry and keeps all others.
func FuzzAdd(f *testing.F) {
	for _, text := range []string{
		"", "{}", "{\n}", `{"servers":{}}`, `{"servers":{"a":{"command":"x"}}}`, "// a\n{\n  \"servers\": {\n    \"a\": {\"command\": \"x\"}, // b\n  },\n}\n",
		"{\"model\":\"m\" /* c */}", "{\"servers\":{\"a\":{\"command\":\"x\"} // c\n}}", "\ufeff{\"rules\":[],}",
	} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	path := filepath.Join(dir, "parley.jsonc")
	o := &config.Options{Home: dir, WorkDir: dir, ConfigDir: dir, Root: dir, Env: func(string) (string, bool) { return "x", true }}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		before, errBefore := config.LoadFile(path, o)
		err := config.Add(path, "added by the test", config.Entry{Command: "x"})
		after, errAfter := config.LoadFile(path, o)
		if err != nil {
			if now, readErr := os.ReadFile(path); readErr != nil || !bytes.Equal(now, data) {
				t.Errorf("the text changed with the error %v", err)
			}
			return
		}
		if errAfter != nil || after.Server("added by the test") == nil {
			t.Fatalf("the entry is not there: %v", errAfter)
		}
		if errBefore == nil && len(after.Servers) != len(before.Servers)+1 {
			t.Errorf("%d servers were %d", len(after.Servers), len(before.Servers))
		}
		if bytes.Count(data, []byte("//")) > bytes.Count(read(t, path), []byte("//")) {
			t.Error("a comment is lost")
		}
		if err := config.Remove(path, "added by the test"); err != nil {
			t.Errorf("removing it: %v", err)
		}
	})
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
