package config_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/config"
)

// Files are found where each system keeps them.
func TestPlaces(t *testing.T) {
	t.Parallel()
	tests := []struct {
		goos, file string
		env        map[string]string
		client     config.Client
		scope      config.Scope
	}{
		{goos: "linux", file: "home/.config/Claude/claude_desktop_config.json", client: config.ClientClaudeDesktop, scope: config.ScopeUser},
		{goos: "darwin", file: "home/Library/Application Support/Claude/claude_desktop_config.json", client: config.ClientClaudeDesktop, scope: config.ScopeUser},
		{goos: "windows", file: "home/AppData/Roaming/Claude/claude_desktop_config.json", client: config.ClientClaudeDesktop, scope: config.ScopeUser},
		{goos: "windows", file: "roaming/Claude/claude_desktop_config.json", env: map[string]string{"APPDATA": "@/roaming"}, client: config.ClientClaudeDesktop, scope: config.ScopeUser},
		{goos: "linux", file: "home/.config/parley/parley.jsonc", client: config.ClientParley, scope: config.ScopeOwn},
		{goos: "linux", file: "xdg/parley/parley.jsonc", env: map[string]string{"XDG_CONFIG_HOME": "@/xdg"}, client: config.ClientParley, scope: config.ScopeOwn},
		{goos: "darwin", file: "home/Library/Application Support/parley/parley.jsonc", client: config.ClientParley, scope: config.ScopeOwn},
		{goos: "windows", file: "home/AppData/Roaming/parley/parley.jsonc", client: config.ClientParley, scope: config.ScopeOwn},
		{goos: "linux", file: "home/.config/Code/User/mcp.json", client: config.ClientVSCode, scope: config.ScopeUser},
		{goos: "linux", file: "home/.config/Code - Insiders/User/mcp.json", client: config.ClientVSCode, scope: config.ScopeUser},
		{goos: "darwin", file: "home/Library/Application Support/Code/User/mcp.json", client: config.ClientVSCode, scope: config.ScopeUser},
		{goos: "windows", file: "home/AppData/Roaming/Code/User/mcp.json", client: config.ClientVSCode, scope: config.ScopeUser},
		{goos: "linux", file: "system/etc/claude-code/managed-mcp.json", client: config.ClientClaudeCode, scope: config.ScopeManaged},
		{goos: "darwin", file: "system/Library/Application Support/ClaudeCode/managed-settings.json", client: config.ClientClaudeCode, scope: config.ScopeManaged},
		{goos: "linux", file: "cc/.claude.json", env: map[string]string{"CLAUDE_CONFIG_DIR": "@/cc"}, client: config.ClientClaudeCode, scope: config.ScopeUser},
		{goos: "linux", file: "cc/settings.json", env: map[string]string{"CLAUDE_CONFIG_DIR": "@/cc"}, client: config.ClientClaudeCode, scope: config.ScopeUser},
		{goos: "linux", file: "home/.config/goose/config.yaml", client: config.ClientGoose, scope: config.ScopeUser},
		{goos: "darwin", file: "home/.config/goose/config.yaml", client: config.ClientGoose, scope: config.ScopeUser},
		{goos: "windows", file: "home/AppData/Roaming/Block/goose/config/permission.yaml", client: config.ClientGoose, scope: config.ScopeUser},
		{goos: "linux", file: "oc.json", env: map[string]string{"OPENCODE_CONFIG": "@/oc.json"}, client: config.ClientOpenCode, scope: config.ScopeUser},
		{goos: "linux", file: "home/.config/opencode/opencode.jsonc", client: config.ClientOpenCode, scope: config.ScopeUser},
		{goos: "windows", file: "local/crush/crush.json", env: map[string]string{"LOCALAPPDATA": "@/local"}, client: config.ClientCrush, scope: config.ScopeUser},
		{goos: "linux", file: "catalog.json", env: map[string]string{"MCP_CATALOG_PATH": "@/catalog.json"}, client: config.ClientInspector, scope: config.ScopeUser},
		{goos: "linux", file: "home/.mcp.yaml", client: config.ClientKit, scope: config.ScopeUser},
		{goos: "linux", file: "home/.kit.yml", client: config.ClientKit, scope: config.ScopeUser},
		{goos: "linux", file: "home/project/.mcp.json", client: config.ClientClaudeCode, scope: config.ScopeProject},
		{goos: "linux", file: "home/project/.claude/settings.local.json", client: config.ClientClaudeCode, scope: config.ScopeLocal},
		{goos: "linux", file: "home/project/.opencode/opencode.jsonc", client: config.ClientOpenCode, scope: config.ScopeProject},
		{goos: "linux", file: "home/project/.crush.json", client: config.ClientCrush, scope: config.ScopeProject},
		{goos: "linux", file: "home/project/.parley.jsonc", client: config.ClientParley, scope: config.ScopeProject},
	}
	for _, test := range tests {
		d := newDesk(t)
		for name, value := range test.env {
			d.env[name] = strings.ReplaceAll(value, "@", d.root)
		}
		d.options.GOOS = test.goos
		d.write(test.file, "{}")
		found, err := config.Find(d.options)
		if err != nil {
			t.Fatal(err)
		}
		foreign := strings.Contains(test.file, "/project/")
		ok := slices.ContainsFunc(found, func(l config.Location) bool {
			return l.Client == test.client && l.Scope == test.scope && l.Path == d.path(test.file) && l.Foreign == foreign
		})
		if !ok {
			t.Errorf("%s %s: found %+v", test.goos, test.file, found)
		}
	}
}

