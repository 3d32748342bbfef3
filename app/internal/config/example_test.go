package config_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/parley-mcp/parley/app/internal/config"
)

// A file that is given is the person's own word: its variables are expanded everywhere.
func ExampleLoadFile() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	path := filepath.Join(dir, "servers.json")
	text := `{
	// as in the documentation of many servers
	"mcpServers": {
		"time": {"command": "uvx", "args": ["mcp-server-time", "--zone", "${ZONE:-UTC}"]},
		"tickets": {"url": "https://tickets.example/mcp?key=${KEY}"}, // KEY is not set
	},
}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	c, err := config.LoadFile(path, &config.Options{Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range c.Servers {
		start, err := s.Expand(nil)
		if err != nil {
			fmt.Printf("%s (line %d): %s\n  %v\n", s.Name, s.Source.Line, s.Address(), err)
			continue
		}
		fmt.Printf("%s (line %d): %s\n", s.Name, s.Source.Line, start.Address())
	}
	// Output:
	// time (line 4): uvx mcp-server-time --zone UTC
	// tickets (line 5): https://tickets.example/mcp
	//   url: the variable KEY is not set: set it, or write ${KEY:-default}
}
