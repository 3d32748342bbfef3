package local_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/database"
	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/policy"
)

// version1 is a file as the first version of the program made it.
var version1 = []string{
	`PRAGMA journal_mode = WAL`,
	`CREATE TABLE version (version BIGINT NOT NULL)`,
	`INSERT INTO version (version) VALUES (1)`,
	`PRAGMA application_id = 1349676153`,
	`CREATE TABLE session (id TEXT PRIMARY KEY, parent TEXT REFERENCES session (id), at INTEGER NOT NULL,
		title TEXT NOT NULL, created INTEGER NOT NULL) STRICT`,
	`CREATE INDEX session_parent ON session (parent)`,
	`CREATE TABLE record (session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE, n INTEGER NOT NULL,
		time INTEGER NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (session, n)) STRICT`,
	`CREATE TRIGGER record_update BEFORE UPDATE ON record
		BEGIN SELECT RAISE(ABORT, 'records do not change'); END`,
	`CREATE TRIGGER record_insert BEFORE INSERT ON record
		WHEN EXISTS (SELECT 1 FROM record WHERE session = NEW.session AND n = NEW.n)
		BEGIN SELECT RAISE(ABORT, 'records do not change'); END`,
	`CREATE TABLE blob (session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE, name TEXT NOT NULL,
		data BLOB NOT NULL, PRIMARY KEY (session, name)) STRICT`,
	`CREATE TABLE pin (server TEXT NOT NULL, tool TEXT NOT NULL, digest TEXT NOT NULL, definition BLOB NOT NULL,
		time INTEGER NOT NULL, PRIMARY KEY (server, tool)) STRICT`,
	`CREATE TABLE grant_ (id TEXT PRIMARY KEY, created INTEGER NOT NULL, expires INTEGER NOT NULL,
		revoked INTEGER NOT NULL, data BLOB NOT NULL) STRICT`,
	`CREATE INDEX grant_created ON grant_ (created, id)`,
	`CREATE TABLE audit (n INTEGER PRIMARY KEY, time INTEGER NOT NULL, session TEXT NOT NULL, record INTEGER NOT NULL,
		event TEXT NOT NULL, kind TEXT NOT NULL, server TEXT NOT NULL, name TEXT NOT NULL, why TEXT NOT NULL,
		arguments TEXT NOT NULL, previous BLOB NOT NULL, hash BLOB NOT NULL) STRICT`,
	`CREATE TRIGGER audit_update BEFORE UPDATE ON audit
		BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END`,
	`CREATE TRIGGER audit_delete BEFORE DELETE ON audit
		BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END`,
	`CREATE TRIGGER audit_insert BEFORE INSERT ON audit
		WHEN NEW.n <> (SELECT coalesce(max(n), 0) + 1 FROM audit)
		BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END`,
	`CREATE TABLE audit_head (one INTEGER PRIMARY KEY CHECK (one = 1), n INTEGER NOT NULL, hash BLOB NOT NULL) STRICT`,

	`INSERT INTO session VALUES ('s', NULL, 0, 'the title', 1893553445006007100), ('f', 's', 1, '', 1893553445006007101)`,
	`INSERT INTO record VALUES ('s', 1, 1893553445006007100, 'text', CAST('{"text":"one"}' AS BLOB)),
		('s', 2, 1893553445006007100, 'notice', CAST('{"level":"info","text":"two"}' AS BLOB)),
		('f', 2, 1893553445006007100, 'text', CAST('{"text":"other"}' AS BLOB))`,
	`INSERT INTO blob VALUES ('s', 'b', x'00ff')`,
	`INSERT INTO pin VALUES ('files', 'read', 'digest', CAST('{"name":"read"}' AS BLOB), 1893553445006007100)`,
	`INSERT INTO grant_ VALUES ('g', 1893553445006007100, 0, 1893553445006007102, CAST(
		'{"id":"g","rule":{"effect":"allow","name":"read"},"digest":"d","session":"s","created":"2030-01-02T03:04:05.0060071Z"}' AS BLOB))`,
	`INSERT INTO audit VALUES (1, 1893553445006007100, 's', 1, 'called', 'tool', 'files', 'tool1', 'rule 3', 'e3b0',
		x'0000000000000000000000000000000000000000000000000000000000000000',
		x'HASH')`,
	`INSERT INTO audit_head VALUES (1, 1, x'HASH')`,
}

// version1Hash is that of the entry of the audit log in version1, computed by another program.
const version1Hash = "005d3021da091b2cb8a3a7bcd3a6906ece86514b069d21d9ce39e7496818a1e1"

