package connect

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/kit"
)

// What the person granted to a server of one project is not granted to that of another one
// with the same entry: ./server is another program there.
func TestGrantsOfOneProject(t *testing.T) {
	t.Parallel()
	key := func() string {
		home := t.TempDir()
		dir := filepath.Join(home, "project")
		if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte(`{"mcpServers": {"docs": {"command": "./server"}}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(&config.Options{Home: home, WorkDir: dir, Root: home})
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(&kit.Console{Streams: &kit.Streams{}}).Startable(t.Context(), cfg.Server("docs"))
		if err != nil {
			t.Fatal(err)
		}
		return s.Key
	}
	if one, other := key(), key(); one == "" || one == other {
		t.Errorf("two projects have the key %q", one)
	}
}
