package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Commands that read or change what is there refuse a database file that is not there, and make
// none: a mistyped path is told, and no backup is made of nothing.
func TestNoDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := filepath.Join(dir, "secrets.key")
	if err := os.WriteFile(key, []byte(strings.Repeat("0a", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	mistyped := filepath.Join(dir, "folder", "isuer.db")
	for _, args := range [][]string{
		{"user", "list"},
		{"user", "disable", "ada", "--audit-file", filepath.Join(dir, "audit.log")},
		{"key", "revoke", "some"},
		{"resource", "scope", "https://mcp.example/mcp", "read"},
		{"group", "add", "editors", "ada"},
		{"backup", filepath.Join(dir, "issuer.backup")},
		{"secrets", "show"},
		{"secrets", "rotate", "--secrets-key", "file:" + key, "--reseal"},
		{"user", "list", "--database", "sqlite:" + mistyped},
	} {
		if args[len(args)-2] != "--database" {
			args = append(args, "--database", mistyped)
		}
		code, out, said := run(t, "", append([]string{"auth"}, args...)...)
		if code != 1 || out != "" || !strings.Contains(said, "database "+mistyped+" not found; name the right one") {
			t.Errorf("%q ended with %d, wrote %q and said %q", args, code, out, said)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("they left files: %v, %v", files, err)
	}
}

// Commands that add the first of something make the database.
func TestFirstOfDatabase(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"user", "invite", "ada", "--issuer", "https://login.example"},
		{"client", "add", "notes", "--redirect-uri", "http://127.0.0.1/callback"},
		{"resource", "add", "https://mcp.example/mcp"},
	} {
		file := filepath.Join(t.TempDir(), "issuer.db")
		code, _, said := run(t, "", append(append([]string{"auth"}, args...), "--database", file)...)
		if _, err := os.Stat(file); code != 0 || err != nil {
			t.Errorf("%q ended with %d, said %q, and the file: %v", args, code, said, err)
		}
	}
}
