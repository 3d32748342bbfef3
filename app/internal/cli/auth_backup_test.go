package cli_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/oauth"
)

// signIn gets a refresh token for a client of the process.
func (p *process) signIn() string {
	p.t.Helper()
	verifier := oauth.NewVerifier()
	token, trouble := p.redeem(p.code(verifier), verifier)
	if trouble != "" {
		p.t.Fatal(trouble)
	}
	return token
}

// A backup is made while clients refresh, and restored elsewhere: what was issued before goes on,
// new sign-ins work, and the keys are the same. With --sign-out nothing goes on.
func TestBackup(t *testing.T) {
	t.Parallel()
	database := databasetest.SQLite(t)
	p := newProcess(t, database)
	quiet, used := p.signIn(), p.signIn()

	ctx, stop := context.WithCancel(t.Context())
	var refreshing sync.WaitGroup
	busy := make(chan struct{})
	refreshing.Go(func() {
		for n, token := 0, p.signIn(); ctx.Err() == nil; n++ {
			next, trouble, answered := p.tryRefresh(token)
			if !answered || trouble != "" {
				t.Errorf("a refresh during the backup: %q, answered %v", trouble, answered)
				return
			}
			if token = next; n == 3 {
				close(busy)
			}
		}
	})
	<-busy
	file := filepath.Join(t.TempDir(), "issuer.backup")
	code, out, said := run(t, "", "auth", "backup", file, "--database", database, "--json")
	stop()
	refreshing.Wait()
	var report struct {
		File  string `json:"file"`
		Bytes int64  `json:"bytes"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 || report.File != file || report.Bytes == 0 {
		t.Fatalf("backup: %d %s %s", code, out, said)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || info.Size() != report.Bytes {
		t.Errorf("the backup: %v, %v", info, err)
	}
	if code, _, said := run(t, "", "auth", "backup", file, "--database", database); code != 1 || !strings.Contains(said, "already") {
		t.Errorf("a second backup to the same file: %d %s", code, said)
	}
	later, trouble := p.refresh(used) // its successor is not in the backup
	if trouble != "" {
		t.Fatal(trouble)
	}

	elsewhere := filepath.Join(t.TempDir(), "restored.db")
	if code, out, said := run(t, "", "auth", "restore", file, "--database", elsewhere); code != 0 || !strings.Contains(out, "restored to") ||
		!strings.Contains(said, "anything revoked, disabled or removed since the backup is valid again") {
		t.Fatalf("restore: %d %s %s", code, out, said)
	}
	if code, _, said := run(t, "", "auth", "restore", file, "--database", elsewhere); code != 1 || !strings.Contains(said, "move it away") {
		t.Errorf("restored where there is a database: %d %s", code, said)
	}
	restored := newProcess(t, elsewhere)
	if restored.keys() != p.keys() {
		t.Error("the restored server has other keys")
	}
	if _, trouble := restored.refresh(quiet); trouble != "" {
		t.Errorf("a token of before the backup: %q", trouble)
	}
	if _, trouble := restored.refresh(later); trouble != oauth.InvalidGrant {
		t.Errorf("a token of after the backup: %q", trouble)
	}
	if _, trouble := restored.refresh(restored.signIn()); trouble != "" {
		t.Errorf("a new sign-in: %q", trouble)
	}

	ended := filepath.Join(t.TempDir(), "ended.db")
	if code, out, said := run(t, "", "auth", "restore", file, "--database", ended, "--sign-out"); code != 0 || !strings.Contains(out, "3 grants") ||
		!strings.Contains(said, "users, clients and keys are restored as of the backup") {
		t.Fatalf("restore --sign-out: %d %s %s", code, out, said)
	}
	if _, trouble := newProcess(t, ended).refresh(used); trouble != oauth.InvalidGrant {
		t.Errorf("a token after --sign-out: %q", trouble)
	}
}

// Files that are no backups are refused, and nothing is made of them.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, full := filepath.Join(folder, "good"), filepath.Join(folder, "full.db")
	for _, args := range [][]string{{"resource", "add", "https://mcp.example/mcp"}, {"backup", good}} {
		if code, _, said := run(t, "", append(append([]string{"auth"}, args...), "--database", full)...); code != 0 {
			t.Fatal(said)
		}
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	damaged := []byte(strings.Clone(string(whole)))
	for i := len(damaged) / 2; i < len(damaged)*3/4; i++ {
		damaged[i] = 0xff
	}
	target := filepath.Join(folder, "target.db")
	for name, c := range map[string]struct{ file, want string }{
		"nothing there":  {filepath.Join(folder, "absent"), "no such file"},
		"a folder":       {folder, "not a file"},
		"no database":    {write("text", strings.Repeat("no database ", 1000)), "no database"},
		"empty":          {write("empty", ""), "no tables"},
		"cut off":        {write("short", string(whole[:len(whole)/2])), "damaged"},
		"changed inside": {write("damaged", string(damaged)), "damaged"},
	} {
		code, out, said := run(t, "", "auth", "restore", c.file, "--database", target)
		if code == 0 || !strings.Contains(said, c.want) {
			t.Errorf("%s: %d %s %s", name, code, out, said)
		}
		if left, err := filepath.Glob(target + "*"); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
	for _, command := range [][]string{{"backup", filepath.Join(folder, "x")}, {"restore", good}} {
		code, _, said := run(t, "", append([]string{"auth"}, append(command, "--database", "postgres://nobody@127.0.0.1:1/x?connect_timeout=1")...)...)
		if code == 0 || command[0] == "restore" && !strings.Contains(said, "pg_restore") {
			t.Errorf("%s of PostgreSQL: %d %s", command[0], code, said)
		}
	}
}

// A migration is shown without being made, made once, and refused backward, in both databases.
func TestMigrate(t *testing.T) {
	t.Parallel()
	for name, database := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := database(t)
			if name == "sqlite" {
				dsn = filepath.Join(t.TempDir(), "new.db")
				if err := os.WriteFile(dsn, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				code, out, said := run(t, "", "auth", "migrate", "--dry-run", "--database", dsn)
				if code != 0 || !strings.Contains(out, "version 0") || !strings.Contains(out, "CREATE TABLE users") {
					t.Fatalf("dry run: %d %s %s", code, out, said)
				}
			}
			if code, out, said := run(t, "", "auth", "migrate", "--database", dsn); code != 0 || !strings.Contains(out, "from version 0") {
				t.Fatalf("migrate: %d %s %s", code, out, said)
			}
			code, out, said := run(t, "", "auth", "migrate", "--dry-run", "--database", dsn, "--json")
			var report struct {
				Version, Newest int
				Statements      []string
			}
			if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 || report.Version != report.Newest || report.Version == 0 || len(report.Statements) > 0 {
				t.Errorf("dry run after it: %d %s %s", code, out, said)
			}
		})
	}
}