// A project is searched from the working folder up to its repository; the nearest file
// comes first. The home folder is no project.
func TestProjects(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("home/project/sub/deep/x", "")
	d.write("home/project/sub/.mcp.json", `{"mcpServers":{"a":{"command":"near"}}}`)
	d.write("home/project/.mcp.json", `{"mcpServers":{"a":{"command":"far"},"b":{"command":"far"}}}`)
	d.write("home/project/sub/.vscode/mcp.json", `{"servers":{"v":{"command":"x","args":["${workspaceFolder}"]}}}`)
	d.write("home/.mcp.json", `{"mcpServers":{"of-kit":{"command":"x"}}}`)
	d.write("home/.git/HEAD", "")
	servers := func(dir string) map[string]string {
		d.options.WorkDir = d.path(dir)
		found := map[string]string{}
		for _, s := range d.load().Servers {
			found[s.Name] = strings.TrimSpace(strings.Join([]string{string(s.Source.Scope), s.Command}, " "))
		}
		return found
	}
	kit := map[string]string{"of-kit": "user x"}
	tests := map[string]map[string]string{
		"home/project/sub/deep": {"a": "project near", "b": "project far", "v": "project x", "of-kit": "user x"},
		"home/project":          {"a": "project far", "b": "project far", "of-kit": "user x"},
		"home":                  kit,
		"home/elsewhere":        kit,
		".":                     kit,
	}
	for dir, want := range tests {
		if diff := cmp.Diff(want, servers(dir)); diff != "" {
			t.Errorf("%s: %s", dir, diff)
		}
	}
	d.options.WorkDir = d.path("home/project/sub/deep")
	if e, err := d.server(d.load(), "v").Expand(nil); err != nil || e.Args[0] != d.path("home/project/sub") {
		t.Errorf("%v %v", e, err)
	}
}

// Of entries with one name the first file's counts, whole; clients can be left out.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	steps := []struct{ file, text string }{
		{"home/.mcp-inspector/mcp.json", `{"mcpServers":{"s":{"command":"inspector","env":{"A":"1"}}}}`},
		{"home/.cursor/mcp.json", `{"mcpServers":{"s":{"command":"cursor"}}}`},
		{"home/.claude.json", `{"mcpServers":{"s":{"command":"user"}}}`},
		{"home/.config/Claude/claude_desktop_config.json", `{"mcpServers":{"s":{"command":"desktop"}}}`},
		{"home/project/.vscode/mcp.json", `{"servers":{"s":{"command":"workspace"}}}`},
		{"home/project/.mcp.json", `{"mcpServers":{"s":{"command":"project"}}}`},
		{"home/.claude.json", `{"mcpServers":{"s":{"command":"user"}},"projects":{"` + filepath.ToSlash(d.path("home/project")) + `":{"mcpServers":{"s":{"command":"local"}}}}}`},
		{"home/.config/parley/parley.jsonc", `{"servers":{"s":{"command":"own"}}}`},
		{"system/etc/claude-code/managed-mcp.json", `{"mcpServers":{"s":{"command":"managed"}}}`},
	}
	want := []string{"inspector", "cursor", "user", "desktop", "workspace", "project", "local", "own", "managed"}
	for i, step := range steps {
		d.write(step.file, step.text)
		s := d.server(d.load(), "s")
		if s.Command != want[i] || len(s.Shadowed) != i {
			t.Errorf("%s: %s hides %v", step.file, s.Command, s.Shadowed)
		}
		if i > 0 && len(s.Env) != 0 {
			t.Errorf("%s: env of another entry: %v", step.file, s.Env)
		}
	}
	d.write("home/.config/parley/parley.jsonc", `{"import":{"claude-code":false,"vscode":false,"cursor":false}}`)
	c := d.load()
	if s := d.server(c, "s"); s.Command != "desktop" || len(s.Shadowed) != 1 {
		t.Errorf("%s hides %v", s.Command, s.Shadowed)
	}
	d.write("home/.config/parley/parley.jsonc", "{\"import\":{\"claude\":false,\n\"goose\":\"no\"}}")
	checkProblems(t, d.load(), map[int]string{1: `import: there is no client "claude"`, 2: "import: expected true or false"})
}

