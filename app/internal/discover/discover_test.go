package discover_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/discover"
)

// load reads the files of a person, by their paths in the home folder.
func load(t *testing.T, files map[string]string) *config.Config {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files["project/.git/HEAD"] = "ref: refs/heads/main\n"
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Load(&config.Options{
		Home: root, WorkDir: filepath.Join(root, "project"), Root: filepath.Join(root, "system"), GOOS: "linux", Env: noEnv,
	})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// files are what a person with ten clients has.
func files() map[string]string {
	return map[string]string{
		".config/Claude/claude_desktop_config.json": `{"mcpServers": {"desktop": {"command": "d"}}}`,
		".claude.json":                   `{"mcpServers": {"code": {"command": "c"}, "desktop": {"command": "hidden"}}}`,
		".config/Code/User/mcp.json":     `{"servers": {"vs": {"url": "https://vs.example/mcp"}}}`,
		".copilot/mcp-config.json":       `{"mcpServers": {"pilot": {"command": "p", "tools": ["*"]}}}`,
		".cursor/mcp.json":               `{"mcpServers": {"cur\u001b[31msor": {"command": "c"}}}`,
		".config/goose/config.yaml":      "extensions:\n  goo:\n    type: stdio\n    cmd: g\n    enabled: true\n  off:\n    type: stdio\n    cmd: o\n    enabled: false\n",
		".config/opencode/opencode.json": `{"mcp": {"open": {"type": "local", "command": ["o"]}}}`,
		".config/crush/crush.json":       `{"mcp": {"cru": {"type": "stdio", "command": "c"}}}`,
		".kit.yml":                       "mcpServers:\n  ki:\n    type: local\n    command: [k]\n",
		".mcp-inspector/mcp.json":        `{"mcpServers": {"insp": {"command": "i"}}}`,
		"project/.vscode/mcp.json":       `{"servers": {"team": {"command": "t"}}}`,
		"project/.mcp.json":              `{"mcpServers": {"shared": {"command": "s"}}}`,
	}
}

// The servers of ten clients, those of the project apart, without what is off or hidden.
func TestClients(t *testing.T) {
	t.Parallel()
	names := func(list []*config.Server) string {
		var all []string
		for _, s := range list {
			all = append(all, s.Name)
		}
		return strings.Join(all, " ")
	}
	found := discover.Find(t.Context(), &discover.Options{Config: load(t, files()), Env: noEnv, Ports: []discover.Port{}})
	var got []string
	for _, c := range found.Clients {
		got = append(got, fmt.Sprintf("%s (%s): %s; %s", c.Name, c.ID, names(c.Servers), names(c.OfProject)))
	}
	want := []string{
		"Claude Desktop (claude-desktop): desktop; ", "Claude Code (claude-code): code; shared", "VS Code (vscode): vs; team",
		"GitHub Copilot CLI (copilot): pilot; ", "Cursor (cursor): cur\x1b[31msor; ", "goose (goose): goo; ",
		"opencode (opencode): open; ", "Crush (crush): cru; ", "Kit (kit): ki; ", "MCP Inspector (inspector): insp; ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found\n%q\nwant\n%q", got, want)
	}
	if len(found.Servers()) != 10 || found.Own {
		t.Errorf("%d servers, own %v", len(found.Servers()), found.Own)
	}
}

// That the person has a file of their own counts, also if nothing can be read in it.
func TestOwn(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{}`, `{"servers": {"mine": {"command": "m"}}}`, `{ broken`} {
		cfg := load(t, map[string]string{".config/parley/parley.jsonc": text})
		found := discover.Find(t.Context(), &discover.Options{Config: cfg, Env: noEnv, Ports: []discover.Port{}})
		if !found.Own || len(found.Clients) > 0 {
			t.Errorf("%s: own %v, clients %v", text, found.Own, found.Clients)
		}
	}
}

// Keys are told by the names of their variables. What they hold is nowhere.
func TestKeys(t *testing.T) {
	t.Parallel()
	env := map[string]string{"ANTHROPIC_API_KEY": "sk-secret", "OPENAI_API_KEY": "", "GEMINI_API_KEY": "also-secret"}
	found := discover.Find(t.Context(), &discover.Options{Ports: []discover.Port{}, Env: func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}})
	var got []string
	for _, k := range found.Keys {
		got = append(got, k.Provider+" "+k.Variable)
	}
	if want := []string{"anthropic ANTHROPIC_API_KEY", "gemini GEMINI_API_KEY"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if text := fmt.Sprintf("%+v", found); strings.Contains(text, "secret") {
		t.Errorf("a key is kept: %s", text)
	}
}

// Nothing is there, and no options are given but where to look.
func TestNothing(t *testing.T) {
	t.Parallel()
	found := discover.Find(t.Context(), &discover.Options{Env: noEnv, Ports: []discover.Port{}})
	if found.Own || len(found.Clients)+len(found.Keys)+len(found.Local) > 0 {
		t.Errorf("found %+v", found)
	}
	for _, c := range config.Clients() {
		if discover.ClientName(c) == string(c) && c != config.ClientOpenCode && c != config.ClientGoose {
			t.Errorf("%s has no name", c)
		}
	}
	if got := discover.ClientName("new"); got != "new" {
		t.Errorf("an unknown client is called %q", got)
	}
}
