package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/host/storetest"
)

var epoch = time.Date(2030, 1, 2, 3, 4, 5, 6_007_100, time.UTC)

func open(t testing.TB, path string) *local.DB {
	t.Helper()
	db, err := local.Open(path)
	return databasetest.Opened(t, db, err)
}

// newPath is a path in a folder that is not there yet.
func newPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "state", "sessions ?#%.db")
}

func ok(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func create(t testing.TB, db host.Store, id, parent string, at int64) {
	t.Helper()
	ok(t, db.CreateSession(t.Context(), &host.SessionInfo{ID: id, Parent: parent, At: at, Created: epoch, Title: "title of " + id}))
}

// add appends records of texts, from one number to another.
func add(t testing.TB, db host.Store, session string, from, to int64) {
	t.Helper()
	for n := from; n <= to; n++ {
		ok(t, db.Append(t.Context(), session, newRecord(session, n)))
	}
}

func newRecord(session string, n int64) host.Record {
	return host.Record{N: n, Time: epoch.Add(time.Duration(n)), Body: &host.TextRecord{Text: fmt.Sprintf("record %d of %s <&>", n, session)}}
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) host.Store { return open(t, newPath(t)) })
}

// Two processes, or here two DBs, share one file: each method is done by another one than the
// method before.
func TestStoreOfTwo(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) host.Store {
		path := newPath(t)
		return &eachOf{next: turns(open(t, path), open(t, path))}
	})
}

// What a method has returned from is there in the next process.
func TestStoreReopened(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) host.Store {
		path := newPath(t)
		return &eachOf{next: func() (host.Store, func()) {
			db, err := local.Open(path)
			if err != nil {
				t.Errorf("open: %v", err)
				return new(host.Memory), func() {}
			}
			return db, func() {
				if err := db.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}
		}}
	})
}

// turns returns stores one after the other.
func turns(stores ...host.Store) func() (host.Store, func()) {
	var n atomic.Int64
	return func() (host.Store, func()) { return stores[int(n.Add(1))%len(stores)], func() {} }
}

// An eachOf does each method with another store.
type eachOf struct {
	next func() (s host.Store, done func())
}

func (e *eachOf) CreateSession(ctx context.Context, i *host.SessionInfo) error {
	s, done := e.next()
	defer done()
	return s.CreateSession(ctx, i)
}

func (e *eachOf) Session(ctx context.Context, id string) (*host.SessionInfo, error) {
	s, done := e.next()
	defer done()
	return s.Session(ctx, id)
}

func (e *eachOf) Sessions(ctx context.Context) ([]host.SessionInfo, error) {
	s, done := e.next()
	defer done()
	return s.Sessions(ctx)
}

func (e *eachOf) SetTitle(ctx context.Context, id, title string) error {
	s, done := e.next()
	defer done()
	return s.SetTitle(ctx, id, title)
}

func (e *eachOf) DeleteSession(ctx context.Context, id string) error {
	s, done := e.next()
	defer done()
	return s.DeleteSession(ctx, id)
}

func (e *eachOf) Append(ctx context.Context, session string, records ...host.Record) error {
	s, done := e.next()
	defer done()
	return s.Append(ctx, session, records...)
}

func (e *eachOf) Records(ctx context.Context, session string) ([]host.Record, error) {
	s, done := e.next()
	defer done()
	return s.Records(ctx, session)
}

func (e *eachOf) PutBlob(ctx context.Context, session, name string, data []byte) error {
	s, done := e.next()
	defer done()
	return s.PutBlob(ctx, session, name, data)
}

func (e *eachOf) Blob(ctx context.Context, session, name string, offset, limit int64) ([]byte, int64, error) {
	s, done := e.next()
	defer done()
	return s.Blob(ctx, session, name, offset, limit)
}

func (e *eachOf) Pin(ctx context.Context, key host.PinKey) (*host.Pin, error) {
	s, done := e.next()
	defer done()
	return s.Pin(ctx, key)
}

func (e *eachOf) Pins(ctx context.Context, server string) ([]host.Pin, error) {
	s, done := e.next()
	defer done()
	return s.Pins(ctx, server)
}

func (e *eachOf) PutPin(ctx context.Context, p *host.Pin) error {
	s, done := e.next()
	defer done()
	return s.PutPin(ctx, p)
}

func (e *eachOf) DeletePin(ctx context.Context, key host.PinKey) error {
	s, done := e.next()
	defer done()
	return s.DeletePin(ctx, key)
}

func (e *eachOf) PutGrant(ctx context.Context, g *host.Grant) error {
	s, done := e.next()
	defer done()
	return s.PutGrant(ctx, g)
}

func (e *eachOf) Grants(ctx context.Context) ([]host.Grant, error) {
	s, done := e.next()
	defer done()
	return s.Grants(ctx)
}

func (e *eachOf) RevokeGrant(ctx context.Context, id string, at time.Time) error {
	s, done := e.next()
	defer done()
	return s.RevokeGrant(ctx, id, at)
}

func (e *eachOf) Audit(ctx context.Context, a *host.AuditEntry) error {
	s, done := e.next()
	defer done()
	return s.Audit(ctx, a)
}