// A file of the first version is read, and written to.
func TestVersion1(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "v1.db")
	ok(t, os.WriteFile(path, nil, 0o600))
	for _, statement := range version1 {
		execute(t, path, strings.ReplaceAll(statement, "HASH", version1Hash))
	}
	ok(t, os.WriteFile(path+".audit", []byte(strings.Repeat("0", 20)+" "+strings.Repeat("0", 64)+"\n"), 0o600))
	db := open(t, path)
	list, err := db.Sessions(ctx)
	ok(t, err)
	if fmt.Sprint(list) != fmt.Sprint([]host.SessionInfo{
		{ID: "f", Parent: "s", At: 1, Created: epoch.Add(1), Used: epoch}, {ID: "s", Title: "the title", Created: epoch, Used: epoch},
	}) {
		t.Errorf("sessions %+v", list)
	}
	records, err := db.Records(ctx, "s")
	ok(t, err)
	if len(records) != 2 || records[0].Body.(*host.TextRecord).Text != "one" || records[1].Body.(*host.NoticeRecord).Text != "two" {
		t.Errorf("records %+v", records)
	}
	if data, size, err := db.Blob(ctx, "s", "b", 0, 10); !bytes.Equal(data, []byte{0, 0xff}) || size != 2 || err != nil {
		t.Errorf("blob %q of %d, error %v", data, size, err)
	}
	if p, err := db.Pin(ctx, host.PinKey{Server: "files", Tool: "read"}); err != nil || p == nil || string(p.Definition) != `{"name":"read"}` {
		t.Errorf("pin %+v, error %v", p, err)
	}
	grants, err := db.Grants(ctx)
	ok(t, err)
	if len(grants) != 1 || grants[0].Rule.Effect != policy.Allow || grants[0].Rule.Name != "read" || !grants[0].Revoked.Equal(epoch.Add(2)) {
		t.Errorf("grants %+v", grants)
	}
	if n, err := db.VerifyAudit(ctx); n != 1 || err != nil {
		t.Errorf("%d entries, error %v", n, err)
	}
	ok(t, db.Audit(ctx, newEntry(2)), db.Append(ctx, "f", newRecord("f", 3)))
	if n, err := db.VerifyAudit(ctx); n != 2 || err != nil {
		t.Errorf("%d entries, error %v", n, err)
	}
}

// unchanged tests that Open refuses a file and leaves it as it is.
func unchanged(t *testing.T, path string, want ...string) error {
	t.Helper()
	before, readErr := os.ReadFile(path)
	db, err := local.Open(path)
	if err == nil {
		ok(t, db.Close())
		t.Fatal("opened")
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %v, want %s", err, w)
		}
	}
	after, afterErr := os.ReadFile(path)
	if !bytes.Equal(before, after) || (readErr == nil) != (afterErr == nil) {
		t.Errorf("the file was changed: %v, %v", readErr, afterErr)
	}
	return err
}

// A file of a newer version stays as it is; the error names both versions.
func TestNewer(t *testing.T) {
	t.Parallel()
	path := audited(t)
	execute(t, path, `UPDATE version SET version = 99`)
	err := unchanged(t, path, "version 99", "up to 1", "use the newer one")
	if newer, ok := errors.AsType[*database.NewerError](err); !ok || newer.Tables != 99 {
		t.Errorf("error %v", err)
	}
}

