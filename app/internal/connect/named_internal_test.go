package connect

import (
	"testing"

	"github.com/parley-mcp/parley/app/internal/kit"
)

func TestNameOf(t *testing.T) {
	for command, want := range map[string]string{
		"npx -y @modelcontextprotocol/server-everything@2026.8.31 stdio": "server-everything",
		"uvx mcp-server-git --repository .":                              "mcp-server-git",
		"./bin/dbserver --flag":                                          "dbserver",
		"/usr/bin/node /srv/files.mjs":                                   "files",
		"docker run -i --rm mcp/time:1.2":                                "time",
		"go run ./cmd/thing":                                             "thing",
		`sh -c "echo boom"`:                                              "sh",
		"python3 -m":                                                     "python3",
		"env KEY=v ./tool":                                               "tool",
		"日本":                                                             "server",
	} {
		words, err := kit.Fields(command)
		if err != nil {
			t.Fatal(err)
		}
		if got := nameOf(words); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