// A file that is given is the person's own word, whatever its shape.
func TestLoadFile(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text   string
		client config.Client
	}{
		"a.json":                     {`{"mcpServers":{"s":{"command":"x","args":["${SET}"]}}}`, config.ClientOther},
		"b.json":                     {`{"s":{"command":"x","args":["${SET}"]}}`, config.ClientOther},
		"c.json":                     {`{"servers":{"s":{"command":"x","args":["${env:SET}"]}}}`, config.ClientVSCode},
		"d.yaml":                     {"extensions: {s: {type: stdio, cmd: x, args: [sesame]}}", config.ClientGoose},
		"e.json":                     {`{"mcp":{"s":{"type":"local","command":["x","{env:SET}"]}}}`, config.ClientOpenCode},
		"f.json":                     {`{"mcp":{"s":{"type":"stdio","command":"x","args":["$SET"]}}}`, config.ClientCrush},
		"g.yml":                      {`mcpServers: {s: {type: local, command: [x, "${env://SET}"]}}`, config.ClientKit},
		"h.yaml":                     {`{version: 1.0.0, mcpServers: {s: {command: x, args: ["${SET}"]}}}`, config.ClientLibreChat},
		"i.json":                     {`{"mcpServers":{"s":{"command":"x","args":["sesame"],"protocolEra":"legacy"}}}`, config.ClientInspector},
		"j.json":                     {`{"mcpProxy":{"addr":":1"},"mcpServers":{"s":{"command":"x","args":["sesame"],"options":{"toolFilter":{"mode":"block","list":["rm"]}}}}}`, config.ClientTBXark},
		"k.jsonc":                    {`{"model":"m","servers":{"s":{"command":"x","args":["${SET}"],},},}`, config.ClientParley},
		"parley.jsonc":               {`{"servers":{"s":{"command":"x","args":["${SET}"]}}}`, config.ClientParley},
		".cursor/mcp.json":           {`{"mcpServers":{"s":{"command":"x","args":["${env:SET}"]}}}`, config.ClientCursor},
		"claude_desktop_config.json": {`{"mcpServers":{"s":{"command":"x","args":["sesame"]}}}`, config.ClientClaudeDesktop},
		".mcp.json":                  {`{"mcpServers":{"s":{"command":"x","args":["${SET}"]}}}`, config.ClientClaudeCode},
		"crush.json":                 {`{"mcp":{"s":{"command":"x","args":["$SET"]}}}`, config.ClientCrush},
		"opencode.json":              {`{"mcp":{"s":{"command":["x","{env:SET}"]}}}`, config.ClientOpenCode},
		".agents/mcp.json":           {`{"s":{"command":["x","{env:SET}"]}}`, config.ClientOpenCode},
		".copilot/mcp-config.json":   {`{"mcpServers":{"s":{"type":"local","command":"x","args":["${SET}"]}}}`, config.ClientCopilot},
		".mcp-inspector/mcp.json":    {`{"mcpServers":{"s":{"command":"x","args":["sesame"]}}}`, config.ClientInspector},
		".kit.json":                  {`{"mcpServers":{"s":{"command":"x","args":["${env://SET}"]}}}`, config.ClientKit},
		"librechat.yaml":             {`mcpServers: {s: {command: x, args: ["${SET}"]}}`, config.ClientLibreChat},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.env["SET"] = "sesame"
			d.write("home/project/"+name, test.text)
			c, err := config.LoadFile(d.path("home/project/"+name), d.options)
			if err != nil {
				t.Fatal(err)
			}
			s := d.server(c, "s")
			e, err := s.Expand(nil)
			if err != nil {
				t.Fatal(err)
			}
			if s.NeedsConsent || s.Source.Scope != config.ScopeGiven || s.Source.Client != test.client {
				t.Errorf("%+v", s.Source)
			}
			if e.Command != "x" || !slices.Equal(e.Args, []string{"sesame"}) || len(c.Servers) != 1 || len(c.Problems) != 0 {
				t.Errorf("%s %q, problems %v", e.Command, e.Args, c.Problems)
			}
			if test.client == config.ClientTBXark && !slices.Equal(s.DenyTools, []string{"rm"}) {
				t.Errorf("tools %v", s.DenyTools)
			}
		})
	}
}