// Files of others, and files that are no databases, stay as they are.
func TestForeign(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		ok(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	foreign := file("foreign.db", "")
	execute(t, foreign, `CREATE TABLE version (version BIGINT)`, `INSERT INTO version VALUES (1)`)
	if err := unchanged(t, foreign, "another program", "name another file"); !errors.Is(err, database.ErrForeign) {
		t.Errorf("error %v", err)
	}
	marked := file("marked.db", "")
	execute(t, marked, `PRAGMA journal_mode = WAL`, `PRAGMA application_id = 7`, `CREATE TABLE t (x)`)
	_ = unchanged(t, marked, "another program")
	_ = unchanged(t, file("text", strings.Repeat("garbage ", 1000)), "not a file of this program", "restore it from a copy")
	_ = unchanged(t, file("short", "garbage"), "not a file of this program")
	_ = unchanged(t, folder, "is not a file")
}

// A file that had entries, and is empty or not there, is not made anew without a word.
func TestEmptied(t *testing.T) {
	t.Parallel()
	path := audited(t)
	ok(t, os.Truncate(path, 0))
	_ = unchanged(t, path, "had 6 entries", "restore the file from a copy")
	ok(t, os.Remove(path))
	_ = unchanged(t, path, "had 6 entries", "move")
	ok(t, os.Remove(path+".audit"))
	open(t, path)

	// SQLite would delete the write-ahead log, which has all that was written.
	path = newPath(t)
	create(t, open(t, path), "s", "", 0)
	log, err := os.ReadFile(path + "-wal")
	ok(t, err)
	for _, parts := range []map[string][]byte{{"": nil, "-wal": log}, {"-wal": log}} {
		path := place(t, parts)
		if err := unchanged(t, path, "restore the file from a copy"); !errors.Is(err, database.ErrEmptied) {
			t.Errorf("error %v", err)
		}
		if after, err := os.ReadFile(path + "-wal"); !bytes.Equal(after, log) || err != nil {
			t.Errorf("the log was changed, error %v", err)
		}
	}
}

// written makes a file with some of everything and returns the parts of it by the ends of their
// names, as they are before the last process has closed them, and after.
func written(t *testing.T) (running, closed map[string][]byte) {
	t.Helper()
	path := newPath(t)
	db, err := local.Open(path)
	ok(t, err)
	create(t, db, "s", "", 0)
	parts := func() map[string][]byte {
		all := map[string][]byte{}
		for _, end := range []string{"", "-wal", ".audit"} {
			data, err := os.ReadFile(path + end)
			if err == nil {
				all[end] = data
			}
		}
		return all
	}
	for i := range int64(cutSteps) {
		ok(t,
			db.Append(t.Context(), "s", host.Record{N: i + 1, Time: epoch, Body: &host.TextRecord{Text: cutText}}),
			db.Audit(t.Context(), newEntry(int(i))),
			db.PutPin(t.Context(), &host.Pin{PinKey: host.PinKey{Server: fmt.Sprintf("server%02d", i)}, Digest: cutText, Time: epoch}),
			db.PutGrant(t.Context(), newGrant(fmt.Sprintf("g%02d", i))),
		)
	}
	ok(t, db.PutBlob(t.Context(), "s", "b", bytes.Repeat([]byte(cutText), 20)))
	running = parts()
	ok(t, db.Close())
	return running, parts()
}

const cutSteps = 20

var cutText = strings.Repeat("0123456789abcdef", 64)

// A file that is cut off at any page is refused, or what is read of it is an error, or is what was
// written until some moment: nothing else, and nothing that is whole is lost without a word.
func TestCutOff(t *testing.T) {
	t.Parallel()
	running, closed := written(t)
	if len(running["-wal"]) == 0 || len(closed["-wal"]) > 0 {
		t.Fatal("the write-ahead log is not as the test expects it")
	}
	const page = 4096
	for at := 0; at < len(closed[""]); at += page {
		for _, more := range []int{0, at / page % 3 * 512} {
			t.Run(fmt.Sprintf("the file at %d", at+more), func(t *testing.T) {
				t.Parallel()
				cut := map[string][]byte{"": closed[""][:at+more], ".audit": closed[".audit"]}
				if path := place(t, cut); at > 0 || more == 0 {
					_ = unchanged(t, path, "restore")
				} else {
					_ = unchanged(t, path)
				}
			})
		}
	}
	for at := 0; at < len(running[""]); at += page {
		t.Run(fmt.Sprintf("the file at %d beside its log", at), func(t *testing.T) {
			t.Parallel()
			readAll(t, place(t, map[string][]byte{"": running[""][:at], "-wal": running["-wal"], ".audit": running[".audit"]}))
		})
	}
	for at := 0; at < len(running["-wal"]); at += 5 * page {
		t.Run(fmt.Sprintf("the log at %d", at), func(t *testing.T) {
			t.Parallel()
			readAll(t, place(t, map[string][]byte{"": running[""], "-wal": running["-wal"][:at], ".audit": running[".audit"]}))
		})
	}
}

// place writes the parts of a file.
func place(t *testing.T, parts map[string][]byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "sessions.db")
	for end, data := range parts {
		ok(t, os.WriteFile(path+end, data, 0o600))
	}
	return path
}

// readAll opens a file that was cut off and reads all that is there.
func readAll(t *testing.T, path string) {
	t.Helper()
	ctx := t.Context()
	db, err := local.Open(path)
	if err != nil {
		if !strings.Contains(err.Error(), "restore") {
			t.Errorf("the error does not say what to do: %v", err)
		}
		return
	}
	defer func() { _ = db.Close() }() // it may be too damaged
	entries, auditErr := db.VerifyAudit(ctx)
	// The file beside it has the last entry but one.
	if auditErr == nil && entries < cutSteps-1 {
		t.Errorf("%d of %d entries are there, and nobody says so", entries, cutSteps)
	}
	list, err := db.Records(ctx, "s")
	if err == nil && auditErr == nil && int64(len(list)) < entries {
		t.Errorf("%d records, but %d entries, which were written after them", len(list), entries)
	}
	for i, r := range list {
		if r.N != int64(i)+1 || r.Body.(*host.TextRecord).Text != cutText {
			t.Errorf("record %+v", r)
		}
	}
	if data, size, err := db.Blob(ctx, "s", "b", 0, 1<<20); err == nil && (size != int64(20*len(cutText)) || len(data) != int(size)) {
		t.Errorf("a blob of %d bytes", size)
	}
	pins, err := db.Pins(ctx, "")
	for i, p := range pins {
		if p.Server != fmt.Sprintf("server%02d", i) || p.Digest != cutText {
			t.Errorf("pin %+v, error %v", p, err)
		}
	}
	grants, err := db.Grants(ctx)
	for i, g := range grants {
		if g.ID != fmt.Sprintf("g%02d", i) || !g.Revoked.Equal(time.Time{}) {
			t.Errorf("grant %+v, error %v", g, err)
		}
	}
	_, _ = db.Sessions(ctx)
	_ = db.Export(ctx, "s", &bytes.Buffer{})
	_ = db.Append(ctx, "s", newRecord("s", int64(len(list))+1))
}