// The file holds conversations: nobody else reads it.
func TestPermissions(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the folder decides there")
	}
	path := newPath(t)
	db := open(t, path)
	create(t, db, "s", "", 0)
	ok(t, db.Audit(t.Context(), &host.AuditEntry{Event: "called"}))
	for name, want := range map[string]os.FileMode{
		filepath.Dir(path): 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600, path + ".audit": 0o600,
	} {
		info, err := os.Stat(name)
		ok(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %v, want %v", name, got, want)
		}
	}
	shared := filepath.Join(t.TempDir(), "shared.db")
	ok(t, os.WriteFile(shared, nil, 0o644))
	if _, err := local.Open(shared); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others can read: error %v", err)
	}
}

// Several processes make the tables at once.
func TestOpenRace(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			db, err := local.Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			if err := db.Audit(t.Context(), &host.AuditEntry{Record: int64(i)}); err != nil {
				t.Error(err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n, err := open(t, path).VerifyAudit(t.Context()); n != 8 || err != nil {
		t.Errorf("%d entries, error %v", n, err)
	}
}

// A record of a kind that only a newer version knows is host.ErrNewer, and can still be
// exported.
func TestNewerRecord(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	db := open(t, path)
	create(t, db, "s", "", 0)
	add(t, db, "s", 1, 1)
	execute(t, path, `INSERT INTO record (session, n, time, kind, body) VALUES ('s', 2, 3, 'hologram', CAST('{"a":1}' AS BLOB))`)
	if _, err := db.Records(t.Context(), "s"); !errors.Is(err, host.ErrNewer) || !strings.Contains(err.Error(), "record 2") {
		t.Errorf("error %v", err)
	}
	if lines := export(t, db, "s"); len(lines) != 3 || !strings.HasSuffix(lines[2], `"kind":"hologram","body":{"a":1}}`) {
		t.Errorf("exported %q", lines)
	}
}

// Records do not change, whatever program has the file.
func TestRecordsDoNotChange(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	db := open(t, path)
	create(t, db, "s", "", 0)
	add(t, db, "s", 1, 2)
	raw := rawDB(t, path)
	for _, statement := range []string{
		`UPDATE record SET body = x'00'`, `UPDATE record SET n = n + 10`,
		`REPLACE INTO record (session, n, time, kind, body) VALUES ('s', 1, 1, 'text', x'00')`,
	} {
		if _, err := raw.ExecContext(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "do not change") {
			t.Errorf("%s: error %v", statement, err)
		}
	}
	execute(t, path, `DELETE FROM record WHERE n = 1`)
	if _, err := db.Records(t.Context(), "s"); err == nil || !strings.Contains(err.Error(), "record 1 of session \"s\" is missing") {
		t.Errorf("a record that is missing: error %v", err)
	}
}

// What a person deletes is not in the files any more.
func TestDeletedIsGone(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	db := open(t, path)
	const secret = "what nobody may read"
	for _, id := range []string{"s", "kept"} {
		create(t, db, id, "", 0)
		for n := range int64(50) {
			ok(t, db.Append(t.Context(), id, host.Record{N: n + 1, Time: epoch, Body: &host.TextRecord{Text: secret + " " + id}}))
		}
		ok(t, db.PutBlob(t.Context(), id, "b", []byte(strings.Repeat(secret+" "+id, 1000))))
	}
	ok(t, db.DeleteSession(t.Context(), "s"))
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	ok(t, err)
	var all []byte
	for _, name := range files {
		data, err := os.ReadFile(name)
		ok(t, err)
		all = append(all, data...)
	}
	if strings.Contains(string(all), secret+" s") {
		t.Error("a deleted session is in the files")
	}
	if !strings.Contains(string(all), secret+" kept") {
		t.Error("the test does not see what is kept")
	}
}

// Errors say what was being done, and the numbers of a conflict.
func TestErrors(t *testing.T) {
	t.Parallel()
	db := open(t, newPath(t))
	create(t, db, "s", "", 0)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, noBlob, errBlob := db.Blob(t.Context(), "s", "b", 0, 1)
	for want, err := range map[string]error{
		`add to session "s": record 3, not 1: ` + host.ErrConflict.Error(): db.Append(t.Context(), "s", newRecord("s", 3)),
		`add to session "x": no such session`:                              db.Append(t.Context(), "x", newRecord("s", 1)),
		`create session "s": the id is taken`:                              db.CreateSession(t.Context(), &host.SessionInfo{ID: "s"}),
		`revoke grant "g": no such grant`:                                  db.RevokeGrant(t.Context(), "g", epoch),
		`name session "s": context canceled`:                               db.SetTitle(ended, "s", "t"),
		`read "b" of session "s": nothing is kept under this name`:         errBlob,
		`create session "f": it cannot begin after record 1; the last record of its parent is 0`: db.CreateSession(t.Context(),
			&host.SessionInfo{ID: "f", Parent: "s", At: 1}),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if noBlob != 0 {
		t.Errorf("size %d", noBlob)
	}
}