// Claude Code's lists of servers.
func TestServerLists(t *testing.T) {
	t.Parallel()
	const servers = `{"mcpServers":{
		"a":{"command":"npx","args":["a"]}, "b":{"command":"npx","args":["b"]},
		"h":{"url":"https://h.example/mcp"}, "i":{"url":"https://i.example/mcp"}}}`
	tests := map[string]struct {
		managed, user, project string
		refused                string
	}{
		"none":               {},
		"denied by name":     {user: `"deniedMcpServers":[{"serverName":"a"},{"serverName":"cursor"}]`, refused: "a cursor"},
		"denied by command":  {user: `"deniedMcpServers":[{"serverCommand":["npx","b"]}]`, refused: "b"},
		"command in full":    {user: `"deniedMcpServers":[{"serverCommand":["npx"]}]`},
		"denied by URL":      {project: `"deniedMcpServers":[{"serverUrl":"https://*.example/*"}]`, refused: "h i"},
		"allowed none":       {user: `"allowedMcpServers":[]`, refused: "a b h i"},
		"allowed by name":    {user: `"allowedMcpServers":[{"serverName":"a"},{"serverName":"h"}]`, refused: "b i"},
		"a command excludes": {user: `"allowedMcpServers":[{"serverName":"a"},{"serverName":"h"},{"serverCommand":["npx","b"]}]`, refused: "a i"},
		"a URL excludes":     {user: `"allowedMcpServers":[{"serverName":"a"},{"serverName":"h"},{"serverUrl":"https://i.example/*"}]`, refused: "b h"},
		"denied wins":        {user: `"allowedMcpServers":[{"serverName":"a"}],"deniedMcpServers":[{"serverName":"a"}]`, refused: "a b h i"},
		"managed holds for all": {
			managed: `"allowedMcpServers":[{"serverName":"a"}]`, user: `"allowedMcpServers":[{"serverName":"b"}]`, refused: "a b h i cursor",
		},
		"a project adds nothing": {user: `"allowedMcpServers":[{"serverName":"a"}]`, project: `"allowedMcpServers":[{"serverName":"a"},{"serverName":"b"}]`, refused: "b h i"},
		"not a list":             {user: `"deniedMcpServers":"a"`, refused: "a b h i"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.write("home/.claude.json", servers)
			d.write("home/.cursor/mcp.json", `{"mcpServers":{"cursor":{"command":"x"}}}`)
			d.write("home/.claude/settings.json", "{"+test.user+"}")
			d.write("system/etc/claude-code/managed-settings.json", "{"+test.managed+"}")
			d.write("home/project/.claude/settings.json", "{"+test.project+"}")
			var refused []string
			for _, s := range d.load().Servers {
				if s.Err != nil {
					refused = append(refused, s.Name)
					if !strings.Contains(s.Err.Error(), "settings.json") {
						t.Errorf("the error does not name the file: %v", s.Err)
					}
				}
			}
			if got := strings.Join(refused, " "); got != test.refused {
				t.Errorf("refused %q, want %q", got, test.refused)
			}
		})
	}
}

// The administrator may let managed rules alone allow.
func TestManagedRulesOnly(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("system/etc/claude-code/managed-settings.json", "{\n\"allowManagedPermissionRulesOnly\":true,\"permissions\":{\"allow\":[\"mcp__a\"]}}")
	d.write("home/.claude/settings.json", "{\n\n\"permissions\":{\"allow\":[\"mcp__b\"],\"deny\":[\"mcp__c\"]}}")
	c := d.load()
	checkProblems(t, c, map[int]string{3: `"mcp__b" allows nothing: the administrator lets only managed rules allow`})
	if len(c.Rules) != 2 {
		t.Errorf("rules %v", c.Rules)
	}
}

// Timeouts that Claude Code takes from the environment.
func TestEnvironmentTimeouts(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.env["MCP_TIMEOUT"], d.env["MCP_TOOL_TIMEOUT"] = "1500", "not a number"
	d.write("home/.claude.json", `{"mcpServers":{"s":{"command":"x"},"t":{"command":"x","timeout":10}}}`)
	c := d.load()
	if s := d.server(c, "s"); s.ConnectTimeout.Milliseconds() != 1500 || s.CallTimeout != 0 {
		t.Errorf("%v %v", s.ConnectTimeout, s.CallTimeout)
	}
	if s := d.server(c, "t"); s.CallTimeout.Milliseconds() != 10 {
		t.Errorf("%v", s.CallTimeout)
	}
}
