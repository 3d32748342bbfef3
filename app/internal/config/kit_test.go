package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/config"
)

// A desk is a copy of testdata: the home folder of a person with a file of each client, a
// project within it, and the files of the machine's administrator.
type desk struct {
	t       *testing.T
	root    string
	options *config.Options
	env     map[string]string
}

// newDesk makes an empty desk.
func newDesk(t *testing.T) *desk {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, root: root, env: map[string]string{"HOME": filepath.Join(root, "home"), "USER": "ada"}}
	for _, dir := range []string{"home", "home/project/.git", "system"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d.options = &config.Options{
		Home: filepath.Join(root, "home"), WorkDir: filepath.Join(root, "home", "project"), Root: filepath.Join(root, "system"), GOOS: "linux",
		Env: func(name string) (string, bool) {
			value, ok := d.env[name]
			return value, ok
		},
	}
	return d
}

// fullDesk makes one with all files of testdata.
func fullDesk(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	for from, to := range map[string]string{"home": "home", "project": "home/project", "system": "system"} {
		if err := os.CopyFS(filepath.Join(d.root, to), os.DirFS(filepath.Join("testdata", from))); err != nil {
			t.Fatal(err)
		}
	}
	claude := d.path("home/.claude.json")
	data, err := os.ReadFile(claude)
	if err != nil {
		t.Fatal(err)
	}
	d.write("home/.claude.json", strings.ReplaceAll(string(data), "@PROJECT@", filepath.ToSlash(d.options.WorkDir)))
	d.write("home/project/.env", "FROM_FILE=yes\n")
	return d
}

func (d *desk) path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

// write writes a file, making its folders.
func (d *desk) write(name, text string) {
	d.t.Helper()
	path := d.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) load() *config.Config {
	d.t.Helper()
	c, err := config.Load(d.options)
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

// server returns a server that must be there.
func (d *desk) server(c *config.Config, name string) *config.Server {
	d.t.Helper()
	s := c.Server(name)
	if s == nil {
		d.t.Fatalf("no server %q", name)
	}
	return s
}

// short replaces the folders of the desk in a text.
func (d *desk) short(text string) string {
	return filepath.ToSlash(strings.NewReplacer(
		d.path("home/project"), "PROJECT", d.path("home"), "~", d.path("system"), "").Replace(text))
}
