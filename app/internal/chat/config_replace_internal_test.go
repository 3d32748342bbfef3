package chat

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/config"
)

// Which entries can be replaced, and by what.
func TestReplaceReference(t *testing.T) {
	for _, test := range []struct {
		command, want string // want "": it stays
		env           map[string]string
		cautious      bool
	}{
		{command: "npx -y @modelcontextprotocol/server-memory", want: "serve memory", cautious: true},
		{command: "npx -y @modelcontextprotocol/server-memory", env: map[string]string{"MEMORY_FILE_PATH": "/home/ada/m.jsonl"}, want: "serve memory"},
		{command: "npx -y @modelcontextprotocol/server-memory", env: map[string]string{"MEMORY_FILE_PATH": "m.jsonl"}, want: "serve memory", cautious: true},
		{command: `cmd /c npx -y @modelcontextprotocol/server-sequential-thinking`, want: "serve thinking"},
		{command: `C:\node\npx.cmd --yes @modelcontextprotocol/server-everything@2026.8.31`, want: "serve everything"},
		{command: "npx @modelcontextprotocol/server-everything stdio", want: "serve everything"},
		{command: "npx @modelcontextprotocol/server-everything streamableHttp"},
		{command: "uvx mcp-server-time --local-timezone=Europe/Paris", want: "serve time --local-timezone=Europe/Paris"},
		{command: "/usr/bin/uvx mcp-server-time@2026.1.1", want: "serve time"},
		{command: "docker run -i --rm mcp/time", want: "serve time"},
		{command: "docker run -i --rm mcp/sequentialthinking:latest", want: "serve thinking"},
		{command: "docker run -i -v data:/app/dist --rm mcp/memory"},
		{command: "docker pull mcp/memory"},
		{command: "docker"},
		{command: "npx -y @modelcontextprotocol/server-memory --verbose"},
		{command: "npx -p x -y @modelcontextprotocol/server-memory"},
		{command: "npx -y @someone/server-memory"},
		{command: "npx -y @modelcontextprotocol/server-github"},
		{command: "npx -y"},
		{command: "uvx --from mcp-server-time mcp-server-time"},
		{command: "python -m mcp_server_time"},
		{command: "cmd /c"},
	} {
		words := strings.Fields(test.command)
		e := config.Entry{Command: words[0], Args: words[1:], Env: test.env, Description: "kept"}
		r := replaceReference(&e)
		if (r != nil) != (test.want != "") {
			t.Errorf("%s: %+v, want %q", test.command, r, test.want)
			continue
		}
		if r == nil {
			continue
		}
		if got := strings.Join(r.entry.Args, " "); r.entry.Command != "parley" || got != test.want || r.entry.Description != "kept" || len(r.entry.Env) != len(test.env) || (r.caution != "") != test.cautious {
			t.Errorf("%s: %+v, want %q", test.command, r, test.want)
		}
	}
}
